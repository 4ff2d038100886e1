//! Ranks, what seeds achieved, and ablations.

use super::{Cell, LEVEL, Table, UNRANKED, gates, grid, heads, median, with_interval};
use crate::ablation::{Ablation, Change, Effect};
use crate::model::{Report, Workload};
use crate::number::{p_value, percent, points, three_digits};
use crate::outcome::{Middle, Outcome};
use crate::sentences::method;
use crate::settings::Settings;
use crate::standing::{Contest, Metric, Rank, Standing};
use crate::stats::Comparison;

/// What the intervals of these tables are.
pub(super) const INTERVALS: &str = "Mean with its 95 % interval by Student's t over n seeds; median \
    with its 95 % bootstrap interval, which is too narrow for few seeds (it holds \
    1 of 2 medians with 2, 3 of 4 with 3).";

/// The tables of a workload that come from statistics, each with its heading: ranks in distribution
/// and beyond training, what the seeds achieved, gate scores, ablations, the grid. None is empty.
pub fn statistics(report: &Report, workload: &Workload) -> Vec<(String, Table)> {
    let mut tables: Vec<(String, Table)> = [&workload.inside, &workload.beyond]
        .map(|contest| {
            (format!("Ranks {}", contest.region.name()), ranks(report, workload, contest))
        })
        .into();
    tables.push(("Solving and effective length".to_owned(), outcomes(report, workload)));
    tables.push(("Gate scores".to_owned(), gates(report, workload)));
    tables.extend(workload.ablations.iter().map(|found| {
        let heading = format!("Changes of {}, {}", found.base_display, found.region.name());
        (heading, ablation(found))
    }));
    tables.extend(workload.grid.iter().map(|found| {
        (format!("Grid of {}", found.grid.short_axis()), grid(report, workload, found))
    }));
    tables.retain(|(_, table)| !table.rows.is_empty());
    tables
}

/// The encodings of a contest by rank and mean; then those without a rank.
pub fn ranks(report: &Report, workload: &Workload, contest: &Contest) -> Table {
    let columns = heads([
        "encoding",
        "rank",
        contest.metric.name(),
        "median",
        "behind the best",
        "p (Holm)",
        "Hedges' g",
        "against the best",
    ]);
    if contest.points.is_empty() {
        return Table { columns, ..Table::default() };
    }
    let mut standings: Vec<&Standing> = contest.ranking();
    // Stable: within a rank the order of means is kept.
    standings.sort_by_key(|s| s.group);
    standings.extend(contest.standings.iter().filter(|s| s.group.is_none()));
    let rows = standings
        .into_iter()
        .map(|s| {
            let mut row = rank_row(contest, s);
            let name = Cell::of_encoding(report, &s.encoding);
            row[0] =
                Cell { strong: row[0].strong, ..name }.with_cells(report, workload, &s.encoding);
            row
        })
        .collect();
    let mut notes = vec![
        INTERVALS.to_owned(),
        "An encoding shares the rank of the best that it cannot be separated from. Behind the best: \
         mean difference paired by seed [its 95 % interval, not corrected]."
            .to_owned(),
    ];
    notes.extend(method(contest).map(|method| format!("What decides: {method}.")));
    Table { columns, rows, words: false, notes }.without_empty_columns()
}

fn rank_row(contest: &Contest, standing: &Standing) -> Vec<Cell> {
    let metric = contest.metric;
    let comparison = match &standing.rank {
        Rank::Behind(comparison) => comparison.as_ref(),
        Rank::Best | Rank::Unranked => None,
    };
    let verdict = match &standing.rank {
        Rank::Best => "best".to_owned(),
        Rank::Behind(None) => format!("no common seed {LEVEL}"),
        Rank::Behind(Some(c)) if standing.is_level() => {
            format!("not separable with n = {}", c.paired.n)
        }
        Rank::Behind(Some(_)) => match level_with(contest, standing) {
            None => "separable".to_owned(),
            Some((leader, n)) => {
                format!("separable; not separable with n = {n} from {leader}")
            }
        },
        Rank::Unranked => {
            format!("{UNRANKED} {} of {} evaluations", standing.evaluated, contest.points.len())
        }
    };
    let mut row = vec![
        Cell::from(&standing.display),
        standing.group.map_or_else(|| "–".to_owned(), |rank| rank.to_string()).into(),
        standing.estimate.map_or_else(|| "–".into(), |e| with_interval(metric, &e)),
        standing.estimate.map_or_else(|| "–".into(), |e| median(metric, &e)),
    ];
    row.extend(compared(metric, comparison));
    row.push(verdict.into());
    for cell in row.iter_mut().filter(|cell| cell.text != "–") {
        cell.strong = standing.rank == Rank::Best;
    }
    row
}

/// The one that leads the standing's rank, unless it is the standing itself, and the seeds that were too
/// few to separate the two.
fn level_with<'a>(contest: &'a Contest, standing: &Standing) -> Option<(&'a str, u32)> {
    let leader = contest.ranking().into_iter().find(|s| s.group == standing.group)?;
    let pair = contest
        .pairs
        .iter()
        .find(|p| p.better == leader.encoding && p.worse == standing.encoding)?;
    Some((&leader.display, pair.comparison.paired.n))
}

/// Difference with its interval, p-value with its test, effect size.
fn compared(metric: Metric, comparison: Option<&Comparison>) -> [Cell; 3] {
    let Some(c) = comparison else { return ["–", "–", "–"].map(Cell::from) };
    let show = |x: f64| {
        if metric.higher_is_better() { points(x) } else { three_digits(x.exp()) }
    };
    let difference = if metric.higher_is_better() {
        format!("{} points", show(c.paired.mean_difference))
    } else {
        format!("{} times", show(c.paired.mean_difference))
    };
    let interval = |(low, high): (f64, f64)| format!("[{} to {}]", show(low), show(high));
    let p = c.p_holm.map_or_else(
        || Cell::from("–"),
        |p| Cell {
            text: p_value(p).trim_start_matches("= ").to_owned(),
            detail: c.test.name().to_owned(),
            ..Cell::default()
        },
    );
    let effect = match c.paired.effect {
        Some(g) => three_digits(g),
        None if c.paired.is_the_same_in_every_seed() => "no spread".to_owned(),
        None => "–".to_owned(),
    };
    [
        Cell {
            text: difference,
            detail: c.paired.ci95.map_or_else(String::new, interval),
            ..Cell::default()
        },
        p,
        effect.into(),
    ]
}

/// Fit rate, time to solve and effective length of each encoding; no rows for a task that cannot be
/// solved.
pub fn outcomes(report: &Report, workload: &Workload) -> Table {
    let rows = workload
        .outcomes
        .iter()
        .map(|outcome| {
            let name = Cell::of_encoding(report, &outcome.encoding);
            outcome_row(name.with_cells(report, workload, &outcome.encoding), outcome)
        })
        .collect();
    let Settings { solved_exact_match, solved_loss, effective_exact_match, .. } = report.settings;
    Table {
        columns: heads([
            "encoding",
            "fit rate",
            "steps to solve",
            "seconds to solve",
            "effective length",
            "times trained length",
        ]),
        rows,
        words: false,
        notes: vec![
            format!(
                "Fit rate: share of seeds that solved training, with an exact match in distribution \
                 of at least {}; diverged seeds did not. To solve: over those seeds, the first point \
                 of the training curve with a loss of at most {solved_loss} nats per scored token; \
                 median [least to greatest].",
                percent(solved_exact_match)
            ),
            format!(
                "Effective length: the largest evaluated length up to which exact match on the \
                 training split is at least {} at every length; median over seeds [least to \
                 greatest]. ≥: no longer one was evaluated. 0: not even at the shortest.",
                percent(effective_exact_match)
            ),
        ],
    }
    .without_empty_columns()
}

fn outcome_row(name: Cell, outcome: &Outcome) -> Vec<Cell> {
    let middle = |m: &Option<Middle>, show: fn(f64) -> String, sign: &str| {
        m.as_ref().map_or_else(
            || Cell::from("–"),
            |m| Cell {
                text: format!("{sign}{}", show(m.median)),
                detail: if show(m.range.0) == show(m.range.1) {
                    format!("n={}", m.n)
                } else {
                    format!("[{} to {}] n={}", show(m.range.0), show(m.range.1), m.n)
                },
                ..Cell::default()
            },
        )
    };
    let whole: fn(f64) -> String = |x| x.to_string();
    let sign = if outcome.effective_at_least { "≥ " } else { "" };
    vec![
        name,
        Cell {
            text: outcome.fit_rate().map_or_else(|| "–".to_owned(), percent),
            detail: format!("{} of {}", outcome.solved, outcome.run),
            ..Cell::default()
        },
        middle(&outcome.solve_steps, whole, ""),
        middle(&outcome.solve_seconds, three_digits, ""),
        middle(&outcome.effective, whole, sign),
        outcome
            .effective_ratio
            .map_or_else(|| "–".to_owned(), |ratio| format!("{sign}{ratio:.2}"))
            .into(),
    ]
}

/// Each change against the base.
pub fn ablation(ablation: &Ablation) -> Table {
    let metric = ablation.metric;
    let value = |e: Option<crate::stats::Estimate>| {
        e.map_or_else(|| Cell::from("–"), |e| with_interval(metric, &e))
    };
    let mut rows = vec![vec![
        Cell::from(&ablation.base_display),
        value(ablation.base_estimate),
        "–".into(),
        "–".into(),
        "–".into(),
        "base".into(),
    ]];
    rows.extend(ablation.changes.iter().map(|change: &Change| {
        let mut row = vec![Cell::from(&change.display), value(change.estimate)];
        row.extend(compared(metric, change.comparison.as_ref()));
        let effect = match change.effect(metric) {
            Effect::Better => "better".to_owned(),
            Effect::Worse => "worse".to_owned(),
            Effect::NotSeparable(n) => format!("not separable with n = {n}"),
            Effect::NotComparable => "evaluations or common seeds are missing".to_owned(),
        };
        row.push(effect.into());
        row
    }));
    Table {
        columns: heads([
            "encoding",
            metric.name(),
            "change minus base",
            "p (Holm)",
            "Hedges' g",
            "against the base",
        ])
        .into_iter()
        .map(|head| match (&*head, metric.higher_is_better()) {
            ("change minus base", false) => "change over base".to_owned(),
            _ => head,
        })
        .collect(),
        rows,
        words: false,
        notes: vec![
            "Each change is paired with the base by seed [95 % interval of the mean difference, not \
             corrected]; Holm's correction runs over the changes."
                .to_owned(),
        ],
    }
}

#[cfg(test)]
mod tests;
