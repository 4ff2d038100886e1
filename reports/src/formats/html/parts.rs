//! Pieces of HTML: tables, lists, figures, sections.

use std::fmt::Write as _;

use super::interactive::{Canvas, canvases};
use crate::document::figures::Figure;
use crate::document::{Table, TableCell};
use crate::formats::chart::COLOURS;
use crate::formats::contents::FormatError;
use crate::text::html as escape;

/// Columns beside the first that fit on a page without scrolling sideways.
const COLUMNS: usize = 7;

/// Budget of bytes that the page may still take.
pub(super) struct ByteBudget(usize);

impl ByteBudget {
    pub(super) fn of(bytes: usize) -> Self {
        Self(bytes)
    }

    /// Takes the length of `text` from the budget; returns whether it fits.
    pub(super) fn take(&mut self, text: &str) -> bool {
        let fits = text.len() <= self.0;
        if fits {
            self.0 -= text.len();
        }
        fits
    }
}

/// Escaped text in which `x` between backticks is code.
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

/// The mark of an encoding, in its colour.
pub(super) fn swatch(slot: usize) -> String {
    format!("<i class=\"k c{} m{} d{}\"></i>", slot % COLOURS, slot % 5, (slot / COLOURS) % 3)
}

/// A table with its notes; empty when it has no rows, a pointer when there is no budget.
pub(super) fn table(whole: &Table, budget: &mut ByteBudget) -> String {
    if whole.rows.is_empty() {
        return String::new();
    }
    let mut out = String::new();
    for piece in whole.pieces(if whole.words { usize::MAX } else { COLUMNS }) {
        out.push_str(&grid(&piece, HeadLabels::OfScript));
    }
    for note in &whole.notes {
        let _ = writeln!(out, "<p class=\"note\">{}</p>", prose(note));
    }
    if budget.take(&out) {
        out
    } else {
        format!(
            "<p class=\"note\">{} rows have no room on this page; they are in the folder \
             <code>tables</code>.</p>\n",
            whole.rows.len()
        )
    }
}

/// A table in one piece for a page without scripts, with its notes; empty when it has no rows.
pub fn html_table(table: &Table) -> String {
    if table.rows.is_empty() {
        return String::new();
    }
    let mut out = grid(table, HeadLabels::OfCells);
    for note in &table.notes {
        let _ = writeln!(out, "<p class=\"note\">{}</p>", prose(note));
    }
    out
}

/// Source of the column heads that narrow screens show beside each number.
#[derive(Clone, Copy, PartialEq)]
enum HeadLabels {
    /// The script of the page adds them.
    OfScript,
    /// Each cell has it: the page has no script.
    OfCells,
}

fn grid(table: &Table, heads: HeadLabels) -> String {
    let class = if table.words { " class=\"words\"" } else { "" };
    let mut out = format!("<div class=\"scroll\"><table{class}>\n<thead><tr>");
    for head in &table.columns {
        let head = match head.split_once('\n') {
            Some((first, second)) => format!("{}<small>{}</small>", escape(first), escape(second)),
            None => escape(head),
        };
        let _ = write!(out, "<th>{head}</th>");
    }
    out.push_str("</tr></thead>\n<tbody>\n");
    for row in &table.rows {
        match row.first().and_then(|cell| cell.encoding) {
            Some(slot) => {
                let _ = write!(out, "<tr data-slot=\"{slot}\">");
            }
            None => out.push_str("<tr>"),
        }
        for (cell, head) in row.iter().zip(&table.columns) {
            data(&mut out, cell, (heads == HeadLabels::OfCells).then_some(head));
        }
        out.push_str("</tr>\n");
    }
    out.push_str("</tbody></table></div>\n");
    out
}

fn data(out: &mut String, cell: &TableCell, head: Option<&String>) {
    let mut text = unbroken(&cell.text);
    if let Some(slot) = cell.encoding {
        text.insert_str(0, &swatch(slot));
    }
    if cell.strong {
        text = format!("<b>{text}</b>");
    }
    if !cell.detail.is_empty() {
        let _ = write!(text, "<small>{}</small>", unbroken(&cell.detail));
    }
    // One element, so that a narrow screen keeps the two together.
    match &cell.cells {
        Some(anchor) => text = format!("<a href=\"#{}\">{text}</a>", escape(anchor)),
        None if !cell.detail.is_empty() => text = format!("<span>{text}</span>"),
        None => {}
    }
    match head {
        Some(head) => {
            let head = escape(&head.replace('\n', ", "));
            let _ = write!(out, "<td data-head=\"{head}\">{text}</td>");
        }
        None => {
            let _ = write!(out, "<td>{text}</td>");
        }
    }
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

/// A figure: places for the script to draw in, with the data, and links to the files.
pub(super) fn figure(figure: &Figure) -> Result<String, FormatError> {
    let canvases = canvases(&figure.plot)
        .map_err(|source| FormatError::Figure { figure: figure.title.clone(), source })?;
    let several = canvases.len() > 1;
    let class = if several { " class=\"many\"" } else { "" };
    // The heading above says of which workload.
    let prefix = figure.workload.as_ref().map(|name| format!("{name}: ")).unwrap_or_default();
    let title = figure.title.strip_prefix(&prefix).unwrap_or(&figure.title);
    let mut out = format!("<figure{class}>\n<h4>{}</h4>\n", escape(title));
    if several {
        out.push_str("<div class=\"maps\">\n");
    }
    for Canvas { label, height, json } in canvases {
        let labelled = label.is_some();
        if let Some((slot, label)) = label {
            let _ = writeln!(
                out,
                "<div data-slot=\"{slot}\"><h5>{}{}</h5>",
                swatch(slot),
                escape(&label)
            );
        }
        let _ = writeln!(
            out,
            "<div class=\"plot\" style=\"height:{height}px\"></div>\n<script \
             type=\"application/json\">{json}</script>"
        );
        if labelled {
            out.push_str("</div>\n");
        }
    }
    if several {
        out.push_str("</div>\n");
    }
    let _ = write!(out, "<figcaption>{}", escape(&figure.caption));
    let kinds: &[&str] = if figure.pixels { &["svg", "png"] } else { &["svg"] };
    for kind in kinds {
        let (path, name) = (escape(&figure.path(kind)), kind.to_uppercase());
        let _ = write!(out, " <a href=\"{path}\">{name}</a>");
    }
    out.push_str("</figcaption>\n</figure>\n");
    Ok(out)
}

/// Escaped text in which numbers stay on the line of what they are numbers of.
fn unbroken(text: &str) -> String {
    let mut out = escape(text).replace(" %", "\u{a0}%");
    for word in ["rank ", "fit ", "n = "] {
        out = out.replace(word, &word.replace(' ', "\u{a0}"));
    }
    out
}
