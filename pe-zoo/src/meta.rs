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
    /// Replaces the softmax.
    Weights,
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
            Self::Weights => "weights",
            Self::Positions => "positions",
            Self::State => "state",
        }
    }
}

/// What an encoding promises; the testkit checks each promise and its negation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "each is a promise of its own, kept or not")]
pub struct Claims {
    /// Adding a constant to all positions leaves the logits unchanged.
    pub shift_invariant: bool,
    /// It looks at tokens otherwise than by one product of query and key: its logits are no sum of
    /// something linear in each of the two and of something that depends on positions alone.
    pub content_dependent: bool,
    /// Positions beyond a length are refused.
    pub limited_length: bool,
    /// It looks at the length of the sequence: what a token gets changes when later ones come,
    /// and a decoding step equals the full pass of its own length only.
    pub depends_on_length: bool,
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
    /// It puts other products in the place of those of queries with keys.
    ReplacesProducts,
    /// It puts something else in the place of the softmax.
    ReplacesSoftmax,
    /// It stretches queries and shrinks keys by factors that only cancel where the two meet: what
    /// queries are by themselves depends on the other tokens.
    StretchesQueries,
    /// It leaves out the division of logits by `sqrt(D)`.
    Undivided,
    /// Its queries and keys are twice `head_dim` wide after `transform_qk`.
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
    /// The one word in the brackets, its options included, is the value of a setting.
    Setting {
        /// Which setting.
        field: &'static str,
        /// Which of its fields the word itself is.
        kind: &'static str,
    },
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
