//! Evaluation of a pair term on one block of pairs in single precision, in loops that the compiler
//! vectorises.

use super::dual::{Derivative, each};
use super::number::Real;
use super::pair::{Pair, PairTerm, dual};
use crate::math::lanes::NARROW;

/// Block of pairs: query rows ("lanes") times all columns that any of them sees.
#[derive(Debug)]
pub(crate) struct TermBlock<'a> {
    /// Positions of the rows, `[lane]`, with `WIDE` or `NARROW` lanes; relative to the first
    /// column, as those of the columns.
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

/// Gradients to which a block is added, in the layout of [`TermBlock`].
#[derive(Debug)]
pub(crate) struct TermGrads<'a> {
    /// Parameters of the term, `[P][lane]`.
    pub(crate) params: &'a mut [f32],
    pub(crate) row_state: &'a mut [f32],
    pub(crate) column_state: &'a mut [f32],
}

/// Inputs of a block that are the same for all columns.
struct Rows<const R: usize, const P: usize, const K: usize> {
    positions: [f32; R],
    params: [f32; P],
    state: [[f32; R]; K],
}

impl<const R: usize, const P: usize, const K: usize> Rows<R, P, K> {
    #[inline(always)]
    fn of(block: &TermBlock<'_>) -> Self {
        let mut params = [0.0; P];
        params.copy_from_slice(block.params);
        let mut state = [[0.0; R]; K];
        state.as_flattened_mut().copy_from_slice(block.row_state);
        let mut positions = [0.0; R];
        positions.copy_from_slice(block.rows);
        Self { positions, params, state }
    }

    /// Returns position and state of a column.
    #[inline(always)]
    fn column(block: &TermBlock<'_>, j: usize) -> (f32, [f32; K]) {
        let mut state = [0.0; K];
        state.copy_from_slice(&block.column_state[j * K..][..K]);
        (block.columns[j], state)
    }

    #[inline(always)]
    fn pair(&self, r: usize, content: f32, position: f32, column: [f32; K]) -> Pair<f32, P, K> {
        let mut row = [0.0; K];
        each!(K, |k| row[k] = self.state[k][r]);
        // Columns that the row does not see are masked later; here they must only be harmless.
        let distance = self.positions[r] - position;
        let distance = if distance > 0.0 { distance } else { 0.0 };
        Pair { content, distance, params: self.params, row, column }
    }
}

/// Replaces content logits by the values of the term.
#[inline(always)]
pub(super) fn apply<T: PairTerm<P, K>, const R: usize, const P: usize, const K: usize>(
    term: &T,
    block: &TermBlock<'_>,
    logits: &mut [f32],
) {
    let rows = Rows::<R, P, K>::of(block);
    for (j, logits) in logits.as_chunks_mut::<R>().0.iter_mut().enumerate() {
        let (position, column) = Rows::<R, P, K>::column(block, j);
        for r in 0..R {
            logits[r] = term.value(rows.pair(r, logits[r], position, column));
        }
    }
}

#[inline(always)]
fn derivative<T: PairTerm<P, K>, const P: usize, const K: usize>(
    term: &T,
    pair: Pair<f32, P, K>,
) -> Derivative<f32, P, K> {
    match term.derivative(pair) {
        Some(own) => own,
        None => term.value(dual(&pair)).tangent,
    }
}

/// Replaces gradients of values by those of the content logits, and adds those of the other inputs.
#[inline(always)]
pub(super) fn backward<T: PairTerm<P, K>, const R: usize, const P: usize, const K: usize>(
    term: &T,
    block: &TermBlock<'_>,
    content: &[f32],
    logit_grads: &mut [f32],
    grads: &mut TermGrads<'_>,
) {
    let rows = Rows::<R, P, K>::of(block);
    let mut params = [[0.0; R]; P];
    let mut row = [[0.0; R]; K];
    let content = content.as_chunks::<R>().0;
    let logit_grads = logit_grads.as_chunks_mut::<R>().0;
    for (j, (content, logit_grads)) in content.iter().zip(logit_grads).enumerate() {
        let (position, column) = Rows::<R, P, K>::column(block, j);
        let mut of_column = [[0.0; R]; K];
        for r in 0..R {
            let derivative = derivative(term, rows.pair(r, content[r], position, column));
            // Pairs that are not seen, and lanes without a row, have a gradient of exactly 0 and may
            // have any derivative.
            let grad = logit_grads[r];
            logit_grads[r] = derivative.content.chain(grad);
            each!(P, |p| params[p][r] += derivative.params[p].chain(grad));
            each!(K, |k| {
                row[k][r] += derivative.row[k].chain(grad);
                of_column[k][r] = derivative.column[k].chain(grad);
            });
        }
        for k in 0..K {
            grads.column_state[j * K + k] += sum(&of_column[k]);
        }
    }
    add(grads.params, params.as_flattened());
    add(grads.row_state, row.as_flattened());
}

#[inline(always)]
fn add(to: &mut [f32], terms: &[f32]) {
    for (to, term) in to.iter_mut().zip(terms) {
        *to += term;
    }
}

/// Sums all lanes in an order that is itself vectorised, with sixteen partial sums.
#[inline(always)]
fn sum<const R: usize>(lanes: &[f32; R]) -> f32 {
    let mut sums = [0.0; NARROW];
    for lanes in lanes.as_chunks::<NARROW>().0 {
        for r in 0..NARROW {
            sums[r] += lanes[r];
        }
    }
    for half in [8, 4, 2, 1] {
        for r in 0..half {
            sums[r] += sums[r + half];
        }
    }
    sums[0]
}
