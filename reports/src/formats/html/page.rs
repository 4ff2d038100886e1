//! The HTML page: one file that makes no request, for light and dark, wide and narrow screens.
//!
//! It contains plotly.js once, figures as data, and the tables as HTML. A content security policy in its head forbids
//! every connection and every script except its own two, identified by their hashes, so that a name that was not
//! escaped could not run code.

use std::fmt::Write as _;

use askama::Template;

use super::parts::{self, PageState, details, list, prose, rendered, section, swatch, table};
use super::plain::page_under;
use super::script::Scripts;
use super::{pages, records};
use crate::analysis::{Report, Workload};
use crate::document::figures::{Figure, Subject};
use crate::document::{Table, figures, tables, text};
use crate::formats::chart::chart_of;
use crate::formats::contents::{Contents, FormatError};
use crate::formats::csv;
use crate::number::count;
use crate::text::html as escape;

/// Bytes for everything except the scripts, so that the page stays below 10 MB.
const ROOM: usize = 4_800_000;
/// Maximum number of unfolded figures of one kind.
const UNFOLDED: usize = 4;

/// Renders the page as HTML.
pub(crate) fn page(contents: &Contents<'_>) -> Result<String, FormatError> {
    let Contents { report, .. } = contents;
    let script = Scripts::new();
    let mut state = PageState::with_room_for(ROOM, contents);
    let mut body = front(contents, &mut state);
    // The most important sections take their bytes first; the page is assembled in reading order.
    let records = records::section(contents, &mut state)?;
    let sections: Vec<(String, String)> = report
        .workloads
        .iter()
        .map(|w| Ok((w.name.clone(), workload(contents, w, &mut state)?)))
        .collect::<Result<_, FormatError>>()?;
    for (index, (name, text)) in sections.iter().enumerate() {
        section(&mut body, &format!("w{index}"), name, text);
    }
    let of = |subject| contents.figures.iter().filter(move |figure| figure.subject == subject);
    let improvements = table(&tables::improvements(report), &mut state);
    let over_tasks = gallery(of(Subject::Tasks), &mut state)?
        + &details("Probability of improvement", &improvements);
    section(&mut body, "tasks", "All tasks", &over_tasks);
    let by_size = gallery(of(Subject::Size), &mut state)?;
    section(&mut body, "size", "Training-set size", &by_size);
    section(&mut body, "cost", "Cost", &costs(contents, &mut state)?);
    section(&mut body, "published", "Published numbers", &published(contents, &mut state));
    let legends = [&[figures::LEGEND.to_owned()], &state.legends[..]].concat();
    section(&mut body, "reading", "How to read the tables", &list("legends", &legends));
    section(&mut body, "provenance", "Provenance", &origin(contents, &mut state));
    section(&mut body, "cells", "Cells", &records);
    body.push_str(&script.elements());
    Ok(page_under(&script.policy(), &report.meta.title, &body))
}

#[derive(Template)]
#[template(path = "front.html")]
struct Front<'a> {
    report: &'a Report,
    lead: String,
    alerts: Vec<String>,
    figure: Option<&'a Figure>,
    summary: String,
    files: Vec<(String, String)>,
    about: Vec<String>,
}

/// Renders the first screen: the results in one paragraph, one figure and one table, a switch for each encoding, and
/// links.
fn front(contents: &Contents<'_>, state: &mut PageState) -> String {
    let Contents { report, .. } = contents;
    let mut alerts: Vec<String> = Vec::new();
    if !report.not_counted.is_empty() {
        let lost = report.not_counted.len() as u64;
        let are = if lost == 1 { "is" } else { "are" };
        alerts.push(format!(
            "{lost} of {} {are} not counted",
            count(report.frames.cells.height() as u64, "cell")
        ));
    }
    if !contents.warnings.is_empty() {
        alerts.push(count(contents.warnings.len() as u64, "warning"));
    }
    let mut out = rendered(&Front {
        report,
        lead: contents.overview.join(" "),
        alerts,
        figure: contents.front(),
        summary: table(&linked_summary(report), state),
        files: files(contents),
        about: text::about(report),
    });
    if let Some((heading, answer)) = tables::question(report) {
        section(&mut out, "question", &heading, &table(&answer, state));
    }
    if !report.claims.is_empty() {
        section(&mut out, "claims", "Claims of papers", &table(&tables::claims(report), state));
    }
    let prices = table(&tables::prices(report), state);
    section(&mut out, "prices", "Cost and effective length", &prices);
    out
}

/// Returns the summary, in which each encoding leads to its page, and its numbers to their cells.
fn linked_summary(report: &Report) -> Table {
    let paths = pages::paths(report);
    let mut table = tables::summary(report);
    for row in &mut table.rows {
        let path = paths.as_ref().and_then(|paths| paths.of_row(report, row));
        if let (Some(first), Some(path)) = (row.first_mut(), path) {
            first.link = Some(format!("{}/{path}", pages::FOLDER));
        }
    }
    table
}

/// Returns the labels and paths of the pages, and of the tables for other programs and for papers.
fn files(contents: &Contents<'_>) -> Vec<(String, String)> {
    let Contents { report, .. } = contents;
    let mut files = Vec::new();
    if contents.has("parquet") {
        let label = "Parquet (every evaluation of every cell)";
        files.push((label.to_owned(), "data.parquet".to_owned()));
    }
    if pages::paths(report).is_some() {
        let front = format!("{}/{}", pages::FOLDER, pages::FRONT);
        files.push(("pages of all encodings and workloads".to_owned(), front));
    }
    if contents.has("csv") {
        let file = |name: &str| (format!("{name}.csv"), format!("tables/{name}.csv"));
        files.extend(csv::TABLES.iter().map(|(name, _)| file(name)));
    }
    files
}

/// Appends a part of a section, unless it is empty.
fn part(out: &mut String, heading: &str, body: &str) {
    if !body.is_empty() {
        let _ = write!(out, "<h3>{}</h3>\n{body}", escape(heading));
    }
}

fn gallery<'a>(
    figures: impl IntoIterator<Item = &'a Figure>,
    state: &mut PageState,
) -> Result<String, FormatError> {
    let mut out = String::new();
    let mut left_out = 0;
    for figure in figures {
        match parts::figure(figure, state)? {
            Some(text) => out.push_str(&text),
            None => left_out += 1,
        }
    }
    let mut all = String::new();
    if !out.is_empty() {
        let _ = write!(all, "<div class=\"figures\">\n{out}</div>\n");
    }
    if left_out > 0 {
        let place =
            if state.has_svg { "; they are in the folder <code>figures</code>" } else { "" };
        let _ = writeln!(
            all,
            "<p class=\"note\">{left_out} figures have no room on this page{place}.</p>"
        );
    }
    Ok(all)
}

fn workload(
    contents: &Contents<'_>,
    workload: &Workload,
    state: &mut PageState,
) -> Result<String, FormatError> {
    let Contents { report, figures, .. } = contents;
    let of = |subjects: &[Subject]| -> Vec<&Figure> {
        let own = |f: &&Figure| f.workload.as_ref() == Some(&workload.name);
        figures.iter().filter(own).filter(|f| subjects.contains(&f.subject)).collect()
    };
    let mut body = String::new();
    for text in text::workload_paragraphs(report, workload) {
        let _ = writeln!(body, "<p>{}</p>", prose(&text));
    }
    body.push_str(&gallery(of(&[Subject::Headline]), state)?);
    for (heading, ranks) in tables::statistics(report, workload) {
        part(&mut body, &heading, &table(&ranks, state));
    }
    let slices = gallery(of(&[Subject::Slices, Subject::Grid]), state)?;
    let several = of(&[Subject::Slices, Subject::Grid]).len();
    if several > UNFOLDED {
        body.push_str(&details(&format!("By sample property: {several} figures"), &slices));
    } else {
        part(&mut body, "By sample property", &slices);
    }
    part(&mut body, "Training", &gallery(of(&[Subject::Training]), state)?);
    let second = gallery(of(&[Subject::Second]), state)?;
    body.push_str(&details("Token accuracy", &second));
    let all = table(&tables::evaluations(report, workload), state);
    body.push_str(&details("All evaluations", &all));
    Ok(body)
}

fn costs(contents: &Contents<'_>, state: &mut PageState) -> Result<String, FormatError> {
    let Contents { report, figures, .. } = contents;
    let mut out = String::new();
    for workload in report.workloads.iter().filter(|w| !w.costs.is_empty()) {
        let own =
            |f: &&Figure| f.subject == Subject::Cost && f.workload.as_ref() == Some(&workload.name);
        let mut body = gallery(figures.iter().filter(own), state)?;
        body.push_str(&table(&tables::costs(report, workload), state));
        body.push_str(&table(&tables::flops(report, workload), state));
        // One workload is read at once; of several, those that the reader asks for.
        if report.workloads.len() == 1 {
            out.push_str(&body);
        } else {
            out.push_str(&details(&workload.name, &body));
        }
    }
    Ok(out)
}

/// Renders the comparison of published numbers with those of the records: the verdicts, then each table.
fn published(contents: &Contents<'_>, state: &mut PageState) -> String {
    let mut out = table(&contents.reproduction.summary(), state);
    for found in contents.reproduction.sections() {
        let tables = found.tables.iter().map(|(_, found)| table(found, state));
        let body = paragraphs(&found.paragraphs) + &tables.collect::<String>();
        out.push_str(&details(&found.heading, &body));
    }
    out
}

fn paragraphs(texts: &[String]) -> String {
    texts.iter().map(|text| ["<p>", &prose(text), "</p>\n"].concat()).collect()
}

/// Renders warnings, missing cells, and the facts about all cells.
fn origin(contents: &Contents<'_>, state: &mut PageState) -> String {
    let Contents { report, .. } = contents;
    let mut out = table(&tables::provenance(report), state);
    part(&mut out, "Warnings", &list("warnings", &contents.warnings));
    let lost = table(&tables::not_counted(report), state);
    part(&mut out, "Cells that are not counted", &lost);
    let skipped = table(&tables::skipped_evaluations(report), state);
    part(&mut out, "Evaluations that were skipped", &skipped);
    part(&mut out, "Not run", &list("skipped", &report.meta.skipped));
    part(&mut out, "Limitations", &list("limits", &text::limits(report)));
    out
}

#[cfg(test)]
mod tests;
