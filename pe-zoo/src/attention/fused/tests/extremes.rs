//! Extreme inputs: gates that are all closed or all open, rows of equal logits, logits beyond the
//! range of the exponential function.

use burn::tensor::{Device, Tensor};

use super::{Leaves, Make, Sizes, compare_leaves, contextual};
use crate::attention::{Engine, Weights};
use crate::score::{
    Contextual, ContextualFunction, GateSource, HiddenActivation, LogitScaling, Perceptron,
};
use crate::testkit::close::numbers;
use crate::{Positions, ScoreMod};

fn constant<const D: usize>(shape: [usize; D], value: f32) -> Tensor<D> {
    Tensor::full(shape, value, &Device::flex().autodiff()).require_grad()
}

const SIZES: Sizes =
    Sizes { batch: 1, heads: 2, rows: 200, columns: 200, head_dim: 4, value_dim: 4 };

/// Makes queries and keys whose products all equal `content`.
fn equal_logits(content: f32, make: Make) {
    let Sizes { batch, heads, rows, head_dim, .. } = SIZES;
    let side = (content.abs() / head_dim as f32).sqrt();
    // Rounding errors of weights grow with the logits.
    compare_leaves(&SIZES, &Positions::contiguous(0, rows), f64::from(side), make, || {
        let plane = [batch, heads, rows, head_dim];
        (constant(plane, side), constant(plane, side.copysign(content)))
    });
}

#[test]
fn rows_of_equal_logits() {
    equal_logits(3.0, |_, _| ScoreMod::None);
}

#[test]
fn gates_that_are_all_open_all_shut_or_half_open() {
    for content in [-400.0, -0.0, 0.5, 400.0] {
        // Lengths below and above the largest position, which open gates reach exactly.
        equal_logits(content, |sizes, leaves| {
            ScoreMod::Contextual(contextual(sizes, leaves, 11, LogitScaling::Listing))
        });
        equal_logits(content, |sizes, leaves| {
            ScoreMod::Contextual(contextual(sizes, leaves, 300, LogitScaling::Code))
        });
    }
}

#[test]
fn logits_far_beyond_what_exponentials_can_hold() {
    equal_logits(40_000.0, |_, _| ScoreMod::None);
    equal_logits(-40_000.0, |sizes, leaves| {
        ScoreMod::Contextual(contextual(sizes, leaves, 11, LogitScaling::Equation))
    });
}

#[test]
fn a_number_that_is_none_stays_visible() {
    let device = Device::flex();
    let ones = Tensor::<4>::ones([1, 1, 70, 4], &device);
    let broken = ones.clone().slice_fill([0..1, 0..1, 3..4, 0..1], f32::NAN);
    let at = Positions::contiguous(0, 70);
    for (q, k) in [(&broken, &ones), (&ones, &broken)] {
        let output = Engine::Fused
            .attend(q, k, &ones, ones.clone(), &ScoreMod::None, &at, 0.5, Weights::Drop)
            .output;
        assert!(numbers(output).iter().any(|x| x.is_nan()));
    }
}

/// One modifier for each function of contextual positions, with 64 positions and the given gates.
fn contextual_functions(gates: &GateSource) -> [ScoreMod; 4] {
    let device = Device::flex().autodiff();
    let ones = |len| Tensor::<1>::ones([len], &device);
    let perceptron = |activation| Perceptron {
        w1: ones(5),
        b1: ones(5),
        w2: Tensor::ones([4, 5], &device),
        b2: ones(4),
        activation,
    };
    let functions = [
        ContextualFunction::Table(Tensor::ones([4, 64], &device)),
        ContextualFunction::Slope(ones(1)),
        ContextualFunction::Mlp(perceptron(HiddenActivation::Relu)),
        ContextualFunction::Mlp(perceptron(HiddenActivation::Gelu)),
    ];
    functions.map(|function| {
        ScoreMod::Contextual(Contextual {
            gates: gates.clone(),
            max_position: 63.0,
            function,
            convention: LogitScaling::Code,
        })
    })
}

/// Finds the rows of the output and of the query gradient that contain NaN.
fn nan_rows(engine: Engine, q: &Tensor<4>, k: &Tensor<4>, modifier: &ScoreMod) -> [Vec<bool>; 2] {
    let [_batch, _heads, rows, width] = q.dims();
    let q = q.clone().require_grad();
    let values = Tensor::<4>::ones(q.shape(), &q.device());
    let at = Positions::contiguous(0, rows);
    let output =
        engine.attend(&q, k, &values, values.clone(), modifier, &at, 0.5, Weights::Drop).output;
    let grads = output.clone().sum().backward();
    [output, q.grad(&grads).unwrap()]
        .map(|x| numbers(x).chunks(width).map(|row| row.iter().any(|n| n.is_nan())).collect())
}

#[test]
fn contextual_positions_that_are_not_numbers_give_nan_and_never_a_panic() {
    let device = Device::flex().autodiff();
    let ones = Tensor::<4>::ones([1, 1, 40, 4], &device);
    for bad in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
        let broken = ones.clone().slice_fill([0..1, 0..1, 17..18, 0..1], bad);
        for modifier in contextual_functions(&GateSource::QueryKey) {
            // NaN in a query affects its own row only, in either engine.
            let [fused, reference] = [Engine::Fused, Engine::Reference]
                .map(|engine| nan_rows(engine, &broken, &ones, &modifier));
            assert_eq!(fused, reference, "query {bad}, {modifier:?}");
            assert!(fused[0][17] && !fused[0][16], "query {bad}, {modifier:?}");
            // NaN in a key affects every row that sees it.
            let [output, grads] = nan_rows(Engine::Fused, &ones, &broken, &modifier);
            let [expected, _grads] = nan_rows(Engine::Reference, &ones, &broken, &modifier);
            for row in 17..40 {
                assert_eq!(output[row], expected[row], "key {bad}, row {row}, {modifier:?}");
                assert!(!output[row] || grads[row], "key {bad}, row {row}, {modifier:?}");
            }
        }
    }
    // NaN in gates, with finite content.
    let broken = ones.clone().slice_fill([0..1, 0..1, 17..18, 0..1], f32::NAN);
    for modifier in contextual_functions(&GateSource::Keys(broken)) {
        let [output, grads] = nan_rows(Engine::Fused, &ones, &ones, &modifier);
        assert!(output[17..].iter().chain(&grads[17..]).all(|nan| *nan), "{modifier:?}");
    }
}

#[test]
fn leaves_are_compared_one_by_one() {
    let fails = std::panic::catch_unwind(|| {
        let wrong: Make = |sizes, leaves: &mut Leaves| {
            // The second engine gets the same numbers with twice the gradient.
            use std::sync::atomic::{AtomicU32, Ordering};
            static CALLS: AtomicU32 = AtomicU32::new(0);
            let slopes = constant([sizes.heads], 0.1);
            leaves.one.push(slopes.clone());
            let doubled = CALLS.fetch_add(1, Ordering::SeqCst) == 1;
            ScoreMod::Slope(if doubled { slopes.clone() * 2.0 - slopes.detach() } else { slopes })
        };
        super::compare_at(&SIZES, &Positions::contiguous(0, 200), 1.0, wrong);
    });
    let panic = fails.expect_err("gradients that differ were called equal");
    let said = panic.downcast_ref::<String>().cloned().unwrap_or_default();
    assert!(said.contains("[.;1] number"), "{said}");
}
