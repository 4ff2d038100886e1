//! Documents as pages without scripts.

use askama::Template;

use super::parts::{details, html_table, prose, rendered};
use super::plain::plain_page;
use crate::document::{Document, DocumentFigure};
use crate::formats::chart::chart_of;

#[derive(Template)]
#[template(path = "document.html")]
struct Body<'a> {
    document: &'a Document,
}

#[derive(Template)]
#[template(path = "figures.html")]
struct Figures<'a> {
    figures: &'a [DocumentFigure],
}

/// Renders a document as a standalone page without scripts.
pub fn html_document(document: &Document) -> String {
    plain_page(&document.title, &body(document))
}

/// Renders a document without the head of a page.
pub(super) fn body(document: &Document) -> String {
    rendered(&Body { document })
}

fn figures(figures: &[DocumentFigure]) -> String {
    rendered(&Figures { figures })
}
