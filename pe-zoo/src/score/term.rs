//! Modifiers given as a function of one pair of tokens.

use std::fmt;
use std::sync::Arc;

use burn::tensor::Tensor;

#[cfg(feature = "flex")]
use super::block::{apply, backward};
use super::dual::Derivative;
use super::graph::Graph;
use super::number::Number;
use crate::Positions;
#[cfg(feature = "flex")]
use crate::math::lanes::{NARROW, WIDE};
#[cfg(feature = "flex")]
use crate::math::simd;

/// The inputs of a [`PairTerm`]: `P` parameters of the head, `K` values of state of each token.
#[derive(Debug, Clone, Copy)]
pub struct Pair<N, const P: usize, const K: usize = 0> {
    /// The content logit `q_i . k_j / sqrt(D)`, or what the term before this one made of it.
    pub content: N,
    /// Distance `i - j` from the column's position to the row's; never negative.
    pub distance: N,
    /// Parameters of the head.
    pub params: [N; P],
    /// Token state at the row.
    pub row: [N; K],
    /// Token state at the column.
    pub column: [N; K],
}

/// A modifier of attention logits given as the value of one pair.
///
/// The fused engine runs [`value`](Self::value) inside its kernel, forward and backward, without a
/// tensor of size `T x S`; see [`ScoreMod::form`](crate::ScoreMod::form) for where it does not.
/// `P` is the number of parameters of a head, `K` the number of values of state of a token.
///
/// Mark `value` `#[inline(always)]`: the kernel calls it in loops over query rows, which become SIMD
/// only if it is inlined.
///
/// ```
/// use pe_zoo::score::{Number, Pair, PairTerm, Term};
/// use pe_zoo::ScoreMod;
///
/// /// A learned temperature and a learned slope for each head.
/// #[derive(Debug, Clone)]
/// struct Tempered;
///
/// impl PairTerm<2> for Tempered {
///     #[inline(always)]
///     fn value<N: Number>(&self, pair: Pair<N, 2>) -> N {
///         let [temperature, slope] = pair.params;
///         temperature * pair.content - slope * pair.distance
///     }
/// }
///
/// let device = burn::tensor::Device::flex();
/// let params = burn::tensor::Tensor::from_floats([[1.0, 0.5], [1.0, 0.25]], &device);
/// let modifier = ScoreMod::Term(Term::new(Tempered).head_params(params));
/// # let _ = modifier;
/// ```
pub trait PairTerm<const P: usize, const K: usize = 0>: Clone + Send + Sync + 'static {
    /// The logit that takes the content logit's place.
    fn value<N: Number>(&self, pair: Pair<N, P, K>) -> N;

    /// The derivative of [`value`](Self::value) by its inputs, if its author knows a cheaper way than
    /// dual numbers. It must not be NaN or infinite at distance 0.
    #[inline(always)]
    fn derivative<N: Number>(&self, pair: Pair<N, P, K>) -> Option<Derivative<N, P, K>> {
        let _ = pair;
        None
    }
}

/// A [`PairTerm`] with its parameters and token state.
#[derive(Clone)]
pub struct Term {
    kernel: Arc<dyn TermKernel>,
    head_params: Option<Tensor<2>>,
    token_state: Option<Tensor<4>>,
}

impl Term {
    /// Makes a term; parameters and state are set afterwards if it has any.
    pub fn new<T: PairTerm<P, K>, const P: usize, const K: usize>(term: T) -> Self {
        Self { kernel: Arc::new(Erased::<T, P, K>(term)), head_params: None, token_state: None }
    }

    /// Sets the parameters of the heads, `[H, P]`.
    ///
    /// # Panics
    /// If the term has another number of parameters.
    #[must_use]
    pub fn head_params(self, params: Tensor<2>) -> Self {
        let (expected, _) = self.kernel.sizes();
        let [_heads, given] = params.dims();
        assert_eq!(given, expected, "parameters of a head: last axis of `head_params`");
        Self { head_params: Some(params), ..self }
    }

    /// Sets the state of the tokens, `[B, H, S, K]`; for sums along the sequence, already summed.
    ///
    /// # Panics
    /// If the term has another number of values of state.
    #[must_use]
    pub fn token_state(self, state: Tensor<4>) -> Self {
        let (_, expected) = self.kernel.sizes();
        let [_batch, _heads, _tokens, given] = state.dims();
        assert_eq!(given, expected, "state of a token: last axis of `token_state`");
        Self { token_state: Some(state), ..self }
    }

    /// Parameters and state, as far as the term has such inputs.
    ///
    /// # Panics
    /// If one was not set.
    pub(crate) fn tensors(&self) -> (Option<&Tensor<2>>, Option<&Tensor<4>>) {
        let (params, state) = self.kernel.sizes();
        assert!(params == 0 || self.head_params.is_some(), "`head_params` of a term is not set");
        assert!(state == 0 || self.token_state.is_some(), "`token_state` of a term is not set");
        let params = self.head_params.as_ref().filter(|_| params > 0);
        (params, self.token_state.as_ref().filter(|_| state > 0))
    }

    #[cfg(feature = "flex")]
    pub(crate) fn kernel(&self) -> &Arc<dyn TermKernel> {
        &self.kernel
    }

    /// The values of all pairs from their content logits, both `[B, H, T, S]`, as tensor operations.
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

/// One block of pairs: query rows ("lanes") by all columns that any of them sees.
#[cfg(feature = "flex")]
#[derive(Debug)]
pub(crate) struct TermBlock<'a> {
    /// Positions of the rows, `[lane]`; [`WIDE`] or [`NARROW`] of them.
    pub(crate) rows: &'a [f32],
    /// Positions of the columns.
    pub(crate) columns: &'a [f32],
    /// Parameters of the head, `[P]`.
    pub(crate) params: &'a [f32],
    /// State of the rows, `[K][lane]`.
    pub(crate) row_state: &'a [f32],
    /// State of the columns, `[column][K]`.
    pub(crate) column_state: &'a [f32],
}

/// Gradients that a block adds to, in the layout of [`TermBlock`].
#[cfg(feature = "flex")]
#[derive(Debug)]
pub(crate) struct TermGrads<'a> {
    /// `[P][lane]`.
    pub(crate) params: &'a mut [f32],
    pub(crate) row_state: &'a mut [f32],
    pub(crate) column_state: &'a mut [f32],
}

/// A term's function on whole blocks, without its type. The implementation is generic and so compiled
/// in the crate of the term's author, with the function inlined.
pub(crate) trait TermKernel: Send + Sync + fmt::Debug {
    /// Numbers of parameters of a head and of values of state of a token.
    fn sizes(&self) -> (usize, usize);

    /// As [`Term::values`]; `distance` is `[1, 1, T, S]`.
    fn values(
        &self,
        content: Tensor<4>,
        distance: Tensor<4>,
        params: Option<&Tensor<2>>,
        state: Option<&Tensor<4>>,
        first_row: usize,
    ) -> Tensor<4>;

    /// Turns content logits, `[column][lane]`, into values.
    #[cfg(feature = "flex")]
    fn apply(&self, block: &TermBlock<'_>, logits: &mut [f32]);

    /// Turns gradients of values, `[column][lane]`, into those of the content logits.
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
    fn sizes(&self) -> (usize, usize) {
        (P, K)
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
