//! Tables as Markdown.

use crate::document::{Table, TableCell};
use crate::text::visible;

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

/// Escapes text so that Markdown renders it literally: no link, image, tag, code or heading.
pub(super) fn escape(text: &str) -> String {
    let text = visible(text);
    let mut out = String::with_capacity(text.len());
    let letters: Vec<char> = text.chars().collect();
    for (i, letter) in letters.iter().enumerate() {
        let next = letters.get(i + 1);
        let word = |at: Option<&char>| at.is_some_and(|c| c.is_alphanumeric());
        let within = i > 0 && word(letters.get(i - 1)) && word(next);
        match letter {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '\\' | '`' | '*' | '|' | '~' => out.extend(['\\', *letter]),
            '_' if !within => out.push_str("\\_"),
            // A bracket could begin a link, a definition or a footnote.
            ']' if next.is_some_and(|c| matches!(c, '(' | '[' | ':')) => out.push_str("\\]"),
            // A sign before a digit does not begin a list.
            '+' | '-' if i == 0 && next.is_some_and(char::is_ascii_digit) => out.push(*letter),
            '#' | '+' | '-' | '=' | '>' if i == 0 => out.extend(['\\', *letter]),
            shown => out.push(*shown),
        }
    }
    out
}

/// Escapes text and renders `x` between backticks as code. Unpaired backticks are literal.
pub(super) fn prose(text: &str) -> String {
    let text = visible(text);
    let parts: Vec<&str> = text.split('`').collect();
    let empty =
        parts.iter().skip(1).take(parts.len().saturating_sub(2)).any(|part| part.is_empty());
    if parts.len().is_multiple_of(2) || empty {
        return escape(&text);
    }
    let shown = parts
        .iter()
        .enumerate()
        .map(|(index, part)| if index % 2 == 1 { format!("`{part}`") } else { escape(part) });
    shown.collect()
}
