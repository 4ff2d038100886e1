//! Pair terms: functions that the content logits of a block pass through.

use super::problem::{Block, Head};
use super::reduce::Grads;
use super::scratch::{Scratch, grow};
use super::view::Matrix;
use crate::kernels::operands::Slot;
use crate::score::{TermBlock, TermGrads};

/// The inputs of the terms of one block, in the layout of [`TermBlock`].
#[derive(Debug, Default)]
pub(super) struct Inputs {
    rows: Vec<f32>,
    columns: Vec<f32>,
    params: Vec<f32>,
    row_state: Vec<f32>,
    column_state: Vec<f32>,
}

/// Start of the parameters and of the state of one term among those of all terms.
#[derive(Debug, Clone, Copy, Default)]
struct Offset {
    params: usize,
    state: usize,
}

/// Rows among the columns of the block's lanes; unused lanes repeat the last one.
fn row<const R: usize>(head: &Head<'_>, block: &Block<R>, lane: usize) -> usize {
    (head.spec.first_row + block.first + lane).min(block.columns - 1)
}

impl Inputs {
    fn positions<const R: usize>(&mut self, head: &Head<'_>, block: &Block<R>) {
        let at = &head.spec.columns;
        self.rows.clear();
        self.rows.extend((0..R).map(|lane| at[row(head, block, lane)] as f32));
        self.columns.clear();
        self.columns.extend(at[..block.columns].iter().map(|at| *at as f32));
    }

    /// Reads the parameters and the state of one term.
    fn read<const R: usize>(
        &mut self,
        head: &Head<'_>,
        block: &Block<R>,
        offset: Offset,
        (params, state): (usize, usize),
    ) {
        let given: Matrix<'_> = head.part(Slot::TermParams);
        self.params.clear();
        self.params.extend((0..params).map(|p| given.at(0, offset.params + p)));
        let given = head.part(Slot::TermState);
        self.row_state.clear();
        self.column_state.clear();
        for k in 0..state {
            let of_lane = |lane| given.at(row(head, block, lane), offset.state + k);
            self.row_state.extend((0..R).map(of_lane));
        }
        for j in 0..block.columns {
            self.column_state.extend((0..state).map(|k| given.at(j, offset.state + k)));
        }
    }

    fn block(&self) -> TermBlock<'_> {
        TermBlock {
            rows: &self.rows,
            columns: &self.columns,
            params: &self.params,
            row_state: &self.row_state,
            column_state: &self.column_state,
        }
    }
}

/// Passes `s.logits`, the content logits, through all terms; with `keep`, leaves the input of each term
/// in `s.contents`.
pub(super) fn apply<const R: usize>(
    head: &Head<'_>,
    block: &Block<R>,
    s: &mut Scratch<R>,
    keep: bool,
) {
    let n = block.columns;
    s.term_inputs.positions(head, block);
    let mut offset = Offset::default();
    for (number, term) in head.spec.terms.iter().enumerate() {
        if keep {
            s.contents.resize_with(head.spec.terms.len(), Vec::new);
            let content = &mut s.contents[number];
            grow(content, n);
            content[..n].copy_from_slice(&s.logits[..n]);
        }
        let (params, state) = term.sizes();
        s.term_inputs.read(head, block, offset, (params, state));
        term.apply(&s.term_inputs.block(), s.logits[..n].as_flattened_mut());
        offset.params += params;
        offset.state += state;
    }
}

/// Turns `s.grads`, the gradients of the values, into those of the content logits, and adds those of
/// parameters and state.
pub(super) fn backward<const R: usize>(
    head: &Head<'_>,
    block: &Block<R>,
    s: &mut Scratch<R>,
    grads: &mut Grads<'_>,
) {
    let n = block.columns;
    s.term_inputs.positions(head, block);
    let sizes = head.spec.terms.iter().map(|term| term.sizes()).collect::<Vec<_>>();
    let mut offset = sizes.iter().fold(Offset::default(), |sum, (params, state)| Offset {
        params: sum.params + params,
        state: sum.state + state,
    });
    for (number, term) in head.spec.terms.iter().enumerate().rev() {
        let (params, state) = sizes[number];
        offset.params -= params;
        offset.state -= state;
        s.term_inputs.read(head, block, offset, (params, state));
        let mut of_params = vec![0.0; params * R];
        let mut of_rows = vec![0.0; state * R];
        let mut of_columns = vec![0.0; state * n];
        term.backward(
            &s.term_inputs.block(),
            s.contents[number][..n].as_flattened(),
            s.grads[..n].as_flattened_mut(),
            TermGrads {
                params: &mut of_params,
                row_state: &mut of_rows,
                column_state: &mut of_columns,
            },
        );
        if let Some(total) = grads.get(Slot::TermParams) {
            for (p, lanes) in of_params.chunks(R).enumerate() {
                *total.get(0, offset.params + p) += lanes[..block.rows].iter().sum::<f32>();
            }
        }
        if let Some(total) = grads.get(Slot::TermState) {
            for (k, lanes) in of_rows.chunks(R).enumerate() {
                for (lane, grad) in lanes[..block.rows].iter().enumerate() {
                    *total.get(row(head, block, lane), offset.state + k) += grad;
                }
            }
            for (j, columns) in of_columns.chunks(state.max(1)).enumerate() {
                for (k, grad) in columns.iter().enumerate() {
                    *total.get(j, offset.state + k) += grad;
                }
            }
        }
    }
}
