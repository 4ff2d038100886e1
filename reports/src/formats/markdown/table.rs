//! Tables as Markdown.

use std::fmt::Write as _;

use super::escape::{escape, prose};
use crate::document::{Table, TableCell};
use crate::text::add_new;

/// Maximum number of columns besides the first that a page shows without scrolling.
const COLUMNS: usize = 7;
/// Maximum number of rows; the files contain longer tables completely.
const ROWS: usize = 400;

/// Tables of a page, with the explanations of their columns without duplicates.
#[derive(Default)]
pub(super) struct Tables {
    pub(super) legends: Vec<String>,
}

impl Tables {
    /// Renders a table as [`table`] does, and keeps its legends for the end of the page unless it has no rows.
    pub(super) fn add(&mut self, whole: &Table, file: &str) -> String {
        if whole.rows.is_empty() {
            return String::new();
        }
        add_new(&mut self.legends, whole.legends.iter().cloned());
        table(whole, file)
    }
}

/// Renders a table with its notes, wide tables in pieces; empty if it has no rows. A note refers to `file`, unless it is
/// empty, for rows that do not fit.
pub(super) fn table(whole: &Table, file: &str) -> String {
    if whole.rows.is_empty() {
        return String::new();
    }
    let mut out = String::new();
    for piece in whole.pieces(if whole.words { usize::MAX } else { COLUMNS }) {
        out.push_str(&grid(&piece, ROWS));
        if piece.rows.len() > ROWS {
            let more = piece.rows.len() - ROWS;
            let place =
                if file.is_empty() { "not shown".to_owned() } else { format!("in `{file}`") };
            let _ = writeln!(out, "{more} more rows are {place}.\n");
        }
    }
    out + &notes(&whole.notes)
}

/// Renders a table with its notes and legends, in one piece and with all rows.
pub fn whole_table(table: &Table) -> String {
    grid(table, usize::MAX) + &notes(&table.notes) + &notes(&table.legends)
}

fn grid(table: &Table, rows: usize) -> String {
    let line = |cells: Vec<String>| format!("| {} |\n", cells.join(" | "));
    let mut out = line(table.columns.iter().map(|c| escape(&c.replacen('\n', ": ", 1))).collect());
    let rule = |column| if table.words || column == 0 { "---" } else { "---:" };
    out.push_str(&line((0..table.columns.len()).map(|column| rule(column).to_owned()).collect()));
    for row in table.rows.iter().take(rows) {
        out.push_str(&line(row.iter().map(cell).collect()));
    }
    out.push('\n');
    out
}

fn cell(cell: &TableCell) -> String {
    let text = escape(&cell.text);
    let text = if cell.strong { format!("**{text}**") } else { text };
    if cell.detail.is_empty() { text } else { format!("{text} {}", escape(&cell.detail)) }
}

fn notes(notes: &[String]) -> String {
    notes.iter().map(|note| prose(note) + "\n\n").collect()
}
