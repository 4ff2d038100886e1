//! Frames in the order in which a report shows their cells.

use std::mem;
use std::ops::Range;

use polars::prelude::*;

use super::Frames;

/// A frame in which the rows of a cell are neighbours, and cells are in ascending order.
struct CellRows {
    frame: DataFrame,
    /// First row of each cell, and the number of all rows.
    starts: Vec<IdxSize>,
}

impl CellRows {
    fn of(mut frame: DataFrame, cells: usize) -> PolarsResult<Self> {
        // Rows of a frame in many pieces are slow to find.
        frame.rechunk_mut();
        let mut starts: Vec<IdxSize> = vec![0; cells + 1];
        let numbers = frame.column("cell")?.u32()?;
        numbers.iter().flatten().for_each(|cell| starts[cell as usize + 1] += 1);
        (1..starts.len()).for_each(|cell| starts[cell] += starts[cell - 1]);
        Ok(Self { frame, starts })
    }

    /// Returns the rows of these cells, which are numbered from `first` on.
    fn take(&self, cells: &[u32], first: u32) -> PolarsResult<DataFrame> {
        let (mut rows, mut numbers): (Vec<IdxSize>, Vec<u32>) = (Vec::new(), Vec::new());
        for (number, cell) in (first..).zip(cells) {
            rows.extend(self.starts[*cell as usize]..self.starts[*cell as usize + 1]);
            numbers.resize(rows.len(), number);
        }
        let mut taken = self.frame.take(&IdxCa::from_vec("rows".into(), rows))?;
        taken.with_column(Column::new("cell".into(), numbers))?;
        Ok(taken)
    }
}

/// Frames with sorted cells. Curves and slices, which take most of the memory, are sorted for some cells at a time.
pub(crate) struct SortedFrames {
    /// All frames but curves and slices, which are empty.
    pub(crate) frames: Frames,
    curves: CellRows,
    slices: CellRows,
    /// Number of each sorted cell in curves and slices.
    order: Vec<u32>,
}

impl SortedFrames {
    /// Returns all frames of a range of cells.
    ///
    /// # Errors
    /// If polars cannot take the rows.
    pub(crate) fn slice(&self, cells: &Range<usize>) -> PolarsResult<Frames> {
        let (order, first) = (&self.order[cells.clone()], cells.start as u32);
        Ok(Frames {
            curves: self.curves.take(order, first)?,
            slices: self.slices.take(order, first)?,
            ..self.frames.slice(cells)?
        })
    }
}

impl Frames {
    /// Sorts the cells by these columns, and the rows of the other frames by cell.
    ///
    /// # Errors
    /// If there is no such column.
    pub(crate) fn sorted(mut self, by: &[&str]) -> PolarsResult<SortedFrames> {
        let stable = SortMultipleOptions::default().with_maintain_order(true);
        let columns = [by, &["cell"]].concat();
        let order = self.cells.select(columns)?.sort(by.iter().copied(), stable)?;
        let order: Vec<u32> = order.column("cell")?.u32()?.iter().flatten().collect();
        let whole = |frame: &mut DataFrame| {
            let empty = frame.clear();
            CellRows::of(mem::replace(frame, empty), order.len())
        };
        let (curves, slices) = (whole(&mut self.curves)?, whole(&mut self.slices)?);
        for (_, frame) in self.each() {
            *frame = CellRows::of(mem::take(frame), order.len())?.take(&order, 0)?;
        }
        Ok(SortedFrames { frames: self, curves, slices, order })
    }

    /// Returns the frames of a range of cells; the frames must be sorted by `cell`.
    ///
    /// # Errors
    /// If a frame has no column `cell`.
    pub fn slice(&self, cells: &Range<usize>) -> PolarsResult<Self> {
        let mut part = self.clone();
        for (_, frame) in part.each() {
            let numbers = frame.column("cell")?.u32()?.cont_slice()?;
            let place = |cell: usize| numbers.partition_point(|at| (*at as usize) < cell);
            let (start, end) = (place(cells.start), place(cells.end));
            *frame = frame.slice(start as i64, end - start);
        }
        Ok(part)
    }
}
