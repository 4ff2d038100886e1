//! What a report says in words: the front page's sentences and one for each workload, claiming no more
//! than n allows.

mod front;

pub use front::NOTHING;
pub(crate) use front::front_page;

use std::collections::BTreeSet;
use std::fmt::Write as _;

use crate::number::{listed, two_digits};
use crate::select::NotCounted;
use crate::standing::{Contest, Metric, Rank, Standing, separable};
use crate::stats::sign_flip::least_p;
use crate::stats::{Comparison, LEAST_SEEDS, LEVEL, Test, family};

/// The sentence of one workload: beyond training first, because that is where encodings differ,
/// then in distribution, then the cells that did not count.
pub fn workload_sentence(
    name: &str,
    len_unit: &str,
    inside: &Contest,
    beyond: &Contest,
    not_counted: &[NotCounted],
) -> String {
    let lost: Vec<&NotCounted> =
        not_counted.iter().filter(|n| n.workload == name && n.state != "superseded").collect();
    if inside.standings.is_empty() {
        return format!(
            "{name}: none of its {} cells was finished, so nothing can be said.",
            lost.len()
        );
    }
    let mut clauses: Vec<String> = [beyond, inside]
        .iter()
        .filter_map(|contest| Some(clause(contest, len_unit)? + &unranked(contest)))
        .collect();
    if clauses.is_empty() {
        clauses.push("nothing was evaluated, so nothing can be said".to_owned());
    }
    let mut text = format!("{name}: {}.", clauses.join("; "));
    let methods: BTreeSet<String> = [inside, beyond].into_iter().filter_map(method).collect();
    if !methods.is_empty() {
        let methods: Vec<String> = methods.into_iter().collect();
        let _ = write!(text, " What decides: {}.", methods.join("; or "));
    }
    if !lost.is_empty() {
        let cells: Vec<String> =
            lost.iter().map(|n| format!("{} seed {} ({})", n.encoding, n.seed, n.state)).collect();
        let _ = write!(text, " Not counted: {}.", listed(&cells, "and"));
    }
    text
}

/// What one region says; `None` when nothing was evaluated there.
fn clause(contest: &Contest, len_unit: &str) -> Option<String> {
    if contest.points.is_empty() {
        return None;
    }
    let region = contest.region.name();
    let metric = contest.metric;
    let ranking = contest.ranking();
    let value = |s: &Standing| s.estimate.map_or_else(String::new, |e| metric.show(e.mean));
    let over = match contest.points.as_slice() {
        [(split, len)] => format!(" on `{split}` at {len} {len_unit}"),
        points => format!(", mean over {} evaluations", points.len()),
    };
    let why = contest.fallback.map_or_else(String::new, |equal| {
        let equal = Metric::ExactMatch.show(equal);
        format!("; exact match is {equal} for all, so token accuracy decides")
    });
    let Some(first) = ranking.first() else {
        return Some(format!("{region} no encoding has all finite evaluations, so none is ranked"));
    };
    let score = format!("{} {}{over}{why}", metric.name(), value(first));
    if let [only] = ranking[..] {
        let others = contest.standings.len() - 1;
        return Some(if others == 0 {
            format!(
                "only {} was measured {region} ({score}), so there is nothing to compare",
                only.display
            )
        } else {
            format!(
                "{region} only {} has all finite evaluations ({score}), so there is nothing to compare",
                only.display
            )
        });
    }
    if contest.common_value().is_some() {
        let all = match ranking.len() {
            2 => "both".to_owned(),
            n => format!("all {n}"),
        };
        return Some(format!("{region} {all} encodings are equal ({score})"));
    }
    let (best, rest): (Vec<&Standing>, Vec<&Standing>) =
        ranking.iter().copied().partition(|s| s.rank == Rank::Best);
    let best_names: Vec<String> = best.iter().map(|s| s.display.clone()).collect();
    let lead = Lead { names: listed(&best_names, "and"), several: best.len() > 1, region, score };
    let Some((runner_up, others)) = rest.split_first() else {
        return Some(lead.head());
    };
    let second = (&*runner_up.display, &*value(runner_up));
    Some(match runner_up.rank {
        Rank::Behind(Some(c)) if c.paired.n == 1 => lead.over_one_seed(second),
        Rank::Behind(Some(c)) => lead.over_seeds(second, &c, metric, others),
        _ => format!(
            "{}, but the runner-up {} ({}) shares no seed with it, so no claim",
            lead.head(),
            second.0,
            second.1
        ),
    })
}

/// The best of a region, and the words for it.
struct Lead<'a> {
    names: String,
    several: bool,
    region: &'a str,
    score: String,
}

impl Lead<'_> {
    fn head(&self) -> String {
        let verb = if self.several { "tie for best" } else { "is best" };
        format!("{} {verb} {} ({})", self.names, self.region, self.score)
    }

    fn over_one_seed(&self, (name, value): (&str, &str)) -> String {
        let verb = if self.several { "are" } else { "is" };
        format!(
            "{} {verb} ahead {} ({}) of {name} ({value}), but with one seed there is no interval, so \
             no claim",
            self.names, self.region, self.score
        )
    }

    /// Against the runner-up by `c`, then which of the `others` share its fate and which do not.
    fn over_seeds(
        &self,
        (name, value): (&str, &str),
        c: &Comparison,
        metric: Metric,
        others: &[&Standing],
    ) -> String {
        let (head, n) = (self.head(), c.paired.n);
        let pronoun = if self.several { "they are" } else { "it is" };
        let against = format!("{name} ({value}; {})", metric.show_difference(c));
        let those = |level: bool, lead_in: &str, last: &str| {
            let names: Vec<String> = others
                .iter()
                .filter(|s| s.is_level() == level)
                .map(|s| s.display.clone())
                .collect();
            if names.is_empty() {
                String::new()
            } else {
                format!("{lead_in} from {}", listed(&names, last))
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

/// Which test decides the comparisons of a contest and why it is that one; `None` when nothing with two
/// or more seeds is compared, or all encodings are equal.
pub(crate) fn method(contest: &Contest) -> Option<String> {
    if contest.common_value().is_some() {
        return None;
    }
    let mut ways: BTreeSet<String> = BTreeSet::new();
    for pair in contest.pairs.iter().filter(|p| p.comparison.paired.n > 1) {
        ways.insert(way(&pair.comparison, &contest.jumping));
    }
    let ways: Vec<String> = ways.into_iter().collect();
    (!ways.is_empty()).then(|| ways.join("; "))
}

fn way(c: &Comparison, jumping: &[String]) -> String {
    let (n, family) = (c.paired.n, c.family);
    let holm = if family > 1 {
        format!(" with Holm's correction over {family} pairs")
    } else {
        String::new()
    };
    let least = least_p(n);
    // At 5 % for one pair the pairs are what is in the way.
    let over = if least <= LEVEL { format!(" over {family} pairs") } else { String::new() };
    let because = format!(
        "because {n} seeds cannot reach 5 %{over} by permutation (least p {})",
        two_digits(least)
    );
    match c.test {
        Test::TooFewSeeds => format!("{n} seeds separate nothing, {LEAST_SEEDS} are needed"),
        Test::SignFlip => format!("sign-flip permutation test over {n} seeds{holm}"),
        Test::PairedT => format!("paired t test{holm}, {because}"),
        Test::BoundedT => {
            let bound = family::bound(n);
            let so = if bound * f64::from(family) > LEVEL {
                format!(", so that nothing is separable with n = {n}")
            } else {
                String::new()
            };
            format!(
                "paired t test{holm}, {because}, and with p no less than {}, because seeds of {} lie \
                 half of the scale or more apart{so}",
                two_digits(bound),
                listed(jumping, "and")
            )
        }
    }
}

/// `; not ranked: learned (1 of 7 evaluations)`; empty when all are, or none is.
fn unranked(contest: &Contest) -> String {
    let names: Vec<String> = contest
        .standings
        .iter()
        .filter(|s| s.rank == Rank::Unranked)
        .map(|s| {
            let all = contest.points.len();
            if s.evaluated == all {
                format!("{} (not finite)", s.display)
            } else {
                format!("{} ({} of {all} evaluations)", s.display, s.evaluated)
            }
        })
        .collect();
    if names.is_empty() || names.len() == contest.standings.len() {
        String::new()
    } else {
        format!("; not ranked: {}", listed(&names, "and"))
    }
}

#[cfg(test)]
mod tests;
