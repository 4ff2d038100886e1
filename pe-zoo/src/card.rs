//! Facts about an encoding: its description, its properties, and how it is written in expressions.

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

/// Description of a kind of encoding for tables, reports and help texts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Card {
    /// Kebab-case identifier, unique in a [`Registry`](crate::Registry).
    pub id: &'static str,
    /// Display name in tables and figures.
    pub label: &'static str,
    /// Effect of the encoding, in one sentence without symbols.
    pub summary: &'static str,
    /// Number of learned parameters as a formula of `L` layers, `C` width, `H` heads, `D` head
    /// dimension and the settings by name.
    pub parameters: &'static str,
    /// Authors and year of the paper.
    pub paper: &'static str,
    /// Address of the paper.
    pub url: &'static str,
}

/// A text for a [`Card`] that depends on settings, such as `format!("{} of each layer", ...)`. Equal texts are kept once, for as
/// long as the program runs.
pub fn text(text: impl Into<String>) -> &'static str {
    static TEXTS: Mutex<BTreeSet<&'static str>> = Mutex::new(BTreeSet::new());
    let text = text.into();
    let mut texts = TEXTS.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(known) = texts.get(text.as_str()) {
        return known;
    }
    let text: &'static str = text.leak();
    texts.insert(text);
    text
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
    /// The word in the brackets, with its options, is the value of a setting.
    Setting {
        /// Name of the setting.
        field: &'static str,
        /// Field of that setting that holds the word.
        tag: &'static str,
    },
    /// The expression in the brackets is the value of a setting of type [`Inner`](crate::compose::Inner), through which the
    /// encoding acts.
    Inner {
        /// Name of the setting.
        field: &'static str,
    },
    /// The expressions between slashes, `a/b/c`, are the value of a setting that is a list of
    /// [`Inner`](crate::compose::Inner), one for each layer of a pattern. Brackets are refused.
    Layers {
        /// Name of the setting.
        field: &'static str,
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
    /// Replaces the softmax over the logits.
    Weights,
    /// Chooses the positions of tokens.
    Positions,
    /// Keeps state for each token, through the layers or in the cache.
    State,
}

impl ActsOn {
    /// Name of the part in tables.
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

/// Properties of an encoding at its settings.
#[derive(Debug, Clone, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[expect(clippy::struct_excessive_bools, reason = "each is a property of its own")]
pub struct Properties {
    /// Parts of the attention computation that it changes, sorted.
    pub acts_on: Vec<ActsOn>,
    /// Whether adding a constant to all positions leaves the output unchanged.
    pub shift_invariant: bool,
    /// Whether the logits are other than a sum of one product of query and key and a term that
    /// depends on positions alone.
    pub content_dependent: bool,
    /// Whether positions beyond a limit are refused.
    pub limited_length: bool,
    /// Whether the output of a token changes with the length of the sequence, not only with the
    /// tokens before it. A decoding step then equals the full pass of its own length only.
    pub depends_on_length: bool,
    /// Whether the output depends on the order of tokens, but not on the numbers in
    /// [`Positions`](crate::Positions).
    pub ignores_positions: bool,
    /// Whether the output of a head depends on queries, keys or values of other heads.
    pub mixes_heads: bool,
    /// Whether `mixed_values` returns columns for the attention weights to mix.
    pub mixes_values: bool,
    /// Whether the change of the logits depends on queries or keys other than through the products
    /// of the two, for example through a table of vectors.
    pub reads_vectors: bool,
    /// Whether the logits are changed by a pair term ([`ScoreMod::Term`](crate::ScoreMod::Term)).
    pub has_terms: bool,
    /// Whether a pair term changes the content logit other than by adding to it, for example by a
    /// factor.
    pub scales_content: bool,
    /// Whether the products of queries and keys are replaced.
    pub replaces_products: bool,
    /// Whether the channels of the products decay, so that the products themselves are not computed.
    #[serde(default)]
    pub decays_channels: bool,
    /// Whether the softmax is replaced.
    pub replaces_softmax: bool,
    /// Whether logits without a value count in the denominator of the softmax.
    #[serde(default)]
    pub has_sinks: bool,
    /// Whether the transform only multiplies each query by a factor that depends on its position and head.
    #[serde(default)]
    pub scales_rows: bool,
    /// Whether transformed queries depend on later tokens, by factors that cancel only against
    /// keys.
    pub stretches_queries: bool,
    /// Whether the division of the logits by `sqrt(D)` is left out.
    pub undivided: bool,
    /// Whether transformed queries and keys are twice `head_dim` wide.
    pub widens_queries: bool,
}

impl Properties {
    /// Names of the properties that hold, such as `shift invariant`.
    pub fn names(&self) -> Vec<String> {
        let fields = serde_json::to_value(self).unwrap_or_default();
        let holding = fields.as_object().into_iter().flatten().filter(|(_, value)| **value == true);
        holding.map(|(name, _)| name.replace('_', " ")).collect()
    }

    /// Whether the encoding changes this part of the attention computation.
    pub fn acts_on(&self, part: ActsOn) -> bool {
        self.acts_on.contains(&part)
    }
}
