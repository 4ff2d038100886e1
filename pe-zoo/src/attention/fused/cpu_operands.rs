//! Modifiers that have operands of their own in the CPU's kernels.

use std::sync::Arc;

use burn::backend::DispatchTensor;
use burn::tensor::{Device, Tensor, TensorData};

use super::tables::endless;
use crate::attention::reference::LogitInputs;
use crate::count::CountedMatmul;
use crate::kernels::cpu::modifiers::reflected_chunks;
use crate::kernels::operands::{PiecewiseSlots, Slot};
use crate::kernels::spec::HeadMlpSpec;
use crate::score::{
    FarPairs, FarProducts, HeadMlp, PositionMlp, Reflected, StepPrices, TokenPrice,
};
use crate::{Positions, ScoreMod};

/// Kernel operands of one modifier.
#[derive(Default)]
pub(super) struct CpuOperands {
    pub(super) tensors: Vec<(Slot, DispatchTensor)>,
    /// Boundaries between the pieces of a piecewise linear bias, ascending; empty without one.
    pub(super) position_mlp_bends: Arc<[f32]>,
    pub(super) head_mlp: Option<HeadMlpSpec>,
    /// Pairs with products of their own.
    pub(super) far_pairs: Option<FarPairs>,
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
        ScoreMod::StepPrices(StepPrices { queries, keys, slopes }) => {
            operands.put(Slot::StepPricesQueries, queries.clone());
            operands.put(Slot::StepPricesKeys, keys.clone());
            operands.put(Slot::StepPricesSlopes, slopes.clone());
        }
        ScoreMod::Reflected(Reflected { directions, strengths }) => {
            let maps = reflected_chunks(inputs.k.clone(), directions.clone(), strengths.clone());
            operands.put(Slot::ReflectedDirections, directions.clone());
            operands.put(Slot::ReflectedChunks, maps);
        }
        ScoreMod::FarProducts(FarProducts { queries, keys, pairs }) => {
            operands.put(Slot::FarQuery, queries.clone());
            operands.put(Slot::FarKey, keys.clone());
            operands.far_pairs = Some(*pairs);
        }
        ScoreMod::ChannelDecay { cumulative } => {
            operands.put(Slot::ChannelDecay, cumulative.clone());
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

    /// Adds the operands of a piecewise linear function of the distance, in these slots: slopes of the pieces, followed by their
    /// values at 0, `[H, 2 N]`; numerators `psi(distance)` of the input, `[1, N]`; and reciprocal denominators of the input for
    /// each row, `[1, T]`. Returns the bends between the pieces.
    fn put_piecewise(
        &mut self,
        slots: PiecewiseSlots,
        mlp: &PositionMlp,
        at: &Positions,
    ) -> Arc<[f32]> {
        let device = mlp.w1.device();
        let positions = at.memo("row-positions-flat", &device, || {
            let values = at.rows().iter().map(|n| *n as f32).collect::<Vec<_>>();
            let rows = values.len();
            Tensor::<2>::from_data(TensorData::new(values, [1, rows]), &device)
        });
        let (bends, slopes) = pieces(&host(&mlp.w1), &host(&mlp.b1), mlp.negative_slope as f32);
        let pieces = bends.len() + 1;
        let units = slopes.len() / pieces;
        let slopes = TensorData::new(slopes, [pieces, units]);
        let slopes = Tensor::<2>::from_data(slopes, &device).transpose();
        let row = |x: &Tensor<1>| x.clone().unsqueeze::<2>();
        let rises = (mlp.w2.clone() * row(&mlp.w1)).counted_matmul(slopes.clone());
        let starts = (mlp.w2.clone() * row(&mlp.b1)).counted_matmul(slopes)
            + mlp.b2.clone().unsqueeze_dim::<2>(1);
        self.put(slots.lines, Tensor::cat(vec![rises, starts], 1));
        self.put(slots.distances, mlp.psi(every_distance(at, &device)));
        self.put(slots.rows, mlp.normalisers(positions).recip());
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

/// Returns all distances from 0 to the longest, `[1, N]`.
fn every_distance(at: &Positions, device: &Device) -> Tensor<2> {
    at.memo("every-distance", device, || {
        let values = (0..=at.longest_distance()).map(|n| n as f32).collect::<Vec<_>>();
        let len = values.len();
        Tensor::from_data(TensorData::new(values, [1, len]), device)
    })
}

/// Finds the breakpoints of the hidden units `w1 u + b1` for `u >= 0`, ascending, and the slope of
/// each unit's activation in each piece.
fn pieces(w1: &[f32], b1: &[f32], negative_slope: f32) -> (Arc<[f32]>, Vec<f32>) {
    let slope = |above: bool| if above { 1.0 } else { negative_slope };
    // A unit with a negative weight and its breakpoint at 0 is linear for `u > 0`.
    let mut bends = (0..w1.len())
        .map(|unit| (-b1[unit] / w1[unit], unit))
        .filter(|(u, unit)| u.is_finite() && (*u > 0.0 || (*u == 0.0 && w1[*unit] > 0.0)))
        .collect::<Vec<_>>();
    bends.sort_by(|(a, _), (b, _)| a.total_cmp(b));
    let mut first = b1.iter().map(|b| slope(*b > 0.0)).collect::<Vec<_>>();
    for (_, unit) in &bends {
        first[*unit] = slope(w1[*unit] < 0.0);
    }
    let mut slopes = first.clone();
    let mut piece = first;
    for (_, unit) in &bends {
        piece[*unit] = slope(w1[*unit] > 0.0);
        slopes.extend_from_slice(&piece);
    }
    (bends.into_iter().map(|(u, _)| u).collect(), slopes)
}

fn host(x: &Tensor<1>) -> Vec<f32> {
    x.clone().into_data().convert::<f32>().try_into_vec().unwrap_or_default()
}
