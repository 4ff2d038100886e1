//! Tests of axes, a grid of learning rates, an ablation and criteria of the report, from the text of a suite to its page.
#![allow(clippy::unwrap_used, reason = "tests panic on failure")]

mod program;

use std::path::Path;

use program::{bench, text};

const SUITE: &str = r#"
name = "tiny"
title = "Tiny"
about = "For tests."
seeds = [0, 1]
learning_rates = [1e-3, 1e-2]

[ablation]
base = "cope"
axes = { max_positions = [4] }
changes = ["nope"]

[report]
solved_exact_match = 0.75

[model]
layers = 1
width = 16

[train]
steps = 6
batch_size = 4
len = 6
validation = { every_steps = 3, samples = 8 }

[eval]
lens = [6, 12]
samples = 8

[[workload]]
name = "strings"
task = "parity"
axes = { "model.heads" = [1, 2] }
"#;

#[test]
fn axes_grid_ablation_and_criteria_reach_the_page() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (suite, out, criteria) = (path("tiny.toml"), path("out"), path("criteria.toml"));
    std::fs::write(&suite, SUITE).unwrap();

    let dry = bench(&["run", &suite, "--out", &out, "--dry-run"]);
    assert!(text(&dry).contains("24 cells"), "{}", text(&dry));
    let ran = bench(&["run", &suite, "--out", &out]);
    assert!(ran.status.success(), "{}", text(&ran));
    let page = || std::fs::read_to_string(Path::new(&out).join("report.md")).unwrap();
    for expected in [
        "## strings heads=1",
        "## strings heads=2",
        "### Grid of learning_rate",
        "validation at 0.01",
        "### Changes of CoPE, ",
        "exact match of at least 75.0% in distribution",
    ] {
        assert!(page().contains(expected), "{expected}: {}", page());
    }

    // The same command keeps everything; `report` takes the criteria of the run, and others give another page.
    let again = bench(&["run", &suite, "--out", &out]);
    assert!(text(&again).contains("24 cells, 24 of them with a record"), "{}", text(&again));
    let report = bench(&["report", &out]);
    assert!(report.status.success(), "{}", text(&report));
    assert!(page().contains("### Changes of CoPE") && page().contains("at least 75.0%"));
    std::fs::write(&criteria, "solved_exact_match = 0.5\n").unwrap();
    let report = bench(&["report", &out, "--settings", &criteria, "--ablation-base", "nope"]);
    assert!(report.status.success(), "{}", text(&report));
    assert!(page().contains("### Changes of NoPE") && page().contains("at least 50.0%"));
    std::fs::write(&criteria, "ablation_base = \"rope\"\n").unwrap();
    let report = bench(&["report", &out, "--settings", &criteria]);
    assert!(report.status.success(), "{}", text(&report));
    assert!(page().contains("No cell uses the ablation base `rope`"), "{}", page());
    let report = bench(&["report", &out, "--ablation-base", "rope"]);
    assert!(!report.status.success(), "{}", text(&report));
    assert!(text(&report).contains("no record has the encoding `rope`, expected one of cope"));

    for (wrong, expected) in [
        ("solved_exact = 0.5", "did you mean `solved_exact_match`?"),
        ("solved_exact_match = 50", "solved_exact_match` is 50"),
        ("solved_exact_match", "criteria.toml"),
    ] {
        std::fs::write(&criteria, wrong).unwrap();
        let report = bench(&["report", &out, "--settings", &criteria]);
        assert!(!report.status.success() && text(&report).contains(expected), "{}", text(&report));
    }
}

#[test]
fn suites_are_listed_with_what_they_cost() {
    let said = text(&bench(&["list", "suites"]));
    let line = |name: &str| said.lines().find(|line| line.starts_with(name)).unwrap().to_owned();
    let zoo = line("zoo ");
    assert_eq!(zoo.split_whitespace().skip(1).take(2).collect::<Vec<_>>(), ["1443", "3848"]);
    assert!(line("quick").contains(" minutes"), "{said}");
    assert!(line("tape-addition").contains(" days"), "{said}");
}
