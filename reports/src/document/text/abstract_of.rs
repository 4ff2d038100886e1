//! The results of a report in four sentences, each with a number and its interval.

use std::collections::BTreeMap;

use analysis::ranking::{EncodingResult, Rank, RankedPair, Ranking, separable};
use analysis::{AnswerLine, EncodingCost, Overall, Report, Workload, YARDSTICK};
use records::Metric;
use records::number::{count, p_value, points, value_and_interval};
use records::settings::Region;
use stats::{Estimate, sorted_median};

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
    /// Quantity and encodings: `use cope Counting`, `score cope`, `difference cope rope counting`, `change cope`, `flops cope`,
    /// `seconds cope`, `measured cope`, `training cope`.
    pub name: String,
    /// Value of the quantity.
    pub value: f64,
    /// 95% interval, or for prices the range over the workloads; `None` for a single measurement and means of a use.
    pub interval: Option<(f64, f64)>,
}

impl StatedNumber {
    pub(super) fn new(name: String, value: f64, interval: Option<(f64, f64)>) -> Self {
        Self { name, value, interval }
    }

    fn shown(&self, show: fn(f64) -> String, unit: &str) -> String {
        value_and_interval(show(self.value) + unit, self.interval, show)
    }
}

/// Returns the abstract of a report: the encoding with the best aggregate, the planned question (or its largest difference from
/// RoPE), the change from the training distribution to other lengths, and the price.
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
        planned(report).or_else(|| largest(report, best, other)),
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
        Some(((low, _), (_, high))) if low <= high => "; their 95% intervals overlap",
        _ => "",
    };
    let seeds = match report.seeds() {
        Some((low, high)) if low == high => count(low, "seed"),
        Some((low, high)) => format!("{low} to {high} seeds"),
        None => "no seeds".to_owned(),
    };
    let (all, scored) = (overall.workloads.len(), overall.scored.len());
    let over = if all == scored {
        count(all as u64, "workload")
    } else {
        format!("the {scored} of {all} workloads that are ranked by exact match")
    };
    let inside = |workload: &Workload| {
        let region = workload.deciding().map(|ranking| ranking.region);
        overall.scored.contains(&workload.name) && region == Some(Region::Inside)
    };
    let outside =
        if report.workloads.iter().any(inside) { "" } else { " outside the training distribution" };
    let mut numbers = numbers;
    let rope = overall.scores[2..].iter().position(|score| score.encoding == YARDSTICK);
    let rope = rope.map_or_else(String::new, |place| {
        numbers.push(number(place + 2));
        format!("; {} gets {}", name(place + 2), numbers[2].shown(points, "%"))
    });
    let text = format!(
        "{} scores highest{outside}: {}, ahead of {} with {}{overlap}{rope}. The score of an encoding is its {} over {seeds} on \
         {over}; {} are compared. 0% means guessing, and 100% means that all answers are right.",
        name(0),
        numbers[0].shown(points, "%"),
        name(1),
        numbers[1].shown(points, "%"),
        Overall::NAME,
        count(overall.scores.len() as u64, "encoding"),
    );
    AbstractSentence { text, numbers }
}

/// The pair of two encodings in a ranking by exact match, in either order.
fn pair_of<'a>(ranking: &'a Ranking, a: &str, b: &str) -> Option<&'a RankedPair> {
    let pair = ranking.pair(a, b).or_else(|| ranking.pair(b, a));
    pair.filter(|_| ranking.metric == Metric::ExactMatch)
}

fn difference(pair: &RankedPair, workload: &str) -> StatedNumber {
    let name = format!("difference {} {} {workload}", pair.better, pair.worse);
    let paired = &pair.comparison.paired;
    let interval = paired.ci95.map(|ends| Metric::ExactMatch.cut_difference(ends));
    StatedNumber::new(name, paired.mean_difference, interval)
}

/// Joins clauses that have commas of their own: `a`, `a and b`, `a, b and c`.
fn all_of(clauses: &[String]) -> String {
    match clauses {
        [first @ .., last] if !first.is_empty() => format!("{} and {last}", first.join(", ")),
        _ => clauses.concat(),
    }
}

/// The planned question on the workloads that are compared by exact match; `None` if there is none.
fn planned(report: &Report) -> Option<AbstractSentence> {
    let answer = report.answer.as_ref()?;
    let exact = |line: &&AnswerLine| line.ranking.metric == Metric::ExactMatch;
    let lines: Vec<&AnswerLine> = answer.lines.iter().filter(exact).collect();
    let mut numbers = Vec::new();
    let mut clauses: BTreeMap<Option<&str>, Vec<String>> = BTreeMap::new();
    for line in &lines {
        let pair = &line.pair;
        let number = difference(pair, &line.workload);
        let size = number.shown(points, " points");
        let clause = if line.better().is_some() {
            format!("by {size} on `{}`", line.workload)
        } else {
            let [a, b] = [&pair.better, &pair.worse].map(|name| report.display(name));
            format!("`{}` ({a} minus {b}: {size})", line.workload)
        };
        clauses.entry(line.better()).or_default().push(clause);
        numbers.push(number);
    }
    let [a, b] = answer.question.compared();
    let won = |own: &str, other: &str| {
        let clauses = clauses.get(&Some(own))?;
        let (own, other) = (report.display(own), report.display(other));
        Some(format!("{own} is better than {other} {}.", all_of(clauses)))
    };
    let neither = |on: &Vec<String>| {
        format!(
            "After Holm's correction, the two encodings are not separable on {}. The intervals are not corrected.",
            all_of(on)
        )
    };
    let parts = [won(&a, &b), won(&b, &a), clauses.get(&None).map(neither)];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    let of = if lines.len() == answer.planned {
        String::new()
    } else {
        format!(", with results by exact match on {} of them", lines.len())
    };
    let text = format!(
        "The planned question compares {} with {} on {}{of}. {}",
        report.display(&a),
        report.display(&b),
        count(answer.planned as u64, "workload"),
        parts.join(" ")
    );
    (!lines.is_empty()).then_some(AbstractSentence { text, numbers })
}

/// The largest significant difference between two encodings by exact match, or the largest one if none is significant.
fn largest(report: &Report, a: &str, b: &str) -> Option<AbstractSentence> {
    let rankings = || report.workloads.iter().filter_map(|w| Some((w, w.deciding()?)));
    let pairs = rankings().filter_map(|(workload, ranking)| {
        Some((&workload.name, ranking.region, pair_of(ranking, a, b)?))
    });
    let pairs: Vec<(&String, Region, &RankedPair)> = pairs.collect();
    let is_won = |pair: &RankedPair| separable(Some(&pair.comparison));
    let won = pairs.iter().filter(|(.., pair)| is_won(pair)).count();
    let size = |pair: &RankedPair| pair.comparison.paired.mean_difference.abs();
    let (workload, region, pair) = pairs
        .iter()
        .max_by(|(.., x), (.., y)| is_won(x).cmp(&is_won(y)).then(size(x).total_cmp(&size(y))))?;
    let significant = if won > 0 && won < pairs.len() { "significant " } else { "" };
    let number = difference(pair, workload);
    let [better, worse] = [&pair.better, &pair.worse].map(|name| report.display(name));
    let p = pair.comparison.p_holm.map_or_else(String::new, |p| format!(" (p {})", p_value(p)));
    let size = number.shown(points, " points");
    let what = if is_won(pair) {
        format!("{better} is better by {size}{p}")
    } else {
        format!("the mean of {better} minus that of {worse} is {size}, which is not significant{p}")
    };
    // The count leaves out workloads that are ranked by another metric.
    let others = rankings().any(|(_, ranking)| ranking.metric != Metric::ExactMatch);
    let by = if others { " compared by exact match" } else { "" };
    let text = format!(
        "{better} and {worse} differ significantly on {won} of {}{by}. The largest {significant}difference is on \
         `{workload}`, {}: {what}.",
        count(pairs.len() as u64, "workload"),
        region.name(),
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
    let moves = |number: &StatedNumber, name: &str| {
        let StatedNumber { value, interval, .. } = *number;
        let (verb, interval) = if value < 0.0 {
            ("costs", interval.map(|(low, high)| (-high, -low)))
        } else {
            ("gains", interval)
        };
        let size = value_and_interval(points(value.abs()) + " points", interval, points);
        format!("{verb} {} {size}", report.display(name))
    };
    let text = format!(
        "Leaving the training distribution {} of exact match and {}. Both numbers are means over {} of the difference \
         between exact match in distribution and in the region by which the workload is ranked. The intervals are over \
         seeds.",
        moves(&own, a),
        moves(&other, b),
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
    let ratios = || costs().filter_map(|cost| cost.flops_training_ratio.zip(cost.flops_ratio));
    let training = number("training", ratios().map(|(training, _)| training).collect());
    // Without early stops it is the ratio of a step.
    let stops = ratios().any(|(training, step)| (training / step - 1.0).abs() > 1e-9);
    let training = training.filter(|_| stops);
    let and_training = training.as_ref().map_or_else(String::new, |training| {
        format!(
            " A whole run, which stops when the task is solved, takes {} the operations of a whole run with RoPE.",
            training.shown(ratio, " times")
        )
    });
    let source = match (&time, measured) {
        (None, _) => {
            "Ratios are medians over the workloads, with the range in brackets. Times are not compared, because no \
             workload has undisturbed times of both encodings."
        }
        (_, None) => "Ratios are medians over the workloads, with the range in brackets.",
        (_, Some(_)) => {
            "Ratios of operations are medians over the workloads, with the range in brackets. The ratio of times comes \
             from one run of `pe-bench speed`."
        }
    };
    let text = format!(
        "A training step with {} takes {} the floating-point operations{and_time} of a step with RoPE.{and_training} \
         {source}",
        report.display(encoding),
        flops.shown(ratio, " times"),
    );
    Some(AbstractSentence {
        text,
        numbers: std::iter::once(flops).chain(time).chain(training).collect(),
    })
}

#[cfg(test)]
mod tests;
