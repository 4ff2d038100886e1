//! The sentences of the front page: the answer to the suite's question, the aggregate over workloads, the contests that
//! separate encodings, and the cost.

use std::collections::BTreeMap;

use super::overall::{answer_sentence, lead_sentence};
use super::workload::{chance_text, too_few_seeds, workload_sentence};
use crate::analysis::ranking::{EncodingResult, Rank, Ranking};
use crate::analysis::{EncodingCost, Report, Workload, YARDSTICK};
use crate::number::{count, listed_first};
use crate::stats::{self, LEAST_SEEDS};

/// Overview of a report without records.
pub const NOTHING: &str = "No cell has been run, so there are no results.";
/// Maximum number of names in a list; further ones are counted.
const NAMED: usize = 3;
/// Maximum number of sentences.
const SENTENCES: usize = 3;

/// A workload in which at least two encodings are compared.
struct RankedWorkload<'a> {
    workload: &'a Workload,
    ranking: &'a Ranking,
    /// The encodings, best first.
    ranked: Vec<&'a EncodingResult>,
}

impl<'a> RankedWorkload<'a> {
    fn of(workload: &'a Workload) -> Option<Self> {
        let ranking = workload.deciding()?;
        let ranked = ranking.ranked();
        (ranked.len() > 1).then_some(Self { workload, ranking, ranked })
    }

    /// Returns the encodings of the first rank.
    fn first(&self) -> impl Iterator<Item = &'a EncodingResult> {
        self.ranked.iter().copied().filter(|s| s.group == Some(1))
    }
}

/// Returns the most important results, at most three sentences.
pub(crate) fn overview(report: &Report) -> Vec<String> {
    if report.workloads.is_empty() {
        return vec![NOTHING.to_owned()];
    }
    let contests: Vec<RankedWorkload<'_>> =
        report.workloads.iter().filter_map(RankedWorkload::of).collect();
    let mut sentences: Vec<String> =
        report.answer.iter().map(|answer| answer_sentence(report, answer)).collect();
    match contests.as_slice() {
        [] => {
            // With nothing to compare the workloads speak for themselves.
            let own = report.workloads.iter().map(|w| workload_sentence(report, w));
            sentences.extend(own);
        }
        [only] => {
            sentences.push(format!("{}{}.", single(only), too_few_seeds(only.ranking)));
            sentences.extend(price(&contests, report));
        }
        several => {
            sentences.extend(report.overall.as_ref().map(|overall| lead_sentence(report, overall)));
            sentences.push(leaders(several));
            sentences.extend(price(several, report));
        }
    }
    sentences.truncate(SENTENCES);
    sentences
}

/// Counts the contests in which each encoding is chosen, in descending order; ties by name.
fn counted<'a>(
    contests: &[&RankedWorkload<'a>],
    chosen: impl Fn(&EncodingResult) -> bool,
) -> Vec<(&'a EncodingResult, usize)> {
    let mut counts: BTreeMap<&str, (&EncodingResult, usize)> = BTreeMap::new();
    for result in contests.iter().flat_map(|c| &c.ranked).filter(|s| chosen(s)) {
        counts.entry(&result.encoding).or_insert((result, 0)).1 += 1;
    }
    let mut counts: Vec<_> = counts.into_values().collect();
    counts.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    counts
}

/// Returns a sentence on the encodings that are most often in the first rank, over the workloads with several ranks.
fn leaders(contests: &[RankedWorkload<'_>]) -> String {
    let all = count(contests.len() as u64, "workload");
    let separating = contests.iter().filter(|c| c.ranking.separates()).count();
    let telling: Vec<&RankedWorkload<'_>> =
        contests.iter().filter(|c| c.ranking.has_several_ranks()).collect();
    if separating == 0 {
        let needed = contests.iter().map(|c| c.ranking.seeds_needed).min().flatten();
        return match needed {
            Some(needed) => format!(
                "None of {all} has ranks: with so few seeds no difference can be significant, {needed} seeds can \
                 separate encodings."
            ),
            None => format!("No two encodings can be separated on any of {all} with these seeds."),
        };
    }
    let counts = counted(&telling, |s| s.group == Some(1));
    let most = counts.first().map_or(0, |(_, count)| *count);
    let leading = counts.iter().take_while(|(_, count)| *count == most);
    let leading: Vec<String> = leading.map(|(s, _)| s.display.clone()).collect();
    let alone = telling.iter().filter(|c| c.first().count() == 1).count();
    let separate = if separating == 1 { "separates" } else { "separate" };
    let ranked = match telling.len() {
        n if n == separating => String::new(),
        0 => {
            return format!(
                "{separating} of {all} {separate} some encodings with these seeds, none into several ranks."
            );
        }
        n => format!(", {n} of them into several ranks"),
    };
    let each = if leading.len() == 1 { "" } else { " each" };
    let verb = if leading.len() == 1 { "is" } else { "are" };
    let alone = match alone {
        0 => "none has".to_owned(),
        1 => "1 has".to_owned(),
        several => format!("{several} have"),
    };
    format!(
        "{separating} of {all} {separate} encodings with these seeds{ranked}: {} {verb} in the first rank of {most} of \
         them{each}, and {alone} a first rank of one encoding alone.",
        listed_first(NAMED, &leading, "and"),
    )
}

/// Returns the sentence on the only workload, without its full stop.
fn single(contest: &RankedWorkload<'_>) -> String {
    let RankedWorkload { workload, ranking, ranked } = contest;
    let (name, region) = (&workload.name, ranking.region.name());
    let chance = chance_text(ranking);
    if let Some(value) = ranking.common_value() {
        let (metric, value) = (ranking.metric.name(), ranking.metric.show(value));
        return format!(
            "On {name}, {region}, all {} encodings are equal ({metric} {value}{chance})",
            ranked.len()
        );
    }
    let named = |best: bool, of: &[&EncodingResult]| -> Vec<String> {
        let of = of.iter().filter(|s| (s.rank == Rank::Best) == best);
        of.map(|s| s.display.clone()).collect()
    };
    let ties = named(true, ranked);
    let estimate = ranked[0].estimate;
    let seeds = estimate.map_or(0, |e| e.n);
    let n = count(seeds, "seed");
    let value = estimate.map_or_else(String::new, |e| ranking.metric.show(e.mean));
    let (verb, them) = if ties.len() == 1 { ("has", "it") } else { ("share", "them") };
    let head = format!(
        "On {name}, {region}, {} {verb} the best mean ({} {value}{chance})",
        listed_first(NAMED, &ties, "and"),
        ranking.metric.name()
    );
    if ranking.chance.is_some_and(|chance| ranked[0].mean() <= chance) {
        return format!("{head}, which is not above chance");
    }
    if let Some(needed) = ranking.seeds_needed {
        let least = ranked.iter().filter_map(|s| Some(s.estimate?.n)).min().unwrap_or(seeds);
        let (few, each) =
            if least < seeds { (format!("{least} to {n}"), " for each") } else { (n, "") };
        return format!(
            "{head}, but {few} cannot separate {} encodings; at least {} are needed{each}",
            ranked.len(),
            needed.max(LEAST_SEEDS)
        );
    }
    if ranked[0].above_chance == Some(false) {
        return format!("{head}, whose interval does not exclude chance");
    }
    let first: Vec<&EncodingResult> = contest.first().collect();
    let level = named(false, &first);
    let behind = ranked.len() - first.len();
    if behind == 0 {
        return format!("{head}, but with {n} no encoding is separable from {them}");
    }
    if level.is_empty() {
        let (others, are) = match behind {
            1 => ("the other one".to_owned(), "is"),
            n => (format!("the other {n}"), "are"),
        };
        return format!("{head}; with {n} {others} {are} separable from {them}");
    }
    let are = if level.len() == 1 { "is" } else { "are" };
    let rest = if behind == 1 { "the remaining one is" } else { "the others are" };
    format!(
        "{head}; with {n} {} {are} not separable from {them}, {rest}",
        listed_first(NAMED, &level, "and")
    )
}

/// Returns a sentence on the step time, relative to RoPE, of the leading encoding, from cells with sound times.
fn price(contests: &[RankedWorkload<'_>], report: &Report) -> Option<String> {
    let ratios = |encoding: &str| -> Vec<f64> {
        let ratio = |contest: &RankedWorkload<'_>| {
            let Workload { costs, machines, .. } = contest.workload;
            let own = costs.iter().find(|cost: &&EncodingCost| cost.encoding == encoding)?;
            own.sound_step_ratio().filter(|_| machines.len() == 1)
        };
        contests.iter().filter_map(ratio).collect()
    };
    let contests: Vec<&RankedWorkload<'_>> = contests.iter().collect();
    let scores = report.overall.iter().flat_map(|overall| &overall.scores);
    let best = counted(&contests, |s| s.rank == Rank::Best);
    let order = scores.map(|score| &*score.encoding).chain(best.iter().map(|(s, _)| &*s.encoding));
    // RoPE is not compared with itself.
    let leader = order.into_iter().find(|name| *name != YARDSTICK)?;
    let ratios = ratios(leader);
    let median = stats::median(&ratios)?;
    let over = match ratios.len() {
        1 => String::new(),
        n => format!(", median over {n} workloads"),
    };
    Some(format!(
        "A training step with {} takes {median:.2} times as long as with RoPE{over}.",
        report.display(leader)
    ))
}

#[cfg(test)]
mod tests;
