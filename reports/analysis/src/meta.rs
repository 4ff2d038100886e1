//! Facts about a report that its records do not contain.

/// Facts about a report that its records do not contain.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ReportMeta {
    /// Title of the page.
    pub title: String,
    /// The command that produced the results.
    pub command: String,
    /// Cells or workloads without a record, each with the reason.
    pub skipped: Vec<String>,
    /// References of the encodings and tasks, as BibTeX.
    pub references: String,
    /// Descriptions of encodings and tasks, for their pages.
    pub descriptions: Vec<Description>,
    /// Pages about single cells (`pe-bench inspect`): the cell's key, and the path relative to the report.
    pub inspected: Vec<(String, String)>,
    /// Training steps of encodings, measured in one run of `pe-bench speed`.
    pub measured: Vec<MeasuredStep>,
    /// Sizes and machine of that run, as a phrase.
    pub measured_at: String,
    /// Links of every page, such as one to a guide that is published next to the report.
    pub links: Vec<PageLink>,
}

/// Link of a page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PageLink {
    /// Text of the link.
    pub name: String,
    /// Address, absolute or relative to the folder of the page's report.
    pub address: String,
}

/// Time and memory of a training step with an encoding.
#[derive(Debug, Clone, PartialEq)]
pub struct MeasuredStep {
    /// Name of the encoding.
    pub encoding: String,
    /// Median seconds of a training step.
    pub step_seconds: f64,
    /// Peak memory of the process in bytes; `None` if not measured.
    pub peak_bytes: Option<u64>,
}

impl ReportMeta {
    /// Looks up the description of an encoding or task by its [`Description::name`].
    pub fn description(&self, name: &str) -> Option<&Description> {
        self.descriptions.iter().find(|found| found.name == name)
    }

    /// Returns the ratio of an encoding's measured step time to that of another; `None` if one was not measured.
    pub fn time_ratio(&self, encoding: &str, other: &str) -> Option<f64> {
        let seconds = |name: &str| {
            let found = self.measured.iter().find(|step| step.encoding == name);
            found.map(|step| step.step_seconds)
        };
        Some(seconds(encoding)? / seconds(other)?).filter(|ratio| ratio.is_finite())
    }
}

/// Description of an encoding or task.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Description {
    /// Name of the encoding in records, or id of the task.
    pub name: String,
    /// Summary in one sentence.
    pub summary: String,
    /// Publication that defines it.
    pub source: String,
    /// Address of the publication; empty if unknown.
    pub url: String,
    /// Whole description in Markdown: headings, paragraphs and code.
    pub text: String,
    /// Whether an encoding acts outside of attention as well, so that a layer of attention alone cannot have it.
    pub acts_outside: bool,
}
