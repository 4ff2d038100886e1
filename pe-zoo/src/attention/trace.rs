//! Quantities inside an attention, for inspection.
//!
//! They are derived from the encoding's description of the logits ([`ScoreMod`]), so they exist for
//! every encoding and combination, also those of other crates, without code in the encoding.

use burn::tensor::Tensor;
use burn::tensor::activation::sigmoid;

use super::reference::{LogitInputs, Plan};
use crate::ScoreMod;
use crate::count::CountedMatmul;
use crate::encoding::LayerContext;
use crate::erased::Hooks;

/// Largest difference between position products with and without an encoding that is attributed to
/// rounding.
const ROUNDING: f64 = 1e-6;

/// Quantity traced in one layer.
#[derive(Debug, Clone)]
pub struct Trace {
    /// Quantity that was traced.
    pub kind: TraceKind,
    /// Values of the quantity, `[1 or B, 1 or H, T, S]`, or `[B, H, 1, S]` if it belongs to columns
    /// alone. Entries of columns that a row does not see are undefined.
    pub values: Tensor<4>,
}

/// Quantity that can be inspected besides the attention weights.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum TraceKind {
    /// Gates of contextual positions, 0 to 1: by how much a column increases the contextual
    /// position of the columns before it.
    Gates,
    /// Contextual positions `p_ij`, the sum of the gates over `j..=i`, clamped as the encoding clamps them.
    ContextualPositions,
    /// Forgetting `1 - f_j`, 0 to 1: the share of the columns before `j` that later rows lose at
    /// column `j`.
    Forgetting,
    /// Share of a column that is retained under forgetting, 0 to 1: the product of `f` over
    /// `j+1..=i`.
    Retention,
    /// Shares of stick-breaking, 0 to 1: the part that a column takes of the remainder left by the
    /// columns after it.
    Shares,
    /// Sum of all terms that the encoding adds to the logits.
    AddedLogits,
    /// `q_i . k_j / sqrt(D)` for queries and keys that are `(1, 1, ...)` before the encoding
    /// transforms them: the effect of positions alone on a dot product. Without a transform it is
    /// `sqrt(D)` everywhere.
    PositionProducts,
}

impl TraceKind {
    /// All kinds of quantities.
    pub const ALL: [Self; 7] = [
        Self::Gates,
        Self::ContextualPositions,
        Self::Forgetting,
        Self::Retention,
        Self::Shares,
        Self::AddedLogits,
        Self::PositionProducts,
    ];

    /// Name of the quantity in files.
    pub fn id(self) -> &'static str {
        match self {
            Self::Gates => "gates",
            Self::ContextualPositions => "contextual-positions",
            Self::Forgetting => "forgetting",
            Self::Retention => "retention",
            Self::Shares => "shares",
            Self::AddedLogits => "added-logits",
            Self::PositionProducts => "position-products",
        }
    }

    /// Name of the quantity in figures and tables.
    pub fn label(self) -> &'static str {
        match self {
            Self::Gates => "gates",
            Self::ContextualPositions => "contextual positions",
            Self::Forgetting => "forgetting, 1 - f",
            Self::Retention => "share retained after forgetting",
            Self::Shares => "stick-breaking shares",
            Self::AddedLogits => "added to the logits",
            Self::PositionProducts => "products of positions alone",
        }
    }

    /// Whether the quantity is a gate, 0 to 1, that should open for counted tokens; gate scores are
    /// computed from such quantities.
    pub fn is_gate(self) -> bool {
        matches!(self, Self::Gates | Self::Forgetting | Self::Shares)
    }
}

/// Traces the quantities of a modifier for queries `[B, H, T, D]`, keys and values `[B, H, S, D]`.
pub(super) fn of_modifier(modifier: &ScoreMod, inputs: &LogitInputs<'_>) -> Vec<Trace> {
    let plan = Plan::of(modifier);
    let mut traces = Vec::new();
    let mut decay: Option<Tensor<3>> = None;
    for part in &plan.parts {
        match part {
            ScoreMod::Contextual(contextual) => {
                let (gates, positions) = inputs.counted(contextual);
                traces.push(Trace { kind: TraceKind::Gates, values: gates });
                traces.push(Trace { kind: TraceKind::ContextualPositions, values: positions });
            }
            // One decay may come in several parts, which are added up.
            ScoreMod::Decay { cumulative } => {
                decay = Some(decay.map_or(cumulative.clone(), |sum| sum + cumulative.clone()));
            }
            _ => {}
        }
    }
    if let Some(cumulative) = decay {
        traces.push(Trace { kind: TraceKind::Forgetting, values: forgetting(&cumulative) });
        if let Some(bias) = inputs.bias(&ScoreMod::Decay { cumulative }) {
            traces.push(Trace { kind: TraceKind::Retention, values: inputs.seen(bias).exp() });
        }
    }
    if plan.stick_breaking.is_some() {
        traces.push(Trace { kind: TraceKind::Shares, values: sigmoid(inputs.logits(&plan)) });
    }
    let added = plan.parts.iter().filter_map(|part| inputs.bias(part));
    let by_terms = (!plan.terms.is_empty()).then(|| {
        let content = inputs.before_terms(&plan);
        inputs.after_terms(&plan, content.clone()) - content
    });
    if let Some(values) = added.chain(by_terms).reduce(|sum, bias| sum + bias) {
        traces.push(Trace { kind: TraceKind::AddedLogits, values });
    }
    traces
}

/// Computes `1 - exp(c_j - c_{j-1})`, `[B, H, 1, S]`, from a running sum `[B, H, S]` of logarithms.
fn forgetting(cumulative: &Tensor<3>) -> Tensor<4> {
    let [batch, heads, columns] = cumulative.dims();
    let zero = Tensor::zeros([batch, heads, 1], &cumulative.device());
    let before = Tensor::cat(vec![zero, cumulative.clone()], 2).slice_dim(2, 0..columns);
    let forget = (cumulative.clone() - before).exp();
    (forget.neg() + 1.0).unsqueeze_dim::<4>(2)
}

/// Traces the products of constant vectors under the transform of queries and keys; `None` if the
/// transform is the identity.
pub(super) fn of_transform(
    encoding: &dyn Hooks,
    [batch, heads, rows, head_dim]: [usize; 4],
    columns: usize,
    ctx: &LayerContext<'_>,
    device: &burn::tensor::Device,
) -> Option<Trace> {
    let ones = |tokens| Tensor::<4>::ones([batch, heads, tokens, head_dim], device);
    let (q, k) = encoding.transform_qk(ones(rows), ones(columns), ctx);
    let values = q.counted_matmul(k.swap_dims(2, 3)) / (head_dim as f64).sqrt();
    let plain = (head_dim as f64).sqrt();
    let difference = (values.clone() - plain).abs().max().into_scalar::<f32>();
    // NaN counts as a difference, so that it is shown.
    let same = f64::from(difference) <= ROUNDING * plain;
    (!same).then_some(Trace { kind: TraceKind::PositionProducts, values })
}

#[cfg(test)]
mod tests;
