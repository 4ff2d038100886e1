//! A comparison as a document.

use super::comparison::{Better, HeadToHead, PairwiseComparison};
use super::tables::{label, sections};
use crate::document::figures::forest;
use crate::document::plot::{Point, Series};
use crate::document::{Document, Element, Figure};
use analysis::{NEUTRAL, looks};
use records::number::{capital, count, listed, points};
use records::settings::Region;

/// Converts a comparison to a document: one figure for each region, one section for each workload.
pub fn document(found: &HeadToHead) -> Document {
    let (a, b) = (&found.a, &found.b);
    let about = format!(
        "Differences are {} minus {}, paired by seed; shares in percentage points. Better: significant after Holm's \
         correction; not separable does not mean equal. The interval is not corrected.",
        a.name, b.name
    );
    let figures = region_names(found).into_iter().filter_map(|region| figure(found, region));
    let prose = verdict(found).into_iter().chain([about]).map(Element::Prose);
    Document {
        title: format!("{} against {}", a.label, b.label),
        elements: prose.chain(figures.map(Element::Figure)).collect(),
        sections: sections(found),
    }
}

/// Returns the names of the regions of all comparisons without duplicates.
fn region_names(found: &HeadToHead) -> Vec<&'static str> {
    let mut names: Vec<&str> = Vec::new();
    for line in found.comparisons.iter().flat_map(|comparison| &comparison.regions) {
        if !names.contains(&line.place.region) {
            names.push(line.place.region);
        }
    }
    names
}

/// Returns the verdict in at most three lines: one sentence for each region, in distribution last.
fn verdict(found: &HeadToHead) -> Vec<String> {
    let sentence = |region: &str| {
        let of = |better: Better| -> Vec<String> {
            let in_region = |comparison: &&PairwiseComparison| {
                let mut lines = comparison.regions.iter();
                lines.any(|line| line.place.region == region && line.difference.better == better)
            };
            found.comparisons.iter().filter(in_region).map(|own| label(found, own)).collect()
        };
        let [a, b, neither] = [Better::A, Better::B, Better::NotSeparable].map(of);
        let all = count((a.len() + b.len() + neither.len()) as u64, "workload");
        let on = |names: &[String]| match names {
            [] => "none".to_owned(),
            names => format!("{} ({})", names.len(), listed(names, "and")),
        };
        let be = if neither.len() == 1 { "is" } else { "are" };
        format!(
            "{}, of {all}: {} is significantly better on {}, {} on {}; {} {be} not separable.",
            capital(region),
            found.a.label,
            on(&a),
            found.b.label,
            on(&b),
            neither.len()
        )
    };
    let mut regions = region_names(found);
    regions.sort_by_key(|region| *region == Region::Inside.name());
    let mut sentences: Vec<String> = regions.into_iter().map(sentence).collect();
    let more = sentences.split_off(sentences.len().min(2));
    sentences.extend((!more.is_empty()).then(|| more.join(" ")));
    sentences
}

/// Draws the differences of a region as dots with intervals, one row for each workload; `None` if no metric that is a
/// share was compared.
fn figure(found: &HeadToHead, region: &str) -> Option<Figure> {
    let comparisons = found.comparisons.iter().filter_map(|comparison| {
        let line = comparison.regions.iter().find(|line| line.place.region == region)?;
        let label = label(found, comparison);
        (line.difference.metric != "nll").then_some((label, &line.difference))
    });
    let looks = looks([&*found.a.name, &*found.b.name]);
    let series: Vec<Series> = comparisons
        .map(|(label, d)| {
            let look = match d.better {
                Better::A => looks[&*found.a.name],
                Better::B => looks[&*found.b.name],
                Better::NotSeparable => NEUTRAL,
            };
            // Differences of shares are at most 1, so intervals are clamped.
            let cut = |x: f64| 100.0 * x.clamp(-1.0, 1.0);
            let bar = d.ci95.map(|(low, high)| (cut(low), cut(high)));
            let point = Point { x: 0.0, y: cut(d.difference), bar, note: points(d.difference) };
            Series { look, label, points: vec![point] }
        })
        .collect();
    if series.is_empty() {
        return None;
    }
    let heading = format!("points, {} minus {}", found.a.label, found.b.label);
    let title = format!("{} against {}, {region}", found.a.label, found.b.label);
    let plot = forest::plot("points", vec![(heading, series)]);
    let caption = format!(
        "Mean difference {region} with its 95 % interval. The mark is that of the encoding that is significantly \
         better, {} to the right and {} to the left, or a grey circle: not separable.",
        found.a.label, found.b.label
    );
    Some(Figure::new(title, caption, plot))
}
