use super::*;

fn with_axes(axes: &str) -> Result<Suite, SuiteError> {
    parsed(&SMALL.replace(
        "task = \"flip-flop\"",
        &format!("task = {{ kind = \"counting\", variables = 2 }}\naxes = {axes}"),
    ))
}

fn workloads(suite: &Suite) -> Vec<&str> {
    let mut names = suite.cells.iter().map(|cell| cell.workload.as_str()).collect::<Vec<_>>();
    names.dedup();
    names
}

#[test]
fn axes_are_crossed_and_each_point_is_a_workload_with_its_own_settings() {
    let suite = with_axes("{ \"task.variables\" = [1, 3, 5], \"model.layers\" = [2, 4] }").unwrap();
    assert_eq!(
        workloads(&suite),
        [
            "w layers=2 variables=1",
            "w layers=2 variables=3",
            "w layers=2 variables=5",
            "w layers=4 variables=1",
            "w layers=4 variables=3",
            "w layers=4 variables=5",
        ]
    );
    assert_eq!(suite.cells.len(), 6 * 4);
    let last = &suite.cells[23];
    assert_eq!((last.model.layers, last.train.batch_size), (4, 5));
    assert_eq!(serde_json::to_value(&last.task).unwrap()["variables"], 5);
}

#[test]
fn a_path_goes_into_sections_within_sections_and_makes_those_that_are_left_out() {
    let suite = with_axes(
        "{ \"train.optimizer.warmup_steps\" = [1, 9], \"train.validation.samples\" = [8] }",
    )
    .unwrap();
    assert_eq!(workloads(&suite), ["w warmup_steps=1 samples=8", "w warmup_steps=9 samples=8"]);
    let train = &suite.cells[4].train;
    assert_eq!(train.optimizer.warmup_steps, 9);
    assert!((train.optimizer.learning_rate - 0.5).abs() < 1e-12, "the others are kept");
    assert_eq!(train.validation.as_ref().unwrap().samples, 8);
}

#[test]
fn names_take_as_much_of_the_path_as_tells_them_apart() {
    let suite = with_axes("{ \"train.batch_size\" = [2, 3], \"eval.batch_size\" = [4], \"task.kind\" = [\"counting\"] }").unwrap();
    assert_eq!(
        workloads(&suite),
        [
            "w eval.batch_size=4 kind=counting train.batch_size=2",
            "w eval.batch_size=4 kind=counting train.batch_size=3"
        ]
    );
}

#[test]
fn every_mistake_in_axes_names_its_path() {
    for (axes, expected) in [
        (
            "{ \"task.variabels\" = [1] }",
            "(task.variabels = 1).task: counting: unknown field `variabels`",
        ),
        ("{ \"task.variables\" = [\"one\"] }", "task.variables"),
        ("{ \"tsk.variables\" = [1] }", "did you mean `task.…`?"),
        ("{ \"variables\" = [1] }", "axes.`variables`: expected a path in quotes"),
        ("{ variables = 3 }", "axes.`variables`"),
        ("{ task.variables = [1, 3] }", "axes.`task`"),
        ("{ \"task\" = [1, 3] }", "axes.`task`"),
        ("{ \"task.\" = [1, 3] }", "axes.`task.`"),
        ("{ \"model..layers\" = [1, 3] }", "empty part"),
        ("{ \"model.layers\" = [] }", "expected a list of at least one value"),
        ("{ \"model.layers\" = 3 }", "expected a list of at least one value"),
        ("{ \"model.layers\" = [3, 3] }", "3 is listed twice"),
        ("{ \"model.layers\" = [3, -1] }", "(model.layers = -1).model.layers"),
        ("{ \"train.steps.more\" = [3] }", "`steps` is 7, expected a map"),
        ("{ \"seed\" = [3] }", "expected a path"),
    ] {
        let error = with_axes(axes).map(|_| ()).unwrap_err().to_string();
        assert!(error.contains(expected), "{axes}: {error}");
    }
}
