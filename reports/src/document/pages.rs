//! Documents of the pages of a report without scripts: the front, one page for each encoding, one for each workload.

mod encoding;
mod front;
mod workload;

use std::collections::{BTreeMap, BTreeSet};

use super::figures::{Figure, Plot};
use super::section::{Document, DocumentFigure, Section};
use super::table::{Table, TableCell};
use crate::analysis::{Report, Workload};
use crate::text::slug;

pub(crate) use self::encoding::encoding;
pub(crate) use self::front::front;
pub(crate) use self::workload::workload;

/// Largest number of encodings for which pages are made. Reports of more are searched by program.
pub(crate) const MOST_ENCODINGS: usize = 100;

/// Paths of the pages of encodings and workloads, relative to the front.
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
                let base = slug(name);
                let numbered = (2..).map(|number| format!("{base}-{number}"));
                // Names that differ only in signs must not share a file.
                let mut free = std::iter::once(base.clone()).chain(numbered);
                let file = free.find(|file| !file.is_empty() && taken.insert(file.clone()));
                (name.clone(), format!("{folder}/{}.html", file.unwrap_or_default()))
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

    /// Replaces the links of a table: rows of encodings lead to their pages, and nothing else leads anywhere.
    pub(crate) fn link(&self, report: &Report, mut table: Table) -> Table {
        for row in &mut table.rows {
            for cell in row.iter_mut() {
                cell.link = None;
            }
            let slot = row.first().and_then(|cell| cell.encoding);
            let own = report.encodings.iter().find(|encoding| Some(encoding.slot) == slot);
            if let (Some(first), Some(own)) = (row.first_mut(), own) {
                first.link = self.encoding(&own.name);
            }
        }
        table
    }
}

fn figure(figure: &Figure) -> DocumentFigure {
    let Figure { title, caption, plot, .. } = figure.clone();
    DocumentFigure { title, caption, plot }
}

/// Keeps the series of these slots in a figure; `None` if fewer than two points remain.
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
            for legend in table.legends.drain(..) {
                if !notes.contains(&legend) {
                    notes.push(legend);
                }
            }
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
