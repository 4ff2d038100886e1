//! Documents as trees of sections, independent of formats.

use std::collections::BTreeSet;

use super::plot::Figure;
use super::table::{Table, TableCell, Target};
use crate::text::{add_new, unique_slug};

/// A document: what comes before the first section, and sections.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Document {
    /// Title of the document.
    pub title: String,
    /// Elements before the first section.
    pub elements: Vec<Element>,
    /// Sections in reading order.
    pub sections: Vec<Section>,
}

/// A section of a document, with sections of its own.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Section {
    /// Heading of the section.
    pub heading: String,
    /// Id of the heading on its page; empty until [`Document::located`].
    pub(crate) id: String,
    /// Subject that links lead to; `None` for a section that nothing links to.
    pub target: Option<Target>,
    /// Whether pages fold the section.
    pub folded: bool,
    /// Elements before the first section within.
    pub elements: Vec<Element>,
    /// Sections within, in reading order.
    pub sections: Vec<Section>,
}

/// An element of a section.
#[derive(Debug, Clone, PartialEq)]
pub enum Element {
    /// Paragraph; code is enclosed in backticks.
    Prose(String),
    /// List of sentences; code is enclosed in backticks.
    List(Vec<String>),
    /// The most important answers.
    Answers(Vec<AnswerCard>),
    /// Source of what the section is about.
    Source {
        /// Authors, year or title.
        text: String,
        /// Address; empty if unknown.
        url: String,
    },
    /// Paragraph with formulas in backticks.
    Formula(String),
    /// Lines that keep their breaks and spaces; a line of `^` marks what stands above it.
    Code(String),
    /// Figure with its caption.
    Figure(Figure),
    /// Table with its notes and legends.
    Table(Table),
}

/// Answer in short: an encoding with its score.
#[derive(Debug, Clone, PartialEq)]
pub struct AnswerCard {
    /// Question in a phrase: `RoPE, for comparison`.
    pub asked: String,
    /// Name of the encoding, which leads to its section.
    pub encoding: TableCell,
    /// Score of the encoding.
    pub score: String,
    /// Interval, place and cost, in a phrase.
    pub detail: String,
}

impl AnswerCard {
    /// Returns the answer as a sentence.
    pub(crate) fn sentence(&self) -> String {
        let Self { asked, encoding, score, detail } = self;
        format!("{asked}: {}, {score} ({detail}).", encoding.text)
    }
}

impl Element {
    /// Whether the element shows nothing.
    fn is_empty(&self) -> bool {
        match self {
            Self::Prose(text)
            | Self::Formula(text)
            | Self::Code(text)
            | Self::Source { text, .. } => text.is_empty(),
            Self::List(items) => items.is_empty(),
            Self::Answers(answers) => answers.is_empty(),
            Self::Table(table) => table.rows.is_empty(),
            Self::Figure(_) => false,
        }
    }
}

impl Section {
    /// A section without sections.
    pub(crate) fn of(heading: impl Into<String>, elements: Vec<Element>) -> Self {
        Self { heading: heading.into(), elements, ..Self::default() }
    }

    /// A section with one table.
    pub(crate) fn of_table(heading: impl Into<String>, table: Table) -> Self {
        Self::of(heading, vec![Element::Table(table)])
    }

    /// A section with figures.
    pub(crate) fn of_figures(heading: impl Into<String>, figures: Vec<Figure>) -> Self {
        Self::of(heading, figures.into_iter().map(Element::Figure).collect())
    }

    /// Removes a section within, found by its heading.
    pub(crate) fn take(&mut self, heading: &str) -> Option<Self> {
        let place = self.sections.iter().position(|section| section.heading == heading)?;
        Some(self.sections.remove(place))
    }

    /// Marks the section as one that pages fold.
    pub(crate) fn folded(self) -> Self {
        Self { folded: true, ..self }
    }

    /// Adds sections within.
    pub(crate) fn with(self, sections: impl IntoIterator<Item = Self>) -> Self {
        Self { sections: sections.into_iter().collect(), ..self }
    }

    pub(crate) fn each_element(&mut self, visit: &mut dyn FnMut(&mut Element)) {
        self.elements.iter_mut().for_each(&mut *visit);
        self.sections.iter_mut().for_each(|section| section.each_element(visit));
    }

    /// Whether the section is a page of its own.
    fn is_page(&self) -> bool {
        let page = |t: &Target| {
            matches!(t, Target::Encoding(_) | Target::Workload(_) | Target::Records(_))
        };
        self.target.as_ref().is_some_and(page)
    }
}

/// Removes elements that show nothing, and then sections without elements and sections.
fn prune(elements: &mut Vec<Element>, sections: &mut Vec<Section>) {
    elements.retain(|element| !element.is_empty());
    for section in &mut *sections {
        prune(&mut section.elements, &mut section.sections);
    }
    sections.retain(|section| !section.elements.is_empty() || !section.sections.is_empty());
}

/// Heading of the section that [`Document::explained`] adds.
const READING: &str = "How to read the tables";

impl Document {
    /// Removes what shows nothing: elements, and sections without any.
    pub(crate) fn pruned(mut self) -> Self {
        prune(&mut self.elements, &mut self.sections);
        self
    }

    fn each_element(&mut self, visit: &mut dyn FnMut(&mut Element)) {
        self.elements.iter_mut().for_each(&mut *visit);
        self.sections.iter_mut().for_each(|section| section.each_element(visit));
    }

    /// Gives every heading an id, unique on the page, and every table the heading above it as its caption.
    pub(crate) fn located(mut self) -> Self {
        fn name(elements: &mut [Element], heading: &str) {
            for element in elements {
                if let Element::Table(table) = element {
                    heading.clone_into(&mut table.caption);
                }
            }
        }
        fn locate(sections: &mut [Section], ids: &mut BTreeSet<String>) {
            for section in sections {
                section.id = unique_slug(&section.heading, ids);
                name(&mut section.elements, &section.heading);
                locate(&mut section.sections, ids);
            }
        }
        name(&mut self.elements, &self.title);
        locate(&mut self.sections, &mut BTreeSet::new());
        self
    }

    /// Gives every figure outside of the pages of encodings, which repeat figures of workloads, a name for its file.
    pub(crate) fn with_figure_files(mut self) -> Self {
        let mut names = BTreeSet::new();
        let mut name = |element: &mut Element| {
            if let Element::Figure(figure) = element {
                figure.file = Some(unique_slug(&figure.title, &mut names));
            }
        };
        self.elements.iter_mut().for_each(&mut name);
        let is_encoding = |section: &Section| matches!(section.target, Some(Target::Encoding(_)));
        let repeats = |section: &Section| section.sections.iter().any(is_encoding);
        let sections = self.sections.iter_mut().filter(|section| !repeats(section));
        sections.for_each(|section| section.each_element(&mut name));
        self
    }

    /// Returns all figures that have a file.
    pub(crate) fn figures(&self) -> Vec<&Figure> {
        fn add<'a>(
            elements: &'a [Element],
            sections: &'a [Section],
            figures: &mut Vec<&'a Figure>,
        ) {
            figures.extend(elements.iter().filter_map(|element| match element {
                Element::Figure(figure) if figure.file.is_some() => Some(figure),
                _ => None,
            }));
            for section in sections {
                add(&section.elements, &section.sections, figures);
            }
        }
        let mut figures = Vec::new();
        add(&self.elements, &self.sections, &mut figures);
        figures
    }

    /// Moves the explanations of the columns of all tables to a section at the end, each once.
    pub(crate) fn explained(mut self) -> Self {
        let mut legends: Vec<String> = Vec::new();
        self.each_element(&mut |element| {
            if let Element::Table(table) = element {
                add_new(&mut legends, table.legends.drain(..));
            }
        });
        if !legends.is_empty() {
            self.sections.push(Section::of(READING, vec![Element::List(legends)]).folded());
        }
        self
    }

    /// Removes the sections that list records one by one.
    pub(crate) fn without_records(mut self) -> Self {
        fn keep(sections: &mut Vec<Section>) {
            sections.retain(|section| !matches!(section.target, Some(Target::Records(_))));
            for section in sections {
                keep(&mut section.sections);
            }
        }
        keep(&mut self.sections);
        self
    }

    /// Splits the sections that are pages of their own off. The first page is the rest, without a target.
    pub(crate) fn into_pages(mut self) -> Vec<Page> {
        let mut pages = Vec::new();
        split_off(&mut self.sections, &mut pages);
        let front = self.pruned();
        let front = Page { target: None, document: front };
        std::iter::once(front).chain(pages).collect()
    }
}

/// A page of a document that is split into several.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Page {
    /// Subject of the page; `None` for the first.
    pub(crate) target: Option<Target>,
    pub(crate) document: Document,
}

fn split_off(sections: &mut Vec<Section>, pages: &mut Vec<Page>) {
    for section in std::mem::take(sections) {
        if section.is_page() {
            let Section { heading: title, target, elements, sections, .. } = section;
            pages.push(Page { target, document: Document { title, elements, sections } });
        } else {
            sections.push(section);
        }
    }
    for section in sections {
        split_off(&mut section.sections, pages);
    }
}
