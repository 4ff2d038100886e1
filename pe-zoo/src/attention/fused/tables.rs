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

/// Extends a table to `to` entries by repeating the last one.
pub(super) fn stretched(table: Tensor<2>, to: usize) -> Tensor<2> {
    let [rows, entries] = table.dims();
    if to == entries {
        return table;
    }
    let last = table.clone().slice_dim(1, entries - 1..entries);
    Tensor::cat(vec![table, last.expand([rows, to - entries])], 1)
}
