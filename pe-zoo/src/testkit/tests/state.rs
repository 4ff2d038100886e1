//! Tests of the hooks for state, with an encoding that uses all of them.

use burn::module::Module;
use burn::tensor::{Device, Tensor};
use rand_chacha::ChaCha8Rng;

use crate::attention::{LayerCache, LayerInput, Weights, layer};
use crate::card::Card;
use crate::encoding::{LayerContext, ScoreContext, StateContext, Update};
use crate::settings::NoSettings;
use crate::testkit::close::{self, F32, F32_REORDERED, numbers};
use crate::testkit::problem::{Problem, tensor3, tensor4};
use crate::{Dims, PeError, PositionEncoding, Positions, ScoreMod, TokenState};

const DIMS: Dims = Dims { layers: 2, width: 8, heads: 2, head_dim: 4, train_len: 9, max_len: 9 };
const TOKENS: usize = 9;

/// Log-forgetting from the first channel of the layer's input, carried through the layers and mixed
/// by attention.
#[derive(Module, Debug)]
struct Forgetful {}

impl PositionEncoding for Forgetful {
    type Settings = NoSettings;

    const CARD: Card = super::BROKEN;

    fn build(_: &NoSettings, _: &Dims, _: &mut ChaCha8Rng, _: &Device) -> Result<Self, PeError> {
        Ok(Self {})
    }

    fn state(&self, ctx: &StateContext<'_>) -> TokenState {
        let own = ctx.x.clone().slice_dim(2, 0..1).powf_scalar(2.0).neg();
        let own = own.unsqueeze_dim::<4>(1).expand([-1, DIMS.heads as i64, -1, -1]);
        let tensors = match ctx.carried.tensors.first() {
            Some(before) => vec![before.clone() + own],
            None => vec![own],
        };
        TokenState { tensors }
    }

    fn score(&self, ctx: &ScoreContext<'_>) -> ScoreMod {
        let per_token = ctx.layer.cols.tensors[0].clone();
        ScoreMod::Decay { cumulative: per_token.squeeze_dim::<3>(3).cumsum(2) }
    }

    fn mixed_values(&self, ctx: &LayerContext<'_>) -> Option<Tensor<4>> {
        Some(ctx.cols.tensors[0].clone())
    }

    fn update(&self, rows: TokenState, _layer: usize, update: Update<'_>) -> TokenState {
        match update {
            Update::Attention(Some(mixed)) => {
                TokenState { tensors: vec![rows.tensors[0].clone() * 0.5 + mixed.clone() * 0.1] }
            }
            Update::Attention(None) | Update::FeedForward(_) => rows,
        }
    }
}

/// Computes the outputs of the second of two layers in chunks, `[B, H, T, D]`.
fn two_layers(problem: &Problem, step: usize, device: &Device) -> Vec<f64> {
    let mut caches = [LayerCache::default(), LayerCache::default()];
    let mut outputs = Vec::new();
    for start in (0..TOKENS).step_by(step) {
        let end = (start + step).min(TOKENS);
        let at = Positions::contiguous(start, end - start);
        let part = |heads| tensor4(heads, device).slice_dim(2, start..end);
        let x = tensor3(&problem.x, device).slice_dim(1, start..end);
        let mut carried = TokenState::default();
        for (index, cache) in caches.iter_mut().enumerate() {
            let input = LayerInput::new(
                index,
                &at,
                &x,
                [&problem.q, &problem.k, &problem.v].map(|heads| part(heads)),
                &carried,
            );
            let output = layer(&Forgetful {}, input, Some(cache), Weights::Drop);
            carried = output.carried;
            if index == 1 {
                outputs.push(output.output);
            }
        }
    }
    numbers(Tensor::cat(outputs, 2))
}

#[test]
fn state_travels_from_layer_to_layer_and_through_the_cache() {
    let device = Device::flex();
    let problem = Problem::random(2, TOKENS, &DIMS, 4);
    let whole = two_layers(&problem, TOKENS, &device);
    for step in [1, 3, 4] {
        close::compare(&two_layers(&problem, step, &device), &whole, F32_REORDERED).unwrap();
    }
}

#[test]
fn the_second_layer_equals_its_scalar_loop() {
    let device = Device::flex();
    let problem = Problem::random(1, TOKENS, &DIMS, 5);
    let at = Positions::contiguous(0, TOKENS);
    let input = problem.scalar(0, 0, &at);
    let own = problem.x[0].iter().map(|x| -x[0] * x[0]).collect::<Vec<_>>();
    let first = vec![own.clone(); DIMS.heads];
    let weights =
        crate::reference::attention::softmax(&crate::reference::decay::forgetting(&input, &first));
    let second = (0..DIMS.heads)
        .map(|h| {
            (0..TOKENS)
                .map(|t| {
                    let mixed = crate::reference::dot(&weights[h][t], &own[..=t]);
                    0.5 * own[t] + 0.1 * mixed + own[t]
                })
                .collect()
        })
        .collect::<Vec<Vec<f64>>>();
    let weights =
        crate::reference::attention::softmax(&crate::reference::decay::forgetting(&input, &second));
    let expected = crate::reference::attention::mix(&weights, &input.v);
    let expected = expected.into_iter().flatten().flatten().collect::<Vec<_>>();
    close::compare(&two_layers(&problem, TOKENS, &device), &expected, F32).unwrap();
}
