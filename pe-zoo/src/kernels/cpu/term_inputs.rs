//! Inputs of the pair terms of one block, collected from the operands of a head.

use super::problem::{Block, Head};
use crate::kernels::operands::Slot;
use crate::score::{TermBlock, TermSizes};

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
