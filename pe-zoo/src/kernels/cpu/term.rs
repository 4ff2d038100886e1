//! Pair terms on the CPU: functions applied to the content logits of a block.

use super::problem::{Block, Head};
use super::reduce::Grads;
use super::scratch::{Scratch, grow};
use crate::kernels::operands::Slot;
use crate::score::{TermBlock, TermGrads, TermSizes};

/// Applies all terms to the content logits in `s.logits`. With `keep`, stores the input of each
/// term in `s.contents`.
pub(super) fn apply<const R: usize>(
    head: &Head<'_>,
    block: &Block<R>,
    s: &mut Scratch<R>,
    keep: bool,
) {
    let n = block.columns;
    s.term_inputs.positions(head, block);
    let mut offset = TermSizes::default();
    for (number, term) in head.spec.terms.iter().enumerate() {
        if keep {
            s.contents.resize_with(head.spec.terms.len(), Vec::new);
            let content = &mut s.contents[number];
            grow(content, n);
            content[..n].copy_from_slice(&s.logits[..n]);
        }
        let TermSizes { params, state } = term.sizes();
        s.term_inputs.read(head, block, offset, term.sizes());
        term.apply(&s.term_inputs.block(), s.logits[..n].as_flattened_mut());
        offset.params += params;
        offset.state += state;
    }
}

/// Converts `s.grads` from gradients of the terms' values to those of the content logits, and adds
/// the gradients of parameters and state.
pub(super) fn backward<const R: usize>(
    head: &Head<'_>,
    block: &Block<R>,
    s: &mut Scratch<R>,
    grads: &mut Grads<'_>,
) {
    let n = block.columns;
    s.term_inputs.positions(head, block);
    let sizes = head.spec.terms.iter().map(|term| term.sizes()).collect::<Vec<_>>();
    let mut offset = sizes.iter().fold(TermSizes::default(), |sum, sizes| TermSizes {
        params: sum.params + sizes.params,
        state: sum.state + sizes.state,
    });
    for (number, term) in head.spec.terms.iter().enumerate().rev() {
        let TermSizes { params, state } = sizes[number];
        offset.params -= params;
        offset.state -= state;
        s.term_inputs.read(head, block, offset, sizes[number]);
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

/// Inputs of the pair terms of one block, in the layout of [`TermBlock`].
#[derive(Debug, Default)]
pub(super) struct TermInputs {
    rows: Vec<f32>,
    columns: Vec<f32>,
    params: Vec<f32>,
    row_state: Vec<f32>,
    column_state: Vec<f32>,
}

/// Index among the columns of a lane's row; unused lanes repeat the last one.
pub(super) fn row<const R: usize>(head: &Head<'_>, block: &Block<R>, lane: usize) -> usize {
    (head.spec.first_row + block.first + lane).min(block.columns - 1)
}

impl TermInputs {
    /// Collects the positions of a block, relative to the first column.
    pub(super) fn positions<const R: usize>(&mut self, head: &Head<'_>, block: &Block<R>) {
        self.rows.clear();
        self.rows.extend((0..R).map(|lane| head.spec.relative_position(row(head, block, lane))));
        self.columns.clear();
        self.columns.extend((0..block.columns).map(|column| head.spec.relative_position(column)));
    }

    /// Collects the parameters and the state of one term, which begin at `offset` among those of all terms.
    pub(super) fn read<const R: usize>(
        &mut self,
        head: &Head<'_>,
        block: &Block<R>,
        offset: TermSizes,
        sizes: TermSizes,
    ) {
        let params = head.required(Slot::TermParams);
        self.params.clear();
        self.params.extend((0..sizes.params).map(|p| params.at(0, offset.params + p)));
        let state = head.required(Slot::TermState);
        self.row_state.clear();
        self.column_state.clear();
        for k in 0..sizes.state {
            let of_lane = |lane| state.at(row(head, block, lane), offset.state + k);
            self.row_state.extend((0..R).map(of_lane));
        }
        for j in 0..block.columns {
            self.column_state.extend((0..sizes.state).map(|k| state.at(j, offset.state + k)));
        }
    }

    pub(super) fn block(&self) -> TermBlock<'_> {
        TermBlock {
            rows: &self.rows,
            columns: &self.columns,
            params: &self.params,
            row_state: &self.row_state,
            column_state: &self.column_state,
        }
    }
}
