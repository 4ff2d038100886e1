use std::collections::BTreeMap;

use super::*;

fn with_rates(rates: &str) -> Result<Suite, SuiteError> {
    parsed(&SMALL.replace("seeds", &format!("learning_rates = {rates}\nseeds")))
}

#[test]
fn each_cell_runs_once_for_each_rate_and_the_optimizers_own_is_the_default() {
    let suite = with_rates("[0.1, 0.5, 1]").unwrap();
    assert_eq!(suite.cells.len(), 3 * 4);
    let points = suite.cells.iter().take(3).map(|cell| {
        let point = cell.grid.as_ref().unwrap();
        assert_eq!(point.axis, AXIS);
        assert_eq!(point.value.to_bits(), cell.train.optimizer.learning_rate.to_bits());
        (point.value, point.default)
    });
    assert_eq!(points.collect::<Vec<_>>(), [(0.1, false), (0.5, true), (1.0, false)]);
}

#[test]
fn the_default_point_is_the_cell_that_a_suite_without_a_grid_has() {
    let (with, without) = (with_rates("[0.1, 0.5]").unwrap(), parsed(SMALL).unwrap());
    let task = with.cells[0].task.build().unwrap();
    let keys = |suite: &Suite| suite.cells.iter().map(|c| c.key(&*task)).collect::<BTreeSet<_>>();
    assert!(keys(&with).is_superset(&keys(&without)));
    assert_eq!(keys(&with).len(), 8);
    assert!(without.cells.iter().all(|cell| cell.grid.is_none()));
}

#[test]
fn a_workload_has_its_own_grid_or_none() {
    let text = SMALL.replace("seeds", "learning_rates = [0.1, 0.5]\nseeds");
    let own = |rates: &str| {
        let task = "task = \"flip-flop\"";
        parsed(&text.replace(task, &format!("{task}\nlearning_rates = {rates}"))).unwrap()
    };
    assert_eq!(own("[]").cells.len(), 4);
    assert_eq!(own("[0.5, 0.6, 0.7]").cells.len(), 12);
}

#[test]
fn mistakes_in_the_grid_are_told() {
    for (rates, expected) in [
        ("[0.1, 0.2]", "does not contain 0.5, the optimizer's learning rate"),
        ("[0.5, 0.5]", "0.5 is listed twice"),
        ("[0.5, 0]", "0, expected finite numbers above 0"),
        ("[0.5, -1e-3]", "expected finite numbers above 0"),
        ("[0.5, inf]", "learning_rates[1]`: inf, expected a finite number"),
        ("0.5", "learning_rates"),
    ] {
        let error = with_rates(rates).map(|_| ()).unwrap_err().to_string();
        assert!(error.contains(expected), "{rates}: {error}");
    }
    let both = SMALL.replace("seeds", "learning_rates = [0.5]\nseeds").replace(
        "name = \"w\"",
        "name = \"w\"\naxes = { \"train.optimizer.learning_rate\" = [0.5] }",
    );
    assert!(parsed(&both).unwrap_err().to_string().contains("are given; keep one"));
}

#[test]
fn fresh_seeds_are_cells_of_their_own_at_the_chosen_rate() {
    let text = |fresh: &str| format!("learning_rates = [0.1, 0.5]\nfresh_seeds = {fresh}\nseeds");
    let with = |fresh: &str| parsed(&SMALL.replacen("seeds", &text(fresh), 1));
    let suite = with("[7, 8, 9]").unwrap();
    assert_eq!((suite.cells.len(), suite.fresh.len()), (2 * 4, 2 * 6));
    assert!(suite.cells.iter().all(|cell| !cell.grid.as_ref().unwrap().fresh));
    assert!(suite.fresh.iter().all(|cell| cell.grid.as_ref().unwrap().fresh));
    let task = suite.cells[0].task.build().unwrap();
    let context = crate::run::RunContext {
        suite: suite.name.clone(),
        suite_sha256: None,
        threads: 1,
        jobs: 1,
    };
    let mut records: Vec<_> = suite
        .cells
        .iter()
        .map(|cell| crate::run::unfinished_record(cell, &*task, &context))
        .map(|record| records::RunRecord { status: records::Status::Done, ..record })
        .collect();
    let first = suite.cells[0].name.clone();
    let rates = |of_first: f64| {
        let rate = |cell: &Experiment| if cell.name == first { of_first } else { 0.5 };
        let of_cell = |cell: &Experiment| ((cell.workload.clone(), cell.name.clone()), rate(cell));
        suite.cells.iter().map(of_cell).collect::<BTreeMap<_, _>>()
    };
    let chosen = suite.fresh_cells(&records, &rates(0.5));
    let rate_texts: BTreeSet<String> =
        chosen.iter().map(|cell| cell.train.optimizer.learning_rate.to_string()).collect();
    assert_eq!((chosen.len(), rate_texts), (6, BTreeSet::from(["0.5".to_owned()])));
    let chosen = suite.fresh_cells(&records, &rates(0.1));
    let at_small = |cell: &&Experiment| cell.train.optimizer.learning_rate < 0.2;
    let small: BTreeSet<&str> =
        chosen.iter().filter(at_small).map(|cell| cell.name.as_str()).collect();
    assert_eq!((chosen.len(), small), (6, BTreeSet::from([first.as_str()])));

    // An encoding without all results waits, the other does not.
    assert!(suite.unchosen(&records).is_empty());
    records[0].status = records::Status::Failed { reason: "a panic".to_owned() };
    let waits = suite.cells[0].name.as_str();
    assert_eq!(suite.unchosen(&records).into_iter().collect::<Vec<_>>(), [("w", waits)]);
    let chosen = suite.fresh_cells(&records, &rates(0.1));
    assert!(chosen.len() == 3 && chosen.iter().all(|cell| cell.name != waits));
    // A missing record, for instance of a damaged file, is no result either.
    records.retain(|record| record.encoding.name == waits);
    assert_eq!(suite.unchosen(&records).len(), 2);

    for (refused, told) in [("[3]", "3 is both among `seeds`"), ("[3.5]", "fresh_seeds")] {
        let error = with(refused).unwrap_err().to_string();
        assert!(error.contains(told), "{error}");
    }
    let alone = parsed(&SMALL.replacen("seeds", "fresh_seeds = [7]\nseeds", 1));
    assert!(alone.unwrap_err().to_string().contains("without `learning_rates`"));
}
