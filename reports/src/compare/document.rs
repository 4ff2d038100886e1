//! A comparison as a document.

use super::comparison::{Better, HeadToHead};
use super::tables::sections;
use crate::analysis::ranking::Region;
use crate::document::figures::Plot;
use crate::document::figures::plot::{Axis, Dots, Point, Series};
use crate::document::figures::scale::Scale;
use crate::document::{Document, DocumentFigure};
use crate::number::points;

/// Colours of the first, the second, and of differences that are not separable: blue, vermilion, grey.
const SLOTS: [usize; 3] = [0, 1, 7];

/// The comparison as a document: a figure for each region, a section for each workload.
pub fn document(found: &HeadToHead) -> Document {
    let (a, b) = (&found.a, &found.b);
    let about = format!(
        "Differences are {} minus {}, paired by seed; shares in percentage points. Better: significant after Holm's \
         correction; not separable does not mean equal. The interval is not corrected.",
        a.name, b.name
    );
    let regions = Region::ALL.map(Region::name);
    Document {
        title: format!("{} against {}", a.label, b.label),
        paragraphs: vec![about],
        figures: regions.into_iter().filter_map(|region| forest(found, region)).collect(),
        sections: sections(found),
        elsewhere: "`--slices` prints them, `--json` has them".to_owned(),
    }
}

/// The differences of a region as dots with intervals, a row for each workload; nothing where no share was compared.
fn forest(found: &HeadToHead, region: &str) -> Option<DocumentFigure> {
    let comparisons = found.comparisons.iter().filter_map(|comparison| {
        let line = comparison.regions.iter().find(|line| line.place.region == region)?;
        // Workloads of one name in several suites are several workloads.
        let label = if found.comparisons.iter().all(|other| other.suite == comparison.suite) {
            comparison.workload.clone()
        } else {
            format!("{} ({})", comparison.workload, comparison.suite)
        };
        (line.difference.metric != "nll").then_some((label, &line.difference))
    });
    let series: Vec<Series> = comparisons
        .map(|(label, d)| {
            let slot = match d.better {
                Better::A => SLOTS[0],
                Better::B => SLOTS[1],
                Better::NotSeparable => SLOTS[2],
            };
            // Differences of shares end at one, whatever an interval says.
            let cut = |x: f64| 100.0 * x.clamp(-1.0, 1.0);
            let bar = d.ci95.map(|(low, high)| (cut(low), cut(high)));
            let point = Point { x: 0.0, y: cut(d.difference), bar, note: points(d.difference) };
            Series { slot, label, points: vec![point] }
        })
        .collect();
    if series.is_empty() {
        return None;
    }
    let ends = series.iter().flat_map(|s| &s.points).flat_map(|p| {
        let (low, high) = p.bar.unwrap_or((p.y, p.y));
        [0.0, p.y, low, high]
    });
    let value = Axis::new("points", Scale::linear(&ends.collect::<Vec<_>>()));
    let heading = format!("points, {} minus {}", found.a.label, found.b.label);
    let title = format!("{} against {}, {region}", found.a.label, found.b.label);
    let plot = Plot::Dots(Dots { value, groups: vec![(heading, series)] });
    let caption = format!(
        "Mean difference {region} with its 95 % interval. Blue: {} is significantly better; orange: {}; grey: not \
         separable.",
        found.a.label, found.b.label
    );
    Some(DocumentFigure { title, caption, plot })
}
