//! Which encoding for which use.

use super::abstract_of::{AbstractSentence, StatedNumber};
use analysis::ranking::{EncodingResult, Ranking};
use analysis::{Ends, Overall, Report, YARDSTICK};
use records::number::{count, listed, percent, points, si, value_and_interval};
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

/// Returns the uses for which an encoding is among the best ones that a report names.
pub(crate) fn uses_of(report: &Report, name: &str) -> Vec<String> {
    let is_named = |one: &&UseCase| {
        let order = rankings(report, one).map(|rankings| order(report, &rankings));
        order.is_some_and(|order| order.iter().take(NAMED).any(|own| own.name == name))
    };
    report.settings.uses.iter().filter(is_named).map(|one| one.name.clone()).collect()
}

/// Returns the rankings of the workloads of a use; `None` unless all of them are ranked by one metric.
fn rankings<'a>(report: &'a Report, one: &UseCase) -> Option<Vec<&'a Ranking>> {
    let ranking = |task: &String| report.workloads.iter().find(|w| w.name == *task)?.deciding();
    let rankings: Vec<&Ranking> = one.tasks.iter().map(ranking).collect::<Option<_>>()?;
    let metric = rankings.first()?.metric;
    rankings.iter().all(|ranking| ranking.metric == metric).then_some(rankings)
}

/// Returns the encodings by their mean over rankings of one metric, the best first.
fn order(report: &Report, rankings: &[&Ranking]) -> Vec<StatedNumber> {
    let of_all = |name: &str| {
        let mean = |ranking: &&Ranking| {
            let ranked = ranking.ranked();
            ranked.iter().find(|result| result.encoding == name).map(|result| result.mean())
        };
        let means: Option<Vec<f64>> = rankings.iter().map(mean).collect();
        means.map(|means| means.iter().sum::<f64>() / means.len() as f64)
    };
    let mut order: Vec<StatedNumber> = report
        .encodings
        .iter()
        .filter_map(|own| Some(StatedNumber::new(own.name.clone(), of_all(&own.name)?, None)))
        .collect();
    order.sort_by(|a, b| {
        let order = a.value.total_cmp(&b.value);
        let is_share = rankings.iter().any(|ranking| ranking.metric.higher_is_better());
        if is_share { order.reverse() } else { order }
    });
    order
}

/// Returns the best encodings of a use by their mean over its workloads, and RoPE; `None` unless all of them are ranked by one
/// metric.
fn sentence(report: &Report, one: &UseCase) -> Option<AbstractSentence> {
    let rankings = rankings(report, one)?;
    let Ranking { metric, region, .. } = rankings.first()?;
    let is_shown = |(place, own): &(usize, StatedNumber)| *place < NAMED || own.name == YARDSTICK;
    let mut numbers: Vec<StatedNumber> = order(report, &rankings)
        .into_iter()
        .enumerate()
        .filter(is_shown)
        .map(|(_, own)| own)
        .collect();
    let named =
        |own: &StatedNumber| format!("{} {}", report.display(&own.name), metric.show(own.value));
    let best: Vec<String> = numbers.iter().take(NAMED).map(named).collect();
    let rope = numbers.get(NAMED).map_or_else(String::new, |rope| format!("; {}", named(rope)));
    let is_first = |name: &str| {
        let first = |r: &EncodingResult| r.encoding == name && r.group == Some(1);
        rankings.iter().all(|r| r.has_several_ranks() && r.results.iter().any(first))
    };
    let names = report.encodings.iter().filter(|own| is_first(&own.name));
    let first: Vec<String> = names.map(|own| own.display.clone()).collect();
    let first = match first.len() {
        0 => String::new(),
        _ if rankings.len() == 1 => format!(" First rank: {}.", listed(&first, "and")),
        _ => format!(" First rank on each: {}.", listed(&first, "and")),
    };
    let same = rankings.iter().all(|ranking| ranking.region == *region);
    let region = if same { region.name() } else { "outside of the training distribution" };
    let mean = if metric.higher_is_better() { "mean" } else { "geometric mean" };
    let over = match &one.tasks[..] {
        [task] => task.clone(),
        tasks if tasks.len() <= NAMED => format!("{mean} over {}", listed(tasks, "and")),
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
    let size = match &report.conditions.ends {
        Some(Ends { most_params: Some(most), .. }) => {
            format!(
                " No model has more than {} parameters. The result has not been shown to hold at \
                 scale.",
                si(*most as f64)
            )
        }
        _ => String::new(),
    };
    let text = format!("All tasks: {} ({}).{size}", listed(&named, "and"), Overall::NAME);
    (!numbers.is_empty()).then_some(AbstractSentence { text, numbers })
}

#[cfg(test)]
mod tests {
    use super::*;
    use analysis::ReportMeta;
    use records::settings::Settings;
    use records::testkit::{TestCell, two_workloads};

    /// The sentences on a report of two workloads with exact match and one of text.
    fn sentences(tasks: &[&str]) -> Vec<String> {
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
        let report = Report::with(frames, &ReportMeta::default(), &settings).unwrap();
        super::uses(&report).into_iter().map(|sentence| sentence.text).collect()
    }

    #[test]
    fn a_use_names_the_best_by_mean_and_all_tasks_come_last() {
        let found = sentences(&["v", "w"]);
        assert!(
            found[0].starts_with("Reading: CoPE 88.5% and RoPE 78.5% (exact match on other"),
            "{found:?}"
        );
        assert!(found[0].contains("mean over v and w)"), "{found:?}");
        assert!(found[1].starts_with("All tasks: CoPE 77.0% [") && found.len() == 2, "{found:?}");
        let text = &sentences(&["text"])[0];
        assert!(text.starts_with("Reading: CoPE 4.48 and RoPE 4.95 (perplexity"), "{text}");
        assert!(text.ends_with(", text). First rank: CoPE."), "{text}");
    }

    #[test]
    fn workloads_of_two_metrics_or_without_results_have_no_common_best() {
        assert_eq!((sentences(&["v", "text"]).len(), sentences(&["v", "x"]).len()), (0, 0));
    }
}
