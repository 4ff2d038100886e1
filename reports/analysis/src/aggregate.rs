//! Evaluations aggregated over seeds.

use polars::prelude::*;

use super::selection::{Selection, mean, stable};
use crate::frame::rows;
use records::Metric;
use stats::Estimate;

rows! {
    /// Aggregate over seeds of one encoding's evaluations on one split at one length.
    #[derive(Debug, Clone, PartialEq)]
    pub struct Aggregate {
        /// Name of the workload: a task at one size.
        pub workload: String,
        /// Name of the encoding.
        pub encoding: String,
        /// Name of the split.
        pub split: String,
        /// Sequence length in the task's unit.
        pub len: u64,
        /// Whether the split is in distribution and the length within training.
        pub in_distribution: bool,
        /// Sequence length in training.
        pub train_len: u64,
        /// Metric that ranks encodings: `exact-match` or `perplexity`.
        pub headline: String,
        /// Number of questions of the evaluation.
        pub samples: u64,
        /// Number of unseen questions where training draws the others, of which the results below are; 0 if it draws all, and
        /// the results are those of all. `None` if all questions are alike.
        pub unseen_samples: Option<u64>,
        /// Share of the questions whose answers occur in training; `None` if all do.
        pub ceiling: Option<f64>,
        /// Exact match of the best constant answer at this length; `None` if unknown.
        pub chance: Option<f64>,
        /// Exact match, 0 to 1.
        pub exact_match: Estimate,
        /// Token accuracy, 0 to 1.
        pub token_accuracy: Estimate,
        /// Negative log-likelihood, nats per scored token.
        pub nll: Estimate,
        /// Mean bits per byte of text, where the task is text.
        pub bits_per_byte: Option<f64>,
    }
}

impl Aggregate {
    /// Estimate of a metric, on the metric's scale: nats for perplexity.
    pub fn estimate(&self, metric: Metric) -> Estimate {
        metric.choose(self.exact_match, self.token_accuracy, self.nll)
    }
}

/// Aggregates the evaluations of cells over seeds: one for each encoding, split and length, sorted.
///
/// # Errors
/// If the query fails.
pub(super) fn aggregate(counted: &Selection<'_>) -> PolarsResult<Vec<Aggregate>> {
    let by = ["encoding", "split", "len"];
    let first = [
        "workload",
        "in_distribution",
        "train_len",
        "headline",
        "samples",
        "unseen_samples",
        "ceiling",
    ]
    .map(|name| col(name).first());
    let values = ["exact_match", "token_accuracy", "nll"].map(col);
    let others = [col("chance").fill_null(col("task_chance")).first(), mean("bits_per_byte")];
    let seeds = counted
        .evaluations()
        .group_by_stable(by.map(col))
        .agg([&first[..], &values, &others].concat())
        .sort(by, stable());
    let mut rows = Aggregate::of(seeds)?;
    for row in &mut rows {
        row.bits_per_byte = row.bits_per_byte.filter(|bits| bits.is_finite());
    }
    Ok(rows)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::Frames;
    use records::testkit::TestCell;
    use records::{RunRecord, Status};

    fn aggregated(records: &[RunRecord]) -> Vec<Aggregate> {
        aggregate(&Selection::counted(&Frames::of(records).unwrap()).unwrap()).unwrap()
    }

    fn close(a: f64, b: f64) {
        assert!(a.is_finite() && (a - b).abs() < 1e-7, "{a} is not {b}");
    }

    #[test]
    fn aggregates_equal_those_by_hand() {
        let mut records: Vec<RunRecord> = [0.5, 0.6, 0.7]
            .into_iter()
            .zip(0..)
            .map(|(x, seed)| TestCell::new("w", "rope", seed).exact(x).record())
            .collect();
        for (record, nll) in records.iter_mut().zip([1.0, 2.0, 3.0]) {
            record.evals[1].nll = nll;
        }
        records.push(TestCell::new("w", "cope", 0).exact(0.25).record());
        // Neither may enter: their numbers are not those of a finished training.
        records.push(
            TestCell::new("w", "rope", 7)
                .exact(0.0)
                .status(Status::Diverged { step: 3, reason: "NaN".into() })
                .record(),
        );
        records.push(TestCell::new("w", "rope", 8).exact(0.0).status(Status::Interrupted).record());
        let rows = aggregated(&records);
        let ids: Vec<_> =
            rows.iter().map(|r| (r.encoding.as_str(), r.split.as_str(), r.len)).collect();
        assert_eq!(
            ids,
            [
                ("cope", "in-distribution", 64),
                ("cope", "sparse", 128),
                ("rope", "in-distribution", 64),
                ("rope", "sparse", 128)
            ]
        );
        let rope = &rows[3];
        // Mean .6, std .1, half 4.302653 * .1 / sqrt(3) = .2484138.
        assert_eq!(rope.exact_match.n, 3);
        close(rope.exact_match.mean, 0.6);
        close(rope.exact_match.std.unwrap(), 0.1);
        let (low, high) = rope.exact_match.ci95.unwrap();
        close(low, 0.351_586_2);
        close(high, 0.848_413_8);
        let by_stats = Estimate::of(&[1.0, 2.0, 3.0]).unwrap();
        close(rope.nll.ci95.unwrap().0, by_stats.ci95.unwrap().0);
        close(rope.nll.ci95.unwrap().1, by_stats.ci95.unwrap().1);
        close(rope.exact_match.median, 0.6);
        close(rope.exact_match.bootstrap.unwrap().median95.1, 0.7);
        let cope = &rows[0].exact_match;
        assert_eq!((cope.mean, cope.std, cope.ci95, cope.n), (0.25, None, None, 1));
        assert!(rows[0].in_distribution && !rows[1].in_distribution);
    }

    #[test]
    fn many_seeds_have_intervals_too() {
        let records: Vec<RunRecord> = (0..150)
            .map(|seed| TestCell::new("w", "rope", seed).exact((seed % 2) as f64).record())
            .collect();
        let rows = aggregated(&records);
        // Std .5 * sqrt(150 / 149), t(149) = 1.976013.
        let (low, high) = rows[0].exact_match.ci95.unwrap();
        close((high - low) / 2.0, 1.976_013 * 0.5 / 149.0_f64.sqrt());
    }

    #[test]
    fn a_nan_among_the_seeds_is_not_averaged_away() {
        let mut records: Vec<RunRecord> =
            (0..2).map(|seed| TestCell::new("w", "rope", seed).record()).collect();
        records[1].evals[0].exact_match = f64::NAN;
        let row = &aggregated(&records)[0];
        assert!(row.exact_match.mean.is_nan() && row.exact_match.ci95.is_none());
    }
}
