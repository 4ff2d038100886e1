//! `index.html`, the front, and in `pages/` a page for each encoding and each workload.

use std::fmt::Write as _;

use rayon::prelude::*;

use super::document::body;
use super::parts::prose;
use super::plain::plain_page;
use crate::analysis::Description;
use crate::document::pages::{PagePaths, encoding, front, workload};
use crate::document::{Document, Section, Table};
use crate::formats::contents::{Contents, OutFile};
use crate::text::html as escape;

/// Path of the front.
const FRONT: &str = "index.html";

/// Renders the front and the pages of all encodings and workloads.
pub(in crate::formats) fn render(contents: &Contents<'_>) -> Vec<OutFile> {
    let Contents { report, figures, overview, .. } = contents;
    let paths = PagePaths::of(report);
    let file = |path: &str, document: Document, description: String| {
        let up = "../".repeat(path.matches('/').count());
        let document = Document { sections: moved(document.sections, &up), ..document };
        let text = way_back(&up) + &body(&document) + &description;
        OutFile::text(path, plain_page(&document.title, &text))
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

/// Renders the link from a page to the front; nothing for the front itself.
fn way_back(up: &str) -> String {
    if up.is_empty() {
        return String::new();
    }
    format!("<nav><a href=\"{up}{FRONT}\">All results</a></nav>\n")
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
    use crate::analysis::{Report, ReportMeta};
    use crate::testkit::suite;

    #[test]
    fn every_relative_link_leads_to_a_page_and_nothing_is_run() {
        let report = Report::new(suite(), &ReportMeta::default()).unwrap();
        let files = render(&Contents::of(&report).unwrap());
        assert_eq!(files.len(), 1 + report.encodings.len() + report.workloads.len());
        let paths: BTreeSet<&str> = files.iter().map(|file| &*file.path).collect();
        let mut linked: BTreeSet<String> = BTreeSet::new();
        for OutFile { path, bytes } in &files {
            let text = std::str::from_utf8(bytes).unwrap();
            assert!(!text.contains("<script") && text.contains("default-src 'none'"), "{path}");
            for link in text.split("href=\"").skip(1).map(|rest| rest.split('"').next().unwrap()) {
                let mut folders: Vec<&str> = path.split('/').collect();
                folders.pop();
                for part in link.split('/') {
                    if part == ".." { drop(folders.pop()) } else { folders.push(part) }
                }
                let target = folders.join("/");
                assert!(paths.contains(&*target), "{path} links {link}");
                linked.insert(target);
            }
        }
        assert_eq!(linked.len(), paths.len(), "every page is reached");
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
