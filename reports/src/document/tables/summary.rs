//! The tables of the front page: ranking and cost of all encodings.

use std::collections::{BTreeMap, BTreeSet};

use super::common::{MEAN, TOO_FEW_SEEDS, UNRANKED, interval, ratio, spread};
use crate::document::table::{Table, TableCell};
use analysis::grid::GridReport;
use analysis::ranking::{EncodingResult, FAR, Rank, Ranking};
use analysis::run_metrics::RunMetrics;
use analysis::{Encoding, EncodingCost, Overall, OverallScore, Report, Workload};
use records::Metric;
use records::number::{bracketed, bytes, count, joined, listed, percent, points, thousands};
use records::settings::Region;
use stats::LEAST_SEEDS;

/// Table of encodings by workloads: the headline metric beyond training, or in distribution where nothing else was
/// evaluated. With an aggregate over workloads it comes first and orders the rows.
pub fn summary(report: &Report) -> Table {
    let mut table =
        Table { columns: vec!["encoding".to_owned()], is_heat: true, ..Table::default() };
    let rankings: Vec<(&Workload, &Ranking)> =
        report.workloads.iter().filter_map(|w| Some((w, w.deciding()?))).collect();
    for (workload, ranking) in &rankings {
        let region = ranking.region.name();
        table.columns.push(format!("{}\n{}, {region}", workload.name, ranking.metric.name()));
    }
    let scores = report.overall.as_ref().map_or(&[][..], |overall| &overall.scores);
    if !scores.is_empty() {
        table.columns.insert(1, format!("all tasks\n{}", Overall::NAME));
    }
    let n = common_seeds(&rankings);
    let order = |name: &str| scores.iter().position(|score| score.encoding == name);
    let mut encodings: Vec<&Encoding> = report.encodings.iter().collect();
    encodings.sort_by_key(|encoding| order(&encoding.name).unwrap_or(usize::MAX));
    for encoding in encodings {
        let mut row = vec![TableCell::of_encoding(report, &encoding.name)];
        if !scores.is_empty() {
            let score = order(&encoding.name).map(|index| &scores[index]);
            row.push(TableCell::optional(score, score_cell));
        }
        row.extend(rankings.iter().map(|(workload, ranking)| {
            let result = ranking.results.iter().find(|s| s.encoding == encoding.name);
            TableCell::optional(result, |s| {
                result_cell(workload, ranking, s, n).with_cells(workload, &s.encoding)
            })
        }));
        table.rows.push(row);
    }
    table.rows.extend(chance(&rankings, !scores.is_empty()));
    table.notes = notes(&rankings);
    table.notes.extend(n.map(|n| format!("Every mean is over {}.", count(n, "seed"))));
    table.legends = vec![
        MEAN.to_owned(),
        format!(
            "Summary: each number is the mean over all evaluations of the region, then over seeds. Bold: first rank, \
             that is, the best mean and all means that do not differ significantly from it and are at most {:.0} \
             points (for text {FAR} nats) behind it. The tests are paired by seed, have Holm's correction over all \
             pairs of a column and need at least {LEAST_SEEDS} seeds. In a column where all encodings share the first \
             rank, nothing is bold. Fit: share of seeds with an exact match of at least {} in distribution.",
            100.0 * FAR,
            percent(report.settings.solved_exact_match).replace(".0%", "%")
        ),
    ];
    table
}

fn score_cell(score: &OverallScore) -> TableCell {
    let detail = bracketed(score.ci95, points);
    TableCell { heat: heat(score.value), ..TableCell::with_detail(percent(score.value), detail) }
}

/// Returns the colour of a share.
fn heat(share: f64) -> Option<u8> {
    share.is_finite().then(|| (100.0 * share.clamp(0.0, 1.0)).round() as u8)
}

/// Returns the colour of a result: exact match as it is, losses between the worst and the best of the ranking.
fn result_heat(ranking: &Ranking, result: &EncodingResult) -> Option<u8> {
    if ranking.metric.higher_is_better() {
        return heat(result.mean());
    }
    let means = || ranking.results.iter().map(EncodingResult::mean).filter(|x| x.is_finite());
    let (best, worst) =
        (means().fold(f64::INFINITY, f64::min), means().fold(f64::NEG_INFINITY, f64::max));
    heat((worst - result.mean()) / (worst - best))
}

/// Row with the level of guessing, if it is known of any workload; with `overall` it has a column for all tasks.
fn chance(rankings: &[(&Workload, &Ranking)], overall: bool) -> Option<Vec<TableCell>> {
    let known = |(_, ranking): &(&Workload, &Ranking)| ranking.chance;
    rankings.iter().any(|found| known(found).is_some()).then(|| {
        let cells = rankings
            .iter()
            .map(|found| TableCell::optional(known(found), |x| Metric::ExactMatch.show(x)));
        std::iter::once(TableCell { reference: true, ..TableCell::from("chance") })
            .chain(overall.then(|| percent(0.0).into()))
            .chain(cells)
            .collect()
    })
}

/// Returns the number of seeds of all numbers, if it is the same.
fn common_seeds(rankings: &[(&Workload, &Ranking)]) -> Option<u32> {
    let results = rankings.iter().flat_map(|(_, ranking)| &ranking.results);
    let seeds: BTreeSet<u32> = results.filter_map(|result| Some(result.estimate?.n)).collect();
    if seeds.len() == 1 { seeds.first().copied() } else { None }
}

/// Returns the cell of an encoding in the summary; `n` is the number of seeds if it is the same in all cells.
fn result_cell(
    workload: &Workload,
    ranking: &Ranking,
    result: &EncodingResult,
    n: Option<u32>,
) -> TableCell {
    let Some(estimate) = result.estimate else {
        return TableCell::from(format!("– {UNRANKED}"));
    };
    let metrics = workload.run_metrics.iter().find(|o| o.encoding == result.encoding);
    let rate = metrics.and_then(RunMetrics::fit_rate);
    let facts = [
        n.is_none().then(|| format!("n={}", estimate.n)),
        match result.rank {
            Rank::TooFewSeeds => Some("rank –".to_owned()),
            _ => result.group.map(|rank| format!("rank {rank}")),
        },
        rate.map(|rate| format!("fit {}", percent(rate).replace(".0%", "%"))),
    ];
    let facts = facts.into_iter().flatten().collect::<Vec<_>>().join(", ");
    let interval = interval(ranking.metric, estimate.ci95);
    let detail = interval.into_iter().chain([facts]).collect::<Vec<_>>().join("\n");
    let text = ranking.metric.show(estimate.mean);
    let mut cell = TableCell::with_detail(text, detail);
    cell.heat = result_heat(ranking, result);
    cell.runs = Overall::runs(ranking, &result.encoding).unwrap_or_default();
    cell.strong = result.group == Some(1);
    if result.rank == Rank::Unranked {
        let evaluated = format!(" {UNRANKED} {} of {}", result.evaluated, ranking.points.len());
        cell.text.push_str(&evaluated);
    }
    cell
}

fn notes(rankings: &[(&Workload, &Ranking)]) -> Vec<String> {
    let mut notes = Vec::new();
    let results = || rankings.iter().flat_map(|(_, c)| &c.results);
    if results().any(|s| s.rank == Rank::Unranked) {
        let why = "evaluations are missing or not finite. The mean is over the other evaluations";
        notes.push(format!("{UNRANKED} Not ranked: {why}."));
    }
    if results().any(|s| s.rank == Rank::TooFewSeeds) {
        notes.push(TOO_FEW_SEEDS.to_owned());
    }
    for (workload, ranking) in rankings {
        if let Some(value) = ranking.fallback {
            notes.push(format!(
                "`{}`: exact match is {} for every ranked encoding, so token accuracy is shown instead.",
                workload.name,
                Metric::ExactMatch.show(value)
            ));
        }
    }
    notes.extend(chosen(rankings));
    if rankings.iter().any(|(_, c)| c.region == Region::Inside) {
        notes.push(
            "In distribution: the workloads of these columns were not evaluated at longer lengths or on other distributions.".to_owned(),
        );
    }
    notes
}

/// Returns a note for each grid, with the workloads whose values were chosen from it.
fn chosen(rankings: &[(&Workload, &Ranking)]) -> Vec<String> {
    let mut workloads: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (workload, _) in rankings {
        let Some(GridReport { grid, .. }) = &workload.grid else { continue };
        let grid = format!("`{}` out of {}", grid.short_axis(), joined(&grid.values, ", "));
        workloads.entry(grid).or_default().push(format!("`{}`", workload.name));
    }
    let note = |(grid, workloads): (String, Vec<String>)| {
        let on = if workloads.len() == rankings.len() && workloads.len() > 1 {
            "each workload".to_owned()
        } else {
            listed(&workloads, "and")
        };
        format!("Chosen by validation for each encoding: {grid} (on {on}).")
    };
    workloads.into_iter().map(note).collect()
}

/// Returns the table of costs of encodings over all workloads.
pub fn prices(report: &Report) -> Table {
    let costs = |encoding: &Encoding, get: &dyn Fn(&EncodingCost) -> Option<f64>| -> Vec<f64> {
        let costs = report.workloads.iter().flat_map(|workload| &workload.costs);
        costs.filter(|cost| cost.encoding == encoding.name).filter_map(get).collect()
    };
    let whole = |value: f64| thousands(value as u64);
    let mut table = Table::of(&report.encodings)
        .column("encoding", |own| TableCell::of_encoding(report, &own.name))
        .column("parameters", |own| {
            spread(costs(own, &|c| EncodingCost::known(c.params_total)), whole)
        })
        .column("parameters of the encoding", |own| {
            spread(costs(own, &|c| c.known_params_of_encoding().map(|n| n as f64)), whole)
        })
        .column("FLOPs\nrelative to RoPE", |own| {
            spread(costs(own, &|c| c.flops_ratio), |ratio| format!("{ratio:.3}"))
        })
        .column("training FLOPs\nrelative to RoPE", |own| {
            spread(costs(own, &|c| c.flops_training_ratio), ratio)
        })
        .column("ms per step\nrelative to RoPE", |own| {
            spread(costs(own, &EncodingCost::sound_step_ratio), ratio)
        })
        .column("training time\nrelative to RoPE", |own| {
            spread(costs(own, &|c| report.training_time_ratio_of(c)), ratio)
        })
        .column("peak memory", |own| spread(costs(own, &|c| c.peak_bytes.map(|b| b as f64)), bytes))
        .table();
    if report.workloads.iter().any(|w| w.machines.len() > 1) {
        table.notes.push(
            "Warning: cells of one workload ran under different conditions; their times and memory are not \
             comparable (see Cost)."
                .to_owned(),
        );
    }
    table
        .with_legend("Over several workloads: median, with minimum and maximum in brackets.")
        .with_legend(
            "FLOPs and ms per step: cost of one training step, relative to RoPE on the same workload. Training FLOPs \
             and training time: cost of all steps of a run, which early stopping reduces, without the search for a \
             learning rate. The training time uses step times from `pe-bench speed`, where there are any. FLOPs \
             count only matrix products, with all T x T pairs of attention; masks, sums, exponentials and \
             normalisations are not counted. Times are left out if cells of the encoding or of RoPE ran concurrently \
             with other cells, on a busy machine or for fewer than 100 steps.",
        )
        .without_empty_columns()
}

#[cfg(test)]
mod tests {
    use super::*;
    use analysis::ReportMeta;
    use records::testkit;

    #[test]
    fn times_of_cells_that_ran_beside_others_are_left_out() {
        let mut records = testkit::suite();
        let heads = |records: &[_]| -> String {
            let report = Report::new(records, &ReportMeta::default()).unwrap();
            prices(&report).columns.join(" ")
        };

        assert!(heads(&records).contains("ms per step"));
        for record in &mut records {
            record.host.jobs = 2;
        }
        assert!(!heads(&records).contains("ms per step"));
    }
}
