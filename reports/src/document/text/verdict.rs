//! One verdict for each workload: the best encodings, their score, and who shares their rank.

use super::{abstract_of, leaders};
use analysis::ranking::{EncodingResult, Rank, Ranking};
use analysis::{Report, Workload};
use records::Metric;
use records::number::{capital, count, listed_first, percent};

/// First sentence of a report without records.
pub const NOTHING: &str = "No cell has been run, so there are no results.";
/// Number of names of a list; further ones are counted.
const NAMED: usize = 5;

/// Returns the most important results: the abstract, and on what the order depends; without them, the verdict on each workload.
pub(crate) fn lead(report: &Report) -> Vec<String> {
    let sentences = abstract_of(report).into_iter().map(|sentence| sentence.text);
    let sentences: Vec<String> = sentences.chain(leaders(report)).collect();
    if report.workloads.is_empty() {
        vec![NOTHING.to_owned()]
    } else if sentences.is_empty() {
        let verdict =
            |workload: &Workload| format!("{}: {}", workload.name, verdict(report, workload));
        report.workloads.iter().map(verdict).collect()
    } else {
        sentences
    }
}

/// Returns the verdict on a workload, from its deciding region: `Best exact match at longer lengths: CoPE, 97.1% [92.0 to
/// 100.0], chance 23.6%. First rank: CoPE and ALiBi, of 5 encodings.`
pub(crate) fn verdict(report: &Report, workload: &Workload) -> String {
    let Some(ranking) = workload.deciding() else {
        let lost = report.not_counted.iter().filter(|cell| cell.workload == workload.name);
        return format!("No result: {} not counted.", count(lost.count() as u64, "cell"));
    };
    let ranked = ranking.ranked();
    let region = ranking.region.name();
    let names = |results: &[&&EncodingResult]| {
        let names: Vec<String> = results.iter().map(|result| result.display.clone()).collect();
        listed_first(NAMED, &names, "and")
    };
    let Some(first) = ranked.first() else {
        return format!("No rank {region}: no encoding has finite values in all evaluations.");
    };
    let (metric, score) = (ranking.metric.name(), score(ranking, first));
    if ranked.len() == 1 {
        return format!(
            "{} {region}, with one encoding only: {}, {score}.",
            capital(metric),
            first.display
        );
    }
    if ranking.common_value().is_some() {
        let all = count(ranked.len() as u64, "encoding");
        return format!("All {all} have the same {metric} {region}: {score}.");
    }
    let best: Vec<&&EncodingResult> = ranked.iter().filter(|r| r.rank == Rank::Best).collect();
    let best = format!("Best {metric} {region}: {}, {score}.", names(&best));
    let fallback = ranking.fallback.map_or_else(String::new, |same| {
        format!(" Exact match is {} for all.", Metric::ExactMatch.show(same))
    });
    format!("{best}{fallback} {}", standing(ranking, &ranked, &names))
}

/// Returns the mean of an encoding with its interval, and chance.
fn score(ranking: &Ranking, result: &EncodingResult) -> String {
    let metric = ranking.metric;
    let mean = result.estimate.map_or_else(String::new, |estimate| {
        let ends = estimate.ci95.map(|ends| format!(" [{}]", metric.show_interval(ends)));
        metric.show(estimate.mean) + &ends.unwrap_or_default()
    });
    let chance = ranking.chance.map_or_else(String::new, |x| format!(", chance {}", percent(x)));
    mean + &chance
}

/// Returns a sentence on the rank of the best encodings and who shares it.
fn standing(
    ranking: &Ranking,
    ranked: &[&EncodingResult],
    names: &dyn Fn(&[&&EncodingResult]) -> String,
) -> String {
    let best = ranked[0];
    if ranking.chance.is_some_and(|chance| best.mean() <= chance) {
        return "Not above chance.".to_owned();
    }
    if let Some(needed) = ranking.seeds_needed {
        let seeds = best.estimate.map_or(0, |estimate| estimate.n);
        return format!(
            "No ranks: with {} no difference can be significant; at least {needed} seeds are needed.",
            count(seeds, "seed")
        );
    }
    if best.above_chance == Some(false) {
        return "The interval includes chance.".to_owned();
    }
    let of = count(ranked.len() as u64, "encoding");
    let first: Vec<&&EncodingResult> = ranked.iter().filter(|r| r.group == Some(1)).collect();
    let seeds = count(best.estimate.map_or(0, |estimate| estimate.n), "seed");
    if !ranking.has_several_ranks() {
        return if ranking.separates() {
            format!("No ranks: {seeds} separate some pairs of encodings, but no groups.")
        } else {
            format!("No ranks: {seeds} separate no two encodings.")
        };
    }
    format!("First rank: {}, of {of}.", names(&first))
}

#[cfg(test)]
mod tests;
