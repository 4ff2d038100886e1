//! The facts about an encoding, said once: tables, reports and tests are made from them.

/// One of the places in which an encoding may act.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Site {
    /// Adds to the token embeddings.
    Embedding,
    /// Changes queries and keys.
    QueryKey,
    /// Adds to the attention logits.
    Logits,
    /// Chooses the positions themselves.
    Positions,
    /// Carries state between layers or tokens.
    State,
}

impl Site {
    /// The word for tables.
    pub fn label(self) -> &'static str {
        match self {
            Self::Embedding => "embedding",
            Self::QueryKey => "query, key",
            Self::Logits => "logits",
            Self::Positions => "positions",
            Self::State => "state",
        }
    }
}

/// What an encoding promises; the testkit checks each promise and its negation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Claims {
    /// Adding a constant to all positions leaves the logits unchanged.
    pub shift_invariant: bool,
    /// What it adds depends on the tokens, not on positions alone.
    pub content_dependent: bool,
    /// Positions beyond a length are refused.
    pub limited_length: bool,
}

/// How an encoding behaves beside others, where its sites do not tell. It decides what it can be
/// combined with; the testkit checks each statement and its negation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Conduct {
    /// Nothing it does depends on the numbers in [`Positions`](crate::Positions), only on the
    /// order of tokens.
    IgnoresPositions,
    /// A head's output depends on the queries, keys or values of other heads.
    MixesHeads,
    /// Its `mixed_values` gives columns for the attention weights to mix.
    MixesValues,
    /// It meets queries or keys with something else than each other, such as a table: a common
    /// rotation of both changes what it adds.
    ReadsQueries,
    /// It puts something else in the place of the softmax.
    ReplacesSoftmax,
    /// Its queries and keys are wider than `head_dim` after `transform_qk`.
    WidensQueries,
}

/// What an expression in brackets after an encoding's id means, `id(inner)`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Brackets {
    /// Nothing: brackets are refused.
    Refused,
    /// The encodings in the brackets stand beside this one, which does nothing alone.
    Beside {
        /// What stands there if nothing is written.
        usual: &'static str,
    },
    /// The one encoding in the brackets, its options included, is the value of this setting.
    Setting(&'static str),
}

/// The facts about a kind of encoding.
#[derive(Debug, Clone, Copy)]
pub struct PeMeta {
    /// Kebab-case name for machines; equals the file's stem.
    pub id: &'static str,
    /// Name for people.
    pub label: &'static str,
    /// What it does, in one sentence without symbols.
    pub summary: &'static str,
    /// Where it acts; empty for an encoding that does nothing.
    pub sites: &'static [Site],
    /// What it promises.
    pub claims: Claims,
    /// Learned parameters as a formula: `L` layers, `C` width, `H` heads, `D` head dimension.
    pub parameters: &'static str,
    /// Authors and year.
    pub paper: &'static str,
    /// Where to read it.
    pub url: &'static str,
}
