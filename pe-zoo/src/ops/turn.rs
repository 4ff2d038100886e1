//! Rotation of half-split channel pairs by angles or waves that have gradients, in one pass over queries or keys.

use burn::backend::flex::FlexTensor;
use burn::tensor::Shape;

use super::head_rows::{HeadRows, TokenPlace};
use super::rotate::by_token;
use crate::kernels::cpu::operation::Operation;
use crate::kernels::cpu::parallel::in_pieces;
use crate::kernels::cpu::tensors::{dims, in_order, in_token_order};
use crate::math::lanes;
use rayon::prelude::*;

/// Rotation of channel pairs, by the meaning of the tensor that determines it, `[1 or B, 1 or H, T, W]`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Turning {
    /// Angles of the pairs; `W` is `D / 2`.
    Angles,
    /// Cosines, followed by as many sines, of all channels (`W` is `2 D`) or of the pairs (`W` is `D`). They need not belong
    /// to an angle.
    Waves,
}

impl Operation<2> for Turning {
    /// The rotated tensor for angles, from which their gradient follows, for waves the tensor before the rotation; then the
    /// angles or waves.
    type Kept = [FlexTensor; 2];

    fn forward(&self, [x, by]: [FlexTensor; 2]) -> (FlexTensor, Self::Kept) {
        let by = in_order(by);
        let before = (*self == Self::Waves).then(|| x.clone());
        let output = self.output([x, by.clone()]);
        let saved = before.unwrap_or_else(|| output.clone());
        (output, [saved, by])
    }

    fn output(&self, [x, by]: [FlexTensor; 2]) -> FlexTensor {
        let head_dim = x.layout().shape()[3];
        Rotor::new(&in_order(by), *self, head_dim).forward(x)
    }

    fn backward(
        &self,
        [kept, by]: Self::Kept,
        grad: FlexTensor,
        _needed: [bool; 2],
    ) -> [Option<FlexTensor>; 2] {
        let rotor = Rotor::new(&by, *self, kept.layout().shape()[3]);
        rotor.backward(grad, &in_order(kept), by.layout().shape()).map(Some)
    }
}

/// Number of pairs that are computed together. Loops over arrays are vectorised.
const SIDE: usize = 8;

type PairRow = [f32; SIDE];

/// First and second channels of some pairs.
#[derive(Clone, Copy)]
struct PairRows<'a> {
    first: &'a PairRow,
    second: &'a PairRow,
}

/// Loads up to [`SIDE`] numbers; those missing are 0.
#[inline(always)]
fn load(from: &[f32]) -> PairRow {
    if let Some(all) = from.first_chunk() {
        return *all;
    }
    let mut side = [0.0; SIDE];
    side[..from.len()].copy_from_slice(from);
    side
}

/// Stores as many numbers as `to` holds, at most [`SIDE`].
#[inline(always)]
fn store(side: &PairRow, to: &mut [f32]) {
    match to.first_chunk_mut() {
        Some(all) => *all = *side,
        None => to.copy_from_slice(&side[..to.len()]),
    }
}

/// Cosines and sines of the first and of the second channel of some pairs.
#[derive(Clone, Copy)]
struct PairWaves {
    cos: [PairRow; 2],
    sin: [PairRow; 2],
}

/// A rotation, read from its tensor.
#[derive(Clone, Copy)]
struct Rotor<'a> {
    kind: Turning,
    rows: HeadRows<'a>,
    heads: usize,
    width: usize,
    head_dim: usize,
}

impl<'a> Rotor<'a> {
    fn new(by: &'a FlexTensor, kind: Turning, head_dim: usize) -> Self {
        let shape = by.layout().shape();
        Self { kind, rows: HeadRows::new(by), heads: shape[1], width: shape[3], head_dim }
    }

    /// Where the cosines of the second channels start, and the sines of the first and of the second channels.
    #[inline(always)]
    fn starts(&self) -> [usize; 3] {
        let (half, all) = (self.head_dim / 2, self.width / 2);
        [all - half, all, 2 * all - half]
    }

    /// Waves of the pairs from `m` on.
    #[inline(always)]
    fn waves(&self, row: &[f32], m: usize) -> PairWaves {
        let half = self.head_dim / 2;
        let count = SIDE.min(half - m);
        match self.kind {
            Turning::Angles => {
                let angles = load(&row[m..m + count]);
                let (mut cos, mut sin) = ([0.0; SIDE], [0.0; SIDE]);
                for n in 0..SIDE {
                    (cos[n], sin[n]) = lanes::cos_sin(angles[n]);
                }
                PairWaves { cos: [cos, cos], sin: [sin, sin] }
            }
            Turning::Waves => {
                let [cos_second, sin_first, sin_second] = self.starts();
                let part = |start: usize| load(&row[start + m..start + m + count]);
                PairWaves {
                    cos: [part(0), part(cos_second)],
                    sin: [part(sin_first), part(sin_second)],
                }
            }
        }
    }

    /// Calls `work` with each head and part of its pairs: head, first pair, number of pairs, waves.
    #[inline(always)]
    fn each(
        &self,
        at: TokenPlace,
        heads: usize,
        mut work: impl FnMut(usize, usize, usize, &PairWaves),
    ) {
        let half = self.head_dim / 2;
        for m in (0..half).step_by(SIDE) {
            let mut waves = self.waves(self.rows.row(at, 0), m);
            for h in 0..heads {
                if h > 0 && self.heads > 1 {
                    waves = self.waves(self.rows.row(at, h), m);
                }
                work(h, m, SIDE.min(half - m), &waves);
            }
        }
    }

    fn forward(&self, x: FlexTensor) -> FlexTensor {
        let (heads, half) = (x.layout().shape()[1], self.head_dim / 2);
        by_token(
            x,
            &mut [],
            #[inline(always)]
            |at, row, _| {
                self.each(
                    at,
                    heads,
                    #[inline(always)]
                    |h, m, count, PairWaves { cos, sin }| {
                        let (first, second) = row[h * self.head_dim..].split_at_mut(half);
                        let (first, second) = (&mut first[m..m + count], &mut second[m..m + count]);
                        let (mut a, mut b) = (load(first), load(second));
                        for n in 0..SIDE {
                            (a[n], b[n]) = (
                                a[n] * cos[0][n] - b[n] * sin[0][n],
                                b[n] * cos[1][n] + a[n] * sin[1][n],
                            );
                        }
                        store(&a, first);
                        store(&b, second);
                    },
                );
            },
        )
    }

    /// Computes the gradients of the rotated tensor and of the angles or waves, whose shape is `shape`.
    fn backward(&self, grad: FlexTensor, kept: &FlexTensor, shape: &Shape) -> [FlexTensor; 2] {
        let [batch, heads, tokens, _head_dim] = dims(&grad);
        let (half, width) = (self.head_dim / 2, self.heads * self.width);
        let kept = HeadRows::new(kept);
        let mut by_grad = vec![0.0; batch * tokens * width];
        let x_grad = by_token(
            grad,
            &mut by_grad,
            #[inline(always)]
            |at, row, beside| {
                self.each(
                    at,
                    heads,
                    #[inline(always)]
                    |h, m, count, waves| {
                        let (x, y) = kept.row(at, h).split_at(half);
                        let (x, y) = (load(&x[m..m + count]), load(&y[m..m + count]));
                        let (first, second) = row[h * self.head_dim..].split_at_mut(half);
                        let (first, second) = (&mut first[m..m + count], &mut second[m..m + count]);
                        let (mut a, mut b) = (load(first), load(second));
                        let own = &mut beside[h.min(self.heads - 1) * self.width..][..self.width];
                        let (grads, values) = (
                            PairRows { first: &a, second: &b },
                            PairRows { first: &x, second: &y },
                        );
                        self.add_wave_grads(grads, values, own, m, count);
                        let PairWaves { cos, sin } = waves;
                        for n in 0..SIDE {
                            (a[n], b[n]) = (
                                a[n] * cos[0][n] + b[n] * sin[1][n],
                                b[n] * cos[1][n] - a[n] * sin[0][n],
                            );
                        }
                        store(&a, first);
                        store(&b, second);
                    },
                );
            },
        );
        let together = if shape[0] == 1 { 1 } else { batch };
        if together < batch {
            by_grad = summed(&by_grad, tokens * width);
        }
        [x_grad, in_token_order(by_grad, [together, self.heads, tokens, self.width])]
    }

    /// Adds the gradients of the angles or waves of some pairs, from the gradients of both channels and the kept values.
    #[inline(always)]
    fn add_wave_grads(
        &self,
        PairRows { first: to_first, second: to_second }: PairRows<'_>,
        PairRows { first: x, second: y }: PairRows<'_>,
        own: &mut [f32],
        m: usize,
        count: usize,
    ) {
        let mut add = |start: usize, term: PairRow| {
            let own = &mut own[start + m..start + m + count];
            let mut sum = load(own);
            for n in 0..SIDE {
                sum[n] += term[n];
            }
            store(&sum, own);
        };
        let each = |term: fn(f32, f32) -> f32, grad: &PairRow, value: &PairRow| {
            let mut terms = [0.0; SIDE];
            for n in 0..SIDE {
                terms[n] = term(grad[n], value[n]);
            }
            terms
        };
        match self.kind {
            Turning::Angles => {
                let mut terms = [0.0; SIDE];
                for n in 0..SIDE {
                    terms[n] = to_second[n] * x[n] - to_first[n] * y[n];
                }
                add(0, terms);
            }
            Turning::Waves => {
                let [cos_second, sin_first, sin_second] = self.starts();
                add(0, each(|grad, value| grad * value, to_first, x));
                add(cos_second, each(|grad, value| grad * value, to_second, y));
                add(sin_first, each(|grad, value| -grad * value, to_first, y));
                add(sin_second, each(|grad, value| grad * value, to_second, x));
            }
        }
    }
}

/// Adds up the sequences of a batch, `len` numbers each, in their order.
pub(super) fn summed(all: &[f32], len: usize) -> Vec<f32> {
    const PIECE: usize = 1 << 14;
    let mut total = all[..len].to_vec();
    in_pieces(
        total.par_chunks_mut(PIECE).enumerate(),
        #[inline(always)]
        |(piece, total)| {
            for sequence in all.chunks_exact(len).skip(1) {
                for (total, value) in total.iter_mut().zip(&sequence[piece * PIECE..]) {
                    *total += value;
                }
            }
        },
    );
    total
}
