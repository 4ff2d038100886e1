//! Facts about an encoding for people, and how it is written in expressions.

/// Description of a kind of encoding for tables, reports and help texts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Card {
    /// Kebab-case identifier, unique in a [`Registry`](crate::Registry).
    pub id: &'static str,
    /// Display name.
    pub label: &'static str,
    /// What the encoding does, in one sentence without symbols.
    pub summary: &'static str,
    /// Number of learned parameters as a formula of `L` layers, `C` width, `H` heads and `D` head
    /// dimension, at the default settings.
    pub parameters: &'static str,
    /// Authors and year of the paper.
    pub paper: &'static str,
    /// Address of the paper.
    pub url: &'static str,
}

/// Meaning of an expression in brackets after an encoding's id, `id(inner)`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Composition {
    /// Brackets are refused; the encoding is combined with others by `+`.
    Plain,
    /// The encodings in the brackets act together with this one, which has no effect by itself.
    Over {
        /// Id of the encoding in the brackets if none is written.
        default: &'static str,
    },
    /// The word in the brackets, its options included, is the value of a setting.
    Setting {
        /// Name of the setting.
        field: &'static str,
        /// Field of that setting that holds the word.
        tag: &'static str,
    },
}

/// A part of the attention computation that an encoding changes.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, serde::Serialize, serde::Deserialize,
)]
#[serde(rename_all = "kebab-case")]
pub enum ActsOn {
    /// Adds to the token embeddings.
    Embedding,
    /// Transforms queries and keys.
    QueryKey,
    /// Changes the attention logits.
    Logits,
    /// Replaces the softmax.
    Weights,
    /// Chooses the positions of tokens.
    Positions,
    /// Keeps state for each token, through the layers or in the cache.
    State,
}

impl ActsOn {
    /// Word for tables.
    pub fn label(self) -> &'static str {
        match self {
            Self::Embedding => "embedding",
            Self::QueryKey => "query, key",
            Self::Logits => "logits",
            Self::Weights => "weights",
            Self::Positions => "positions",
            Self::State => "state",
        }
    }
}
