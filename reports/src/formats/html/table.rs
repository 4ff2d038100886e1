//! Tables as HTML.

use askama::Template;

use super::inline::{prose, rendered, swatch};
use crate::document::{Table, TableCell, Target};

/// Template of a table. Each cell has the head of its column, for narrow screens.
#[derive(Template)]
#[template(path = "table.html")]
struct Grid<'a> {
    table: &'a Table,
    notes: &'a [String],
    /// Whether the cells of a column are words, by column.
    words: Vec<bool>,
    href: &'a Href<'a>,
}

impl Grid<'_> {
    /// Returns the address that a cell leads to.
    fn href_of(&self, cell: &TableCell) -> Option<String> {
        cell.link.as_ref().and_then(self.href)
    }
}

/// Reports for each column whether all of its cells are words.
fn words(table: &Table) -> Vec<bool> {
    let is_word = |text: &str| text.starts_with(char::is_alphabetic);
    let of_column = |column: usize| {
        let texts = table.rows.iter().filter_map(|row| Some(row.get(column)?.text.as_str()));
        let mut texts = texts.filter(|text| !["", "–"].contains(text)).peekable();
        texts.peek().is_some() && texts.all(is_word)
    };
    (0..table.columns.len()).map(of_column).collect()
}

fn is_reference(row: &[TableCell]) -> bool {
    row.first().is_some_and(|cell| cell.reference)
}

/// Address of a subject; `None` if nothing shows it.
type Href<'a> = dyn Fn(&Target) -> Option<String> + Sync + 'a;

/// Renders a table with its notes and legends, and with links where `href` has an address.
pub(super) fn grid(table: &Table, href: &Href<'_>) -> String {
    let notes = [&table.notes[..], &table.legends].concat();
    rendered(&Grid { table, notes: &notes, words: words(table), href })
}

/// Renders a table with its notes, without links; empty if it has no rows.
pub fn html_table(table: &Table) -> String {
    if table.rows.is_empty() { String::new() } else { grid(table, &|_| None) }
}

/// Replaces spaces by no-break spaces in an interval at the beginning, before `%` and after words such as `rank`.
fn unbroken(text: &str) -> String {
    let (interval, rest) = match text.split_once(']') {
        Some((interval, _)) if interval.starts_with('[') => text.split_at(interval.len()),
        _ => ("", text),
    };
    let mut out = interval.replace(' ', "\u{a0}") + &rest.replace(" %", "\u{a0}%");
    for word in ["rank ", "fit ", "n = "] {
        out = out.replace(word, &word.replace(' ', "\u{a0}"));
    }
    out
}
