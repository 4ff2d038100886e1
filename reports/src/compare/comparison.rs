//! The result of a comparison, as data.

use serde::Serialize;

use crate::record::SliceUnit;

/// What is asked.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Request {
    /// Name of one encoding.
    pub a: String,
    /// Name of the other, from which differences are counted.
    pub b: String,
    /// These workloads; empty: all.
    pub workloads: Vec<String>,
    /// These tasks, by id; empty: all.
    pub tasks: Vec<String>,
}

/// Two encodings, compared.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct HeadToHead {
    /// One encoding.
    pub a: ComparedEncoding,
    /// The other.
    pub b: ComparedEncoding,
    /// One for each workload that has seeds of both, by suite and name.
    #[serde(rename = "duels")]
    pub comparisons: Vec<PairwiseComparison>,
    /// What could not be compared, and why, one sentence each.
    pub left_out: Vec<String>,
}

/// One of the two.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ComparedEncoding {
    /// Name in records.
    pub name: String,
    /// Name for people.
    pub label: String,
}

/// The two on one workload.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PairwiseComparison {
    /// The suite.
    pub suite: String,
    /// The workload.
    pub workload: String,
    /// Id of its task.
    pub task: String,
    /// What lengths count.
    pub len_unit: String,
    /// Seeds that both have.
    pub seeds: Vec<u64>,
    /// Seeds that only the first has.
    pub only_a: Vec<u64>,
    /// Seeds that only the second has.
    pub only_b: Vec<u64>,
    /// Mean over the evaluations in distribution, and beyond training.
    pub regions: Vec<Compared<Region>>,
    /// Each evaluation.
    pub points: Vec<Compared<Point>>,
    /// Each evaluation by the properties of its samples and tokens.
    pub slices: Vec<Compared<Slice>>,
    /// Cells that count for it: keys of the records, sorted.
    pub keys: Vec<String>,
    /// What the reader must know about it, one sentence each.
    pub notes: Vec<String>,
}

/// A comparison and what it is about.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Compared<P> {
    /// Which evaluations.
    #[serde(flatten)]
    pub place: P,
    /// What they say.
    #[serde(flatten)]
    pub difference: Difference,
}

/// All evaluations of a region that both have.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Region {
    /// `in distribution` or `beyond training`.
    pub region: &'static str,
    /// Number of evaluations.
    pub evaluations: usize,
}

/// One evaluation.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Point {
    /// Its split.
    pub split: String,
    /// Its length.
    pub len: u64,
    /// Whether it is in distribution.
    pub in_distribution: bool,
}

/// One value of one property in one evaluation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Slice {
    /// The evaluation.
    #[serde(flatten)]
    pub point: Point,
    /// The property.
    pub property: String,
    /// Samples or tokens.
    pub unit: SliceUnit,
    /// Its value.
    pub value: u32,
    /// Samples or tokens of that value, the same for both and all seeds.
    pub count: u64,
}

/// Which of the two is better by more than noise.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Better {
    /// The first.
    A,
    /// The second.
    B,
    /// Not separable with so many seeds; it does not mean equal.
    NotSeparable,
}

/// Differences paired by seed, first minus second.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Difference {
    /// What is compared: `exact match` or `token accuracy` (shares, 0 to 1), or `nll` (nats per scored token,
    /// less is better).
    pub metric: &'static str,
    /// Mean of the first over the common seeds.
    pub mean_a: f64,
    /// Mean of the second.
    pub mean_b: f64,
    /// Mean difference.
    pub difference: f64,
    /// Its 95 % interval, not corrected; `None` with one seed.
    pub ci95: Option<(f64, f64)>,
    /// The p-value; `None` with too few seeds.
    pub p: Option<f64>,
    /// The same after Holm's correction.
    pub p_holm: Option<f64>,
    /// Number of comparisons that were corrected for.
    pub family: u32,
    /// What decided.
    pub test: &'static str,
    /// Hedges' g of the differences; `None` without spread or with too few seeds.
    pub effect: Option<f64>,
    /// Number of common seeds.
    pub n: u32,
    /// Seeds in which the first is better.
    pub won: u32,
    /// Seeds in which the second is better.
    pub lost: u32,
    /// Seeds in which they are equal.
    pub tied: u32,
    /// Which is better by more than noise.
    #[serde(rename = "outcome")]
    pub better: Better,
}
