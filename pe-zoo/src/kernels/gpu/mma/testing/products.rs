//! Products of matrices in the simulation, compared with sums in f64.

use burn::tensor::bf16;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;

use super::kernels;
use crate::init::standard_normal;
use crate::kernels::gpu::mma::config::UNITS;
use crate::kernels::gpu::mma::product::kernel::{DEPTH, SIDE};
use crate::kernels::gpu::mma::product::{ProductForm, ProductShape};
use crate::kernels::gpu::testing::simulated::kernel::{CompiledKernel, Scalars};

/// Two numbers of bf16 take the place of one of f32.
fn packed(numbers: &[bf16]) -> Vec<f32> {
    let pair = |pair: &[bf16]| {
        f32::from_bits(u32::from(pair[0].to_bits()) | u32::from(pair[1].to_bits()) << 16)
    };
    numbers.chunks(2).map(pair).collect()
}

/// Random matrices in memory, whose rows are padded with zeros.
struct RandomMatrices {
    numbers: Vec<bf16>,
    rows: usize,
    stride: usize,
}

impl RandomMatrices {
    fn new(rng: &mut ChaCha8Rng, matrices: usize, [rows, width]: [usize; 2]) -> Self {
        let stride = width.next_multiple_of(8);
        let mut draw = |at: usize| match at % stride < width {
            true => bf16::from_f64(standard_normal(rng)),
            false => bf16::ZERO,
        };
        let numbers = (0..matrices * rows * stride).map(&mut draw).collect();
        Self { numbers, rows, stride }
    }

    fn at(&self, matrix: usize, row: usize, column: usize) -> f64 {
        self.numbers[(matrix * self.rows + row) * self.stride + column].to_f64()
    }
}

fn check(form: ProductForm, kernel: &CompiledKernel, shape: ProductShape) {
    let ProductShape { matrices, rows, columns, inner } = shape;
    let mut rng = ChaCha8Rng::seed_from_u64(9);
    let turned = |sides: [usize; 2], transposed| match transposed {
        true => [sides[1], sides[0]],
        false => sides,
    };
    let left = RandomMatrices::new(&mut rng, matrices, turned([rows, inner], form.left_transposed));
    let right = turned([inner, columns], form.right_transposed);
    let right = RandomMatrices::new(&mut rng, matrices, right);
    let bias = (0..columns).map(|_| standard_normal(&mut rng) as f32).collect::<Vec<_>>();
    let unwritten = vec![f32::NAN; matrices * rows * columns];
    let mut buffers = [packed(&left.numbers), packed(&right.numbers), bias.clone(), unwritten];
    let strides = |matrices: &RandomMatrices| {
        let row = matrices.stride / 8;
        [row, matrices.rows * row]
    };
    let ([a, b], [c, d]) = (strides(&left), strides(&right));
    let scalars = Scalars { sizes: &[a, b, c, d, rows, columns, inner], factors: &[] };
    let grid = [matrices * columns.div_ceil(SIDE), rows.div_ceil(SIDE)];
    kernel.run(&mut buffers, scalars, grid, [UNITS, 1]);
    for (at, sum) in buffers[3].iter().enumerate() {
        let (matrix, row, column) = (at / (rows * columns), at / columns % rows, at % columns);
        let of_row = |k| match form.left_transposed {
            true => left.at(matrix, k, row),
            false => left.at(matrix, row, k),
        };
        let of_column = |k| match form.right_transposed {
            true => right.at(matrix, column, k),
            false => right.at(matrix, k, column),
        };
        let exact = (0..inner).map(|k| of_row(k) * of_column(k)).sum::<f64>();
        let exact = exact + if form.bias { f64::from(bias[column]) } else { 0.0 };
        let off = (f64::from(*sum) - exact).abs();
        // `<=` is false for NaN.
        assert!(
            off <= 1e-4,
            "{form:?} at {shape:?}: {sum} for {exact} in {matrix}, {row}, {column}"
        );
    }
}

#[test]
fn products_of_every_form() {
    for left_transposed in [false, true] {
        for right_transposed in [false, true] {
            for (whole, bias) in [(true, false), (false, true)] {
                let form = ProductForm { left_transposed, right_transposed, bias, whole };
                let kernel = CompiledKernel::build(&*kernels::product(form));
                let shapes = match whole {
                    true => vec![[2, SIDE, 2 * SIDE, 3 * DEPTH], [1, 2 * SIDE, SIDE, DEPTH]],
                    false => {
                        vec![[1, 1, 1, 1], [2, 130, 65, 40], [1, 7, 257, 33], [3, 129, 8, 100]]
                    }
                };
                for [matrices, rows, columns, inner] in shapes {
                    check(form, &kernel, ProductShape { matrices, rows, columns, inner });
                }
            }
        }
    }
}
