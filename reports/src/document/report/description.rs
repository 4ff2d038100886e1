//! Descriptions of encodings and tasks: their source, then their Markdown.

use crate::document::section::{Element, Section};
use analysis::Description;

/// Headings of the formula of an encoding, and of a sample of a task.
pub(super) const FORMULA: &str = "Formula";
pub(super) const SAMPLE: &str = "Sample";

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
        let text = paragraph.join(" ");
        paragraph.clear();
        let is_formula = whole.sections.last().is_some_and(|section| section.heading == FORMULA);
        add(whole, if is_formula { Element::Formula(text) } else { Element::Prose(text) });
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
