//! HTML: pages that make no request and have no script. A report has `index.html` and a page for each section that is one.

mod inline;
mod links;
mod page;
mod table;

use rayon::prelude::*;

use self::inline::prose;
use self::links::Links;
pub use self::page::plain_page;
pub use self::table::html_table;
use super::chart::chart_of;
use super::contents::{Contents, OutFile};
use super::format::Format;
use crate::document::{Document, Element, Figure, Page, Section, Table, Target};
use crate::text::{html as escape, slug};

/// Path of the first page of a report.
const FRONT: &str = "index.html";

/// Renders the pages of a report.
pub(super) fn render(contents: &Contents<'_>) -> Vec<OutFile> {
    let pages = contents.document.clone().into_pages();
    let links = Links::of(&pages);
    let file = |page: Page| {
        let path = links.path(page.target.as_ref());
        let format = Html { links: &links, page: path };
        let document = page.document.explained();
        let back = if path == FRONT {
            String::new()
        } else {
            format!("<nav><a href=\"{}{FRONT}\">All results</a></nav>\n", links::up(path))
        };
        OutFile::text(path, plain_page(&document.title, &(back + &format.document(&document))))
    };
    pages.into_par_iter().map(file).collect()
}

/// Renders a document as one standalone page.
pub fn html_document(document: &Document) -> String {
    let format = Html { links: &Links::default(), page: FRONT };
    plain_page(&document.title, &format.document(document))
}

/// A page of a report, or a document by itself.
struct Html<'a> {
    links: &'a Links,
    /// Path of the page, relative to the report.
    page: &'a str,
}

impl Html<'_> {
    /// Returns the attribute with the id that links lead to.
    fn id(&self, section: &Section, level: usize) -> String {
        let id = match &section.target {
            Some(target) => self.links.anchor(target).map(str::to_owned),
            None => Some(slug(&section.heading)).filter(|_| level == 2),
        };
        id.filter(|id| !id.is_empty()).map_or_else(String::new, |id| format!(" id=\"{id}\""))
    }
}

impl Format for Html<'_> {
    /// The head of the page has the title.
    fn title(&self, _text: &str) -> String {
        String::new()
    }

    fn heading(&self, text: &str, level: usize) -> String {
        let level = level.min(6);
        format!("<h{level}>{}</h{level}>\n", escape(text))
    }

    fn prose(&self, text: &str) -> String {
        format!("<p>{}</p>\n", prose(text))
    }

    fn list(&self, items: &[String]) -> String {
        let items: Vec<String> =
            items.iter().map(|item| format!("<li>{}</li>\n", prose(item))).collect();
        format!("<ul>\n{}</ul>\n", items.concat())
    }

    fn code(&self, text: &str) -> String {
        // Line by line, so that breaks are kept.
        let lines: Vec<String> = text.lines().map(escape).collect();
        format!("<pre>{}</pre>\n", lines.join("\n"))
    }

    fn table(&self, table: &Table) -> String {
        table::grid(table, &|target: &Target| self.links.href(target, self.page))
    }

    fn figure(&self, figure: &Figure) -> String {
        let Figure { title, caption, plot, .. } = figure;
        let caption = if caption.is_empty() {
            String::new()
        } else {
            format!("<figcaption>{}</figcaption>", prose(caption))
        };
        format!("<figure>{}{caption}</figure>\n", chart_of(title, plot))
    }

    fn source(&self, text: &str, url: &str) -> String {
        let text = escape(text);
        if url.starts_with("https://") {
            let url = escape(url);
            return format!("<p>Source: <a href=\"{url}\" rel=\"noreferrer\">{text}</a></p>\n");
        }
        format!("<p>Source: {text}</p>\n")
    }

    /// Neighbouring figures share a grid.
    fn elements(&self, elements: &[Element]) -> String {
        let is_figure = |element: &Element| matches!(element, Element::Figure(_));
        let group = |group: &[Element]| {
            let text: String = group.iter().map(|element| self.element(element)).collect();
            if is_figure(&group[0]) {
                format!("<div class=\"figures\">\n{text}</div>\n")
            } else {
                text
            }
        };
        elements.chunk_by(|a, b| is_figure(a) == is_figure(b)).map(group).collect()
    }

    fn section(&self, section: &Section, level: usize) -> String {
        let body = self.body(&section.elements, &section.sections, level);
        let id = self.id(section, level);
        if section.folded {
            let summary = escape(&section.heading);
            return format!("<details{id}><summary>{summary}</summary>\n{body}</details>\n");
        }
        let heading = self.heading(&section.heading, level);
        format!("<section{id}>\n{heading}{body}</section>\n")
    }
}

#[cfg(test)]
mod tests;
