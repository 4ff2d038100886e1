//! Tests that results have the same bits on any number of threads.

use burn::backend::Flex;
use burn::backend::flex::FlexTensor;
use burn::tensor::Shape;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;

use super::engine;
use super::gradients::{self, BackwardPass};
use super::tensors::{contiguous, numbers};
use crate::init::standard_normal;
use crate::kernels::operands::{Operands, SLOTS, Slot};
use crate::kernels::precision::MatmulPrecision;
use crate::kernels::spec::{ContextualSpec, HeadMlpSpec, Spec, WeightRule};
use crate::score::{HiddenActivation, Number, Pair, PairTerm, Term};

/// Pair term with a parameter and token state.
#[derive(Debug, Clone)]
struct Tempered;

impl PairTerm<1, 1> for Tempered {
    #[inline(always)]
    fn value<N: Number>(&self, pair: Pair<N, 1, 1>) -> N {
        let decay = (pair.row[0] - pair.column[0]).abs() * pair.distance.sqrt();
        pair.params[0] * pair.content - decay
    }
}

fn tensor(shape: &[usize], seed: u64) -> FlexTensor {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let count = shape.iter().product::<usize>();
    let values = (0..count).map(|_| standard_normal(&mut rng) as f32).collect();
    contiguous(values, Shape::from(shape.to_vec()))
}

fn bits(tensor: &FlexTensor) -> Vec<u32> {
    numbers(&tensor.to_contiguous()).iter().map(|x| x.to_bits()).collect()
}

/// Returns the bits of the output and of all gradients.
fn run(
    [batch, heads, rows]: [usize; 3],
    activation: Option<HiddenActivation>,
    cpu_only: bool,
) -> Vec<Vec<u32>> {
    let (dim, entries, planes) = (8, 17, 2 * heads);
    let plane = [batch, heads, rows, dim];
    let hidden: &[usize] = if activation.is_some() { &[2, 16] } else { &[0] };
    let operands = Operands::<Flex>(Slot::ALL.map(|slot| {
        let shape: &[usize] = match slot {
            Slot::Query | Slot::Key | Slot::Values | Slot::ContextualGateKeys => &plane,
            Slot::Slope => &[heads],
            Slot::Distance => &[heads, entries],
            Slot::QueryDistance | Slot::ContextualVectors => &[dim, entries],
            Slot::RowVectors => &[batch, heads, rows, 3],
            Slot::RowDistance => &[3, entries],
            Slot::Decay | Slot::DecayResidual => &[batch, heads, rows],
            Slot::ContextualHidden => hidden,
            Slot::ContextualSlopes => &[0],
            Slot::TermParams => &[heads, 1],
            Slot::TermState => &[batch, heads, rows, 1],
            Slot::Dense => &[batch, heads, rows, rows],
            _ if !cpu_only => &[0],
            Slot::PositionMlpLines => &[heads, 6],
            Slot::PositionMlpDistances | Slot::PositionMlpRows => &[1, rows],
            Slot::TokenPriceKeys | Slot::TokenPriceQueries => &[batch, heads, rows],
            Slot::StepPricesQueries | Slot::StepPricesKeys => &[batch, heads, rows, 4],
            Slot::Sink | Slot::StepPricesSlopes => &[heads],
            Slot::ReflectedDirections => &plane,
            Slot::ReflectedChunks => &[batch, heads, rows, 32 + dim],
            Slot::HeadMlpInner => &[5, 3 * planes],
            Slot::HeadMlpInnerBias => &[1, 5],
            Slot::HeadMlpOuter => &[heads, 3 * 5],
            Slot::HeadMlpOuterBias => &[1, heads],
            Slot::HeadMlpBaseTable => &[heads, 9],
            Slot::FarQuery
            | Slot::FarKey
            | Slot::ChannelDecay
            | Slot::ReflectedProducts
            | Slot::Bends
            | Slot::HeadMlpBaseLines
            | Slot::HeadMlpBaseDistances
            | Slot::HeadMlpBaseRows => &[0],
        };
        let random = tensor(shape, slot as u64);
        let mut values = numbers(&random).to_vec();
        match slot {
            Slot::PositionMlpDistances => values.sort_by(f32::total_cmp),
            // Products of large maps would grow from chunk to chunk.
            Slot::ReflectedDirections
            | Slot::ReflectedChunks
            | Slot::TokenPriceKeys
            | Slot::TokenPriceQueries => {
                for value in &mut values {
                    *value *= 0.02;
                }
            }
            _ => {}
        }
        contiguous(values, Shape::from(shape.to_vec()))
    }));
    let spec = Spec {
        columns: (0..rows).collect(),
        contiguous: true,
        first_row: 0,
        content_scale: Some(0.3),
        distance_scale: 0.3,
        weights: WeightRule::Softmax,
        precision: MatmulPrecision::F32,
        contextual: Some(ContextualSpec {
            max_position: (entries - 1) as f32,
            function_scale: 1.0,
            gate_scale: 0.3,
            activation,
        }),
        position_mlp_bends: [0.2, 0.6].into(),
        head_mlp: cpu_only.then(|| HeadMlpSpec {
            taps: 3,
            scale: 0.3,
            negative_slope: 0.01,
            base_bends: [].into(),
        }),
        far_pairs: None,
        terms: vec![Term::new(Tempered).kernel().clone()],
    };
    let (output, kept) = engine::forward(&operands, &spec);
    let grad = tensor(&plane, 99);
    let grads = gradients::backward(BackwardPass {
        operands: &operands,
        spec: &spec,
        kept: &kept,
        output: &output,
        grad: &grad,
    });
    std::iter::once(&output).chain(grads.iter().flatten()).map(bits).collect()
}

#[test]
fn one_two_and_four_threads_give_the_same_bits() {
    // One head in many pieces, and many heads in one piece each.
    let functions = [None, Some(HiddenActivation::Gelu)];
    for (sizes, activation, cpu_only) in [[1, 1, 700], [3, 2, 130], [5, 4, 65]]
        .into_iter()
        .flat_map(|sizes| functions.map(|function| (sizes, function)))
        .flat_map(|(sizes, function)| [false, true].map(|cpu_only| (sizes, function, cpu_only)))
    {
        let on = |threads: usize| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            pool.install(|| run(sizes, activation, cpu_only))
        };
        let expected = on(1);
        // The output and a gradient for every operand but the slopes of contextual positions, and
        // the hidden layer where there is none.
        let absent = if activation.is_some() { 1 } else { 2 };
        // Twenty-four operands of other modifiers; a base bias from a table has no piecewise linear one, reflected products are
        // neither of far pairs nor of channels that decay, and boundaries between pieces and products within chunks are for the GPU.
        let absent = absent + if cpu_only { 8 } else { 24 };
        assert!(expected.iter().flatten().all(|bits| f32::from_bits(*bits).is_finite()));
        assert_eq!(expected.len(), 1 + SLOTS - absent);
        for threads in [2, 4] {
            assert!(
                on(threads) == expected,
                "{threads} threads, {sizes:?}, {activation:?}, {cpu_only}"
            );
        }
    }
}
