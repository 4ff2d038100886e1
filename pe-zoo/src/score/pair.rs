//! Modifiers of the logits given as a function of one pair of tokens.

use super::dual::{Derivative, Dual, each};
use super::number::{Number, Real};

/// Inputs of a [`PairTerm`]: `P` parameters of the head, `K` values of state of each token.
#[derive(Debug, Clone, Copy)]
pub struct Pair<N, const P: usize, const K: usize = 0> {
    /// Content logit `q_i . k_j / sqrt(D)`, or the result of the previous term.
    pub content: N,
    /// Distance `i - j` from the column's position to the row's; never negative, and exact in f32
    /// up to 2^24. It is a constant: `distance.sqrt()` has no derivative, which would be infinite at 0.
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
/// A term sees positions only as their distance, so that it does not depend on where a sequence
/// begins.
///
/// On the CPU the fused engine runs [`value`](Self::value) inside its kernel, forward and backward,
/// without a tensor of size `T x S`. On an NVIDIA GPU in bf16, `value` is recorded once as an expression that the kernel
/// expands, if positions are consecutive and all other modifiers are distance tables, slopes, running sums or prices of
/// tokens. Elsewhere on GPUs, and on the CPU beside [`ScoreMod::Products`](crate::ScoreMod::Products), tensor operations
/// compute the values of all pairs; see [`ScoreMod::support`](crate::ScoreMod::support).
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
    /// Computes the logit that replaces the content logit.
    fn value<N: Number>(&self, pair: Pair<N, P, K>) -> N;

    /// Computes the derivatives of [`value`](Self::value) by its inputs; `None` (the default) uses
    /// dual numbers. They must not be NaN or infinite at distance 0.
    #[inline(always)]
    fn derivative<N: Number>(&self, pair: Pair<N, P, K>) -> Option<Derivative<N, P, K>> {
        let _ = pair;
        None
    }
}

/// Converts the inputs of a pair to dual numbers, with one tangent direction per input.
#[inline(always)]
pub(super) fn dual<N: Real, const P: usize, const K: usize>(
    pair: &Pair<N, P, K>,
) -> Pair<Dual<N, P, K>, P, K> {
    let mut content = Dual::fixed(pair.content);
    content.tangent.content = N::constant(1.0);
    let mut params = [content; P];
    each!(P, |p| {
        params[p] = Dual::fixed(pair.params[p]);
        params[p].tangent.params[p] = N::constant(1.0);
    });
    let (mut row, mut column) = ([content; K], [content; K]);
    each!(K, |k| {
        row[k] = Dual::fixed(pair.row[k]);
        row[k].tangent.row[k] = N::constant(1.0);
        column[k] = Dual::fixed(pair.column[k]);
        column[k].tangent.column[k] = N::constant(1.0);
    });
    Pair { content, distance: Dual::fixed(pair.distance), params, row, column }
}
