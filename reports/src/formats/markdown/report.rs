//! `report.md`: the report as Markdown, with links to its figures.

use std::fmt::Write as _;

use super::escape::{escape, prose};
use super::table::{Tables, table};
use crate::document::figures::{Figure, LEGEND, Subject};
use crate::document::{tables, text};
use crate::formats::contents::Contents;

fn list(items: &[String]) -> String {
    let mut out = String::new();
    for item in items {
        let _ = writeln!(out, "- {}", prose(item));
    }
    out.push('\n');
    out
}

fn section(out: &mut String, heading: &str, body: &str) {
    if !body.trim().is_empty() {
        let _ = write!(out, "## {heading}\n\n{body}");
    }
}

fn section_of(out: &mut String, heading: &str, body: &str) {
    if !body.is_empty() {
        let _ = write!(out, "### {heading}\n\n{body}");
    }
}

/// Returns a link to the drawing of a figure; `None` if no format renders it.
pub(super) fn link(contents: &Contents<'_>, figure: &Figure) -> Option<String> {
    let title = escape(&figure.title).replace(['[', ']'], "");
    contents.drawing(figure).map(|path| format!("[{title}]({path})"))
}

fn pictures<'a>(contents: &Contents<'_>, figures: impl Iterator<Item = &'a Figure>) -> String {
    let mut out = String::new();
    for figure in figures {
        let Some(link) = link(contents, figure) else { continue };
        let _ = writeln!(out, "!{link}\n");
        if !figure.caption.is_empty() {
            let _ = writeln!(out, "{}\n", escape(&figure.caption));
        }
    }
    out
}

/// Returns a list of links to figures that the page does not show.
fn links<'a>(contents: &Contents<'_>, figures: impl Iterator<Item = &'a Figure>) -> String {
    let links = figures.filter_map(|figure| link(contents, figure));
    let list = links.fold(String::new(), |list, link| list + "- " + &link + "\n");
    if list.is_empty() { list } else { format!("By sample property:\n\n{list}\n") }
}

/// Renders the section of verdicts and the published tables for which there are records.
fn published(contents: &Contents<'_>) -> String {
    let Contents { reproduction, .. } = contents;
    let file = if contents.has("html") { "index.html" } else { "" };
    let paragraphs = |texts: &[String]| texts.iter().map(|t| prose(t) + "\n\n").collect::<String>();
    let mut out = table(&reproduction.summary(), file);
    for found in reproduction.sections() {
        let cells = found.tables.iter().flat_map(|(_, table)| table.rows.iter().flatten());
        if cells.into_iter().any(|cell| !cell.detail.is_empty()) {
            let tables = found.tables.iter().map(|(_, found)| table(found, file));
            let body = paragraphs(&found.paragraphs) + &tables.collect::<String>();
            section_of(&mut out, &escape(&found.heading), &body);
        }
    }
    out
}

pub(super) fn page(contents: &Contents<'_>) -> String {
    let Contents { report, figures, .. } = contents;
    let [all_evaluations, all_ranks, all_costs, all_cells, all_improvements] = [
        "tables/evaluations.csv",
        "tables/ranks.csv",
        "tables/costs.csv",
        "tables/cells.csv",
        "tables/improvements.csv",
    ]
    .map(|path| if contents.has("csv") { path } else { "" });
    let mut tables_shown = Tables::default();
    let mut out = format!("# {}\n\n", escape(&report.meta.title));
    let _ = write!(out, "{}\n\n", prose(&contents.overview.join(" ")));
    out.push_str(&pictures(contents, contents.front().into_iter()));
    let sentences = text::abstract_of(report);
    let sentences = sentences.iter().map(|sentence| prose(&sentence.text) + "\n");
    section(&mut out, "Abstract", &(sentences.collect::<String>() + "\n"));
    section(&mut out, "Summary", &tables_shown.add(&tables::summary(report), all_ranks));
    if let Some((heading, answer)) = tables::question(report) {
        section(&mut out, &escape(&heading), &tables_shown.add(&answer, all_ranks));
    }
    let claims = tables_shown.add(&tables::claims(report), all_ranks);
    section(&mut out, "Claims of papers", &claims);
    section(
        &mut out,
        "Cost and effective length",
        &tables_shown.add(&tables::prices(report), all_costs),
    );
    for workload in &report.workloads {
        let mut body = String::new();
        for paragraph in text::workload_paragraphs(report, workload) {
            let _ = write!(body, "{}\n\n", prose(&paragraph));
        }
        let front = contents.front();
        let own = |f: &&Figure| f.workload.as_ref() == Some(&workload.name) && Some(*f) != front;
        let of_cost = |f: &&Figure| f.subject == Subject::Cost;
        let sliced = |f: &&Figure| f.subject == Subject::Slices;
        let shown = |f: &&Figure| own(f) && !of_cost(f) && !sliced(f);
        body.push_str(&pictures(contents, figures.iter().filter(shown)));
        body.push_str(&links(contents, figures.iter().filter(|f| own(f) && sliced(f))));
        for (heading, ranks) in tables::statistics(report, workload) {
            section_of(&mut body, &escape(&heading), &tables_shown.add(&ranks, all_ranks));
        }
        let all = tables_shown.add(&tables::evaluations(report, workload), all_evaluations);
        section_of(&mut body, "All evaluations", &all);
        let cost = pictures(contents, figures.iter().filter(|f| own(f) && of_cost(f)))
            + &tables_shown.add(&tables::costs(report, workload), all_costs)
            + &tables_shown.add(&tables::flops(report, workload), all_costs);
        section_of(&mut body, "Cost", &cost);
        section(&mut out, &escape(&workload.name), &body);
    }
    let over_tasks = pictures(contents, figures.iter().filter(|f| f.subject == Subject::Tasks))
        + &tables_shown.add(&tables::improvements(report), all_improvements);
    section(&mut out, "All tasks", &over_tasks);
    let several = pictures(contents, figures.iter().filter(|f| f.subject == Subject::Size));
    section(&mut out, "Training-set size", &several);
    section(&mut out, "Published numbers", &published(contents));
    let skipped = tables_shown.add(&tables::skipped_evaluations(report), all_cells);
    section(&mut out, "Skipped evaluations", &skipped);
    let lost = tables_shown.add(&tables::not_counted(report), all_cells);
    section(&mut out, "Cells that are not counted", &lost);
    section(&mut out, "Not run", &list(&report.meta.skipped));
    let legends = [&[LEGEND.to_owned()], &tables_shown.legends[..]].concat();
    section(&mut out, "How to read the tables", &list(&legends));
    section(&mut out, "Warnings", &list(&contents.warnings));
    let facts = tables_shown.add(&tables::provenance(report), all_cells);
    let about: String = text::about(report).iter().map(|line| prose(line) + "  \n").collect();
    section(&mut out, "Provenance", &format!("{about}\n{facts}"));
    section(&mut out, "Limitations", &list(&text::limits(report)));
    let groups = tables_shown.add(&tables::groups(report), all_cells);
    let files = [("csv", "`tables/cells.csv`"), ("parquet", "`data.parquet`")];
    let files = files.into_iter().filter(|(format, _)| contents.has(format));
    let files: Vec<&str> = files.map(|(_, file)| file).collect();
    let every = if files.is_empty() {
        String::new()
    } else {
        format!("Every cell: {}.\n", files.join(" and "))
    };
    section(&mut out, "Cells", &(groups + &every));
    out.truncate(out.trim_end().len());
    out.push('\n');
    out
}

#[cfg(test)]
mod tests;
