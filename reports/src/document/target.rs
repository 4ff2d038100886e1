//! Subjects that links lead to.

/// Subject of a section that links lead to.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Target {
    /// Encoding of this name; its section is a page of its own.
    Encoding(String),
    /// Workload of this name; its section is a page of its own.
    Workload(String),
    /// Cells of the workload of this name; its section is a page of its own, and formats of one file leave it out.
    Records(String),
    /// Cells of an encoding, within those of a workload.
    Cells {
        /// Name of the workload.
        workload: String,
        /// Name of the encoding.
        encoding: String,
    },
    /// File at a path relative to the report.
    File(String),
}
