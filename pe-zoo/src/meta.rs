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
    /// What it adds depends on the tokens, not on positions alone.
    pub content_dependent: bool,
    /// Positions beyond a length are refused.
    pub limited_length: bool,
    /// It looks at the length of the sequence: what a token gets changes when later ones come,
    /// and a decoding step equals the full pass of its own length only.
    pub depends_on_length: bool,
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
