//! Scalar f64 loops written straight from each paper's equations: the reference that the engines
//! are tested against.
//!
//! Nothing here is fast and nothing here is shared with the tensor code.

pub mod absolute;
pub mod attention;
pub mod cope;
pub mod dape;
pub mod decay;
pub mod distance;
pub mod grape;
pub mod path;
pub mod relative;
pub mod rope;
pub mod rope_scaling;
pub mod tape;

use burn::module::Param;
use burn::tensor::Tensor;

/// Vectors of one sequence, `[token][channel]`.
pub type Tokens = Vec<Vec<f64>>;

/// Vectors or rows per head, `[head][row][..]`; for logits, the last axis holds the columns that
/// the row may see.
pub type Heads = Vec<Vec<Vec<f64>>>;

/// Attention problem of one layer and one sequence, in scalars.
#[derive(Debug, Clone)]
pub struct ScalarInput {
    /// Index of the layer.
    pub layer: usize,
    /// Queries of the rows, `[head][row][D]`.
    pub q: Heads,
    /// Keys of all columns, `[head][column][D]`.
    pub k: Heads,
    /// Values of all columns, `[head][column][D]`.
    pub v: Heads,
    /// The layer's normalised input, `[column][C]`.
    pub x: Tokens,
    /// Positions of the columns, in numbers of [`unit`](Self::unit).
    pub positions: Vec<usize>,
    /// Position between two adjacent numbers; 1 for whole positions.
    pub unit: f64,
    /// Index of the first row among the columns.
    pub first_row: usize,
}

impl ScalarInput {
    /// Number of channels of one head, `D`.
    pub fn head_dim(&self) -> usize {
        // Values are used because an encoding may have widened queries and keys.
        self.v[0][0].len()
    }

    /// Computes `[head][row][column]` for the columns that each row may see. `logit` gets the head,
    /// the row, the row's index among the columns, and the column.
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

    /// Dot product of query and key, `q_i . k_j`.
    pub fn content(&self, h: usize, row: usize, j: usize) -> f64 {
        dot(&self.q[h][row], &self.k[h][j])
    }

    /// Content logits plus a bias, `q_i . k_j / sqrt(D) + bias`, for every visible pair; `bias` has
    /// the shape of the result.
    pub fn biased(&self, bias: &Heads) -> Heads {
        let root = (self.head_dim() as f64).sqrt();
        self.map(|h, row, _i, j| self.content(h, row, j) / root + bias[h][row][j])
    }

    /// Content logits `q_i . k_j / sqrt(D)` for every visible pair.
    pub fn plain(&self) -> Heads {
        let root = (self.head_dim() as f64).sqrt();
        self.map(|h, row, _i, j| self.content(h, row, j) / root)
    }

    /// Returns the problem with queries and keys replaced by the results of two functions of the
    /// head, the vector and its column.
    #[must_use]
    pub fn changed(
        &self,
        query: impl Fn(usize, &[f64], usize) -> Vec<f64>,
        key: impl Fn(usize, &[f64], usize) -> Vec<f64>,
    ) -> Self {
        let mut out = self.clone();
        for (h, head) in out.q.iter_mut().enumerate() {
            for (row, u) in head.iter_mut().enumerate() {
                *u = query(h, u, self.first_row + row);
            }
        }
        for (h, head) in out.k.iter_mut().enumerate() {
            for (column, u) in head.iter_mut().enumerate() {
                *u = key(h, u, column);
            }
        }
        out
    }

    /// Position of a column, a whole number unless positions are real.
    pub fn position(&self, column: usize) -> f64 {
        self.positions[column] as f64 * self.unit
    }

    /// Distance between the positions of columns `i` and `j`, in numbers of [`unit`](Self::unit).
    pub fn distance(&self, i: usize, j: usize) -> usize {
        self.positions[i] - self.positions[j]
    }
}

/// One layer of a stack in which tokens carry state.
#[derive(Debug, Clone)]
pub struct ScalarLayer {
    /// Attention problem of the layer.
    pub input: ScalarInput,
    /// Output of the layer's feed-forward block before the residual sum, `[column][C]`.
    pub feed_forward: Tokens,
}

/// Implementation of an encoding in scalar f64. The defaults are those of an encoding without
/// effect.
pub trait ScalarReference {
    /// Adds the encoding to the embeddings `x` of a whole sequence, given the ids and positions of
    /// its tokens.
    fn scalar_embed(&self, x: &Tokens, _ids: &[usize], _positions: &[usize]) -> Tokens {
        x.clone()
    }

    /// Returns the problem with queries and keys transformed as by `transform_qk`. An encoding that
    /// has that hook implements this method too; the testkit compares the two, except for encodings
    /// whose queries depend on later tokens
    /// ([`stretches_queries`](crate::card::Properties::stretches_queries)).
    fn scalar_transformed(&self, input: &ScalarInput) -> ScalarInput {
        input.clone()
    }

    /// Logits before the softmax, `[head][row][column]`.
    fn scalar_logits(&self, input: &ScalarInput) -> Heads {
        let scale = 1.0 / (input.head_dim() as f64).sqrt();
        input.map(|h, row, _i, j| input.content(h, row, j) * scale)
    }

    /// Logit that each head has in the denominator of its softmax besides those of the tokens; `None` if there is none.
    fn scalar_sinks(&self, _layer: usize) -> Option<Vec<f64>> {
        None
    }

    /// Attention weights of a layer from its logits, for encodings that replace the softmax; the default is the softmax with
    /// [`scalar_sinks`](Self::scalar_sinks).
    fn scalar_weights_of(&self, layer: usize, logits: &Heads) -> Heads {
        attention::softmax_beside(logits, self.scalar_sinks(layer).as_deref())
    }

    /// Attention weights: [`scalar_weights_of`](Self::scalar_weights_of) [`scalar_logits`](Self::scalar_logits).
    fn scalar_weights(&self, input: &ScalarInput) -> Heads {
        self.scalar_weights_of(input.layer, &self.scalar_logits(input))
    }

    /// Attention weights of every layer of a stack; the default is for encodings without state that
    /// is carried from layer to layer.
    fn scalar_stack(&self, layers: &[ScalarLayer]) -> Vec<Heads> {
        layers.iter().map(|layer| self.scalar_weights(&layer.input)).collect()
    }

    /// Computes [`scalar_stack`](Self::scalar_stack) in combination with another encoding, which
    /// turns the transformed problem and the logits of this encoding into weights.
    fn scalar_stack_beside(
        &self,
        layers: &[ScalarLayer],
        weigh: &dyn Fn(&ScalarInput, Heads) -> Heads,
    ) -> Vec<Heads> {
        let inputs = layers.iter().map(|layer| &layer.input);
        inputs
            .map(|input| weigh(&self.scalar_transformed(input), self.scalar_logits(input)))
            .collect()
    }

    /// Whether the gradient of a parameter equals its derivative at this value. It does not beyond
    /// a bound at which gradients pass straight through. Parameters are counted in the order in
    /// which a visitor meets them.
    fn differentiable_at(&self, _parameter: usize, _value: f64) -> bool {
        true
    }
}

/// Scalar reference of attention without a position encoding.
#[derive(Debug, Clone, Copy)]
pub(crate) struct NoEffect;

impl ScalarReference for NoEffect {}

/// Dot product of two vectors.
pub fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(x, y)| x * y).sum()
}

/// Converts a learned table to `[row][column]` in f64.
///
/// # Panics
/// If the tensor cannot be read back as f32.
pub fn table_f64(table: &Param<Tensor<2>>) -> Tokens {
    let [_rows, columns] = table.val().dims();
    values_f64(table).chunks(columns).map(<[f64]>::to_vec).collect()
}

/// Converts a learned tensor to f64 in row-major order.
///
/// # Panics
/// If the tensor cannot be read back as f32.
pub fn values_f64<const D: usize>(tensor: &Param<Tensor<D>>) -> Vec<f64> {
    tensor.val().into_data().convert::<f64>().try_into_vec::<f64>().expect("a float tensor")
}
