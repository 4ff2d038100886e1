//! The page: one file, without any request, for light and dark, wide and narrow screens.
//!
//! It holds plotly.js once, figures as data, and the tables as HTML. A policy in its head forbids every
//! connection and every script but the two that it came with, known by their hashes: a name that got
//! past all escaping could still do nothing.

use std::fmt::Write as _;

use askama::Template;

use super::parts::{self, ByteBudget, details, list, prose, rendered, section, swatch, table};
use super::plain::page_under;
use super::records;
use super::script::Scripts;
use crate::analysis::{Report, Workload};
use crate::document::figures::{Figure, Subject};
use crate::document::{tables, text};
use crate::formats::contents::{Contents, FormatError};
use crate::text::html as escape;

/// Bytes for everything but the scripts: with them the page stays below 10 MB.
const ROOM: usize = 4_800_000;
/// Maximum number of figures of one kind that are not folded.
const UNFOLDED: usize = 4;

/// Renders the page as HTML.
pub(crate) fn page(contents: &Contents<'_>) -> Result<String, FormatError> {
    let Contents { report, .. } = contents;
    let script = Scripts::new();
    let mut budget = ByteBudget::of(ROOM);
    let mut body = front(contents);
    // What matters most takes its budget first; pages are put together in the order of reading.
    let records = records::section(report, &mut budget)?;
    let sections: Vec<(String, String)> = report
        .workloads
        .iter()
        .map(|w| Ok((w.name.clone(), workload(contents, w, &mut budget)?)))
        .collect::<Result<_, FormatError>>()?;
    for (index, (name, text)) in sections.iter().enumerate() {
        section(&mut body, &format!("w{index}"), name, text);
    }
    let several: Vec<&Figure> = contents.figures.iter().filter(|f| f.workload.is_none()).collect();
    section(&mut body, "size", "Training-set size", &gallery(&several, &mut budget)?);
    section(&mut body, "cost", "Cost", &costs(contents, &mut budget)?);
    section(&mut body, "published", "Published numbers", &published(contents, &mut budget));
    section(&mut body, "provenance", "Provenance", &origin(contents, &mut budget));
    section(&mut body, "cells", "Cells", &records);
    body.push_str(&script.elements());
    Ok(page_under(&script.policy(), &report.meta.title, &body))
}

#[derive(Template)]
#[template(path = "front.html")]
struct Front<'a> {
    report: &'a Report,
    about: Vec<String>,
    overview: String,
    alerts: Vec<String>,
}

/// Heading, overview, links to the sections, a switch for each encoding, and the two main tables.
fn front(contents: &Contents<'_>) -> String {
    let Contents { report, .. } = contents;
    let mut alerts: Vec<String> = Vec::new();
    if !report.not_counted.is_empty() {
        let lost = report.not_counted.len();
        alerts.push(format!("{lost} of {} cells are not counted", report.frames.cells.height()));
    }
    match contents.warnings.len() {
        0 => {}
        1 => alerts.push("one warning".to_owned()),
        n => alerts.push(format!("{n} warnings")),
    }
    let overview = list("sentences", &contents.overview);
    let mut out = rendered(&Front { report, about: text::about(report), overview, alerts });
    let mut budget = ByteBudget::of(ROOM);
    for (id, heading, found) in [
        ("summary", "Summary", tables::summary(report)),
        ("prices", "Cost and effective length", tables::prices(report)),
    ] {
        section(&mut out, id, heading, &table(&found, &mut budget));
    }
    out
}

fn gallery(figures: &[&Figure], budget: &mut ByteBudget) -> Result<String, FormatError> {
    let mut out = String::new();
    let mut left_out = 0;
    for figure in figures {
        let text = parts::figure(figure)?;
        if budget.take(&text) {
            out.push_str(&text);
        } else {
            left_out += 1;
        }
    }
    let mut all = String::new();
    if !out.is_empty() {
        let _ = write!(all, "<div class=\"figures\">\n{out}</div>\n");
    }
    if left_out > 0 {
        let _ = writeln!(
            all,
            "<p class=\"note\">{left_out} figures have no room on this page; they are in the folder \
             <code>figures</code>.</p>"
        );
    }
    Ok(all)
}

fn workload(
    contents: &Contents<'_>,
    workload: &Workload,
    budget: &mut ByteBudget,
) -> Result<String, FormatError> {
    let Contents { report, figures, .. } = contents;
    let of = |subjects: &[Subject]| -> Vec<&Figure> {
        let own = |f: &&Figure| f.workload.as_ref() == Some(&workload.name);
        figures.iter().filter(own).filter(|f| subjects.contains(&f.subject)).collect()
    };
    // The heading above says of which workload.
    let sentence = &contents.workloads[workload.index];
    let sentence = sentence.strip_prefix(&format!("{}: ", workload.name)).unwrap_or(sentence);
    let mut body = format!("<p>{}</p>\n", prose(sentence));
    body.push_str(&gallery(&of(&[Subject::Headline]), budget)?);
    for (heading, ranks) in tables::statistics(report, workload) {
        let ranks = table(&ranks, budget);
        let _ = write!(body, "<h3>{}</h3>\n{ranks}", escape(&heading));
    }
    let slices = gallery(&of(&[Subject::Slices, Subject::Grid]), budget)?;
    let several = of(&[Subject::Slices, Subject::Grid]).len();
    if several > UNFOLDED {
        body.push_str(&details(&format!("By sample property: {several} figures"), &slices));
    } else if !slices.is_empty() {
        let _ = write!(body, "<h3>By sample property</h3>\n{slices}");
    }
    let training = gallery(&of(&[Subject::Training]), budget)?;
    if !training.is_empty() {
        let _ = write!(body, "<h3>Training</h3>\n{training}");
    }
    let second = gallery(&of(&[Subject::Second]), budget)?;
    body.push_str(&details("Token accuracy", &second));
    let all = table(&tables::evaluations(report, workload), budget);
    body.push_str(&details("All evaluations", &all));
    Ok(body)
}

fn costs(contents: &Contents<'_>, budget: &mut ByteBudget) -> Result<String, FormatError> {
    let Contents { report, figures, .. } = contents;
    let mut out = String::new();
    for workload in report.workloads.iter().filter(|w| !w.costs.is_empty()) {
        let own =
            |f: &&Figure| f.subject == Subject::Cost && f.workload.as_ref() == Some(&workload.name);
        let figures: Vec<&Figure> = figures.iter().filter(own).collect();
        let mut body = gallery(&figures, budget)?;
        body.push_str(&table(&tables::costs(report, workload), budget));
        body.push_str(&table(&tables::flops(report, workload), budget));
        // One workload is read at once; of several, those that the reader asks for.
        if report.workloads.len() == 1 {
            out.push_str(&body);
        } else {
            out.push_str(&details(&workload.name, &body));
        }
    }
    Ok(out)
}

/// Section that compares published numbers with those of the records: the verdicts, then each
/// table.
fn published(contents: &Contents<'_>, budget: &mut ByteBudget) -> String {
    let mut out = table(&contents.reproduction.summary(), budget);
    for found in contents.reproduction.sections() {
        let tables = found.tables.iter().map(|(_, found)| table(found, budget));
        let body = paragraphs(&found.paragraphs) + &tables.collect::<String>();
        out.push_str(&details(&found.heading, &body));
    }
    out
}

fn paragraphs(texts: &[String]) -> String {
    texts.iter().map(|text| ["<p>", &prose(text), "</p>\n"].concat()).collect()
}

/// Warnings, missing cells, and the facts about all cells.
fn origin(contents: &Contents<'_>, budget: &mut ByteBudget) -> String {
    let Contents { report, .. } = contents;
    let mut out = table(&tables::provenance(report), budget);
    let mut part = |heading: &str, body: String| {
        if !body.is_empty() {
            let _ = write!(out, "<h3>{heading}</h3>\n{body}");
        }
    };
    part("Warnings", list("warnings", &contents.warnings));
    part("Cells that are not counted", table(&tables::not_counted(report), budget));
    part("Evaluations that were skipped", table(&tables::skipped_evaluations(report), budget));
    part("Not run", list("skipped", &report.meta.skipped));
    part("Limitations", list("limits", &text::limits(report)));
    out
}

#[cfg(test)]
mod tests;
