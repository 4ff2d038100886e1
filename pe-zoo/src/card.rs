//! Facts about an encoding: its description, its properties, and how it is written in expressions.

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

/// Properties of an encoding at its settings.
#[derive(Debug, Clone, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[expect(clippy::struct_excessive_bools, reason = "each is a property of its own")]
pub struct Properties {
    /// Parts of the attention computation that it changes, sorted.
    pub acts_on: Vec<ActsOn>,
    /// Adding a constant to all positions leaves the output unchanged.
    pub shift_invariant: bool,
    /// The logits are not a sum of one product of query and key and of a term that depends on
    /// positions alone.
    pub content_dependent: bool,
    /// Positions beyond a limit are refused.
    pub limited_length: bool,
    /// The output of a token changes with the length of the sequence, not only with the tokens before
    /// it: a decoding step equals the full pass of its own length only.
    pub depends_on_length: bool,
    /// The output depends on the order of tokens, but not on the numbers in
    /// [`Positions`](crate::Positions).
    pub ignores_positions: bool,
    /// The output of a head depends on queries, keys or values of other heads.
    pub mixes_heads: bool,
    /// Its `mixed_values` gives columns for the attention weights to mix.
    pub mixes_values: bool,
    /// The change of the logits depends on queries other than through their products with keys, for
    /// example through a table of vectors.
    pub reads_queries: bool,
    /// It replaces the products of queries with keys.
    pub replaces_products: bool,
    /// It replaces the softmax.
    pub replaces_softmax: bool,
    /// Transformed queries depend on tokens that come later, by factors that cancel only against keys.
    pub stretches_queries: bool,
    /// It leaves out the division of the logits by `sqrt(D)`.
    pub undivided: bool,
    /// Transformed queries and keys are twice `head_dim` wide.
    pub widens_queries: bool,
}

impl Properties {
    /// Whether the encoding changes this part of the attention computation.
    pub fn acts_on(&self, part: ActsOn) -> bool {
        self.acts_on.contains(&part)
    }
}
