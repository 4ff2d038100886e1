//! The settings of the text task, and how they are written.

use std::num::NonZeroU32;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::corpus;
use crate::data::Borders;
use crate::tokenizer::TokenizerConfig;

/// Settings of the text task.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "Fields", try_from = "Fields")]
pub struct TextConfig {
    /// Where the text comes from.
    pub source: Source,
    /// What its tokens are.
    pub tokenizer: TokenizerConfig,
    /// Whether windows may cross from one document into the next.
    pub documents: Borders,
    /// Which windows are evaluated.
    pub eval_windows: EvalWindows,
}

/// Where the text comes from: one of the two, which the type makes certain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Source {
    /// Id of a corpus of [`corpus::CORPORA`].
    Corpus(String),
    /// A file or folder.
    Path {
        /// Where it is; see [`crate::data`].
        path: PathBuf,
        /// The field or column of rows that is read.
        field: Option<String>,
    },
}

impl Default for Source {
    fn default() -> Self {
        Self::Corpus(corpus::CORPORA[0].id.to_owned())
    }
}

/// Which windows of a part are evaluated.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum EvalWindows {
    /// As many as asked for, spread evenly; all of full length, none overlaps another.
    #[default]
    Spread,
    /// The whole part: windows that follow one another, so that each token is scored once. The last of each document
    /// is shorter.
    Whole,
    /// The whole part: windows that start so many tokens apart. The first of each document is scored as a whole, of
    /// the others only what no window before has scored.
    Sliding(NonZeroU32),
}

/// The keys as they are written; those that have their default are left out, so that results stay found when there
/// are more of them.
#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Fields {
    #[serde(skip_serializing_if = "Option::is_none")]
    corpus: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    path: Option<PathBuf>,
    #[serde(skip_serializing_if = "Option::is_none")]
    field: Option<String>,
    #[serde(default, skip_serializing_if = "is_default")]
    tokenizer: TokenizerConfig,
    #[serde(default, skip_serializing_if = "is_default")]
    documents: Borders,
    #[serde(default, skip_serializing_if = "is_default")]
    eval_windows: EvalWindows,
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

impl From<TextConfig> for Fields {
    fn from(config: TextConfig) -> Self {
        let TextConfig { source, tokenizer, documents, eval_windows } = config;
        let (corpus, path, field) = match source {
            Source::Corpus(corpus) => (Some(corpus), None, None),
            Source::Path { path, field } => (None, Some(path), field),
        };
        Self { corpus, path, field, tokenizer, documents, eval_windows }
    }
}

impl TryFrom<Fields> for TextConfig {
    type Error = &'static str;

    fn try_from(fields: Fields) -> Result<Self, Self::Error> {
        let Fields { corpus, path, field, tokenizer, documents, eval_windows } = fields;
        let source = match (corpus, path, field) {
            (Some(_), Some(_), _) => {
                return Err("`corpus` and `path` are both given; keep the one that names the text");
            }
            (_, None, Some(_)) => {
                return Err(
                    "`field` is given without `path`; it names what is read of the rows there",
                );
            }
            (None, Some(path), field) => Source::Path { path, field },
            (Some(corpus), None, None) => Source::Corpus(corpus),
            (None, None, None) => Source::default(),
        };
        Ok(Self { source, tokenizer, documents, eval_windows })
    }
}
