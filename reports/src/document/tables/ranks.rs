//! Ranks of the encodings on one workload, on its page, and their ablations and run metrics.

use super::common::{
    MEAN, MEDIAN, TOO_FEW_SEEDS, UNRANKED, disturbed_note, mark, median, with_interval,
};
use crate::document::table::{Table, TableBuilder, TableCell, texts};
use crate::document::text::method;
use analysis::contrast::on_scale;
use analysis::ranking::{EncodingResult, Rank, RankedPair, Ranking};
use analysis::run_metrics::{MedianRange, RunMetrics};
use analysis::{Report, Workload};
use records::Metric;
use records::number::{bracketed, count, least_p_value, p_value, percent, points, three_digits};
use records::settings::Settings;
use stats::sign_flip::least_p;
use stats::{Better, Comparison, Test, hedges_g_interval};

/// Note on the columns of [`ranks`].
const RANKS: [&str; 3] = [
    "Rank: an encoding has the rank of the best encoding from which it does not differ significantly. If it is more \
     than 5 points (0.05 nats for text) behind that encoding, it has no rank.",
    "p: the p-value, with its test below it. Bound for n seeds: the smallest p-value that n seeds allow, which \
     depends only on n and on the correction. The table shows this bound where the p-value of the t test is smaller \
     than the bound.",
    "Behind the best: mean difference from the best encoding, paired by seed, with its uncorrected 95% confidence \
     interval.",
];

/// Largest effect size that is shown.
pub(crate) const MOST_EFFECT: f64 = 10.0;

/// Returns the table of the ranked encodings by rank and mean, followed by those without a rank.
pub fn ranks(report: &Report, workload: &Workload, ranking: &Ranking) -> Table {
    if ranking.points.is_empty() {
        return Table::default();
    }
    let mut results: Vec<&EncodingResult> = ranking.complete();
    // Stable: within a rank the order of means is kept.
    results.sort_by_key(|result| (result.group.is_none(), result.group));
    results.extend(ranking.results.iter().filter(|result| result.rank == Rank::Unranked));
    let metric = ranking.metric;
    let behind = |result: &&EncodingResult| match result.rank {
        Rank::Behind(comparison) => comparison,
        Rank::Best | Rank::TooFewSeeds | Rank::Unranked => None,
    };
    let mut table = of_results(report, workload, ranking, &results)
        .column("median", |result| TableCell::optional(result.estimate, |e| median(metric, &e)));
    table = table.compared("behind the best", |_| metric, behind);
    let mut table = table.column("against the best", |result| standing(ranking, result)).table();
    emphasise(&mut table, &results);
    table.legends = [MEAN, MEDIAN].iter().chain(&RANKS).map(|text| (*text).to_owned()).collect();
    let notes = &mut table.notes;
    notes.extend(ranking.chance.map(|chance| {
        format!("Chance: {}. Encodings at or below chance never count as better.", percent(chance))
    }));
    notes.extend(ranking.seeds_needed.map(|needed| {
        format!("No ranks: no difference can be significant with fewer than {needed} seeds.")
    }));
    if ranking.results.iter().any(|s| s.rank == Rank::TooFewSeeds) {
        notes.push(TOO_FEW_SEEDS.to_owned());
    }
    notes.extend(method(ranking).map(|method| format!("Test: {method}.")));
    table.without_empty_columns()
}

/// Number of encodings of [`best`].
const BEST: usize = 5;

/// Returns the table of the encodings with the best means, whether or not they have a rank.
pub(crate) fn best(report: &Report, workload: &Workload, ranking: &Ranking) -> Table {
    let mut results = ranking.complete();
    results.truncate(BEST);
    let mut table = of_results(report, workload, ranking, &results).table();
    emphasise(&mut table, &results);
    table.without_empty_columns()
}

/// Starts a table with the encoding, the rank and the mean of each result.
fn of_results<'a>(
    report: &'a Report,
    workload: &'a Workload,
    ranking: &'a Ranking,
    results: &[&'a EncodingResult],
) -> TableBuilder<&'a EncodingResult> {
    let metric = ranking.metric;
    Table::of(results.iter().copied())
        .column("encoding", |result| TableCell::of_encoding(report, &result.encoding))
        .column("rank", |result| TableCell::optional(result.group, |rank| rank.to_string()))
        .column(metric.name(), |result| {
            let mean = TableCell::optional(result.estimate, |e| with_interval(metric, &e));
            mean.with_cells(workload, &result.encoding)
        })
}

/// Makes the row of the best mean strong.
fn emphasise(table: &mut Table, results: &[&EncodingResult]) {
    for (row, result) in table.rows.iter_mut().zip(results) {
        let is_best = result.rank == Rank::Best;
        row.iter_mut().filter(|cell| cell.text != "–").for_each(|cell| cell.strong = is_best);
    }
}

/// Returns how an encoding compares with the best.
fn standing(ranking: &Ranking, result: &EncodingResult) -> String {
    match &result.rank {
        Rank::Best if result.above_chance == Some(false) => {
            "not significantly above chance".to_owned()
        }
        Rank::Best => "best mean".to_owned(),
        Rank::Behind(None) => "not compared: no seed in common with the best".to_owned(),
        Rank::Behind(Some(c)) if result.is_level() => {
            format!("not separable with n = {}", c.paired.n)
        }
        Rank::Behind(Some(_)) => match level_with(ranking, result) {
            None => "worse than the best".to_owned(),
            Some(leader) => format!("worse than the best; same rank as {leader}"),
        },
        Rank::TooFewSeeds => "too few seeds for a rank".to_owned(),
        Rank::Unranked => {
            format!("{UNRANKED} {} of {} evaluations", result.evaluated, ranking.points.len())
        }
    }
}

/// Returns the encoding that leads the rank of `result`, unless it is `result` itself.
fn level_with<'a>(ranking: &'a Ranking, result: &EncodingResult) -> Option<&'a str> {
    result.group?;
    let leader = ranking.ranked().into_iter().find(|s| s.group == result.group)?;
    (leader.encoding != result.encoding).then_some(&*leader.display)
}

impl<T> TableBuilder<T> {
    /// Adds the columns of a comparison: difference with its interval, p-value with its test, effect size. `difference` is
    /// the head of the first.
    pub(super) fn compared(
        self,
        difference: &str,
        metric: impl Fn(&T) -> Metric,
        comparison: impl Fn(&T) -> Option<Comparison>,
    ) -> Self {
        let show = |item: &T, show: fn(Metric, &Comparison) -> TableCell| {
            TableCell::optional(comparison(item), |comparison| show(metric(item), &comparison))
        };
        self.column(difference, |item| show(item, difference_cell))
            .column("p (Holm)", |item| show(item, |_, comparison| p_cell(comparison)))
            .column("Hedges' g", |item| show(item, |_, comparison| effect_cell(comparison)))
    }
}

/// Returns the mean difference: in points, or for perplexity as the ratio of the other's to the best's.
fn difference_cell(metric: Metric, comparison: &Comparison) -> TableCell {
    let shares = metric.higher_is_better();
    let show = |x: f64| if shares { points(x) } else { three_digits(x.exp()) };
    let unit = if shares { "points" } else { "times" };
    let difference = format!("{} {unit}", show(comparison.paired.mean_difference));
    let interval = comparison.paired.ci95.map(|ends| metric.cut_difference(ends));
    TableCell::with_detail(difference, bracketed(interval, show))
}

fn p_cell(comparison: &Comparison) -> TableCell {
    TableCell::optional(comparison.p_holm, |p| {
        if comparison.is_bound() && p < 1.0 {
            let bound = format!("bound for {}", count(comparison.paired.n, "seed"));
            TableCell::with_detail(least_p_value(p), bound)
        } else {
            let (n, test) = (comparison.paired.n, comparison.test);
            let is_least = test == Test::SignFlip && comparison.p <= Some(least_p(n));
            let least = if is_least {
                format!(", minimum for {}", count(n, "seed"))
            } else {
                String::new()
            };
            TableCell::with_detail(
                p_value(p).trim_start_matches("= "),
                test.name().to_owned() + &least,
            )
        }
    })
}

fn effect_cell(comparison: &Comparison) -> TableCell {
    let paired = &comparison.paired;
    match paired.effect {
        // Beyond that, all seeds are at a ceiling and the spread says nothing: no number is shown.
        Some(g) if g.abs() <= MOST_EFFECT => {
            let interval = bracketed(hedges_g_interval(g, paired.n), three_digits);
            TableCell::with_detail(three_digits(g), interval)
        }
        None if paired.is_the_same_in_every_seed() => "no spread".into(),
        _ => "–".into(),
    }
}

/// Returns sentences about the points up to which the steps and seconds to solve of a workload are counted.
fn criteria(workload: &Workload, solved_loss: f64) -> String {
    let by_validation =
        "the first of the consecutive validations after which training counts as solved";
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
        (true, _) => format!(
            "They are counted up to {by_validation}. Seeds without such validations are left out."
        ),
        (false, true) => format!(
            "With validations, they are counted up to {by_validation}. Without validations, they are counted up to \
             {by_loss}. Seeds without such a point are left out."
        ),
        (false, false) => {
            format!("They are counted up to {by_loss}. Seeds without such a point are left out.")
        }
    }
}

/// Returns the table of fit rate, time to solve and effective length; no rows for a task that cannot be solved.
pub(crate) fn run_metrics(report: &Report, workload: &Workload) -> Table {
    let Settings { solved_exact_match, solved_loss, effective_exact_match, .. } = report.settings;
    let whole: fn(f64) -> String = |x| x.to_string();
    let sign = |metrics: &RunMetrics| if metrics.effective_at_least { "≥ " } else { "" };
    let mut table = Table::of(&workload.run_metrics)
        .column("encoding", |metrics| TableCell::of_encoding(report, &metrics.encoding))
        .column("fit rate", |metrics| {
            let rate = metrics.fit_rate().map_or_else(|| "–".to_owned(), percent);
            TableCell::with_detail(rate, format!("{} of {}", metrics.solved, metrics.run))
        })
        .column("steps to solve", |metrics| middle(metrics.solve_steps, whole))
        .column("seconds to solve", |metrics| {
            let mut cell = middle(metrics.solve_seconds, three_digits);
            if metrics.solve_seconds.is_some() {
                cell.text.push_str(&mark(metrics.disturbed));
            }
            cell
        })
        .column("effective length", |metrics| {
            let mut cell = middle(metrics.effective, whole);
            if metrics.effective.is_some() {
                cell.text.insert_str(0, sign(metrics));
            }
            cell
        })
        .column("relative to the trained length", |metrics| {
            let ratio = metrics.effective_ratio;
            TableCell::optional(ratio, |ratio| format!("{}{ratio:.2}", sign(metrics)))
        })
        .table()
        .with_legend(format!(
        "Fit rate: the share of seeds that solved training, that is, reached an exact match of at least {} in \
         distribution. Diverged seeds count as not solved. Steps and seconds to solve: median over the solved seeds, \
         with minimum and maximum in brackets. {}",
        percent(solved_exact_match),
        criteria(workload, solved_loss)
    ))
    .with_legend(format!(
        "Effective length: the largest evaluated length up to which exact match on the training split is at least {} \
         at every length; median over seeds, with minimum and maximum in brackets. ≥: this share is reached \
         even at the longest evaluated length. 0: exact match is below this share already at the shortest length.",
        percent(effective_exact_match)
    ))
    .without_empty_columns();
    table.notes.extend(disturbed_note(workload.run_metrics.iter().map(|m| m.disturbed)));
    table
}

/// Returns a cell with a median, and its range and n in smaller print.
fn middle(median: Option<MedianRange>, show: fn(f64) -> String) -> TableCell {
    TableCell::optional(median, |m| {
        let wide = Some(m.range).filter(|(low, high)| show(*low) != show(*high));
        let detail = format!("{} n={}", bracketed(wide, show), m.n);
        TableCell::with_detail(show(m.median), detail.trim_start())
    })
}

/// Returns the table of an ablation: the base, and each other encoding as a change of it, sorted by name; no rows if the
/// ranking lacks the base.
pub(crate) fn ablation(ranking: &Ranking, base: &str) -> Table {
    let metric = ranking.metric;
    let value = |result: &EncodingResult| {
        TableCell::optional(result.estimate, |estimate| with_interval(metric, &estimate))
    };
    let (bases, changes): (Vec<&EncodingResult>, Vec<_>) =
        ranking.results.iter().partition(|result| result.encoding == base);
    let [base] = bases[..] else { return Table::default() };
    let pairs = ranking.contrasts(&base.encoding);
    let gains = |change: &EncodingResult| {
        let is_own = |pair: &&RankedPair| [&pair.better, &pair.worse].contains(&&change.encoding);
        pairs.iter().find(is_own).map(|pair| pair.gains(&change.encoding))
    };
    let difference =
        if metric.higher_is_better() { "change minus base" } else { "change divided by base" };
    let mut table = Table::of(changes)
        .column("encoding", |change| change.display.clone())
        .column(metric.name(), |change| value(change))
        .compared(difference, |_| metric, |change| gains(change).map(|own| on_scale(metric, &own)))
        .column("against the base", |change| match gains(change).map(|own| (own.better(), own)) {
            Some((Better::A, _)) => "better".to_owned(),
            Some((Better::B, _)) => "worse".to_owned(),
            Some((Better::NotSeparable, own)) => format!("not separable with n = {}", own.paired.n),
            None => "evaluations or common seeds are missing".to_owned(),
        })
        .table();
    let mut first = texts([&base.display, "", "–", "–", "–", "base"]);
    first[1] = value(base);
    table.rows.insert(0, first);
    table.with_legend(
        "Ablation: each change is compared with the base, paired by seed. In brackets: the uncorrected 95% interval \
         of the mean difference. Holm's correction covers all changes.",
    )
}

#[cfg(test)]
mod tests;
