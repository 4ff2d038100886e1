//! Published numbers as data: `reports/published/*.toml`, one file for each source, compiled in.
//!
//! A table of a file is a table of the paper: rows are encodings, columns are settings of the evaluation. It also
//! defines how records of the experiment are found: by `task`, split and length of the column, the encoding's
//! settings, and
//!
//! * `identity`: paths of a record's `config` whose values must match, or the record is of another experiment;
//! * `recipe`: paths whose values may differ, which makes it the same experiment with another recipe.
//!
//! Entries of a column override those of a row, which override those of the table. `"unset"` matches a path without a
//! value, `{ any = [..] }` one of several values, `{ contains = ".." }` a text that contains another. A table that no record can reproduce states the reason (`missing`)
//! or the command that reproduces it (`instead`); `needs` states requirements for a verdict on its numbers. `smaller`
//! lists suites and tasks at another size with all rows or some of them, whose order alone is compared and whose numbers are shown. A
//! row that is refused here because it is another encoding names that one (`trained_as`). `stability` names numbers in the
//! output of `pe-bench stability`, which are set beside the published ones without a verdict.
//!
//! Numbers are texts with the printed digits, which determine the rounding. `"unread"` is a number that the source
//! prints and that has not been copied; `unread_deviations` is the same for standard deviations.

mod check;
mod table;

use std::collections::{BTreeMap, BTreeSet};

pub use self::table::{
    Coverage, Paper, Printed, PublishedColumn, PublishedMetric, PublishedRow, PublishedTable,
    SmallerSuite, Source,
};
use super::recipe::Identity;

/// Contents of the files, each with its id.
const FILES: &[(&str, &str)] = &[
    ("cope", include_str!("../../published/cope.toml")),
    ("cope-vs-rope", include_str!("../../published/cope-vs-rope.toml")),
    ("grape", include_str!("../../published/grape.toml")),
    ("tape", include_str!("../../published/tape.toml")),
];

/// Settings of every encoding that a file names, in the form of records. A test of `bench`, which knows the
/// encodings, writes it.
const ENCODINGS: &str = include_str!("../../published/encodings.json");

/// Errors of published numbers.
#[derive(Debug, thiserror::Error)]
pub enum PublishedError {
    /// The records cannot be compared.
    #[error("the records cannot be compared with published numbers: {0}")]
    Records(#[from] polars::prelude::PolarsError),
    /// The file is not valid TOML or not of this layout.
    #[error("published/{file}.toml: {source}")]
    Syntax {
        /// Path of the file.
        file: String,
        /// Error of the parser, with its position.
        source: Box<toml::de::Error>,
    },
    /// The file `encodings.json` is damaged.
    #[error(
        "published/encodings.json: {0}; `cargo test --workspace --test published` says how to write it anew"
    )]
    Encodings(#[from] serde_json::Error),
    /// An entry contradicts itself or another entry.
    #[error("published/{file}.toml: {at}: {reason}")]
    Entry {
        /// Path of the file.
        file: String,
        /// Table, and the field or row within it.
        at: String,
        /// Description of the defect and what was expected.
        reason: String,
    },
}

/// Reads one file.
///
/// # Errors
/// [`PublishedError`], with the file and the position in it.
pub fn parse(file: &str, text: &str) -> Result<Paper, PublishedError> {
    let paper: Paper = toml::from_str(text).map_err(|source| PublishedError::Syntax {
        file: file.to_owned(),
        source: Box::new(source),
    })?;
    let entry = |(at, reason)| PublishedError::Entry { file: file.to_owned(), at, reason };
    if paper.paper.id != file {
        let reason = format!("`{}`, expected the name of its file", paper.paper.id);
        return Err(entry(("paper.id".to_owned(), reason)));
    }
    let mut ids = BTreeSet::new();
    for table in &paper.tables {
        table.check().map_err(entry)?;
        if !ids.insert(&table.id) {
            return Err(entry((format!("table `{}`", table.id), "stands twice".to_owned())));
        }
    }
    Ok(paper)
}

/// Returns every source, sorted by id.
///
/// # Errors
/// [`PublishedError`]. The files are compiled in and tested, so a program that passed its tests never returns one.
pub fn papers() -> Result<Vec<Paper>, PublishedError> {
    FILES.iter().map(|(file, text)| parse(file, text)).collect()
}

/// Returns the settings of every encoding that a row names, by expression.
///
/// # Errors
/// As [`papers`].
pub fn encodings() -> Result<BTreeMap<String, Identity>, PublishedError> {
    Ok(serde_json::from_str(ENCODINGS)?)
}

#[cfg(test)]
mod tests;
