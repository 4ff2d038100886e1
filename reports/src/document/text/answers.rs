//! The question of a report and its answers: the best encoding, the best at RoPE's price, and RoPE.

use crate::document::section::AnswerCard;
use crate::document::table::TableCell;
use analysis::ranking::Ranking;
use analysis::{Overall, Report, YARDSTICK};
use records::number::{bracketed, count, percent, points};

/// Largest step time, or number of operations, relative to RoPE's that counts as RoPE's price.
const SAME_PRICE: f64 = 1.1;

/// An encoding in the order of a report.
struct Place {
    encoding: String,
    score: String,
    interval: String,
}

/// Returns the encodings from the best to the worst: by the aggregate, or by the result of the only workload.
fn places(report: &Report) -> Vec<Place> {
    let overall = report.overall.iter().flat_map(|overall| &overall.scores);
    let overall = overall.map(|own| Place {
        encoding: own.encoding.clone(),
        score: percent(own.value),
        interval: bracketed(own.ci95, points),
    });
    let only = match &report.workloads[..] {
        [only] => only.deciding(),
        _ => None,
    };
    let single = only.into_iter().flat_map(|ranking| {
        ranking.ranked().into_iter().filter_map(|own| {
            let estimate = own.estimate?;
            let interval = estimate.ci95.map(|ends| ranking.metric.show_interval(ends));
            Some(Place {
                encoding: own.encoding.clone(),
                score: ranking.metric.show(estimate.mean),
                interval: interval.map_or_else(String::new, |ends| format!("[{ends}]")),
            })
        })
    });
    overall.chain(single).collect()
}

/// Returns the price of a training step relative to RoPE's, and its unit.
pub(super) fn price(report: &Report, name: &str) -> Option<(f64, &'static str)> {
    let time = report.step_time_ratio(name).map(|ratio| (ratio, "times RoPE's step time"));
    time.or_else(|| Some((report.flops_ratio(name)?, "times RoPE's operations in a step")))
}

/// Places of RoPE and of the best encoding at its price.
struct Standing {
    rope: Option<usize>,
    /// `None` if RoPE itself is the best at its price.
    cheap: Option<usize>,
}

fn standing(report: &Report, places: &[Place]) -> Standing {
    let is_cheap = |place: &Place| {
        let ratio = price(report, &place.encoding).map(|(ratio, _)| ratio);
        place.encoding == YARDSTICK || ratio.is_some_and(|ratio| ratio <= SAME_PRICE)
    };
    let rope = places.iter().position(|place| place.encoding == YARDSTICK);
    let cheap = places.iter().position(is_cheap).filter(|index| rope.is_some_and(|r| r != *index));
    Standing { rope, cheap }
}

/// Returns the question that the report answers; empty without records.
pub(crate) fn asked(report: &Report) -> String {
    let encodings = |number: usize| count(number as u64, "position encoding");
    match (&report.overall, &report.workloads[..]) {
        (Some(overall), _) if !overall.scores.is_empty() => format!(
            "Which of {} should a Transformer use? Score: {} on {}. 0% means guessing, and 100% means that \
             all answers are right.",
            encodings(overall.scores.len()),
            Overall::NAME,
            count(overall.scored.len() as u64, "task")
        ),
        (_, [only]) if report.encodings.len() > 1 => {
            only.deciding().map_or_else(String::new, |Ranking { metric, region, .. }| {
                format!(
                    "Which of {} is best on `{}`? Score: {} {}.",
                    encodings(report.encodings.len()),
                    only.name,
                    metric.name(),
                    region.name()
                )
            })
        }
        _ => String::new(),
    }
}

/// Returns the best encoding, the best at RoPE's price, and RoPE; nothing for a report of one encoding, or of several workloads
/// without an aggregate.
pub(crate) fn answers(report: &Report) -> Vec<AnswerCard> {
    let places = places(report);
    if places.len() < 2 {
        return Vec::new();
    }
    let answer = |asked: &str, index: usize| {
        let Place { encoding, score, interval } = &places[index];
        let price = price(report, encoding).filter(|_| encoding != YARDSTICK);
        let place = (index > 0).then(|| format!("place {} of {}", index + 1, places.len()));
        let details = [
            Some(interval.clone()).filter(|text| !text.is_empty()),
            place,
            price.map(|(ratio, unit)| format!("{ratio:.2} {unit}")),
        ];
        AnswerCard {
            asked: asked.to_owned(),
            encoding: TableCell::of_encoding(report, encoding),
            score: score.clone(),
            detail: details.into_iter().flatten().collect::<Vec<_>>().join(", "),
        }
    };
    let Standing { rope, cheap } = standing(report, &places);
    let at_its_price = format!("at up to {SAME_PRICE} times RoPE's cost per step");
    let best = match cheap {
        Some(0) => format!("Best, also {at_its_price}"),
        _ => "Best".to_owned(),
    };
    let other = |place: Option<usize>, asked: &str| {
        place.filter(|index| *index > 0).map(|index| answer(asked, index))
    };
    let others =
        [other(cheap, &format!("Best {at_its_price}")), other(rope, "RoPE, for comparison")];
    std::iter::once(answer(&best, 0)).chain(others.into_iter().flatten()).collect()
}

/// Returns the answers in a few words; `None` without an aggregate or with one encoding.
pub(super) fn in_short(report: &Report) -> Option<String> {
    report.overall.as_ref()?;
    let places = places(report);
    if places.len() < 2 {
        return None;
    }
    let score = |index: usize| {
        let Place { encoding, score, interval } = &places[index];
        let interval = Some(interval).filter(|text| !text.is_empty());
        let interval = interval.map_or_else(String::new, |text| format!(" {text}"));
        (report.display(encoding), format!("{score}{interval}"))
    };
    let (best, value) = score(0);
    let cost = price(report, &places[0].encoding).filter(|_| places[0].encoding != YARDSTICK);
    let cost = cost.map_or_else(String::new, |(ratio, unit)| format!(", at {ratio:.2} {unit}"));
    let Standing { rope, cheap } = standing(report, &places);
    let cheap = cheap.filter(|index| *index > 0).map(score);
    let cheap = cheap.map_or_else(String::new, |(name, value)| {
        format!(
            " At up to {SAME_PRICE} times RoPE's cost per step, {name} scores highest: {value}."
        )
    });
    let rope = rope.filter(|index| *index > 0).map(score);
    let rope = rope.map_or_else(String::new, |(name, value)| format!(" {name} gets {value}."));
    Some(format!("Over all tasks {best} scores highest: {value}{cost}.{cheap}{rope}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use analysis::{MeasuredStep, ReportMeta};
    use records::testkit::two_workloads;

    #[test]
    fn the_answers_are_the_best_the_best_at_the_price_of_rope_and_rope() {
        let mut report = Report::new(two_workloads(), &ReportMeta::default()).unwrap();
        let step = |encoding: &str, step_seconds: f64| MeasuredStep {
            encoding: encoding.into(),
            step_seconds,
            peak_bytes: None,
        };
        let sentences = |report: &Report| -> Vec<String> {
            answers(report).iter().map(AnswerCard::sentence).collect()
        };
        report.meta.measured = vec![step("rope", 0.5), step("cope", 0.55)];
        let found = sentences(&report);
        assert_eq!(found.len(), 2, "{found:?}");
        let best = "Best, also at up to 1.1 times RoPE's cost per step: CoPE, 77.0% ([7";
        assert!(found[0].starts_with(best), "{found:?}");
        assert!(found[0].ends_with(", 1.10 times RoPE's step time)."), "{found:?}");
        assert!(
            found[1].starts_with("RoPE, for comparison: RoPE, ")
                && found[1].ends_with(", place 2 of 2).")
        );
        let short = in_short(&report).unwrap();
        assert!(short.starts_with("Over all tasks CoPE scores highest: 77.0% [7"), "{short}");
        assert!(short.contains("], at 1.10 times RoPE's step time. RoPE gets "), "{short}");
        report.meta.measured = vec![step("rope", 0.5), step("cope", 0.56)];
        assert!(sentences(&report)[0].starts_with("Best: CoPE, 77.0% (["), "it costs more");
        assert!(
            asked(&report).starts_with("Which of 2 position encodings should a Transformer use?")
        );
    }

    #[test]
    fn one_workload_has_answers_and_nothing_has_none() {
        let mut records = two_workloads();
        records.retain(|record| record.workload == "v");
        let report = Report::new(records, &ReportMeta::default()).unwrap();
        assert_eq!(answers(&report)[0].encoding.text, "CoPE");
        assert!(
            asked(&report)
                .starts_with("Which of 2 position encodings is best on `v`? Score: exact match")
        );
        let report = Report::new(&[][..], &ReportMeta::default()).unwrap();
        assert_eq!((answers(&report).len(), asked(&report).len()), (0, 0));
    }
}
