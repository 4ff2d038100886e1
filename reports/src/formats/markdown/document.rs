//! Documents as Markdown.

use std::fmt::Write as _;

use super::escape::{escape, prose};
use super::table::whole_table;
use crate::document::Document;

/// Renders a document as Markdown, without its figures.
pub fn markdown_document(document: &Document) -> String {
    let mut out = format!("# {}\n", escape(&document.title));
    for paragraph in &document.paragraphs {
        let _ = write!(out, "\n{}\n", prose(paragraph));
    }
    for section in &document.sections {
        // Markdown documents have no figures.
        let tables = || section.tables.iter().chain(&section.details);
        if section.paragraphs.is_empty() && section.notes.is_empty() && tables().next().is_none() {
            continue;
        }
        let _ = write!(out, "\n## {}\n", escape(&section.heading));
        for paragraph in &section.paragraphs {
            let _ = write!(out, "\n{}\n", prose(paragraph));
        }
        if !section.notes.is_empty() {
            out.push('\n');
        }
        for note in &section.notes {
            let _ = writeln!(out, "- {}", prose(note));
        }
        for (caption, found) in tables() {
            if !caption.is_empty() {
                let _ = write!(out, "\n### {}\n", escape(caption));
            }
            let _ = write!(out, "\n{}", whole_table(found).trim_end());
            out.push('\n');
        }
    }
    out
}
