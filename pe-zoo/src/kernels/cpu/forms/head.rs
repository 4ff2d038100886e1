//! The forms of one head: its operands, its gradients, and what they do in a block.

use super::{curve, maps, mixer, price, steps};
use crate::kernels::cpu::form_scratch::FormScratch;
use crate::kernels::cpu::form_views::{Base, Curve, FormHead};
use crate::kernels::cpu::problem::{Block, Head};
use crate::kernels::cpu::view::{Matrix, MatrixMut, Shape};
use crate::kernels::forms::FormSums;
use crate::math::lanes::Lanes;

impl FormHead<'_> {
    /// Adds to the logits, `[column][row]`; leaves in `s` what the gradient needs.
    #[inline(always)]
    pub(in crate::kernels::cpu) fn add<const R: usize>(
        &self,
        head: &Head<'_>,
        block: &Block<R>,
        s: &mut FormScratch<R>,
        logits: &mut [Lanes<R>],
    ) {
        if let Some(curve) = &self.curve {
            curve::add(head, curve, block, &mut s.unrolled, logits);
        }
        if let Some(price) = &self.price {
            price::add(head, price, block, logits);
        }
        if let Some(steps) = &self.steps {
            steps::add(steps, block, &mut s.steps, logits);
        }
        if let Some(start) = s.added_at {
            for (logits, added) in logits[..block.columns].iter_mut().zip(&s.mixer.added[start..]) {
                for r in 0..R {
                    logits[r] += added[r];
                }
            }
        }
    }

    /// Adds the gradients of the operands from those of the logits, whose sum [`add`](Self::add) has
    /// just been made for this block.
    #[inline(always)]
    pub(in crate::kernels::cpu) fn backward<const R: usize>(
        &self,
        head: &Head<'_>,
        block: &Block<R>,
        s: &mut FormScratch<R>,
        logit_grads: &[Lanes<R>],
        grads: &mut FormGrads<'_>,
    ) {
        if let (Some(curve), Some(grads)) = (&self.curve, &mut grads.curve) {
            let (unrolled, sums) = (&mut s.unrolled, &mut s.sums);
            curve::backward(head, curve, block, unrolled, sums, logit_grads, grads);
        }
        if let Some(grads) = &mut grads.price {
            price::backward(head, block, logit_grads, grads);
        }
        if let (Some(steps), Some(grads)) = (&self.steps, &mut grads.steps) {
            steps::backward(steps, block, &mut s.steps, logit_grads, grads);
        }
        if let Some(start) = s.added_at {
            let n = block.columns;
            s.mixer.added[start..start + n].copy_from_slice(&logit_grads[..n]);
        }
    }
}

/// Gradients of the forms of one head, added to by every block.
#[derive(Debug)]
pub(in crate::kernels::cpu) struct FormGrads<'a> {
    curve: Option<curve::Grads<'a>>,
    price: Option<price::Grads<'a>>,
    steps: Option<steps::Grads<'a>>,
    pub(in crate::kernels::cpu) maps: Option<maps::Grads<'a>>,
    pub(in crate::kernels::cpu) mixer: Option<mixer::Grads<'a>>,
}

/// A gradient of the size of an operand.
fn writable<'a>(data: &'a mut Vec<f32>, like: Matrix<'_>) -> MatrixMut<'a> {
    let Shape { rows, columns, .. } = like.shape();
    data.resize(rows * columns, 0.0);
    MatrixMut::new(data, Shape::dense(rows, columns))
}

fn curve_grads<'a>(
    [lines, distances, rows]: [&'a mut Vec<f32>; 3],
    like: &Curve<'_>,
) -> curve::Grads<'a> {
    curve::Grads {
        lines: writable(lines, like.lines),
        distances: writable(distances, like.distances),
        rows: writable(rows, like.rows),
    }
}

impl FormSums {
    /// Where a task adds the gradients of one head.
    pub(in crate::kernels::cpu) fn grads<'a>(&'a mut self, head: &FormHead<'_>) -> FormGrads<'a> {
        FormGrads {
            curve: head.curve.map(|curve| {
                let sums = [&mut self.curve_lines, &mut self.curve_distances, &mut self.curve_rows];
                curve_grads(sums, &curve)
            }),
            price: head.price.map(|price| price::Grads {
                keys: price.keys.map(|keys| writable(&mut self.price_keys, keys)),
                queries: price.queries.map(|queries| writable(&mut self.price_queries, queries)),
            }),
            steps: head.steps.map(|steps| {
                self.step_slopes.resize(1, 0.0);
                steps::Grads {
                    queries: writable(&mut self.step_queries, steps.queries),
                    keys: writable(&mut self.step_keys, steps.keys),
                    slope: &mut self.step_slopes[0],
                }
            }),
            maps: head.maps.map(|maps| maps::Grads {
                directions: writable(&mut self.directions, maps.directions),
                chunks: writable(&mut self.chunk_maps, maps.chunks),
            }),
            mixer: head.mixer.map(|mixer| mixer::Grads {
                inner: writable(&mut self.mixer_inner, mixer.inner),
                inner_bias: writable(&mut self.mixer_inner_bias, mixer.inner_bias),
                outer: writable(&mut self.mixer_outer, mixer.outer),
                outer_bias: writable(&mut self.mixer_outer_bias, mixer.outer_bias),
                base: mixer.base.map(|base| match base {
                    Base::Table(table) => {
                        mixer::BaseGrads::Table(writable(&mut self.base_table, table))
                    }
                    Base::Curve(curve) => {
                        let sums =
                            [&mut self.base_lines, &mut self.base_distances, &mut self.base_rows];
                        mixer::BaseGrads::Curve(curve_grads(sums, &curve))
                    }
                }),
            }),
        }
    }
}
