//! The tables of the front page: ranking and cost of all encodings.

use std::fmt::Write as _;

use super::common::{UNRANKED, ratio, spread, with_interval};
use crate::analysis::ranking::{EncodingResult, Rank, Ranking, Region};
use crate::analysis::run_metrics::RunMetrics;
use crate::analysis::{EncodingCost, Report, Workload};
use crate::document::table::{Table, TableCell, heads};
use crate::document::text::grid_sentence;
use crate::number::{bytes, percent, thousands};
use crate::record::Metric;
use crate::stats::LEAST_SEEDS;

/// Table of encodings by workloads: the headline metric beyond training, or in distribution where nothing else was
/// evaluated.
pub fn summary(report: &Report) -> Table {
    let mut table = Table { columns: vec!["encoding".to_owned()], ..Table::default() };
    let rankings: Vec<(&Workload, &Ranking)> = report
        .workloads
        .iter()
        .map(|w| (w, w.deciding()))
        .filter(|(_, ranking)| !ranking.points.is_empty())
        .collect();
    for (workload, ranking) in &rankings {
        let region = ranking.region.name();
        table.columns.push(format!("{}\n{}, {region}", workload.name, ranking.metric.name()));
    }
    for encoding in &report.encodings {
        let mut row = vec![TableCell::of_encoding(report, &encoding.name)];
        row.extend(rankings.iter().map(|(workload, ranking)| {
            let result = ranking.results.iter().find(|s| s.encoding == encoding.name);
            result.map_or_else(
                || TableCell::from("–"),
                |s| result_cell(workload, ranking, s).with_cells(report, workload, &s.encoding),
            )
        }));
        table.rows.push(row);
    }
    table.notes = notes(&rankings);
    table
}

fn result_cell(workload: &Workload, ranking: &Ranking, result: &EncodingResult) -> TableCell {
    let Some(estimate) = result.estimate else {
        return TableCell::from(format!("– {UNRANKED}"));
    };
    let mut cell = with_interval(ranking.metric, &estimate);
    if let Some(rank) = result.group {
        let _ = write!(cell.detail, ", rank {rank}");
    }
    let metrics = workload.run_metrics.iter().find(|o| o.encoding == result.encoding);
    if let Some(rate) = metrics.and_then(RunMetrics::fit_rate) {
        let rate = percent(rate).replace(".0 %", " %");
        let _ = write!(cell.detail, ", fit {rate}");
    }
    // Where nobody can be told apart, marking everybody says nothing, and marking one too much.
    let told_apart = ranking.results.iter().any(|s| s.group > Some(1));
    cell.strong = told_apart && result.group == Some(1);
    if result.rank == Rank::Unranked {
        let evaluated = format!(" {UNRANKED} {} of {}", result.evaluated, ranking.points.len());
        cell.text.push_str(&evaluated);
    }
    cell
}

fn notes(rankings: &[(&Workload, &Ranking)]) -> Vec<String> {
    let mut notes = vec![format!(
        "Mean over all evaluations of the region, then over n seeds [95 % confidence interval, Student's t]. \
         Bold: first rank, the best mean and all that cannot be separated from it with these seeds (paired \
         by seed, Holm's correction over all pairs of a column; at least {LEAST_SEEDS} seeds); nothing is bold \
         where all share the first rank. Fit: share of seeds that solved training."
    )];
    let results = || rankings.iter().flat_map(|(_, c)| &c.results);
    if results().any(|s| s.rank == Rank::Unranked) {
        notes.push(format!(
            "{UNRANKED} Not ranked: evaluations are missing (the mean is over those it has) or not \
             finite."
        ));
    }
    for (workload, ranking) in rankings {
        if let Some(value) = ranking.fallback {
            notes.push(format!(
                "{}: exact match is {} for every ranked encoding, so token accuracy is shown.",
                workload.name,
                Metric::ExactMatch.show(value)
            ));
        }
    }
    for (workload, _) in rankings {
        // A number that was chosen among several says so where it is shown.
        if let Some(found) = &workload.grid {
            notes.push(format!("{}:{}", workload.name, grid_sentence(&found.grid)));
        }
    }
    if rankings.iter().any(|(_, c)| c.region == Region::Inside) {
        notes.push("In distribution: nothing was evaluated beyond training there.".to_owned());
    }
    notes
}

/// Table of costs and effective lengths of encodings over all workloads.
pub fn prices(report: &Report) -> Table {
    let rows = report.encodings.iter().map(|encoding| {
        let costs: Vec<&EncodingCost> = report
            .workloads
            .iter()
            .flat_map(|w| &w.costs)
            .filter(|cost| cost.encoding == encoding.name)
            .collect();
        let of =
            |get: fn(&EncodingCost) -> Option<f64>| costs.iter().filter_map(|c| get(c)).collect();
        let run_metrics: Vec<&RunMetrics> = report
            .workloads
            .iter()
            .flat_map(|w| &w.run_metrics)
            .filter(|metrics| metrics.encoding == encoding.name)
            .collect();
        let reach: Vec<f64> = run_metrics.iter().filter_map(|o| o.effective_ratio).collect();
        let least = run_metrics.iter().any(|o| o.effective_at_least && o.effective_ratio.is_some());
        let mut reach = spread(reach, ratio);
        if least {
            reach.text.insert_str(0, "≥ ");
        }
        let whole = |value: f64| thousands(value as u64);
        vec![
            TableCell::of_encoding(report, &encoding.name),
            reach,
            spread(of(|c| Some(c.params_total as f64)), whole),
            spread(of(|c| Some(c.params_encoding as f64)), whole),
            spread(of(|c| c.flops_ratio), |r| format!("{r:.3}")),
            spread(of(|c| c.step_ratio), ratio),
            spread(of(|c| c.peak_bytes.map(|b| b as f64)), bytes),
        ]
    });
    let mut notes = vec![
        "Median over workloads [minimum to maximum]. Effective length: the largest evaluated length up to \
         which exact match stays high, over the training length; ≥: on some workload it is the longest \
         evaluated length. FLOPs and ms: of a training step, relative to RoPE on the same workload."
            .to_owned(),
    ];
    if report.workloads.iter().any(|w| w.machines.len() > 1) {
        notes.push(
            "Warning: cells of one workload ran under different conditions; their times and memory are not \
             comparable (see Cost)."
                .to_owned(),
        );
    }
    let columns = [
        "encoding",
        "effective length\ntimes training length",
        "parameters",
        "of the encoding",
        "FLOPs\ntimes RoPE's",
        "ms per step\ntimes RoPE's",
        "peak memory",
    ];
    Table { columns: heads(columns), rows: rows.collect(), words: false, notes }
        .without_empty_columns()
}
