//! Distance tables whose last entry holds for all greater distances.

use burn::tensor::Tensor;

use crate::score::Beyond;

/// Returns the table in the form whose last entry holds for all greater distances; for
/// [`Beyond::Zero`] an entry 0 is appended.
pub(super) fn endless(table: &Tensor<2>, beyond: Beyond) -> Tensor<2> {
    match beyond {
        Beyond::Last => table.clone(),
        Beyond::Zero => {
            let [rows, _entries] = table.dims();
            Tensor::cat(vec![table.clone(), Tensor::zeros([rows, 1], &table.device())], 1)
        }
    }
}

/// Extends a table, whose last axis has the entries, to `to` entries by repeating the last one.
pub(super) fn stretched<const D: usize>(table: Tensor<D>, to: usize) -> Tensor<D> {
    let mut shape = table.dims();
    let entries = shape[D - 1];
    if to == entries {
        return table;
    }
    shape[D - 1] = to - entries;
    let last = table.clone().slice_dim(D - 1, entries - 1..entries);
    Tensor::cat(vec![table, last.expand(shape)], D - 1)
}
