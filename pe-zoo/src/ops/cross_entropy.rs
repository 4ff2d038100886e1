//! Cross-entropy in one pass over the logits, without the log-probabilities of labels that are not asked for.

use burn::backend::flex::FlexTensor;
use burn::tensor::Shape;
use rayon::prelude::*;

use super::row_product::SIDE;
use crate::kernels::cpu::operation::Operation;
use crate::kernels::cpu::parallel::{in_pieces, rows_of_piece};
use crate::kernels::cpu::tensors::{contiguous, dense, last_axis, numbers, whole};
use crate::kernels::cpu::view::{Start, in_new_memory};
use crate::math::lanes;

/// Negative log-likelihood of one label a row.
#[derive(Debug, Clone)]
pub(super) struct CrossEntropy {
    /// Label of each row.
    pub(super) labels: Vec<usize>,
}

impl Operation<1> for CrossEntropy {
    /// Logits, and the logarithm of each row's sum of exponentials.
    type Kept = (FlexTensor, Vec<LogSum>);

    fn forward(&self, [logits]: [FlexTensor; 1]) -> (FlexTensor, Self::Kept) {
        let logits = dense(logits);
        let (losses, sums) = forward(&logits, &self.labels);
        (losses, (logits, sums))
    }

    fn backward(
        &self,
        (logits, sums): Self::Kept,
        grad: FlexTensor,
        _needed: [bool; 1],
    ) -> [Option<FlexTensor>; 1] {
        [Some(backward(logits, &sums, &self.labels, &dense(grad)))]
    }
}

/// Logarithm of a sum of exponentials in two parts, so that differences from it keep their digits.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct LogSum {
    largest: f32,
    /// Logarithm of the sum relative to the largest.
    rest: f32,
}

impl LogSum {
    /// Computes `ln(sum(exp(x)))` of a row. NaN propagates.
    #[inline(always)]
    fn of(row: &[f32]) -> Self {
        let (sides, rest) = row.as_chunks::<SIDE>();
        let mut side = [f32::NEG_INFINITY; SIDE];
        for logits in sides {
            for n in 0..SIDE {
                side[n] = side[n].max(logits[n]);
            }
        }
        let largest = side.iter().chain(rest).copied().fold(f32::NEG_INFINITY, f32::max);
        let mut side = [0.0; SIDE];
        for logits in sides {
            for n in 0..SIDE {
                side[n] += lanes::weight(logits[n] - largest);
            }
        }
        let rest = rest.iter().map(|logit| lanes::weight(logit - largest)).sum::<f32>();
        Self { largest, rest: lanes::ln(side.iter().sum::<f32>() + rest) }
    }

    #[inline(always)]
    fn log_probability(self, logit: f32) -> f32 {
        (logit - self.largest) - self.rest
    }
}

fn forward(logits: &FlexTensor, labels: &[usize]) -> (FlexTensor, Vec<LogSum>) {
    let (width, rows) = (last_axis(logits), rows_of_piece(last_axis(logits)));
    let mut sums = vec![LogSum::default(); labels.len()];
    let inputs = numbers(logits).par_chunks(rows * width).zip(labels.par_chunks(rows));
    let losses = in_new_memory(
        labels.len(),
        rows,
        Start::Zeros,
        inputs.zip(sums.par_chunks_mut(rows)),
        #[inline(always)]
        |losses, ((logits, labels), sums)| {
            let of_rows = logits.chunks_exact(width).zip(labels).zip(sums);
            for (loss, ((logits, label), sum)) in losses.iter_mut().zip(of_rows) {
                *sum = LogSum::of(logits);
                *loss = -sum.log_probability(logits[*label]);
            }
        },
    );
    (contiguous(losses, Shape::new([labels.len()])), sums)
}

/// Computes `grad (softmax(logits) - 1 at the label)`, in place where the memory of the logits is not shared.
fn backward(
    logits: FlexTensor,
    sums: &[LogSum],
    labels: &[usize],
    grad: &FlexTensor,
) -> FlexTensor {
    let (width, mut found) = (last_axis(&logits), whole(logits));
    let rows = rows_of_piece(width);
    let of_rows = labels.par_chunks(rows).zip(sums.par_chunks(rows));
    let inputs = of_rows.zip(numbers(grad).par_chunks(rows));
    in_pieces(
        found.storage_mut::<f32>().par_chunks_mut(rows * width).zip(inputs),
        #[inline(always)]
        |(found, ((labels, sums), grads))| {
            let of_rows = labels.iter().zip(sums).zip(grads);
            for (row, ((label, sum), grad)) in found.chunks_exact_mut(width).zip(of_rows) {
                for logit in &mut *row {
                    *logit = lanes::weight(sum.log_probability(*logit)) * grad;
                }
                row[*label] -= grad;
            }
        },
    );
    found
}
