//! The fused engine: attention under any [`ScoreMod`] without a `T x S` tensor.
//!
//! A modifier is taken apart into the operands of the kernels (`parts`), which are in
//! `crate::kernels`.

#[cfg(feature = "flex")]
mod forms;
mod parts;

#[cfg(all(test, feature = "flex"))]
mod tests;

use std::sync::Arc;

use burn::backend::Dispatch;
use burn::tensor::{DType, Tensor};

use super::reference::LogitInputs;
#[cfg(not(feature = "flex"))]
use crate::kernels::forms::Forms;
use crate::kernels::operands::Operands;
#[cfg(not(feature = "flex"))]
use crate::kernels::spec::FormSpec;
use crate::kernels::spec::{self, ContextualSpec, Spec, WeightRule};
use crate::kernels::{self, Kernels};
use crate::ops::MatmulPrecision;
use crate::score::{Beyond, Contextual, ContextualFunction, GateSource};
use crate::{Positions, ScoreMod};
use parts::Parts;

/// Attends causally; the result is `[B, H, T, E]`, or `None` where the kernels have no form for these
/// tensors under this modifier. What a kernel has no form for within a modifier is made dense by the
/// reference engine first.
#[expect(clippy::too_many_arguments, reason = "the six tensors of one formula")]
pub(crate) fn attend(
    factors: MatmulPrecision,
    q: &Tensor<4>,
    k: &Tensor<4>,
    v: &Tensor<4>,
    values: &Tensor<4>,
    modifier: &ScoreMod,
    at: &Positions,
    scale: f64,
) -> Option<Tensor<4>> {
    if modifier.is_hard() {
        return None;
    }
    match kernels::of(&q.device())? {
        #[cfg(feature = "flex")]
        Kernels::Cpu if q.dtype() == DType::F32 => {
            let parts = Parts::of(modifier, &LogitInputs::new(q, k, v, at, scale));
            let (operands, spec) = prepared(parts, [q, k, v, values], at, scale, factors);
            Some(kernels::cpu::attend(operands, spec))
        }
        #[cfg(feature = "cube")]
        Kernels::Gpu if kernels::gpu::takes(q.dtype()) => {
            // Sums, weights and tables are f32 whatever the operands are.
            let dtype = q.dtype();
            let [q, k, v, values] = [q, k, v, values].map(|u| u.clone().cast(DType::F32));
            let inputs = LogitInputs::new(&q, &k, &v, at, scale);
            let parts = Parts::of(modifier, &inputs).with_products(&q, &inputs, at, scale);
            let (operands, spec) = prepared(parts, [&q, &k, &v, &values], at, scale, factors);
            kernels::gpu::attend(&q.device(), operands, spec).map(|output| output.cast(dtype))
        }
        _ => None,
    }
}

/// Tensors and everything else that an operation takes.
fn prepared(
    mut parts: Parts,
    [q, k, v, values]: [&Tensor<4>; 4],
    at: &Positions,
    scale: f64,
    factors: MatmulPrecision,
) -> (Operands<Dispatch>, Spec) {
    let [batch, heads, rows, _head_dim] = q.dims();
    let [_batch, _heads, columns, _value_dim] = values.dims();
    let empty = Tensor::<1>::zeros([0], &q.device());
    let or_empty = |tensor: Option<_>| match tensor {
        Some(tensor) => tensor,
        None => empty.clone().into_dispatch(),
    };
    let content_scale = if parts.undivided { 1.0 } else { scale };
    #[cfg(feature = "flex")]
    let replaced = parts.forms.replaces_products();
    #[cfg(not(feature = "flex"))]
    let replaced = false;
    let content = match parts.products.take() {
        None => Some(content_scale as f32),
        Some(products) => {
            parts::plus(&mut parts.dense, products * content_scale);
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
                GateSource::QueryKey => {
                    (replaced || content.is_none()).then(|| k.clone().into_dispatch())
                }
                GateSource::QueryValue => Some(v.clone().into_dispatch()),
                GateSource::Keys(keys) => Some(keys.into_dispatch()),
            };
            (gate_keys, Some(ContextualSpec::new(max_position, convention, scale, activation)))
        }
    };
    #[cfg(feature = "flex")]
    let (forms, form_spec) = parts.forms.prepared(&or_empty(None));
    #[cfg(not(feature = "flex"))]
    let (forms, form_spec) = (Forms::all(&or_empty(None)), FormSpec::default());
    let operands = Operands::<Dispatch> {
        q: q.clone().into_dispatch(),
        k: k.clone().into_dispatch(),
        values: values.clone().into_dispatch(),
        slopes: or_empty(parts.slopes.map(Tensor::into_dispatch)),
        distance: or_empty(parts.distance.map(Tensor::into_dispatch)),
        query_distance: or_empty(
            (parts.query_distance.map(Tensor::into_dispatch))
                .or(parts.query_distance_products.map(Tensor::into_dispatch)),
        ),
        decay: or_empty(parts.decay.map(Tensor::into_dispatch)),
        decay_residual: or_empty(parts.decay_residual.map(Tensor::into_dispatch)),
        gate_keys: or_empty(gate_keys),
        table: or_empty(
            (parts.table.map(Tensor::into_dispatch))
                .or(parts.table_products.map(Tensor::into_dispatch)),
        ),
        hidden: or_empty(parts.hidden.map(Tensor::into_dispatch)),
        contextual_slopes: or_empty(parts.contextual_slopes.map(Tensor::into_dispatch)),
        dense: or_empty(
            parts.dense.map(|dense| dense.expand([batch, heads, rows, columns]).into_dispatch()),
        ),
        forms,
    };
    let spec = Spec {
        columns: Arc::from(at.cols()),
        contiguous: spec::contiguous(at.cols()),
        first_row: at.first_row(),
        content_scale: content,
        distance_scale: scale as f32,
        weights: parts.weights.unwrap_or(WeightRule::Softmax),
        factors,
        contextual,
        forms: form_spec,
    };
    (operands, spec)
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
