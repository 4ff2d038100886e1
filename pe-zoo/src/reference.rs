//! Scalar f64 loops straight from each paper's equation: the truth that the engines are tested against.
//!
//! Nothing here is fast and nothing here is shared with the tensor code.

pub mod alibi;
pub mod attention;
pub mod cope;
pub mod learned_absolute;
pub mod relative;
pub mod rope;
pub mod score;
pub mod sinusoidal;

use burn::module::Param;
use burn::tensor::Tensor;

/// One sequence: `[token][channel]`.
pub type Tokens = Vec<Vec<f64>>;

/// Per head: `[head][row][..]`; for logits, the columns that the row may see.
pub type Heads = Vec<Vec<Vec<f64>>>;

/// What a logit is made of, for one sequence.
#[derive(Debug, Clone)]
pub struct ScalarInput {
    /// Index of the layer.
    pub layer: usize,
    /// Queries, `[head][row][D]`.
    pub q: Heads,
    /// Keys, `[head][column][D]`.
    pub k: Heads,
    /// Values, `[head][column][D]`.
    pub v: Heads,
    /// The layer's normalised input, `[column][C]`.
    pub x: Tokens,
    /// Positions of the columns.
    pub positions: Vec<usize>,
    /// Index among the columns of the first row.
    pub first_row: usize,
}

impl ScalarInput {
    /// Width of one head.
    pub fn head_dim(&self) -> usize {
        self.q[0][0].len()
    }

    /// Fills `[head][row][column]` for the columns that each row may see; `logit` gets head, row,
    /// the row's index among the columns, and the column.
    pub fn map(&self, mut logit: impl FnMut(usize, usize, usize, usize) -> f64) -> Heads {
        (0..self.q.len())
            .map(|h| {
                (0..self.q[h].len())
                    .map(|row| {
                        let i = self.first_row + row;
                        (0..=i).map(|j| logit(h, row, i, j)).collect()
                    })
                    .collect()
            })
            .collect()
    }

    /// `q_i . k_j`.
    pub fn content(&self, h: usize, row: usize, j: usize) -> f64 {
        dot(&self.q[h][row], &self.k[h][j])
    }

    /// Distance between the positions of columns `i` and `j`.
    pub fn distance(&self, i: usize, j: usize) -> usize {
        self.positions[i] - self.positions[j]
    }
}

/// How an encoding looks in scalar f64. The defaults are those of an encoding that does nothing.
pub trait ScalarReference {
    /// Token embeddings with the encoding added, at the given positions.
    fn scalar_embed(&self, x: &Tokens, _positions: &[usize]) -> Tokens {
        x.clone()
    }

    /// The problem with its queries and keys changed as `transform_qk` changes them, for the
    /// encodings beside it that look at them.
    fn scalar_transformed(&self, input: &ScalarInput) -> ScalarInput {
        input.clone()
    }

    /// The logits before the softmax.
    fn scalar_logits(&self, input: &ScalarInput) -> Heads {
        let scale = 1.0 / (input.head_dim() as f64).sqrt();
        input.map(|h, row, _i, j| input.content(h, row, j) * scale)
    }

    /// The attention weights, for encodings that replace the softmax; the default is the softmax
    /// of [`scalar_logits`](Self::scalar_logits).
    fn scalar_weights(&self, input: &ScalarInput) -> Heads {
        attention::softmax(&self.scalar_logits(input))
    }
}

/// Dot product.
pub fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(x, y)| x * y).sum()
}

/// A learned table as `[row][column]` in f64.
///
/// # Panics
/// If the tensor cannot be read back as f32.
pub fn table_f64(table: &Param<Tensor<2>>) -> Tokens {
    let table = table.val();
    let [_rows, columns] = table.dims();
    let values = table.into_data().convert::<f64>().try_into_vec::<f64>().expect("a float table");
    values.chunks(columns).map(<[f64]>::to_vec).collect()
}
