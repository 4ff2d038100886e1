//! Tables as Markdown.

use super::escape::{escape, prose};
use crate::document::{Table, TableCell};

/// Renders a table with its notes and legends, in pieces of at most `columns` columns besides the first, below each other.
pub(super) fn pieces(table: &Table, columns: usize) -> String {
    let pieces = table.pieces(if table.words { usize::MAX } else { columns });
    let grids: String = pieces.iter().map(grid).collect();
    grids + &notes(&table.notes) + &notes(&table.legends)
}

/// Renders a table with its notes and legends, in one piece.
pub fn whole_table(table: &Table) -> String {
    pieces(table, usize::MAX)
}

fn grid(table: &Table) -> String {
    let line = |cells: Vec<String>| format!("| {} |\n", cells.join(" | "));
    let mut out = line(table.columns.iter().map(|c| escape(&c.replacen('\n', ": ", 1))).collect());
    let rule = |column| if table.words || column == 0 { "---" } else { "---:" };
    out.push_str(&line((0..table.columns.len()).map(|column| rule(column).to_owned()).collect()));
    for row in &table.rows {
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
