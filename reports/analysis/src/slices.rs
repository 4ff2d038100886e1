//! Results by properties of samples and tokens (distance, number of variables, position), over seeds.

use polars::prelude::*;

use super::selection::{Selection, stable};
use crate::frame::rows;
use records::{PAIRED, SliceUnit};
use stats::Mean;

/// Maximum number of bins for the values of a property.
const GROUPS: usize = 40;

/// Results by one property on one split at one length.
#[derive(Debug, Clone, PartialEq)]
pub struct SliceSet {
    /// Name of the property, for example `distance`.
    pub name: String,
    /// Unit of the counts.
    pub unit: SliceUnit,
    /// Name of the split.
    pub split: String,
    /// Sequence length in the task's unit.
    pub len: u64,
    /// Whether the split is in distribution and the length within training.
    pub in_distribution: bool,
    /// Curves, one for each encoding, sorted by name.
    pub curves: Vec<SliceCurve>,
}

impl SliceSet {
    /// Returns the names of the two properties if this is a pair of properties; see [`records::Slices::name`].
    pub fn pair(&self) -> Option<(&str, &str)> {
        self.name.split_once(PAIRED)
    }

    /// Reports whether values were binned.
    pub fn is_grouped(&self) -> bool {
        self.curves.iter().flat_map(|c| &c.points).any(|p| p.from != p.to)
    }
}

/// Results of one encoding by value of the property.
#[derive(Debug, Clone, PartialEq)]
pub struct SliceCurve {
    /// Name of the encoding.
    pub encoding: String,
    /// Points, sorted by value.
    pub points: Vec<SlicePoint>,
}

/// Sums of one seed over a bin.
#[derive(Default, Clone, Copy)]
struct BinSum {
    count: u64,
    accuracy: f64,
    nll: f64,
}

/// Result at one value or bin of neighbouring values: means over seeds, weighted by counts within a seed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SlicePoint {
    /// Smallest value of the bin.
    pub from: u32,
    /// Largest value of the bin.
    pub to: u32,
    /// Number of samples or tokens of all seeds.
    pub count: u64,
    /// Accuracy: exact match of samples, or token accuracy.
    pub accuracy: Mean,
    /// Negative log-likelihood, nats per scored token.
    pub nll: Mean,
}

impl SlicePoint {
    /// Returns the midpoint of the bin.
    pub fn middle(&self) -> f64 {
        f64::midpoint(f64::from(self.from), f64::from(self.to))
    }
}

rows! {
    /// Slices of all cells by one property on one split at one length; the lists have one element per cell.
    struct SliceMembers {
        slice: String,
        split: String,
        len: u64,
        in_distribution: bool,
        unit: String,
        encoding: Vec<String>,
        value: Vec<Vec<u32>>,
        count: Vec<Vec<u64>>,
        accuracy: Vec<Vec<f64>>,
        nll: Vec<Vec<f64>>,
    }
}

/// Slices of the cells, sorted by name, split and length.
///
/// # Errors
/// If the query fails.
pub(super) fn slices(counted: &Selection<'_>) -> PolarsResult<Vec<SliceSet>> {
    let by = ["slice", "split", "len"];
    let first = ["in_distribution", "unit"].map(|name| col(name).first());
    let lists = ["encoding", "value", "count", "accuracy", "nll"].map(col);
    let sets = counted
        .rows(|frames| &frames.slices)
        .group_by_stable(by.map(col))
        .agg([&first[..], &lists].concat());
    let set = |members: SliceMembers| SliceSet {
        curves: curves(&members),
        name: members.slice,
        unit: if members.unit == "samples" { SliceUnit::Samples } else { SliceUnit::Tokens },
        split: members.split,
        len: members.len,
        in_distribution: members.in_distribution,
    };
    Ok(SliceMembers::of(sets.sort(by, stable()))?.into_iter().map(set).collect())
}

/// Range of values of a property that are shown as one point.
#[derive(Clone, Copy)]
struct Bin {
    from: u32,
    to: u32,
}

fn curves(members: &SliceMembers) -> Vec<SliceCurve> {
    let mut values: Vec<u32> = members.value.concat();
    values.sort_unstable();
    values.dedup();
    let most = if members.slice.contains(PAIRED) { usize::MAX } else { GROUPS };
    let size = values.len().div_ceil(most).max(1);
    let bin = |values: &[u32]| Bin { from: values[0], to: values[values.len() - 1] };
    let bins: Vec<Bin> = values.chunks(size).map(bin).collect();
    let seeds: Vec<(&str, Vec<BinSum>)> = members
        .encoding
        .iter()
        .enumerate()
        .map(|(cell, encoding)| (encoding.as_str(), sums(members, cell, &bins)))
        .collect();
    let curve = |seeds: &[(&str, Vec<BinSum>)]| SliceCurve {
        encoding: seeds[0].0.to_owned(),
        points: bins
            .iter()
            .enumerate()
            .filter_map(|(bin, range)| point(seeds, bin, *range))
            .collect(),
    };
    seeds.chunk_by(|a, b| a.0 == b.0).map(curve).collect()
}

fn point(seeds: &[(&str, Vec<BinSum>)], bin: usize, range: Bin) -> Option<SlicePoint> {
    let Bin { from, to } = range;
    let sums = || seeds.iter().map(|(_, sums)| sums[bin]).filter(|sum| sum.count > 0);
    let mean = |get: fn(BinSum) -> f64| {
        Mean::of(&sums().map(|sum| get(sum) / sum.count as f64).collect::<Vec<_>>())
    };
    let count = sums().map(|sum| sum.count).fold(0, u64::saturating_add);
    Some(SlicePoint { from, to, count, accuracy: mean(|s| s.accuracy)?, nll: mean(|s| s.nll)? })
}

/// Sums the slices of one cell over each bin.
fn sums(members: &SliceMembers, cell: usize, bins: &[Bin]) -> Vec<BinSum> {
    let mut sums = vec![BinSum::default(); bins.len()];
    let columns = members.value[cell].iter().zip(&members.count[cell]);
    for ((value, count), (accuracy, nll)) in
        columns.zip(members.accuracy[cell].iter().zip(&members.nll[cell]))
    {
        let bin = bins.partition_point(|bin| bin.to < *value);
        if let Some(sum) = sums.get_mut(bin) {
            // A file without a checksum may have any number.
            sum.count = sum.count.saturating_add(*count);
            sum.accuracy += accuracy * *count as f64;
            sum.nll += nll * *count as f64;
        }
    }
    sums
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::Frames;
    use records::testkit::TestCell;
    use records::{RunRecord, Slices};

    fn sliced(encoding: &str, seed: u64, values: Vec<u32>, accuracy: f64) -> RunRecord {
        let n = values.len();
        TestCell::new("w", encoding, seed)
            .change(|r| {
                r.evals[0].slices = vec![Slices {
                    name: "distance".into(),
                    unit: SliceUnit::Tokens,
                    values,
                    counts: (1..=n as u64).collect(),
                    accuracy: vec![accuracy; n],
                    nll: vec![1.0; n],
                }];
            })
            .record()
    }

    #[test]
    fn means_run_over_seeds_and_weights_over_counts() {
        let mut second = sliced("rope", 1, vec![1, 7], 0.5);
        second.evals[0].slices[0].accuracy = vec![0.25, 1.0];
        let records = [sliced("rope", 0, vec![1, 7], 0.75), second];
        let sets = slices(&Selection::counted(&Frames::of(&records).unwrap()).unwrap()).unwrap();
        let points = &sets[0].curves[0].points;
        assert_eq!((sets.len(), sets[0].len, sets[0].in_distribution), (1, 64, true));
        assert_eq!((points[0].from, points[0].to, points[0].count), (1, 1, 2));
        assert!((points[0].accuracy.mean - 0.5).abs() < 1e-12 && points[0].accuracy.n == 2);
        assert!((points[1].accuracy.mean - 0.875).abs() < 1e-12);
        assert!(!sets[0].is_grouped());
    }

    #[test]
    fn many_values_become_groups_that_lose_no_count() {
        let record = sliced("rope", 0, (0..1000).collect(), 0.5);
        let sets = slices(&Selection::counted(&Frames::of(&[record]).unwrap()).unwrap()).unwrap();
        let points = &sets[0].curves[0].points;
        assert!(points.len() <= GROUPS && sets[0].is_grouped());
        assert_eq!(points.iter().map(|p| p.count).sum::<u64>(), 1000 * 1001 / 2);
        assert!(points.iter().all(|p| (p.accuracy.mean - 0.5).abs() < 1e-12));
    }
}
