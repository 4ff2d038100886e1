//! Gated linear units in SIMD, in one pass over both halves, forward and backward.

use burn::backend::flex::FlexTensor;
use rayon::prelude::*;

use crate::kernels::activation::{GELU_CUBE, GELU_SLOPE, GateFunction};
use crate::kernels::cpu::operation::Operation;
use crate::kernels::cpu::parallel::rows_of_piece;
use crate::kernels::cpu::tensors::{contiguous, dense, last_axis, numbers, with_last_axis};
use crate::kernels::cpu::view::{Start, in_new_memory};
use crate::math::lanes;

/// Product of the second half of the channels with a function of the first half.
#[derive(Debug, Clone)]
pub(super) struct Gated {
    pub(super) gate: GateFunction,
}

/// Argument of the sigmoid in the function of a gate.
trait Argument: Sync {
    /// `u(x)`.
    fn value(x: f32) -> f32;

    /// Derivative of `u`.
    fn slope(x: f32) -> f32;
}

struct OfSilu;

impl Argument for OfSilu {
    #[inline(always)]
    fn value(x: f32) -> f32 {
        x
    }

    #[inline(always)]
    fn slope(_: f32) -> f32 {
        1.0
    }
}

struct OfGelu;

impl Argument for OfGelu {
    #[inline(always)]
    fn value(x: f32) -> f32 {
        GELU_SLOPE * x * (1.0 + GELU_CUBE * x * x)
    }

    #[inline(always)]
    fn slope(x: f32) -> f32 {
        GELU_SLOPE * (1.0 + 3.0 * GELU_CUBE * x * x)
    }
}

impl Operation<1> for Gated {
    /// Input.
    type Kept = FlexTensor;

    fn forward(&self, [x]: [FlexTensor; 1]) -> (FlexTensor, FlexTensor) {
        let x = dense(x);
        let output = match self.gate {
            GateFunction::Silu => forward::<OfSilu>(&x),
            GateFunction::Gelu => forward::<OfGelu>(&x),
        };
        (output, x)
    }

    fn backward(&self, x: FlexTensor, grad: FlexTensor, _: [bool; 1]) -> [Option<FlexTensor>; 1] {
        [Some(match self.gate {
            GateFunction::Silu => backward::<OfSilu>(&x, grad),
            GateFunction::Gelu => backward::<OfGelu>(&x, grad),
        })]
    }
}

fn forward<A: Argument>(x: &FlexTensor) -> FlexTensor {
    let half = last_axis(x) / 2;
    let input = numbers(x);
    let rows = rows_of_piece(half);
    let output = in_new_memory(
        input.len() / 2,
        rows * half,
        Start::Zeros,
        input.par_chunks(2 * rows * half),
        #[inline(always)]
        |output, input| {
            for (output, input) in output.chunks_exact_mut(half).zip(input.chunks_exact(2 * half)) {
                let (gate, up) = input.split_at(half);
                for ((output, gate), up) in output.iter_mut().zip(gate).zip(up) {
                    *output = gate * lanes::sigmoid(A::value(*gate)) * up;
                }
            }
        },
    );
    contiguous(output, with_last_axis(x, half))
}

fn backward<A: Argument>(x: &FlexTensor, grad: FlexTensor) -> FlexTensor {
    let half = last_axis(x) / 2;
    let grad = dense(grad);
    let input = numbers(x);
    let rows = rows_of_piece(half);
    let input_grad = in_new_memory(
        input.len(),
        2 * rows * half,
        Start::Zeros,
        input.par_chunks(2 * rows * half).zip(numbers(&grad).par_chunks(rows * half)),
        #[inline(always)]
        |input_grad, (input, grad)| {
            let rows = input_grad.chunks_exact_mut(2 * half).zip(input.chunks_exact(2 * half));
            for ((input_grad, input), grad) in rows.zip(grad.chunks_exact(half)) {
                let (to_gate, to_up) = input_grad.split_at_mut(half);
                let (gate, up) = input.split_at(half);
                let to = to_gate.iter_mut().zip(to_up);
                for (((to_gate, to_up), (gate, up)), grad) in to.zip(gate.iter().zip(up)).zip(grad)
                {
                    let open = lanes::sigmoid(A::value(*gate));
                    let slope = 1.0 + gate * A::slope(*gate) * (1.0 - open);
                    *to_gate = grad * up * open * slope;
                    *to_up = grad * gate * open;
                }
            }
        },
    );
    contiguous(input_grad, x.layout().shape().clone())
}
