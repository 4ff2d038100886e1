//! What the kernels on tensor cores take, from the modifier to the configuration of the kernels.

use burn::backend::Dispatch;
use burn::tensor::{Device, Tensor};

use super::super::{GpuModifier, LogitInputs};
use crate::kernels::gpu;
use crate::kernels::operands::Operands;
use crate::kernels::spec::Spec;
use crate::ops::MatmulPrecision;
use crate::score::{
    Beyond, Contextual, ContextualFunction, FarPairs, FarProducts, GateSource, LogitScaling,
    Reflected, StepPrices,
};
use crate::{Positions, ScoreMod};

const TOKENS: usize = 70;
const HEADS: usize = 2;

fn of_tokens(dim: usize) -> Tensor<4> {
    Tensor::zeros([1, HEADS, TOKENS, dim], &Device::flex())
}

/// Operands of an attention with heads of `head_dim`.
fn operands(modifier: &ScoreMod, head_dim: usize) -> (Operands<Dispatch>, Spec) {
    let vectors = of_tokens(head_dim);
    let at = Positions::contiguous(0, TOKENS);
    let inputs = LogitInputs::new(&vectors, &vectors, &vectors, &at, 0.1);
    let operands = GpuModifier::new(modifier, true, TOKENS).operands(&inputs);
    operands.operands(&inputs, &vectors, MatmulPrecision::Bf16)
}

/// Channels of the second products; `None` if the kernels do not take the attention.
fn second_dim(modifier: &ScoreMod, head_dim: usize) -> Option<usize> {
    let (operands, spec) = operands(modifier, head_dim);
    gpu::second_dim_on_cores(&operands, &spec)
}

/// Whether the channels decay in the kernels; `None` if they do not take the attention.
fn channels_decay(parts: Vec<ScoreMod>, head_dim: usize) -> Option<bool> {
    let (operands, spec) = operands(&ScoreMod::Sum(parts), head_dim);
    gpu::channels_decay_on_cores(&operands, &spec)
}

/// Whether queries change from block to block in the kernels; `None` if they do not take the attention.
fn reflects(parts: Vec<ScoreMod>, head_dim: usize) -> Option<bool> {
    let (operands, spec) = operands(&ScoreMod::Sum(parts), head_dim);
    gpu::reflects_on_cores(&operands, &spec)
}

fn step_prices(dim: usize) -> ScoreMod {
    let slopes = Tensor::ones([HEADS], &Device::flex());
    let [queries, keys] = [of_tokens(dim), of_tokens(dim)];
    ScoreMod::StepPrices(StepPrices { queries, keys, slopes })
}

fn far_products(dim: usize) -> ScoreMod {
    let [queries, keys] = [of_tokens(dim), of_tokens(dim)];
    ScoreMod::FarProducts(FarProducts { queries, keys, pairs: FarPairs::Distance { from: 9 } })
}

fn gates_of_keys(dim: usize) -> ScoreMod {
    ScoreMod::Contextual(Contextual {
        gates: GateSource::Keys(of_tokens(dim)),
        max_position: 7.0,
        function: ContextualFunction::Table(Tensor::zeros([dim, 8], &Device::flex())),
        convention: LogitScaling::Listing,
    })
}

#[test]
fn second_products_that_fit_beside_the_content() {
    assert_eq!(second_dim(&step_prices(8), 64), Some(8));
    assert_eq!(second_dim(&step_prices(3), 64), Some(8));
    assert_eq!(second_dim(&step_prices(16), 112), Some(16));
    assert_eq!(second_dim(&far_products(64), 64), Some(64));
    assert_eq!(second_dim(&gates_of_keys(32), 32), Some(32));
    let sinks = ScoreMod::Sinks(Tensor::zeros([HEADS], &Device::flex()));
    assert_eq!(second_dim(&ScoreMod::Sum(vec![step_prices(8), sinks]), 64), Some(8));
    assert_eq!(second_dim(&ScoreMod::None, 64), Some(0));
}

#[test]
fn second_products_that_do_not_fit() {
    // Content that is not in whole steps of the instructions, or too wide together.
    assert_eq!(second_dim(&step_prices(8), 24), None);
    assert_eq!(second_dim(&far_products(96), 96), None);
    assert_eq!(second_dim(&gates_of_keys(128), 128), None);
}

fn decaying(head_dim: usize) -> ScoreMod {
    ScoreMod::ChannelDecay { cumulative: of_tokens(head_dim) }
}

#[test]
fn channels_that_decay() {
    let device = Device::flex();
    let slopes = || ScoreMod::Slope(Tensor::zeros([HEADS], &device));
    let table =
        || ScoreMod::Distance { table: Tensor::zeros([HEADS, 9], &device), beyond: Beyond::Last };
    let sums = || ScoreMod::Decay { cumulative: Tensor::zeros([1, HEADS, TOKENS], &device) };
    let sinks = || ScoreMod::Sinks(Tensor::zeros([HEADS], &device));
    assert_eq!(channels_decay(vec![decaying(64)], 64), Some(true));
    assert_eq!(channels_decay(vec![decaying(128)], 128), Some(true));
    assert_eq!(
        channels_decay(vec![decaying(8), slopes(), table(), sums(), sinks()], 8),
        Some(true)
    );
    assert_eq!(channels_decay(vec![slopes()], 64), Some(false));
    // Heads that are no whole pieces, and step prices, which are a form along the row.
    assert_eq!(channels_decay(vec![decaying(12)], 12), None);
    assert_eq!(channels_decay(vec![decaying(64), step_prices(8)], 64), None);
}

#[test]
fn queries_that_change_from_block_to_block() {
    let device = Device::flex();
    let reflected = |head_dim| {
        let strengths = Tensor::zeros([1, HEADS, TOKENS, 1], &device);
        ScoreMod::Reflected(Reflected { directions: of_tokens(head_dim), strengths })
    };
    let sums = || ScoreMod::Decay { cumulative: Tensor::zeros([1, HEADS, TOKENS], &device) };
    let sinks = || ScoreMod::Sinks(Tensor::zeros([HEADS], &device));
    let slopes = || ScoreMod::Slope(Tensor::zeros([HEADS], &device));
    assert_eq!(reflects(vec![reflected(64)], 64), Some(true));
    assert_eq!(reflects(vec![reflected(128), sums(), sinks()], 128), Some(true));
    assert_eq!(reflects(vec![sums()], 64), Some(false));
    // Heads that are no whole pieces, and slopes, which become a part of a dense bias.
    assert_eq!(reflects(vec![reflected(12)], 12), None);
    assert_eq!(reflects(vec![reflected(64), slopes()], 64), None);
}
