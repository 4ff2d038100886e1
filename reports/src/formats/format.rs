//! What a format is: how each kind of element reads. The order is that of the document.

use crate::document::{AnswerCard, Document, Element, Figure, Section, Table};

/// A format of documents.
pub(super) trait Format {
    /// Title of a document.
    fn title(&self, text: &str) -> String;
    /// Heading of a section; sections of a document have level 2, those within them level 3 and so on.
    fn heading(&self, text: &str, level: usize) -> String;
    /// Paragraph; code is enclosed in backticks.
    fn prose(&self, text: &str) -> String;
    /// List of sentences; code is enclosed in backticks.
    fn list(&self, items: &[String]) -> String;
    /// Lines that keep their breaks and spaces.
    fn code(&self, text: &str) -> String;
    /// Table with its notes and legends.
    fn table(&self, table: &Table) -> String;
    /// Figure; empty if the format cannot show it.
    fn figure(&self, figure: &Figure) -> String;

    /// Paragraph with formulas in backticks.
    fn formula(&self, text: &str) -> String {
        self.prose(text)
    }

    /// The most important answers.
    fn answers(&self, answers: &[AnswerCard]) -> String {
        self.list(&answers.iter().map(AnswerCard::sentence).collect::<Vec<_>>())
    }

    /// Source, with its address if that is known.
    fn source(&self, text: &str, _url: &str) -> String {
        self.prose(&format!("Source: {text}"))
    }

    fn element(&self, element: &Element) -> String {
        match element {
            Element::Prose(text) => self.prose(text),
            Element::List(items) => self.list(items),
            Element::Answers(answers) => self.answers(answers),
            Element::Source { text, url } => self.source(text, url),
            Element::Formula(text) => self.formula(text),
            Element::Code(text) => self.code(text),
            Element::Figure(figure) => self.figure(figure),
            Element::Table(table) => self.table(table),
        }
    }

    fn elements(&self, elements: &[Element]) -> String {
        elements.iter().map(|element| self.element(element)).collect()
    }

    /// Section with its heading; empty if nothing in it can be shown.
    fn section(&self, section: &Section, level: usize) -> String {
        let body = self.body(&section.elements, &section.sections, level);
        if body.trim().is_empty() { body } else { self.heading(&section.heading, level) + &body }
    }

    /// Elements and sections below a heading of this level.
    fn body(&self, elements: &[Element], sections: &[Section], level: usize) -> String {
        let sections = sections.iter().map(|section| self.section(section, level + 1));
        self.elements(elements) + &sections.collect::<String>()
    }

    fn document(&self, document: &Document) -> String {
        self.title(&document.title) + &self.body(&document.elements, &document.sections, 1)
    }
}
