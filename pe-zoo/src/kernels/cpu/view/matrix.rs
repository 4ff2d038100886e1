//! Strided matrices that are read.

/// Numbers of rows and columns, and their strides in elements.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Shape {
    pub(crate) rows: usize,
    pub(crate) columns: usize,
    pub(crate) row_stride: usize,
    pub(crate) column_stride: usize,
}

impl Shape {
    /// Creates a contiguous shape in row-major order.
    pub(crate) fn dense(rows: usize, columns: usize) -> Self {
        Self { rows, columns, row_stride: columns, column_stride: 1 }
    }

    pub(super) fn transposed(self) -> Self {
        Self {
            rows: self.columns,
            columns: self.rows,
            row_stride: self.column_stride,
            column_stride: self.row_stride,
        }
    }

    /// Number of elements from the first to one past the last.
    pub(super) fn extent(self) -> usize {
        if self.rows == 0 || self.columns == 0 {
            return 0;
        }
        (self.rows - 1) * self.row_stride + (self.columns - 1) * self.column_stride + 1
    }
}

/// Strided matrix over borrowed memory.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Matrix<'a> {
    pub(super) data: &'a [f32],
    pub(super) shape: Shape,
}

impl<'a> Matrix<'a> {
    /// Matrix without any elements.
    pub(crate) const EMPTY: Self =
        Self { data: &[], shape: Shape { rows: 0, columns: 0, row_stride: 0, column_stride: 0 } };

    /// Creates a matrix that starts at the first element of `data`.
    pub(crate) fn new(data: &'a [f32], shape: Shape) -> Self {
        assert!(shape.extent() <= data.len(), "{shape:?} in {} elements", data.len());
        Self { data, shape }
    }

    pub(crate) fn shape(&self) -> Shape {
        self.shape
    }

    pub(crate) fn t(self) -> Self {
        Self { data: self.data, shape: self.shape.transposed() }
    }

    /// Selects rows `from..from + count`.
    pub(crate) fn rows(self, from: usize, count: usize) -> Self {
        assert!(from + count <= self.shape.rows, "rows {from}+{count} of {:?}", self.shape);
        let start = (from * self.shape.row_stride).min(self.data.len());
        Self::new(&self.data[start..], Shape { rows: count, ..self.shape })
    }

    /// Selects columns `0..count` of the matrix.
    pub(crate) fn columns(self, count: usize) -> Self {
        assert!(count <= self.shape.columns, "{count} columns of {:?}", self.shape);
        Self { data: self.data, shape: Shape { columns: count, ..self.shape } }
    }

    /// Selects columns from `from` on.
    pub(crate) fn columns_from(self, from: usize) -> Self {
        assert!(from <= self.shape.columns, "columns from {from} of {:?}", self.shape);
        let start = (from * self.shape.column_stride).min(self.data.len());
        let shape = Shape { columns: self.shape.columns - from, ..self.shape };
        Self::new(&self.data[start..], shape)
    }

    /// Returns a row if its elements are adjacent.
    #[inline(always)]
    pub(crate) fn row(self, row: usize) -> Option<&'a [f32]> {
        assert!(row < self.shape.rows, "row {row} of {:?}", self.shape);
        let start = row * self.shape.row_stride;
        (self.shape.column_stride == 1).then(|| &self.data[start..start + self.shape.columns])
    }

    /// Dot product of row `row` of `self` and the same row of `other`.
    #[inline(always)]
    pub(crate) fn row_dot(&self, other: &Self, row: usize) -> f32 {
        match (self.row(row), other.row(row)) {
            (Some(a), Some(b)) => a.iter().zip(b).map(|(a, b)| a * b).sum(),
            _ => (0..self.shape.columns).map(|at| self.at(row, at) * other.at(row, at)).sum(),
        }
    }

    #[inline(always)]
    pub(crate) fn at(self, row: usize, column: usize) -> f32 {
        debug_assert!(row < self.shape.rows && column < self.shape.columns);
        self.data[row * self.shape.row_stride + column * self.shape.column_stride]
    }
}
