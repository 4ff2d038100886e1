//! Pieces of HTML: text, tables, folded parts.

use std::borrow::Borrow;

use askama::Template;

use crate::document::{Table, TableCell};
use crate::formats::chart::MarkStyle;
use crate::text::html as escape;

/// Escapes text and renders `x` between backticks as code.
pub(super) fn prose(text: &str) -> String {
    let mut out = String::new();
    for (index, part) in text.split('`').enumerate() {
        if index > 0 {
            out.push_str(if index % 2 == 1 { "<code>" } else { "</code>" });
        }
        out.push_str(&escape(part));
    }
    if text.matches('`').count() % 2 == 1 {
        out.push_str("</code>");
    }
    out
}

/// Renders the mark of an encoding in its colour.
pub(super) fn swatch(slot: impl Borrow<usize>) -> String {
    let look = MarkStyle::of(*slot.borrow());
    let (classes, path) = (look.classes(), look.path());
    format!(
        "<svg class=\"k {classes}\" viewBox=\"-6 -6 12 12\" aria-hidden=\"true\"><path d=\"{path}\"/></svg>"
    )
}

/// Renders a template to a string.
pub(super) fn rendered<T: Template>(template: &T) -> String {
    let mut out = String::with_capacity(T::SIZE_HINT);
    // Writing to a string cannot fail.
    let _ = template.render_into(&mut out);
    out
}

/// Template of a table. Each cell has the head of its column, for narrow screens.
#[derive(Template)]
#[template(path = "table.html")]
struct Grid<'a> {
    table: &'a Table,
    notes: &'a [String],
    /// Whether the cells of a column are words, by column.
    words: Vec<bool>,
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

/// Renders a table with its notes; empty if it has no rows.
pub fn html_table(table: &Table) -> String {
    if table.rows.is_empty() {
        return String::new();
    }
    let notes = [&table.notes[..], &table.legends].concat();
    rendered(&Grid { table, notes: &notes, words: words(table) })
}

pub(super) fn details(summary: &str, body: &str) -> String {
    if body.is_empty() {
        return String::new();
    }
    format!("<details><summary>{}</summary>\n{body}</details>\n", escape(summary))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn backticks_become_code_even_when_one_is_missing() {
        assert_eq!(prose("on `a<b` at 3"), "on <code>a&lt;b</code> at 3");
        assert_eq!(prose("on `a"), "on <code>a</code>");
    }
}
