//! The reproduction as sections with tables, for all formats.

use super::order::SizeOrder;
use super::published::{Coverage, PublishedTable};
use super::result::{NumberResult, PaperResult, Reproduction, TableResult};
use super::verdict::{VERDICTS, Verdict};
use crate::document::{Element, Section, Table, TableCell};

/// Explanation of the verdicts, in the wording of METHODOLOGY.md.
const RULE: [&str; 3] = [
    "Agrees: the published recipe as far as it is known, at least 3 seeds, none diverged, and our 95 % \
     interval over seeds (Student's t, a spread of at least 0.1 points) meets the published number, which \
     is taken with its rounding and, where it is published, its own uncertainty.",
    "Differs: the same recipe and seeds, and they do not meet. Undecided: they do not meet, but the paper prints a \
     standard deviation that is not carried over here. Too few seeds: the same recipe with fewer than 3 seeds.",
    "Other recipe: every run has settings other than the published ones, or the task is not quite the \
     same. Such a run never agrees or differs: the differences are listed. Of several recipes the one with \
     the fewest differences is shown.",
];

impl Reproduction {
    /// Returns the table of the number of verdicts of each kind by source.
    pub fn summary(&self) -> Table {
        let number = |paper: &PaperResult, of: &dyn Fn(Verdict) -> bool| {
            let numbers = paper.tables.iter().flat_map(TableResult::numbers);
            numbers.filter(|(_, number)| of(number.verdict)).count().to_string()
        };
        let table = Table::of(&self.papers)
            .column("source", |paper| paper.source.label.clone())
            .column("numbers", |paper| number(paper, &|_| true))
            .columns(
                VERDICTS,
                |verdict| verdict.label().to_owned(),
                |verdict, paper| number(paper, &|other| other == *verdict).into(),
            )
            .table();
        Table { notes: RULE.map(str::to_owned).to_vec(), ..table }
    }

    /// Returns a section with the summary, and within one for each table of each source.
    pub fn section(&self) -> Section {
        let of_paper = |paper: &PaperResult| -> Vec<Section> {
            paper.tables.iter().map(|table| section(&paper.source.label, table)).collect()
        };
        Section::of_table("Published numbers", self.summary().with_id("published"))
            .with(self.papers.iter().flat_map(of_paper))
    }
}

fn section(paper: &str, result: &TableResult) -> Section {
    let table = &result.table;
    let mut columns = vec!["encoding".to_owned()];
    columns.extend(table.columns.iter().map(|column| match &column.metric {
        Some(metric) => format!("{} ({})", column.name, metric.unit()),
        None => column.name.clone(),
    }));
    let mut recipes: Vec<String> = Vec::new();
    let rows = result
        .rows
        .iter()
        .map(|row| {
            let mut cells = vec![TableCell::from(&row.title)];
            let columns = table.columns.iter();
            cells.extend(row.numbers.iter().zip(columns).map(|(number, column)| {
                let text = match number.published.value {
                    Some(_) => &*number.published.text,
                    None => number.verdict.label(),
                };
                let ours = number.runs.first().map(|r| r.text(table.metric_of(column)));
                let mut detail = detail(number, ours, &mut recipes);
                // Where no run is of the experiment itself, those at another size are shown.
                if number.runs.is_empty() {
                    let others: Vec<String> = number
                        .other_sizes
                        .iter()
                        .map(|other| format!("ours {}", other.text()))
                        .collect();
                    detail = others.join("; ");
                }
                let strong = number.verdict == Verdict::Agrees;
                TableCell { strong, ..TableCell::with_detail(text, detail) }
            }));
            cells
        })
        .collect();
    let mut notes: Vec<String> = recipes
        .into_iter()
        .enumerate()
        .map(|(index, recipe)| format!("Recipe {}: {recipe}.", index + 1))
        .collect();
    notes.push(format!("Trust: {}", table.trust));
    if !table.unknown.is_empty() {
        notes.push(format!("Not published: {}", table.unknown.join(" ")));
    }
    if let Some(reason) = &table.unread_deviations {
        notes.push(format!(
            "Standard deviations: {reason}. A number without one may agree and never differs."
        ));
    }
    notes.extend(table.unlike.iter().map(|unlike| format!("Not the same: {unlike}.")));
    notes.extend(table.needs.iter().map(|needs| format!("A verdict needs {needs}.")));
    let about = [format!("{}; numbers are {}.", table.what, table.metric.unit()), plan(table)];
    let paragraphs = about.into_iter().chain(result.orders.iter().map(SizeOrder::text));
    let table_element = Element::Table(Table { columns, rows, notes, ..Table::default() });
    let heading = format!("{paper}, {}: {}", lower_first(&table.source), table.id);
    Section::of(heading, paragraphs.map(Element::Prose).chain([table_element]).collect()).folded()
}

/// Changes the first letter of a text to lower case.
fn lower_first(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| first.to_lowercase().chain(letters).collect())
}

fn plan(table: &PublishedTable) -> String {
    match &table.plan {
        Coverage::Records { suite: Some(suite), .. } => {
            format!("The suite `{suite}` has this recipe: `pe-bench run {suite}`.")
        }
        Coverage::Records { suite: None, task } => {
            format!(
                "Runs of the task `{task}` with this table's settings are shown here; no suite has its recipe."
            )
        }
        Coverage::Instead(command) => format!("Shown by `{command}`."),
        Coverage::Missing(reason) => format!("Not run: {reason}."),
    }
}

/// Formats the result of our runs: `ours 12.1 [8.0 to 16.1] n=3, other recipe 1`; empty without runs.
fn detail(number: &NumberResult, ours: Option<String>, recipes: &mut Vec<String>) -> String {
    let Some(ours) = ours else { return String::new() };
    let listed = number.listed_differences();
    let which = if listed.is_empty() {
        String::new()
    } else {
        let known = recipes.iter().position(|known| *known == listed);
        let index = known.unwrap_or_else(|| {
            recipes.push(listed);
            recipes.len() - 1
        });
        format!(" {}", index + 1)
    };
    format!("ours {ours}, {}{which}", number.verdict.label())
}
