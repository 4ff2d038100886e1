//! Product of one row with a matrix, as every linear map of one decoded token: reading the matrix takes the time.

use rayon::prelude::*;

use crate::kernels::cpu::view::{Matrix, Start, in_new_memory};

/// Number of elements that are processed together. Sums have as many parts, in a fixed order.
pub(super) const SIDE: usize = 16;

/// Computes `x matrix`, `[I] [I, O] -> [O]`, on all threads. Each sum has the same order in whatever piece it is computed.
pub(super) fn row_product(x: &[f32], matrix: Matrix<'_>) -> Vec<f32> {
    let shape = matrix.shape();
    assert_eq!(x.len(), shape.rows, "numbers for the rows of {shape:?}");
    let pieces = 2 * rayon::current_num_threads();
    let piece = shape.columns.div_ceil(pieces).next_multiple_of(SIDE).max(SIDE);
    in_new_memory(
        shape.columns,
        piece,
        Start::Zeros,
        (0..shape.columns.div_ceil(piece)).into_par_iter(),
        #[inline(always)]
        |output, index| {
            let matrix = matrix.columns_from(index * piece).columns(output.len());
            if shape.row_stride == 1 {
                for (column, output) in output.iter_mut().enumerate() {
                    *output = dot(x, matrix.t().row(column).unwrap_or_default());
                }
            } else {
                for (row, x) in x.iter().enumerate() {
                    add_row(output, *x, matrix, row);
                }
            }
        },
    )
}

/// Adds a row of the matrix times a number.
#[inline(always)]
fn add_row(output: &mut [f32], x: f32, matrix: Matrix<'_>, row: usize) {
    let Some(weights) = matrix.row(row) else {
        for (column, output) in output.iter_mut().enumerate() {
            *output += x * matrix.at(row, column);
        }
        return;
    };
    for (output, weight) in output.iter_mut().zip(weights) {
        *output += x * weight;
    }
}

/// Scalar product of two rows of equal length.
#[inline(always)]
pub(super) fn dot(a: &[f32], b: &[f32]) -> f32 {
    let ((a, a_rest), (b, b_rest)) = (a.as_chunks::<SIDE>(), b.as_chunks::<SIDE>());
    let mut side = [0.0; SIDE];
    for (a, b) in a.iter().zip(b) {
        for n in 0..SIDE {
            side[n] += a[n] * b[n];
        }
    }
    side.iter().sum::<f32>() + a_rest.iter().zip(b_rest).map(|(a, b)| a * b).sum::<f32>()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernels::cpu::view::Shape;
    use crate::testkit::close::{self, F32};

    /// Numbers without a pattern.
    fn noise(count: usize) -> Vec<f32> {
        let numbers = (0..count as u32).map(|n| n.wrapping_mul(2_654_435_761) >> 8);
        numbers.map(|n| n as f32 / 8e6 - 1.0).collect()
    }

    #[test]
    fn sums_are_right_in_every_order_of_memory_and_equal_on_any_number_of_threads() {
        for [rows, columns] in [[1, 1], [7, 33], [600, 513], [35, 1000]] {
            let (x, numbers) = (noise(rows), noise(3 * rows * columns));
            let apart = Shape { rows, columns, row_stride: 3 * columns, column_stride: 3 };
            let by_column = Shape { rows, columns, row_stride: 1, column_stride: rows };
            for shape in [Shape::dense(rows, columns), by_column, apart] {
                let matrix = Matrix::new(&numbers, shape);
                let sum = |column| {
                    let terms = x.iter().enumerate();
                    terms.map(|(row, x)| f64::from(*x) * f64::from(matrix.at(row, column))).sum()
                };
                let expected = (0..columns).map(sum).collect::<Vec<f64>>();
                let on = |threads| {
                    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads);
                    pool.build().unwrap().install(|| row_product(&x, matrix))
                };
                let product = on(1);
                let widened = product.iter().map(|x| f64::from(*x)).collect::<Vec<_>>();
                close::compare(&widened, &expected, F32).unwrap();
                for threads in [2, 5] {
                    let bits = |numbers: &[f32]| numbers.iter().map(|x| x.to_bits()).collect();
                    let (one, several): (Vec<u32>, Vec<u32>) = (bits(&product), bits(&on(threads)));
                    assert!(one == several, "{rows} {columns}, {threads} threads");
                }
            }
        }
    }
}
