//! Documents as pages without scripts.

use std::fmt::Write as _;

use super::parts::{details, html_table, prose};
use super::plain::plain_page;
use crate::document::{Document, DocumentFigure};
use crate::formats::chart::chart_of;
use crate::text::html as escape;

/// Longest table that a page folds, in rows; longer ones are only pointed to.
const MOST: usize = 150;

/// A document as a page of its own, without scripts.
pub fn html_document(document: &Document) -> String {
    let mut out = paragraphs(&document.paragraphs, "");
    out.push_str(&figures(&document.figures));
    for section in &document.sections {
        let _ = write!(out, "<section>\n<h2>{}</h2>\n", escape(&section.heading));
        out.push_str(&paragraphs(&section.paragraphs, ""));
        out.push_str(&paragraphs(&section.notes, " class=\"note\""));
        out.push_str(&figures(&section.figures));
        for (caption, table) in &section.tables {
            if !caption.is_empty() {
                let _ = writeln!(out, "<h3>{}</h3>", escape(caption));
            }
            out.push_str(&html_table(table));
        }
        for (caption, table) in &section.details {
            if table.rows.len() <= MOST {
                out.push_str(&details(caption, &html_table(table)));
            } else {
                let (rows, elsewhere) = (table.rows.len(), prose(&document.elsewhere));
                let _ = writeln!(
                    out,
                    "<p class=\"note\">{}: {rows} values, too many for a page; {elsewhere}.</p>",
                    escape(caption)
                );
            }
        }
        out.push_str("</section>\n");
    }
    plain_page(&document.title, &out)
}

fn paragraphs(texts: &[String], class: &str) -> String {
    texts.iter().map(|text| format!("<p{class}>{}</p>\n", prose(text))).collect()
}

fn figures(figures: &[DocumentFigure]) -> String {
    if figures.is_empty() {
        return String::new();
    }
    let mut out = "<div class=\"figures\">\n".to_owned();
    for DocumentFigure { title, caption, plot } in figures {
        let chart = chart_of(title, plot);
        let _ =
            writeln!(out, "<figure>{chart}<figcaption>{}</figcaption></figure>", prose(caption));
    }
    out.push_str("</div>\n");
    out
}
