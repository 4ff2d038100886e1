use super::*;

#[test]
fn frames_have_one_row_per_thing_even_for_nothing() {
    let records = crate::testkit::suite();
    let evals: usize = records.iter().map(|r| r.evals.len()).sum();
    let points: usize = records.iter().map(|r| r.train.curve.len()).sum();
    assert_eq!(evals_frame(&records).unwrap().height(), evals);
    assert_eq!(runs_frame(&records).unwrap().height(), records.len());
    assert_eq!(curves_frame(&records).unwrap().height(), points);
    assert_eq!(evals_frame(&[]).unwrap().height(), 0);
}
