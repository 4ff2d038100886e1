//! Tables over distances whose last entry stands for all greater distances.

use burn::tensor::Tensor;

use crate::score::Beyond;

/// The same table with its last entry repeated for all greater distances.
pub(super) fn endless(table: &Tensor<2>, beyond: Beyond) -> Tensor<2> {
    match beyond {
        Beyond::Last => table.clone(),
        Beyond::Zero => {
            let [rows, _entries] = table.dims();
            Tensor::cat(vec![table.clone(), Tensor::zeros([rows, 1], &table.device())], 1)
        }
    }
}

/// A table of so many entries, the last one repeated.
pub(super) fn stretched(table: Tensor<2>, to: usize) -> Tensor<2> {
    let [rows, entries] = table.dims();
    if to == entries {
        return table;
    }
    let last = table.clone().slice_dim(1, entries - 1..entries);
    Tensor::cat(vec![table, last.expand([rows, to - entries])], 1)
}
