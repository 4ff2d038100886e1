//! Positions of the rows (queries) and columns (keys) of attention.

use std::any::Any;
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

use burn::tensor::{Device, Int, Tensor, TensorData};

use crate::PeError;

type Memo = Arc<Mutex<BTreeMap<String, Box<dyn Any + Send>>>>;

/// Explicit integer positions of the columns, and which of the columns are the rows.
///
/// A full pass has as many rows as columns; decoding has few rows at the end of many columns.
/// Positions ascend strictly, so that "may be seen" and "is not later" are the same thing, but
/// they need be neither contiguous nor start at 0: offsets and random positions are ordinary. Real
/// positions are numbers of steps of a grid, see [`in_steps`](Self::in_steps).
///
/// ```
/// use pe_zoo::Positions;
/// let decode_one = Positions::contiguous(9, 1);
/// assert_eq!((decode_one.rows(), decode_one.cols().len()), (&[9][..], 10));
/// ```
#[derive(Debug, Clone)]
pub struct Positions {
    cols: Arc<[usize]>,
    first_row: usize,
    /// Numbers per unit of position; 1 for whole positions.
    steps: usize,
    memo: Memo,
}

impl PartialEq for Positions {
    fn eq(&self, other: &Self) -> bool {
        (self.first_row, self.steps, &self.cols) == (other.first_row, other.steps, &other.cols)
    }
}

impl Eq for Positions {}

impl Positions {
    /// Creates positions from those of all columns; the rows are the columns from `first_row` on.
    ///
    /// # Errors
    /// [`PeError::Positions`] if there is no row, or if positions do not ascend strictly.
    pub fn new(cols: Vec<usize>, first_row: usize) -> Result<Self, PeError> {
        if first_row >= cols.len() {
            return Err(PeError::Positions {
                reason: format!(
                    "first_row is {first_row}, expected less than {}, the number of columns; the columns from \
                     first_row on are the rows",
                    cols.len()
                ),
            });
        }
        if let Some(at) = cols.windows(2).position(|pair| pair[0] >= pair[1]) {
            return Err(PeError::Positions {
                reason: format!(
                    "column {} has position {} after {}, expected strictly ascending positions; sort the positions",
                    at + 1,
                    cols[at + 1],
                    cols[at]
                ),
            });
        }
        Ok(Self::of(cols.into(), first_row))
    }

    fn of(cols: Arc<[usize]>, first_row: usize) -> Self {
        Self { cols, first_row, steps: 1, memo: Memo::default() }
    }

    /// Creates positions 0, 1, 2 and so on for `cached_tokens` cached and `new_tokens` new tokens;
    /// the rows are the new ones.
    ///
    /// # Panics
    /// If `new_tokens` is 0.
    pub fn contiguous(cached_tokens: usize, new_tokens: usize) -> Self {
        assert!(new_tokens > 0, "new_tokens is 0, expected at least one row");
        Self::of((0..cached_tokens + new_tokens).collect(), cached_tokens)
    }

    /// Returns the same tokens with all positions increased by `offset`.
    #[must_use]
    pub fn shifted(&self, offset: usize) -> Self {
        let cols = self.cols.iter().map(|p| p + offset * self.steps).collect();
        Self::of(cols, self.first_row).in_steps(self.steps)
    }

    /// Returns the same numbers as those of a grid with `steps` numbers per unit of position: the number `n` is the position
    /// `n / steps`. Only encodings that multiply positions by [`unit`](Self::unit) can read them; rules refuse others.
    ///
    /// # Panics
    /// If `steps` is 0.
    #[must_use]
    pub fn in_steps(self, steps: usize) -> Self {
        assert!(steps > 0, "a unit of position has 0 steps, expected at least one");
        Self { steps, memo: Memo::default(), ..self }
    }

    /// Numbers per unit of position; 1 unless positions are real.
    pub fn steps(&self) -> usize {
        self.steps
    }

    /// Position between two adjacent numbers of the grid; 1 unless positions are real.
    pub fn unit(&self) -> f64 {
        1.0 / self.steps as f64
    }

    /// Length of the sequence as positions count it: one more than the last whole position.
    pub(crate) fn len(&self) -> usize {
        self.cols.last().map_or(0, |last| last / self.steps + 1)
    }

    /// Positions of the rows (queries).
    pub fn rows(&self) -> &[usize] {
        &self.cols[self.first_row..]
    }

    /// Positions of the columns (keys), cached tokens included.
    pub fn cols(&self) -> &[usize] {
        &self.cols
    }

    /// Index of the first row among the columns: the number of cached tokens.
    pub fn first_row(&self) -> usize {
        self.first_row
    }

    /// Returns the positions of the rows alone, as of a pass without cached tokens.
    pub(crate) fn without_cached(&self, device: &Device) -> Self {
        if self.first_row == 0 {
            return self.clone();
        }
        self.memo("without cached", device, || Self::of(self.rows().into(), 0).in_steps(self.steps))
    }

    /// Returns the positions of some rows and of the columns that they need, both given by index. The last row is the last column.
    pub(crate) fn block(&self, rows: Range<usize>, columns: Range<usize>, device: &Device) -> Self {
        self.memo(&format!("block {rows:?} {columns:?}"), device, || {
            self.own_block(rows.clone(), columns.clone())
        })
    }

    /// Returns [`block`](Self::block) with memos of its own, which end with it.
    pub(crate) fn own_block(&self, rows: Range<usize>, columns: Range<usize>) -> Self {
        let first_row = self.first_row + rows.start - columns.start;
        Self::of(self.cols[columns].into(), first_row).in_steps(self.steps)
    }

    /// Longest distance between a row and a column; 0 for a single token.
    pub fn longest_distance(&self) -> usize {
        self.cols.last().zip(self.cols.first()).map_or(0, |(last, first)| last - first)
    }

    /// Distances `row - column` as integers, `[T, S]`; 0 where the column comes later.
    pub fn distances(&self, device: &Device) -> Tensor<2, Int> {
        self.memo("distances", device, || {
            let PositionTensors { rows, columns } = self.tensors(device);
            (rows - columns).clamp_min(0)
        })
    }

    /// Distances `row - column`, `[T, S]`; 0 where the column comes later.
    pub(crate) fn float_distances(&self, device: &Device) -> Tensor<2> {
        self.memo("distances-float", device, || self.distances(device).float())
    }

    /// 1 where the row may see the column and 0 elsewhere, `[T, S]`.
    pub fn visible(&self, device: &Device) -> Tensor<2> {
        self.memo("visible", device, || {
            let PositionTensors { rows, columns } = self.tensors(device);
            columns.lower_equal(rows).float()
        })
    }

    /// 0 where the row may see the column and minus infinity elsewhere, `[T, S]`.
    pub fn causal_bias(&self, device: &Device) -> Tensor<2> {
        self.memo("causal-bias", device, || {
            let PositionTensors { rows, columns } = self.tensors(device);
            let zeros = Tensor::zeros([self.rows().len(), self.cols().len()], device);
            zeros.mask_fill(columns.greater(rows), f32::NEG_INFINITY)
        })
    }

    /// Returns the positions as tensors. The first column is at 0, so that distances of large positions fit into 32 bits.
    fn tensors(&self, device: &Device) -> PositionTensors {
        let first = self.cols.first().copied().unwrap_or(0);
        let numbers = |positions: &[usize], shape: [usize; 2]| {
            let numbers = positions.iter().map(|n| (n - first) as i64).collect::<Vec<_>>();
            Tensor::from_data(TensorData::new(numbers, shape), device)
        };
        let (rows, columns) = (self.rows(), self.cols());
        PositionTensors {
            rows: numbers(rows, [rows.len(), 1]),
            columns: numbers(columns, [1, columns.len()]),
        }
    }

    /// Returns a value that depends only on these positions, computed once and shared by layers and
    /// by training steps that use the same positions. `key` must name everything else that the
    /// value depends on.
    pub fn memo<T: Clone + Send + 'static>(
        &self,
        key: &str,
        device: &Device,
        make: impl FnOnce() -> T,
    ) -> T {
        let key = format!("{key} {device:?} {}", device.is_autodiff());
        let cached = self
            .memo
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .get(&key)
            .and_then(|value| value.downcast_ref::<T>().cloned());
        cached.unwrap_or_else(|| {
            let value = make();
            self.memo
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .insert(key, Box::new(value.clone()));
            value
        })
    }
}

/// Positions of the rows, `[T, 1]`, and of the columns, `[1, S]`, less that of the first column.
struct PositionTensors {
    rows: Tensor<2, Int>,
    columns: Tensor<2, Int>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_that_repeat_are_refused_with_the_column() {
        let error = Positions::new(vec![0, 3, 3], 0).unwrap_err().to_string();
        assert!(error.contains("column 2") && error.contains("position 3"), "{error}");
    }

    #[test]
    fn no_row_is_refused() {
        assert!(Positions::new(vec![0, 1], 2).is_err());
        assert!(Positions::new(vec![], 0).is_err());
    }

    #[test]
    fn a_shift_keeps_distances() {
        let device = Device::flex();
        let at = Positions::new(vec![0, 4, 9], 1).unwrap();
        let expected = at.distances(&device).into_data();
        assert_eq!(at.shifted(7).distances(&device).into_data(), expected);
        assert_eq!(expected.convert::<i64>().try_to_vec::<i64>().unwrap(), vec![4, 0, 0, 9, 5, 0]);
    }

    #[test]
    fn real_positions_are_numbers_of_a_grid() {
        let at = Positions::new(vec![3, 8, 21], 0).unwrap().in_steps(4);
        assert_eq!((at.steps(), at.len(), at.shifted(2).cols()), (4, 6, &[11, 16, 29][..]));
        assert!(
            (at.unit() - 0.25).abs() < 1e-15 && at != Positions::new(vec![3, 8, 21], 0).unwrap()
        );
    }

    #[test]
    fn a_memo_is_made_once() {
        let at = Positions::contiguous(0, 2);
        let device = Device::flex();
        assert_eq!(at.memo("x", &device, || 1), 1);
        assert_eq!(at.memo("x", &device, || 2), 1);
    }
}
