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
            |workload: &Workload| format!("`{}`: {}", workload.name, verdict(report, workload));
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
        format!(" Exact match is {} for all encodings.", Metric::ExactMatch.show(same))
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
        return "The best mean is not above chance.".to_owned();
    }
    if let Some(needed) = ranking.seeds_needed {
        let seeds = best.estimate.map_or(0, |estimate| estimate.n);
        return format!(
            "No ranks: with {}, no difference can be significant; at least {needed} seeds are needed.",
            count(seeds, "seed")
        );
    }
    if best.above_chance == Some(false) {
        return "The interval of the best mean includes chance.".to_owned();
    }
    let of = count(ranked.len() as u64, "encoding");
    let first: Vec<&&EncodingResult> = ranked.iter().filter(|r| r.group == Some(1)).collect();
    let seeds = count(best.estimate.map_or(0, |estimate| estimate.n), "seed");
    if !ranking.has_several_ranks() {
        return if ranking.separates() {
            format!(
                "No ranks: with {seeds}, some pairs of encodings differ significantly, but these differences do not \
                 divide the encodings into ranks."
            )
        } else {
            format!("No ranks: with {seeds}, no two encodings differ significantly.")
        };
    }
    format!("First rank: {}, of {of}.", names(&first))
}

#[cfg(test)]
mod tests {
    use super::*;
    use analysis::ReportMeta;
    use records::testkit::TestCell;
    use records::{RunRecord, Status};

    fn verdicts(records: Vec<RunRecord>) -> Vec<String> {
        let report = Report::new(records, &ReportMeta::default()).unwrap();
        report.workloads.iter().map(|workload| verdict(&report, workload)).collect()
    }

    /// Cells of eight seeds whose scores are those given, beyond training, and differ by hundredths.
    fn of(scores: &[(&str, f64)]) -> Vec<RunRecord> {
        let cells = (0..8_u64).flat_map(|seed| {
            let noise = 0.01 * seed as f64;
            scores.iter().map(move |(name, score)| {
                TestCell::new("w", name, seed).beyond(score + noise).record()
            })
        });
        cells.collect()
    }

    #[test]
    fn the_best_has_its_interval_and_who_shares_its_rank() {
        let region = "on other distributions at longer lengths";
        assert_eq!(
            verdicts(of(&[("cope", 0.9), ("rope", 0.6)])),
            [format!(
                "Best exact match {region}: CoPE, 93.5% [91.5, 95.5], chance 50.0%. First rank: CoPE, of 2 encodings."
            )]
        );
        // Two that differ by less than seeds vary, before a third.
        let [verdict] = &verdicts(of(&[("cope", 0.9), ("alibi", 0.9), ("rope", 0.6)]))[..] else {
            panic!()
        };
        assert!(verdict.ends_with("First rank: ALiBi and CoPE, of 3 encodings."), "{verdict}");
    }

    #[test]
    fn what_carries_no_rank_has_none() {
        let mut few = of(&[("cope", 0.9), ("alibi", 0.8), ("rope", 0.6)]);
        few.retain(|record| record.seed < 2);
        let [verdict] = &verdicts(few)[..] else { panic!() };
        assert!(
            verdict.contains("No ranks: with 2 seeds, no difference can be significant; at least"),
            "{verdict}"
        );
        let [verdict] = &verdicts(of(&[("cope", 0.2), ("rope", 0.1)]))[..] else { panic!() };
        assert!(verdict.ends_with("The best mean is not above chance."), "{verdict}");
        let same = of(&[("cope", 0.9), ("rope", 0.9)]);
        let [verdict] = &verdicts(same)[..] else { panic!() };
        assert!(
            verdict.starts_with("Best exact match")
                || verdict.starts_with("All 2 encodings have the same"),
            "{verdict}"
        );
        let [verdict] = &verdicts(of(&[("cope", 0.9)]))[..] else { panic!() };
        assert!(
        verdict.starts_with(
            "Exact match on other distributions at longer lengths, with one encoding only: CoPE, 93.5%"
        ),
        "{verdict}"
    );
    }

    #[test]
    fn a_workload_without_results_says_why() {
        let failed = |record: &mut RunRecord| {
            record.status = Status::Failed { reason: "no memory".into() };
            record.evals.clear();
        };
        let records = vec![TestCell::new("w", "cope", 0).change(failed).record()];
        assert_eq!(verdicts(records), ["No result: 1 cell not counted."]);
    }

    #[test]
    fn the_lead_is_the_abstract_or_the_verdicts() {
        let report =
            |records: Vec<RunRecord>| Report::new(records, &ReportMeta::default()).unwrap();
        assert_eq!(lead(&report(Vec::new())), [NOTHING]);
        let one = lead(&report(of(&[("cope", 0.9), ("rope", 0.6)])));
        assert!(one.len() == 1 && one[0].starts_with("`w`: Best exact match"), "{one:?}");
        assert_eq!(
            lead(&report(records::testkit::two_workloads())).len(),
            4,
            "two workloads are too few to leave one out"
        );
    }

    /// The best mean is far ahead, but one of two seeds in eight says the opposite.
    #[test]
    fn an_encoding_far_ahead_that_no_seeds_separate_has_no_rank() {
        let cells = (0..8_u64).flat_map(|seed| {
            let (cope, rope) = if seed < 2 { (0.62, 0.98) } else { (0.98, 0.5) };
            [("cope", cope), ("rope", rope)]
                .map(|(name, score)| TestCell::new("w", name, seed).beyond(score).record())
        });
        let [verdict] = &verdicts(cells.collect())[..] else { panic!() };
        assert!(
            verdict.ends_with("No ranks: with 8 seeds, no two encodings differ significantly."),
            "{verdict}"
        );
    }
}
