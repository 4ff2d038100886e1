use super::*;
use crate::testkit::suite;

#[test]
fn no_record_is_without_a_row() {
    let records = suite();
    let evals: usize = records.iter().map(|r| r.evals.len().max(1)).sum();
    let data = data_frame(&records).unwrap();
    assert_eq!(data.height(), evals);
    let without = records.iter().filter(|r| r.evals.is_empty()).count();
    assert!(without > 0);
    assert_eq!(data.column("split").unwrap().null_count(), without);
    assert_eq!(runs_frame(&records).unwrap().height(), records.len());
    assert_eq!(data_frame(&[]).unwrap().height(), 0);
}
