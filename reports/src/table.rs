//! The tables of a report, without a format.

mod grid;
mod ranks;

pub use grid::grid;
pub use ranks::{ablation, outcomes, ranks, statistics};

use std::collections::BTreeSet;
use std::fmt::Write as _;

use crate::model::{Report, Workload};
use crate::number::{bytes, si, thousands, three_digits};
use crate::standing::{Contest, Metric, Rank, Standing};
use crate::stats::{Estimate, LEAST_SEEDS};

/// Behind the best by no more than noise.
pub const LEVEL: &str = "†";
/// Not ranked.
pub const UNRANKED: &str = "‡";

/// Rows of text below a heading.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Table {
    /// Heads of the columns. The first column is text, the others are numbers unless `words`.
    pub columns: Vec<String>,
    /// Each as long as `columns`.
    pub rows: Vec<Vec<Cell>>,
    /// Whether columns hold words, not numbers.
    pub words: bool,
    /// What the reader must know, one sentence each.
    pub notes: Vec<String>,
}

/// A cell of a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cell {
    /// What it says.
    pub text: String,
    /// What belongs to it in smaller print: interval and n.
    pub detail: String,
    /// Set in bold.
    pub strong: bool,
}

impl<T: Into<String>> From<T> for Cell {
    fn from(text: T) -> Self {
        Self { text: text.into(), detail: String::new(), strong: false }
    }
}

pub(crate) fn heads<const N: usize>(names: [&str; N]) -> Vec<String> {
    names.map(str::to_owned).to_vec()
}

/// Encodings against workloads: the headline metric in distribution and beyond training.
pub fn summary(report: &Report) -> Table {
    let mut table = Table { columns: vec!["encoding".to_owned()], ..Table::default() };
    let contests: Vec<(&Workload, &Contest)> = report
        .workloads
        .iter()
        .flat_map(|w| [(w, &w.inside), (w, &w.beyond)])
        .filter(|(_, contest)| !contest.points.is_empty())
        .collect();
    for (workload, contest) in &contests {
        table.columns.push(format!(
            "{}, {}: {}",
            workload.name,
            contest.region.name(),
            contest.metric.name()
        ));
    }
    for encoding in &report.encodings {
        let mut row = vec![Cell::from(&encoding.display)];
        row.extend(contests.iter().map(|(_, contest)| {
            contest
                .standings
                .iter()
                .find(|s| s.encoding == encoding.name)
                .map_or_else(|| Cell::from("–"), |standing| standing_cell(contest, standing))
        }));
        table.rows.push(row);
    }
    table.notes = summary_notes(&contests);
    table
}

fn standing_cell(contest: &Contest, standing: &Standing) -> Cell {
    let Some(estimate) = standing.estimate else {
        return Cell::from(format!("– {UNRANKED}"));
    };
    let mut cell = with_interval(contest.metric, &estimate);
    if let Some(rank) = standing.group {
        let _ = write!(cell.detail, ", rank {rank}");
    }
    cell.strong = standing.rank == Rank::Best;
    if standing.rank == Rank::Unranked {
        let evaluated = format!(" {UNRANKED} {} of {}", standing.evaluated, contest.points.len());
        cell.text.push_str(&evaluated);
    } else if standing.is_level() {
        cell.text.push(' ');
        cell.text.push_str(LEVEL);
    }
    cell
}

/// `97.1 %`, and in detail `[92.0 to 100.0] n=3`.
fn with_interval(metric: Metric, estimate: &Estimate) -> Cell {
    let interval =
        estimate.ci95.map_or_else(String::new, |ci| format!("[{}] ", metric.show_interval(ci)));
    Cell {
        text: metric.show(estimate.mean),
        detail: format!("{interval}n={}", estimate.n),
        strong: false,
    }
}

/// `97.1 %`, and in detail `[92.0 to 99.0]`, the bootstrap interval.
fn median(metric: Metric, estimate: &Estimate) -> Cell {
    let interval = estimate
        .bootstrap
        .map_or_else(String::new, |b| format!("[{}]", metric.show_interval(b.median95)));
    Cell { text: metric.show(estimate.median), detail: interval, strong: false }
}

fn summary_notes(contests: &[(&Workload, &Contest)]) -> Vec<String> {
    let mut notes = vec![
        "Mean over all evaluations of the region, then over n seeds; [95 % interval over seeds, \
         Student's t, cut to 0 and 100 %]. Bold: the best mean."
            .to_owned(),
        format!(
            "{LEVEL} Not separable from the best with that n: the difference, paired by seed, is no \
             more than noise once Holm's correction has run over all pairs of the column, or there \
             are fewer than {LEAST_SEEDS} seeds. Encodings that cannot be separated share a rank."
        ),
    ];
    let standings = || contests.iter().flat_map(|(_, c)| &c.standings);
    if standings().any(|s| s.rank == Rank::Unranked) {
        notes.push(format!(
            "{UNRANKED} Not ranked: evaluations are missing (the mean is over those it has) or not \
             finite."
        ));
    }
    for (workload, contest) in contests {
        if let Some(value) = contest.fallback {
            notes.push(format!(
                "{}, {}: exact match is {} for every ranked encoding, so token accuracy is shown.",
                workload.name,
                contest.region.name(),
                Metric::ExactMatch.show(value)
            ));
        }
    }
    notes
}

/// Every aggregated evaluation of a workload.
pub fn evaluations(report: &Report, workload: &Workload) -> Table {
    let text = workload.headline == Metric::Perplexity;
    let mut columns = heads(["encoding", "split", "length"]);
    if text {
        columns.extend(heads(["perplexity", "median", "bits per byte", "token accuracy"]));
    } else {
        columns.extend(heads(["exact match", "median", "token accuracy", "nll, nats per token"]));
    }
    let rows = workload
        .rows
        .iter()
        .map(|row| {
            let mut cells = vec![
                Cell::from(report.display(&row.encoding)),
                Cell::from(if row.in_distribution {
                    row.split.clone()
                } else {
                    format!("{} (beyond)", row.split)
                }),
                Cell::from(row.len.to_string()),
            ];
            let tokens = with_interval(Metric::TokenAccuracy, &row.token_accuracy);
            if text {
                cells.push(with_interval(Metric::Perplexity, &row.nll));
                cells.push(median(Metric::Perplexity, &row.nll));
                cells.push(optional(row.bits_per_byte, three_digits));
                cells.push(tokens);
            } else {
                cells.push(with_interval(Metric::ExactMatch, &row.exact_match));
                cells.push(median(Metric::ExactMatch, &row.exact_match));
                cells.push(tokens);
                cells.push(three_digits(row.nll.mean).into());
            }
            cells
        })
        .collect();
    let notes = vec![ranks::INTERVALS.to_owned()];
    Table { columns, rows, notes, ..Table::default() }
}

fn optional(value: Option<f64>, show: impl Fn(f64) -> String) -> Cell {
    value.map_or_else(|| Cell::from("–"), |value| show(value).into())
}

/// What each encoding costs on a workload.
pub fn costs(report: &Report, workload: &Workload) -> Table {
    let rows = workload
        .costs
        .iter()
        .map(|cost| {
            vec![
                Cell::from(report.display(&cost.encoding)),
                thousands(cost.params_total).into(),
                thousands(cost.params_encoding).into(),
                si(cost.flops_train_step as f64).into(),
                optional(cost.tokens_per_second, si),
                optional(cost.step_seconds, |s| three_digits(1000.0 * s)),
                optional(cost.step_ratio, |r| format!("{r:.2}")),
                optional(cost.peak_bytes.map(|b| b as f64), bytes),
            ]
        })
        .collect();
    Table {
        columns: heads([
            "encoding",
            "parameters",
            "of the encoding",
            "FLOPs per step",
            "tokens/s",
            "ms per step",
            "time / RoPE's",
            "peak memory",
        ]),
        rows,
        words: false,
        notes: Vec::new(),
    }
}

/// Evaluations that were not possible.
pub fn skipped_evaluations(report: &Report) -> Table {
    let list =
        |values: &BTreeSet<u64>| values.iter().map(u64::to_string).collect::<Vec<_>>().join(", ");
    let rows = report
        .skipped_evals
        .iter()
        .map(|s| {
            vec![
                Cell::from(&s.workload),
                report.display(&s.encoding).into(),
                s.split.clone().into(),
                list(&s.lens).into(),
                list(&s.seeds).into(),
                s.reason.clone().into(),
            ]
        })
        .collect();
    let columns = heads(["workload", "encoding", "split", "lengths", "seeds", "reason"]);
    Table { columns, rows, words: true, notes: Vec::new() }
}

/// Cells that no number comes from.
pub fn not_counted(report: &Report) -> Table {
    let rows = report
        .not_counted
        .iter()
        .map(|n| {
            vec![
                Cell::from(&n.workload),
                report.display(&n.encoding).into(),
                n.seed.to_string().into(),
                n.state.into(),
                n.reason.clone().into(),
                n.key.clone().into(),
            ]
        })
        .collect();
    let columns = heads(["workload", "encoding", "seed", "state", "reason", "cell"]);
    Table { columns, rows, words: true, notes: Vec::new() }
}

/// Every cell.
pub fn cells(report: &Report) -> Table {
    let rows = report
        .cells
        .iter()
        .map(|r| {
            vec![
                Cell::from(&r.workload),
                r.encoding.name.clone().into(),
                r.seed.to_string().into(),
                r.status.name().into(),
                r.key.clone().into(),
                r.started_utc.clone().into(),
                format!("{:.1}", r.train.seconds).into(),
            ]
        })
        .collect();
    let columns =
        heads(["workload", "encoding", "seed", "state", "cell", "started (UTC)", "training s"]);
    Table { columns, rows, words: true, notes: Vec::new() }
}
