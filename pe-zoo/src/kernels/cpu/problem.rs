//! Operands of one head, borrowed, and blocks of query rows.

use super::view::Matrix;
use crate::kernels::operands::{SLOTS, Slot};
use crate::kernels::spec::{ContextualSpec, Spec};
use crate::score::HiddenActivation;

/// Operands of one head of one sequence.
#[derive(Debug, Clone, Copy)]
pub(super) struct Head<'a> {
    pub(super) spec: &'a Spec,
    /// Operands by slot, in the shapes of [`Slot::head_slice`]; empty if absent.
    pub(super) operands: [Matrix<'a>; SLOTS],
    pub(super) contextual: Option<ContextualHead<'a>>,
}

impl<'a> Head<'a> {
    /// Returns an operand, empty if absent.
    pub(super) fn required(&self, slot: Slot) -> Matrix<'a> {
        self.operands[slot as usize]
    }

    /// Returns an operand; `None` if absent.
    pub(super) fn optional(&self, slot: Slot) -> Option<Matrix<'a>> {
        let operand = self.required(slot);
        (operand.shape().rows * operand.shape().columns > 0).then_some(operand)
    }

    /// Queries of the head, `[T, D]`.
    pub(super) fn q(&self) -> Matrix<'a> {
        self.required(Slot::Query)
    }

    /// Keys of the head, `[S, D]`.
    pub(super) fn k(&self) -> Matrix<'a> {
        self.required(Slot::Key)
    }

    /// Values of the head, `[S, E]`.
    pub(super) fn values(&self) -> Matrix<'a> {
        self.required(Slot::Values)
    }
}

/// Operands of contextual positions for one head of one sequence.
#[derive(Debug, Clone, Copy)]
pub(super) struct ContextualHead<'a> {
    pub(super) spec: ContextualSpec,
    /// Separate keys of the gates, `[S, D]`; `None` if gates come from the content.
    pub(super) gate_keys: Option<Matrix<'a>>,
    pub(super) function: ContextualOperand<'a>,
}

#[derive(Debug, Clone, Copy)]
pub(super) enum ContextualOperand<'a> {
    /// Table of one vector per position, `[D, N]`.
    Table(Matrix<'a>),
    Slope(f32),
    Mlp(ContextualMlpOperands<'a>),
}

/// Perceptron `e(p) = w2 act(w1 p + b1) + b2` with `N` hidden units.
#[derive(Debug, Clone, Copy)]
pub(super) struct ContextualMlpOperands<'a> {
    /// `w2` and, as its last column, `b2`: `[D, N + 1]`.
    pub(super) out: Matrix<'a>,
    /// `w1` and `b1`, `[2, N]`.
    pub(super) hidden: Matrix<'a>,
    pub(super) activation: HiddenActivation,
}

impl<'a> ContextualOperand<'a> {
    /// Returns the matrix that queries are multiplied with; `None` if the function needs none.
    pub(super) fn table(&self) -> Option<Matrix<'a>> {
        match self {
            Self::Table(table) => Some(*table),
            Self::Mlp(mlp) => Some(mlp.out),
            Self::Slope(_) => None,
        }
    }
}

/// Consecutive query rows that are processed together, one per lane.
#[derive(Debug, Clone, Copy)]
pub(super) struct Block<const R: usize> {
    /// Index of the first lane's row.
    pub(super) first: usize,
    /// Number of lanes in use.
    pub(super) rows: usize,
    /// Number of columns that the last row sees.
    pub(super) columns: usize,
    /// Number of columns that every lane sees, unused lanes included; these columns need no mask.
    pub(super) open: usize,
    /// Index of the last column that each lane sees; -1 for unused lanes.
    pub(super) last_seen: [f32; R],
}

impl<const R: usize> Block<R> {
    /// Creates the block that starts at row `first` and ends at most at `rows_end`; `before`
    /// columns are older than row 0.
    pub(super) fn new(first: usize, rows_end: usize, before: usize) -> Self {
        let rows = R.min(rows_end - first);
        let diagonal = before + first;
        let mut last_seen = [-1.0; R];
        for (lane, last) in last_seen.iter_mut().enumerate().take(rows) {
            *last = (diagonal + lane) as f32;
        }
        let open = if rows == R { diagonal + 1 } else { 0 };
        Self { first, rows, columns: diagonal + rows, open, last_seen }
    }

    /// Returns the last column that each lane attends to, and the number of columns; one less than
    /// seen if a token does not attend to itself.
    pub(super) fn attended(&self, spec: &Spec) -> ([f32; R], usize) {
        let strict = usize::from(spec.strict());
        (self.last_seen.map(|last| last - strict as f32), self.open.saturating_sub(strict))
    }
}
