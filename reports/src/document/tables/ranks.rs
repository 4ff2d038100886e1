//! Ranks, run metrics and ablations.

use std::collections::{BTreeMap, BTreeSet};

use super::common::{
    MEAN, MEDIAN, NO_COMMON_SEED, TOO_FEW_SEEDS, UNRANKED, disturbed_note, mark, median,
    with_interval,
};
use super::gates::gates;
use super::grid::grid;
use crate::analysis::Settings;
use crate::analysis::ablation::{Ablation, Effect};
use crate::analysis::ranking::{EncodingResult, Rank, Ranking};
use crate::analysis::run_metrics::{MedianRange, RunMetrics};
use crate::analysis::{Report, Workload};
use crate::document::table::{Table, TableCell, heads, texts};
use crate::document::text::method;
use crate::number::{bracketed, listed, p_value, percent, points, three_digits};
use crate::record::Metric;
use crate::stats::{Comparison, Estimate, hedges_g_interval};

/// Returns the statistical tables of a workload, each with its heading: ranks in distribution and beyond training,
/// run metrics, gate scores, ablations, the grid. Empty tables are left out.
pub fn statistics(report: &Report, workload: &Workload) -> Vec<(String, Table)> {
    let mut tables: Vec<(String, Table)> = workload
        .rankings
        .iter()
        .map(|ranking| {
            (format!("Ranks {}", ranking.region.name()), ranks(report, workload, ranking))
        })
        .collect();
    tables.push(("Solving and effective length".to_owned(), run_metrics(report, workload)));
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

/// Note on the columns of [`ranks`].
const RANKS: [&str; 2] = [
    "Rank: an encoding shares the rank of the best one that it cannot be separated from.",
    "Behind the best: mean difference paired by seed, with its 95 % confidence interval, not corrected.",
];

/// Returns notes on ranks in another order than the means, one for each rank: an encoding with larger variation between
/// seeds may share a rank that an encoding with a better mean does not.
pub(super) fn inversions(ranking: &Ranking) -> Vec<String> {
    let ranked = ranking.ranked();
    let mut notes: BTreeMap<u32, (Vec<String>, BTreeSet<usize>)> = BTreeMap::new();
    for (place, result) in ranked.iter().enumerate() {
        let better = || (0..place).filter(|other| ranked[*other].group > result.group);
        if let Some(rank) = result.group
            && better().next().is_some()
        {
            let (passed, passing) = notes.entry(rank).or_default();
            passed.push(result.display.clone());
            passing.extend(better());
        }
    }
    let note = |(rank, (passed, passing)): (u32, (Vec<String>, BTreeSet<usize>))| {
        let better: Vec<String> =
            passing.iter().map(|place| ranked[*place].display.clone()).collect();
        // Of several, not each is behind all of the better ones.
        let (share, its, it, word) = match passed.len() {
            1 => ("has", "its", "it", "and"),
            _ => ("have", "their", "them", "or"),
        };
        let have = if word == "and" && better.len() > 1 { "have" } else { "has" };
        format!(
            "{} {share} rank {rank} although {} {have} a better mean: {its} seeds vary too much to separate {it} from \
             the first of that rank.",
            listed(&passed, "and"),
            listed(&better, word),
        )
    };
    notes.into_iter().map(note).collect()
}

/// Returns the table of the ranked encodings by rank and mean, followed by those without a rank.
pub fn ranks(report: &Report, workload: &Workload, ranking: &Ranking) -> Table {
    let columns = heads([
        "encoding",
        "rank",
        ranking.metric.name(),
        "median",
        "behind the best",
        "p (Holm)",
        "Hedges' g",
        "against the best",
    ]);
    if ranking.points.is_empty() {
        return Table { columns, ..Table::default() };
    }
    let mut results: Vec<&EncodingResult> = ranking.complete();
    // Stable: within a rank the order of means is kept.
    results.sort_by_key(|s| (s.group.is_none(), s.group));
    results.extend(ranking.results.iter().filter(|s| s.rank == Rank::Unranked));
    let mut table = Table::of(columns, results, |s| {
        let mut row = rank_row(ranking, s);
        let name = TableCell::of_results(report, workload, &s.encoding);
        row[0] = TableCell { strong: row[0].strong, ..name };
        row
    });
    table.legends = [MEAN, MEDIAN, RANKS[0], RANKS[1]].map(str::to_owned).to_vec();
    let notes = &mut table.notes;
    notes.extend(inversions(ranking));
    notes.extend(ranking.chance.map(|chance| {
        format!("Chance: {}. Nothing at or below chance is better than anything.", percent(chance))
    }));
    notes.extend(
        ranking.seeds_needed.map(|needed| {
            format!("No ranks: these seeds cannot carry them, {needed} seeds would.")
        }),
    );
    if ranking.results.iter().any(|s| s.rank == Rank::TooFewSeeds) {
        notes.push(TOO_FEW_SEEDS.to_owned());
    }
    notes.extend(method(ranking).map(|method| format!("Test: {method}.")));
    table.without_empty_columns()
}

fn rank_row(ranking: &Ranking, result: &EncodingResult) -> Vec<TableCell> {
    let metric = ranking.metric;
    let comparison = match &result.rank {
        Rank::Behind(comparison) => comparison.as_ref(),
        Rank::Best | Rank::TooFewSeeds | Rank::Unranked => None,
    };
    let verdict = match &result.rank {
        Rank::Best if result.above_chance == Some(false) => {
            "not significantly above chance".to_owned()
        }
        Rank::Best => "best mean".to_owned(),
        Rank::Behind(None) => format!("no common seed {NO_COMMON_SEED}"),
        Rank::Behind(Some(c)) if result.is_level() => {
            format!("not separable with n = {}", c.paired.n)
        }
        Rank::Behind(Some(_)) => match level_with(ranking, result) {
            None => "separable".to_owned(),
            Some((leader, n)) => {
                format!("separable; not separable with n = {n} from {leader}")
            }
        },
        Rank::TooFewSeeds => "too few seeds for a rank".to_owned(),
        Rank::Unranked => {
            format!("{UNRANKED} {} of {} evaluations", result.evaluated, ranking.points.len())
        }
    };
    let mut row = vec![
        TableCell::from(&result.display),
        TableCell::optional(result.group, |rank| rank.to_string()),
        TableCell::optional(result.estimate, |e| with_interval(metric, &e)),
        TableCell::optional(result.estimate, |e| median(metric, &e)),
    ];
    row.extend(compared(metric, comparison));
    row.push(verdict.into());
    for cell in row.iter_mut().filter(|cell| cell.text != "–") {
        cell.strong = result.rank == Rank::Best;
    }
    row
}

/// Returns the encoding that leads the rank of `result`, unless it is `result` itself, with the number of seeds of
/// their comparison.
fn level_with<'a>(ranking: &'a Ranking, result: &EncodingResult) -> Option<(&'a str, u32)> {
    result.group?;
    let leader = ranking.ranked().into_iter().find(|s| s.group == result.group)?;
    let pair = ranking.pair(&leader.encoding, &result.encoding)?;
    Some((&leader.display, pair.comparison.paired.n))
}

/// Returns the cells of a comparison: difference with its interval, p-value with its test, effect size.
pub(super) fn compared(metric: Metric, comparison: Option<&Comparison>) -> [TableCell; 3] {
    let Some(c) = comparison else { return ["–", "–", "–"].map(TableCell::from) };
    let show = |x: f64| {
        if metric.higher_is_better() { points(x) } else { three_digits(x.exp()) }
    };
    let unit = if metric.higher_is_better() { "points" } else { "times" };
    let difference = format!("{} {unit}", show(c.paired.mean_difference));
    let p = TableCell::optional(c.p_holm, |p| {
        TableCell::with_detail(p_value(p).trim_start_matches("= "), c.test.name())
    });
    let effect = match c.paired.effect {
        Some(g) => TableCell::with_detail(
            three_digits(g),
            bracketed(hedges_g_interval(g, c.paired.n), three_digits),
        ),
        None if c.paired.is_the_same_in_every_seed() => "no spread".into(),
        None => "–".into(),
    };
    let interval = c.paired.ci95.map(|ends| metric.cut_difference(ends));
    [TableCell::with_detail(difference, bracketed(interval, show)), p, effect]
}

/// Returns the criteria that determine the time to solve of a workload.
fn criteria(workload: &Workload, solved_loss: f64) -> String {
    let by_validation =
        "the first of the validations in a row that were good enough to end the training";
    let by_loss = format!(
        "the first point of the training curve with a loss of at most {solved_loss} nats per scored token"
    );
    let validated = |all: bool| {
        let mut metrics = workload.run_metrics.iter();
        if all {
            metrics.all(|m| m.by_validation == m.run)
        } else {
            metrics.any(|m| m.by_validation > 0)
        }
    };
    match (validated(true), validated(false)) {
        (true, _) => by_validation.to_owned(),
        (false, true) => format!("{by_validation}; for cells without validations {by_loss}"),
        (false, false) => by_loss,
    }
}

/// Returns the table of fit rate, time to solve and effective length; no rows for a task that cannot be solved.
pub(super) fn run_metrics(report: &Report, workload: &Workload) -> Table {
    let columns = [
        "encoding",
        "fit rate",
        "steps to solve",
        "seconds to solve",
        "effective length",
        "times training length",
    ];
    let Settings { solved_exact_match, solved_loss, effective_exact_match, .. } = report.settings;
    let mut table = Table::of(columns, &workload.run_metrics, |metrics| {
        metrics_row(TableCell::of_results(report, workload, &metrics.encoding), metrics)
    })
    .with_legend(format!(
        "Fit rate: share of seeds that solved training, with an exact match in distribution \
         of at least {}; diverged seeds did not. To solve: {}; median [minimum to maximum] over those \
         of these seeds that have one.",
        percent(solved_exact_match),
        criteria(workload, solved_loss)
    ))
    .with_legend(format!(
        "Effective length: the largest evaluated length up to which exact match on the \
         training split is at least {} at every length; median over seeds [minimum to \
         maximum]. ≥: it is the longest evaluated length. 0: too low at the shortest length.",
        percent(effective_exact_match)
    ))
    .without_empty_columns();
    table.notes.extend(disturbed_note(workload.run_metrics.iter().map(|m| m.disturbed)));
    table
}

fn metrics_row(name: TableCell, metrics: &RunMetrics) -> Vec<TableCell> {
    let middle = |m: Option<MedianRange>, show: fn(f64) -> String, sign: &str, mark: &str| {
        TableCell::optional(m, |m| {
            let wide = Some(m.range).filter(|(low, high)| show(*low) != show(*high));
            let detail = format!("{} n={}", bracketed(wide, show), m.n);
            TableCell::with_detail(format!("{sign}{}{mark}", show(m.median)), detail.trim_start())
        })
    };
    let whole: fn(f64) -> String = |x| x.to_string();
    let sign = if metrics.effective_at_least { "≥ " } else { "" };
    let rate = metrics.fit_rate().map_or_else(|| "–".to_owned(), percent);
    vec![
        name,
        TableCell::with_detail(rate, format!("{} of {}", metrics.solved, metrics.run)),
        middle(metrics.solve_steps, whole, "", ""),
        middle(metrics.solve_seconds, three_digits, "", &mark(metrics.disturbed)),
        middle(metrics.effective, whole, sign, ""),
        TableCell::optional(metrics.effective_ratio, |ratio| format!("{sign}{ratio:.2}")),
    ]
}

/// Returns the table of an ablation: each change compared with the base.
pub(super) fn ablation(ablation: &Ablation) -> Table {
    let metric = ablation.metric;
    let value = |e: Option<Estimate>| TableCell::optional(e, |e| with_interval(metric, &e));
    let change = if metric.higher_is_better() { "change minus base" } else { "change over base" };
    let columns = ["encoding", metric.name(), change, "p (Holm)", "Hedges' g", "against the base"];
    let mut table = Table::of(columns, &ablation.changes, |change| {
        let mut row = vec![TableCell::from(&change.display), value(change.estimate)];
        row.extend(compared(metric, change.comparison.as_ref()));
        let effect = match change.effect(metric) {
            Effect::Better => "better".to_owned(),
            Effect::Worse => "worse".to_owned(),
            Effect::NotSeparable(n) => format!("not separable with n = {n}"),
            Effect::NotComparable => "evaluations or common seeds are missing".to_owned(),
        };
        row.push(effect.into());
        row
    });
    let mut base = texts([&ablation.base_display, "", "–", "–", "–", "base"]);
    base[1] = value(ablation.base_estimate);
    table.rows.insert(0, base);
    table.with_legend(
        "Ablation: each change is paired with the base by seed [95 % interval of the mean difference, not \
         corrected]; Holm's correction runs over the changes.",
    )
}

#[cfg(test)]
mod tests;
