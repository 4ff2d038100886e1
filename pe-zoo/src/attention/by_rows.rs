//! Attention in blocks of rows, with memory linear in the length whatever a block needs: the backward pass computes it again.

use std::slice;
use std::sync::Arc;

use burn::backend::DispatchTensor;
use burn::tensor::Tensor;

use super::blocks::{self, RowBlock};
use crate::kernels::recomputed::recomputed;
use crate::ops::MatmulPrecision;
use crate::score::{GateSource, TensorMap, TokenAxes};
use crate::{Positions, ScoreMod};

/// Tensors and settings of an attention whose weights are dropped, with the shapes of [`attend`](super::attend).
#[derive(Debug, Clone, Copy)]
pub(super) struct AttentionInputs<'a> {
    pub(super) precision: MatmulPrecision,
    pub(super) q: &'a Tensor<4>,
    pub(super) k: &'a Tensor<4>,
    pub(super) v: &'a Tensor<4>,
    pub(super) values: &'a Tensor<4>,
    pub(super) modifier: &'a ScoreMod,
    pub(super) at: &'a Positions,
    pub(super) scale: f64,
}

/// Computes attention, `[B, H, T, E]`, as `attend` does for `size` rows at a time and the columns up to the last of them.
///
/// Blocks have their tensors in common and keep nothing else for the backward pass.
pub(super) fn attend_by_rows(
    inputs: AttentionInputs<'_>,
    size: usize,
    attend: fn(AttentionInputs<'_>) -> Tensor<4>,
) -> Tensor<4> {
    let AttentionInputs { precision, q, k, v, values, modifier, at, scale } = inputs;
    // A gradient of zeros in every block is avoided.
    let v = if reads_values(modifier) { v.clone() } else { v.clone().detach() };
    let of_tokens = [q, k, &v, values].map(|tensor| tensor.clone().into_dispatch());
    let mut tensors = Collected(of_tokens.into());
    let form = Arc::new(modifier.map_tensors(&mut tensors));
    let blocks = blocks::of_rows(at, size, None).into_iter().map(|block| {
        let (form, at) = (Arc::clone(&form), at.clone());
        recomputed(&tensors.0, &q.device(), move |tensors| {
            let mut own = OfBlock { tensors: tensors.iter(), block: &block };
            let q = own.next(TokenAxes::ROWS);
            let [k, v, values] = [(); 3].map(|()| own.next(TokenAxes::COLUMNS));
            attend(AttentionInputs {
                precision,
                q: &q,
                k: &k,
                v: &v,
                values: &values,
                modifier: &form.map_tensors(&mut own),
                at: &at.own_block(block.rows.clone(), block.columns.clone()),
                scale,
            })
        })
    });
    Tensor::cat(blocks.collect(), 2)
}

/// Whether gates are computed from values.
fn reads_values(modifier: &ScoreMod) -> bool {
    modifier.any(|part| match part {
        ScoreMod::Contextual(contextual) => matches!(contextual.gates, GateSource::QueryValue),
        ScoreMod::HeadMlp(mlp) => mlp.base.as_deref().is_some_and(reads_values),
        _ => false,
    })
}

/// Collects tensors and returns them without their graph, which must not be part of a step of its own backward pass.
struct Collected(Vec<DispatchTensor>);

impl TensorMap for Collected {
    fn map<const D: usize>(&mut self, tensor: &Tensor<D>, _axes: TokenAxes) -> Tensor<D> {
        self.0.push(tensor.clone().into_dispatch());
        tensor.clone().inner()
    }
}

/// Collected tensors in their order, of which it returns those of a block.
struct OfBlock<'a> {
    tensors: slice::Iter<'a, DispatchTensor>,
    block: &'a RowBlock,
}

impl OfBlock<'_> {
    fn next<const D: usize>(&mut self, axes: TokenAxes) -> Tensor<D> {
        let Some(tensor) = self.tensors.next() else {
            unreachable!("a modifier of one form has as many tensors each time");
        };
        let tokens = [(axes.rows, &self.block.rows), (axes.columns, &self.block.columns)];
        tokens.into_iter().fold(Tensor::from_dispatch(tensor.clone()), |tensor, (axis, tokens)| {
            match axis {
                Some(axis) => tensor.slice_dim(axis, tokens.clone()),
                None => tensor,
            }
        })
    }
}

impl TensorMap for OfBlock<'_> {
    fn map<const D: usize>(&mut self, _tensor: &Tensor<D>, axes: TokenAxes) -> Tensor<D> {
        self.next(axes)
    }
}
