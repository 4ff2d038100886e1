//! Compares the kernels with plain tensor operations: outputs and all gradients.

use burn::tensor::{Device, Int, Tensor, TensorData};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;

use super::{AdamW, GateFunction, MatmulPrecision, Moments, Pairs, plain};
use crate::init::standard_normal;
use crate::testkit::close::{self, F32, Tolerance, numbers};

const ROUNDED: Tolerance = Tolerance { absolute: 2e-6, relative: 2e-5 };

fn tensor<const D: usize>(shape: [usize; D], seed: u64) -> Tensor<D> {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let count = shape.iter().product::<usize>();
    let values = (0..count).map(|_| 2.0 * standard_normal(&mut rng) as f32).collect::<Vec<_>>();
    let device = Device::flex().autodiff();
    Tensor::from_data(TensorData::new(values, shape), &device).require_grad()
}

fn close<const D: usize>(name: &str, found: Tensor<D>, expected: Tensor<D>) {
    assert_eq!(found.dims(), expected.dims(), "{name}");
    let expected = numbers(expected);
    let largest = expected.iter().fold(1.0_f64, |m, x| m.max(x.abs()));
    let tolerance = Tolerance { absolute: ROUNDED.absolute * largest, ..ROUNDED };
    close::compare(&numbers(found), &expected, tolerance)
        .map_err(|e| format!("{name}: {e}"))
        .unwrap();
}

/// Asserts that two implementations of an operation have equal outputs and equal gradients of `x`,
/// vectors and matrices.
macro_rules! agree {
    ($fused:expr, $plain:expr, $output:expr, $($leaf:expr),+) => {{
        let (fused, plain) = ($fused, $plain);
        let upstream = tensor($output, 99).detach();
        let fused_grads = (fused.clone() * upstream.clone()).sum().backward();
        let plain_grads = (plain.clone() * upstream).sum().backward();
        close("output", fused, plain);
        $(close(
            stringify!($leaf),
            $leaf.grad(&fused_grads).unwrap(),
            $leaf.grad(&plain_grads).unwrap(),
        );)+
    }};
}

#[test]
fn gelu_agrees_also_on_transposed_input() {
    let x = tensor([3, 5, 1001], 1);
    agree!(super::gelu(x.clone()), burn::tensor::activation::gelu(x.clone()), [3, 5, 1001], x);
    let x = tensor([7, 300], 2);
    agree!(
        super::gelu(x.clone().transpose()),
        burn::tensor::activation::gelu(x.clone().transpose()),
        [300, 7],
        x
    );
}

#[test]
fn sums_agree_in_every_order_of_memory_and_leave_shared_tensors_alone() {
    let (x, y) = (tensor([3, 500, 101], 1), tensor([3, 101, 500], 2));
    for (x, y) in [(x.clone(), y.clone().swap_dims(1, 2)), (x.clone() * 1.0, x.clone())] {
        let (before_x, before_y) = (numbers(x.clone()), numbers(y.clone()));
        let found = numbers(super::add(x.clone(), y.clone()));
        let expected = before_x.iter().zip(&before_y).map(|(x, y)| x + y).collect::<Vec<_>>();
        close::compare(&found, &expected, F32).unwrap();
        assert!(numbers(x) == before_x && numbers(y) == before_y);
    }
    agree!(
        super::add(x.clone(), y.clone().swap_dims(1, 2) * 2.0),
        x.clone() + y.clone().swap_dims(1, 2) * 2.0,
        [3, 500, 101],
        x,
        y
    );
}

/// Vocabularies that no vector divides, more rows than a piece has, and logits far from 0.
#[test]
fn cross_entropies_agree_also_on_transposed_logits() {
    let device = Device::flex().autodiff();
    for [rows, vocabulary] in [[1, 1], [5, 2], [700, 67], [3000, 16], [2, 40_000]] {
        let labels = (0..rows).map(|row| (row * 7919 % vocabulary) as i32).collect::<Vec<_>>();
        let labels = Tensor::<1, Int>::from_ints(labels.as_slice(), &device);
        let logits = tensor([rows, vocabulary], 27);
        for shift in [0.0, 3e4] {
            agree!(
                super::cross_entropy(logits.clone() + shift, labels.clone()),
                plain::cross_entropy(logits.clone() + shift, labels.clone()),
                [rows],
                logits
            );
        }
        let transposed = tensor([vocabulary, rows], 28);
        agree!(
            super::cross_entropy(transposed.clone().transpose(), labels.clone()),
            plain::cross_entropy(transposed.clone().transpose(), labels.clone()),
            [rows],
            transposed
        );
    }
    let certain = Tensor::<2>::from_floats([[-200.0, 100.0, f32::NEG_INFINITY]], &device);
    let of =
        |label: i32| super::cross_entropy(certain.clone(), Tensor::from_ints([label], &device));
    assert_eq!(numbers(of(0)), [300.0]);
    assert_eq!(numbers(of(1)), [0.0]);
    let diverged = Tensor::<2>::from_floats([[0.0, f32::NAN, 1.0]], &device);
    assert!(numbers(super::cross_entropy(diverged, Tensor::from_ints([0], &device)))[0].is_nan());
}

#[test]
fn gated_units_agree_also_on_transposed_input() {
    for gate in [GateFunction::Silu, GateFunction::Gelu] {
        for (rows, both) in [(1, 2), (3, 1002), (900, 34)] {
            let x = tensor([2, rows, both], 1);
            let shape = [2, rows, both / 2];
            agree!(super::gated(x.clone(), gate), plain::gated(x.clone(), gate), shape, x);
        }
        let x = tensor([8, 300], 2);
        agree!(
            super::gated(x.clone().transpose().reshape([600, 4]), gate),
            plain::gated(x.clone().transpose().reshape([600, 4]), gate),
            [600, 2],
            x
        );
        let ends = Tensor::<2>::from_floats([[-100.0, 100.0, 3.0, 0.5]], &Device::flex());
        close::compare(&numbers(super::gated(ends, gate)), &[0.0, 50.0], F32).unwrap();
    }
}

#[test]
fn the_gate_of_ge_glu_is_the_gelu_with_tanh() {
    let inputs = [-4.0, -1.5, -0.3, 0.0, 0.2, 1.0, 3.7_f32];
    let expected = inputs.map(|x| {
        let x = f64::from(x);
        let tanh = ((2.0 / std::f64::consts::PI).sqrt() * (x + 0.044_715 * x.powi(3))).tanh();
        0.5 * x * (1.0 + tanh)
    });
    let found = inputs.map(|x| {
        let row = Tensor::<2>::from_floats([[x, 1.0]], &Device::flex());
        numbers(super::gated(row, GateFunction::Gelu))[0]
    });
    close::compare(&found, &expected, F32).unwrap();
}

#[test]
fn gelu_is_itself_at_both_ends() {
    let ends = Tensor::<1>::from_floats([-30.0, -6.0, 0.0, 6.0, 30.0], &Device::flex());
    let found = numbers(super::gelu(ends));
    let small = Tolerance { absolute: 1e-9, relative: 1e-6 };
    close::compare(&found, &[0.0, -5.919e-9, 0.0, 6.0, 30.0], small).unwrap();
}

#[test]
fn linear_agrees_with_and_without_bias_and_on_a_slice_of_a_larger_weight() {
    for (rows, inputs, outputs) in [(1, 3, 2), (130, 17, 33), (600, 64, 256)] {
        let x = tensor([2, rows, inputs], 3);
        let weight = tensor([inputs, outputs], 4);
        let bias = tensor([outputs], 5);
        let plain = burn::tensor::module::linear::<3>;
        agree!(
            super::linear(x.clone(), weight.clone(), Some(bias.clone())),
            plain(x.clone(), weight.clone(), Some(bias.clone())),
            [2, rows, outputs],
            x,
            weight,
            bias
        );
        agree!(
            super::gelu_linear_of(
                MatmulPrecision::F32,
                x.clone(),
                weight.clone(),
                Some(bias.clone())
            ),
            plain(burn::tensor::activation::gelu(x.clone()), weight.clone(), Some(bias.clone())),
            [2, rows, outputs],
            x,
            weight,
            bias
        );
        agree!(
            super::relu_linear_of(
                MatmulPrecision::F32,
                x.clone(),
                weight.clone(),
                Some(bias.clone())
            ),
            plain(burn::tensor::activation::relu(x.clone()), weight.clone(), Some(bias.clone())),
            [2, rows, outputs],
            x,
            weight,
            bias
        );
        let half = outputs / 2;
        let slice = || weight.clone().slice_dim(1, half..outputs);
        agree!(
            super::linear(x.clone(), slice(), None),
            plain(x.clone(), slice(), None),
            [2, rows, outputs - half],
            x,
            weight
        );
    }
}

#[test]
fn norms_agree_at_widths_that_no_vector_divides() {
    for (rows, width) in [(1, 1), (5, 7), (70, 48), (300, 513)] {
        let x = tensor([2, rows, width], 6);
        let (gamma, beta) = (tensor([width], 7), tensor([width], 8));
        agree!(
            super::layer_norm(x.clone(), gamma.clone(), beta.clone(), 1e-5),
            burn::tensor::module::layer_norm(x.clone(), gamma.clone(), Some(beta.clone()), 1e-5),
            [2, rows, width],
            x,
            gamma,
            beta
        );
        agree!(
            super::rms_norm(x.clone(), gamma.clone(), 1e-5),
            plain::rms_norm(x.clone(), gamma.clone(), 1e-5),
            [2, rows, width],
            x,
            gamma
        );
    }
}

#[test]
fn rotations_agree_in_both_layouts_and_from_both_memory_orders() {
    for pairs in [Pairs::HalfSplit, Pairs::Interleaved] {
        let (cos, sin) = (tensor([67, 4], 9).detach(), tensor([67, 4], 10).detach());
        let straight = tensor([2, 3, 67, 8], 11);
        agree!(
            super::rotate(straight.clone(), cos.clone(), sin.clone(), pairs),
            plain::rotate(straight.clone(), cos.clone(), sin.clone(), pairs),
            [2, 3, 67, 8],
            straight
        );
        let projected = tensor([2, 67, 3, 8], 12);
        let heads = || projected.clone().swap_dims(1, 2);
        agree!(
            super::rotate(heads(), cos.clone(), sin.clone(), pairs),
            plain::rotate(heads(), cos.clone(), sin.clone(), pairs),
            [2, 3, 67, 8],
            projected
        );
    }
}

#[test]
fn turns_agree_with_shared_and_separate_angles_and_waves() {
    let sizes = [([2, 3, 67, 8], [2, 3]), ([2, 3, 67, 40], [2, 1]), ([3, 2, 65, 16], [1, 2])];
    for (shape, [sets, heads]) in sizes.into_iter().chain([([3, 2, 9, 6], [1, 1])]) {
        let [batch, all_heads, tokens, head_dim] = shape;
        let straight = tensor(shape, 11);
        let projected = tensor([batch, tokens, all_heads, head_dim], 12);
        let angles = tensor([sets, heads, tokens, head_dim / 2], 13);
        agree!(
            super::turn_by_angles(straight.clone(), angles.clone() * 20.0),
            plain::turn_by_angles(straight.clone(), angles.clone() * 20.0),
            shape,
            straight,
            angles
        );
        for width in [head_dim, 2 * head_dim] {
            // In the order of the tokens in memory, as projections are.
            let waves = tensor([sets, tokens, heads, width], 14);
            let by_head = || waves.clone().swap_dims(1, 2);
            let heads = || projected.clone().swap_dims(1, 2);
            agree!(
                super::turn_by_waves(heads(), by_head()),
                plain::turn_by_waves(heads(), &by_head()),
                shape,
                projected,
                waves
            );
        }
    }
}

#[test]
fn polar_forms_agree_with_shared_and_separate_waves_and_are_right_at_both_ends() {
    for (shape, [sets, heads]) in
        [([2, 3, 67, 8], [1, 3]), ([2, 3, 67, 40], [2, 1]), ([3, 2, 700, 17], [1, 1])]
    {
        let [batch, all_heads, tokens, channels] = shape;
        let output = [batch, all_heads, tokens, 2 * channels];
        let projected = tensor([batch, tokens, all_heads, channels], 15);
        let waves = tensor([sets, heads, tokens, 2 * channels], 16);
        let by_head = || projected.clone().swap_dims(1, 2);
        agree!(
            super::polar(by_head(), waves.clone()),
            plain::polar(by_head(), &waves),
            output,
            projected,
            waves
        );
    }
    let ends = Tensor::<4>::from_floats([[[[-20.0, -3.0, 0.0, 30.0, 1e4]]]], &Device::flex());
    let magnitudes = super::polar(ends, Tensor::ones([1, 1, 1, 10], &Device::flex()));
    let expected = [2.061_153_6e-9, 0.048_587_35, std::f64::consts::LN_2, 30.0, 1e4];
    let digits = Tolerance { absolute: 0.0, relative: 1e-6 };
    close::compare(&numbers(magnitudes), &expected.repeat(2), digits).unwrap();
    // The backward pass divides by the squares of the waves.
    let (x, waves) = (tensor([1, 1, 4, 5], 17), tensor([1, 1, 4, 10], 18) * 0.0);
    let grads = super::polar(x.clone(), waves).sum().backward();
    assert_eq!(numbers(x.grad(&grads).unwrap()), vec![0.0; 20]);
}

#[test]
fn repeated_heads_agree_from_both_memory_orders() {
    let straight = tensor([2, 3, 67, 8], 25);
    let output = [2, 12, 67, 8];
    agree!(
        super::repeat_heads(straight.clone(), 4),
        plain::repeat_heads(straight.clone(), 4),
        output,
        straight
    );
    let projected = tensor([2, 67, 3, 8], 26);
    let by_head = || projected.clone().swap_dims(1, 2);
    agree!(super::repeat_heads(by_head(), 4), plain::repeat_heads(by_head(), 4), output, projected);
}

#[test]
fn unit_norms_have_length_one_and_none_for_zeros() {
    let x = tensor([2, 30, 17], 17);
    let lengths = (super::unit_norm(x.clone(), 1e-6).square().sum_dim(2)).sqrt();
    close::compare(&numbers(lengths), &[1.0; 60], F32).unwrap();
    agree!(super::unit_norm(x.clone(), 0.5), plain::unit_norm(x.clone(), 0.5), [2, 30, 17], x);
    let zeros = super::unit_norm(Tensor::<2>::zeros([1, 3], &Device::flex()), 1e-6);
    assert_eq!(numbers(zeros), [0.0; 3]);
}

/// Sequences shorter than the kernel, and pieces that end within a sequence.
#[test]
fn convolutions_agree_also_where_they_reach_before_the_first_token() {
    for (shape, kernel) in
        [([3, 2, 5], 4), ([2, 67, 8], 1), ([2, 67, 33], 3), ([2, 300, 600], 4), ([3, 1, 7], 2)]
    {
        let [_batch, tokens, width] = shape;
        let (x, taps) = (tensor(shape, 18), tensor([kernel, width], 19));
        for silu in [false, true] {
            agree!(
                super::causal_convolution(x.clone(), taps.clone(), silu),
                plain::causal_convolution(x.clone(), &taps, silu),
                shape,
                x,
                taps
            );
        }
        if tokens > 1 {
            let heads = tensor([shape[0], width, tokens], 20);
            agree!(
                super::causal_convolution(heads.clone().swap_dims(1, 2), taps.clone(), false),
                plain::causal_convolution(heads.clone().swap_dims(1, 2), &taps, false),
                shape,
                heads,
                taps
            );
        }
    }
}

#[test]
fn mixed_heads_agree_from_both_memory_orders_and_from_shared_heads() {
    for [batch, heads, tokens, width] in [[2, 3, 67, 8], [1, 4, 300, 33], [3, 1, 5, 16]] {
        let weights = tensor([batch, tokens, heads * heads], 21);
        let straight = tensor([batch, heads, tokens, width], 22);
        agree!(
            super::mix_heads(straight.clone(), weights.clone()),
            plain::mix_heads(straight.clone(), weights.clone()),
            [batch, heads, tokens, width],
            straight,
            weights
        );
        let projected = tensor([batch, tokens, heads, width], 23);
        agree!(
            super::mix_heads(projected.clone().swap_dims(1, 2), weights.clone()),
            plain::mix_heads(projected.clone().swap_dims(1, 2), weights.clone()),
            [batch, heads, tokens, width],
            projected,
            weights
        );
        let shared = tensor([1, 1, tokens, width], 24);
        let spread = || shared.clone().expand([batch, heads, tokens, width]);
        agree!(
            super::mix_heads(spread(), weights.clone()),
            plain::mix_heads(spread(), weights.clone()),
            [batch, heads, tokens, width],
            shared,
            weights
        );
    }
}

#[test]
fn three_steps_of_adamw_agree() {
    let (mut fused, mut plain) = (Moments::default(), Moments::default());
    let start = tensor([37, 1021], 13).inner();
    let (mut a, mut b) = (start.clone(), start.clone());
    for number in 1..=3 {
        let grad = tensor([37, 1021], 20 + u64::from(number)).inner();
        let step = AdamW {
            learning_rate: 0.01,
            betas: [0.9, 0.99],
            epsilon: 1e-8,
            weight_decay: 0.1,
            grad_scale: 0.3,
            step: number,
        };
        a = super::adamw(a, grad.clone(), &mut fused, &step);
        b = plain::adamw(b, grad, &mut plain, &step);
        close("parameter", a.clone(), b.clone());
    }
    let [mean, square] = fused.tensors.unwrap();
    let [plain_mean, plain_square] = plain.tensors.unwrap();
    close("mean", mean, plain_mean);
    close("square", square, plain_square);
    // Shared tensors are not modified in place.
    close("start", start, tensor([37, 1021], 13).inner());
}

#[test]
fn a_first_step_moves_by_the_learning_rate_against_the_sign_of_the_gradient() {
    let device = Device::flex();
    let grad = Tensor::<1>::from_floats([3.0, -0.2], &device);
    let step = AdamW {
        learning_rate: 0.5,
        betas: [0.9, 0.999],
        epsilon: 1e-8,
        weight_decay: 0.0,
        grad_scale: 1.0,
        step: 1,
    };
    let moved = super::adamw(Tensor::zeros([2], &device), grad, &mut Moments::default(), &step);
    close::compare(&numbers(moved), &[-0.5, 0.5], F32).unwrap();
}
