//! `pages/`: the front without scripts, and a page for each encoding and each workload, all linked.

use std::fmt::Write as _;

use rayon::prelude::*;

use super::document::body;
use super::parts::{prose, swatch};
use super::plain::plain_page;
use crate::analysis::{Description, Report};
use crate::document::pages::{MOST_ENCODINGS, PagePaths, encoding, front, workload};
use crate::document::{Document, Section, Table};
use crate::formats::contents::{Contents, OutFile};
use crate::text::html as escape;

/// Folder of the pages in a report.
pub(super) const FOLDER: &str = "pages";
/// File of the front in [`FOLDER`].
pub(super) const FRONT: &str = "index.html";

/// Returns the paths of the pages; `None` for a report without records or with too many encodings.
pub(super) fn paths(report: &Report) -> Option<PagePaths> {
    let count = report.encodings.len();
    (1..=MOST_ENCODINGS).contains(&count).then(|| PagePaths::of(report))
}

/// Renders the front and the pages of all encodings and workloads.
pub(super) fn pages(contents: &Contents<'_>) -> Vec<OutFile> {
    let Contents { report, figures, overview, .. } = contents;
    let Some(paths) = paths(report) else { return Vec::new() };
    let file = |path: &str, document: Document, description: String| {
        let up = if path == FRONT { "" } else { "../" };
        let elsewhere = if contents.has("parquet") && contents.has("csv") {
            document.elsewhere
        } else {
            "the report in other formats has them".to_owned()
        };
        let sections = moved(document.sections, up);
        let document = Document { sections, elsewhere, ..document };
        let text = nav(report, &paths, path) + &body(&document) + &description;
        OutFile::text(format!("{FOLDER}/{path}"), plain_page(&document.title, &text))
    };
    let described =
        |name: &str| report.meta.description(name).map_or_else(String::new, description);
    let mut files = vec![file(FRONT, front(report, figures, &paths, overview), String::new())];
    files.par_extend(report.encodings.par_iter().filter_map(|own| {
        let document = encoding(report, figures, &paths, own);
        Some(file(&paths.encoding(&own.name)?, document, described(&own.name)))
    }));
    files.par_extend(report.workloads.par_iter().filter_map(|own| {
        let document = workload(report, figures, &paths, own);
        Some(file(&paths.workload(&own.name)?, document, described(&own.task_id)))
    }));
    files
}

/// Prefixes the links of all tables.
fn moved(mut sections: Vec<Section>, up: &str) -> Vec<Section> {
    let prefix = |table: &mut Table| {
        for link in table.rows.iter_mut().flatten().filter_map(|cell| cell.link.as_mut()) {
            link.insert_str(0, up);
        }
    };
    for section in &mut sections {
        section.tables.iter_mut().chain(&mut section.details).for_each(|(_, table)| prefix(table));
    }
    sections
}

/// Links to the front, to all encodings and to all workloads, for the page at `current`.
fn nav(report: &Report, paths: &PagePaths, current: &str) -> String {
    let up = if current == FRONT { "" } else { "../" };
    let link = |path: String, label: &str| {
        let mark = if path == current { " aria-current=\"page\"" } else { "" };
        format!("<a href=\"{up}{path}\"{mark}>{label}</a>\n")
    };
    let encodings = report.encodings.iter().filter_map(|own| {
        let label = swatch(own.slot) + &escape(&own.display);
        Some(link(paths.encoding(&own.name)?, &label))
    });
    let workloads = report
        .workloads
        .iter()
        .filter_map(|own| Some(link(paths.workload(&own.name)?, &escape(&own.name))));
    format!(
        "<nav>\n{}{}</nav>\n<nav>\n{}</nav>\n",
        link(FRONT.to_owned(), "All results"),
        encodings.collect::<String>(),
        workloads.collect::<String>()
    )
}

/// Renders a description: its source, then its Markdown (headings, code between fences, paragraphs).
fn description(found: &Description) -> String {
    let mut out = String::from("<section>\n<h2>Description</h2>\n");
    if !found.source.is_empty() {
        let source = escape(&found.source);
        let linked = found.url.starts_with("https://");
        let source = if linked {
            format!("<a href=\"{}\" rel=\"noreferrer\">{source}</a>", escape(&found.url))
        } else {
            source
        };
        let _ = writeln!(out, "<p class=\"note\">Source: {source}</p>");
    }
    let mut paragraph: Vec<&str> = Vec::new();
    let mut code: Option<Vec<String>> = None;
    let close = |paragraph: &mut Vec<&str>, out: &mut String| {
        if !paragraph.is_empty() {
            let _ = writeln!(out, "<p>{}</p>", prose(&paragraph.join(" ")));
            paragraph.clear();
        }
    };
    for line in found.text.lines() {
        if line.starts_with("```") {
            close(&mut paragraph, &mut out);
            code = match code.take() {
                Some(lines) => {
                    let _ = writeln!(out, "<pre>{}</pre>", lines.join("\n"));
                    None
                }
                None => Some(Vec::new()),
            };
        } else if let Some(lines) = &mut code {
            lines.push(escape(line));
        } else if let Some(heading) = line.strip_prefix("## ") {
            close(&mut paragraph, &mut out);
            let _ = writeln!(out, "<h3>{}</h3>", escape(heading));
        } else if line.trim().is_empty() || line.starts_with("# ") {
            close(&mut paragraph, &mut out);
        } else {
            paragraph.push(line);
        }
    }
    close(&mut paragraph, &mut out);
    out + "</section>\n"
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::analysis::ReportMeta;
    use crate::testkit::suite;

    #[test]
    fn every_relative_link_leads_to_a_page_and_nothing_is_run() {
        let report = Report::new(suite(), &ReportMeta::default()).unwrap();
        let files = pages(&Contents::of(&report).unwrap());
        let count = 1 + report.encodings.len() + report.workloads.len();
        assert_eq!(files.len(), count);
        let paths: BTreeSet<&str> = files.iter().map(|file| &*file.path).collect();
        for OutFile { path, bytes } in &files {
            let text = std::str::from_utf8(bytes).unwrap();
            assert!(!text.contains("<script") && text.contains("default-src 'none'"), "{path}");
            let folder = path.rsplit_once('/').unwrap().0;
            let mut links = 0;
            for link in text.split("href=\"").skip(1).map(|rest| rest.split('"').next().unwrap()) {
                let target = match link.strip_prefix("../") {
                    Some(link) => format!("{}/{link}", folder.rsplit_once('/').unwrap().0),
                    None => format!("{folder}/{link}"),
                };
                assert!(paths.contains(&*target), "{path} links {link}");
                links += 1;
            }
            assert!(links >= count, "{path} has {links} links");
        }
    }

    #[test]
    fn a_description_keeps_headings_and_code_and_escapes_everything() {
        let text = "# A <b>\n## What\nOne `x`\nline.\n\n```text\n<a  b>\n```\nAfter.".to_owned();
        let url = "https://example.org/?a=1&b=2".to_owned();
        let (name, source) = ("a".to_owned(), "Me <2026>".to_owned());
        let found = Description { name, source, url, text, ..Description::default() };
        let out = description(&found);
        for part in [
            "<a href=\"https://example.org/?a=1&amp;b=2\" rel=\"noreferrer\">Me &lt;2026&gt;</a>",
            "<h3>What</h3>\n<p>One <code>x</code> line.</p>\n<pre>&lt;a  b&gt;</pre>\n<p>After.</p>",
        ] {
            assert!(out.contains(part), "{out}");
        }
        assert!(!out.contains("<b>"));
        let other = Description { url: "javascript:alert(1)".to_owned(), ..found };
        assert!(!description(&other).contains("javascript"));
    }
}
