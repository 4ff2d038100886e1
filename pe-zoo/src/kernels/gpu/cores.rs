//! Products of blocks on tensor cores, with rounded factors and f32 sums.
//!
//! A plane of 32 units (a warp) computes 16 x 16 entries of a product at a time and writes them to
//! a result buffer in shared memory, from which every unit reads its own entries, because the
//! assignment of a fragment's entries to units depends on the device.

use burn_cubecl::cubecl;
use burn_cubecl::cubecl::cmma::{self, MatrixIdent, MatrixLayout};
use burn_cubecl::cubecl::prelude::*;

/// Number of rows and columns of one step of a tensor core.
pub(super) const FRAGMENT: usize = 16;

/// Number format of the factors, with its shape on tensor cores.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Rounded {
    /// Inner dimension of one step.
    pub(super) inner: usize,
    /// Size of a number in bytes.
    pub(super) bytes: usize,
}

/// The bf16 format, with eight significant bits.
pub(super) const BF16: Rounded = Rounded { inner: 16, bytes: 2 };

/// The tf32 format, with eleven significant bits.
pub(super) const TF32: Rounded = Rounded { inner: 8, bytes: 4 };

/// Number of units that process a fragment together.
pub(super) const PLANE: usize = 32;

/// Required alignment of the addresses that fragments are loaded from.
pub(super) const ALIGNMENT: usize = 32;

/// Rounds `width` up to whole fragments.
pub(super) const fn padded(width: usize) -> usize {
    width.next_multiple_of(FRAGMENT)
}

/// Stride between rows of rounded blocks and of the result buffer. Adjacent rows lie in different
/// banks, and fragments are aligned.
pub(super) const fn stride(width: usize) -> usize {
    padded(width) + 8
}

/// Sizes and layout of a product `[rows, inner] . [inner, columns]`; all sizes are multiples of
/// fragments.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Product {
    pub(super) rows: usize,
    pub(super) columns: usize,
    pub(super) inner: usize,
    /// Whether the left factor is stored as `[inner, rows]`.
    pub(super) left_transposed: bool,
    /// Whether the right factor is stored as `[columns, inner]`.
    pub(super) right_transposed: bool,
    /// Stride between stored rows of the left factor.
    pub(super) left_stride: usize,
    /// Stride between stored rows of the right factor.
    pub(super) right_stride: usize,
    /// Inner dimension of one step.
    pub(super) step: usize,
    /// Number of units in the cube.
    pub(super) units: usize,
}

/// Returns the memory layout of a factor.
const fn layout(transposed: bool) -> MatrixLayout {
    if transposed { MatrixLayout::ColMajor } else { MatrixLayout::RowMajor }
}

/// Computes a product and writes it to the result buffer, `[rows, stride(columns)]`. All units of
/// the cube must call it.
#[cube]
pub(super) fn multiply<F: Float>(
    left: &Shared<[F]>,
    right: &Shared<[F]>,
    stage: &mut Shared<[f32]>,
    #[comptime] product: Product,
) {
    // All units must have finished reading the previous product and writing the factors.
    sync_cube();
    let across = comptime![product.columns / FRAGMENT];
    let fragments = comptime![product.rows / FRAGMENT * across];
    let left_stride = comptime![product.left_stride];
    let right_stride = comptime![product.right_stride];
    let stage_stride = comptime![stride(product.columns)];
    let mut at = UNIT_POS as usize / PLANE;
    while at < fragments {
        let row = at / across * FRAGMENT;
        let column = at % across * FRAGMENT;
        let sum = cmma::Matrix::<f32>::from_value(
            MatrixIdent::Accumulator,
            FRAGMENT,
            FRAGMENT,
            comptime![product.step],
            MatrixLayout::Undefined,
            f32::new(0.0),
        );
        for step in 0..comptime![product.inner / product.step] {
            let inner = step * comptime![product.step];
            let mut from_left = row * left_stride + inner;
            if comptime![product.left_transposed] {
                from_left = inner * left_stride + row;
            }
            let mut from_right = inner * right_stride + column;
            if comptime![product.right_transposed] {
                from_right = column * right_stride + inner;
            }
            let of_left = cmma::Matrix::<F>::from_slice(
                MatrixIdent::A,
                FRAGMENT,
                FRAGMENT,
                comptime![product.step],
                comptime![layout(product.left_transposed)],
                &left[from_left..],
                comptime![product.left_stride as u32],
            );
            let of_right = cmma::Matrix::<F>::from_slice(
                MatrixIdent::B,
                FRAGMENT,
                FRAGMENT,
                comptime![product.step],
                comptime![layout(product.right_transposed)],
                &right[from_right..],
                comptime![product.right_stride as u32],
            );
            cmma::execute(&of_left, &of_right, &sum, &sum);
        }
        let to = row * stage_stride + column;
        cmma::store(&mut stage[to..], &sum, comptime![stage_stride as u32], MatrixLayout::RowMajor);
        at += comptime![product.units / PLANE];
    }
    sync_cube();
}
