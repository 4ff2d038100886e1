//! Descriptions of encodings and tasks: their source, then their Markdown.

use crate::document::section::{Element, Section};
use analysis::Description;

/// Builds the section of a description: headings, code between fences, paragraphs.
pub(super) fn section(description: &Description) -> Section {
    let Description { source, url, text, .. } = description;
    let source = Element::Source { text: source.clone(), url: url.clone() };
    let mut whole = Section::of("Description", vec![source]).folded();
    let mut paragraph: Vec<&str> = Vec::new();
    let mut code: Option<Vec<&str>> = None;
    // The sections so far grow at their end.
    let add = |whole: &mut Section, element: Element| {
        let open = whole.sections.last_mut();
        open.map_or(&mut whole.elements, |section| &mut section.elements).push(element);
    };
    let close = |whole: &mut Section, paragraph: &mut Vec<&str>| {
        let open = whole.sections.last_mut();
        let elements = open.map_or(&mut whole.elements, |section| &mut section.elements);
        elements.push(Element::Prose(paragraph.join(" ")));
        paragraph.clear();
    };
    for line in text.lines() {
        if line.starts_with("```") {
            close(&mut whole, &mut paragraph);
            match code.take() {
                Some(lines) => add(&mut whole, Element::Code(lines.join("\n"))),
                None => code = Some(Vec::new()),
            }
        } else if let Some(lines) = &mut code {
            lines.push(line);
        } else if let Some(heading) = line.strip_prefix("## ") {
            close(&mut whole, &mut paragraph);
            whole.sections.push(Section::of(heading, Vec::new()));
        } else if line.trim().is_empty() || line.starts_with("# ") {
            close(&mut whole, &mut paragraph);
        } else {
            paragraph.push(line);
        }
    }
    close(&mut whole, &mut paragraph);
    whole
}
