//! A comparison as a document.

mod tables;

use self::tables::{label, sections};
use crate::document::figures::forest;
use crate::document::plot::{Point, Series};
use crate::document::{Document, Element, Figure, Table};
use analysis::compare::{Better, Compared, HeadToHead, RegionEvaluations};
use analysis::{NEUTRAL, looks};
use records::number::points;
use records::settings::Region;

/// Converts a comparison to a document: one figure for each region, one section for each workload.
pub fn document(found: &HeadToHead) -> Document {
    let (a, b) = (&found.a, &found.b);
    let about = format!(
        "Differences are {} minus {}, paired by seed; differences of shares are in percentage points. Better: \
         p at most 0.05, and above chance. Not separable: not significant, which does not mean equal. Each row of the \
         table of all workloads is one test; without any difference, one row in 20 would be significant by chance. \
         Tables by split and length have Holm's correction. Intervals are not corrected. A report corrects over all \
         pairs of its encodings and therefore separates fewer pairs.",
        a.name, b.name
    );
    let figures = region_names(found).into_iter().filter_map(|region| figure(found, region));
    let first = [Element::Table(counts(found)), Element::Prose(about)];
    Document {
        title: format!("{} against {}", a.label, b.label),
        elements: first.into_iter().chain(figures.map(Element::Figure)).collect(),
        sections: sections(found),
    }
}

/// Returns the names of the regions that a comparison has, in the order of [`Region::ALL`].
fn region_names(found: &HeadToHead) -> Vec<&'static str> {
    let has = |name: &&str| {
        let mut lines = found.comparisons.iter().flat_map(|comparison| &comparison.regions);
        lines.any(|line| line.place.region == *name)
    };
    Region::ALL.map(Region::name).into_iter().filter(has).collect()
}

/// Returns the number of workloads on which each encoding is better, by region.
fn counts(found: &HeadToHead) -> Table {
    let count = |region: &str, better: Better| {
        let lines = found.comparisons.iter().flat_map(|comparison| &comparison.regions);
        let same = |line: &&Compared<RegionEvaluations>| {
            line.place.region == region && line.difference.better == better
        };
        lines.filter(same).count().to_string()
    };
    Table::of(region_names(found))
        .column("workloads", |region| (*region).to_owned())
        .column(format!("{} better", found.a.label), |region| count(region, Better::A))
        .column(format!("{} better", found.b.label), |region| count(region, Better::B))
        .column("neither", |region| count(region, Better::NotSeparable))
        .table()
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
        "Mean difference {region} with its 95% interval. The mark shows the encoding that is significantly better: {} \
         on the right, {} on the left. A grey circle: not separable.",
        found.a.label, found.b.label
    );
    Some(Figure::new(title, caption, plot))
}

#[cfg(test)]
mod tests;
