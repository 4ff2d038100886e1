//! Passes of an encoding over random problems.

use burn::tensor::{Device, Tensor};

use super::problem::{Problem, ids, tensor3, tensor4};
use crate::attention::{Engine, LayerCache, LayerInput, Weights, layer};
use crate::encoding::{EmbedContext, Update};
use crate::erased::Hooks;
use crate::{Dims, Positions, TokenState};

/// Dimensions that hide no error of indexing: three heads, and a length that is no multiple of a
/// block.
pub(crate) const DIMS: Dims =
    Dims { layers: 2, width: 18, heads: 3, head_dim: 6, train_len: 16, max_len: 64 };
pub(crate) const TOKENS: usize = 13;

/// Layer and attention engine of a pass.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LayerEngine {
    pub(crate) layer: usize,
    pub(crate) engine: Engine,
}

/// Output of one layer, `[B, H, T, D]`, for the tokens in `range`, with the tokens before it in the cache.
pub(crate) fn chunk_by(
    encoding: &dyn Hooks,
    problem: &Problem,
    at: &Positions,
    range: std::ops::Range<usize>,
    place: LayerEngine,
    cache: Option<&mut LayerCache>,
    device: &Device,
) -> Tensor<4> {
    let part =
        |heads: &[crate::reference::Heads]| tensor4(heads, device).slice_dim(2, range.clone());
    let x = tensor3(&problem.x, device).slice_dim(1, range.clone());
    let carried = TokenState::default();
    let input = LayerInput {
        engine: place.engine,
        ..LayerInput::new(
            place.layer,
            at,
            &x,
            [&problem.q, &problem.k, &problem.v].map(|heads| part(heads)),
            &carried,
        )
    };
    layer(encoding, input, cache, Weights::Drop).output
}

/// Embeddings of the rows, `[B, T, C]`.
pub(crate) fn embedded(
    encoding: &dyn Hooks,
    problem: &Problem,
    at: &Positions,
    device: &Device,
) -> Tensor<3> {
    let columns = at.cols().len();
    let x = tensor3(&problem.x, device).slice_dim(1, at.first_row()..columns);
    let tokens = ids(&problem.tokens, device).slice_dim(1, 0..columns);
    encoding.embed(x, &EmbedContext { at, tokens: &tokens })
}

/// Runs all layers over the same problem by the reference engine, passing the state from layer to
/// layer; returns the outputs of each layer and the final state.
pub(crate) fn stack(
    encoding: &dyn Hooks,
    problem: &Problem,
    at: &Positions,
    layers: usize,
    device: &Device,
) -> (Vec<Tensor<4>>, TokenState) {
    let x = tensor3(&problem.x, device);
    let mut carried = TokenState::default();
    let mut outputs = Vec::new();
    for index in 0..layers {
        let input = LayerInput {
            engine: Engine::Reference,
            ..LayerInput::new(
                index,
                at,
                &x,
                [&problem.q, &problem.k, &problem.v].map(|heads| tensor4(heads, device)),
                &carried,
            )
        };
        let output = layer(encoding, input, None, Weights::Drop);
        carried = encoding.update(output.carried, index, Update::FeedForward(&x));
        outputs.push(output.output);
    }
    (outputs, carried)
}
