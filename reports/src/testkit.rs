//! Parts of documents, for tests.

use crate::document::{Element, Section, Table};

/// First table of a section.
pub(crate) fn table_of(section: &Section) -> &Table {
    let mut tables = section.elements.iter().filter_map(|element| match element {
        Element::Table(table) => Some(table),
        _ => None,
    });
    tables.next().unwrap()
}

/// Paragraphs of a section.
pub(crate) fn prose_of(section: &Section) -> Vec<&str> {
    let texts = section.elements.iter().filter_map(|element| match element {
        Element::Prose(text) => Some(text.as_str()),
        _ => None,
    });
    texts.collect()
}
