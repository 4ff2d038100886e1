//! The reproduction as sections with tables, for all formats.

use crate::document::{Element, Section, Table, TableCell};
use analysis::reproduction::published::PublishedTable;
use analysis::reproduction::{
    NumberResult, Reproduction, SizeOrder, TableResult, VERDICTS, Verdict,
};

/// Explanation of the verdicts, as METHODOLOGY.md defines them.
const RULE: [&str; 3] = [
    "Agrees: the runs follow the published recipe as far as it is known, at least 3 seeds ran, no run diverged, and \
     our 95% interval over seeds contains the published number. The interval is Student's t with a standard \
     deviation of at least 0.1 points. The published number represents all values that round to it, or a wider range \
     if the paper states its uncertainty.",
    "Differs: the recipe and the number of seeds are as for “agrees”, but a run diverged or the interval does not \
     contain the published number. Undecided: the interval does not contain the published number, but the paper \
     prints a standard deviation that pe-zoo's copy of the table lacks. Too few seeds: the runs follow the published \
     recipe, but there are fewer than 3 seeds.",
    "Other recipe: every run differs from the published recipe in a setting or in the task. Such a run is neither \
     `agrees` nor `differs`; the report lists the differences. If runs follow several recipes, the report shows the \
     recipe with the fewest differences. Other size: every run belongs to a suite with smaller models.",
];

/// Returns the table of the number of verdicts of each kind by source.
pub fn summary(found: &Reproduction) -> Table {
    let number = |tables: &[TableResult], of: &dyn Fn(Verdict) -> bool| {
        let numbers = tables.iter().flat_map(|table| table.rows.iter().flatten());
        numbers.filter(|number| of(number.verdict)).count().to_string()
    };
    let table = Table::of(found.tables.chunk_by(|a, b| a.source.id == b.source.id))
        .column("source", |tables| tables[0].source.label.clone())
        .column("numbers", |tables| number(tables, &|_| true))
        .columns(
            VERDICTS,
            |verdict| verdict.label(),
            |verdict, tables| number(tables, &|other| other == *verdict).into(),
        )
        .table();
    Table { notes: RULE.map(str::to_owned).to_vec(), ..table }
}

/// Returns a section with the summary, and within one for each table of each source. Without a verdict, a sentence stands
/// for the summary. Nothing if no record is of an experiment with published numbers.
pub fn section(found: &Reproduction) -> Section {
    let numbers = || found.tables.iter().flat_map(|table| table.rows.iter().flatten());
    let count = |verdict| numbers().filter(|number| number.verdict == verdict).count();
    if numbers().all(|number| number.runs.is_empty() && number.other_sizes.is_empty()) {
        return Section::default();
    }
    let is_decided = VERDICTS[..4].iter().any(|verdict| count(*verdict) > 0);
    let summary = if is_decided {
        Element::Table(summary(found).with_id("published"))
    } else {
        Element::Prose(format!(
            "No record follows the recipe of a published number. Of {} published numbers, {} are shown next to \
             runs of another recipe and {} next to runs of another size.",
            numbers().count(),
            count(Verdict::OtherRecipe),
            count(Verdict::OtherSize)
        ))
    };
    Section::of("Published numbers", vec![summary]).with(found.tables.iter().map(table_section))
}

fn table_section(result: &TableResult) -> Section {
    let table = &result.table;
    let mut recipes: Vec<String> = Vec::new();
    let mut cell = |number: &NumberResult| {
        let text = match number.published.value {
            Some(_) => number.published.text.clone(),
            None => number.verdict.label(),
        };
        // Where no run is of the experiment itself, those at another size are shown.
        let detail = number.runs.first().map_or_else(
            || number.other_sizes_text(),
            |run| {
                let differences = result.differences(run);
                let recipe = recipe(&mut recipes, differences);
                format!("ours {}, {}{recipe}", run.text(), number.verdict.label())
            },
        );
        let strong = number.verdict == Verdict::Agrees;
        TableCell { strong, ..TableCell::with_detail(text, detail) }
    };
    let rows = table.rows.iter().zip(&result.rows).map(|(row, numbers)| {
        std::iter::once(row.title().into()).chain(numbers.iter().map(&mut cell)).collect()
    });
    let rows: Vec<Vec<TableCell>> = rows.collect();
    let heads = table.columns.iter().map(|column| match &column.metric {
        Some(metric) => format!("{} ({})", column.name, metric.unit()),
        None => column.name.clone(),
    });
    let columns = std::iter::once("encoding".to_owned()).chain(heads).collect();
    let recipes = (1..).zip(recipes).map(|(index, recipe)| format!("Recipe {index}: {recipe}."));
    let mut notes: Vec<String> = recipes.chain([format!("Reliability: {}", table.trust)]).collect();
    if !table.unknown.is_empty() {
        notes.push(format!("Not published: {}", table.unknown.join(" ")));
    }
    if let Some(reason) = &table.unread_deviations {
        notes.push(format!(
            "Standard deviations: {reason}. A number without a standard deviation can agree but never differs."
        ));
    }
    notes.extend(table.unlike.iter().map(|unlike| format!("Difference from the paper: {unlike}.")));
    notes.extend(table.needs.iter().map(|needs| format!("A verdict needs {needs}.")));
    let about = [format!("{}. Metric or unit: {}.", table.what, table.metric.unit()), plan(table)];
    let paragraphs = about.into_iter().chain(result.orders.iter().map(SizeOrder::text));
    let table_element = Element::Table(Table { columns, rows, notes, ..Table::default() });
    let heading = format!("{}, {}: {}", result.source.label, lower_first(&table.source), table.id);
    Section::of(heading, paragraphs.map(Element::Prose).chain([table_element]).collect()).folded()
}

/// Changes the first letter of a text to lower case.
fn lower_first(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| first.to_lowercase().chain(letters).collect())
}

fn plan(table: &PublishedTable) -> String {
    match table {
        PublishedTable { suite: Some(suite), .. } => {
            format!("The suite `{suite}` has this recipe; `pe-bench run {suite}` runs it.")
        }
        PublishedTable { task: Some(task), .. } => format!(
            "No suite has the recipe of this table. Runs of the task `{task}` with the table's settings are shown \
             here."
        ),
        PublishedTable { instead: Some(command), .. } => {
            format!("`{command}` prints numbers of this kind.")
        }
        PublishedTable { missing, .. } => {
            format!("Not run: {}.", missing.as_deref().unwrap_or_default())
        }
    }
}

/// Returns the number of a list of differences, after a space; nothing without differences.
fn recipe(recipes: &mut Vec<String>, differences: String) -> String {
    if differences.is_empty() {
        return String::new();
    }
    let index = recipes.iter().position(|known| *known == differences).unwrap_or_else(|| {
        recipes.push(differences);
        recipes.len() - 1
    });
    format!(" {}", index + 1)
}

#[cfg(test)]
mod tests {
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
        let decided =
            section(&result(&records("paper-flip-flop", "rope", 10000, [0.19, 0.20, 0.21])));
        assert_eq!(table_of(&decided).rows.len(), 1);
    }

    #[test]
    fn every_published_table_has_a_section_and_without_a_run_of_any_there_is_none() {
        let found = reproduction(&Frames::of(&[]).unwrap()).unwrap();
        let headings: Vec<String> =
            found.tables.iter().map(|table| table_section(table).heading).collect();
        assert!(
            headings.len() > 10 && headings.iter().all(|text| text.contains(": ")),
            "{headings:?}"
        );
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
        let orders: Vec<_> = prose_of(&section)
            .into_iter()
            .filter(|text| text.starts_with("Another size"))
            .collect();
        assert_eq!(orders.len(), 2);
        assert!(
            orders[0].contains(
                "in `small` the means of 1 of 2 pairs of rows are in the published order"
            ),
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
}
