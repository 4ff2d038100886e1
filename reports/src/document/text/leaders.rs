//! On what the lead of the best encoding depends.

use analysis::Report;
use records::number::{listed, percent};
use stats::mean_ranks::MeanRanks;

/// Names the encodings that would lead without one of the workloads, and by mean rank; `None` with fewer than three scored
/// workloads.
pub(crate) fn leaders(report: &Report) -> Option<String> {
    let overall = report.overall.as_ref()?;
    let best = &overall.scores.first()?.encoding;
    let without = &overall.leaders_without;
    let other: Vec<String> = without
        .iter()
        .filter(|leader| leader.encoding != *best)
        .map(|leader| {
            let name = report.display(&leader.encoding);
            let behind = report.display(&leader.second);
            format!(
                "without the workload `{}`, {name} would lead with {}, ahead of {behind} with {}",
                leader.workload,
                percent(leader.value),
                percent(leader.second_value)
            )
        })
        .collect();
    let workloads = match other.len() {
        _ if without.is_empty() => return None,
        0 => {
            format!("{} still leads if any one of the workloads is left out", report.display(best))
        }
        _ => format!("The lead depends on the workloads: {}", listed(&other, "and")),
    };
    let by_rank = overall.ranked.first()?;
    Some(if by_rank == best {
        format!("{workloads}. {} also has the best mean rank.", report.display(best))
    } else {
        format!(
            "{workloads}. By mean rank over all workloads, {} leads{}.",
            report.display(by_rank),
            mean_ranks(report, &overall.ranks)
        )
    })
}

/// Returns the two best mean ranks and the smallest significant difference, as the end of a sentence.
fn mean_ranks(report: &Report, ranks: &MeanRanks) -> String {
    let ranked = report.overall.iter().flat_map(|overall| &overall.ranked);
    let mut named = ranked.zip(&ranks.ranks).map(|(name, rank)| (report.display(name), rank));
    let (Some((_, first)), Some((second, next))) = (named.next(), named.next()) else {
        return String::new();
    };
    format!(
        " with {first:.1}, ahead of {second} with {next:.1}; differences below {:.1} ranks are not significant",
        ranks.critical_difference
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use analysis::ReportMeta;
    use records::testkit::TestCell;

    /// Sentence on three workloads where CoPE has these scores, and RoPE 0.8 everywhere.
    fn sentence(cope: [f64; 3]) -> Option<String> {
        let mut records = Vec::new();
        for (workload, value) in ["a", "b", "c"].into_iter().zip(cope) {
            for seed in 0..3 {
                records.push(TestCell::new(workload, "cope", seed).beyond(value).record());
                records.push(TestCell::new(workload, "rope", seed).beyond(0.8).record());
            }
        }
        leaders(&Report::new(records, &ReportMeta::default()).unwrap())
    }

    #[test]
    fn a_lead_that_hangs_on_one_workload_is_said() {
        assert_eq!(
            sentence([0.9, 0.9, 0.9]).unwrap(),
            "CoPE still leads if any one of the workloads is left out. CoPE also has the best mean \
             rank."
        );
        // Interquartile means above a chance of 1/2 of nine runs, of which two at either end are cut.
        let text = sentence([1.0, 0.75, 0.82]).unwrap();
        assert!(
            text.starts_with(
                "The lead depends on the workloads: without the workload `a`, RoPE would lead with 60.0%, ahead of CoPE with "
            ),
            "{text}"
        );
    }
}
