//! Linear map `x weight + bias` in blocks of rows: the product is accumulated onto the bias while the
//! block is in the cache, and the bias gradient is summed in parallel.
//!
//! With [`Before::Gelu`] the map is applied to `gelu(x)`, which is computed in each block; the backward
//! pass recomputes it in place of `x`: it is as large as the largest activation of a layer and costs a
//! hundredth of the product. With [`Before::Relu`] it is applied to `relu(x)`, which is computed in
//! place and determines the gradient of `x` too.

use std::cell::RefCell;

use burn::backend::flex::FlexTensor;
use burn::tensor::{Shape as TensorShape, Tensor};
use rayon::iter::repeat_n;
use rayon::prelude::*;

use super::gelu::{self, gelu_backward, gelu_of};
use super::row_product::row_product;
use crate::kernels::cpu::operation::{Operation, apply};
use crate::kernels::cpu::parallel::{in_pieces, rows_of_piece, rows_of_sum, total};
use crate::kernels::cpu::tensors::{contiguous, dense, matrix, numbers, whole, with_last_axis};
use crate::kernels::cpu::view::{
    Add, Matrix, MatrixMut, Shape, Start, in_new_memory, multiply, product,
};

/// Computes the linear map of `x` after a function.
pub(super) fn linear<const D: usize>(
    x: Tensor<D>,
    weight: Tensor<2>,
    bias: Option<Tensor<1>>,
    before: Before,
) -> Tensor<D> {
    let bias = bias.unwrap_or_else(|| Tensor::zeros([0], &weight.device()));
    apply(Linear { before }, [x.into_dispatch(), weight.into_dispatch(), bias.into_dispatch()])
}

/// Linear map of `x` with weights and bias; the bias may be absent.
#[derive(Debug, Clone)]
struct Linear {
    /// Function applied to the input first.
    before: Before,
}

/// Function applied to the input of the linear map.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Before {
    /// The input is used unchanged.
    Nothing,
    /// GELU is applied to the input.
    Gelu,
    /// ReLU is applied to the input.
    Relu,
}

impl Operation<3> for Linear {
    /// Input, after ReLU but not after GELU, and weights.
    type Kept = [FlexTensor; 2];

    fn forward(&self, [x, weight, bias]: [FlexTensor; 3]) -> (FlexTensor, Self::Kept) {
        let x = self.before.kept(dense(x));
        (forward(&x, &weight, &dense(bias), self.before), [x, weight])
    }

    fn backward(
        &self,
        [kept, weight]: Self::Kept,
        grad: FlexTensor,
        [of_x, of_weight, of_bias]: [bool; 3],
    ) -> [Option<FlexTensor>; 3] {
        let grad = dense(grad);
        let weight = weights(&weight);
        let Shape { rows: inputs, columns: outputs, .. } = weight.shape();
        let (to_x, input) = if of_x {
            let [found, input] = x_grad(kept, weight, self.before, &grad);
            (Some(found), input)
        } else {
            (None, self.before.apply(kept))
        };
        let to_weight = of_weight.then(|| weight_grad(&input, &grad, inputs, outputs));
        [to_x, to_weight, of_bias.then(|| bias_grad(outputs, &grad))]
    }
}

impl Before {
    /// Converts the input to the tensor that is kept for the backward pass.
    fn kept(self, x: FlexTensor) -> FlexTensor {
        if self == Self::Relu { relu(x) } else { x }
    }

    /// Computes the input of the product from the kept tensor.
    fn apply(self, kept: FlexTensor) -> FlexTensor {
        match self {
            Self::Nothing | Self::Relu => kept,
            Self::Gelu => gelu::forward(&kept),
        }
    }
}

/// Computes `max(x, 0)`, in place where the memory of `x` is not shared. NaN propagates.
fn relu(x: FlexTensor) -> FlexTensor {
    let mut x = whole(x);
    in_pieces(
        x.storage_mut::<f32>().par_chunks_mut(rows_of_piece(1)),
        #[inline(always)]
        |x| x.iter_mut().for_each(|x| *x = if *x <= 0.0 { 0.0 } else { *x }),
    );
    x
}

/// Views the weights as a matrix `[I, O]`.
fn weights(weight: &FlexTensor) -> Matrix<'_> {
    matrix(weight, 0, 0, 1)
}

fn rows(data: &[f32], width: usize) -> Matrix<'_> {
    Matrix::new(data, Shape::dense(data.len() / width.max(1), width))
}

/// Number of rows that are computed together. What is done to them before and after their product finds them in the cache;
/// more rows share one packing of the weights.
fn rows_together(count: usize) -> usize {
    (count / 4).next_multiple_of(8).clamp(64, 256)
}

thread_local! {
    /// GELU of the rows that this thread computes together.
    static ACTIVATED: RefCell<Vec<f32>> = const { RefCell::new(Vec::new()) };
}

fn forward(x: &FlexTensor, weight: &FlexTensor, bias: &FlexTensor, before: Before) -> FlexTensor {
    let weight = weights(weight);
    let Shape { rows: inputs, columns: outputs, .. } = weight.shape();
    let (input, bias) = (numbers(x), numbers(bias));
    let count = input.len() / inputs.max(1);
    let together = rows_together(count);
    let add = |output: &mut [f32], input: &[f32]| {
        let shape = Shape::dense(output.len() / outputs, outputs);
        let output = MatrixMut::new(output, shape);
        multiply(output, rows(input, inputs), weight, 1.0, Add::Accumulate);
    };
    let whole_product = before != Before::Gelu && bias.is_empty();
    if whole_product && count == 1 {
        return contiguous(row_product(&input[..inputs], weight), with_last_axis(x, outputs));
    }
    let start =
        if whole_product { Start::Product(rows(input, inputs), weight) } else { Start::Rows(bias) };
    let output = in_new_memory(
        count * outputs,
        (together * outputs).max(1),
        start,
        input[..count * inputs * outputs.min(1)].par_chunks((together * inputs).max(1)),
        #[inline(always)]
        |output, input| match before {
            Before::Gelu => {
                // Taken out, because code below a closure of `with` is not compiled for the widest instructions.
                let mut buffer = ACTIVATED.take();
                if buffer.len() < input.len() {
                    buffer.resize(input.len(), 0.0);
                }
                let activated = &mut buffer[..input.len()];
                gelu_of(activated, input);
                add(output, activated);
                ACTIVATED.set(buffer);
            }
            Before::Nothing | Before::Relu if whole_product => {}
            Before::Nothing | Before::Relu => add(output, input),
        },
    );
    contiguous(output, with_last_axis(x, outputs))
}

/// Computes the gradient of the input. Returns the input of the product too, which GELU computes in place where the memory
/// of the kept tensor is not shared.
fn x_grad(
    kept: FlexTensor,
    weight: Matrix<'_>,
    before: Before,
    grad: &FlexTensor,
) -> [FlexTensor; 2] {
    let Shape { rows: inputs, columns: outputs, .. } = weight.shape();
    let shape = kept.layout().shape().clone();
    let upstream = rows(numbers(grad), outputs);
    let across = transposed(weight);
    let start = Start::Product(upstream, rows(&across, inputs));
    let (len, piece) = (shape.num_elements(), rows_together(upstream.shape().rows) * inputs);
    let piece = piece.max(1);
    let mut kept = if before == Before::Gelu { whole(kept) } else { kept };
    let input_grad = match before {
        Before::Nothing => {
            in_new_memory(len, piece, start, repeat_n((), len.div_ceil(piece)), |_, ()| {})
        }
        Before::Gelu => in_new_memory(
            len,
            piece,
            start,
            kept.storage_mut::<f32>().par_chunks_mut(piece),
            #[expect(clippy::redundant_closure, reason = "only a closure can be inlined always")]
            #[inline(always)]
            |grad, x| gelu_backward(grad, x),
        ),
        Before::Relu => in_new_memory(
            len,
            piece,
            start,
            numbers(&kept).par_chunks(piece),
            #[inline(always)]
            |grad, output| {
                for (grad, output) in grad.iter_mut().zip(output) {
                    *grad = if *output <= 0.0 { 0.0 } else { *grad };
                }
            },
        ),
    };
    [contiguous(input_grad, shape), kept]
}

/// Copies the weights as `[O, I]` in row-major order, which products pack faster than a transposed view.
fn transposed(weight: Matrix<'_>) -> Vec<f32> {
    const SIDE: usize = 16;
    let Shape { rows: inputs, columns: outputs, .. } = weight.shape();
    let stripe = (SIDE * inputs).max(1);
    let stripes = outputs.div_ceil(SIDE);
    in_new_memory(
        inputs * outputs,
        stripe,
        Start::Zeros,
        (0..if inputs == 0 { 0 } else { stripes }).into_par_iter(),
        #[inline(always)]
        |out, stripe| {
            for input in 0..inputs {
                for (n, out) in out.chunks_exact_mut(inputs).enumerate() {
                    out[input] = weight.at(input, stripe * SIDE + n);
                }
            }
        },
    )
}

fn weight_grad(input: &FlexTensor, grad: &FlexTensor, inputs: usize, outputs: usize) -> FlexTensor {
    let (input, upstream) = (rows(numbers(input), inputs), rows(numbers(grad), outputs));
    contiguous(product(input.t(), upstream), TensorShape::from([inputs, outputs]))
}

fn bias_grad(outputs: usize, grad: &FlexTensor) -> FlexTensor {
    let upstream = numbers(grad);
    let rows = rows_of_sum(outputs);
    let pieces = (upstream.len() / outputs.max(1)).div_ceil(rows);
    let mut sums = vec![0.0; pieces * outputs];
    in_pieces(
        sums.par_chunks_mut(outputs).zip(upstream.par_chunks(rows * outputs)),
        #[inline(always)]
        |(sums, upstream)| {
            for row in upstream.chunks_exact(outputs) {
                for (sum, value) in sums.iter_mut().zip(row) {
                    *sum += value;
                }
            }
        },
    );
    contiguous(total(&sums, outputs), TensorShape::from([outputs]))
}
