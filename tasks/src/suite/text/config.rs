//! Settings of the text task and their serialised form.

use std::num::NonZeroU32;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::corpus::{self, CorpusError};
use crate::data::{self, Borders, Parts};
use crate::settings::is_default;
use crate::tokenizer::TokenizerConfig;

/// Settings of the text task.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "Fields", try_from = "Fields")]
pub struct TextConfig {
    /// Origin of the text.
    pub source: TextSource,
    /// Tokenizer of the text.
    pub tokenizer: TokenizerConfig,
    /// Whether windows may extend from one document into the next.
    pub documents: Borders,
    /// Selection of the evaluated windows.
    pub eval_windows: EvalWindows,
}

/// Origin of a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TextSource {
    /// Id of a corpus of [`corpus::CORPORA`].
    Corpus(String),
    /// A file or folder.
    Path {
        /// Path of the file or folder; see [`crate::data`].
        path: PathBuf,
        /// Field or column of rows to read.
        field: Option<String>,
    },
}

impl Default for TextSource {
    fn default() -> Self {
        Self::Corpus(corpus::CORPORA[0].id.to_owned())
    }
}

impl TextSource {
    /// Returns the source that settings name; without any, the default.
    ///
    /// # Errors
    /// Message, if the settings contradict each other.
    pub(crate) fn of(
        corpus: Option<String>,
        path: Option<PathBuf>,
        field: Option<String>,
    ) -> Result<Self, &'static str> {
        Ok(match (corpus, path, field) {
            (Some(_), Some(_), _) => {
                return Err("`corpus` and `path` are both given; use one of them");
            }
            (_, None, Some(_)) => {
                return Err(
                    "`field` is given without `path`; `field` names a column of the file `path`",
                );
            }
            (None, Some(path), field) => Self::Path { path, field },
            (Some(corpus), None, None) => Self::Corpus(corpus),
            (None, None, None) => Self::default(),
        })
    }

    /// Reads the text, which is fetched first if it is a corpus that is not on this machine.
    ///
    /// # Errors
    /// [`CorpusError`].
    pub(crate) fn read(&self) -> Result<Parts, CorpusError> {
        match self {
            Self::Corpus(name) => corpus::read(name),
            Self::Path { path, field } => Ok(data::read(path, field.as_deref())?),
        }
    }
}

/// Selection of the evaluated windows of a part.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum EvalWindows {
    /// The requested number of windows, spread evenly, of full length, without overlap.
    #[default]
    Spread,
    /// The whole part in consecutive windows, so that each token is scored once. The last window of each document is
    /// shorter.
    Whole,
    /// The whole part in windows that start this many tokens apart. The first window of each document is scored as a
    /// whole, the others only where no previous window has scored.
    Sliding(NonZeroU32),
}

/// Serialised form. Keys at their default are omitted, so that the keys of records do not change when settings are
/// added.
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

impl From<TextConfig> for Fields {
    fn from(config: TextConfig) -> Self {
        let TextConfig { source, tokenizer, documents, eval_windows } = config;
        let (corpus, path, field) = match source {
            TextSource::Corpus(corpus) => (Some(corpus), None, None),
            TextSource::Path { path, field } => (None, Some(path), field),
        };
        Self { corpus, path, field, tokenizer, documents, eval_windows }
    }
}

impl TryFrom<Fields> for TextConfig {
    type Error = &'static str;

    fn try_from(fields: Fields) -> Result<Self, Self::Error> {
        let Fields { corpus, path, field, tokenizer, documents, eval_windows } = fields;
        let source = TextSource::of(corpus, path, field)?;
        Ok(Self { source, tokenizer, documents, eval_windows })
    }
}
