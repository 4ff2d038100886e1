//! Products of matrices in the simulation, compared with sums in f64.

use burn::tensor::bf16;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;

use super::kernels;
use crate::init::standard_normal;
use crate::kernels::activation::NumberActivation;
use crate::kernels::gpu::mma::config::UNITS;
use crate::kernels::gpu::mma::product::exact::{ExactForm, SIDE as EXACT_SIDE};
use crate::kernels::gpu::mma::product::kernel::{COPIED_DEPTH, DEPTH, SIDE};
use crate::kernels::gpu::mma::product::round::{AT_ONCE, PIECES_EACH, ROWS_EACH};
use crate::kernels::gpu::mma::product::warpgroup::{BLOCK_COLUMNS, BLOCK_ROWS, WARPGROUP_UNITS};
use crate::kernels::gpu::mma::product::{AfterSums, ProductForm};
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

/// A kernel of `mma.sync`, or of warp groups, and its form.
struct BuiltProduct {
    form: ProductForm,
    warpgroups: bool,
    kernel: CompiledKernel,
}

impl BuiltProduct {
    fn of_planes(form: ProductForm) -> Self {
        let kernel = CompiledKernel::build(&*kernels::product(form));
        Self { form, warpgroups: false, kernel }
    }

    fn of_warpgroups(form: ProductForm) -> Self {
        let form = ProductForm { depth: COPIED_DEPTH, ..form };
        let kernel = CompiledKernel::build(&*kernels::warpgroup_product(form));
        Self { form, warpgroups: true, kernel }
    }

    fn check(&self, [matrices, rows, columns, inner]: [usize; 4]) {
        let form = self.form;
        let mut rng = ChaCha8Rng::seed_from_u64(9);
        let turned = |sides: [usize; 2], transposed| match transposed {
            true => [sides[1], sides[0]],
            false => sides,
        };
        let left = turned([rows, inner], form.left_transposed);
        let left = RandomMatrices::new(&mut rng, matrices, left);
        let right = turned([inner, columns], form.right_transposed);
        let right = RandomMatrices::new(&mut rng, matrices, right);
        let mut draw =
            |count: usize| (0..count).map(|_| standard_normal(&mut rng) as f32).collect::<Vec<_>>();
        let (bias, beside) = (draw(columns), draw(matrices * rows * columns));
        let unwritten = vec![f32::NAN; matrices * rows * columns];
        let strides = |matrices: &RandomMatrices| {
            let row = matrices.stride / 8;
            [row, matrices.rows * row]
        };
        let ([a, b], [c, d]) = (strides(&left), strides(&right));
        let mut sizes = vec![a, b, c, d, rows, columns, inner];
        let mut buffers = vec![packed(&left.numbers), packed(&right.numbers), bias.clone()];
        let (grid, units) = if self.warpgroups {
            buffers.push(beside.clone());
            let blocks = matrices * columns.div_ceil(BLOCK_COLUMNS) * rows.div_ceil(BLOCK_ROWS);
            sizes.push(blocks);
            // Some cubes compute several blocks.
            ([blocks.min(3), 1], WARPGROUP_UNITS)
        } else {
            ([matrices * columns.div_ceil(SIDE), rows.div_ceil(SIDE)], UNITS)
        };
        buffers.push(unwritten);
        let scalars = Scalars { sizes: &sizes, factors: &[] };
        self.kernel.run(&mut buffers, scalars, grid, [units, 1]);
        for at in 0..matrices * rows * columns {
            let (matrix, row, column) = (at / (rows * columns), at / columns % rows, at % columns);
            let of_row = |k| match form.left_transposed {
                true => left.at(matrix, k, row),
                false => left.at(matrix, row, k),
            };
            let of_column = |k| match form.right_transposed {
                true => right.at(matrix, column, k),
                false => right.at(matrix, k, column),
            };
            let sum = (0..inner).map(|k| of_row(k) * of_column(k)).sum::<f64>();
            let sum = sum + if form.bias { f64::from(bias[column]) } else { 0.0 };
            let next = f64::from(beside[at]);
            let (result, written) = match form.after {
                AfterSums::Nothing => (sum, next),
                AfterSums::Activated(activation) => (sum, activated(activation, sum)),
                AfterSums::Differentiated(activation) => (sum * derivative(activation, next), next),
            };
            let same = |number: f32, exact: f64| {
                let off = (f64::from(number) - exact).abs();
                // `<=` is false for NaN.
                assert!(
                    off <= 1e-4,
                    "{form:?}, {matrices} x {rows} x {columns} x {inner}: {number} for {exact} in {matrix}, {row}, {column}"
                );
            };
            same(buffers[buffers.len() - 1][at], result);
            if self.warpgroups {
                same(buffers[3][at], written);
            }
        }
    }
}

fn activated(activation: NumberActivation, x: f64) -> f64 {
    match activation {
        NumberActivation::Relu => x.max(0.0),
        NumberActivation::Gelu => x * below(x),
    }
}

fn derivative(activation: NumberActivation, x: f64) -> f64 {
    match activation {
        NumberActivation::Relu => f64::from(u8::from(x > 0.0)),
        NumberActivation::Gelu => below(x) + x * density(x),
    }
}

/// Density of the normal distribution.
fn density(x: f64) -> f64 {
    (-x * x / 2.0).exp() / (2.0 * std::f64::consts::PI).sqrt()
}

/// Distribution function of the normal distribution, as a series of odd powers.
fn below(x: f64) -> f64 {
    if x.abs() > 10.0 {
        return f64::from(u8::from(x > 0.0));
    }
    let (mut term, mut sum) = (x, x);
    for n in 1..200 {
        term *= x * x / f64::from(2 * n + 1);
        sum += term;
    }
    0.5 + density(x) * sum
}

#[test]
fn products_of_every_form() {
    for left_transposed in [false, true] {
        for right_transposed in [false, true] {
            for (whole, bias, depth) in [(true, false, COPIED_DEPTH), (false, true, DEPTH)] {
                let form = ProductForm {
                    left_transposed,
                    right_transposed,
                    bias,
                    after: AfterSums::Nothing,
                    whole,
                    fours: true,
                    depth,
                    copies: false,
                };
                let of_planes = BuiltProduct::of_planes(form);
                let [of_fours, of_any] = [true, false]
                    .map(|fours| BuiltProduct::of_warpgroups(ProductForm { fours, ..form }));
                let shapes = match whole {
                    true => vec![[2, SIDE, 4 * SIDE, 5 * depth], [1, 2 * SIDE, 2 * SIDE, depth]],
                    false => {
                        vec![[1, 1, 1, 1], [2, 130, 65, 40], [1, 7, 257, 33], [3, 129, 8, 100]]
                    }
                };
                for shape in shapes {
                    of_planes.check(shape);
                    if shape[2].is_multiple_of(4) {
                        of_fours.check(shape);
                    }
                    of_any.check(shape);
                }
            }
        }
    }
}

#[test]
fn sums_become_what_follows_them() {
    let activations = [NumberActivation::Relu, NumberActivation::Gelu];
    let both = activations.map(|of| [AfterSums::Activated(of), AfterSums::Differentiated(of)]);
    for after in both.concat() {
        for (whole, fours, shape) in [
            (true, true, [1, SIDE, 2 * SIDE, COPIED_DEPTH]),
            (false, true, [1, 130, 12, 40]),
            (false, false, [2, 5, 131, 16]),
        ] {
            let form = ProductForm {
                left_transposed: false,
                right_transposed: true,
                bias: true,
                after,
                whole,
                fours,
                depth: COPIED_DEPTH,
                copies: false,
            };
            BuiltProduct::of_warpgroups(form).check(shape);
        }
    }
}

/// The numbers of bf16 that [`packed`] has put into pairs.
fn unpacked(pairs: &[f32]) -> Vec<f64> {
    let both = |pair: &f32| {
        let bits = pair.to_bits();
        [bits as u16, (bits >> 16) as u16].map(|half| bf16::from_bits(half).to_f64())
    };
    pairs.iter().flat_map(both).collect()
}

#[test]
fn rows_are_rounded_and_padded() {
    let kernel = CompiledKernel::build(&*kernels::round());
    let mut rng = ChaCha8Rng::seed_from_u64(4);
    for [rows, width] in [[1_usize, 1_usize], [5, 13], [70, 31]] {
        let numbers =
            (0..rows * width).map(|_| standard_normal(&mut rng) as f32).collect::<Vec<_>>();
        let pieces = width.div_ceil(8);
        let mut buffers = [numbers.clone(), vec![f32::NAN; rows * pieces * 4]];
        let scalars = Scalars { sizes: &[rows * pieces, width], factors: &[] };
        kernel.run(&mut buffers, scalars, [(rows * pieces).div_ceil(UNITS), 1], [UNITS, 1]);
        for (at, rounded) in unpacked(&buffers[1]).into_iter().enumerate() {
            let (row, column) = (at / (pieces * 8), at % (pieces * 8));
            let number = if column < width { numbers[row * width + column] } else { 0.0 };
            assert_eq!(
                rounded,
                bf16::from_f32(number).to_f64(),
                "{rows} x {width}: {row}, {column}"
            );
        }
    }
}

#[test]
fn rows_are_rounded_and_summed() {
    let kernel = CompiledKernel::build(&*kernels::round_and_sum());
    let mut rng = ChaCha8Rng::seed_from_u64(5);
    // Columns of a matrix, before and after others of a wider one.
    for [rows, columns, before, after] in [[1_usize, 8, 0, 0], [300, 264, 16, 8], [256, 16, 0, 24]]
    {
        let numbers = (0..rows * columns).map(|_| standard_normal(&mut rng) as f32);
        let numbers = numbers.collect::<Vec<_>>();
        let (wide, chunks) = (before + columns + after, rows.div_ceil(ROWS_EACH));
        let (rounded, sums) = (vec![f32::NAN; rows * wide / 2], vec![f32::NAN; chunks * wide]);
        let mut buffers = [numbers.clone(), rounded, sums];
        let sizes = [rows, columns / 8, wide / 8, before / 8];
        let grid = [(columns / 8).div_ceil(PIECES_EACH), chunks];
        let scalars = Scalars { sizes: &sizes, factors: &[] };
        kernel.run(&mut buffers, scalars, grid, [AT_ONCE * PIECES_EACH, 1]);
        let written = |column: usize| (before..before + columns).contains(&column);
        for (at, rounded) in unpacked(&buffers[1]).into_iter().enumerate() {
            let (row, column) = (at / wide, at % wide);
            if written(column) {
                let number = numbers[row * columns + column - before];
                assert_eq!(rounded, bf16::from_f32(number).to_f64(), "{row}, {column}");
            }
        }
        for (at, sum) in buffers[2].iter().enumerate() {
            let (chunk, column) = (at / wide, at % wide);
            if !written(column) {
                assert!(sum.is_nan(), "{chunk}, {column}");
                continue;
            }
            let of_chunk = (chunk * ROWS_EACH..rows.min((chunk + 1) * ROWS_EACH))
                .map(|row| f64::from(numbers[row * columns + column - before]));
            let off = (f64::from(*sum) - of_chunk.sum::<f64>()).abs();
            assert!(off <= 1e-4, "{rows} x {columns}: {sum} in {chunk}, {column}");
        }
    }
}

#[test]
fn products_without_rounding() {
    // Odd numbers of rows, columns and terms have rows in memory that are no whole groups of four.
    for (fours, [matrices, rows, columns, inner, slices]) in [
        (true, [2, 64, 128, 64, 1]),
        (true, [1, 100, 8, 80, 2]),
        (false, [2, 65, 7, 33, 1]),
        (false, [1, 1, 1, 1, 1]),
    ] {
        for [left, right] in [[true, true], [true, false], [false, true], [false, false]] {
            let form = |inner_is_contiguous| ExactForm { inner_is_contiguous, fours };
            let kernel = CompiledKernel::build(&*kernels::exact(form(left), form(right)));
            let mut rng = ChaCha8Rng::seed_from_u64(6);
            let mut draw = |count: usize| {
                (0..count).map(|_| standard_normal(&mut rng) as f32).collect::<Vec<_>>()
            };
            let (a, b) = (draw(matrices * rows * inner), draw(matrices * inner * columns));
            let out = vec![f32::NAN; slices * matrices * rows * columns];
            let mut buffers = [a.clone(), b.clone(), out];
            let left_stride = if left { inner } else { rows };
            let right_stride = if right { inner } else { columns };
            let terms = inner / slices;
            let sizes = [
                left_stride,
                rows * inner,
                right_stride,
                inner * columns,
                rows,
                columns,
                inner,
                matrices,
                terms,
            ];
            let grid =
                [slices * matrices * columns.div_ceil(EXACT_SIDE), rows.div_ceil(EXACT_SIDE)];
            kernel.run(&mut buffers, Scalars { sizes: &sizes, factors: &[] }, grid, [UNITS, 1]);
            for (at, sum) in buffers[2].iter().enumerate() {
                let (place, row, column) =
                    (at / (rows * columns), at / columns % rows, at % columns);
                let (slice, matrix) = (place / matrices, place % matrices);
                let exact = (slice * terms..(slice + 1) * terms).map(|k| {
                    let of_row = if left { row * inner + k } else { k * rows + row };
                    let of_column = if right { column * inner + k } else { k * columns + column };
                    f64::from(a[matrix * rows * inner + of_row])
                        * f64::from(b[matrix * inner * columns + of_column])
                });
                let off = (f64::from(*sum) - exact.sum::<f64>()).abs();
                // A product of numbers that are rounded to eight bits is off by more than 1e-3.
                assert!(
                    off <= 2e-5,
                    "{matrices} x {rows} x {columns} x {inner}: {sum} is {off:.1e} off"
                );
            }
        }
    }
}
