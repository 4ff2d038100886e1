//! Pair terms together with their tensors, as engines use them.

use std::fmt;
use std::sync::Arc;

use burn::tensor::Tensor;

#[cfg(feature = "flex")]
use super::block::{TermBlock, TermGrads, apply, backward};
#[cfg(feature = "cube")]
use super::expression::TracedTerm;
use super::graph::Graph;
use super::number::Number;
use super::pair::{Pair, PairTerm};
#[cfg(any(feature = "flex", feature = "cube"))]
use super::tensors::{TensorMap, TokenAxes};
use crate::Positions;
#[cfg(feature = "flex")]
use crate::math::lanes::{NARROW, WIDE};
#[cfg(feature = "flex")]
use crate::math::simd;

/// [`PairTerm`] with its parameters and token state.
#[derive(Clone)]
pub struct Term {
    kernel: Arc<dyn TermKernel>,
    head_params: Option<Tensor<2>>,
    token_state: Option<Tensor<4>>,
}

impl Term {
    /// Creates a term. Set parameters and state afterwards if it has any.
    pub fn new<T: PairTerm<P, K>, const P: usize, const K: usize>(term: T) -> Self {
        Self { kernel: Arc::new(Erased::<T, P, K>(term)), head_params: None, token_state: None }
    }

    /// Sets the parameters of the heads, `[H, P]`.
    ///
    /// # Panics
    /// If the term has another number of parameters.
    #[must_use]
    pub fn head_params(self, params: Tensor<2>) -> Self {
        let expected = self.kernel.sizes().params;
        let [_heads, given] = params.dims();
        assert_eq!(given, expected, "parameters of a head: last axis of `head_params`");
        Self { head_params: Some(params), ..self }
    }

    /// Sets the state of the tokens, `[B, H, S, K]`; state that is summed along the sequence must
    /// already be summed.
    ///
    /// # Panics
    ///
    /// If the term has another number of values of state.
    #[must_use]
    pub fn token_state(self, state: Tensor<4>) -> Self {
        let expected = self.kernel.sizes().state;
        let [_batch, _heads, _tokens, given] = state.dims();
        assert_eq!(given, expected, "state of a token: last axis of `token_state`");
        Self { token_state: Some(state), ..self }
    }

    /// Returns parameters and state; `None` for inputs that the term does not have.
    ///
    /// # Panics
    ///
    /// If one of its inputs was not set.
    pub(crate) fn tensors(&self) -> (Option<&Tensor<2>>, Option<&Tensor<4>>) {
        let TermSizes { params, state } = self.kernel.sizes();
        assert!(params == 0 || self.head_params.is_some(), "`head_params` of a term is not set");
        assert!(state == 0 || self.token_state.is_some(), "`token_state` of a term is not set");
        let params = self.head_params.as_ref().filter(|_| params > 0);
        (params, self.token_state.as_ref().filter(|_| state > 0))
    }

    /// Returns the same term of other tensors.
    #[cfg(any(feature = "flex", feature = "cube"))]
    pub(super) fn map_tensors(&self, f: &mut impl TensorMap) -> Self {
        let Self { kernel, head_params, token_state } = self;
        Self {
            kernel: Arc::clone(kernel),
            head_params: head_params.as_ref().map(|params| f.param(params)),
            token_state: token_state.as_ref().map(|state| f.map(state, TokenAxes::COLUMNS)),
        }
    }

    #[cfg(any(feature = "flex", feature = "cube"))]
    pub(crate) fn kernel(&self) -> &Arc<dyn TermKernel> {
        &self.kernel
    }

    /// Computes the values of all pairs from their content logits, both `[B, H, T, S]`, with tensor
    /// operations.
    pub(crate) fn values(&self, content: Tensor<4>, at: &Positions) -> Tensor<4> {
        let (params, state) = self.tensors();
        let (dtype, device) = (content.dtype(), content.device());
        let distance = at.float_distances(&device).unsqueeze::<4>().cast(dtype);
        self.kernel.values(content, distance, params, state, at.first_row())
    }
}

impl fmt::Debug for Term {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Term").field("term", &self.kernel).finish_non_exhaustive()
    }
}

/// Numbers of values that a term reads, or their offsets among the values of all terms.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct TermSizes {
    /// Parameters of a head.
    pub(crate) params: usize,
    /// Values of a token's state.
    pub(crate) state: usize,
}

/// Type-erased pair term that operates on whole blocks. The implementation is generic and thus
/// compiled in the crate of the term's author, with the function inlined.
pub(crate) trait TermKernel: Send + Sync + fmt::Debug {
    /// Returns the numbers of values that the term reads.
    fn sizes(&self) -> TermSizes;

    /// Computes [`Term::values`]; `distance` is `[1, 1, T, S]`.
    fn values(
        &self,
        content: Tensor<4>,
        distance: Tensor<4>,
        params: Option<&Tensor<2>>,
        state: Option<&Tensor<4>>,
        first_row: usize,
    ) -> Tensor<4>;

    /// Returns the function as an expression.
    #[cfg(feature = "cube")]
    fn traced(&self) -> &'static TracedTerm;

    /// Replaces content logits, `[column][lane]`, by values.
    #[cfg(feature = "flex")]
    fn apply(&self, block: &TermBlock<'_>, logits: &mut [f32]);

    /// Replaces gradients of values, `[column][lane]`, by those of the content logits.
    #[cfg(feature = "flex")]
    fn backward(
        &self,
        block: &TermBlock<'_>,
        content: &[f32],
        logit_grads: &mut [f32],
        grads: TermGrads<'_>,
    );
}

struct Erased<T, const P: usize, const K: usize>(T);

impl<T, const P: usize, const K: usize> fmt::Debug for Erased<T, P, K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(std::any::type_name::<T>())
    }
}

impl<T: PairTerm<P, K>, const P: usize, const K: usize> TermKernel for Erased<T, P, K> {
    fn sizes(&self) -> TermSizes {
        TermSizes { params: P, state: K }
    }

    fn values(
        &self,
        content: Tensor<4>,
        distance: Tensor<4>,
        params: Option<&Tensor<2>>,
        state: Option<&Tensor<4>>,
        first_row: usize,
    ) -> Tensor<4> {
        let shape = content.dims();
        let graph = Graph::like(&content);
        let dtype = content.dtype();
        // With as many tensors as inputs: a term without parameters reads none.
        let param = |p: usize| match params {
            Some(params) => {
                let [heads, _params] = params.dims();
                let one = params.clone().slice_dim(1, p..p + 1).cast(dtype);
                graph.node(one.reshape([1, heads, 1, 1]))
            }
            None => Number::constant(f64::NAN),
        };
        let of_token = |k: usize, row: bool| match state {
            Some(state) => {
                let [_batch, _heads, columns, _state] = state.dims();
                let one = state.clone().slice_dim(3, k..k + 1).cast(dtype);
                graph.node(if row {
                    one.slice_dim(2, first_row..columns)
                } else {
                    one.swap_dims(2, 3)
                })
            }
            None => Number::constant(f64::NAN),
        };
        let value = self.0.value(Pair {
            content: graph.node(content),
            distance: graph.node(distance),
            params: std::array::from_fn(param),
            row: std::array::from_fn(|k| of_token(k, true)),
            column: std::array::from_fn(|k| of_token(k, false)),
        });
        graph.tensor(value).expand(shape)
    }

    #[cfg(feature = "cube")]
    fn traced(&self) -> &'static TracedTerm {
        TracedTerm::new(&self.0).interned()
    }

    #[cfg(feature = "flex")]
    fn apply(&self, block: &TermBlock<'_>, logits: &mut [f32]) {
        match block.rows.len() {
            NARROW => simd::dispatch(
                #[inline(always)]
                || apply::<T, NARROW, P, K>(&self.0, block, logits),
            ),
            _ => simd::dispatch(
                #[inline(always)]
                || apply::<T, WIDE, P, K>(&self.0, block, logits),
            ),
        }
    }

    #[cfg(feature = "flex")]
    fn backward(
        &self,
        block: &TermBlock<'_>,
        content: &[f32],
        logit_grads: &mut [f32],
        mut grads: TermGrads<'_>,
    ) {
        match block.rows.len() {
            NARROW => simd::dispatch(
                #[inline(always)]
                || backward::<T, NARROW, P, K>(&self.0, block, content, logit_grads, &mut grads),
            ),
            _ => simd::dispatch(
                #[inline(always)]
                || backward::<T, WIDE, P, K>(&self.0, block, content, logit_grads, &mut grads),
            ),
        }
    }
}
