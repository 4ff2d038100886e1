//! The results of a report in five sentences, each with a number and its interval.

use std::collections::BTreeMap;

use analysis::ranking::{EncodingResult, Rank, RankedPair, Ranking, separable};
use analysis::{Answer, AnswerLine, EncodingCost, Overall, Report, Workload, YARDSTICK};
use records::Metric;
use records::number::{count, p_value, points, value_and_interval};
use records::settings::Region;
use stats::{Comparison, Estimate, sorted_median};

/// Sentence of an abstract, with the numbers that it states.
#[derive(Debug, Clone, PartialEq)]
pub struct AbstractSentence {
    /// Text of the sentence.
    pub text: String,
    /// Its numbers, in the order of the text.
    pub numbers: Vec<StatedNumber>,
}

/// Number of a sentence, before rounding.
#[derive(Debug, Clone, PartialEq)]
pub struct StatedNumber {
    /// Quantity and encodings: `score cope`, `difference cope rope counting`, `probability cope rope`, `change cope`,
    /// `flops cope`, `seconds cope`, `measured cope`.
    pub name: String,
    /// Value of the quantity.
    pub value: f64,
    /// 95 % interval, or for prices the range over the workloads; `None` for a single measurement.
    pub interval: Option<(f64, f64)>,
}

impl StatedNumber {
    fn new(name: String, value: f64, interval: Option<(f64, f64)>) -> Self {
        Self { name, value, interval }
    }

    fn shown(&self, show: fn(f64) -> String, unit: &str) -> String {
        value_and_interval(show(self.value) + unit, self.interval, show)
    }
}

/// Returns the abstract of a report: the encoding with the best aggregate, its largest difference from RoPE (or the
/// planned question), how often it is better, the change from the training distribution to other lengths, and the price.
/// A sentence whose numbers do not exist is left out; without an aggregate over workloads there is none.
pub fn abstract_of(report: &Report) -> Vec<AbstractSentence> {
    let Some(overall) = report.overall.as_ref().filter(|overall| overall.scores.len() > 1) else {
        return Vec::new();
    };
    let best = &*overall.scores[0].encoding;
    // RoPE is not compared with itself.
    let others =
        || overall.scores.iter().map(|score| &*score.encoding).filter(|name| *name != best);
    let other =
        others().find(|name| *name == YARDSTICK).or_else(|| others().next()).unwrap_or(best);
    let sentences = [
        Some(lead(report, overall)),
        contrast(report, best, other),
        improvement(report, overall, best, other),
        change(report, best, other),
        price(report, if best == YARDSTICK { other } else { best }),
    ];
    sentences.into_iter().flatten().collect()
}

fn lead(report: &Report, overall: &Overall) -> AbstractSentence {
    let number = |place: usize| {
        let score = &overall.scores[place];
        StatedNumber::new(format!("score {}", score.encoding), score.value, score.ci95)
    };
    let name = |place: usize| report.display(&overall.scores[place].encoding);
    let numbers = vec![number(0), number(1)];
    let [first, second] = [0, 1].map(|place: usize| numbers[place].interval);
    let overlap = match first.zip(second) {
        Some(((low, _), (_, high))) if low <= high => "; their 95 % intervals overlap",
        _ => "",
    };
    let seeds = match report.seeds() {
        Some((low, high)) if low == high => count(low, "seed"),
        Some((low, high)) => format!("{low} to {high} seeds"),
        None => "no seeds".to_owned(),
    };
    let (all, scored) = (overall.workloads.len(), overall.scored.len());
    let by =
        if all == scored { String::new() } else { format!(" on the {scored} with exact match") };
    let inside = |workload: &Workload| {
        let region = workload.deciding().map(|ranking| ranking.region);
        overall.scored.contains(&workload.name) && region == Some(Region::Inside)
    };
    let outside =
        if report.workloads.iter().any(inside) { "" } else { " outside the training distribution" };
    let text = format!(
        "Of {} trained on {} ({seeds}), {} has the best {}{by}{outside}, {}, before {} with \
         {}{overlap}.",
        count(overall.scores.len() as u64, "encoding"),
        count(all as u64, "workload"),
        name(0),
        Overall::NAME,
        numbers[0].shown(points, " %"),
        name(1),
        numbers[1].shown(points, " %"),
    );
    AbstractSentence { text, numbers }
}

/// The pair of two encodings in a ranking by exact match, in either order.
fn pair_of<'a>(ranking: &'a Ranking, a: &str, b: &str) -> Option<&'a RankedPair> {
    let pair = ranking.pair(a, b).or_else(|| ranking.pair(b, a));
    pair.filter(|_| ranking.metric == Metric::ExactMatch)
}

fn difference(pair: &RankedPair, comparison: &Comparison, workload: &str) -> StatedNumber {
    let name = format!("difference {} {} {workload}", pair.better, pair.worse);
    let interval = comparison.paired.ci95.map(|ends| Metric::ExactMatch.cut_difference(ends));
    StatedNumber::new(name, comparison.paired.mean_difference, interval)
}

/// The planned question if it was answered by exact match, otherwise the largest significant difference between the two
/// encodings, or the largest one if none is significant.
fn contrast(report: &Report, a: &str, b: &str) -> Option<AbstractSentence> {
    let planned = report.answer.iter().flat_map(|answer| &answer.lines);
    let of_line = |line: &'_ AnswerLine| {
        let pair =
            line.ranking.pairs.first().filter(|_| line.ranking.metric == Metric::ExactMatch)?;
        Some((line.workload.clone(), line.ranking.region, pair.clone(), line.comparison))
    };
    let all_workloads = report.workloads.iter().filter_map(|workload| {
        let ranking = workload.deciding()?;
        let pair = pair_of(ranking, a, b)?;
        Some((workload.name.clone(), ranking.region, pair.clone(), pair.comparison))
    });
    let mut lines: Vec<(String, Region, RankedPair, Comparison)> =
        planned.clone().filter_map(of_line).collect();
    let is_planned = !lines.is_empty();
    let mut compared: Vec<&Ranking> = planned.map(|line| &line.ranking).collect();
    if !is_planned {
        lines = all_workloads.collect();
        compared = report.workloads.iter().filter_map(Workload::deciding).collect();
    }
    // The count leaves out workloads that were compared by another metric.
    let others = compared.iter().any(|ranking| ranking.metric != Metric::ExactMatch);
    let by = if others { " compared by exact match" } else { "" };
    let all = lines.len();
    let won = lines.iter().filter(|(.., comparison)| separable(Some(comparison))).count();
    let size = |line: &(String, Region, RankedPair, Comparison)| {
        (separable(Some(&line.3)), line.3.paired.mean_difference.abs())
    };
    let (workload, region, pair, comparison) = lines.into_iter().max_by(|x, y| {
        let (x, y) = (size(x), size(y));
        x.0.cmp(&y.0).then(x.1.total_cmp(&y.1))
    })?;
    let largest = if won > 0 && won < all {
        "the largest significant difference"
    } else {
        "the largest difference"
    };
    let number = difference(&pair, &comparison, &workload);
    let names = [&pair.better, &pair.worse].map(|name| report.display(name));
    let p = comparison.p_holm.map_or_else(String::new, |p| format!(", p {}", p_value(p)));
    let (head, of) = match report.answer.as_ref().filter(|_| is_planned) {
        Some(answer) => ("The planned question separates", workloads_of(answer, all, by)),
        None => ("Seeds separate", format!("{}{by}", count(all as u64, "workload"))),
    };
    let size = number.shown(points, " points");
    let [better, worse] = names;
    let what = if separable(Some(&comparison)) {
        format!("{better} is better by {size}{p}")
    } else {
        format!("the mean difference is {size} ({better} minus {worse}), not significant{p}")
    };
    let text = format!(
        "{head} {better} and {worse} on {won} of {of}; {largest} is that on {workload}, {}, where {what}.",
        region.name(),
    );
    Some(AbstractSentence { text, numbers: vec![number] })
}

/// Returns the number of the workloads of an answer that are `chosen`, as `by` says: `2 workloads`; where some of the
/// planned ones have no result, `the 2 workloads computed so far, of 3 planned`.
fn workloads_of(answer: &Answer, chosen: usize, by: &str) -> String {
    let chosen = count(chosen as u64, "workload");
    if answer.lines.len() == answer.planned {
        return format!("{chosen}{by}");
    }
    let and = if by.is_empty() { "" } else { " and" };
    format!("the {chosen} computed so far{and}{by}, of {} planned", answer.planned)
}

fn improvement(report: &Report, overall: &Overall, a: &str, b: &str) -> Option<AbstractSentence> {
    let probability = overall.improvement(a, b)?;
    let number =
        StatedNumber::new(format!("probability {a} {b}"), probability.value, probability.ci95);
    let text = format!(
        "A random training with {} is better than a random one with {} on the same workload with a probability of {}.",
        report.display(a),
        report.display(b),
        number.shown(points, " %"),
    );
    Some(AbstractSentence { text, numbers: vec![number] })
}

/// Exact match outside the training distribution minus that inside, by seed; `None` if the encoding lacks evaluations of
/// either.
fn changes(workload: &Workload, encoding: &str) -> Option<BTreeMap<u64, f64>> {
    let exact = |ranking: &&Ranking| ranking.metric == Metric::ExactMatch;
    let outside = workload.deciding().filter(exact).filter(|r| r.region != Region::Inside)?;
    let inside = workload.ranking(Region::Inside).filter(exact)?;
    let seeds = |ranking: &Ranking| -> Option<BTreeMap<u64, f64>> {
        let is_complete = |r: &&EncodingResult| r.encoding == encoding && r.rank != Rank::Unranked;
        Some(ranking.results.iter().find(is_complete)?.per_seed.iter().copied().collect())
    };
    let (outside, inside) = (seeds(outside)?, seeds(inside)?);
    let both = outside.iter().filter_map(|(seed, out)| Some((*seed, out - inside.get(seed)?)));
    Some(both.collect())
}

/// The changes of two encodings, each the mean over the workloads that have both, for each seed that all of these have.
fn change(report: &Report, a: &str, b: &str) -> Option<AbstractSentence> {
    let of = |workload: &Workload| changes(workload, a).zip(changes(workload, b));
    let (of_a, of_b): (Vec<_>, Vec<_>) = report.workloads.iter().filter_map(of).unzip();
    let workloads = of_a.len();
    let number = |name: &str, all: &[BTreeMap<u64, f64>]| {
        let mean = |seed: &u64| -> Option<f64> {
            let changes: Option<Vec<f64>> =
                all.iter().map(|by_seed| by_seed.get(seed).copied()).collect();
            changes.map(|changes| changes.iter().sum::<f64>() / changes.len() as f64)
        };
        let values: Vec<f64> = all.first()?.keys().filter_map(mean).collect();
        let estimate = Estimate::of(&values)?;
        let interval = estimate.ci95.map(|ends| Metric::ExactMatch.cut_difference(ends));
        Some(StatedNumber::new(format!("change {name}"), estimate.mean, interval))
    };
    let (own, other) = (number(a, &of_a)?, number(b, &of_b)?);
    let signed = |x: f64| if x > 0.0 { format!("+{}", points(x)) } else { points(x) };
    let text = format!(
        "From the training distribution to the evaluations that rank, exact match changes by {} with {} and by {} with {} \
         (mean over {}; intervals over seeds).",
        own.shown(signed, " points"),
        report.display(a),
        other.shown(signed, " points"),
        report.display(b),
        count(workloads as u64, "workload"),
    );
    Some(AbstractSentence { text, numbers: vec![own, other] })
}

fn price(report: &Report, encoding: &str) -> Option<AbstractSentence> {
    let costs =
        || report.workloads.iter().flat_map(|w| &w.costs).filter(|c| c.encoding == encoding);
    let number = |name: &str, ratios: Vec<f64>| {
        let mut ratios = ratios;
        ratios.sort_by(f64::total_cmp);
        let range = (*ratios.first()?, *ratios.last()?);
        Some(StatedNumber::new(format!("{name} {encoding}"), sorted_median(&ratios), Some(range)))
    };
    let flops = number("flops", costs().filter_map(|cost| cost.flops_ratio).collect())?;
    let measured = report.meta.time_ratio(encoding, YARDSTICK);
    let time = match measured {
        Some(ratio) => Some(StatedNumber::new(format!("measured {encoding}"), ratio, None)),
        None => number("seconds", costs().filter_map(EncodingCost::sound_step_ratio).collect()),
    };
    let ratio: fn(f64) -> String = |x| format!("{x:.2}");
    let and_time = time
        .as_ref()
        .map_or_else(String::new, |time| format!(" and {} the time", time.shown(ratio, " times")));
    let source = match (&time, measured) {
        (None, _) => {
            "median and range over the workloads); times are not compared, because no workload has undisturbed times of both"
        }
        (_, None) => "median and range over the workloads)",
        (_, Some(_)) => {
            "operations: median and range over the workloads; time: one run of `pe-bench speed`)"
        }
    };
    let text = format!(
        "A training step with {} takes {} the floating-point operations{and_time} of one with RoPE ({source}.",
        report.display(encoding),
        flops.shown(ratio, " times"),
    );
    Some(AbstractSentence { text, numbers: std::iter::once(flops).chain(time).collect() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use analysis::ReportMeta;
    use records::RunRecord;
    use records::testkit::TestCell;

    fn records() -> Vec<RunRecord> {
        let mut records = Vec::new();
        for workload in ["a", "b"] {
            for seed in 0..8_u64 {
                let noise = 0.01 * seed as f64;
                for (encoding, value) in [("cope", 0.9 + noise), ("rope", 0.75 - noise)] {
                    records.push(TestCell::new(workload, encoding, seed).beyond(value).record());
                }
            }
        }
        records
    }

    #[test]
    fn five_sentences_hold_the_numbers_that_they_state() {
        let report = Report::new(records(), &ReportMeta::default()).unwrap();
        let sentences = abstract_of(&report);
        let texts: Vec<&str> = sentences.iter().map(|sentence| &*sentence.text).collect();
        assert_eq!(sentences.len(), 5, "{texts:?}");
        assert!(texts[0].starts_with("Of 2 encodings trained on 2 workloads (8 seeds), CoPE has"));
        assert!(
            texts[1].starts_with("Seeds separate CoPE and RoPE on 2 of 2 workloads"),
            "{}",
            texts[1]
        );
        assert!(texts[2].contains("with a probability of 100.0 %"), "{}", texts[2]);
        // Inside everything is right; outside 93.5 % and 71.5 % on average.
        assert!(
            texts[3].contains("changes by -6.5 points") && texts[3].contains("by -28.5 points")
        );
        assert!(texts[4].contains("1.00 times") && texts[4].contains("2.00 times"), "{}", texts[4]);
        let numbers = sentences.iter().flat_map(|sentence| &sentence.numbers);
        assert!(numbers.clone().all(|number| number.interval.is_some()));
        assert_eq!(numbers.count(), 8);
    }

    #[test]
    fn a_change_is_at_most_all_of_exact_match() {
        let mut records = records();
        records.retain(|record| record.seed < 2);
        for record in &mut records {
            record.evals[1].exact_match = record.seed as f64;
        }
        let sentences = abstract_of(&Report::new(records, &ReportMeta::default()).unwrap());
        let numbers = sentences.iter().flat_map(|sentence| &sentence.numbers);
        let changes: Vec<_> = numbers.filter(|n| n.name.starts_with("change")).collect();
        // The t interval of 0 and -1 has a half width of 6.35.
        assert_eq!(changes.len(), 2, "{sentences:?}");
        assert!(changes.iter().all(|change| change.interval == Some((-1.0, 1.0))), "{changes:?}");
    }

    #[test]
    fn changes_are_over_the_workloads_of_both_encodings() {
        let mut records = records();
        for seed in 0..8 {
            // A third workload, which only one encoding finished: the long evaluation of the other is missing.
            let cope = TestCell::new("c", "cope", seed).eval("sparse", false, 256, 0.1);
            let rope = TestCell::new("c", "rope", seed).eval("sparse", false, 256, 0.1);
            let nope = TestCell::new("c", "nope", seed).eval("sparse", false, 256, 0.1);
            records.extend([cope.record(), nope.record(), rope.limited_to(128).record()]);
        }
        let report = Report::new(records, &ReportMeta::default()).unwrap();
        let text = change(&report, "cope", "rope").unwrap().text;
        assert!(
            text.contains("changes by -6.5 points") && text.contains("by -28.5 points"),
            "{text}"
        );
        assert!(text.ends_with("(mean over 2 workloads; intervals over seeds)."), "{text}");
    }

    #[test]
    fn a_count_of_workloads_says_that_others_were_compared_by_another_metric() {
        let mut records = records();
        for seed in 0..8 {
            for (encoding, nll) in [("cope", 1.5), ("rope", 1.6)] {
                records.push(TestCell::new("text", encoding, seed).text(1.4, nll).record());
            }
        }
        let sentences = abstract_of(&Report::new(records, &ReportMeta::default()).unwrap());
        assert!(
            sentences[1].text.contains(" on 2 of 2 workloads compared by exact match;"),
            "{}",
            sentences[1].text
        );
    }

    #[test]
    fn a_difference_that_is_not_significant_is_better_for_neither() {
        let mut records = records();
        for record in records.iter_mut().filter(|r| r.encoding.name == "cope") {
            record.evals[1].exact_match = if record.seed < 4 { 0.99 } else { 0.6 };
        }
        let report = Report::new(records, &ReportMeta::default()).unwrap();
        let text = contrast(&report, "cope", "rope").unwrap().text;
        assert!(text.contains("on 0 of 2 workloads; the largest difference"), "{text}");
        assert!(text.contains("where the mean difference is 8.0 points ["), "{text}");
        assert!(text.contains("(CoPE minus RoPE), not significant, p = "), "{text}");
    }

    #[test]
    fn the_first_sentence_counts_the_workloads_of_the_aggregate() {
        let mut records = records();
        for seed in 0..8 {
            records.push(TestCell::new("c", "cope", seed).record());
            for (encoding, nll) in [("cope", 1.5), ("rope", 1.6)] {
                records.push(TestCell::new("text", encoding, seed).text(1.4, nll).record());
            }
        }
        let first = |records: &[RunRecord]| {
            let report = Report::new(records, &ReportMeta::default()).unwrap();
            abstract_of(&report).remove(0).text
        };
        let text = first(&records);
        assert!(text.contains(" trained on 3 workloads "), "{text}");
        let outside = "above chance on the 2 with exact match outside the training distribution, ";
        assert!(text.contains(outside), "{text}");
        for record in records.iter_mut().filter(|r| r.workload == "a") {
            record.evals.remove(0);
            record.evals[0].in_distribution = true;
            record.evals[0].len = 64;
        }
        let text = first(&records);
        assert!(!text.contains("outside"), "{text}");
    }

    #[test]
    fn disturbed_times_are_not_stated_and_one_workload_has_no_abstract() {
        let mut records = records();
        for record in &mut records {
            record.host.jobs = 2;
        }
        let report = Report::new(&records, &ReportMeta::default()).unwrap();
        let last = abstract_of(&report).pop().unwrap();
        assert!(
            last.text.contains("no workload has undisturbed times of both")
                && last.numbers.len() == 1
        );
        records.retain(|record| record.workload == "a");
        assert_eq!(abstract_of(&Report::new(&records, &ReportMeta::default()).unwrap()), []);
    }
}
