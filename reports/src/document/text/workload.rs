//! Sentences on one workload, limited to the claims that the number of seeds supports.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use crate::analysis::grid::WorkloadGrid;
use crate::analysis::ranking::{EncodingResult, Rank, Ranking, Region, separable};
use crate::analysis::{NotCounted, Report, Workload};
use crate::number::{
    capital, count, joined, listed, listed_first, p_value, percent, points, three_digits,
    two_digits,
};
use crate::record::Metric;
use crate::stats::sign_flip::least_p;
use crate::stats::{Comparison, LEAST_SEEDS, LEVEL, Test, minimum_p_value};

/// Most names in a list; the tables have all.
const NAMED: usize = 5;

/// Returns the sentences on a workload and its grid as one paragraph.
pub(crate) fn workload_sentence(report: &Report, workload: &Workload) -> String {
    let (clauses, rest) = of_workload(report, workload);
    format!("{}: {}.{rest}", workload.name, clauses.join("; "))
}

/// Returns a paragraph on each region of a workload, and one on the test, the cells that are not counted and the grid.
pub(crate) fn workload_paragraphs(report: &Report, workload: &Workload) -> Vec<String> {
    let (clauses, rest) = of_workload(report, workload);
    let sentence = |clause: &String| {
        let mut results = workload.rankings.iter().flat_map(|ranking| &ranking.results);
        // Names are not changed: xPos.
        let begins = results.any(|result| clause.starts_with(&result.display));
        format!("{}.", if begins { clause.clone() } else { capital(clause) })
    };
    let mut paragraphs: Vec<String> = clauses.iter().map(sentence).collect();
    let rest = rest.trim_start();
    paragraphs.extend((!rest.is_empty()).then(|| rest.to_owned()));
    paragraphs
}

/// Returns the clauses on the regions of a workload, and all further sentences, with a leading space.
fn of_workload(report: &Report, workload: &Workload) -> (Vec<String>, String) {
    let Workload { name, len_unit, rankings, grid, .. } = workload;
    let grid = grid.as_ref().map_or_else(String::new, |found| grid_sentence(&found.grid));
    let (clauses, rest) = clauses(name, len_unit, rankings, &report.not_counted);
    (clauses, rest + &grid)
}

/// Returns a sentence on the selection from a grid, with a leading space.
pub(crate) fn grid_sentence(grid: &WorkloadGrid) -> String {
    let default = grid.default.map_or_else(String::new, |default| {
        format!("; the grid table also shows {default} for all")
    });
    format!(
        " {} was selected for each encoding on validation, from {} values ({}){default}.",
        grid.short_axis(),
        grid.values.len(),
        joined(&grid.values, ", ")
    )
}

/// Returns a clause on each region of a workload, evaluations beyond training first, because encodings differ most there;
/// and sentences on the test and the excluded cells, with a leading space.
fn clauses(
    name: &str,
    len_unit: &str,
    rankings: &[Ranking],
    not_counted: &[NotCounted],
) -> (Vec<String>, String) {
    let lost: Vec<&NotCounted> =
        not_counted.iter().filter(|n| n.workload == name && n.state != "superseded").collect();
    if rankings.is_empty() && !lost.is_empty() {
        let cells = count(lost.len() as u64, "cell");
        let clause = format!("no cell was finished ({cells} not counted), so there is no result");
        return (vec![clause], String::new());
    }
    let inside = |ranking: &&Ranking| ranking.region == Region::Inside;
    let order = || rankings.iter().filter(|r| !inside(r)).chain(rankings.iter().filter(inside));
    let mut clauses: Vec<String> = order()
        .map(|ranking| clause(ranking, len_unit) + &too_few_seeds(ranking) + &unranked(ranking))
        .collect();
    if clauses.is_empty() {
        clauses.push("nothing was evaluated, so there is no result".to_owned());
    }
    let mut rest = String::new();
    let methods: BTreeSet<String> = rankings.iter().filter_map(method).collect();
    if !methods.is_empty() {
        let _ = write!(rest, " Test: {}.", joined(methods, "; or "));
    }
    if !lost.is_empty() {
        let cells: Vec<String> =
            lost.iter().map(|n| format!("{} seed {} ({})", n.encoding, n.seed, n.state)).collect();
        let _ = write!(rest, " Not counted: {}.", listed(&cells, "and"));
    }
    (clauses, rest)
}

/// Returns a clause on one region.
fn clause(ranking: &Ranking, len_unit: &str) -> String {
    let region = ranking.region.name();
    let metric = ranking.metric;
    let ranked = ranking.ranked();
    let value = |s: &EncodingResult| s.estimate.map_or_else(String::new, |e| metric.show(e.mean));
    let over = match ranking.points.as_slice() {
        [(split, len)] => format!(" on `{split}` at {len} {len_unit}"),
        points => format!(", mean over {} evaluations", points.len()),
    };
    let why = ranking.fallback.map_or_else(String::new, |equal| {
        let equal = Metric::ExactMatch.show(equal);
        format!("; exact match is {equal} for all, so token accuracy decides")
    });
    let Some(first) = ranked.first() else {
        return format!(
            "{region} no encoding has finite values in all evaluations, so none is ranked"
        );
    };
    let score = format!("{} {}{over}{}{why}", metric.name(), value(first), chance_text(ranking));
    if let [only] = ranked[..] {
        let others = ranking.results.len() - 1;
        return if others == 0 {
            format!(
                "only {} was measured {region} ({score}), so there is nothing to compare",
                only.display
            )
        } else {
            format!(
                "{region} only {} has finite values in all evaluations ({score}), so there is nothing to compare",
                only.display
            )
        };
    }
    if ranking.common_value().is_some() {
        let all = match ranked.len() {
            2 => "both".to_owned(),
            n => format!("all {n}"),
        };
        return format!("{region} {all} encodings are equal ({score})");
    }
    let (best, rest): (Vec<&EncodingResult>, Vec<&EncodingResult>) =
        ranked.iter().copied().partition(|s| s.rank == Rank::Best);
    let best_names: Vec<String> = best.iter().map(|s| s.display.clone()).collect();
    let lead = Lead {
        names: listed_first(NAMED, &best_names, "and"),
        several: best.len() > 1,
        region,
        score,
    };
    if ranking.chance.is_some_and(|chance| first.mean() <= chance) {
        return format!("{}, which is not above chance", lead.head());
    }
    let Some((runner_up, others)) = rest.split_first() else {
        return lead.head();
    };
    let second = (&*runner_up.display, &*value(runner_up));
    match runner_up.rank {
        Rank::Behind(Some(c)) if c.paired.n == 1 => lead.over_one_seed(second),
        Rank::Behind(Some(c)) if ranking.seeds_needed.is_some() => {
            let needed = ranking.seeds_needed.unwrap_or(LEAST_SEEDS);
            let pairs = count(ranking.pairs.len() as u64, "pair");
            format!(
                "{}, but {} cannot carry ranks: a difference among {pairs} can be significant with \
                 {needed} seeds (next is {} with {})",
                lead.head(),
                count(c.paired.n, "seed"),
                second.0,
                second.1
            )
        }
        _ if first.above_chance == Some(false) => {
            format!("{}, whose interval does not exclude chance", lead.head())
        }
        Rank::Behind(Some(c)) => lead.over_seeds(second, &c, metric, others),
        _ => format!(
            "{}, but the runner-up {} ({}) shares no seed with it, so there is no test",
            lead.head(),
            second.0,
            second.1
        ),
    }
}

/// Returns `, chance 23.6 %`; empty if the chance is unknown.
pub(super) fn chance_text(ranking: &Ranking) -> String {
    ranking.chance.map_or_else(String::new, |chance| format!(", chance {}", percent(chance)))
}

/// The leading encodings of a region, with their grammatical number.
struct Lead<'a> {
    names: String,
    several: bool,
    region: &'a str,
    score: String,
}

impl Lead<'_> {
    fn head(&self) -> String {
        let verb = if self.several { "share the best mean" } else { "has the best mean" };
        format!("{} {verb} {} ({})", self.names, self.region, self.score)
    }

    fn over_one_seed(&self, (name, value): (&str, &str)) -> String {
        let verb = if self.several { "are" } else { "is" };
        format!(
            "{} {verb} ahead {} ({}) of {name} ({value}), but with one seed there is no \
             test",
            self.names, self.region, self.score
        )
    }

    /// Returns a clause that compares the leader with the runner-up by `c`, then names the `others` that are, and are
    /// not, significantly worse.
    fn over_seeds(
        &self,
        (name, value): (&str, &str),
        c: &Comparison,
        metric: Metric,
        others: &[&EncodingResult],
    ) -> String {
        let (head, n) = (self.head(), c.paired.n);
        let pronoun = if self.several { "they are" } else { "it is" };
        let against = format!("{name} ({value}; {})", difference_text(metric, c));
        let those = |level: bool, lead_in: &str, last: &str| {
            let names: Vec<String> = others
                .iter()
                .filter(|s| s.is_level() == level)
                .map(|s| s.display.clone())
                .collect();
            if names.is_empty() {
                String::new()
            } else {
                format!("{lead_in} from {}", listed_first(NAMED, &names, last))
            }
        };
        if separable(Some(c)) {
            let except = those(true, ", though not", "or");
            format!(
                "{head}, and with n = {n} seeds {pronoun} separable from the runner-up {against}{except}"
            )
        } else {
            let nor = if others.len() > 2 && others.iter().all(|s| s.is_level()) {
                format!(" nor from any of the other {}", others.len())
            } else {
                those(true, " nor", "or")
            };
            let but = those(false, &format!(", while {pronoun} separable"), "and");
            format!("{head}, but {pronoun} not separable with n = {n} from {against}{nor}{but}")
        }
    }
}

/// Formats the difference from the best: in points, or for perplexity as the ratio of the other's to the best's, with
/// the 95 % interval and the p-value if they exist.
pub(super) fn difference_text(metric: Metric, c: &Comparison) -> String {
    let paired = &c.paired;
    let (all, spread) = if metric.higher_is_better() {
        (
            format!("difference {} points", points(paired.mean_difference)),
            points as fn(f64) -> String,
        )
    } else {
        let show: fn(f64) -> String = |x| three_digits(x.exp());
        (format!("its perplexity is {} times as high", show(paired.mean_difference)), show)
    };
    let interval = match paired.ci95.map(|ends| metric.cut_difference(ends)) {
        _ if paired.is_the_same_in_every_seed() => format!(" in each of {} seeds", paired.n),
        Some((low, high)) => format!(", 95 % interval {} to {}", spread(low), spread(high)),
        None => String::new(),
    };
    let p = c.p_holm.map_or_else(String::new, |p| {
        let corrected = if c.family > 1 { " after Holm" } else { "" };
        format!(", p {}{corrected}", p_value(p))
    });
    format!("{all}{interval}{p}")
}

/// Returns the name of the test that decides the comparisons of a ranking, with the reason; `None` if nothing with
/// two or more seeds is compared or all encodings are equal.
pub(crate) fn method(ranking: &Ranking) -> Option<String> {
    if ranking.common_value().is_some() {
        return None;
    }
    let several = ranking.pairs.iter().filter(|p| p.comparison.paired.n > 1);
    let ways: BTreeSet<String> = several.map(|pair| way(&pair.comparison)).collect();
    (!ways.is_empty()).then(|| joined(ways, "; "))
}

fn way(c: &Comparison) -> String {
    let (n, family) = (c.paired.n, c.family);
    let holm = if family > 1 {
        format!(" with Holm's correction over {family} pairs")
    } else {
        String::new()
    };
    let least = least_p(n);
    // If a single pair can reach 5 %, the correction over all pairs is the reason.
    let over = if least <= LEVEL { format!(" over {family} pairs") } else { String::new() };
    let because = format!(
        "because {n} seeds cannot reach 5 %{over} by permutation (minimum p {})",
        two_digits(least)
    );
    match c.test {
        Test::TooFewSeeds => format!("none ({n} seeds are too few, {LEAST_SEEDS} are needed)"),
        Test::SignFlip => {
            let questions = if c.paired.question_error.is_some() {
                ", p no less than that of the t test over seeds and questions"
            } else {
                ""
            };
            format!("sign-flip permutation test over {n} seeds{holm}{questions}")
        }
        Test::PairedT => {
            let sources = match c.paired.question_error {
                Some(_) => " over seeds and questions",
                None => "",
            };
            let bound = minimum_p_value(n);
            let so = if bound * f64::from(family) > LEVEL {
                ", so that nothing is separable"
            } else {
                ""
            };
            format!(
                "paired t test{sources}{holm}, {because}, with p-values of at least {}, the least that {n} seeds \
                 allow{so}",
                two_digits(bound)
            )
        }
    }
}

/// Returns the clause on encodings with too few seeds for a rank: `; too few seeds for a rank: ALiBi (98.3 %, n = 1)`.
/// Empty if all have enough.
pub(super) fn too_few_seeds(ranking: &Ranking) -> String {
    let few = ranking.results.iter().filter(|s| s.rank == Rank::TooFewSeeds);
    let names: Vec<String> = few
        .filter_map(|s| Some((s, s.estimate?)))
        .map(|(s, e)| format!("{} ({}, n = {})", s.display, ranking.metric.show(e.mean), e.n))
        .collect();
    if names.is_empty() {
        String::new()
    } else {
        format!("; too few seeds for a rank: {}", listed(&names, "and"))
    }
}

/// Returns the clause on encodings that are not ranked: `; not ranked: learned (1 of 7 evaluations)`. Empty if all
/// are ranked, or none.
fn unranked(ranking: &Ranking) -> String {
    let names: Vec<String> = ranking
        .results
        .iter()
        .filter(|s| s.rank == Rank::Unranked)
        .map(|s| {
            let all = ranking.points.len();
            if s.evaluated == all {
                format!("{} (not finite)", s.display)
            } else {
                format!("{} ({} of {all} evaluations)", s.display, s.evaluated)
            }
        })
        .collect();
    if names.is_empty() || names.len() == ranking.results.len() {
        String::new()
    } else {
        format!("; not ranked: {}", listed(&names, "and"))
    }
}

#[cfg(test)]
mod tests;
