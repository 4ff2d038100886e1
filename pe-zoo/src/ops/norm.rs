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

use crate::kernels::cpu::parallel::{in_pieces, rows_of_piece};
use crate::kernels::cpu::tensors::{contiguous, dense, numbers};

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

/// Number of partial sums, so that sums are vectorised with a fixed order of additions.
const SIDE: usize = 16;

/// Sums `term(n)` for `n` in `0..len`.
#[inline(always)]
fn sum(len: usize, term: impl Fn(usize) -> f32) -> f32 {
    let mut side = [0.0_f32; SIDE];
    let whole = len / SIDE * SIDE;
    for start in (0..whole).step_by(SIDE) {
        for (n, side) in side.iter_mut().enumerate() {
            *side += term(start + n);
        }
    }
    let rest = (whole..len).map(&term).sum::<f32>();
    side.iter().sum::<f32>() + rest
}

fn forward(
    x: &FlexTensor,
    gamma: &FlexTensor,
    beta: &FlexTensor,
    kind: Kind,
) -> (FlexTensor, Vec<Row>) {
    let (input, gamma, beta) = (numbers(x), numbers(gamma), numbers(beta));
    let width = gamma.len();
    let mut output = vec![0.0; input.len()];
    let mut kept = vec![Row::default(); input.len() / width];
    let rows = rows_of_piece(width);
    in_pieces(
        output
            .par_chunks_mut(rows * width)
            .zip(input.par_chunks(rows * width))
            .zip(kept.par_chunks_mut(rows)),
        #[inline(always)]
        |((output, input), kept)| {
            let rows = output.chunks_exact_mut(width).zip(input.chunks_exact(width)).zip(kept);
            for ((output, x), kept) in rows {
                let (x, output) = (&x[..width], &mut output[..width]);
                let mean = if kind.centred { sum(width, |n| x[n]) / width as f32 } else { 0.0 };
                let variance = sum(width, |n| (x[n] - mean) * (x[n] - mean)) / width as f32;
                let inverse = 1.0 / (variance + kind.epsilon).sqrt();
                *kept = Row { mean, inverse };
                if kind.centred {
                    for n in 0..width {
                        output[n] = (x[n] - mean) * inverse * gamma[n] + beta[n];
                    }
                } else {
                    for n in 0..width {
                        output[n] = x[n] * inverse * gamma[n];
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
    let rows = rows_of_piece(width);
    let mut output = vec![0.0; input.len()];
    let pieces = state.rows.len().div_ceil(rows);
    let mut sums = vec![0.0; pieces * 2 * width];
    in_pieces(
        output
            .par_chunks_mut(rows * width)
            .zip(input.par_chunks(rows * width))
            .zip(upstream.par_chunks(rows * width))
            .zip(state.rows.par_chunks(rows))
            .zip(sums.par_chunks_mut(2 * width)),
        #[inline(always)]
        |((((output, input), upstream), kept), sums)| {
            let (d_gamma, d_beta) = sums.split_at_mut(width);
            let (d_gamma, d_beta) = (&mut d_gamma[..width], &mut d_beta[..width]);
            let rows = output
                .chunks_exact_mut(width)
                .zip(input.chunks_exact(width))
                .zip(upstream.chunks_exact(width))
                .zip(kept);
            for (((output, x), upstream), row) in rows {
                let (output, x, upstream) = (&mut output[..width], &x[..width], &upstream[..width]);
                let unit = |n: usize| (x[n] - row.mean) * row.inverse;
                let along = sum(width, |n| upstream[n] * gamma[n] * unit(n)) / width as f32;
                let shift = if state.centred {
                    sum(width, |n| upstream[n] * gamma[n]) / width as f32
                } else {
                    0.0
                };
                for n in 0..width {
                    let unit = unit(n);
                    output[n] = row.inverse * (upstream[n] * gamma[n] - shift - unit * along);
                    d_gamma[n] += upstream[n] * unit;
                    d_beta[n] += upstream[n];
                }
            }
        },
    );
    let total = |offset: usize| {
        let mut total = vec![0.0; width];
        for piece in sums.chunks(2 * width) {
            for (total, value) in total.iter_mut().zip(&piece[offset..]) {
                *total += value;
            }
        }
        contiguous(total, Shape::from([width]))
    };
    let d_x = contiguous(output, state.x.layout().shape().clone());
    [Some(d_x), Some(total(0)), state.centred.then(|| total(width))]
}
