//! The fused engine: attention under any [`ScoreMod`] without a `T x S` tensor.
//!
//! `operands` splits a modifier into the operands of the kernels in `crate::kernels`, as `super::support` plans it.

#[cfg(feature = "flex")]
mod cpu_operands;
mod operands;
mod piecewise;

#[cfg(all(test, feature = "flex"))]
mod tests;

use burn::tensor::{DType, Tensor};

#[cfg(feature = "cube")]
use super::blocks::DENSE_ROWS;
use super::reference::LogitInputs;
#[cfg(feature = "cube")]
use crate::kernels::spec;
use crate::kernels::{self, Kernels};
use crate::ops::MatmulPrecision;
use crate::score::Beyond;
use crate::{Positions, ScoreMod};
use operands::ModifierOperands;

/// Modifier in the form in which the kernels of a GPU compute it.
#[cfg(feature = "cube")]
struct GpuModifier {
    modifier: ScoreMod,
    kernels: Kernels,
}

#[cfg(feature = "cube")]
impl GpuModifier {
    /// Chooses the kernels on tensor cores if they are there (`on_cores`) and have a form for the modifier.
    fn new(modifier: &ScoreMod, on_cores: bool, columns: usize) -> Self {
        match modifier.for_cores(columns).filter(|_| on_cores) {
            Some(modifier) => Self { modifier, kernels: Kernels::GpuCores },
            None => Self { modifier: modifier.clone(), kernels: Kernels::Gpu },
        }
    }

    /// Whether a part becomes a tensor of all pairs.
    fn is_dense(&self, at: &Positions) -> bool {
        // `with_products` makes these tables dense.
        let by_distance = |part: &ScoreMod| matches!(part, ScoreMod::Distance { .. });
        self.modifier.planned(self.kernels).iter().any(|planned| {
            !planned.in_kernels || (by_distance(planned.part) && !spec::contiguous(at.cols()))
        })
    }

    fn operands(&self, inputs: &LogitInputs<'_>) -> ModifierOperands {
        ModifierOperands::of(&self.modifier, inputs, self.kernels).with_products(inputs)
    }
}

/// Computes causal attention, `[B, H, T, E]`; `None` if no kernel supports these tensors under this
/// modifier. Parts of a modifier that the kernels do not support become a dense bias, computed by
/// the reference engine; on a GPU only for the rows of one block, and `None` for more.
#[expect(clippy::too_many_arguments, reason = "the six tensors of one formula")]
pub(crate) fn attend(
    precision: MatmulPrecision,
    q: &Tensor<4>,
    k: &Tensor<4>,
    v: &Tensor<4>,
    values: &Tensor<4>,
    modifier: &ScoreMod,
    at: &Positions,
    scale: f64,
) -> Option<Tensor<4>> {
    let kernels = kernels::of(&q.device())?;
    if modifier.is_hard() {
        return None;
    }
    match kernels {
        #[cfg(feature = "flex")]
        Kernels::Cpu if q.dtype() == DType::F32 => {
            let inputs = LogitInputs::new(q, k, v, at, scale);
            let operands = ModifierOperands::of(modifier, &inputs, Kernels::Cpu);
            let (operands, spec) = operands.operands(&inputs, values, precision);
            Some(kernels::cpu::attend(operands, spec))
        }
        #[cfg(feature = "cube")]
        Kernels::Gpu if kernels::gpu::takes(q.dtype()) => {
            // Sums, weights and tables are f32 whatever the operands are.
            let dtype = q.dtype();
            let [q, k, v, values] = [q, k, v, values].map(|u| u.clone().cast(DType::F32));
            let inputs = LogitInputs::new(&q, &k, &v, at, scale);
            let needs = modifier.needs_of_cores();
            let on_cores = spec::contiguous(at.cols())
                && (!needs.from_zero || at.cols().first() == Some(&0))
                && (!needs.all_rows || at.first_row() == 0)
                && kernels::gpu::on_cores(&q.device(), precision, q.dims(), values.dims(), needs);
            let modifier = GpuModifier::new(modifier, on_cores, at.cols().len());
            if at.rows().len() > DENSE_ROWS && modifier.is_dense(at) {
                return None;
            }
            let operands = modifier.operands(&inputs);
            let (operands, spec) = operands.operands(&inputs, &values, precision);
            kernels::gpu::attend(&q.device(), operands, spec).map(|output| output.cast(dtype))
        }
        _ => None,
    }
}

/// Returns the table in the form whose last entry holds for all greater distances; for
/// [`Beyond::Zero`] an entry 0 is appended.
fn endless(table: &Tensor<2>, beyond: Beyond) -> Tensor<2> {
    match beyond {
        Beyond::Last => table.clone(),
        Beyond::Zero => {
            let [rows, _entries] = table.dims();
            Tensor::cat(vec![table.clone(), Tensor::zeros([rows, 1], &table.device())], 1)
        }
    }
}

/// Extends a table, whose last axis has the entries, to `to` entries by repeating the last one.
fn stretched<const D: usize>(table: Tensor<D>, to: usize) -> Tensor<D> {
    let mut shape = table.dims();
    let entries = shape[D - 1];
    if to == entries {
        return table;
    }
    shape[D - 1] = to - entries;
    let last = table.clone().slice_dim(D - 1, entries - 1..entries);
    Tensor::cat(vec![table, last.expand(shape)], D - 1)
}
