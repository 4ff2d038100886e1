//! Suites of another size than the published one.

use super::*;

/// Returns records of both encodings in a suite of another size, with these errors by encoding and seed.
fn smaller(errors: [[f64; 3]; 2]) -> Vec<RunRecord> {
    let settings = [json!({"base": 1e4}), json!({"max_positions": 8, "gates": "query-key"})];
    let mut records = Vec::new();
    for ((id, settings), errors) in ["rope", "cope"].into_iter().zip(settings).zip(errors) {
        for (seed, error) in errors.into_iter().enumerate() {
            let cell = TestCell::new("flip-flop", id, seed as u64).inside(1.0).beyond(1.0 - error);
            records.push(
                cell.change(|r| {
                    r.suite = "small".into();
                    r.config = config(id, &settings, r.seed, 50);
                    r.key = records::store::cell_key(&r.config);
                })
                .record(),
            );
        }
    }
    records
}

#[test]
fn a_suite_of_another_size_is_compared_by_order_alone() {
    let text =
        TEXT.replace("trust =", "smaller = [{ suite = \"small\", task = \"flip-flop\" }]\ntrust =");
    let order = |records: &[RunRecord]| result_of(&text, records).tables[0].orders[0].clone();
    // Published: RoPE has more errors than CoPE in both columns; inside there is a tie here.
    let same = order(&smaller([[0.3, 0.4, 0.2], [0.1, 0.1, 0.1]]));
    assert_eq!((same.pairs, same.same, same.opposite), (2, 1, 0));
    // Three seeds cannot carry two comparisons.
    assert_eq!((same.holds, same.contradicted), (0, 0));
    assert_eq!((same.rows, same.converged), (2, Some(2)));
    let other = order(&smaller([[0.0, 0.1, 0.0], [0.2, 0.3, 0.4]]));
    assert_eq!((other.same, other.opposite), (0, 1));
    // Records of another suite do not count.
    assert_eq!(order(&rope(&[0.3; 3])).pairs, 0);
}

#[test]
fn every_suite_of_another_size_is_compared_and_its_numbers_shown() {
    let text = TEXT
        .replace("trust =", "smaller = [{ suite = \"small\", task = \"flip-flop\" }, { suite = \"tiny\", task = \"flip-flop\" }]\ntrust =")
        .replace(
            "task = \"flip-flop\"\nsuite = \"paper-flip-flop\"",
            "missing = \"m\"\nneeds = \"n\"",
        );
    let mut records = smaller([[0.3, 0.4, 0.2], [0.1, 0.1, 0.1]]);
    records.extend(smaller([[0.1; 3], [0.2; 3]]).into_iter().map(|mut record| {
        record.suite = "tiny".into();
        record.config["train"]["steps"] = json!(20);
        record.key = records::store::cell_key(&record.config);
        record
    }));
    let found = result_of(&text, &records);
    let orders = &found.tables[0].orders;
    let counts: Vec<_> = orders.iter().map(|o| (&*o.suite, o.same, o.opposite)).collect();
    assert_eq!(counts, [("small", 1, 0), ("tiny", 0, 1)]);
    // Without records of the experiment there is no verdict.
    assert_eq!((at(&found, 0, 1).verdict, at(&found, 0, 1).runs.len()), (Verdict::OtherSize, 0));
}

#[test]
fn another_size_may_have_other_widths_and_a_loss_in_place_of_a_score() {
    let order = |text: &str| {
        let records = smaller([[0.3, 0.4, 0.2], [0.1, 0.1, 0.1]]);
        result_of(text, &records).tables[0].orders[0].clone()
    };
    let suite = "suite = \"small\", task = \"flip-flop\"";
    let row = "{ encoding = \"rope\", identity = { \"model.width\" = 512 },";
    let text = TEXT.replace("{ encoding = \"rope\",", row);
    let sized = |settings: &str| {
        text.replace("trust =", &format!("smaller = [{{ {suite}{settings} }}]\ntrust ="))
    };
    // The records have a width of 256, which stands for 512 if the table says so.
    assert_eq!(order(&sized("")).pairs, 0);
    let sizes = ", settings = { \"model.width\" = { 512 = 256 } }";
    let found = order(&sized(sizes));
    assert_eq!((found.pairs, found.same), (2, 1));

    // Scores: RoPE's 20.3 is better than CoPE's 4.9, but its records have more errors.
    let scores =
        TEXT.replace("metric = \"error-percent\"", "metric = { other = \"score\" }").replace(
            "task = \"flip-flop\"\nsuite = \"paper-flip-flop\"",
            "missing = \"m\"\nneeds = \"n\"",
        );
    let metric = |metric: &str| {
        scores.replace("trust =", &format!("smaller = [{{ {suite}{metric} }}]\ntrust ="))
    };
    let found = order(&metric(", metric = \"error-percent\""));
    assert_eq!((found.pairs, found.same, found.opposite), (2, 0, 1));
    for (wrong, expected) in [
        (metric(""), "expected a `split` where"),
        (metric(", metric = { other = \"points\" }"), "expected a metric that records have"),
        (sized(", metric = \"perplexity\""), "expected a `split` where"),
    ] {
        let (_, reason) = published::parse("p", &wrong).unwrap().tables[0].check().unwrap_err();
        assert!(reason.contains(expected), "{reason}");
    }
}
