//! Settings of one attention that are not tensors.

use std::sync::Arc;

use crate::kernels::precision::MatmulPrecision;
#[cfg(feature = "flex")]
use crate::score::TermKernel;
use crate::score::{Current, HiddenActivation, LogitScaling, StickBreakingRule};

/// Everything about one attention that is not a tensor.
#[derive(Debug, Clone)]
pub(crate) struct Spec {
    /// Positions of the columns.
    pub columns: Arc<[usize]>,
    /// Whether they count up by one.
    pub contiguous: bool,
    /// Index among the columns of the first row.
    pub first_row: usize,
    /// Factor of the query-key products; `None` if there are none in the logits.
    pub content_scale: Option<f32>,
    /// Factor of the products with a distance table.
    pub distance_scale: f32,
    /// The rule that makes weights of logits.
    pub weights: WeightRule,
    /// Precision of queries, keys, values and weights as factors of products; the CPU does not round.
    #[cfg_attr(not(feature = "cube"), expect(dead_code, reason = "only GPUs have tensor cores"))]
    pub precision: MatmulPrecision,
    /// Contextual positions, if there are any.
    pub contextual: Option<ContextualSpec>,
    /// Where the pieces of the curve end, ascending.
    #[cfg_attr(not(feature = "flex"), expect(dead_code, reason = "GPUs have none"))]
    pub bends: Arc<[f32]>,
    /// A perceptron across heads, if there is one.
    #[cfg_attr(not(feature = "flex"), expect(dead_code, reason = "GPUs have none"))]
    pub mixer: Option<MixerSpec>,
    /// Pair terms that the content logits pass through, in this order; they do not run on GPUs.
    #[cfg(feature = "flex")]
    pub terms: Vec<Arc<dyn TermKernel>>,
}

/// A rule that makes weights of logits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WeightRule {
    /// Softmax over what the row sees.
    Softmax,
    /// Stick-breaking, from the newest token on.
    StickBreaking(StickBreakingRule),
}

/// Settings of contextual positions.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct ContextualSpec {
    /// The largest position; larger ones are clamped to it.
    pub max_position: f32,
    /// Factor of the products of queries with the table, and of a slope.
    pub function_scale: f32,
    /// Factor of the products of queries with gate keys, whatever that of the content is.
    pub gate_scale: f32,
    /// Activation of the hidden layer, if the function is a perceptron.
    pub activation: Option<HiddenActivation>,
}

impl ContextualSpec {
    pub(crate) fn new(
        max_position: f64,
        convention: LogitScaling,
        scale: f64,
        activation: Option<HiddenActivation>,
    ) -> Self {
        let function_scale = if convention == LogitScaling::Code { scale } else { 1.0 };
        let gate_scale = if convention == LogitScaling::Equation { 1.0 } else { scale };
        Self {
            max_position: max_position as f32,
            function_scale: function_scale as f32,
            gate_scale: gate_scale as f32,
            activation,
        }
    }
}

impl Spec {
    /// Factor from content logits to the logits of gates that have no keys of their own. It is not
    /// 1 in a sum of two contextual parts of which one leaves all content undivided.
    pub(crate) fn gates_from_content(&self, contextual: ContextualSpec) -> f32 {
        self.content_scale.map_or(1.0, |scale| contextual.gate_scale / scale)
    }

    /// Number of heads that are worked on together: those of a sequence that see each other, or one.
    #[cfg(feature = "flex")]
    pub(crate) fn heads_together(&self, heads: usize) -> usize {
        if self.mixer.is_some() { heads.max(1) } else { 1 }
    }

    /// Whether a token does not attend to itself.
    pub(crate) fn strict(&self) -> bool {
        match self.weights {
            WeightRule::Softmax => false,
            WeightRule::StickBreaking(rule) => rule.current == Current::Excluded,
        }
    }
}

/// Whether positions count up by one, so that distances are index differences.
pub(crate) fn contiguous(columns: &[usize]) -> bool {
    match (columns.first(), columns.last()) {
        (Some(first), Some(last)) => last - first + 1 == columns.len(),
        _ => true,
    }
}

/// A perceptron across heads.
#[derive(Debug, Clone)]
#[cfg_attr(not(feature = "flex"), expect(dead_code, reason = "GPUs have none"))]
pub(crate) struct MixerSpec {
    /// Columns that it sees in each of its layers: 1, or 3.
    pub(crate) taps: usize,
    /// Factor of the products of queries and keys.
    pub(crate) scale: f32,
    /// Slope of the activation below 0.
    pub(crate) negative_slope: f32,
    /// Where the pieces of the base's curve end, ascending.
    pub(crate) bends: Arc<[f32]>,
}
