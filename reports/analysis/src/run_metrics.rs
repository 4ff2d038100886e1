//! Metrics of individual runs: whether and when training was solved, and the effective length.
//!
//! They are defined for tasks ranked by exact match only: text has no criterion of being solved.

use polars::prelude::*;

use super::selection::{Selection, has_status, mean};
use crate::frame::{join_cells, rows};
use records::settings::Settings;
use stats::sorted_median;

/// Median over seeds with the range.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct MedianRange {
    /// Median over the seeds.
    pub median: f64,
    /// Minimum and maximum over the seeds.
    pub range: (f64, f64),
    /// Number of seeds behind the median.
    pub n: u32,
}

impl MedianRange {
    fn of(mut values: Vec<f64>) -> Option<Self> {
        values.sort_by(f64::total_cmp);
        let range = (*values.first()?, *values.last()?);
        Some(Self { median: sorted_median(&values), range, n: values.len() as u32 })
    }
}

/// Run metrics of one encoding on a workload, over its seeds.
#[derive(Debug, Clone, PartialEq)]
pub struct RunMetrics {
    /// Name of the encoding.
    pub encoding: String,
    /// Number of seeds that solved training.
    pub solved: u32,
    /// Number of seeds trained to the end or until they diverged.
    pub run: u32,
    /// Number of these seeds with validations, from which their time to solve is taken; the loss is used for the
    /// others.
    pub by_validation: u32,
    /// Steps to solve training, over the seeds that did and whose validations or losses show when.
    pub solve_steps: Option<MedianRange>,
    /// Seconds to solve training, over the same seeds.
    pub solve_seconds: Option<MedianRange>,
    /// Whether the time of one of these seeds was disturbed; see [`records::RunRecord::disturbance`].
    pub disturbed: bool,
    /// Effective length over the finished seeds, in the task's unit of length.
    pub effective: Option<MedianRange>,
    /// Whether the median effective length is the longest evaluated length, so that the true value may be larger.
    pub effective_at_least: bool,
    /// Median of the ratio of effective length to training length.
    pub effective_ratio: Option<f64>,
}

impl RunMetrics {
    /// Returns the share of seeds that solved training; `None` if none was run.
    pub fn fit_rate(&self) -> Option<f64> {
        (self.run > 0).then(|| f64::from(self.solved) / f64::from(self.run))
    }
}

rows! {
    /// Metrics of all runs of an encoding; null for a seed that did not solve training or has no effective length.
    struct EncodingRuns {
        encoding: String,
        train_len: Vec<u64>,
        solved: Vec<bool>,
        solve_step: Vec<Option<u64>>,
        solve_seconds: Vec<Option<f64>>,
        disturbed: Vec<bool>,
        validated: Vec<bool>,
        effective: Vec<Option<u64>>,
        longest: Vec<Option<u64>>,
    }
}

/// Run metrics of each encoding, sorted by name, from one cell for each seed. Empty for a task that cannot be solved.
///
/// A cell solved training if its exact match, averaged over all evaluations in distribution, is at least
/// [`Settings::solved_exact_match`]; a diverged cell did not. It solved at its first solving validation if it has
/// validations, otherwise at the first point of its curve with a loss of at most [`Settings::solved_loss`]. A point is
/// the mean loss since the point before, so the time is late by at most one interval between points.
///
/// The effective length is the largest evaluated length up to which exact match is at least
/// [`Settings::effective_exact_match`] at every evaluated length, on the splits that training drew from (those with an
/// evaluation in distribution). A length at which the cell could not be evaluated is not held.
///
/// # Errors
/// If the query fails.
pub(super) fn run_metrics(
    ended: &Selection<'_>,
    settings: &Settings,
) -> PolarsResult<Vec<RunMetrics>> {
    let first = |name: &str| col(name).first();
    let inside = ended
        .rows(|frames| &frames.evaluations)
        .filter(col("in_distribution"))
        .group_by_stable([col("cell")])
        .agg([mean("exact_match").alias("inside")]);
    let validated = ended
        .rows(|frames| &frames.validations)
        .group_by([col("cell")])
        .agg([len().alias("validations")]);
    let low_loss = ended
        .rows(|frames| &frames.curves)
        .filter(col("loss").lt_eq(lit(settings.solved_loss)))
        .group_by_stable([col("cell")])
        .agg([first("step"), first("seconds")]);
    // Polars takes NaN for the greatest number.
    let solved =
        col("inside").gt_eq(lit(settings.solved_exact_match)).and(col("inside").is_not_nan());
    let time = |by_validation: &str, by_loss: &str| {
        let time =
            when(col("validations").is_not_null()).then(col(by_validation)).otherwise(col(by_loss));
        when(col("solved")).then(time).otherwise(NULL.lit())
    };
    let join = |left, right| join_cells(left, right, JoinType::Left);
    let runs = [inside, validated, low_loss, effective_lengths(ended, settings)?]
        .into_iter()
        .fold(ended.cells().filter(col("headline").eq(lit("exact-match"))), join)
        .with_columns([when(has_status("diverged"))
            .then(lit(false))
            .when(has_status("done"))
            .then(solved)
            .otherwise(NULL.lit())
            .alias("solved")])
        .filter(col("solved").is_not_null())
        .with_columns([
            time("solved_step", "step").alias("solve_step"),
            time("solved_seconds", "seconds").alias("solve_seconds"),
            col("validations").is_not_null().alias("validated"),
        ])
        .group_by_stable([col("encoding")])
        .agg(EncodingRuns::COLUMNS[1..].iter().copied().map(col).collect::<Vec<_>>());
    Ok(EncodingRuns::of(runs)?.into_iter().map(metrics).collect())
}

/// Computes the columns `cell`, `effective` and `longest`: the effective length, 0 if exact match is too low at the
/// shortest length, and the longest evaluated length.
fn effective_lengths(ended: &Selection<'_>, settings: &Settings) -> PolarsResult<LazyFrame> {
    let done = || ended.cells().filter(has_status("done")).select([col("cell")]);
    let evaluations = ended.evaluations();
    let split = [col("cell"), col("split")];
    let training = evaluations
        .clone()
        .filter(col("in_distribution"))
        .select(&split)
        .unique(None, UniqueKeepStrategy::Any);
    let high = col("exact_match")
        .gt_eq(lit(settings.effective_exact_match))
        .and(col("exact_match").is_not_nan());
    let evaluated =
        evaluations.select([col("cell"), col("split"), col("len"), high.alias("holds")]);
    let skipped = ended.rows(|frames| &frames.skipped);
    let skipped =
        skipped.select([col("cell"), col("split"), col("len"), lit(false).alias("holds")]);
    let lengths = concat([evaluated, skipped], UnionArgs::default())?
        .join(training, &split, &split, JoinArgs::new(JoinType::Inner))
        .inner_join(done(), col("cell"), col("cell"));
    let lost = lengths
        .clone()
        .filter(col("holds").not())
        .group_by([col("cell")])
        .agg([col("len").min().alias("lost")]);
    let held = col("lost").is_null().or(col("len").lt(col("lost")));
    Ok(lengths.left_join(lost, col("cell"), col("cell")).group_by([col("cell")]).agg([
        col("len").filter(held).max().fill_null(lit(0_u64)).alias("effective"),
        col("len").max().alias("longest"),
    ]))
}

fn metrics(runs: EncodingRuns) -> RunMetrics {
    let lengths = runs.effective.iter().zip(&runs.longest).zip(&runs.train_len);
    let mut lengths: Vec<(u64, bool, f64)> = lengths
        .filter_map(|((len, longest), trained)| {
            let len = (*len)?;
            Some((len, Some(len) == *longest, len as f64 / *trained as f64))
        })
        .collect();
    lengths.sort_by_key(|(len, at_least, _)| (*len, *at_least));
    let ratios = lengths.iter().map(|(.., ratio)| *ratio).collect();
    RunMetrics {
        encoding: runs.encoding,
        solved: runs.solved.iter().filter(|solved| **solved).count() as u32,
        run: runs.solved.len() as u32,
        by_validation: runs.validated.iter().filter(|validated| **validated).count() as u32,
        solve_steps: MedianRange::of(
            runs.solve_step.iter().flatten().map(|step| *step as f64).collect(),
        ),
        disturbed: runs.solve_seconds.iter().zip(&runs.disturbed).any(|(s, d)| s.is_some() && *d),
        solve_seconds: MedianRange::of(runs.solve_seconds.into_iter().flatten().collect()),
        effective: MedianRange::of(lengths.iter().map(|(len, ..)| *len as f64).collect()),
        effective_at_least: lengths
            .get(lengths.len() / 2)
            .is_some_and(|(_, at_least, _)| *at_least),
        effective_ratio: MedianRange::of(ratios)
            .map(|m| m.median)
            .filter(|ratio| ratio.is_finite()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::Frames;
    use crate::{Report, ReportMeta};
    use records::testkit::TestCell;
    use records::{RunRecord, Status};

    fn settings() -> Settings {
        Settings::default()
    }

    /// A cell evaluated on its training split at these lengths; trained at 64.
    fn by_length(seed: u64, values: &[(u64, f64)]) -> TestCell {
        values
            .iter()
            .fold(TestCell::new("w", "rope", seed).without_evals(), |cell, (len, exact)| {
                cell.eval("uniform", *len <= 64, *len, *exact)
            })
    }

    /// Metrics of the only encoding.
    fn only(records: &[RunRecord], settings: &Settings) -> RunMetrics {
        let frames = Frames::of(records).unwrap();
        let mut report = Report::with(frames, &ReportMeta::default(), settings).unwrap();
        report.workloads.remove(0).run_metrics.remove(0)
    }

    /// Effective length of a cell, and whether it is the longest.
    fn effective(cell: TestCell) -> Option<(f64, bool)> {
        let found = only(&[cell.record()], &settings());
        found.effective.map(|length| (length.median, found.effective_at_least))
    }

    fn length(values: &[(u64, f64)]) -> (u64, bool) {
        let (len, at_least) = effective(by_length(0, values)).unwrap();
        (len as u64, at_least)
    }

    #[test]
    fn the_effective_length_ends_where_exact_match_first_falls() {
        assert_eq!(
            length(&[(32, 1.0), (64, 0.95), (128, 0.9), (256, 0.89), (512, 0.2)]),
            (128, false)
        );
        assert_eq!(
            length(&[(64, 1.0), (128, 0.5), (256, 1.0)]),
            (64, false),
            "it does not come back"
        );
        assert_eq!(length(&[(256, 0.99), (64, 1.0), (128, 1.0)]), (256, true), "in any order");
        assert_eq!(length(&[(32, 0.3), (64, 1.0)]), (0, false));
        assert_eq!(length(&[(64, f64::NAN), (128, 1.0)]), (0, false));
    }

    #[test]
    fn a_length_that_could_not_be_run_is_not_held() {
        let limited = by_length(0, &[(64, 1.0), (128, 1.0)]).limited_to(64);
        assert_eq!(effective(limited), Some((64.0, false)));
    }

    #[test]
    fn other_splits_have_no_say() {
        let cell = by_length(0, &[(64, 1.0), (128, 1.0)]).eval("sparse", false, 128, 0.0).record();
        assert_eq!(effective(cell.into()), Some((128.0, true)));
        // Without an evaluation in distribution it is unknown whether training was solved.
        let nothing = TestCell::new("w", "rope", 0).without_evals().eval("sparse", false, 128, 1.0);
        let report = Report::new([nothing.record()], &ReportMeta::default()).unwrap();
        assert_eq!(report.workloads[0].run_metrics, []);
    }

    #[test]
    fn a_text_cannot_be_solved() {
        let text = TestCell::new("text", "rope", 0).text(1.0, 1.0).record();
        let report = Report::new([text], &ReportMeta::default()).unwrap();
        assert_eq!(report.workloads[0].run_metrics, []);
    }

    #[test]
    fn the_time_to_solve_is_the_first_point_with_a_low_loss() {
        // The curve of the test cells: loss 2, 1, 0.667, 0.5 at steps 50, 100, 150, 200.
        let loose = Settings { solved_loss: 0.7, ..settings() };
        let times = |cell: TestCell, settings: &Settings| {
            let found = only(&[cell.record()], settings);
            found
                .solve_steps
                .zip(found.solve_seconds)
                .map(|(step, seconds)| (step.median, seconds.median))
        };
        let cell = || TestCell::new("w", "rope", 0);
        assert_eq!(times(cell(), &loose), Some((150.0, 3.0)));
        assert_eq!(times(cell(), &settings()), None, "its loss never got there");
        assert_eq!(times(cell().inside(0.98), &loose), None, "its answers are wrong");
    }

    #[test]
    fn the_fit_rate_counts_diverged_seeds_and_not_failed_ones() {
        let diverged = Status::Diverged { step: 1, reason: "NaN".into() };
        let failed = Status::Failed { reason: "gone".into() };
        let records = [
            TestCell::new("w", "rope", 0).inside(0.99).record(),
            TestCell::new("w", "rope", 1).inside(0.98).record(),
            TestCell::new("w", "rope", 2).without_evals().status(diverged).record(),
            TestCell::new("w", "rope", 3).without_evals().status(failed).record(),
        ];
        let all = only(&records, &settings());
        assert_eq!((all.solved, all.run), (1, 3));
        assert!((all.fit_rate().unwrap() - 1.0 / 3.0).abs() < 1e-12);
        assert_eq!(all.effective.unwrap().n, 2);
    }

    #[test]
    fn lengths_over_seeds_are_medians_with_their_range() {
        let records = [
            by_length(0, &[(64, 1.0), (128, 1.0), (256, 1.0)]).record(),
            by_length(1, &[(64, 1.0), (128, 0.0), (256, 0.0)]).record(),
            by_length(2, &[(64, 1.0), (128, 1.0), (256, 0.0)]).record(),
        ];
        let of = |records: &[RunRecord]| only(records, &settings());
        let three = of(&records);
        let effective = three.effective.unwrap();
        assert_eq!((effective.median, effective.range, effective.n), (128.0, (64.0, 256.0), 3));
        assert_eq!((three.effective_at_least, three.effective_ratio), (false, Some(2.0)));
        let two = of(&[records[0].clone(), records[2].clone()]);
        assert_eq!((two.effective.unwrap().median, two.effective_at_least), (192.0, true));
    }
}
