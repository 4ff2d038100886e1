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
    values.iter().fold(TestCell::new("w", "rope", seed).without_evals(), |cell, (len, exact)| {
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
    assert_eq!(length(&[(32, 1.0), (64, 0.95), (128, 0.9), (256, 0.89), (512, 0.2)]), (128, false));
    assert_eq!(length(&[(64, 1.0), (128, 0.5), (256, 1.0)]), (64, false), "it does not come back");
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
