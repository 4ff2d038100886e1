//! Tables as HTML.

use std::borrow::Borrow;

use askama::Template;

use super::inline::{prose, rendered, swatch};
use crate::document::{Table, TableCell, Target};
use records::number::joined;

/// Length of a note up to which it stands below its table unfolded, if it is the only one.
const SHORT: usize = 160;
/// Number of columns from which a table is printed small.
const WIDE: usize = 10;
/// Number of columns up to which a table fits a printed page.
const PRINTED: usize = 24;

/// Template of a table.
#[derive(Template)]
#[template(path = "table.html")]
struct Grid<'a> {
    table: &'a Table,
    href: &'a Href<'a>,
}

impl Grid<'_> {
    /// Returns the address that a cell leads to.
    fn href_of(&self, cell: &TableCell) -> Option<String> {
        cell.link.as_ref().and_then(self.href)
    }

    fn box_classes(&self) -> &'static str {
        if self.table.is_heat { "table heat" } else { "table" }
    }

    /// Returns the classes of the table: `t3` for a third column of words.
    fn classes(&self) -> String {
        let table = self.table;
        let named = [(table.words, "words"), (table.columns.len() >= WIDE, "wide")];
        let named = named.into_iter().filter(|(holds, _)| *holds).map(|(_, name)| name.to_owned());
        let words = words(table).into_iter().enumerate().skip(1).filter(|(_, is)| *is);
        joined(named.chain(words.map(|(column, _)| format!("t{}", column + 1))), " ")
    }

    /// Returns the number of columns as an attribute, of a table that is wider than a printed page at any size of letters.
    fn shrunk(&self) -> String {
        let columns = self.table.columns.len();
        if columns > PRINTED { format!(" style=\"--columns:{columns}\"") } else { String::new() }
    }

    /// Returns the opening tag of a cell, with its colour and the scores of its runs.
    fn open(&self, cell: &TableCell, is_first: impl Borrow<bool>) -> String {
        if *is_first.borrow() {
            return "<th scope=\"row\">".to_owned();
        }
        let heat = cell.heat.filter(|_| self.table.is_heat);
        let heat = heat.map_or_else(String::new, |heat| format!(" style=\"--h:{heat}\""));
        let runs = if cell.runs.is_empty() {
            String::new()
        } else {
            let runs = cell.runs.iter().map(|run| (1e4 * run).round());
            format!(" data-runs=\"{}\"", joined(runs, " "))
        };
        format!("<td{heat}{runs}>")
    }

    /// Returns the text of a cell; the head of a column of colours stands for its unit.
    fn text(&self, cell: &TableCell) -> String {
        let text = unbroken(&cell.text);
        match text.strip_suffix('%') {
            Some(number) if self.table.is_heat => number.to_owned(),
            _ => text,
        }
    }

    /// Returns the notes and legends; folded unless they are short.
    fn notes(&self) -> String {
        let notes: Vec<&String> = self.table.notes.iter().chain(&self.table.legends).collect();
        let note = |note: &&String| format!("<p class=\"note\">{}</p>\n", prose(note));
        let text = joined(notes.iter().map(note), "");
        match &notes[..] {
            [] => String::new(),
            [only] if only.len() <= SHORT => text,
            _ => format!("<details><summary>Notes</summary>\n{text}</details>\n"),
        }
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

/// Returns the rules that align columns of words, up to the widest table that has one.
pub(super) fn alignments() -> String {
    let rule = |column: usize| {
        format!(".t{column} td:nth-child({column}),.t{column} th:nth-child({column})")
    };
    format!("{}{{text-align:left}}\n", joined((2..=16).map(rule), ","))
}

fn is_reference(row: &[TableCell]) -> bool {
    row.first().is_some_and(|cell| cell.reference)
}

/// Address of a subject; `None` if nothing shows it.
type Href<'a> = dyn Fn(&Target) -> Option<String> + Sync + 'a;

/// Renders a table with its notes and legends, and with links where `href` has an address.
pub(super) fn grid(table: &Table, href: &Href<'_>) -> String {
    rendered(&Grid { table, href })
}

/// Renders a table with its notes, without links; empty if it has no rows.
pub fn html_table(table: &Table) -> String {
    if table.rows.is_empty() { String::new() } else { grid(table, &|_| None) }
}

/// Replaces spaces by no-break spaces in an interval at the beginning and after words such as `rank`.
fn unbroken(text: &str) -> String {
    let (interval, rest) = match text.split_once(']') {
        Some((interval, _)) if interval.starts_with('[') => text.split_at(interval.len()),
        _ => ("", text),
    };
    let mut out = interval.replace(' ', "\u{a0}") + rest;
    for word in ["rank ", "fit ", "n = "] {
        out = out.replace(word, &word.replace(' ', "\u{a0}"));
    }
    out
}
