//! Results by properties of samples and tokens (distance, number of variables, position), over seeds.

use std::collections::{BTreeMap, BTreeSet};

use crate::record::{PAIRED, RunRecord, SliceUnit, Slices};
use crate::stats::Mean;

/// Maximum number of groups that values of a property are binned into; no figure shows more.
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
    /// Split in distribution and length within training.
    pub in_distribution: bool,
    /// Curves, one for each encoding, sorted by name.
    pub curves: Vec<SliceCurve>,
}

impl SliceSet {
    /// The two properties, if this is a pair of properties; see [`Slices::name`].
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
    /// Midpoint of the bin.
    pub fn middle(&self) -> f64 {
        f64::midpoint(f64::from(self.from), f64::from(self.to))
    }
}

/// Sums of one seed over a bin.
#[derive(Default, Clone, Copy)]
struct Sum {
    count: u64,
    accuracy: f64,
    nll: f64,
}

type Id<'a> = (&'a str, &'a str, u64);

/// Slices of the records of one workload, sorted by name, split and length.
pub(super) fn slices(records: &[&RunRecord]) -> Vec<SliceSet> {
    let mut found: BTreeMap<Id<'_>, Vec<(&RunRecord, bool, &Slices)>> = BTreeMap::new();
    for record in records {
        for eval in &record.evals {
            for slices in &eval.slices {
                let id = (slices.name.as_str(), eval.split.as_str(), eval.len);
                found.entry(id).or_default().push((record, eval.in_distribution, slices));
            }
        }
    }
    found
        .into_iter()
        .filter_map(|((name, split, len), members)| {
            let (_, in_distribution, first) = *members.first()?;
            Some(SliceSet {
                name: name.to_owned(),
                unit: first.unit,
                split: split.to_owned(),
                len,
                in_distribution,
                curves: curves(&members, if name.contains(PAIRED) { usize::MAX } else { GROUPS }),
            })
        })
        .collect()
}

fn curves(members: &[(&RunRecord, bool, &Slices)], most: usize) -> Vec<SliceCurve> {
    let values: BTreeSet<u32> =
        members.iter().flat_map(|(_, _, slices)| slices.values.iter().copied()).collect();
    let values: Vec<u32> = values.into_iter().collect();
    let size = values.len().div_ceil(most).max(1);
    let groups: Vec<(u32, u32)> =
        values.chunks(size).map(|group| (group[0], group[group.len() - 1])).collect();
    let mut by_encoding: BTreeMap<&str, Vec<Vec<Sum>>> = BTreeMap::new();
    for (record, _, slices) in members {
        by_encoding.entry(&record.encoding.name).or_default().push(sums(slices, &groups));
    }
    by_encoding
        .into_iter()
        .map(|(encoding, seeds)| SliceCurve {
            encoding: encoding.to_owned(),
            points: groups
                .iter()
                .enumerate()
                .filter_map(|(group, (from, to))| {
                    let of = |get: fn(&Sum) -> f64| -> Vec<f64> {
                        let sums = seeds.iter().map(|sums| sums[group]).filter(|s| s.count > 0);
                        sums.map(|s| get(&s) / s.count as f64).collect()
                    };
                    Some(SlicePoint {
                        from: *from,
                        to: *to,
                        count: seeds.iter().map(|sums| sums[group].count).sum(),
                        accuracy: Mean::of(&of(|s| s.accuracy))?,
                        nll: Mean::of(&of(|s| s.nll))?,
                    })
                })
                .collect(),
        })
        .collect()
}

/// Sums of one seed over each bin. Columns of unequal length end with the shortest.
fn sums(slices: &Slices, groups: &[(u32, u32)]) -> Vec<Sum> {
    let mut sums = vec![Sum::default(); groups.len()];
    let columns = slices.values.iter().zip(&slices.counts);
    for ((value, count), (accuracy, nll)) in columns.zip(slices.accuracy.iter().zip(&slices.nll)) {
        let group = groups.partition_point(|(_, to)| to < value);
        if let Some(sum) = sums.get_mut(group) {
            sum.count += count;
            sum.accuracy += accuracy * *count as f64;
            sum.nll += nll * *count as f64;
        }
    }
    sums
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testkit::TestCell;

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
        let sets = slices(&records.iter().collect::<Vec<_>>());
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
        let sets = slices(&[&record]);
        let points = &sets[0].curves[0].points;
        assert!(points.len() <= GROUPS && sets[0].is_grouped());
        assert_eq!(points.iter().map(|p| p.count).sum::<u64>(), 1000 * 1001 / 2);
        assert!(points.iter().all(|p| (p.accuracy.mean - 0.5).abs() < 1e-12));
    }
}
