//! The sentences of the front page: the leading encoding, the most decisive workload, and the cost.

use std::collections::BTreeMap;

use super::workload::workload_sentence;
use crate::analysis::ranking::{EncodingResult, Rank, Ranking};
use crate::analysis::{EncodingCost, Report, Workload};
use crate::number::listed;
use crate::stats::LEAST_SEEDS;

/// The overview of a report without records.
pub const NOTHING: &str = "No cell has been run, so there are no results.";
/// Maximum number of names that are listed; more are counted.
const NAMED: usize = 3;

/// A workload in which at least two encodings are ranked.
struct Decided<'a> {
    workload: &'a Workload,
    ranking: &'a Ranking,
    /// The best mean, and all that cannot be separated from it.
    first: Vec<&'a EncodingResult>,
    ranked: usize,
}

impl<'a> Decided<'a> {
    fn of(workload: &'a Workload) -> Option<Self> {
        let ranking = workload.deciding();
        let results = ranking.ranked();
        let ranked = results.len();
        let first = results.into_iter().filter(|s| s.group == Some(1)).collect();
        (ranked > 1).then_some(Self { workload, ranking, first, ranked })
    }

    /// Share of the ranked encodings outside the first rank.
    fn sharpness(&self) -> f64 {
        1.0 - self.first.len() as f64 / self.ranked as f64
    }
}

/// The most important results, at most three sentences.
pub(crate) fn overview(report: &Report) -> Vec<String> {
    let workloads = &report.workloads;
    if workloads.is_empty() {
        return vec![NOTHING.to_owned()];
    }
    let decided: Vec<Decided<'_>> = workloads.iter().filter_map(Decided::of).collect();
    if decided.is_empty() {
        // With nothing to compare the workloads speak for themselves.
        return workloads.iter().take(NAMED).map(|w| workload_sentence(report, w)).collect();
    }
    let mut sentences = Vec::new();
    sentences.extend(leaders(&decided));
    sentences.extend(sharpest(&decided));
    sentences.extend(price(&decided, report));
    sentences
}

/// `a, b, c and 4 more`.
fn names(all: &[String]) -> String {
    if all.len() <= NAMED + 1 {
        return listed(all, "and");
    }
    let mut shown = all[..NAMED].to_vec();
    shown.push(format!("{} more", all.len() - NAMED));
    listed(&shown, "and")
}

fn workloads(count: usize) -> String {
    if count == 1 { "1 workload".to_owned() } else { format!("{count} workloads") }
}

/// Number of workloads in which each encoding is among `chosen`, in descending order; ties by name.
fn counted<'a>(
    decided: &[Decided<'a>],
    chosen: impl Fn(&EncodingResult) -> bool,
) -> Vec<(&'a EncodingResult, usize)> {
    let mut counts: BTreeMap<&str, (&EncodingResult, usize)> = BTreeMap::new();
    for result in decided.iter().flat_map(|d| &d.first).filter(|s| chosen(s)) {
        counts.entry(&result.encoding).or_insert((result, 0)).1 += 1;
    }
    let mut counts: Vec<_> = counts.into_values().collect();
    counts.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    counts
}

fn is_best(result: &EncodingResult) -> bool {
    result.rank == Rank::Best
}

/// Sentence on the encodings that are most often in the first rank, or have the best mean most often where no
/// difference is significant; `None` for a single workload.
fn leaders(decided: &[Decided<'_>]) -> Option<String> {
    if decided.len() < 2 {
        return None;
    }
    let together = |counts: Vec<(&EncodingResult, usize)>| -> Option<(Vec<String>, usize)> {
        let most = counts.first()?.1;
        let leading = counts.into_iter().take_while(|(_, count)| *count == most);
        Some((leading.map(|(s, _)| s.display.clone()).collect(), most))
    };
    let of = |most: usize| {
        if most == decided.len() {
            format!("all {}", workloads(most))
        } else {
            format!("{most} of {}", workloads(decided.len()))
        }
    };
    if decided.iter().all(|d| d.first.len() == d.ranked) {
        let (leading, most) = together(counted(decided, is_best))?;
        let (verb, each) = if leading.len() == 1 { ("has", "") } else { ("have", " each") };
        return Some(format!(
            "No two encodings can be separated on any of {}; {} {verb} the best mean most often, on {}{each}.",
            workloads(decided.len()),
            names(&leading),
            of(most)
        ));
    }
    let (leading, most) = together(counted(decided, |_| true))?;
    let (verb, each) = if leading.len() == 1 { ("is", "") } else { ("are", " each") };
    let alone = match decided.iter().filter(|d| d.first.len() == 1).count() {
        0 => "no workload has a first rank of one encoding alone".to_owned(),
        n if n == decided.len() => "every first rank is held by one encoding alone".to_owned(),
        1 => "one workload has a first rank of one encoding alone".to_owned(),
        n => format!("{n} of them have a first rank of one encoding alone"),
    };
    Some(format!("{} {verb} in the first rank of {}{each}; {alone}.", names(&leading), of(most)))
}

/// Sentence on the workload that separates most encodings.
fn sharpest(decided: &[Decided<'_>]) -> Option<String> {
    let mut best = decided.first()?;
    for other in decided {
        if other.sharpness() > best.sharpness() {
            best = other;
        }
    }
    let Decided { workload, ranking, first, ranked } = best;
    let (name, region) = (&workload.name, ranking.region.name());
    let leader = first.first()?;
    let seeds = leader.estimate.map_or(0, |e| e.n);
    let n = if seeds == 1 { "1 seed".to_owned() } else { format!("{seeds} seeds") };
    if let Some(value) = ranking.common_value() {
        let value = ranking.metric.show(value);
        return Some(format!(
            "On {name}, {region}, all {ranked} encodings are equal ({} {value}).",
            ranking.metric.name()
        ));
    }
    let ties: Vec<String> =
        first.iter().filter(|s| s.rank == Rank::Best).map(|s| s.display.clone()).collect();
    let level: Vec<String> =
        first.iter().filter(|s| s.rank != Rank::Best).map(|s| s.display.clone()).collect();
    let value = leader.estimate.map_or_else(String::new, |e| ranking.metric.show(e.mean));
    let (verb, them) = if ties.len() == 1 { ("has", "it") } else { ("share", "them") };
    let head = format!(
        "On {name}, {region}, {} {verb} the best mean ({} {value})",
        names(&ties),
        ranking.metric.name()
    );
    let behind = ranked - first.len();
    let others = |count: usize| match count {
        1 => "the other one".to_owned(),
        n => format!("the other {n}"),
    };
    if level.is_empty() {
        let are = if behind == 1 { "is" } else { "are" };
        return Some(format!("{head}; with {n} {} {are} separable from {them}.", others(behind)));
    }
    if behind == 0 {
        let few = if seeds < LEAST_SEEDS {
            format!("{n} cannot separate encodings; at least {LEAST_SEEDS} are needed")
        } else {
            format!("with {n} no encoding is separable from {them}")
        };
        let where_ =
            if decided.len() > 1 { "; the same holds for every other workload" } else { "" };
        let where_ = if seeds < LEAST_SEEDS { "" } else { where_ };
        return Some(format!("{head}, but {few}{where_}."));
    }
    let are = if level.len() == 1 { "is" } else { "are" };
    let rest = if behind == 1 { "the remaining one is" } else { "the others are" };
    Some(format!("{head}; with {n} {} {are} not separable from {them}, {rest}.", names(&level)))
}

/// Sentence on the step time, relative to RoPE, of the encoding with the most best means.
fn price(decided: &[Decided<'_>], report: &Report) -> Option<String> {
    let ratios = |encoding: &str| -> Vec<f64> {
        let costs = decided.iter().flat_map(|d| &d.workload.costs);
        let own = costs.filter(|cost: &&EncodingCost| cost.encoding == encoding);
        let mut ratios: Vec<f64> = own.filter_map(|cost| cost.step_ratio).collect();
        ratios.sort_by(f64::total_cmp);
        ratios
    };
    // RoPE beside itself says nothing.
    let (leader, _) = counted(decided, is_best)
        .into_iter()
        .find(|(s, _)| s.encoding != "rope" && !ratios(&s.encoding).is_empty())?;
    let encoding = &leader.encoding;
    let ratios = ratios(encoding);
    let median = crate::stats::sorted_median(&ratios);
    let name = report.display(encoding);
    let over = if ratios.len() > 1 {
        format!(", median over {}", workloads(ratios.len()))
    } else {
        String::new()
    };
    let mixed = decided.iter().any(|d| d.workload.machines.len() > 1);
    let warning = if mixed { " (cells ran under different conditions: see Cost)" } else { "" };
    Some(format!(
        "A training step with {name} takes {median:.2} times as long as with RoPE{over}{warning}."
    ))
}

#[cfg(test)]
mod tests;
