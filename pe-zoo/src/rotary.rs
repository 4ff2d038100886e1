//! Shared parts of the rotary encodings: tables of angles, scaled frequencies, checks.

mod scaling;
mod spectrum;
#[cfg(test)]
mod tests;

pub use crate::ops::Pairs;
pub use scaling::{Llama3, LongRope, ORIGINAL_LENGTH, PartNtk, Scaling, Yarn};
pub use spectrum::Spectrum;

use burn::tensor::{Device, Tensor, TensorData};

use crate::{PeError, Positions, ops};

/// Rotation of channel pairs, `(a, b) -> (a cos - b sin, a sin + b cos)`, by column.
///
/// `cos` and `sin` need not belong to one angle: an encoding may scale or mix them.
#[derive(Debug, Clone)]
pub struct Rotation(Waves);

#[derive(Debug, Clone)]
enum Waves {
    /// Constant cosines and sines, `[S sets, R / 2]`, one set for all heads or one per head; the
    /// first `R` channels of a head are rotated.
    Fixed { cos: Tensor<2>, sin: Tensor<2>, pairs: Pairs, sets: usize },
    /// Angles with gradients, `[1 or B, 1 or H, S, R / 2]`; the first `R` channels of a head are rotated.
    Learned { angles: Tensor<4>, pairs: Pairs },
}

impl Rotation {
    /// Tabulates cosines and sines on the host in f64. `turn` maps a position and a pair to the
    /// angle of the rotation and the factor of its cosine and sine.
    pub fn tabulate(
        at: &Positions,
        pairs: Pairs,
        count: usize,
        device: &Device,
        turn: impl Fn(usize, usize) -> (f64, f64),
    ) -> Self {
        let columns = at.cols().len();
        let (sin, cos): (Vec<f32>, Vec<f32>) = at
            .cols()
            .iter()
            .flat_map(|position| (0..count).map(|m| turn(*position, m)))
            .map(|(angle, magnitude)| {
                ((angle.sin() * magnitude) as f32, (angle.cos() * magnitude) as f32)
            })
            .unzip();
        let table = |values| Tensor::from_data(TensorData::new(values, [columns, count]), device);
        Self(Waves::Fixed { cos: table(cos), sin: table(sin), pairs, sets: 1 })
    }

    /// Creates a rotation from constant cosines and sines of each head, `[S, H, pairs]`,
    /// half-split.
    pub fn of_heads(cos: Tensor<3>, sin: Tensor<3>) -> Self {
        let [columns, heads, count] = cos.dims();
        let flat = |wave: Tensor<3>| wave.reshape([columns * heads, count]);
        let (cos, sin) = (flat(cos), flat(sin));
        Self(Waves::Fixed { cos, sin, pairs: Pairs::HalfSplit, sets: heads })
    }

    /// Creates a rotation of half-split pairs from angles with gradients, `[1 or B, 1 or H, S, R / 2]`.
    pub fn by_angles(angles: Tensor<4>) -> Self {
        Self::of_pairs_by_angles(angles, Pairs::HalfSplit)
    }

    /// As [`by_angles`](Self::by_angles), of pairs in another layout.
    pub(crate) fn of_pairs_by_angles(angles: Tensor<4>, pairs: Pairs) -> Self {
        Self(Waves::Learned { angles, pairs })
    }

    /// Returns the part of the rotation that belongs to the rows.
    #[must_use]
    pub fn rows(&self, at: &Positions) -> Self {
        let (first, columns) = (at.first_row(), at.cols().len());
        if first == 0 {
            return self.clone();
        }
        Self(match &self.0 {
            Waves::Fixed { cos, sin, pairs, sets } => {
                let part =
                    |wave: &Tensor<2>| wave.clone().slice_dim(0, first * sets..columns * sets);
                Waves::Fixed { cos: part(cos), sin: part(sin), pairs: *pairs, sets: *sets }
            }
            Waves::Learned { angles, pairs } => {
                let angles = angles.clone().slice_dim(2, first..columns);
                Waves::Learned { angles, pairs: *pairs }
            }
        })
    }

    /// Rotates `u`, `[B, H, S, D]`; channels past the first `R` stay unchanged.
    pub fn turn(&self, u: Tensor<4>) -> Tensor<4> {
        match &self.0 {
            Waves::Fixed { cos, sin, pairs, sets } => {
                turn_fixed(u, cos.clone(), sin.clone(), *pairs, *sets)
            }
            Waves::Learned { angles, pairs } => turn_by_angles(u, angles.clone(), *pairs),
        }
    }

    /// Rotates queries as rows and keys as columns.
    pub fn turn_both(&self, q: Tensor<4>, k: Tensor<4>, at: &Positions) -> (Tensor<4>, Tensor<4>) {
        (self.rows(at).turn(q), self.turn(k))
    }
}

fn turn_by_angles(u: Tensor<4>, angles: Tensor<4>, pairs: Pairs) -> Tensor<4> {
    let [batch, heads, tokens, head_dim] = u.dims();
    let [_batch, _heads, _tokens, count] = angles.dims();
    let turning = 2 * count;
    if turning < head_dim {
        let rest = u.clone().slice_dim(3, turning..head_dim);
        let rotated = turn_by_angles(u.slice_dim(3, 0..turning), angles, pairs);
        return Tensor::cat(vec![rotated, rest], 3);
    }
    match pairs {
        Pairs::HalfSplit => ops::turn_by_angles(u, angles),
        Pairs::Interleaved => {
            let regrouped = |u: Tensor<4>, [outer, inner]: [usize; 2]| {
                let grouped = u.reshape([batch, heads, tokens, outer, inner]).swap_dims(3, 4);
                grouped.reshape([batch, heads, tokens, head_dim])
            };
            let rotated = ops::turn_by_angles(regrouped(u, [count, 2]), angles);
            regrouped(rotated, [2, count])
        }
    }
}

fn turn_fixed(
    u: Tensor<4>,
    cos: Tensor<2>,
    sin: Tensor<2>,
    pairs: Pairs,
    sets: usize,
) -> Tensor<4> {
    let [batch, heads, tokens, head_dim] = u.dims();
    let [_rows, count] = cos.dims();
    let turning = 2 * count;
    if turning < head_dim {
        let rest = u.clone().slice_dim(3, turning..head_dim);
        let rotated = turn_fixed(u.slice_dim(3, 0..turning), cos, sin, pairs, sets);
        return Tensor::cat(vec![rotated, rest], 3);
    }
    if sets == 1 {
        return ops::rotate(u, cos, sin, pairs);
    }
    // Heads are adjacent in each token: each (token, head) is a row of the tables.
    let rows = u.swap_dims(1, 2).reshape([batch, 1, tokens * heads, head_dim]);
    let rotated = ops::rotate(rows, cos, sin, pairs);
    rotated.reshape([batch, tokens, heads, head_dim]).swap_dims(1, 2)
}

/// Refuses an odd number of channels per head.
pub(crate) fn check_pairs(pe: &str, head_dim: usize) -> Result<(), PeError> {
    let usable = head_dim > 0 && head_dim.is_multiple_of(2);
    let expected = "an even number; channels are rotated in pairs (head_dim = width / heads)";
    PeError::require(usable, pe, "model.head_dim", head_dim, expected)
}
