//! Forest plots: differences with their intervals, and which side is better.

use crate::document::plot::{Axis, Dots, Figure, Plot, Point, Series};
use crate::document::scale::Scale;
use analysis::ranking::{RankedPair, separable};
use analysis::{
    Answer, AnswerLine, ClaimVerdict, JudgedClaim, NEUTRAL, Report, Workload, YARDSTICK,
};
use records::Metric;
use stats::Paired;

/// Returns the plot of differences, each the only point of its series; `groups` have headings.
pub(crate) fn plot(axis: &str, groups: Vec<(String, Vec<Series>)>) -> Plot {
    let points = groups.iter().flat_map(|(_, series)| series).flat_map(|series| &series.points);
    let ends = points.flat_map(|point| {
        let (low, high) = point.bar.unwrap_or((point.y, point.y));
        [0.0, point.y, low, high]
    });
    let value = Axis::new(axis, Scale::linear(&ends.collect::<Vec<_>>()));
    Plot::Dots(Dots { value, rules: vec![(0.0, "equal".to_owned())], groups })
}

/// Unit of the differences of a forest plot.
struct DifferenceUnit {
    name: &'static str,
    axis: &'static str,
    /// Axis of the differences from RoPE.
    against_rope: &'static str,
    is_perplexity: bool,
    /// Converts a gain: a difference of shares, or of log-likelihoods.
    of: fn(f64) -> f64,
}

impl DifferenceUnit {
    /// Returns a difference with its interval.
    fn point(&self, paired: &Paired) -> Point {
        let y = (self.of)(paired.mean_difference);
        let bar = paired.ci95.map(|(low, high)| ((self.of)(low), (self.of)(high)));
        Point { x: 0.0, y, bar, note: format!("{y:.1}, n={}", paired.n) }
    }
}

const UNITS: [DifferenceUnit; 2] = [
    DifferenceUnit {
        name: "shares",
        axis: "points by which the first encoding is better",
        against_rope: "points by which the encoding is better than RoPE",
        is_perplexity: false,
        of: |gain| 100.0 * gain.clamp(-1.0, 1.0),
    },
    DifferenceUnit {
        name: "perplexity",
        axis: "% by which the second perplexity exceeds the first",
        against_rope: "% by which RoPE's perplexity exceeds the encoding's",
        is_perplexity: true,
        of: |gain| 100.0 * gain.exp_m1(),
    },
];

/// Returns the claims of papers as forest plots: one of shares, one of perplexities.
pub(crate) fn claims(report: &Report) -> Vec<Figure> {
    UNITS.iter().filter_map(|unit| figure(report, unit)).collect()
}

fn figure(report: &Report, unit: &DifferenceUnit) -> Option<Figure> {
    let group = |claim: &'_ JudgedClaim| {
        let is_shown =
            |line: &AnswerLine| (line.ranking.metric == Metric::Perplexity) == unit.is_perplexity;
        let lines: Vec<_> = claim.lines().filter(|(_, line, _)| is_shown(line)).collect();
        let (first, line, _) = lines.first()?;
        let one_pair =
            lines.iter().all(|(own, ..)| own.question.encodings == first.question.encodings);
        let one_region = lines.iter().all(|(_, own, _)| own.ranking.region == line.ranking.region);
        let row = |(answer, line, _): &(&Answer, &AnswerLine, ClaimVerdict)| {
            let names = answer.question.compared();
            let encoding =
                if one_pair { String::new() } else { format!("{}: ", report.display(&names[0])) };
            let region = if one_region {
                String::new()
            } else {
                format!(", {}", line.ranking.region.name())
            };
            let label = format!("{encoding}{}{region}", line.workload);
            Series { label, ..row(report, &names[0], line, unit) }
        };
        Some((claim.claim.text.clone(), lines.iter().map(row).collect()))
    };
    let groups: Vec<(String, Vec<Series>)> = report.claims.iter().filter_map(group).collect();
    let caption = "Mean difference between the two encodings of each comparison, with its uncorrected 95% interval. \
         The mark shows the encoding that is significantly better. Grey circle: undecided.";
    let title = format!("Claims: {}", unit.name);
    (!groups.is_empty()).then(|| Figure::new(title, caption, plot(unit.axis, groups)))
}

/// Returns the differences of an encoding from RoPE on each workload, none of RoPE itself; `contrasts` are the comparisons with RoPE, by workload.
pub(crate) fn against_rope(
    report: &Report,
    name: &str,
    contrasts: &[Vec<RankedPair>],
) -> Vec<Figure> {
    if name == YARDSTICK {
        return Vec::new();
    }
    let figure = |unit: &DifferenceUnit| {
        let row = |(workload, pairs): (&Workload, &Vec<RankedPair>)| {
            let metric = workload.deciding()?.metric;
            let is_own = |pair: &&RankedPair| pair.better == name || pair.worse == name;
            let pair = pairs.iter().find(is_own)?;
            ((metric == Metric::Perplexity) == unit.is_perplexity).then_some(())?;
            let better = separable(Some(&pair.comparison)).then(|| report.encoding(&pair.better));
            let look = better.flatten().map_or(NEUTRAL, |encoding| encoding.look);
            let point = unit.point(&pair.gains(name).paired);
            Some(Series { look, label: workload.name.clone(), points: vec![point] })
        };
        let rows = report.workloads.iter().zip(contrasts);
        let mut series: Vec<Series> = rows.filter_map(row).collect();
        series.sort_by(|a, b| b.points[0].y.total_cmp(&a.points[0].y));
        let title = format!("{} against RoPE: {}", report.display(name), unit.name);
        let caption = "Mean difference from RoPE, paired by seed, with its uncorrected 95% interval. To the right of \
             the line, the encoding is better than RoPE. The mark shows which of the two is significantly better, \
             after Holm's correction over the comparisons with RoPE. Grey circle: undecided.";
        let plot = plot(unit.against_rope, vec![(String::new(), series.clone())]);
        (!series.is_empty()).then(|| Figure::new(title, caption, plot))
    };
    let mut figures: Vec<Figure> = UNITS.iter().filter_map(figure).collect();
    // Both figures are read in the same way.
    figures.iter_mut().rev().skip(1).for_each(|figure| figure.caption.clear());
    figures
}

/// Returns the difference of a comparison, positive where the encoding of this name is better.
fn row(report: &Report, first: &str, line: &AnswerLine, unit: &DifferenceUnit) -> Series {
    let look = line.better().and_then(|name| report.encoding(name)).map_or(NEUTRAL, |e| e.look);
    let point = unit.point(&line.pair.gains(first).paired);
    Series { look, label: String::new(), points: vec![point] }
}
