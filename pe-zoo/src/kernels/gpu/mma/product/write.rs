//! What becomes of the sums of a product.

use burn_cubecl::cubecl;
use burn_cubecl::cubecl::prelude::*;

use super::ProductForm;
use super::kernel::ProductSizes;
use crate::kernels::gpu::mma::config::ACROSS;
use crate::kernels::gpu::mma::tile::{Results, SumPair};

/// Writes this unit's sums, plus the bias of their column. The first is in the given row and column; each result has sums of
/// rows eight apart, two for each group, and the next result has those eight columns further.
#[cube]
#[expect(clippy::too_many_arguments, reason = "results, and their place")]
pub(super) fn write<O: Float>(
    results: &Results,
    bias: &Box<[f32]>,
    out: &mut Box<[Vector<O, Const<2>>]>,
    matrix: usize,
    row: usize,
    column: usize,
    sizes: &ProductSizes,
    #[comptime] groups: usize,
    #[comptime] form: ProductForm,
) {
    let rows = sizes.rows;
    let columns = sizes.columns;
    let begin = matrix * rows * columns;
    #[unroll]
    for n in 0..results.len() {
        let at = column + comptime![n * ACROSS];
        let mut offset = SumPair::new(0.0);
        if comptime![form.bias] {
            #[unroll]
            for one in 0..2usize {
                if comptime![form.whole] {
                    offset.insert(one, bias[at + one]);
                } else if at + one < columns {
                    offset.insert(one, bias[at + one]);
                }
            }
        }
        #[unroll]
        for eight in 0..comptime![groups * 2] {
            let own_row = row + comptime![eight * 8];
            let line = begin + own_row * columns + at;
            let sums = results.index(n)[eight] + offset;
            if comptime![form.whole] {
                out[line / 2] = Vector::<O, Const<2>>::cast_from(sums);
            } else {
                // Rows of an odd number of columns have no whole pairs.
                let numbers = out.with_vector_size_mut::<Const<1>>();
                #[unroll]
                for one in 0..2usize {
                    if own_row < rows && at + one < columns {
                        numbers[line + one] = Vector::cast_from(sums.extract(one));
                    }
                }
            }
        }
    }
}
