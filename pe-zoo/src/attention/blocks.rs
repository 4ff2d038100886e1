//! Blocks of rows and the columns that they see, so that few hidden logits are computed.

use std::ops::Range;

use crate::Positions;

/// Rows of an attention and the columns that they need.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct RowBlock {
    /// Indices of the rows among all rows.
    pub(super) rows: Range<usize>,
    /// Indices of the columns among all columns.
    pub(super) columns: Range<usize>,
}

/// Smallest number of rows of a block; the calls of smaller blocks take longer than the logits that they save.
const SMALLEST: usize = 128;

/// Number of rows whose logits a GPU makes dense together. Fewer take less memory, but each block has launches of its own and too
/// few rows leave a large GPU idle.
#[cfg(any(feature = "flex", feature = "cube"))]
pub(super) const DENSE_ROWS: usize = 256;

/// Number of hidden columns that are kept before the visible ones: a perceptron across heads reads the logits of up to two
/// columns on each side.
const NEIGHBOURS: usize = 2;

/// Index of the first column that is needed by a row at position `row` and by all later ones.
pub(super) fn first_needed(at: &Positions, row: usize, horizon: usize) -> usize {
    let hidden = at.cols().partition_point(|column| column.saturating_add(horizon) <= row);
    hidden.saturating_sub(NEIGHBOURS)
}

/// Cuts an attention whose rows see `horizon` positions into blocks; one block if this saves less than a quarter of the pairs.
pub(super) fn blocks(at: &Positions, horizon: Option<usize>) -> Vec<RowBlock> {
    let whole = RowBlock { rows: 0..at.rows().len(), columns: 0..at.cols().len() };
    let Some(horizon) = horizon else { return vec![whole] };
    let blocks = of_rows(at, (horizon / 2).max(SMALLEST), Some(horizon));
    let cut = blocks.iter().map(RowBlock::pairs).sum::<usize>();
    if 4 * cut > 3 * whole.pairs() { vec![whole] } else { blocks }
}

/// Cuts an attention into blocks of `size` rows. The columns of each end at its last row and begin at the first one, or at the
/// first one within the horizon.
pub(super) fn of_rows(at: &Positions, size: usize, horizon: Option<usize>) -> Vec<RowBlock> {
    let (rows, before) = (at.rows(), at.first_row());
    let block = |start: usize| {
        let end = (start + size).min(rows.len());
        let first = horizon.map_or(0, |horizon| first_needed(at, rows[start], horizon));
        RowBlock { rows: start..end, columns: first..before + end }
    };
    (0..rows.len()).step_by(size).map(block).collect()
}

impl RowBlock {
    /// Number of pairs of a row and a column up to the row.
    fn pairs(&self) -> usize {
        let rows = self.rows.len();
        rows * (self.columns.len() - rows) + rows * (rows + 1) / 2
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_is_in_one_block_that_holds_all_columns_that_it_sees() {
        for (cached, rows, horizon) in
            [(0, 1000, 1), (0, 1000, 100), (0, 1000, 300), (700, 300, 64), (999, 1, 100)]
        {
            let at = Positions::contiguous(cached, rows);
            let blocks = blocks(&at, Some(horizon));
            assert!(blocks.len() > 1 || rows == 1, "{horizon}");
            let mut next = 0;
            for block in &blocks {
                assert_eq!(block.rows.start, next);
                next = block.rows.end;
                assert_eq!(block.columns.end, cached + next);
                let row = cached + block.rows.start;
                assert_eq!(block.columns.start, (row + 1).saturating_sub(horizon + 2));
            }
            assert_eq!(next, rows);
        }
    }

    #[test]
    fn blocks_of_rows_have_the_columns_up_to_their_last_row() {
        let block = |rows, columns| RowBlock { rows, columns };
        let at = Positions::contiguous(3, 10);
        let blocks = [block(0..4, 0..7), block(4..8, 0..11), block(8..10, 0..13)];
        assert_eq!(of_rows(&at, 4, None), blocks);
        let near = [block(0..4, 0..7), block(4..8, 1..11), block(8..10, 5..13)];
        assert_eq!(of_rows(&at, 4, Some(5)), near);
        assert_eq!(of_rows(&at, 10, None), [block(0..10, 0..13)]);
    }

    #[test]
    fn short_passes_and_those_without_a_window_are_whole() {
        let at = Positions::contiguous(5, 300);
        let whole = [RowBlock { rows: 0..300, columns: 0..305 }];
        assert_eq!(blocks(&at, None), whole);
        assert_eq!(blocks(&at, Some(250)), whole);
        assert_eq!(blocks(&Positions::contiguous(0, 120), Some(1)).len(), 1);
    }

    /// Positions are counted, not columns: five of these columns lie within 20 positions.
    #[test]
    fn columns_with_gaps_are_counted_by_position() {
        let at = Positions::new((0..200).map(|n| 4 * n).collect(), 199).unwrap();
        assert_eq!(blocks(&at, Some(20)), [RowBlock { rows: 0..1, columns: 193..200 }]);
    }
}
