//! Published numbers as data: `reports/published/*.toml`, one file for each source, compiled in.
//!
//! A table of a file is a table of the paper: rows are encodings, columns are settings of the
//! evaluation. It also says how a record of ours is recognised: `task`, split and length of the column,
//! the encoding's settings, and
//!
//! * `identity`: paths of a record's `config` without whose values a record shows something else;
//! * `recipe`: paths whose other values make it the same experiment under another recipe.
//!
//! Of both, what stands nearer wins: column, then row, then table. `"unset"` stands for a path without a
//! value, `{ any = [..] }` for one of several. A table for which no record can exist says why (`missing`)
//! or which command shows it (`instead`), and `needs` what it takes to judge its numbers.
//!
//! Numbers are texts with the printed digits, from which the rounding follows; `"unread"` stands for a number that
//! the source prints and that is not carried over. `unread_deviations` says the same of standard deviations.

mod check;
mod table;

use std::collections::{BTreeMap, BTreeSet};

pub use self::table::{
    Coverage, Paper, Printed, PublishedColumn, PublishedMetric, PublishedRow, PublishedTable,
    Source,
};
use super::recipe::Identity;

/// The files, by the id that each must have.
const FILES: &[(&str, &str)] = &[
    ("cope", include_str!("../../published/cope.toml")),
    ("cope-vs-rope", include_str!("../../published/cope-vs-rope.toml")),
    ("grape", include_str!("../../published/grape.toml")),
    ("tape", include_str!("../../published/tape.toml")),
];

/// Settings of every encoding that a file names, as records have them: a test of `bench`, which knows
/// the encodings, writes it.
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
    /// An entry that contradicts itself or another.
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
/// [`PublishedError`], the file and the place in it named.
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

/// Every source, sorted by id.
///
/// # Errors
/// [`PublishedError`]; the files are compiled in and tested, so never in a program that passed its tests.
pub fn papers() -> Result<Vec<Paper>, PublishedError> {
    FILES.iter().map(|(file, text)| parse(file, text)).collect()
}

/// Settings of every encoding that a row names, by expression.
///
/// # Errors
/// As [`papers`].
pub fn encodings() -> Result<BTreeMap<String, Identity>, PublishedError> {
    Ok(serde_json::from_str(ENCODINGS)?)
}

#[cfg(test)]
mod tests;
