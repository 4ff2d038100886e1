//! The result of a comparison, as data.

use serde::Serialize;

use records::SliceUnit;
use records::settings::Region;
pub use stats::Better;

/// Request for a comparison.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Request {
    /// Name of the first encoding.
    pub a: String,
    /// Name of the second encoding; differences are first minus second.
    pub b: String,
    /// Names of the workloads to compare on; empty for all.
    pub workloads: Vec<String>,
    /// Ids of the tasks to compare on; empty for all.
    pub tasks: Vec<String>,
}

/// Comparison of two encodings on all workloads.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct HeadToHead {
    /// Names of the first encoding.
    pub a: ComparedEncoding,
    /// Names of the second encoding.
    pub b: ComparedEncoding,
    /// Comparisons on the workloads that have seeds of both encodings, sorted by suite and name.
    #[serde(rename = "duels")]
    pub comparisons: Vec<PairwiseComparison>,
    /// Records that were not compared, each with the reason in one sentence.
    pub left_out: Vec<String>,
}

/// Names of a compared encoding.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ComparedEncoding {
    /// Name as in records.
    pub name: String,
    /// Display name of the encoding.
    pub label: String,
}

/// Comparison of two encodings on one workload.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PairwiseComparison {
    /// Name of the suite.
    pub suite: String,
    /// Name of the workload.
    pub workload: String,
    /// Id of the task.
    pub task: String,
    /// Unit of lengths, for example `tokens`.
    pub len_unit: String,
    /// Seeds that both encodings have.
    pub seeds: Vec<u64>,
    /// Seeds that only the first has.
    pub only_a: Vec<u64>,
    /// Seeds that only the second has.
    pub only_b: Vec<u64>,
    /// Comparisons of the mean over the evaluations of each region.
    pub regions: Vec<Compared<RegionEvaluations>>,
    /// Comparisons by split and length.
    pub points: Vec<Compared<EvaluationPoint>>,
    /// Comparisons by properties of samples and tokens.
    pub slices: Vec<Compared<Slice>>,
    /// Keys of the compared cells, sorted.
    pub keys: Vec<String>,
    /// Remarks that qualify the comparison, one sentence each.
    pub notes: Vec<String>,
}

/// Difference between two encodings, with the evaluations that it was computed from.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Compared<P> {
    /// Evaluations that the difference was computed from.
    #[serde(flatten)]
    pub place: P,
    /// Difference of the two encodings.
    #[serde(flatten)]
    pub difference: Difference,
}

/// All evaluations of a region that both encodings have.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RegionEvaluations {
    /// Name of the region: [`Region::name`].
    pub region: &'static str,
    /// Number of evaluations in the region.
    pub evaluations: usize,
}

/// One evaluation: a split at a length.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct EvaluationPoint {
    /// Name of the split.
    pub split: String,
    /// Sequence length in the task's unit.
    pub len: u64,
    /// Whether the evaluation is in distribution.
    pub in_distribution: bool,
    /// Region of the evaluations relative to training.
    pub region: Region,
}

/// One value of one property in one evaluation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Slice {
    /// Split and length of the evaluation.
    #[serde(flatten)]
    pub point: EvaluationPoint,
    /// Name of the property.
    pub property: String,
    /// Unit of the counts.
    pub unit: SliceUnit,
    /// Value of the property.
    pub value: u32,
    /// Number of samples or tokens with that value, the same for both encodings and all seeds.
    pub count: u64,
}

/// Differences paired by seed, first minus second.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Difference {
    /// Metric: `exact match` or `token accuracy` (shares, 0 to 1), or `nll` (nats per scored token, less is
    /// better).
    pub metric: &'static str,
    /// Mean of the first encoding over the common seeds.
    pub mean_a: f64,
    /// Mean of the second encoding over the common seeds.
    pub mean_b: f64,
    /// Mean difference, first minus second.
    pub difference: f64,
    /// 95% confidence interval of the mean difference, not corrected; `None` with one seed.
    pub ci95: Option<(f64, f64)>,
    /// p-value of the test; `None` with too few seeds.
    pub p: Option<f64>,
    /// p-value after Holm's correction.
    pub p_holm: Option<f64>,
    /// Number of comparisons in the family of Holm's correction.
    pub family: u32,
    /// Name of the test.
    pub test: &'static str,
    /// Hedges' g of the differences; `None` without spread or with too few seeds.
    pub effect: Option<f64>,
    /// 95% interval of Hedges' g; `None` if it does not exist.
    pub effect_ci95: Option<(f64, f64)>,
    /// Exact match of guessing; `None` for other metrics or if it is unknown.
    pub chance: Option<f64>,
    /// Standard error of the difference due to the questions, which the interval includes; `None` if the records have
    /// no answers to single questions.
    pub question_error: Option<f64>,
    /// Number of seeds needed for a significant difference; `None` if there are as many.
    pub seeds_needed: Option<u32>,
    /// Number of seeds that both encodings have.
    pub n: u32,
    /// Number of seeds in which the first encoding is better.
    pub won: u32,
    /// Number of seeds in which the second encoding is better.
    pub lost: u32,
    /// Number of seeds in which the two are equal.
    pub tied: u32,
    /// The encoding that is significantly better.
    #[serde(rename = "outcome")]
    pub better: Better,
}
