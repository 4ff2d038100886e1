//! Conversion of the results of the backward kernel to gradients of the operands.

use burn::backend::Cube;
use burn::backend::ops::FloatTensorOps;
use burn::tensor::{DType, Shape, Slice};
use burn_cubecl::kernel::into_contiguous;
use burn_cubecl::ops::numeric::zeros_client;
use burn_cubecl::tensor::CubeTensor;

use super::config::{CONTEXTUAL_SLOPE, DECAY, FAR, FIXED, SLOPE};
use super::heads::dense;
use super::results::{Backward, Forward, OutputGradient};
use crate::kernels::operands::{Operands, SLOTS, Sizes, Slot, present};
use crate::kernels::spec::Spec;

/// Sums a tensor over some axes, which are removed from the shape.
fn sum(tensor: CubeTensor, axes: &[usize], shape: &[usize]) -> CubeTensor {
    let summed = axes.iter().fold(tensor, |sum, axis| Cube::float_sum_dim(sum, *axis));
    Cube::float_reshape(summed, Shape::from(shape.to_vec()))
}

/// Computes the gradients of all operands in the order of their slots; `None` for absent operands.
/// `run` is [`backward`](super::launch::backward).
pub(super) fn gradients(
    operands: &Operands<Cube>,
    spec: &Spec,
    kept: Forward,
    grad: CubeTensor,
    run: impl FnOnce(&Operands<Cube>, &Spec, OutputGradient) -> Backward,
) -> [Option<CubeTensor>; SLOTS] {
    let Sizes { batch, heads, rows, columns, head_dim, value_dim } = operands.sizes();
    let grad = dense(grad);
    let share = sum(Cube::float_mul(kept.output, grad.clone()), &[3], &[batch, heads, rows]);
    let share = into_contiguous(share);
    let found = run(operands, spec, OutputGradient { grad, log: kept.log, share });
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
        operands[Slot::QueryDistance].meta.shape().num_elements() / (batch * heads * rows).max(1);

    let distance = present(&operands[Slot::Distance]).then(|| {
        let entries = operands[Slot::Distance].meta.shape()[1];
        let near = sum(found.distance.clone(), &[0, 1], &[heads, entries]);
        let far = sum(of_rows(FAR, 1), &[0, 2], &[heads, 1]);
        // The gradient of the last entry is summed per row.
        if entries == 1 {
            return far;
        }
        let near = Cube::float_slice(near, &[Slice::from(..), Slice::from(..entries - 1)]);
        Cube::float_cat(vec![near, far], 1)
    });
    let decay = present(&operands[Slot::Decay]).then(|| {
        let of_columns = sum(found.decay.clone(), &[0], &[batch, heads, columns]);
        let own = sum(of_rows(DECAY, 1), &[], &[batch, heads, rows]);
        let own = if rows == columns {
            own
        } else {
            let before = Shape::from([batch, heads, columns - rows]);
            let q = &operands[Slot::Query];
            let none = zeros_client(q.client.clone(), q.device.clone(), before, DType::F32);
            Cube::float_cat(vec![none, own], 2)
        };
        Cube::float_add(of_columns, own)
    });
    // Gradients of heads are in the order of projections.
    let by_head = |tensor: CubeTensor| Cube::float_swap_dims(tensor, 1, 2);
    let of_columns = |tensor: &CubeTensor, width: usize| {
        by_head(sum(tensor.clone(), &[0], &[batch, columns, heads, width]))
    };
    Slot::ALL.map(|slot| {
        if !present(&operands[slot]) {
            return None;
        }
        match slot {
            Slot::Query => Some(by_head(found.q.clone())),
            Slot::Key => Some(of_columns(&found.k, head_dim)),
            Slot::Values => Some(of_columns(&found.values, value_dim)),
            Slot::Slope => Some(per_head(SLOPE)),
            Slot::Distance => distance.clone(),
            Slot::QueryDistance => Some(of_rows(at_products + config.entries, query_entries)),
            // Both operands are added to the same logits and have the same gradient.
            Slot::Decay | Slot::DecayResidual => decay.clone(),
            Slot::ContextualGateKeys => Some(of_columns(&found.gate_keys, head_dim)),
            Slot::ContextualVectors => Some(of_rows(at_products, config.entries)),
            Slot::ContextualHidden => {
                Some(sum(of_rows(FIXED, 2 * hidden), &[0, 1, 2], &[2, hidden]))
            }
            Slot::ContextualSlopes => Some(per_head(CONTEXTUAL_SLOPE)),
            Slot::Dense => Some(found.dense.clone()),
            // Pair terms and modifiers that only the CPU supports are made dense before.
            _ => None,
        }
    })
}
