//! Sentences on the aggregate over workloads and on the question of a suite.

use super::workload::{chance_text, difference_text};
use crate::analysis::{Answer, AnswerLine, Overall, OverallScore, Report};
use crate::number::{count, listed, p_value, value_and_interval};
use crate::stats::seeds_needed;

/// Returns a sentence on the encoding with the best aggregate over the workloads.
pub(super) fn lead_sentence(report: &Report, overall: &Overall) -> String {
    let tasks = count(overall.scored.len() as u64, "workload");
    let [first, second, ..] = overall.scores.as_slice() else {
        return mean_rank_sentence(report, overall);
    };
    let share = |value: f64| format!("{:.0}", 100.0 * value);
    let value =
        |score: &OverallScore| value_and_interval(share(score.value) + " %", score.ci95, share);
    let [name_a, name_b] = [first, second].map(|score| report.display(&score.encoding));
    let [value_a, value_b] = [first, second].map(value);
    let name = Overall::NAME;
    let best = format!("{name_a} has the best {name} over {tasks}, {value_a}");
    match (first.ci95, second.ci95) {
        _ if overall.scores.iter().all(|score| score.ci95.is_some_and(|(low, _)| low <= 0.0)) => {
            format!(
                "No encoding is above chance over {tasks}: the best {name} is that of {name_a}, {value_a}."
            )
        }
        (Some((low, _)), Some((_, high))) if low > high => {
            format!("{best}, before {name_b} with {value_b} (95 % intervals).")
        }
        (Some(_), Some(_)) => format!(
            "{name_a} and {name_b} have the best {name} over {tasks}, {value_a} and {value_b}; their 95 % intervals \
             overlap."
        ),
        (Some(_), None) => {
            format!("{best}, before {name_b} with {value_b}, which has no interval.")
        }
        (None, _) => format!("{best}; with one seed there is no interval."),
    }
}

/// Returns a sentence on mean ranks, for reports without scores above chance.
fn mean_rank_sentence(report: &Report, overall: &Overall) -> String {
    let ranks = &overall.ranks;
    let best = ranks.ranks[0];
    let first: Vec<String> = overall
        .ranked
        .iter()
        .zip(&ranks.ranks)
        .filter(|(_, rank)| (**rank - best).abs() < 1e-9)
        .map(|(name, _)| report.display(name).to_owned())
        .collect();
    let (verb, each) = if first.len() == 1 { ("has", "") } else { ("have", " each") };
    let found = if ranks.differ() { "finds a difference" } else { "finds no difference" };
    format!(
        "{} {verb} the best mean rank of {} over {}, {best:.1}{each}; Friedman's test {found} (p {}).",
        listed(&first, "and"),
        count(overall.ranked.len() as u64, "encoding"),
        count(ranks.tasks, "workload"),
        p_value(ranks.p)
    )
}

/// Returns a sentence that answers the question of the suite.
pub(super) fn answer_sentence(report: &Report, answer: &Answer) -> String {
    let [a, b] = answer.question.encodings.each_ref().map(|name| report.display(name));
    match answer.lines.as_slice() {
        [] => format!(
            "Planned question, {a} against {b}: not answered ({}).",
            if answer.unanswered.is_empty() {
                "no finished cell of either".to_owned()
            } else {
                answer.unanswered.join("; ")
            }
        ),
        [line] => {
            let on = if answer.planned > 1 {
                format!(" on {}", workloads_of(answer, 1, ""))
            } else {
                String::new()
            };
            format!("Planned question, {a} against {b}{on}: {}.", line_text(report, line))
        }
        lines => {
            let won = |name: &str| lines.iter().filter(|line| line.better() == Some(name)).count();
            let [wins_a, wins_b] = answer.question.encodings.each_ref().map(|name| won(name));
            let level = lines.len() - wins_a - wins_b;
            format!(
                "Planned question, {a} against {b} on {}: {a} is better on {wins_a}, {b} on {wins_b}, and {level} {} not \
                 separate them.",
                workloads_of(answer, lines.len(), ""),
                if level == 1 { "does" } else { "do" }
            )
        }
    }
}

/// Returns the number of the workloads of an answer that are `chosen`, as `by` says: `2 workloads`; where some of the
/// planned ones have no result, `the 2 workloads computed so far, of 3 planned`.
pub(super) fn workloads_of(answer: &Answer, chosen: usize, by: &str) -> String {
    let chosen = count(chosen as u64, "workload");
    if answer.lines.len() == answer.planned {
        return format!("{chosen}{by}");
    }
    let and = if by.is_empty() { "" } else { " and" };
    format!("the {chosen} computed so far{and}{by}, of {} planned", answer.planned)
}

/// Returns the verdict on one workload: `on w, at longer lengths, CoPE is better than RoPE (...)`.
pub(crate) fn line_text(report: &Report, line: &AnswerLine) -> String {
    let ranking = &line.ranking;
    let Some(pair) = ranking.pairs.first() else { return "nothing is compared".to_owned() };
    let (better, worse) = (report.display(&pair.better), report.display(&pair.worse));
    let value = |name: &str| {
        let estimate = line.result(name).and_then(|result| result.estimate);
        estimate.map_or_else(String::new, |e| ranking.metric.show(e.mean))
    };
    let values = format!(
        "{} {} and {}{}; {}",
        ranking.metric.name(),
        value(&pair.better),
        value(&pair.worse),
        chance_text(ranking),
        difference_text(ranking.metric, &line.comparison)
    );
    let (n, needed) = (line.comparison.paired.n, seeds_needed(line.comparison.family.max(1)));
    let place = format!("on {}, {}, ", line.workload, ranking.region.name());
    if line.better().is_some() {
        format!("{place}{better} is better than {worse} ({values})")
    } else if n < needed {
        format!("{place}{} cannot separate the two, {needed} can ({values})", count(n, "seed"))
    } else {
        format!("{place}{better} and {worse} are not separable with n = {n} ({values})")
    }
}
