//! From what the backward kernel leaves to the gradients of the operands.

use burn::backend::Cube;
use burn::backend::ops::FloatTensorOps;
use burn::tensor::{DType, Shape, Slice};
use burn_cubecl::kernel::into_contiguous;
use burn_cubecl::ops::numeric::zeros_client;
use burn_cubecl::tensor::CubeTensor;

use super::arguments::present;
use super::config::{CONTEXTUAL_SLOPE, DECAY, FAR, FIXED, SLOPE};
use super::results::{Backward, Forward};
use crate::kernels::operands::{OPERANDS, Operands, Sizes};
use crate::kernels::spec::Spec;

/// Sums over axes, which are left out of the shape.
fn sum(tensor: CubeTensor, axes: &[usize], shape: &[usize]) -> CubeTensor {
    let summed = axes.iter().fold(tensor, |sum, axis| Cube::float_sum_dim(sum, *axis));
    Cube::float_reshape(summed, Shape::from(shape.to_vec()))
}

/// Gradients of all operands, in the order of their fields; `None` for absent ones. `run` is
/// [`backward`](super::launch::backward).
pub(super) fn gradients(
    operands: &Operands<Cube>,
    spec: &Spec,
    kept: Forward,
    grad: CubeTensor,
    run: impl FnOnce(&Operands<Cube>, &Spec, [CubeTensor; 3]) -> Backward,
) -> [Option<CubeTensor>; OPERANDS] {
    let Sizes { batch, heads, rows, columns, head_dim, value_dim } = operands.sizes();
    let grad = into_contiguous(grad);
    let share = sum(Cube::float_mul(kept.output, grad.clone()), &[3], &[batch, heads, rows]);
    let found = run(operands, spec, [grad, kept.log, into_contiguous(share)]);
    let config = found.config;

    let of_rows = |from: usize, width: usize| {
        let mut slices = vec![Slice::from(..); 4];
        slices[3] = Slice::from(from..from + width);
        Cube::float_slice(found.rows.clone(), &slices)
    };
    let per_head = |column: usize| sum(of_rows(column, 1), &[0, 2], &[heads]);
    let hidden = config.hidden();
    let at_products = FIXED + 2 * hidden;
    let query_entries =
        operands.query_distance.meta.shape().num_elements() / (batch * heads * rows).max(1);

    let distance = present(&operands.distance).then(|| {
        let entries = operands.distance.meta.shape()[1];
        let near = sum(found.distance, &[0, 1], &[heads, entries]);
        let far = sum(of_rows(FAR, 1), &[0, 2], &[heads, 1]);
        // The kernel leaves the last entry to the rows.
        if entries == 1 {
            return far;
        }
        let near = Cube::float_slice(near, &[Slice::from(..), Slice::from(..entries - 1)]);
        Cube::float_cat(vec![near, far], 1)
    });
    let decay = present(&operands.decay).then(|| {
        let of_columns = sum(found.decay, &[0], &[batch, heads, columns]);
        let own = sum(of_rows(DECAY, 1), &[], &[batch, heads, rows]);
        let own = if rows == columns {
            own
        } else {
            let before = Shape::from([batch, heads, columns - rows]);
            let q = &operands.q;
            let none = zeros_client(q.client.clone(), q.device.clone(), before, DType::F32);
            Cube::float_cat(vec![none, own], 2)
        };
        Cube::float_add(of_columns, own)
    });
    let planes = [batch, heads, columns];
    let wide = |width: usize| [planes.as_slice(), &[width]].concat();
    [
        Some(found.q),
        Some(sum(found.k, &[0], &wide(head_dim))),
        Some(sum(found.values, &[0], &wide(value_dim))),
        present(&operands.slopes).then(|| per_head(SLOPE)),
        distance,
        present(&operands.query_distance)
            .then(|| of_rows(at_products + config.entries, query_entries)),
        decay.clone(),
        // Both are added to the same logits.
        decay.filter(|_| present(&operands.decay_residual)),
        present(&operands.gate_keys).then(|| sum(found.gate_keys, &[0], &wide(head_dim))),
        present(&operands.table).then(|| of_rows(at_products, config.entries)),
        present(&operands.hidden)
            .then(|| sum(of_rows(FIXED, 2 * hidden), &[0, 1, 2], &[2, hidden])),
        present(&operands.contextual_slopes).then(|| per_head(CONTEXTUAL_SLOPE)),
        present(&operands.dense).then_some(found.dense),
    ]
}
