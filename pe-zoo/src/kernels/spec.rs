//! Specification of one attention: everything that is not a tensor.

use std::sync::Arc;

use crate::kernels::precision::MatmulPrecision;
use crate::score::{
    Current, FarPairs, HiddenActivation, LogitScaling, StickBreakingRule, TermKernel,
};

/// Specification of one attention: everything that is not a tensor.
#[derive(Debug, Clone)]
pub(crate) struct Spec {
    /// Positions of the columns.
    pub columns: Arc<[usize]>,
    /// Whether the positions of the columns count up by one.
    pub contiguous: bool,
    /// Index of the first row among the columns.
    pub first_row: usize,
    /// Factor of the query-key products; `None` if the logits contain no such products.
    pub content_scale: Option<f32>,
    /// Factor of the products with a distance table.
    pub distance_scale: f32,
    /// Rule by which logits become attention weights.
    pub weights: WeightRule,
    /// Precision of queries, keys, values and weights as factors of products; ignored on the CPU.
    #[cfg_attr(not(feature = "cube"), expect(dead_code, reason = "only GPUs have tensor cores"))]
    pub precision: MatmulPrecision,
    /// Contextual positions, if there are any.
    pub contextual: Option<ContextualSpec>,
    /// Boundaries between the pieces of a piecewise linear bias, ascending.
    #[cfg_attr(not(feature = "flex"), expect(dead_code, reason = "GPUs have none"))]
    pub position_mlp_bends: Arc<[f32]>,
    /// Perceptron across heads, if there is one.
    #[cfg_attr(not(feature = "flex"), expect(dead_code, reason = "GPUs have none"))]
    pub head_mlp: Option<HeadMlpSpec>,
    /// Pairs with products of their own, if there are any.
    pub far_pairs: Option<FarPairs>,
    /// Pair terms applied to the content logits, in this order.
    pub terms: Vec<Arc<dyn TermKernel>>,
}

/// Rule by which logits become attention weights.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WeightRule {
    /// Softmax over the visible columns.
    Softmax,
    /// Stick-breaking, starting from the newest token.
    StickBreaking(StickBreakingRule),
}

/// Specification of contextual positions.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct ContextualSpec {
    /// Largest position, to which larger ones are clamped.
    pub max_position: f32,
    /// Factor of the products of queries with the table, or of the slope.
    pub function_scale: f32,
    /// Factor of the products of queries with gate keys.
    pub gate_scale: f32,
    /// Activation of the hidden layer; `None` unless the function is a perceptron.
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
    /// Position of a column relative to the first one: differences of these are exact in f32
    /// wherever the sequence begins.
    #[inline(always)]
    pub(crate) fn relative_position(&self, column: usize) -> f32 {
        (self.columns[column] - self.columns[0]) as f32
    }

    /// Ratio of gate logits to content logits for gates without separate keys: the quotient of their
    /// scales.
    pub(crate) fn gates_from_content(&self, contextual: ContextualSpec) -> f32 {
        self.content_scale.map_or(1.0, |scale| contextual.gate_scale / scale)
    }

    /// Number of heads that are processed together: all heads of a sequence with a perceptron
    /// across heads, otherwise one.
    #[cfg(feature = "flex")]
    pub(crate) fn heads_together(&self, heads: usize) -> usize {
        if self.head_mlp.is_some() { heads.max(1) } else { 1 }
    }

    /// Whether a token does not attend to itself.
    pub(crate) fn strict(&self) -> bool {
        match self.weights {
            WeightRule::Softmax => false,
            WeightRule::StickBreaking(rule) => rule.current == Current::Excluded,
        }
    }
}

/// Whether positions count up by one, so that distances are differences of indices.
pub(crate) fn contiguous(columns: &[usize]) -> bool {
    match (columns.first(), columns.last()) {
        (Some(first), Some(last)) => last - first + 1 == columns.len(),
        _ => true,
    }
}

/// Specification of a perceptron across heads.
#[derive(Debug, Clone)]
#[cfg_attr(not(feature = "flex"), expect(dead_code, reason = "GPUs have none"))]
pub(crate) struct HeadMlpSpec {
    /// Number of columns that each layer sees: 1 or 3.
    pub(crate) taps: usize,
    /// Factor of the products of queries and keys.
    pub(crate) scale: f32,
    /// Slope of the activation for negative inputs.
    pub(crate) negative_slope: f32,
    /// Boundaries between the pieces of a piecewise linear base bias, ascending.
    pub(crate) base_bends: Arc<[f32]>,
}
