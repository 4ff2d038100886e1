//! The tensors of one attention.

use burn::backend::tensor::FloatTensor;
use burn::backend::{Backend, ExtensionType, TensorMetadata};

use super::forms::{FORMS, Forms};

/// Number of operands.
pub(crate) const OPERANDS: usize = PLAIN + FORMS;

/// Number of operands but those of the forms.
const PLAIN: usize = 13;

/// The operands; one that is absent has no element.
#[derive(Debug, Clone, ExtensionType)]
pub(crate) struct Operands<B: Backend> {
    /// Queries, `[B, H, T, D]`.
    pub q: FloatTensor<B>,
    /// Keys, `[B, H, S, D]`.
    pub k: FloatTensor<B>,
    /// What is mixed, `[B, H, S, E]`.
    pub values: FloatTensor<B>,
    /// `[H]`.
    pub slopes: FloatTensor<B>,
    /// `[H, N]`, whose last entry goes on for ever.
    pub distance: FloatTensor<B>,
    /// `[D, N]`, whose last entry goes on for ever; for the GPU its products with the queries,
    /// `[B, H, T, N]`.
    pub query_distance: FloatTensor<B>,
    /// Running sums, `[B, H, S]`.
    pub decay: FloatTensor<B>,
    /// More running sums, `[B, H, S]`, kept apart so that small ones keep their digits.
    pub decay_residual: FloatTensor<B>,
    /// Keys of the gates, `[B, H, S, D]`.
    pub gate_keys: FloatTensor<B>,
    /// Table of the contextual positions, `[D, N]`, or a perceptron's second layer, `[D, N + 1]`;
    /// for the GPU their products with the queries.
    pub table: FloatTensor<B>,
    /// Weights and biases of a perceptron's hidden layer, `[2, N]`.
    pub hidden: FloatTensor<B>,
    /// Slopes of the contextual positions, `[H]`.
    pub contextual_slopes: FloatTensor<B>,
    /// `[B, H, T, S]`.
    pub dense: FloatTensor<B>,
    /// Those of the forms.
    #[extension_type]
    pub forms: Forms<B>,
}

impl<B: Backend> Operands<B> {
    /// In the order of the fields.
    pub(crate) fn into_array(self) -> [FloatTensor<B>; OPERANDS] {
        let plain: [_; PLAIN] = [
            self.q,
            self.k,
            self.values,
            self.slopes,
            self.distance,
            self.query_distance,
            self.decay,
            self.decay_residual,
            self.gate_keys,
            self.table,
            self.hidden,
            self.contextual_slopes,
            self.dense,
        ];
        let mut all = plain.into_iter().chain(self.forms.into_array());
        std::array::from_fn(|_| all.next().expect("as many as there are"))
    }

    /// From the order of the fields.
    pub(crate) fn from_array(array: [FloatTensor<B>; OPERANDS]) -> Self {
        let [
            q,
            k,
            values,
            slopes,
            distance,
            query_distance,
            decay,
            decay_residual,
            gate_keys,
            table,
            hidden,
            contextual_slopes,
            dense,
            forms @ ..,
        ] = array;
        Self {
            q,
            k,
            values,
            slopes,
            distance,
            query_distance,
            decay,
            decay_residual,
            gate_keys,
            table,
            hidden,
            contextual_slopes,
            dense,
            forms: Forms::from_array(forms),
        }
    }
}

/// Sizes of one attention.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sizes {
    pub(crate) batch: usize,
    pub(crate) heads: usize,
    pub(crate) rows: usize,
    pub(crate) columns: usize,
    pub(crate) head_dim: usize,
    pub(crate) value_dim: usize,
}

impl<B: Backend> Operands<B> {
    pub(crate) fn sizes(&self) -> Sizes {
        let (q, values) = (self.q.shape(), self.values.shape());
        Sizes {
            batch: q[0],
            heads: q[1],
            rows: q[2],
            columns: values[2],
            head_dim: q[3],
            value_dim: values[3],
        }
    }
}
