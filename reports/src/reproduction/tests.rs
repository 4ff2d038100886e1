use std::collections::BTreeMap;

use serde_json::json;

use super::*;
use crate::testkit::{prose_of, table_of};
use analysis::frame::Frames;
use analysis::reproduction::recipe::Identity;
use analysis::reproduction::{beside, published, reproduction};
use records::RunRecord;
use records::testkit::TestCell;

/// A source with one table, whose order is also judged in the suites `small` and `tiny`.
const TEXT: &str = r#"
[paper]
id = "p"
label = "Paper"
title = "P"
url = "u"
about = "a"
[[table]]
id = "t"
source = "Table 1"
what = "Flip-flop"
metric = "error-percent"
seeds = 3
trust = "The order."
task = "flip-flop"
suite = "paper-flip-flop"
recipe = { "train.steps" = 10000 }
smaller = [{ suite = "small", task = "flip-flop" }, { suite = "tiny", task = "flip-flop" }]
columns = [{ name = "in", split = "in-distribution" }, { name = "sparse", split = "sparse", length_ratio = 2.0 }]
rows = [
  { encoding = "rope", values = ["1.8", "20.3"], deviations = { sparse = 3.1 } },
  { encoding = "cope", values = ["0.0", "4.9"] },
]
"#;

fn result(records: &[RunRecord]) -> Reproduction {
    result_of(TEXT, records)
}

/// Compares the numbers of a source with records.
fn result_of(text: &str, records: &[RunRecord]) -> Reproduction {
    let encodings: BTreeMap<String, Identity> = serde_json::from_value(json!({
        "rope": {"id": "rope", "settings": {}},
        "cope": {"id": "cope", "settings": {}},
    }))
    .unwrap();
    let paper = published::parse("p", text).unwrap();
    beside(vec![paper], &encodings, &Frames::of(records).unwrap()).unwrap()
}

/// Builds records of an encoding in a suite with these errors beyond training, by seed.
fn records(suite: &str, encoding: &str, steps: u64, errors: [f64; 3]) -> Vec<RunRecord> {
    let cell = |(seed, error): (u64, f64)| {
        let config = json!({
            "encoding": {"id": encoding, "settings": {}},
            "task": {"kind": "flip-flop"},
            "train": {"steps": steps, "len": 64},
            "seed": seed,
        });
        let cell = TestCell::new("flip-flop", encoding, seed).inside(0.982).beyond(1.0 - error);
        cell.change(|r| {
            r.suite = suite.into();
            r.key = records::store::cell_key(&config);
            r.config = config;
        })
        .record()
    };
    (0..).zip(errors).map(cell).collect()
}

#[test]
fn sections_mirror_the_papers_table_and_name_every_recipe_once() {
    let found = result(&records("paper-flip-flop", "rope", 900, [0.19, 0.20, 0.21]));
    let table_section = section(&found).sections.remove(0);
    assert_eq!(table_section.heading, "Paper, table 1: t");
    let table = table_of(&table_section);
    assert_eq!(table.columns, ["encoding", "in", "sparse"]);
    let rope = &table.rows[0];
    assert_eq!(
        (&*rope[2].text, &*rope[2].detail),
        ("20.3", "ours 20.0 [17.5, 22.5] n=3, other recipe 1")
    );
    assert!(rope[1].detail.ends_with("other recipe 1"), "{}", rope[1].detail);
    assert_eq!((&*table.rows[1][1].text, &*table.rows[1][1].detail), ("0.0", ""));
    let recipes: Vec<_> = table.notes.iter().filter(|n| n.starts_with("Recipe")).collect();
    assert_eq!(recipes, ["Recipe 1: train.steps 900 (published: 10000)."]);
    let summary = summary(&found);
    let row: Vec<&str> = summary.rows[0].iter().map(|cell| cell.text.as_str()).collect();
    assert_eq!(row, ["Paper", "4", "0", "0", "0", "0", "2", "0", "2", "0", "0"]);
    let said = prose_of(&section(&found)).join(" ");
    assert!(
        said.contains("Of 4 published numbers, 2 are shown next to runs of another recipe"),
        "{said}"
    );
    // With a verdict, the table stands there.
    let decided = section(&result(&records("paper-flip-flop", "rope", 10000, [0.19, 0.20, 0.21])));
    assert_eq!(table_of(&decided).rows.len(), 1);
}

#[test]
fn every_published_table_has_a_section_and_without_a_run_of_any_there_is_none() {
    let found = reproduction(&Frames::of(&[]).unwrap()).unwrap();
    let headings: Vec<String> =
        found.tables.iter().map(|table| table_section(table).heading).collect();
    assert!(headings.len() > 10 && headings.iter().all(|text| text.contains(": ")), "{headings:?}");
    assert_eq!(section(&found), Section::default());
}

#[test]
fn numbers_of_another_size_are_shown_where_no_record_has_the_published_one() {
    let small = [("rope", [0.3, 0.4, 0.2]), ("cope", [0.1; 3])];
    let tiny = [("rope", [0.1; 3]), ("cope", [0.2; 3])];
    let sizes = [("small", 50, small), ("tiny", 20, tiny)];
    let of_size = |(suite, steps, by_encoding): (&str, u64, [(&str, [f64; 3]); 2])| {
        by_encoding.map(|(encoding, errors)| records(suite, encoding, steps, errors)).concat()
    };
    let text = TEXT.replace(
        "task = \"flip-flop\"\nsuite = \"paper-flip-flop\"",
        "missing = \"m\"\nneeds = \"n\"",
    );
    let found = result_of(&text, &sizes.map(of_size).concat());
    let section = section(&found).sections.remove(0);
    let orders: Vec<_> =
        prose_of(&section).into_iter().filter(|text| text.starts_with("Another size")).collect();
    assert_eq!(orders.len(), 2);
    assert!(
        orders[0]
            .contains("in `small` the means of 1 of 2 pairs of rows are in the published order"),
        "{orders:?}"
    );
    let cell = &table_of(&section).rows[0][2];
    assert_eq!(&*cell.text, "20.3");
    assert!(
        cell.detail.contains("ours 30.0 [5.2, 54.8] n=3 in `small` (% wrong)")
            && cell.detail.contains("ours 10.0 [9.8, 10.2] n=3 in `tiny` (% wrong)"),
        "{}",
        cell.detail
    );
}
