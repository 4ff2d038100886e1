//! Running an encoding on made-up problems.

use burn::tensor::{Device, Int, Tensor};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;

use super::problem::{Problem, tensor3, tensor4};
use super::randomise;
use crate::attention::{LayerCache, LayerInput, Weights, layer};
use crate::encoding::{EmbedContext, Update};
use crate::{Dims, EncodingConfig, PositionEncoding, Positions, TokenState};

/// Sizes without luck: three heads, a length that is no multiple of anything.
pub(super) const DIMS: Dims = Dims { layers: 2, heads: 3, head_dim: 6, train_len: 16, max_len: 64 };
pub(super) const TOKENS: usize = 13;

/// The encoding as it is at the start of training.
pub(super) fn build<C: EncodingConfig>(
    config: &C,
    seed: u64,
    device: &Device,
) -> Result<C::Encoding, String> {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    config.init(&DIMS, &mut rng, device).map_err(|error| error.to_string())
}

/// The encoding with random numbers in every table.
pub(super) fn random<C: EncodingConfig>(
    config: &C,
    device: &Device,
) -> Result<C::Encoding, String> {
    Ok(randomise(build(config, 7, device)?, 11))
}

/// Output of one layer, `[B, H, T, D]`, for rows `at.first_row()..` computed in one go.
pub(super) fn full_pass<P: PositionEncoding>(
    encoding: &P,
    problem: &Problem,
    at: &Positions,
    index: usize,
    device: &Device,
) -> Tensor<4> {
    chunk(encoding, problem, at, 0..at.cols().len(), index, None, device)
}

/// Output for the tokens in `range`, those before it being in the cache.
pub(super) fn chunk<P: PositionEncoding>(
    encoding: &P,
    problem: &Problem,
    at: &Positions,
    range: std::ops::Range<usize>,
    index: usize,
    cache: Option<&mut LayerCache>,
    device: &Device,
) -> Tensor<4> {
    let part =
        |heads: &[crate::reference::Heads]| tensor4(heads, device).slice_dim(2, range.clone());
    let x = tensor3(&problem.x, device).slice_dim(1, range.clone());
    let input = LayerInput {
        layer: index,
        at,
        x: &x,
        q: part(&problem.q),
        k: part(&problem.k),
        v: part(&problem.v),
        carried: &TokenState::default(),
    };
    layer(encoding, input, cache, Weights::Drop).output
}

/// Embeddings of the rows, `[B, T, C]`.
pub(super) fn embedded<P: PositionEncoding>(
    encoding: &P,
    problem: &Problem,
    at: &Positions,
    device: &Device,
) -> Tensor<3> {
    let x = tensor3(&problem.x, device);
    let batch = problem.x.len();
    let tokens = Tensor::<2, Int>::zeros([batch, at.cols().len()], device);
    let x = x.slice_dim(1, at.first_row()..at.cols().len());
    encoding.embed(x, &EmbedContext { at, tokens: &tokens })
}

/// All layers over the same problem, what tokens carry handed from one to the next, by the
/// reference engine: outputs of each layer, and what the last one leaves.
pub(super) fn stack<P: PositionEncoding>(
    encoding: &P,
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
            layer: index,
            at,
            x: &x,
            q: tensor4(&problem.q, device),
            k: tensor4(&problem.k, device),
            v: tensor4(&problem.v, device),
            carried: &carried,
        };
        // Only the reference engine returns weights.
        let output = layer(encoding, input, None, Weights::Return);
        carried = encoding.update(output.carried, index, Update::FeedForward(&x));
        outputs.push(output.output);
    }
    (outputs, carried)
}
