//! Modifiers that have operands of their own in the CPU's kernels.

use std::sync::Arc;

use burn::backend::DispatchTensor;
use burn::tensor::Tensor;

use super::endless;
use super::piecewise::{HostPieces, PiecewiseTensors, every_distance};
use crate::attention::reference::LogitInputs;
use crate::kernels::cpu::modifiers::reflected_chunks;
use crate::kernels::operands::{PiecewiseSlots, Slot};
use crate::kernels::spec::HeadMlpSpec;
use crate::score::{HeadMlp, PositionMlp, Reflected, TokenPrice};
use crate::{Positions, ScoreMod};

/// Kernel operands of one modifier.
#[derive(Default)]
pub(super) struct CpuOperands {
    pub(super) tensors: Vec<(Slot, DispatchTensor)>,
    /// Boundaries between the pieces of a piecewise linear bias, ascending; empty without one.
    pub(super) position_mlp_bends: Arc<[f32]>,
    pub(super) head_mlp: Option<HeadMlpSpec>,
}

/// Converts a modifier that [`ScoreMod::planned`] gives to the kernels of the CPU to their operands.
pub(super) fn of(modifier: &ScoreMod, inputs: &LogitInputs<'_>) -> CpuOperands {
    let mut operands = CpuOperands::default();
    match modifier {
        ScoreMod::PositionMlp(mlp) => {
            operands.position_mlp_bends =
                operands.put_piecewise(PiecewiseSlots::LOGIT_BIAS, mlp, inputs.at);
        }
        ScoreMod::TokenPrice(TokenPrice { rate, keys, queries }) => {
            let [heads] = rate.dims();
            let rate = rate.clone().neg().reshape([1, heads, 1]);
            for (slot, gates) in [(Slot::TokenPriceKeys, keys), (Slot::TokenPriceQueries, queries)]
            {
                if let Some(gates) = gates {
                    operands.put(slot, gates.clone().squeeze_dim::<3>(3) * rate.clone());
                }
            }
        }
        ScoreMod::Reflected(Reflected { directions, strengths }) => {
            let maps = reflected_chunks(inputs.k.clone(), directions.clone(), strengths.clone());
            operands.put(Slot::ReflectedDirections, directions.clone());
            operands.put(Slot::ReflectedChunks, maps);
        }
        ScoreMod::HeadMlp(mlp) => operands.put_head_mlp(mlp, inputs),
        other => unreachable!("the kernels take {other:?} without operands of their own"),
    }
    operands
}

impl CpuOperands {
    fn put<const D: usize>(&mut self, slot: Slot, tensor: Tensor<D>) {
        self.tensors.push((slot, tensor.into_dispatch()));
    }

    /// Adds the operands of a piecewise linear function of the distance, in these slots. Returns the bends between the pieces.
    fn put_piecewise(
        &mut self,
        slots: PiecewiseSlots,
        mlp: &PositionMlp,
        at: &Positions,
    ) -> Arc<[f32]> {
        let HostPieces { bends, slopes } = HostPieces::of(mlp);
        let PiecewiseTensors { lines, distances, rows } = PiecewiseTensors::of(mlp, slopes, at);
        self.put(slots.lines, lines);
        self.put(slots.distances, distances);
        self.put(slots.rows, rows);
        bends
    }

    fn put_head_mlp(&mut self, mlp: &HeadMlp, inputs: &LogitInputs<'_>) {
        let mut bends = Arc::from([]);
        match mlp.base.as_deref() {
            None => {}
            Some(ScoreMod::Slope(slopes)) => {
                let distances = every_distance(inputs.at, &inputs.device);
                self.put(
                    Slot::HeadMlpBaseTable,
                    slopes.clone().neg().unsqueeze_dim::<2>(1) * distances,
                );
            }
            Some(ScoreMod::Distance { table, beyond }) => {
                self.put(Slot::HeadMlpBaseTable, endless(table, *beyond));
            }
            Some(ScoreMod::PositionMlp(base)) => {
                bends = self.put_piecewise(PiecewiseSlots::HEAD_MLP_BASE, base, inputs.at);
            }
            Some(other) => unreachable!("the kernels take no base bias {other:?}"),
        }
        self.put(Slot::HeadMlpInner, mlp.w1.clone());
        self.put(Slot::HeadMlpInnerBias, mlp.c1.clone().unsqueeze::<2>());
        self.put(Slot::HeadMlpOuter, mlp.w2.clone());
        self.put(Slot::HeadMlpOuterBias, mlp.c2.clone().unsqueeze::<2>());
        self.head_mlp = Some(HeadMlpSpec {
            taps: mlp.taps,
            scale: mlp.scale as f32,
            negative_slope: mlp.negative_slope as f32,
            base_bends: bends,
        });
    }
}
