//! Layer norm and RMS norm in one pass forward and one pass backward, with two numbers stored per
//! row.

use burn::backend::flex::FlexTensor;
use burn::tensor::{Shape, Tensor};
use rayon::prelude::*;

use crate::kernels::cpu::operation::{Operation, apply};
use crate::kernels::cpu::parallel::{self, rows_of_piece, rows_of_sum};
use crate::kernels::cpu::tensors::{contiguous, dense, numbers};
use crate::kernels::cpu::view::{Start, in_new_memory};

/// Normalises `x`: LayerNorm, or RMSNorm if there is no `beta`.
pub(super) fn norm<const D: usize>(
    x: Tensor<D>,
    gamma: Tensor<1>,
    beta: Option<Tensor<1>>,
    epsilon: f64,
) -> Tensor<D> {
    let kind = Norm { centred: beta.is_some(), epsilon: epsilon as f32 };
    let beta = beta.unwrap_or_else(|| Tensor::zeros([0], &gamma.device()));
    apply(kind, [x.into_dispatch(), gamma.into_dispatch(), beta.into_dispatch()])
}

/// Normalisation of `x` with `gamma` and `beta`: LayerNorm or RMSNorm, for which `beta` is absent.
#[derive(Debug, Clone, Copy)]
struct Norm {
    /// Whether the mean is subtracted and `beta` added.
    centred: bool,
    /// Constant added to the variance.
    epsilon: f32,
}

#[derive(Debug, Clone)]
struct NormState {
    x: FlexTensor,
    gamma: FlexTensor,
    rows: Vec<Row>,
}

/// Statistics of a row that the backward pass needs.
#[derive(Debug, Clone, Copy, Default)]
struct Row {
    mean: f32,
    /// Reciprocal of the standard deviation or root mean square.
    inverse: f32,
}

/// Inputs of the backward pass for one row.
#[derive(Clone, Copy)]
struct RowInputs<'a> {
    x: &'a [f32],
    upstream: &'a [f32],
    gamma: &'a [f32],
}

/// Means over a row that its gradient contains.
#[derive(Clone, Copy)]
struct RowMeans {
    /// Mean of the gradient of the unit row times the unit row.
    along: f32,
    /// Mean of that gradient; 0 if the norm does not subtract the mean.
    shift: f32,
}

/// Gradients that one row writes or adds to.
struct RowGrads<'a> {
    x: &'a mut [f32],
    gamma: &'a mut [f32],
    beta: &'a mut [f32],
}

impl Row {
    #[inline(always)]
    fn means(self, RowInputs { x, upstream, gamma }: RowInputs<'_>, centred: bool) -> RowMeans {
        let width = x.len() as f32;
        let [x, upstream, gamma] = [x, upstream, gamma].map(<[f32]>::as_chunks::<SIDE>);
        let term = |x: f32, upstream: f32, gamma: f32| {
            let grad = upstream * gamma;
            [grad * ((x - self.mean) * self.inverse), grad]
        };
        let (mut along, mut shift) = ([0.0; SIDE], [0.0; SIDE]);
        for ((x, upstream), gamma) in x.0.iter().zip(upstream.0).zip(gamma.0) {
            for n in 0..SIDE {
                let [unit, grad] = term(x[n], upstream[n], gamma[n]);
                along[n] += unit;
                shift[n] += grad;
            }
        }
        let rest = |part: usize| {
            let rest = x.1.iter().zip(upstream.1).zip(gamma.1);
            rest.map(move |((x, upstream), gamma)| term(*x, *upstream, *gamma)[part])
        };
        let shift = if centred { total(&shift, rest(1)) / width } else { 0.0 };
        RowMeans { along: total(&along, rest(0)) / width, shift }
    }

    /// Writes the gradient of the row, and adds to the gradients of `gamma` and `beta`.
    #[inline(always)]
    fn gradients(
        self,
        RowInputs { x, upstream, gamma }: RowInputs<'_>,
        RowMeans { along, shift }: RowMeans,
        RowGrads { x: output, gamma: d_gamma, beta: d_beta }: RowGrads<'_>,
    ) {
        let step = |[x, upstream, gamma]: [f32; 3], [d_gamma, d_beta]: [f32; 2]| {
            let unit = (x - self.mean) * self.inverse;
            let grad = self.inverse * (upstream * gamma - shift - unit * along);
            [grad, d_gamma + upstream * unit, d_beta + upstream]
        };
        let [x, upstream, gamma] = [x, upstream, gamma].map(<[f32]>::as_chunks::<SIDE>);
        let output = output.as_chunks_mut::<SIDE>();
        let d_gamma = d_gamma.as_chunks_mut::<SIDE>();
        let d_beta = d_beta.as_chunks_mut::<SIDE>();
        let inputs = x.0.iter().zip(upstream.0).zip(gamma.0);
        let grads = output.0.iter_mut().zip(d_gamma.0).zip(d_beta.0);
        for (((x, upstream), gamma), ((output, to_gamma), to_beta)) in inputs.zip(grads) {
            let (mut grad, mut d_gamma, mut d_beta) = ([0.0; SIDE], *to_gamma, *to_beta);
            for n in 0..SIDE {
                [grad[n], d_gamma[n], d_beta[n]] =
                    step([x[n], upstream[n], gamma[n]], [d_gamma[n], d_beta[n]]);
            }
            (*output, *to_gamma, *to_beta) = (grad, d_gamma, d_beta);
        }
        let inputs = x.1.iter().zip(upstream.1).zip(gamma.1);
        let grads = output.1.iter_mut().zip(d_gamma.1).zip(d_beta.1);
        for (((x, upstream), gamma), ((output, d_gamma), d_beta)) in inputs.zip(grads) {
            [*output, *d_gamma, *d_beta] = step([*x, *upstream, *gamma], [*d_gamma, *d_beta]);
        }
    }
}

impl Operation<3> for Norm {
    type Kept = NormState;

    fn forward(&self, inputs: [FlexTensor; 3]) -> (FlexTensor, NormState) {
        let [x, gamma, beta] = inputs.map(dense);
        let (output, rows) = forward(&x, &gamma, &beta, *self);
        (output, NormState { x, gamma, rows })
    }

    fn backward(
        &self,
        state: NormState,
        grad: FlexTensor,
        _needed: [bool; 3],
    ) -> [Option<FlexTensor>; 3] {
        backward(&state, self.centred, &dense(grad))
    }
}

/// Number of partial sums, so that sums are vectorised with a fixed order of additions, and of elements that are
/// processed together: loops over arrays are vectorised without tests of whether slices overlap.
const SIDE: usize = 16;

/// Adds up partial sums, followed by the terms of the elements that fill no chunk.
#[inline(always)]
fn total(side: &[f32; SIDE], rest: impl Iterator<Item = f32>) -> f32 {
    side.iter().sum::<f32>() + rest.sum::<f32>()
}

/// Sums `term` over the elements of a row.
#[inline(always)]
fn sum(row: &[f32], term: impl Fn(f32) -> f32) -> f32 {
    let (chunks, rest) = row.as_chunks::<SIDE>();
    let mut side = [0.0; SIDE];
    for chunk in chunks {
        for n in 0..SIDE {
            side[n] += term(chunk[n]);
        }
    }
    total(&side, rest.iter().map(|x| term(*x)))
}

fn forward(
    x: &FlexTensor,
    gamma: &FlexTensor,
    beta: &FlexTensor,
    kind: Norm,
) -> (FlexTensor, Vec<Row>) {
    let (input, gamma, beta) = (numbers(x), numbers(gamma), numbers(beta));
    let width = gamma.len();
    let mut statistics = vec![Row::default(); input.len() / width];
    let rows = rows_of_piece(width);
    let output = in_new_memory(
        input.len(),
        rows * width,
        Start::Zeros,
        input.par_chunks(rows * width).zip(statistics.par_chunks_mut(rows)),
        #[inline(always)]
        |output, (input, statistics)| {
            let rows =
                output.chunks_exact_mut(width).zip(input.chunks_exact(width)).zip(statistics);
            for ((output, x), statistics) in rows {
                let mean = if kind.centred { sum(x, |x| x) / width as f32 } else { 0.0 };
                let variance = sum(x, |x| (x - mean) * (x - mean)) / width as f32;
                let inverse = 1.0 / (variance + kind.epsilon).sqrt();
                *statistics = Row { mean, inverse };
                let all = output.iter_mut().zip(x).zip(gamma);
                if kind.centred {
                    for (((output, x), gamma), beta) in all.zip(beta) {
                        *output = (x - mean) * inverse * gamma + beta;
                    }
                } else {
                    for ((output, x), gamma) in all {
                        *output = x * inverse * gamma;
                    }
                }
            }
        },
    );
    (contiguous(output, x.layout().shape().clone()), statistics)
}

/// Computes the gradients of `x`, `gamma` and, if centred, `beta`.
fn backward(state: &NormState, centred: bool, grad: &FlexTensor) -> [Option<FlexTensor>; 3] {
    let (input, gamma, upstream) = (numbers(&state.x), numbers(&state.gamma), numbers(grad));
    let width = gamma.len();
    let rows = rows_of_sum(width);
    let pieces = state.rows.len().div_ceil(rows);
    let mut sums = vec![0.0; pieces * 2 * width];
    let inputs = input.par_chunks(rows * width).zip(upstream.par_chunks(rows * width));
    let output = in_new_memory(
        input.len(),
        rows * width,
        Start::Zeros,
        inputs.zip(state.rows.par_chunks(rows)).zip(sums.par_chunks_mut(2 * width)),
        #[inline(always)]
        |output, (((input, upstream), kept), sums)| {
            let (d_gamma, d_beta) = sums.split_at_mut(width);
            let rows = output
                .chunks_exact_mut(width)
                .zip(input.chunks_exact(width))
                .zip(upstream.chunks_exact(width))
                .zip(kept);
            for (((output, x), upstream), row) in rows {
                let inputs = RowInputs { x, upstream, gamma };
                let grads = RowGrads { x: output, gamma: d_gamma, beta: d_beta };
                row.gradients(inputs, row.means(inputs, centred), grads);
            }
        },
    );
    let d_x = contiguous(output, state.x.layout().shape().clone());
    let mut d_gamma = parallel::total(&sums, 2 * width);
    let d_beta = d_gamma.split_off(width);
    let [d_gamma, d_beta] = [d_gamma, d_beta].map(|sum| contiguous(sum, Shape::from([width])));
    [Some(d_x), Some(d_gamma), centred.then_some(d_beta)]
}
