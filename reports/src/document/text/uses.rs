//! Which encoding for which use.

use super::abstract_of::{AbstractSentence, StatedNumber};
use super::answers::{self, price};
use super::leaders;
use analysis::ranking::{EncodingResult, MeanResult, Ranking, by_mean};
use analysis::{Ends, Overall, OverallScore, Report, YARDSTICK};
use records::number::{count, listed, listed_first, percent, points, si, value_and_interval};
use records::settings::UseCase;

/// Number of encodings that are named for a use.
const NAMED: usize = 3;

/// Returns a sentence on each use that the suite names, and one on all tasks; nothing for a suite that names none.
pub fn uses(report: &Report) -> Vec<AbstractSentence> {
    let mut sentences: Vec<AbstractSentence> =
        report.settings.uses.iter().filter_map(|one| sentence(report, one)).collect();
    if !sentences.is_empty() {
        sentences.extend(report.overall.as_ref().and_then(|overall| all(report, overall)));
    }
    sentences
}

/// Returns three findings for a README: the best encodings over all tasks, the best one of each use, and how far these results
/// go; nothing for a suite that names no uses.
pub fn in_short(report: &Report) -> Vec<String> {
    let best = report.settings.uses.iter().filter_map(|one| {
        let rankings = rankings(report, one)?;
        let metric = rankings.first()?.metric;
        let order = by_mean(&rankings);
        let first: Vec<&MeanResult> = order.iter().filter(|own| own.is_first).collect();
        let shown = &first[..first.len().min(NAMED)];
        let values = shown.iter().map(|own| metric.show(own.mean)).collect::<Vec<_>>();
        let names = first.iter().map(|own| report.display(&own.encoding).to_owned());
        let names = listed_first(NAMED, &names.collect::<Vec<_>>(), "or");
        let name = if metric.higher_is_better() { "" } else { metric.name() };
        let score = format!("{name} {}", listed(&values, "and"));
        let mut letters = one.name.chars();
        let initial =
            letters.next().map_or_else(String::new, |letter| letter.to_lowercase().collect());
        Some(format!("{names} for {initial}{} ({})", letters.as_str(), score.trim_start()))
    });
    let best: Vec<String> = best.collect();
    if best.is_empty() {
        return Vec::new();
    }
    let of_uses =
        format!("Which encoding scores highest depends on the use: {}.", listed(&best, "and"));
    let reach: Vec<String> = leaders(report).into_iter().chain(size(report)).collect();
    let reach = Some(reach.join(" ")).filter(|text| !text.is_empty());
    answers::in_short(report).into_iter().chain([of_uses]).chain(reach).collect()
}

/// Returns when to use an encoding: the uses for which it is in the first rank or among the best ones that a report names, what it
/// costs, and which encoding scores higher without costing more; `None` for a suite that names no uses.
pub(crate) fn when_to_use(report: &Report, name: &str) -> Option<String> {
    let mut known = 0_u64;
    let (mut first, mut near) = (Vec::new(), Vec::new());
    for one in &report.settings.uses {
        let Some(rankings) = rankings(report, one) else { continue };
        known += 1;
        if is_first(&rankings, name) {
            first.push(format!("“{}”", one.name));
        } else if by_mean(&rankings).iter().take(NAMED).any(|own| own.encoding == name) {
            near.push(format!("“{}”", one.name));
        }
    }
    let parts =
        [(first, "where it is in the first rank"), (near, "where it is among the best three")];
    let parts = parts.into_iter().filter(|(uses, _)| !uses.is_empty());
    let parts: Vec<String> =
        parts.map(|(uses, why)| format!("for {}, {why}", listed(&uses, "and"))).collect();
    let cost = price(report, name).filter(|_| name != YARDSTICK);
    let cost =
        cost.map_or_else(String::new, |(ratio, unit)| format!("; its cost is {ratio:.2} {unit}"));
    let found = match (known, parts.is_empty()) {
        (0, _) => return None,
        (_, true) => format!(
            "When to use it: it is neither in the first rank nor among the best three for any of {}{cost}.",
            count(known, "use")
        ),
        (_, false) => format!("When to use it: {}{cost}.", parts.join(", and ")),
    };
    Some(found + &better_at_its_price(report, name).unwrap_or_default())
}

/// Returns a sentence, after a space, on the best encoding that costs at most as much as this one and has an aggregate whose
/// interval is above that of this one.
fn better_at_its_price(report: &Report, name: &str) -> Option<String> {
    let scores = &report.overall.as_ref()?.scores;
    let own = scores.iter().find(|score| score.encoding == name)?;
    let ((most, unit), (_, end)) = (price(report, name)?, own.ci95?);
    let is_better = |score: &&OverallScore| {
        let price = price(report, &score.encoding);
        let is_cheap = price.is_some_and(|(ratio, of)| of == unit && ratio <= most);
        is_cheap && score.ci95.is_some_and(|(start, _)| start > end)
    };
    let better = scores.iter().find(is_better)?;
    Some(format!(
        " {} costs at most as much per step and scores higher over all tasks: {}, compared with {} for {}.",
        report.display(&better.encoding),
        percent(better.value),
        percent(own.value),
        report.display(name)
    ))
}

/// Returns the rankings of the workloads of a use; `None` unless all of them are ranked by one metric.
fn rankings<'a>(report: &'a Report, one: &UseCase) -> Option<Vec<&'a Ranking>> {
    let ranking = |task: &String| report.workloads.iter().find(|w| w.name == *task)?.deciding();
    let rankings: Vec<&Ranking> = one.tasks.iter().map(ranking).collect::<Option<_>>()?;
    let metric = rankings.first()?.metric;
    rankings.iter().all(|ranking| ranking.metric == metric).then_some(rankings)
}

/// Whether an encoding is in the first rank of all rankings.
fn is_first(rankings: &[&Ranking], name: &str) -> bool {
    let first = |r: &EncodingResult| r.encoding == name && r.group == Some(1);
    rankings.iter().all(|r| r.results.iter().any(first))
}

/// Returns the best encodings of a use by their mean over its workloads, and RoPE; `None` unless all of them are ranked by one
/// metric.
fn sentence(report: &Report, one: &UseCase) -> Option<AbstractSentence> {
    let rankings = rankings(report, one)?;
    let Ranking { metric, region, .. } = rankings.first()?;
    let is_shown =
        |(place, own): &(usize, &MeanResult)| *place < NAMED || own.encoding == YARDSTICK;
    let order = by_mean(&rankings);
    let shown = order.iter().enumerate().filter(is_shown);
    let number =
        |(_, own): (_, &MeanResult)| StatedNumber::new(own.encoding.clone(), own.mean, None);
    let mut numbers: Vec<StatedNumber> = shown.map(number).collect();
    let named =
        |own: &StatedNumber| format!("{} {}", report.display(&own.name), metric.show(own.value));
    let best: Vec<String> = numbers.iter().take(NAMED).map(named).collect();
    let rope = numbers.get(NAMED).map_or_else(String::new, |rope| format!("; {}", named(rope)));
    let names = order.iter().filter(|own| is_first(&rankings, &own.encoding));
    let first: Vec<String> = names.map(|own| report.display(&own.encoding).to_owned()).collect();
    let first = match first.len() {
        0 => String::new(),
        _ if rankings.len() == 1 => format!(" Ranked first: {}.", listed(&first, "and")),
        _ => format!(" Ranked first on all these workloads: {}.", listed(&first, "and")),
    };
    let same = rankings.iter().all(|ranking| ranking.region == *region);
    let region = if same { region.name() } else { "outside of the training distribution" };
    let mean = if metric.higher_is_better() { "mean" } else { "geometric mean" };
    let code = |task: &String| format!("`{task}`");
    let over = match &one.tasks[..] {
        [task] => format!("on {}", code(task)),
        tasks if tasks.len() <= NAMED => {
            format!("{mean} over {}", listed(&tasks.iter().map(code).collect::<Vec<_>>(), "and"))
        }
        tasks => format!("{mean} over {}", count(tasks.len() as u64, "workload")),
    };
    let text = format!(
        "{}: {}{rope} ({} {region}, {over}).{first}",
        one.name,
        listed(&best, "and"),
        metric.name()
    );
    for number in &mut numbers {
        number.name = format!("use {} {}", number.name, one.name);
    }
    Some(AbstractSentence { text, numbers })
}

/// Returns the encodings with the best aggregates, each with the price of a step, and the size of the models.
fn all(report: &Report, overall: &Overall) -> Option<AbstractSentence> {
    let scores = &overall.scores[..overall.scores.len().min(NAMED + 1)];
    let numbers: Vec<StatedNumber> = scores
        .iter()
        .map(|own| StatedNumber::new(format!("score {}", own.encoding), own.value, own.ci95))
        .collect();
    let named = scores.iter().enumerate().map(|(place, own)| {
        let score = value_and_interval(percent(own.value), own.ci95, points);
        let unit = if place == 0 { " times RoPE's step time" } else { "" };
        let price = report.step_time_ratio(&own.encoding);
        let price = price.map_or_else(String::new, |ratio| format!(" at {ratio:.2}{unit}"));
        format!("{} {score}{price}", report.display(&own.encoding))
    });
    let named: Vec<String> = named.collect();
    let size = size(report).map_or_else(String::new, |text| format!(" {text}"));
    let text = format!("All tasks: {} ({}).{size}", listed(&named, "and"), Overall::NAME);
    (!numbers.is_empty()).then_some(AbstractSentence { text, numbers })
}

/// Returns how large the models are.
fn size(report: &Report) -> Option<String> {
    let Ends { most_params: Some(most), .. } = report.conditions.ends.as_ref()? else {
        return None;
    };
    Some(format!(
        "No model has more than {} parameters. The result has not been shown to hold for larger models.",
        si(*most as f64)
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use analysis::{MeasuredStep, ReportMeta};
    use records::settings::Settings;
    use records::testkit::{TestCell, two_workloads};

    /// A report of two workloads with exact match and one of text.
    fn report(tasks: &[&str]) -> Report {
        let mut records = two_workloads();
        for seed in 0..8 {
            let text =
                |encoding: &str, nll: f64| TestCell::new("text", encoding, seed).text(1.4, nll);
            records
                .extend([("cope", 1.5), ("rope", 1.6)].map(|(name, nll)| text(name, nll).record()));
        }
        let tasks = tasks.iter().map(|task| (*task).to_owned()).collect();
        let uses = vec![UseCase { name: "Reading".to_owned(), tasks }];
        let settings = Settings { uses, ..Settings::default() };
        let frames = analysis::frame::Frames::of(&records).unwrap();
        Report::with(frames, &ReportMeta::default(), &settings).unwrap()
    }

    fn sentences(tasks: &[&str]) -> Vec<String> {
        super::uses(&report(tasks)).into_iter().map(|sentence| sentence.text).collect()
    }

    #[test]
    fn a_readme_gets_three_findings_with_their_numbers() {
        let found = in_short(&report(&["v", "w"]));
        assert!(found[0].starts_with("Over all tasks CoPE scores highest: 77.0% ["), "{found:?}");
        assert_eq!(
            found[1],
            "Which encoding scores highest depends on the use: CoPE for reading (88.5%)."
        );
        assert!(
            found[2].ends_with(" The result has not been shown to hold for larger models."),
            "{found:?}"
        );
        let text = &in_short(&report(&["text"]))[1];
        assert!(text.ends_with("CoPE for reading (perplexity 4.48)."), "{text}");
        assert_eq!(in_short(&report(&["v", "text"])), Vec::<String>::new());
    }

    #[test]
    fn when_to_use_an_encoding_says_what_is_better_for_the_same_price() {
        let step = |encoding: &str, step_seconds: f64| MeasuredStep {
            encoding: encoding.into(),
            step_seconds,
            peak_bytes: None,
        };
        let mut report = report(&["w"]);
        report.meta.measured = vec![step("rope", 0.5), step("cope", 0.5)];
        let found = |report: &Report, name: &str| when_to_use(report, name).unwrap();
        assert_eq!(
            found(&report, "cope"),
            "When to use it: for “Reading”, where it is among the best three; its cost is 1.00 times RoPE's step time."
        );
        let rope = found(&report, "rope");
        assert!(rope.starts_with("When to use it: for “Reading”, where it is among"), "{rope}");
        assert!(
            rope.contains(
                ". CoPE costs at most as much per step and scores higher over all tasks: 77.0%, compared with "
            ),
            "{rope}"
        );
        report.meta.measured[1].step_seconds = 0.6;
        assert!(!found(&report, "rope").contains("scores higher"), "CoPE costs more");
    }

    #[test]
    fn a_use_names_the_best_by_mean_and_all_tasks_come_last() {
        let found = sentences(&["v", "w"]);
        assert!(
            found[0].starts_with("Reading: CoPE 88.5% and RoPE 78.5% (exact match on other"),
            "{found:?}"
        );
        assert!(found[0].contains("mean over `v` and `w`)"), "{found:?}");
        assert!(found[1].starts_with("All tasks: CoPE 77.0% [") && found.len() == 2, "{found:?}");
        let text = &sentences(&["text"])[0];
        assert!(text.starts_with("Reading: CoPE 4.48 and RoPE 4.95 (perplexity"), "{text}");
        assert!(text.ends_with(", on `text`). Ranked first: CoPE."), "{text}");
    }

    #[test]
    fn workloads_of_two_metrics_or_without_results_have_no_common_best() {
        assert_eq!((sentences(&["v", "text"]).len(), sentences(&["v", "x"]).len()), (0, 0));
    }
}
