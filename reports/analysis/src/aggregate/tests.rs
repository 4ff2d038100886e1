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
    let ids: Vec<_> = rows.iter().map(|r| (r.encoding.as_str(), r.split.as_str(), r.len)).collect();
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
