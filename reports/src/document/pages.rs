//! Documents of the pages of a report: the front, one page for each encoding, one for each workload.

mod encoding;
mod front;
mod workload;

use std::collections::{BTreeMap, BTreeSet};

use super::figures::{Figure, Plot};
use super::section::{Document, DocumentFigure, Section};
use super::table::{Table, TableCell};
use crate::analysis::{Report, Workload};
use crate::text::{add_new, unique_slug};

pub(crate) use self::encoding::encoding;
pub(crate) use self::front::front;
pub(crate) use self::workload::workload;

/// Paths of the pages of encodings and workloads, relative to the report.
#[derive(Debug, Clone, Default)]
pub(crate) struct PagePaths {
    encodings: BTreeMap<String, String>,
    workloads: BTreeMap<String, String>,
}

impl PagePaths {
    /// Returns the paths of all pages of a report.
    pub(crate) fn of(report: &Report) -> Self {
        let paths = |folder: &str, names: Vec<&String>| {
            let mut taken = BTreeSet::new();
            let path = |name: &String| {
                let file = unique_slug(name, &mut taken);
                (name.clone(), format!("pages/{folder}/{file}.html"))
            };
            names.into_iter().map(path).collect()
        };
        Self {
            encodings: paths("encodings", report.encodings.iter().map(|e| &e.name).collect()),
            workloads: paths("tasks", report.workloads.iter().map(|w| &w.name).collect()),
        }
    }

    /// Returns the path of the page of an encoding.
    pub(crate) fn encoding(&self, name: &str) -> Option<String> {
        self.encodings.get(name).cloned()
    }

    /// Returns the path of the page of a workload.
    pub(crate) fn workload(&self, name: &str) -> Option<String> {
        self.workloads.get(name).cloned()
    }

    /// Returns a cell with the name of a workload that leads to its page.
    fn cell_of(&self, workload: &Workload) -> TableCell {
        TableCell { link: self.workload(&workload.name), ..TableCell::from(&workload.name) }
    }

    /// Returns the path of the page of the encoding that a row belongs to.
    pub(crate) fn of_row(&self, report: &Report, row: &[TableCell]) -> Option<String> {
        let slot = row.first()?.encoding?;
        let own = report.encodings.iter().find(|encoding| encoding.slot == slot)?;
        self.encoding(&own.name)
    }

    /// Replaces the links of a table: rows of encodings lead to their pages, and nothing else leads anywhere.
    pub(crate) fn link(&self, report: &Report, mut table: Table) -> Table {
        table.unlink();
        for row in &mut table.rows {
            let path = self.of_row(report, row);
            if let Some(first) = row.first_mut() {
                first.link = path;
            }
        }
        table
    }
}

fn figure(figure: &Figure) -> DocumentFigure {
    let Figure { title, caption, plot, .. } = figure.clone();
    DocumentFigure { title, caption, plot }
}

/// Keeps the series of these slots in a figure; `None` if none remains.
fn figure_of(found: &Figure, slots: &[usize]) -> Option<DocumentFigure> {
    let mut found = figure(found);
    let series = match &mut found.plot {
        Plot::Lines(lines) => {
            lines.series.retain(|series| slots.contains(&series.slot));
            lines.series.len()
        }
        Plot::Dots(dots) => {
            for (_, series) in &mut dots.groups {
                series.retain(|series| slots.contains(&series.slot));
            }
            dots.groups.iter().map(|(_, series)| series.len()).sum()
        }
        Plot::Scatter(_) | Plot::Heat(_) => 0,
    };
    (series > 0).then_some(found)
}

/// Moves the explanations of the columns of all tables to a section at the end, each once.
fn explained(mut document: Document) -> Document {
    let mut notes: Vec<String> = Vec::new();
    for section in &mut document.sections {
        for (_, table) in section.tables.iter_mut().chain(&mut section.details) {
            add_new(&mut notes, table.legends.drain(..));
        }
    }
    if !notes.is_empty() {
        let heading = "How to read the tables".to_owned();
        document.sections.push(Section { heading, notes, ..Section::default() });
    }
    document
}

#[cfg(test)]
mod tests;
