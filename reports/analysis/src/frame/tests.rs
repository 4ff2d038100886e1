use super::*;
use records::testkit::suite;

#[test]
fn no_record_is_without_a_row() {
    let records = suite();
    let evals: usize = records.iter().map(|r| r.evals.len().max(1)).sum();
    let frames = Frames::of(&records).unwrap();
    let data = frames.data().unwrap();
    assert_eq!(data.height(), evals);
    let without = records.iter().filter(|r| r.evals.is_empty()).count();
    assert!(without > 0);
    assert_eq!(data.column("split").unwrap().null_count(), without);
    assert_eq!(frames.cells.height(), records.len());
    assert_eq!(Frames::of(&[]).unwrap().data().unwrap().height(), 0);
}

#[test]
fn every_setting_is_a_column_of_its_type() {
    let mut records = suite()[..2].to_vec();
    records[0].config =
        serde_json::json!({"train": {"rate": 1, "on": true, "lens": [1, 2]}, "only": "here"});
    records[1].config =
        serde_json::json!({"train": {"rate": 0.5, "on": false, "lens": null}, "seed": "text"});
    let cells = Frames::of(&records).unwrap().with_settings().unwrap().cells;
    let column = |name: &str| cells.column(name).unwrap().as_materialized_series().clone();
    assert_eq!(
        column("config.train.rate").f64().unwrap().iter().flatten().collect::<Vec<_>>(),
        [1.0, 0.5]
    );
    assert_eq!(column("config.train.on").bool().unwrap().get(1), Some(false));
    assert_eq!(column("config.train.lens").str().unwrap().get(0), Some("[1,2]"));
    assert_eq!(column("config.train.lens").str().unwrap().get(1), None);
    assert_eq!(column("config.only").str().unwrap().get(0), Some("here"));
    assert_eq!(column("config.seed").str().unwrap().get(0), None);
}
