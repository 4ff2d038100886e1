//! Tests of matrices, products and new memory.

use super::*;

#[test]
fn products_of_strided_matrices_are_right() {
    let a = (0..12).map(|n| n as f32).collect::<Vec<_>>();
    let b = (0..8).map(|n| (n * n) as f32).collect::<Vec<_>>();
    let left = Matrix::new(&a, Shape { rows: 3, columns: 2, row_stride: 4, column_stride: 1 });
    let right = Matrix::new(&b, Shape::dense(4, 2)).rows(1, 2);
    let mut out = vec![1.0; 6];
    multiply(
        MatrixMut::new(&mut out, Shape::dense(2, 3).transposed()),
        left,
        right,
        2.0,
        Add::Accumulate,
    );
    let mut expected = vec![1.0; 6];
    for row in 0..3 {
        for column in 0..2 {
            for inner in 0..2 {
                expected[column * 3 + row] +=
                    2.0 * a[row * 4 + inner] * b[(inner + 1) * 2 + column];
            }
        }
    }
    assert_eq!(out, expected);
}

#[test]
fn products_of_one_or_two_inner_rows_overwrite_or_add() {
    for (inner, add) in [1, 2].into_iter().flat_map(|n| [(n, Add::Overwrite), (n, Add::Accumulate)])
    {
        let (rows, columns) = (3, 37);
        let (a, b) = (noise(rows * inner), noise(inner * columns));
        // What is overwritten is not read.
        let before = if add == Add::Overwrite { f32::NAN } else { 0.25 };
        let mut found = vec![before; rows * columns];
        let out = MatrixMut::new(&mut found, Shape::dense(rows, columns));
        // Stored transposed.
        let left = Matrix::new(&a, Shape::dense(inner, rows)).t();
        multiply(out, left, Matrix::new(&b, Shape::dense(inner, columns)), 0.5, add);
        for (n, found) in found.iter().enumerate() {
            let (row, column) = (n / columns, n % columns);
            let terms = (0..inner).map(|k| 0.5 * a[k * rows + row] * b[k * columns + column]);
            let start = if add == Add::Overwrite { 0.0 } else { 0.25 };
            let expected = start + terms.sum::<f32>();
            assert!(
                (found - expected).abs() < 1e-6,
                "{inner}, {add:?}: {found}, expected {expected}"
            );
        }
    }
}

#[test]
fn products_and_equal_rows_fill_new_memory() {
    let a = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0];
    let left = Matrix::new(&a, Shape::dense(3, 2));
    let expected = vec![5.0, 11.0, 17.0, 11.0, 25.0, 39.0, 17.0, 39.0, 61.0];
    assert_eq!(product(left, left.t()), expected);
    let none = Matrix::new(&[], Shape::dense(2, 0));
    assert_eq!(product(none, none.t()), vec![0.0; 4]);
    assert!(product(left.rows(0, 0), left.t()).is_empty());
    let row = [1.0, 2.0, 3.0];
    let repeated = |len: usize| {
        let pieces = repeat_n((), len.div_ceil(300));
        in_new_memory(len, 300, Start::Rows(&row), pieces, |_, ()| {})
    };
    assert_eq!(repeated(3_000), row.repeat(1_000));
    assert!(repeated(0).is_empty());
    assert_eq!(zeros(300_000), vec![0.0; 300_000]);
}

/// Numbers without a pattern.
fn noise(count: usize) -> Vec<f32> {
    (0..count as u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 8) as f32 / 8e6 - 1.0).collect()
}

#[test]
fn products_on_any_number_of_threads_have_the_bits_of_one() {
    let sizes = [
        [300, 100, 700],
        [64, 1100, 1000],
        [64, 2000, 64],
        [50, 2000, 40],
        [2000, 70, 96],
        [600, 1300, 600],
        [20, 33, 5000],
        [7, 600, 900],
        [1, 700, 1500],
        [1025, 513, 1],
        // The last of eight parts would be short.
        [64, 600, 1040],
        [1072, 700, 48],
    ];
    for [rows, inner, columns] in sizes {
        let (a, b) = (noise(rows * inner), noise(inner * columns));
        let shapes = [Shape::dense(inner, rows).transposed(), Shape::dense(rows, inner)];
        let b = Matrix::new(&b, Shape::dense(inner, columns));
        for shape in shapes {
            let a = Matrix::new(&a, shape);
            let mut whole = vec![0.0; rows * columns];
            let out = MatrixMut::new(&mut whole, Shape::dense(rows, columns));
            multiply(out, a, b, 1.0, Add::Overwrite);
            let bits = |numbers: &[f32]| numbers.iter().map(|x| x.to_bits()).collect::<Vec<_>>();
            for threads in [1, 2, 5, 6, 8] {
                let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
                let found = pool.install(|| product(a, b));
                assert!(
                    bits(&found) == bits(&whole),
                    "{rows} {inner} {columns}, {threads} threads"
                );
            }
        }
    }
}

#[test]
fn rows_are_changed_in_both_layouts() {
    for transposed in [false, true] {
        let mut data = vec![1.0, 2.0, 3.0, 4.0];
        let shape = Shape::dense(2, 2);
        let shape = if transposed { shape.transposed() } else { shape };
        let mut matrix = MatrixMut::new(&mut data, shape);
        matrix.scale_row(1, 10.0);
        matrix.rows(0, 1).fill(7.0);
        let expected = if transposed { [7.0, 20.0, 7.0, 40.0] } else { [7.0, 7.0, 30.0, 40.0] };
        assert_eq!(data, expected.to_vec());
        let matrix = Matrix::new(&data, shape);
        let expected: f32 = if transposed { 2000.0 } else { 2500.0 };
        assert_eq!(matrix.row_dot(&matrix, 1).to_bits(), expected.to_bits());
    }
}

#[test]
#[should_panic(expected = "in 5 elements")]
fn a_matrix_larger_than_its_memory_is_refused() {
    let _ = Matrix::new(&[0.0; 5], Shape::dense(2, 3));
}

#[test]
fn planes_are_the_heads_of_each_token() {
    let mut data = vec![0.0; 2 * 3 * 2 * 2];
    for (n, plane) in planes(&mut data, [2, 3, 2, 2]).into_iter().enumerate() {
        let (mut first, mut rest) = plane.split_at_row(1);
        first.set(0, 1, n as f32 + 1.0);
        rest.set(1, 0, n as f32 + 10.0);
    }
    let expected = [0., 1., 0., 2., 0., 0., 0., 0., 10., 0., 11., 0.];
    assert_eq!(data[..12], expected);
    assert_eq!(data[12..], expected.map(|x| if x > 0.0 { x + 2.0 } else { x }));
}
