//! Pieces of HTML: tables, lists, figures, sections.

use std::borrow::Borrow;
use std::fmt::Write as _;

use askama::Template;

use super::interactive::{Canvas, canvases};
use crate::document::figures::Figure;
use crate::document::{Table, TableCell};
use crate::formats::chart::{MarkStyle, chart_of};
use crate::formats::contents::{Contents, FormatError};
use crate::text::{add_new, html as escape};

/// Maximum number of columns besides the first on a page without horizontal scrolling.
const COLUMNS: usize = 7;

/// State of a page while it is rendered.
pub(super) struct PageState {
    /// Number of bytes that may still be added to the page.
    bytes: usize,
    /// Explanations of the tables so far, without duplicates.
    pub(super) legends: Vec<String>,
    /// Whether the report has the tables and figures as CSV and SVG files.
    has_csv: bool,
    pub(super) has_svg: bool,
}

impl PageState {
    pub(super) fn with_room_for(bytes: usize, contents: &Contents<'_>) -> Self {
        let [has_csv, has_svg] = ["csv", "svg"].map(|format| contents.has(format));
        Self { bytes, legends: Vec::new(), has_csv, has_svg }
    }

    /// Reports whether `text` fits.
    fn has_room_for(&self, text: &str) -> bool {
        text.len() <= self.bytes
    }

    /// Subtracts the length of `text` from the remaining bytes if it fits; returns whether it did.
    pub(super) fn take(&mut self, text: &str) -> bool {
        let fits = self.has_room_for(text);
        if fits {
            self.bytes -= text.len();
        }
        fits
    }
}

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

/// Template of a table; `labelled` adds the column head to each cell, for narrow screens without scripts.
#[derive(Template)]
#[template(path = "table.html")]
struct Grid<'a> {
    table: &'a Table,
    notes: &'a [String],
    labelled: bool,
    /// Whether the cells of a column are words, by column.
    words: Vec<bool>,
}

impl<'a> Grid<'a> {
    fn of(table: &'a Table, notes: &'a [String], labelled: bool) -> Self {
        let is_word = |text: &str| text.starts_with(char::is_alphabetic);
        let of_column = |column: usize| {
            let texts = table.rows.iter().filter_map(|row| Some(row.get(column)?.text.as_str()));
            let mut texts = texts.filter(|text| !["", "–"].contains(text)).peekable();
            texts.peek().is_some() && texts.all(is_word)
        };
        Self { table, notes, labelled, words: (0..table.columns.len()).map(of_column).collect() }
    }
}

/// Returns the slot of the encoding that a row belongs to.
fn slot(row: &[TableCell]) -> Option<usize> {
    row.first()?.encoding
}

fn is_reference(row: &[TableCell]) -> bool {
    row.first().is_some_and(|cell| cell.reference)
}

/// Renders a table with its notes; empty if it has no rows, a reference to its file if it exceeds the size of the
/// page.
pub(super) fn table(whole: &Table, page: &mut PageState) -> String {
    if whole.rows.is_empty() {
        return String::new();
    }
    let pieces = whole.pieces(if whole.words { usize::MAX } else { COLUMNS });
    let grid = |table: &Table| rendered(&Grid::of(table, &table.notes, false));
    let out: String = pieces.iter().map(grid).collect();
    if page.take(&out) {
        add_new(&mut page.legends, whole.legends.iter().cloned());
        out
    } else {
        let place = if page.has_csv { "; they are in the folder <code>tables</code>" } else { "" };
        format!(
            "<p class=\"note\">{} rows have no room on this page{place}.</p>\n",
            whole.rows.len()
        )
    }
}

/// Renders a table in one piece for a page without scripts, with its notes; empty if it has no rows.
pub fn html_table(table: &Table) -> String {
    if table.rows.is_empty() {
        return String::new();
    }
    let notes = [&table.notes[..], &table.legends].concat();
    rendered(&Grid::of(table, &notes, true))
}

pub(super) fn list(class: &str, items: &[String]) -> String {
    if items.is_empty() {
        return String::new();
    }
    let mut out = format!("<ul class=\"{class}\">\n");
    for item in items {
        let _ = writeln!(out, "<li>{}</li>", prose(item));
    }
    out.push_str("</ul>\n");
    out
}

pub(super) fn details(summary: &str, body: &str) -> String {
    if body.is_empty() {
        return String::new();
    }
    format!("<details><summary>{}</summary>\n{body}</details>\n", escape(summary))
}

pub(super) fn section(out: &mut String, id: &str, heading: &str, body: &str) {
    if !body.is_empty() {
        let _ = write!(
            out,
            "<section id=\"{}\">\n<h2>{}</h2>\n{body}</section>\n",
            escape(id),
            escape(heading)
        );
    }
}

#[derive(Template)]
#[template(path = "figure.html")]
struct FigureTemplate<'a> {
    figure: &'a Figure,
    svg: bool,
    title: &'a str,
    /// Drawing without a script.
    still: String,
    canvases: Vec<Canvas>,
}

/// Renders a figure: a drawing, drawing areas for the script, their data, and links to the files; `None` if it has no
/// room on the page.
pub(super) fn figure(figure: &Figure, page: &mut PageState) -> Result<Option<String>, FormatError> {
    // The heading above names the workload.
    let prefix = figure.workload.as_ref().map(|name| format!("{name}: ")).unwrap_or_default();
    let title = figure.title.strip_prefix(&prefix).unwrap_or(&figure.title);
    let still = chart_of(title, &figure.plot);
    // Most figures of a large report have no room; their data need not be written.
    if !page.has_room_for(&still) {
        return Ok(None);
    }
    let canvases = canvases(&figure.plot)
        .map_err(|source| FormatError::Figure { figure: figure.title.clone(), source })?;
    let text = rendered(&FigureTemplate { figure, svg: page.has_svg, title, still, canvases });
    Ok(page.take(&text).then_some(text))
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
