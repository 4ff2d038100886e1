//! Findings about one encoding: its place, the uses it suits, its comparison with RoPE, its cost.

use std::collections::BTreeMap;

use super::uses::when_to_use;
use analysis::ranking::{EncodingResult, RankedPair, separable};
use analysis::{Overall, Report, Workload, YARDSTICK};
use records::number::{bytes, count, listed, percent, points, value_and_interval};
use stats::sorted_median;

/// Returns the findings about an encoding, one sentence each; `contrasts` are the comparisons with RoPE, by workload.
pub(crate) fn encoding(report: &Report, name: &str, contrasts: &[Vec<RankedPair>]) -> Vec<String> {
    let sentences = [
        place(report, name),
        when_to_use(report, name),
        first(report, name),
        against(report, name, contrasts),
    ];
    sentences.into_iter().chain([cost(report, name)]).flatten().collect()
}

/// Returns the findings about every encoding of a report, by name.
pub fn findings(report: &Report) -> BTreeMap<String, Vec<String>> {
    let contrasts = report.workloads.iter().map(|workload| {
        workload.deciding().map_or_else(Vec::new, |ranking| ranking.contrasts(YARDSTICK))
    });
    let contrasts: Vec<Vec<RankedPair>> = contrasts.collect();
    let found = |name: &String| (name.clone(), encoding(report, name, &contrasts));
    report.encodings.iter().map(|own| found(&own.name)).collect()
}

fn place(report: &Report, name: &str) -> Option<String> {
    let overall = report.overall.as_ref()?;
    let place = overall.scores.iter().position(|score| score.encoding == name)?;
    let own = &overall.scores[place];
    Some(format!(
        "Place {} of {} over all tasks: {} ({} on {}).",
        place + 1,
        overall.scores.len(),
        value_and_interval(percent(own.value), own.ci95, points),
        Overall::NAME,
        count(overall.scored.len() as u64, "workload")
    ))
}

/// Returns on which workloads the encoding has the first rank, of those that have several.
fn first(report: &Report, name: &str) -> Option<String> {
    let is_first = |own: &EncodingResult| own.encoding == name && own.group == Some(1);
    let telling = report.workloads.iter().filter_map(|workload| {
        let ranking = workload.deciding().filter(|ranking| ranking.has_several_ranks())?;
        let is_ranked = ranking.ranked().iter().any(|own| own.encoding == name);
        is_ranked.then(|| (workload, ranking.results.iter().any(is_first)))
    });
    let telling: Vec<(&Workload, bool)> = telling.collect();
    let won: Vec<String> =
        telling.iter().filter(|(_, won)| *won).map(|(own, _)| format!("`{}`", own.name)).collect();
    let of = count(telling.len() as u64, "workload");
    match (telling.len(), won.len()) {
        (0, _) => None,
        (_, 0) => Some(format!("In the first rank on 0 of {of} with several ranks.")),
        (_, n) => Some(format!(
            "In the first rank on {n} of {of} with several ranks: {}.",
            listed(&won, "and")
        )),
    }
}

/// Returns on how many workloads the encoding differs from RoPE.
fn against(report: &Report, name: &str, contrasts: &[Vec<RankedPair>]) -> Option<String> {
    let own: Vec<&RankedPair> = contrasts
        .iter()
        .flatten()
        .filter(|pair| name != YARDSTICK && (pair.better == name || pair.worse == name))
        .collect();
    let significant = |is_better: bool| {
        let is_so = |pair: &&&RankedPair| {
            separable(Some(&pair.comparison)) && (pair.better == name) == is_better
        };
        own.iter().filter(is_so).count()
    };
    (!own.is_empty()).then(|| {
        format!(
            "Significantly better than {} on {} and significantly worse on {} of {}.",
            report.display(YARDSTICK),
            significant(true),
            significant(false),
            count(own.len() as u64, "workload")
        )
    })
}

/// Returns the cost in a line.
fn cost(report: &Report, name: &str) -> Option<String> {
    let median = |mut values: Vec<f64>| {
        values.retain(|value| value.is_finite());
        values.sort_by(f64::total_cmp);
        (!values.is_empty()).then(|| sorted_median(&values))
    };
    let costs = || {
        let all = report.workloads.iter().flat_map(|workload| &workload.costs);
        all.filter(|cost| cost.encoding == name)
    };
    // Memory and time of one measurement, if there is one.
    let measured = |name: &str| report.meta.measured.iter().find(|own| own.encoding == name);
    let peak = |name: &str| measured(name).and_then(|own| own.peak_bytes).map(|peak| peak as f64);
    let (memory, memory_ratio) = match (peak(name), peak(YARDSTICK)) {
        (Some(own), Some(rope)) => (Some(own), Some(own / rope)),
        _ => (
            median(costs().filter_map(|cost| Some(cost.peak_bytes? as f64)).collect()),
            median(costs().filter_map(|cost| cost.memory_ratio).collect()),
        ),
    };
    let ratio = |value: Option<f64>, unit: &str| Some(format!("{:.2} times RoPE's {unit}", value?));
    let parts = [
        ratio(report.step_time_ratio(name), "time"),
        ratio(report.flops_ratio(name), "FLOPs"),
        ratio(memory_ratio, "peak memory"),
    ];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    let takes = format!("A training step takes {}.", listed(&parts, "and"));
    let peak = memory.map(|peak| format!("The peak memory of training is {}.", bytes(peak)));
    let sentences = Some(takes).filter(|_| !parts.is_empty()).into_iter().chain(peak);
    let sentences: Vec<String> = sentences.collect();
    (!sentences.is_empty()).then(|| sentences.join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use analysis::ReportMeta;
    use records::settings::{Settings, UseCase};
    use records::testkit::two_workloads;

    #[test]
    fn an_encoding_is_summed_up_in_sentences() {
        let uses = vec![UseCase { name: "Counting".into(), tasks: vec!["v".into()] }];
        let settings = Settings { uses, ..Settings::default() };
        let frames = analysis::frame::Frames::of(&two_workloads()).unwrap();
        let report = Report::with(frames, &ReportMeta::default(), &settings).unwrap();
        let all = findings(&report);
        let found = &all["cope"];
        assert!(found[0].starts_with("Place 1 of 2 over all tasks: 77.0% ["), "{found:?}");
        assert_eq!(
            found[1],
            "When to use it: for “Counting”, where it is in the first rank; its cost is 2.00 times RoPE's step time."
        );
        assert!(
            found.iter().any(|text| text.starts_with("Significantly better than RoPE on ")),
            "{found:?}"
        );
        assert!(found.last().unwrap().starts_with("A training step takes "), "{found:?}");
        let rope = &all["rope"];
        assert!(!rope.iter().any(|text| text.starts_with("Significantly")), "{rope:?}");
    }
}
