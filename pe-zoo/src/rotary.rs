//! What the rotary encodings share: pairs of channels, tables of angles, scaled frequencies.

mod scaling;
mod spectrum;
#[cfg(test)]
mod tests;

pub use scaling::{Llama3, LongRope, Scaling, Yarn};
pub use spectrum::Spectrum;

use burn::tensor::{Device, Tensor, TensorData};
use serde::{Deserialize, Serialize};

use crate::Positions;

/// Which channels form a pair.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Layout {
    /// `(m, m + D/2)`: HuggingFace Llama, TAPE, YaRN.
    #[default]
    HalfSplit,
    /// `(2m, 2m + 1)`: RoFormer, xPos.
    Interleaved,
}

impl Layout {
    /// Channels of pair `m` of `pairs`.
    pub fn pair(self, m: usize, pairs: usize) -> (usize, usize) {
        match self {
            Self::HalfSplit => (m, m + pairs),
            Self::Interleaved => (2 * m, 2 * m + 1),
        }
    }

    /// Exchanges the two channels of every pair.
    fn swap_pairs(self, u: Tensor<4>) -> Tensor<4> {
        let [batch, heads, tokens, channels] = u.dims();
        match self {
            Self::HalfSplit => {
                let half = channels / 2;
                let first = u.clone().slice_dim(3, 0..half);
                Tensor::cat(vec![u.slice_dim(3, half..channels), first], 3)
            }
            Self::Interleaved => u
                .reshape([batch, heads, tokens * channels / 2, 2])
                .flip([3])
                .reshape([batch, heads, tokens, channels]),
        }
    }
}

/// How the columns' channels are turned: `(a, b) -> (a cos - b sin, b cos + a sin)` for each pair.
///
/// `cos` and `sin` need not be those of one angle: an encoding may stretch or mix them.
#[derive(Debug, Clone)]
pub struct Rotation {
    layout: Layout,
    /// `[1 or B, 1 or H, S, R]`; `R` is the number of channels that turn, the first of the head.
    cos: Tensor<4>,
    /// The same shape; carries the sign that each channel needs.
    sin: Tensor<4>,
}

impl Rotation {
    /// Tabulates cosines and sines on the host in f64; `turn` is given position and pair and says
    /// by which angle the pair turns and by what it is multiplied.
    pub fn tabulate(
        at: &Positions,
        layout: Layout,
        pairs: usize,
        device: &Device,
        turn: impl Fn(usize, usize) -> (f64, f64),
    ) -> Self {
        let columns = at.cols().len();
        let mut cos = vec![0.0f32; columns * 2 * pairs];
        let mut sin = cos.clone();
        for (column, position) in at.cols().iter().enumerate() {
            for m in 0..pairs {
                let (angle, magnitude) = turn(*position, m);
                let (first, second) = layout.pair(m, pairs);
                let row = column * 2 * pairs;
                let (s, c) = angle.sin_cos();
                cos[row + first] = (c * magnitude) as f32;
                cos[row + second] = (c * magnitude) as f32;
                sin[row + first] = (-s * magnitude) as f32;
                sin[row + second] = (s * magnitude) as f32;
            }
        }
        let shape = [1, 1, columns, 2 * pairs];
        Self {
            layout,
            cos: Tensor::from_data(TensorData::new(cos, shape), device),
            sin: Tensor::from_data(TensorData::new(sin, shape), device),
        }
    }

    /// From the cosines and sines of the pairs, each `[1 or B, 1 or H, S, pairs]`, half-split.
    pub fn half_split(cos: Tensor<4>, sin: Tensor<4>) -> Self {
        Self {
            layout: Layout::HalfSplit,
            cos: Tensor::cat(vec![cos.clone(), cos], 3),
            sin: Tensor::cat(vec![sin.clone().neg(), sin], 3),
        }
    }

    /// The part that belongs to the rows.
    #[must_use]
    pub fn rows(&self, at: &Positions) -> Self {
        let (first, columns) = (at.first_row(), at.cols().len());
        if first == 0 {
            return self.clone();
        }
        Self {
            layout: self.layout,
            cos: self.cos.clone().slice_dim(2, first..columns),
            sin: self.sin.clone().slice_dim(2, first..columns),
        }
    }

    /// Turns `u`, `[B, H, S, D]`; channels past the first `R` stay as they are.
    pub fn turn(&self, u: Tensor<4>) -> Tensor<4> {
        let [_batch, _heads, _columns, turning] = self.cos.dims();
        let [_batch, _heads, _tokens, head_dim] = u.dims();
        let rotate = |u: Tensor<4>| {
            u.clone() * self.cos.clone() + self.layout.swap_pairs(u) * self.sin.clone()
        };
        if turning == head_dim {
            return rotate(u);
        }
        let rest = u.clone().slice_dim(3, turning..head_dim);
        Tensor::cat(vec![rotate(u.slice_dim(3, 0..turning)), rest], 3)
    }

    /// Turns queries as rows and keys as columns.
    pub fn turn_both(&self, q: Tensor<4>, k: Tensor<4>, at: &Positions) -> (Tensor<4>, Tensor<4>) {
        (self.rows(at).turn(q), self.turn(k))
    }
}
