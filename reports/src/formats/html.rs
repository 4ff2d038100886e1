//! HTML: pages that make no request, with one small script that they can do without. A report has `index.html` and a page for
//! each section that is one.

mod foot;
mod inline;
mod links;
mod math;
mod menu;
mod page;
mod table;

use rayon::prelude::*;

pub use self::foot::PageFoot;
use self::inline::{prose, swatch};
use self::links::{Links, up};
use self::math::math;
use self::menu::menu;
use self::page::{PageParts, page};
pub use self::page::{PlainPage, plain_page};
pub use self::table::html_table;
use super::chart::{MarkStyle, chart_of};
use super::contents::{Contents, OutFile};
use super::format::Format;
use crate::document::{AnswerCard, Document, Element, Figure, Page, Section, Table, Target};
use crate::text::html as escape;

/// Number of items of a list that a page shows without being asked.
const LISTED: usize = 8;

/// Path of the first page of a report.
const FRONT: &str = "index.html";

/// Renders the pages of a report.
pub(super) fn render(contents: &Contents<'_>) -> Vec<OutFile> {
    let laid_out = |page: Page| Page { document: page.document.explained().located(), ..page };
    let pages: Vec<Page> =
        contents.document.clone().into_pages().into_par_iter().map(laid_out).collect();
    let links = Links::of(&pages);
    let report = contents.report;
    let date = report.conditions.ends.as_ref().and_then(|ends| ends.last_started.as_deref());
    let file = |own: &Page| {
        let path = links.path(own.target.as_ref());
        let Page { document, .. } = own;
        let format = Html { links: &links, page: path };
        let body = format.document(document);
        let description = document.elements.iter().map(described).find(|text| !text.is_empty());
        let foot = PageFoot {
            title: &report.meta.title,
            date,
            links: &report.meta.links,
            data: contents.has("parquet").then_some("data.parquet"),
            up: &up(path),
        };
        let parts = PageParts {
            title: &document.title,
            description: &description.unwrap_or_default(),
            menu: &menu(&pages, own, &links),
            body: &body,
            foot: &foot.html(),
        };
        OutFile::text(path, page(&parts))
    };
    pages.par_iter().map(file).collect()
}

/// Returns what an element says in short.
fn described(element: &Element) -> String {
    match element {
        Element::Prose(text) => text.replace('`', ""),
        _ => String::new(),
    }
}

/// Renders a document as one standalone page.
pub fn html_document(document: &Document) -> String {
    let document = document.clone().located();
    let format = Html { links: &Links::default(), page: FRONT };
    page(&PageParts {
        title: &document.title,
        body: &format.document(&document),
        ..PageParts::default()
    })
}

/// A page of a report, or a document by itself.
struct Html<'a> {
    links: &'a Links,
    /// Path of the page, relative to the report.
    page: &'a str,
}

impl Html<'_> {
    fn href(&self, target: &Target) -> Option<String> {
        self.links.href(target, self.page)
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
        let list = |items: &[String]| {
            let items = items.iter().map(|item| format!("<li>{}</li>\n", prose(item)));
            format!("<ul>\n{}</ul>\n", items.collect::<String>())
        };
        if items.len() <= LISTED + 1 {
            return list(items);
        }
        let (shown, folded) = items.split_at(LISTED);
        let count = folded.len();
        format!(
            "{}<details><summary>{count} more</summary>\n{}</details>\n",
            list(shown),
            list(folded)
        )
    }

    /// A card for each answer.
    fn answers(&self, answers: &[AnswerCard]) -> String {
        let card = |answer: &AnswerCard| {
            let AnswerCard { asked, encoding, score, detail } = answer;
            let look = encoding.encoding;
            let colour = look.map_or_else(String::new, |look| MarkStyle::of(look).classes());
            let name = look.map_or_else(String::new, swatch) + &escape(&encoding.text);
            let name = match encoding.link.as_ref().and_then(|target| self.href(target)) {
                Some(href) => format!("<a href=\"{}\">{name}</a>", escape(&href)),
                None => name,
            };
            format!(
                "<li class=\"{colour}\"><span>{}</span><b>{name} {}</b><small>{}</small></li>\n",
                escape(asked),
                escape(score).replace(' ', "\u{a0}"),
                escape(detail)
            )
        };
        format!("<ul class=\"answers\">\n{}</ul>\n", answers.iter().map(card).collect::<String>())
    }

    fn formula(&self, text: &str) -> String {
        let part = |(index, part): (usize, &str)| match index % 2 {
            1 => math(part).unwrap_or_else(|| format!("<code>{}</code>", escape(part))),
            _ => escape(part),
        };
        format!("<p>{}</p>\n", text.split('`').enumerate().map(part).collect::<String>())
    }

    fn code(&self, text: &str) -> String {
        // Line by line, so that breaks are kept.
        let mut lines: Vec<&str> = text.lines().collect();
        let mut shown = Vec::new();
        while !lines.is_empty() {
            let line = lines.remove(0);
            let is_marks =
                |next: &&str| next.contains('^') && next.trim_matches([' ', '^']).is_empty();
            let has_marks = lines.first().is_some_and(is_marks);
            let marks = if has_marks { lines.remove(0) } else { "" };
            shown.push(marked(line, marks));
        }
        format!("<pre>{}</pre>\n", shown.join("\n"))
    }

    fn table(&self, table: &Table) -> String {
        table::grid(table, &|target: &Target| self.href(target))
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

    /// Neighbouring figures share a grid; a table has the figure after it beside it.
    fn elements(&self, elements: &[Element]) -> String {
        let is_figure = |element: &Element| matches!(element, Element::Figure(_));
        let is_table = |element: &Element| matches!(element, Element::Table(_));
        let group = |group: &[Element]| {
            let text: String = group.iter().map(|element| self.element(element)).collect();
            if is_table(&group[0]) && group.len() > 1 {
                format!("<div class=\"beside\">\n{text}</div>\n")
            } else if is_figure(&group[0]) {
                format!("<div class=\"figures\">\n{text}</div>\n")
            } else {
                text
            }
        };
        let belongs = |a: &Element, b: &Element| is_figure(b) && (is_figure(a) || is_table(a));
        elements.chunk_by(belongs).map(group).collect()
    }

    fn section(&self, section: &Section, level: usize) -> String {
        let body = self.body(&section.elements, &section.sections, level);
        let (id, heading, level) = (&section.id, escape(&section.heading), level.min(6));
        if section.folded {
            return format!(
                "<details id=\"{id}\"><summary class=\"h{level}\">{heading}</summary>\n{body}</details>\n"
            );
        }
        format!("<section>\n<h{level} id=\"{id}\">{heading}</h{level}>\n{body}</section>\n")
    }
}

/// Returns a line of code in which the characters above `^` are marked.
fn marked(line: &str, marks: &str) -> String {
    let marks: Vec<char> = marks.chars().collect();
    let is_marked = |place: usize| marks.get(place) == Some(&'^');
    let letters: Vec<(usize, char)> = line.chars().enumerate().collect();
    let runs = letters.chunk_by(|(a, _), (b, _)| is_marked(*a) == is_marked(*b));
    let run = |run: &[(usize, char)]| {
        let text = escape(&run.iter().map(|(_, letter)| letter).collect::<String>());
        if is_marked(run[0].0) { format!("<mark>{text}</mark>") } else { text }
    };
    runs.map(run).collect()
}

#[cfg(test)]
mod tests;
