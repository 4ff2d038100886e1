//! The same bits on any number of threads.

use burn::backend::Flex;
use burn::backend::flex::FlexTensor;
use burn::tensor::Shape;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;

use super::engine;
use super::gradients::{self, Pass};
use super::tensors::{contiguous, numbers};
use crate::init::standard_normal;
use crate::kernels::forms::{FORMS, Forms};
use crate::kernels::operands::{OPERANDS, Operands};
use crate::kernels::precision::MatmulPrecision;
use crate::kernels::spec::{ContextualSpec, FormSpec, MixerSpec, Spec, WeightRule};
use crate::score::HiddenActivation;

fn tensor(shape: &[usize], seed: u64) -> FlexTensor {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let count = shape.iter().product::<usize>();
    let values = (0..count).map(|_| standard_normal(&mut rng) as f32).collect();
    contiguous(values, Shape::from(shape.to_vec()))
}

/// Every form: a curve, prices, steps, maps and a perceptron across heads with a base.
fn forms([batch, heads, rows, dim]: [usize; 4]) -> Forms<Flex> {
    let planes = heads * 2;
    // Maps of random numbers would grow from chunk to chunk.
    let small = |shape: &[usize], seed| {
        let of = tensor(shape, seed);
        contiguous(numbers(&of).iter().map(|x| 0.02 * x).collect(), of.layout().shape().clone())
    };
    let ascending = (0..rows).map(|n| n as f32 / rows as f32).collect();
    let empty = tensor(&[0], 1);
    Forms {
        curve_lines: tensor(&[heads, 6], 20),
        curve_distances: contiguous(ascending, Shape::from([rows])),
        curve_rows: contiguous(vec![1.0; rows], Shape::from([rows])),
        price_keys: small(&[batch, heads, rows], 21),
        price_queries: small(&[batch, heads, rows], 22),
        step_queries: small(&[batch, heads, rows, 4], 23),
        step_keys: small(&[batch, heads, rows, 4], 24),
        step_slopes: small(&[heads], 25),
        directions: small(&[batch, heads, rows, dim], 26),
        chunk_maps: small(&[batch, heads, rows, dim + 32], 27),
        mixer_inner: tensor(&[5, 3 * planes], 28),
        mixer_inner_bias: tensor(&[5], 29),
        mixer_outer: tensor(&[heads, 3 * 5], 30),
        mixer_outer_bias: tensor(&[heads], 31),
        base_table: tensor(&[heads, 9], 32),
        ..Forms::all(&empty)
    }
}

fn bits(tensor: &FlexTensor) -> Vec<u32> {
    numbers(&tensor.to_contiguous()).iter().map(|x| x.to_bits()).collect()
}

/// Output and all gradients as bits.
fn run(
    [batch, heads, rows]: [usize; 3],
    activation: Option<HiddenActivation>,
    with_forms: bool,
) -> Vec<Vec<u32>> {
    let (dim, entries) = (8, 17);
    let plane = [batch, heads, rows, dim];
    let operands = Operands::<Flex> {
        q: tensor(&plane, 1),
        k: tensor(&plane, 2),
        values: tensor(&plane, 3),
        slopes: tensor(&[heads], 4),
        distance: tensor(&[heads, entries], 5),
        query_distance: tensor(&[dim, entries], 6),
        decay: tensor(&[batch, heads, rows], 7),
        decay_residual: tensor(&[batch, heads, rows], 13),
        gate_keys: tensor(&plane, 8),
        table: tensor(&[dim, entries], 9),
        hidden: tensor(if activation.is_some() { &[2, 16] } else { &[0] }, 13),
        contextual_slopes: tensor(&[0], 10),
        dense: tensor(&[batch, heads, rows, rows], 11),
        forms: if with_forms {
            forms([batch, heads, rows, dim])
        } else {
            Forms::all(&tensor(&[0], 1))
        },
    };
    let spec = Spec {
        columns: (0..rows).collect(),
        contiguous: true,
        first_row: 0,
        content_scale: Some(0.3),
        distance_scale: 0.3,
        weights: WeightRule::Softmax,
        factors: MatmulPrecision::F32,
        contextual: Some(ContextualSpec {
            max_position: (entries - 1) as f32,
            function_scale: 1.0,
            gate_scale: 0.3,
            activation,
        }),
        forms: FormSpec {
            bends: [0.2, 0.6].into(),
            mixer: with_forms.then(|| MixerSpec {
                taps: 3,
                scale: 0.3,
                negative_slope: 0.01,
                bends: [].into(),
            }),
        },
    };
    let (output, kept) = engine::forward(&operands, &spec);
    let grad = tensor(&plane, 12);
    let grads = gradients::backward(Pass {
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
    for (sizes, activation, with_forms) in [[1, 1, 700], [3, 2, 130], [5, 4, 65]]
        .into_iter()
        .flat_map(|sizes| functions.map(|function| (sizes, function)))
        .flat_map(|(sizes, function)| [false, true].map(|forms| (sizes, function, forms)))
    {
        let on = |threads: usize| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            pool.install(|| run(sizes, activation, with_forms))
        };
        let expected = on(1);
        // The output and a gradient for every operand but the slopes of contextual positions, and
        // the hidden layer where there is none.
        // With forms, a base that is a table has no curve.
        let absent = if activation.is_some() { 1 } else { 2 } + if with_forms { 3 } else { FORMS };
        assert!(expected.iter().flatten().all(|bits| f32::from_bits(*bits).is_finite()));
        assert_eq!(expected.len(), 1 + OPERANDS - absent);
        for threads in [2, 4] {
            assert!(
                on(threads) == expected,
                "{threads} threads, {sizes:?}, {activation:?}, forms {with_forms}"
            );
        }
    }
}
