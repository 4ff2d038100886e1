//! The fused engine: attention under any [`ScoreMod`] without a `T x S` tensor, on the CPU.
//!
//! Blocks of query rows meet all the columns that they see at once: logits, suffix sums, softmax and
//! values stay in the cache, and the backward pass, written by hand, makes logits and weights again
//! instead of keeping them. One skeleton serves every modifier, because all of them are functions of
//! (dot product, distance, suffix sum along the row). Logits are stored key-major, `[column][row]`,
//! so that suffix sums run across rows in SIMD lanes.
//!
//! | Module | What it holds |
//! | --- | --- |
//! | `op` | the operation that Burn differentiates |
//! | `operands`, `spec` | tensors and everything else that the operation takes |
//! | `engine`, `gradients`, `reduce` | tasks in parallel, and sums over them in a fixed order |
//! | `kernel` | one block of rows, forward and backward |
//! | `contextual`, `perceptron`, `distance` | the biases that take more than a line |
//! | `problem`, `scratch` | heads and blocks, buffers |

mod contextual;
mod distance;
mod engine;
mod gradients;
mod kernel;
mod op;
mod operands;
mod perceptron;
mod problem;
mod reduce;
mod scratch;
mod spec;

#[cfg(test)]
mod tests;

use std::sync::Arc;

use burn::backend::Dispatch;
use burn::tensor::{DType, Device, Tensor};

use crate::attention::reference::Row;
use crate::score::{Beyond, Contextual, ContextualFunction, Convention, GateSource, Perceptron};
use crate::{Positions, ScoreMod};
use op::FusedBackend;
use operands::Operands;
use spec::{ContextualSpec, Spec, WeightRule};

/// Whether tensors on this device can be handed to the engine.
pub(crate) fn available(device: &Device) -> bool {
    device.clone().inner() == Device::flex()
}

/// Whether these tensors under this modifier can be handed to the engine.
pub(crate) fn takes(q: &Tensor<4>, modifier: &ScoreMod) -> bool {
    available(&q.device()) && q.dtype() == DType::F32 && !modifier.is_hard()
}

/// Attends causally; the result is `[B, H, T, E]`. What the kernel has no form for is made dense by
/// the reference engine first.
pub(crate) fn attend(
    q: &Tensor<4>,
    k: &Tensor<4>,
    v: &Tensor<4>,
    values: Tensor<4>,
    modifier: &ScoreMod,
    at: &Positions,
    scale: f64,
) -> Tensor<4> {
    let mut parts = Parts::default();
    let row = Row::new(q, k, v, at, scale);
    parts.add(modifier, &row);
    let [batch, heads, rows, _head_dim] = q.dims();
    let [_batch, _heads, columns, _value_dim] = values.dims();
    let empty = Tensor::<1>::zeros([0], &q.device());
    let or_empty = |tensor: Option<_>| match tensor {
        Some(tensor) => tensor,
        None => empty.clone().into_dispatch(),
    };
    let content_scale = if parts.undivided { 1.0 } else { scale };
    let content = match parts.products.take() {
        None => Some(content_scale as f32),
        Some(products) => {
            plus(&mut parts.dense, products * content_scale);
            None
        }
    };
    let (gate_keys, contextual) = match parts.contextual {
        None => (None, None),
        Some(Contextual { gates, max_position, convention, function }) => {
            let activation = match function {
                ContextualFunction::Mlp(perceptron) => Some(perceptron.activation),
                ContextualFunction::Table(_) | ContextualFunction::Slope(_) => None,
            };
            let gate_keys = match gates {
                // The kernel has the products at hand unless others stand in for them.
                GateSource::QueryKey => content.is_none().then(|| k.clone().into_dispatch()),
                GateSource::QueryValue => Some(v.clone().into_dispatch()),
                GateSource::Keys(keys) => Some(keys.into_dispatch()),
            };
            (gate_keys, Some(ContextualSpec::new(max_position, convention, scale, activation)))
        }
    };
    let operands = Operands::<Dispatch> {
        q: q.clone().into_dispatch(),
        k: k.clone().into_dispatch(),
        values: values.into_dispatch(),
        slopes: or_empty(parts.slopes.map(Tensor::into_dispatch)),
        distance: or_empty(parts.distance.map(Tensor::into_dispatch)),
        query_distance: or_empty(parts.query_distance.map(Tensor::into_dispatch)),
        decay: or_empty(parts.decay.map(Tensor::into_dispatch)),
        finer_decay: or_empty(parts.finer_decay.map(Tensor::into_dispatch)),
        gate_keys: or_empty(gate_keys),
        table: or_empty(parts.table.map(Tensor::into_dispatch)),
        hidden: or_empty(parts.hidden.map(Tensor::into_dispatch)),
        contextual_slopes: or_empty(parts.contextual_slopes.map(Tensor::into_dispatch)),
        dense: or_empty(
            parts.dense.map(|dense| dense.expand([batch, heads, rows, columns]).into_dispatch()),
        ),
    };
    let spec = Spec {
        columns: Arc::from(at.cols()),
        contiguous: spec::contiguous(at.cols()),
        first_row: at.first_row(),
        content_scale: content,
        distance_scale: scale as f32,
        weights: parts.weights.unwrap_or(WeightRule::Softmax),
        contextual,
    };
    Tensor::from_dispatch(<Dispatch as FusedBackend>::fused_attention(operands, spec))
}

/// A modifier in the form that the kernel takes: one of each kind.
#[derive(Default)]
struct Parts {
    slopes: Option<Tensor<1>>,
    distance: Option<Tensor<2>>,
    query_distance: Option<Tensor<2>>,
    decay: Option<Tensor<3>>,
    /// All but the first, which may hold what the first has lost by rounding.
    finer_decay: Option<Tensor<3>>,
    /// One whose function is in `table`, `table` and `hidden`, or `contextual_slopes`.
    contextual: Option<Contextual>,
    table: Option<Tensor<2>>,
    hidden: Option<Tensor<2>>,
    contextual_slopes: Option<Tensor<1>>,
    dense: Option<Tensor<4>>,
    products: Option<Tensor<4>>,
    weights: Option<WeightRule>,
    undivided: bool,
}

impl Parts {
    fn add(&mut self, modifier: &ScoreMod, row: &Row<'_>) {
        match modifier {
            // Hard attention is the reference engine's, see `takes`.
            ScoreMod::None | ScoreMod::Hard => {}
            ScoreMod::Sum(parts) => parts.iter().for_each(|part| self.add(part, row)),
            ScoreMod::Slope(slopes) => plus(&mut self.slopes, slopes.clone()),
            ScoreMod::Distance { table, beyond } => {
                add_table(&mut self.distance, endless(table, *beyond));
            }
            ScoreMod::QueryDistance { table, beyond } => {
                add_table(&mut self.query_distance, endless(table, *beyond));
            }
            ScoreMod::Decay { cumulative } if self.decay.is_none() => {
                self.decay = Some(cumulative.clone());
            }
            ScoreMod::Decay { cumulative } => plus(&mut self.finer_decay, cumulative.clone()),
            ScoreMod::Contextual(contextual) => {
                self.undivided |= contextual.convention == Convention::Equation;
                if self.contextual.is_some() {
                    plus(&mut self.dense, row.contextual(contextual));
                    return;
                }
                self.contextual = Some(contextual.clone());
                match &contextual.function {
                    ContextualFunction::Table(table) => self.table = Some(table.clone()),
                    ContextualFunction::Slope(slopes) => {
                        self.contextual_slopes = Some(slopes.clone());
                    }
                    ContextualFunction::Mlp(Perceptron { w1, b1, w2, b2, activation: _ }) => {
                        let last = b2.clone().unsqueeze_dim(1);
                        self.table = Some(Tensor::cat(vec![w2.clone(), last], 1));
                        self.hidden = Some(Tensor::stack(vec![w1.clone(), b1.clone()], 0));
                    }
                }
            }
            ScoreMod::StickBreaking(rule) => {
                self.weights = Some(WeightRule::StickBreaking(*rule));
            }
            ScoreMod::Products(products) => self.products = Some(products.clone()),
            ScoreMod::Dense(bias) => plus(&mut self.dense, bias.clone()),
        }
    }
}

fn plus<const D: usize>(sum: &mut Option<Tensor<D>>, term: Tensor<D>) {
    *sum = Some(match sum.take() {
        Some(sum) => sum + term,
        None => term,
    });
}

/// The same table with its last entry going on for ever.
fn endless(table: &Tensor<2>, beyond: Beyond) -> Tensor<2> {
    match beyond {
        Beyond::Last => table.clone(),
        Beyond::Zero => {
            let [rows, _entries] = table.dims();
            Tensor::cat(vec![table.clone(), Tensor::zeros([rows, 1], &table.device())], 1)
        }
    }
}

/// Adds tables of different lengths, the last entry of the shorter one going on.
fn add_table(sum: &mut Option<Tensor<2>>, table: Tensor<2>) {
    let longest = sum.as_ref().map_or(0, |sum| sum.dims()[1]).max(table.dims()[1]);
    let stretch = |table: Tensor<2>| {
        let [rows, entries] = table.dims();
        let last = table.clone().slice_dim(1, entries - 1..entries);
        match longest - entries {
            0 => table,
            missing => Tensor::cat(vec![table, last.expand([rows, missing])], 1),
        }
    };
    *sum = Some(match sum.take() {
        Some(sum) => stretch(sum) + stretch(table),
        None => table,
    });
}
