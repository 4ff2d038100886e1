//! Products of matrices with sums of f32: of bf16 for linear maps and their gradients, and of f32 without rounding.

#![expect(unsafe_code, reason = "kernels are launched without tests of their indices")]

mod activation;
pub(super) mod exact;
pub(super) mod kernel;
pub(in crate::kernels::gpu) mod map;
pub(in crate::kernels::gpu) mod multiply;
pub(in crate::kernels::gpu) mod round;
mod sums;
pub(super) mod warpgroup;

use burn::tensor::{DType, bf16};
use burn_cubecl::cubecl::client::Client;
use burn_cubecl::cubecl::prelude::*;
use burn_cubecl::tensor::CubeTensor;

use super::approximate::NATIVE;
use super::choice::{has_warpgroups, multiplies};
use super::config::UNITS;
use super::tensors::empty;
use crate::kernels::activation::NumberActivation;
use kernel::{COPIED_DEPTH, DEPTH, FactorLaunch, ProductSizesLaunch, SIDE, product_kernel};
use warpgroup::{BLOCK_COLUMNS, BLOCK_ROWS, WARPGROUP_UNITS, warpgroup_kernel};

/// Last operation on the sums of a product. It reads or writes a tensor of the results' shape and type beside them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum AfterSums {
    Nothing,
    /// Their activation is written beside them.
    Activated(NumberActivation),
    /// They are multiplied by the derivative of an activation at the numbers beside them.
    Differentiated(NumberActivation),
}

/// Settings that are fixed when the kernel is compiled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[expect(clippy::struct_excessive_bools, reason = "each of them leaves code out of the kernel")]
pub(super) struct ProductForm {
    /// Whether the left factor is in memory as `[inner, rows]`.
    pub(super) left_transposed: bool,
    /// Whether the right factor is in memory as `[columns, inner]`.
    pub(super) right_transposed: bool,
    pub(super) bias: bool,
    /// Only for products of warp groups.
    pub(super) after: AfterSums,
    /// Whether blocks divide all sizes.
    pub(super) whole: bool,
    /// Whether rows of the results consist of whole groups of four numbers.
    pub(super) fours: bool,
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

/// Results of a product.
struct Finish {
    /// Bias of each column, `[columns]`.
    bias: Option<CubeTensor>,
    /// Of warp groups only.
    after: AfterSums,
    /// Tensor that `after` reads or writes, of the shape and type of the results.
    beside: Option<CubeTensor>,
}

impl Finish {
    fn plain(bias: Option<CubeTensor>) -> Self {
        Self { bias, after: AfterSums::Nothing, beside: None }
    }
}

/// Multiplies matrices and adds a bias to each row: `[matrices, rows, columns]` in f32 or bf16.
fn products(
    left: &Matrices,
    right: &Matrices,
    Finish { bias, after, beside }: Finish,
    ProductShape { matrices, rows, columns, inner }: ProductShape,
    results: DType,
) -> CubeTensor {
    let out = empty(&left.tensor, &[matrices, rows, columns], results);
    let warpgroups = has_warpgroups(&left.tensor.client);
    let block = if warpgroups { [BLOCK_ROWS, BLOCK_COLUMNS] } else { [SIDE; 2] };
    let whole = |depth: usize| {
        rows.is_multiple_of(block[0])
            && columns.is_multiple_of(block[1])
            && inner.is_multiple_of(depth)
    };
    let copies = NATIVE && (warpgroups || whole(COPIED_DEPTH));
    let depth = if copies { COPIED_DEPTH } else { DEPTH };
    let form = ProductForm {
        left_transposed: left.transposed,
        right_transposed: right.transposed,
        bias: bias.is_some(),
        after,
        whole: whole(depth),
        fours: columns.is_multiple_of(4),
        depth,
        copies,
    };
    // Without a bias the kernel does not read it.
    let bias = bias.unwrap_or_else(|| left.tensor.clone()).into_buffer_arg();
    let client = &left.tensor.client;
    let (left, right) = (left.arg(), right.arg());
    let sizes = ProductSizesLaunch::new(rows, columns, inner);
    let to = out.clone().into_buffer_arg();
    // Nor a tensor that is not there.
    let beside = beside.unwrap_or_else(|| out.clone()).into_buffer_arg();
    let [down, across] = [rows.div_ceil(block[0]), matrices * columns.div_ceil(block[1])];
    if warpgroups {
        let blocks = across * down;
        let cubes = processors(client).min(blocks);
        let launch = match results {
            DType::BF16 => warpgroup_kernel::launch_unchecked::<bf16>,
            _ => warpgroup_kernel::launch_unchecked::<f32>,
        };
        let (count, dim) =
            (CubeCount::new_1d(cubes as u32), CubeDim::new_1d(WARPGROUP_UNITS as u32));
        // SAFETY: cubes cover the results, and where blocks do not divide a size, the kernel tests its indices.
        unsafe { launch(client, count, dim, left, right, bias, beside, to, sizes, blocks, form) };
    } else {
        let launch = match results {
            DType::BF16 => product_kernel::launch_unchecked::<bf16>,
            _ => product_kernel::launch_unchecked::<f32>,
        };
        let count = CubeCount::Static(across as u32, down as u32, 1);
        // SAFETY: as above.
        unsafe {
            launch(
                client,
                count,
                CubeDim::new_1d(UNITS as u32),
                left,
                right,
                bias,
                to,
                sizes,
                form,
            );
        }
    }
    out
}

/// Number of processors of a device.
fn processors(client: &Client) -> usize {
    client.properties().hardware.num_streaming_multiprocessors.unwrap_or(1) as usize
}

/// Product of two matrices with whole pieces, each as it is in memory.
#[cfg(feature = "lab")]
pub(in crate::kernels::gpu) fn of_matrices(
    left: CubeTensor,
    right: CubeTensor,
    left_transposed: bool,
    right_transposed: bool,
) -> CubeTensor {
    let [[a, b], [c, d]] = [&left, &right].map(|factor| factor.meta.shape().dims());
    let (rows, inner) = if left_transposed { (b, a) } else { (a, b) };
    let columns = if right_transposed { c } else { d };
    products(
        &Matrices { tensor: left, row_stride: b, rows: a, transposed: left_transposed },
        &Matrices { tensor: right, row_stride: d, rows: c, transposed: right_transposed },
        Finish::plain(None),
        ProductShape { matrices: 1, rows, columns, inner },
        DType::F32,
    )
}
