//! Results of an evaluation grouped by properties of samples and scored tokens.

use std::borrow::Cow;
use std::collections::BTreeMap;

use records::{PAIR, PAIRED, SliceUnit, Slices};
use tasks::{Sample, TokenSlice};

#[derive(Default)]
struct SliceSums {
    count: u64,
    right: u64,
    tokens: u64,
    nll: f64,
}

/// Sums by property and value.
#[derive(Default)]
pub(super) struct BySlice(BTreeMap<(SliceUnit, Cow<'static, str>), BTreeMap<u32, SliceSums>>);

impl BySlice {
    /// Adds a sample: whether each scored token is right, and its negative log-likelihood.
    pub(super) fn add(
        &mut self,
        sample: &Sample,
        by_token: &[TokenSlice],
        right: &[bool],
        nll: &[f32],
    ) {
        let exact = right.iter().all(|right| *right);
        let single = sample.slices.iter().map(|(name, value)| (Cow::Borrowed(*name), *value));
        for (name, value) in single.chain(axes(&sample.slices)) {
            let sum = self.sum(SliceUnit::Samples, name, value);
            sum.count += 1;
            sum.right += u64::from(exact);
            sum.tokens += nll.len() as u64;
            sum.nll += nll.iter().map(|nll| f64::from(*nll)).sum::<f64>();
        }
        for (name, values) in by_token {
            for ((value, right), nll) in values.iter().zip(right).zip(nll) {
                let sum = self.sum(SliceUnit::Tokens, Cow::Borrowed(*name), *value);
                sum.count += 1;
                sum.right += u64::from(*right);
                sum.tokens += 1;
                sum.nll += f64::from(*nll);
            }
        }
    }

    fn sum(&mut self, unit: SliceUnit, name: Cow<'static, str>, value: u32) -> &mut SliceSums {
        self.0.entry((unit, name)).or_default().entry(value).or_default()
    }

    /// Converts the sums to columns, without properties that have only one value.
    pub(super) fn columns(self) -> Vec<Slices> {
        let told = self.0.into_iter().filter(|(_, sums)| sums.len() > 1);
        told.map(|((unit, name), sums)| Slices {
            name: name.into_owned(),
            unit,
            values: sums.keys().copied().collect(),
            counts: sums.values().map(|sum| sum.count).collect(),
            accuracy: sums.values().map(|sum| sum.right as f64 / sum.count as f64).collect(),
            nll: sums.values().map(|sum| sum.nll / sum.tokens as f64).collect(),
        })
        .collect()
    }
}

/// Combined property of two properties named `x-a` and `x-b`, the axes of one map.
fn axes(slices: &[(&'static str, u32)]) -> Option<(Cow<'static, str>, u32)> {
    slices.iter().find_map(|(a, first)| {
        let stem = a.strip_suffix("-a")?;
        let other = |(b, _): &&(&str, u32)| b.strip_suffix("-b") == Some(stem);
        let (b, second) = slices.iter().find(other)?;
        let both = u32::try_from(PAIR * u64::from(*first) + u64::from(*second)).ok()?;
        (u64::from(*second) < PAIR).then(|| (Cow::Owned(format!("{a}{PAIRED}{b}")), both))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_count_as_wholes_and_tokens_one_by_one() {
        let mut slices = BySlice::default();
        let sample = |pairs| Sample {
            tokens: vec![0; 3],
            scored: vec![false, true, true],
            slices: vec![("pairs", pairs), ("same", 7)],
        };
        slices.add(&sample(2), &[("depth", vec![9, 4])], &[true, true], &[0.5, 1.5]);
        slices.add(&sample(1), &[("depth", vec![4, 4])], &[true, false], &[1.0, 3.0]);
        let columns = slices.columns();
        let names = columns.iter().map(|c| (c.name.as_str(), c.unit)).collect::<Vec<_>>();
        assert_eq!(names, [("pairs", SliceUnit::Samples), ("depth", SliceUnit::Tokens)]);
        let pairs = &columns[0];
        assert_eq!((&pairs.values[..], &pairs.counts[..]), (&[1, 2][..], &[1, 1][..]));
        assert_eq!((&pairs.accuracy[..], &pairs.nll[..]), (&[0.0, 1.0][..], &[2.0, 1.0][..]));
        let depth = &columns[1];
        assert_eq!((&depth.values[..], &depth.counts[..]), (&[4, 9][..], &[3, 1][..]));
        assert!((depth.accuracy[0] - 2.0 / 3.0).abs() < 1e-12);
        assert!((depth.nll[0] - 5.5 / 3.0).abs() < 1e-12);
    }

    #[test]
    fn two_axes_are_one_map() {
        let mut slices = BySlice::default();
        for (a, b, right) in [(2, 1, true), (2, 1, false), (1, 2, true)] {
            let sample = Sample {
                tokens: vec![0; 2],
                scored: vec![false, true],
                slices: vec![("digits-a", a), ("carries", 0), ("digits-b", b)],
            };
            slices.add(&sample, &[], &[right], &[1.0]);
        }
        let columns = slices.columns();
        let map = columns.iter().find(|c| c.name == "digits-a x digits-b").unwrap();
        assert_eq!((&map.values[..], &map.counts[..]), (&[1002, 2001][..], &[1, 2][..]));
        assert_eq!(map.accuracy, [1.0, 0.5]);
    }
}
