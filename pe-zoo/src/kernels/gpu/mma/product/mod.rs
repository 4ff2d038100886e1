//! Products of matrices with sums of f32: of bf16 for linear maps and their gradients, and of f32 without rounding.

#![expect(unsafe_code, reason = "kernels are launched without tests of their indices")]

pub(super) mod exact;
pub(super) mod kernel;
pub(in crate::kernels::gpu) mod map;
pub(in crate::kernels::gpu) mod multiply;
pub(in crate::kernels::gpu) mod round;
pub(super) mod warpgroup;
mod write;

use burn::tensor::{DType, bf16};
use burn_cubecl::cubecl::client::Client;
use burn_cubecl::cubecl::prelude::*;
use burn_cubecl::tensor::CubeTensor;

use super::approximate::NATIVE;
use super::config::{UNITS, multiplies};
use super::packed::empty;
use super::warpgroup::has_warpgroups;
use kernel::{COPIED_DEPTH, DEPTH, FactorLaunch, ProductSizesLaunch, SIDE, product_kernel};
use warpgroup::{WARPGROUP_UNITS, warpgroup_kernel};

/// Settings that are fixed when the kernel is compiled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[expect(clippy::struct_excessive_bools, reason = "each of them leaves code out of the kernel")]
pub(super) struct ProductForm {
    /// Whether the left factor is in memory as `[inner, rows]`.
    pub(super) left_transposed: bool,
    /// Whether the right factor is in memory as `[columns, inner]`.
    pub(super) right_transposed: bool,
    pub(super) bias: bool,
    /// Whether blocks divide all sizes.
    pub(super) whole: bool,
    /// Terms of a step.
    pub(super) depth: usize,
    /// Whether the next step's factors are copied to shared memory without registers.
    pub(super) copies: bool,
}

/// Matrices of bf16 in memory, one after the other, whose rows are padded to multiples of eight numbers.
#[derive(Debug, Clone)]
struct Matrices {
    tensor: CubeTensor,
    /// Numbers from one row to the next.
    row_stride: usize,
    /// Rows of a matrix in memory.
    rows: usize,
    /// Whether rows in memory are columns of the factor.
    transposed: bool,
}

impl Matrices {
    /// The same memory, read as the transposed factor.
    fn transposed(self) -> Self {
        Self { transposed: !self.transposed, ..self }
    }

    fn arg(&self) -> FactorLaunch {
        let stride = self.row_stride / 8;
        FactorLaunch::new(self.tensor.clone().into_buffer_arg(), stride, self.rows * stride)
    }
}

/// Sizes of products.
#[derive(Debug, Clone, Copy)]
pub(super) struct ProductShape {
    /// Number of products.
    pub(super) matrices: usize,
    pub(super) rows: usize,
    pub(super) columns: usize,
    pub(super) inner: usize,
}

/// Fewest terms of a slice of a sum.
const SLICE_TERMS: usize = 1024;
/// Blocks of results that fill a GPU.
const BLOCKS: usize = 256;

/// Number of slices, a power of two, into which sums are cut so that they fill a GPU where there are few blocks of results.
/// Slices have the same number of terms, a multiple of eight.
fn slices(terms: usize, blocks: usize) -> usize {
    let mut slices = 1;
    while slices * blocks < BLOCKS
        && terms.is_multiple_of(16 * slices)
        && terms / (2 * slices) >= SLICE_TERMS
    {
        slices *= 2;
    }
    slices
}

/// Whether a device has the tensor instructions.
pub(in crate::kernels::gpu) fn has_products(client: &Client) -> bool {
    multiplies(client)
}

/// Multiplies matrices and adds a bias `[columns]` to each row: `[matrices, rows, columns]` in f32 or bf16.
fn products(
    left: &Matrices,
    right: &Matrices,
    bias: Option<CubeTensor>,
    ProductShape { matrices, rows, columns, inner }: ProductShape,
    results: DType,
) -> CubeTensor {
    let out = empty(&left.tensor, &[matrices, rows, columns], results);
    let whole = |depth: usize| {
        rows.is_multiple_of(SIDE) && columns.is_multiple_of(SIDE) && inner.is_multiple_of(depth)
    };
    let warpgroups = has_warpgroups(&left.tensor.client);
    let copies = NATIVE && (warpgroups || whole(COPIED_DEPTH));
    let form = ProductForm {
        left_transposed: left.transposed,
        right_transposed: right.transposed,
        bias: bias.is_some(),
        whole: whole(if copies { COPIED_DEPTH } else { DEPTH }),
        depth: if copies { COPIED_DEPTH } else { DEPTH },
        copies,
    };
    let blocks = [matrices * columns.div_ceil(SIDE), rows.div_ceil(SIDE)].map(|count| count as u32);
    // Without a bias the kernel does not read it.
    let bias = bias.unwrap_or_else(|| left.tensor.clone());
    let launch = match (warpgroups, results) {
        (true, DType::BF16) => warpgroup_kernel::launch_unchecked::<bf16>,
        (true, _) => warpgroup_kernel::launch_unchecked::<f32>,
        (false, DType::BF16) => product_kernel::launch_unchecked::<bf16>,
        (false, _) => product_kernel::launch_unchecked::<f32>,
    };
    let units = if warpgroups { WARPGROUP_UNITS } else { UNITS };
    // SAFETY: cubes cover the results, and where blocks do not divide a size, the kernel tests its indices.
    unsafe {
        launch(
            &left.tensor.client,
            CubeCount::Static(blocks[0], blocks[1], 1),
            CubeDim::new_1d(units as u32),
            left.arg(),
            right.arg(),
            bias.into_buffer_arg(),
            out.clone().into_buffer_arg(),
            ProductSizesLaunch::new(rows, columns, inner),
            form,
        );
    }
    out
}

/// Product of two matrices with whole pieces, each as it is in memory.
#[cfg(feature = "lab")]
pub(in crate::kernels::gpu) fn of_matrices(
    factors: [CubeTensor; 2],
    [left_transposed, right_transposed]: [bool; 2],
) -> CubeTensor {
    let [[a, b], [c, d]] = factors.each_ref().map(|factor| factor.meta.shape().dims());
    let (rows, inner) = if left_transposed { (b, a) } else { (a, b) };
    let columns = if right_transposed { c } else { d };
    let [left, right] = factors;
    products(
        &Matrices { tensor: left, row_stride: b, rows: a, transposed: left_transposed },
        &Matrices { tensor: right, row_stride: d, rows: c, transposed: right_transposed },
        None,
        ProductShape { matrices: 1, rows, columns, inner },
        DType::F32,
    )
}
