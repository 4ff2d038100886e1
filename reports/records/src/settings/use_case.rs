//! A use of encodings, for which a report names the best ones.

use serde::{Deserialize, Serialize};

/// Use of encodings and the workloads that stand for it; section `[[use]]` of a suite.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct UseCase {
    /// The use in a few words, for example `Counting`.
    pub name: String,
    /// Names of the workloads.
    pub tasks: Vec<String>,
}
