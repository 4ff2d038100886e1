//! Layer norm and RMS norm in one pass forward and one pass backward, with two numbers stored per
//! row.

use burn::backend::autodiff::checkpoint::base::Checkpointer;
use burn::backend::autodiff::checkpoint::strategy::CheckpointStrategy;
use burn::backend::autodiff::grads::Gradients;
use burn::backend::autodiff::ops::{Backward, Ops, OpsKind};
use burn::backend::flex::FlexTensor;
use burn::backend::tensor::FloatTensor;
use burn::backend::{Autodiff, Backend, Dispatch, Flex, backend_extension};
use burn::tensor::{Shape, Tensor};
use rayon::prelude::*;

use crate::kernels::cpu::parallel::{rows_of_piece, rows_of_sum};
use crate::kernels::cpu::tensors::{contiguous, dense, numbers};
use crate::kernels::cpu::view::{Start, in_new_memory};

pub(super) fn layer_norm<const D: usize>(
    x: Tensor<D>,
    gamma: Tensor<1>,
    beta: Tensor<1>,
    epsilon: f64,
) -> Tensor<D> {
    let [x, gamma, beta] = [x.into_dispatch(), gamma.into_dispatch(), beta.into_dispatch()];
    Tensor::from_dispatch(<Dispatch as NormBackend>::fused_norm(
        x,
        gamma,
        beta,
        Kind { centred: true, epsilon: epsilon as f32 },
    ))
}

pub(super) fn rms_norm<const D: usize>(x: Tensor<D>, gamma: Tensor<1>, epsilon: f64) -> Tensor<D> {
    let none = Tensor::<1>::zeros([0], &gamma.device());
    let [x, gamma, none] = [x.into_dispatch(), gamma.into_dispatch(), none.into_dispatch()];
    Tensor::from_dispatch(<Dispatch as NormBackend>::fused_norm(
        x,
        gamma,
        none,
        Kind { centred: false, epsilon: epsilon as f32 },
    ))
}

/// Kind of normalisation: LayerNorm or RMSNorm, with its epsilon.
#[derive(Debug, Clone, Copy)]
pub(super) struct Kind {
    /// Whether the mean is subtracted and `beta` added.
    centred: bool,
    epsilon: f32,
}

#[backend_extension(Flex, Autodiff)]
pub(super) trait NormBackend: Backend {
    fn fused_norm(
        x: FloatTensor<Self>,
        gamma: FloatTensor<Self>,
        beta: FloatTensor<Self>,
        kind: Kind,
    ) -> FloatTensor<Self>;
}

impl NormBackend for Flex {
    fn fused_norm(
        x: FloatTensor<Self>,
        gamma: FloatTensor<Self>,
        beta: FloatTensor<Self>,
        kind: Kind,
    ) -> FloatTensor<Self> {
        forward(&dense(x), &dense(gamma), &dense(beta), kind).0
    }
}

#[derive(Debug)]
struct Norm;

#[derive(Debug, Clone)]
struct NormState {
    x: FlexTensor,
    gamma: FlexTensor,
    rows: Vec<Row>,
    centred: bool,
}

/// Statistics of a row that the backward pass needs.
#[derive(Debug, Clone, Copy, Default)]
struct Row {
    mean: f32,
    /// Reciprocal of the standard deviation or root mean square.
    inverse: f32,
}

impl Row {
    /// Means of the gradient of the unit row times the unit row, and of that gradient alone (0 if not `centred`).
    #[inline(always)]
    fn means(self, [x, upstream, gamma]: [&[f32]; 3], centred: bool) -> [f32; 2] {
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
        [total(&along, rest(0)) / width, shift]
    }

    /// Writes the gradient of the row, and adds to the gradients of `gamma` and `beta`.
    #[inline(always)]
    fn gradients(
        self,
        [x, upstream, gamma]: [&[f32]; 3],
        [along, shift]: [f32; 2],
        [output, d_gamma, d_beta]: [&mut [f32]; 3],
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
        let given = x.0.iter().zip(upstream.0).zip(gamma.0);
        let found = output.0.iter_mut().zip(d_gamma.0).zip(d_beta.0);
        for (((x, upstream), gamma), ((output, to_gamma), to_beta)) in given.zip(found) {
            let (mut grad, mut d_gamma, mut d_beta) = ([0.0; SIDE], *to_gamma, *to_beta);
            for n in 0..SIDE {
                [grad[n], d_gamma[n], d_beta[n]] =
                    step([x[n], upstream[n], gamma[n]], [d_gamma[n], d_beta[n]]);
            }
            (*output, *to_gamma, *to_beta) = (grad, d_gamma, d_beta);
        }
        let given = x.1.iter().zip(upstream.1).zip(gamma.1);
        let found = output.1.iter_mut().zip(d_gamma.1).zip(d_beta.1);
        for (((x, upstream), gamma), ((output, d_gamma), d_beta)) in given.zip(found) {
            [*output, *d_gamma, *d_beta] = step([*x, *upstream, *gamma], [*d_gamma, *d_beta]);
        }
    }
}

impl Backward<Flex, 3> for Norm {
    type State = NormState;

    fn backward(self, ops: Ops<NormState, 3>, grads: &mut Gradients, _: &mut Checkpointer) {
        let grad = dense(grads.consume::<Flex>(&ops.node));
        let found = backward(&ops.state, &grad);
        for (parent, grad) in ops.parents.into_iter().zip(found) {
            if let (Some(parent), Some(grad)) = (parent, grad) {
                grads.register::<Flex>(parent.id, grad);
            }
        }
    }
}

impl<C: CheckpointStrategy> NormBackend for Autodiff<Flex, C> {
    fn fused_norm(
        x: FloatTensor<Self>,
        gamma: FloatTensor<Self>,
        beta: FloatTensor<Self>,
        kind: Kind,
    ) -> FloatTensor<Self> {
        let nodes = [x.node(), gamma.node(), beta.node()];
        let [x, gamma, beta] = [x, gamma, beta].map(|tensor| dense(tensor.into_primitive()));
        let (output, rows) = forward(&x, &gamma, &beta, kind);
        match Norm.prepare::<C>(nodes).compute_bound().stateful() {
            OpsKind::Tracked(prep) => {
                prep.finish(NormState { x, gamma, rows, centred: kind.centred }, output)
            }
            OpsKind::UnTracked(prep) => prep.finish(output),
        }
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
    kind: Kind,
) -> (FlexTensor, Vec<Row>) {
    let (input, gamma, beta) = (numbers(x), numbers(gamma), numbers(beta));
    let width = gamma.len();
    let mut kept = vec![Row::default(); input.len() / width];
    let rows = rows_of_piece(width);
    let output = in_new_memory(
        input.len(),
        rows * width,
        Start::Zeros,
        input.par_chunks(rows * width).zip(kept.par_chunks_mut(rows)),
        #[inline(always)]
        |output, (input, kept)| {
            let rows = output.chunks_exact_mut(width).zip(input.chunks_exact(width)).zip(kept);
            for ((output, x), kept) in rows {
                let mean = if kind.centred { sum(x, |x| x) / width as f32 } else { 0.0 };
                let variance = sum(x, |x| (x - mean) * (x - mean)) / width as f32;
                let inverse = 1.0 / (variance + kind.epsilon).sqrt();
                *kept = Row { mean, inverse };
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
    (contiguous(output, x.layout().shape().clone()), kept)
}

/// Computes the gradients of `x`, `gamma` and, if centred, `beta`.
fn backward(state: &NormState, grad: &FlexTensor) -> [Option<FlexTensor>; 3] {
    let (input, gamma, upstream) = (numbers(&state.x), numbers(&state.gamma), numbers(grad));
    let width = gamma.len();
    let rows = rows_of_sum(width);
    let pieces = state.rows.len().div_ceil(rows);
    let mut sums = vec![0.0; pieces * 2 * width];
    let given = input.par_chunks(rows * width).zip(upstream.par_chunks(rows * width));
    let output = in_new_memory(
        input.len(),
        rows * width,
        Start::Zeros,
        given.zip(state.rows.par_chunks(rows)).zip(sums.par_chunks_mut(2 * width)),
        #[inline(always)]
        |output, (((input, upstream), kept), sums)| {
            let (d_gamma, d_beta) = sums.split_at_mut(width);
            let rows = output
                .chunks_exact_mut(width)
                .zip(input.chunks_exact(width))
                .zip(upstream.chunks_exact(width))
                .zip(kept);
            for (((output, x), upstream), row) in rows {
                let means = row.means([x, upstream, gamma], state.centred);
                row.gradients([x, upstream, gamma], means, [output, d_gamma, d_beta]);
            }
        },
    );
    let summed = |offset: usize| {
        let mut total = vec![0.0; width];
        for piece in sums.chunks(2 * width) {
            for (total, value) in total.iter_mut().zip(&piece[offset..]) {
                *total += value;
            }
        }
        contiguous(total, Shape::from([width]))
    };
    let d_x = contiguous(output, state.x.layout().shape().clone());
    [Some(d_x), Some(summed(0)), state.centred.then(|| summed(width))]
}
