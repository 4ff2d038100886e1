//! A perceptron of the position as a piecewise linear function.

#[cfg(feature = "flex")]
use std::sync::Arc;

use burn::tensor::{Device, Tensor, TensorData};

use crate::Positions;
use crate::count::CountedMatmul;
use crate::score::PositionMlp;

/// Operands of the kernels for a piecewise linear function.
pub(super) struct PiecewiseTensors {
    /// Slopes of the pieces, followed by their values at 0, `[H, 2 pieces]`.
    pub(super) lines: Tensor<2>,
    /// Numerators `psi(distance)` of the input, `[1, N]`.
    pub(super) distances: Tensor<2>,
    /// Reciprocal denominators of the input for each row, `[1, T]`.
    pub(super) rows: Tensor<2>,
}

/// Hidden units `w1 u + b1` of a perceptron of one input `u`, from 0 to `largest`.
pub(super) struct HiddenUnits<'a> {
    pub(super) w1: &'a Tensor<1>,
    pub(super) b1: &'a Tensor<1>,
    /// Slope of the activation for negative inputs.
    #[cfg_attr(not(any(test, feature = "cube")), expect(dead_code, reason = "for GPUs"))]
    pub(super) negative_slope: f64,
    #[cfg_attr(not(any(test, feature = "cube")), expect(dead_code, reason = "for GPUs"))]
    pub(super) largest: f64,
}

impl HiddenUnits<'_> {
    /// Computes slopes and values at 0 of outputs with weights `w2`, `[outputs, width]`, and biases `b2`: `[outputs, 2 pieces]`.
    /// `slopes` are those of each unit's activation in each piece, `[width, pieces]`.
    pub(super) fn lines(&self, w2: &Tensor<2>, b2: &Tensor<1>, slopes: Tensor<2>) -> Tensor<2> {
        let row = |x: &Tensor<1>| x.clone().unsqueeze::<2>();
        let rises = (w2.clone() * row(self.w1)).counted_matmul(slopes.clone());
        let starts =
            (w2.clone() * row(self.b1)).counted_matmul(slopes) + b2.clone().unsqueeze_dim::<2>(1);
        Tensor::cat(vec![rises, starts], 1)
    }
}

/// Hidden units of a perceptron of the position, whose largest input is 1.
pub(super) const fn units(mlp: &PositionMlp) -> HiddenUnits<'_> {
    let PositionMlp { w1, b1, negative_slope, .. } = mlp;
    HiddenUnits { w1, b1, negative_slope: *negative_slope, largest: 1.0 }
}

impl PiecewiseTensors {
    /// Computes the operands from the slope of each unit's activation in each piece, `[width, pieces]`.
    pub(super) fn of(mlp: &PositionMlp, slopes: Tensor<2>, at: &Positions) -> Self {
        let device = mlp.w1.device();
        let positions = at.memo("row-positions-flat", &device, || {
            let values = at.rows().iter().map(|n| *n as f32).collect::<Vec<_>>();
            let rows = values.len();
            Tensor::<2>::from_data(TensorData::new(values, [1, rows]), &device)
        });
        Self {
            lines: units(mlp).lines(&mlp.w2, &mlp.b2, slopes),
            distances: mlp.psi(every_distance(at, &device)),
            rows: mlp.normalisers(positions).recip(),
        }
    }
}

/// Returns all distances from 0 to the longest, `[1, N]`.
pub(super) fn every_distance(at: &Positions, device: &Device) -> Tensor<2> {
    at.memo("every-distance", device, || {
        let values = (0..=at.longest_distance()).map(|n| n as f32).collect::<Vec<_>>();
        let len = values.len();
        Tensor::from_data(TensorData::new(values, [1, len]), device)
    })
}

/// Pieces of the function for the inputs `u >= 0`, in memory.
#[cfg(feature = "flex")]
pub(super) struct HostPieces {
    /// Boundaries between the pieces, ascending.
    pub(super) bends: Arc<[f32]>,
    /// Slope of each unit's activation in each piece, `[width, pieces]`.
    pub(super) slopes: Tensor<2>,
}

#[cfg(feature = "flex")]
impl HostPieces {
    pub(super) fn of(mlp: &PositionMlp) -> Self {
        let (bends, slopes) = pieces(&host(&mlp.w1), &host(&mlp.b1), mlp.negative_slope as f32);
        let pieces = bends.len() + 1;
        let units = slopes.len() / pieces;
        let slopes = TensorData::new(slopes, [pieces, units]);
        Self { bends, slopes: Tensor::<2>::from_data(slopes, &mlp.w1.device()).transpose() }
    }
}

/// Finds the breakpoints of the hidden units `w1 u + b1` for `u >= 0`, ascending, and the slope of
/// each unit's activation in each piece.
#[cfg(feature = "flex")]
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

#[cfg(feature = "flex")]
fn host(x: &Tensor<1>) -> Vec<f32> {
    x.clone().into_data().convert::<f32>().try_into_vec().unwrap_or_default()
}

/// Pieces of the function, computed where its weights are, without waiting for them. Each hidden unit has a breakpoint, so that
/// the number of pieces does not depend on the weights.
#[cfg(any(test, feature = "cube"))]
pub(super) struct DevicePieces {
    /// Breakpoints of the units, ascending, `[1, width]`. Those below 0 are -1, and those above the largest input are 1 more than it.
    pub(super) ends: Tensor<2>,
    /// Slope of each unit's activation in each piece, `[width, width + 1]`.
    pub(super) slopes: Tensor<2>,
}

#[cfg(any(test, feature = "cube"))]
impl DevicePieces {
    pub(super) fn of(units: &HiddenUnits<'_>) -> Self {
        let [w1, b1] = [units.w1, units.b1].map(|x| x.clone().detach());
        let above = units.largest + 1.0;
        let (device, [width]) = (w1.device(), w1.dims());
        let [before, after] = [-1.0, above].map(|end| Tensor::full([width], end, &device));
        // A unit of weight 0 is above its breakpoint, or below it, everywhere.
        let constant = after.clone().mask_where(b1.clone().lower_equal_elem(0.0), before);
        let ends = (b1.neg() / w1.clone())
            .clamp(-1.0, above)
            .mask_where(w1.clone().equal_elem(0.0), constant);
        // The number of units whose breakpoint comes earlier, by number where several have the same one.
        let numbers = Tensor::<1, burn::tensor::Int>::arange(0..width as i64, &device).float();
        let [columns, rows] = [numbers.clone().unsqueeze::<2>(), numbers.unsqueeze_dim::<2>(1)];
        let [of_column, of_row] =
            [ends.clone().unsqueeze::<2>(), ends.clone().unsqueeze_dim::<2>(1)];
        let tied = of_column.clone().equal(of_row.clone()).float()
            * columns.clone().lower(rows.clone()).float();
        let earlier = of_column.lower(of_row.clone()).float() + tied;
        let ranks = earlier.sum_dim(1);
        let in_order = ranks.clone().equal(columns).float() * of_row;
        let pieces = Tensor::<1, burn::tensor::Int>::arange(0..width as i64 + 1, &device).float();
        let beyond = pieces.unsqueeze::<2>().greater(ranks).float();
        let rising = w1.greater_elem(0.0).float().unsqueeze_dim::<2>(1);
        // 1 above the breakpoint: to its right if the weight is positive, and otherwise to its left.
        let above = beyond.clone() * rising.clone() * 2.0 - beyond - rising + 1.0;
        let slope = units.negative_slope;
        Self { ends: in_order.sum_dim(0), slopes: above * (1.0 - slope) + slope }
    }
}

#[cfg(all(test, feature = "flex"))]
mod tests {
    use super::*;

    /// Value of the function from its pieces, `[H]`.
    fn from_pieces(ends: &[f32], lines: &[Vec<f32>], input: f32) -> Vec<f32> {
        let piece = ends.partition_point(|end| *end < input);
        let value = |line: &Vec<f32>| line[piece] * input + line[line.len() / 2 + piece];
        lines.iter().map(value).collect()
    }

    fn rows(tensor: Tensor<2>) -> Vec<Vec<f32>> {
        let [_rows, columns] = tensor.dims();
        let numbers = tensor.into_data().try_into_vec::<f32>().unwrap();
        numbers.chunks(columns).map(<[f32]>::to_vec).collect()
    }

    #[test]
    fn pieces_of_the_device_are_the_perceptron() {
        let device = Device::flex();
        for largest in [1.0_f32, 9.0] {
            // Rising, falling and constant units, two with one breakpoint, and breakpoints outside of 0 to the largest input.
            let w1 = [1.0, -2.0, 0.0, 0.0, 0.5, -1.0, 3.0, 0.001].map(|weight| weight / largest);
            let b1 = [-0.5_f32, 1.0, 0.7, -0.7, 0.9, 0.25, -0.6, 5.0];
            let w2 = [0.3_f32, -0.4, 0.5, 0.6, -0.7, 0.8, 0.9, 0.1];
            let [of_w1, of_b1] = [w1, b1].map(|x| Tensor::<1>::from_data(x, &device));
            let units = HiddenUnits {
                w1: &of_w1,
                b1: &of_b1,
                negative_slope: 0.1,
                largest: f64::from(largest),
            };
            let DevicePieces { ends, slopes } = DevicePieces::of(&units);
            let outputs = Tensor::from_data([w2], &device);
            let lines = units.lines(&outputs, &Tensor::from_data([0.2_f32], &device), slopes);
            let (ends, lines) = (rows(ends).remove(0), rows(lines));
            assert!(ends.is_sorted(), "{ends:?}");
            for step in 0..=40 {
                let input = step as f32 / 40.0 * largest;
                let of_unit = |unit: usize| {
                    let before = w1[unit] * input + b1[unit];
                    w2[unit] * if before > 0.0 { before } else { 0.1 * before }
                };
                let expected = (0..8).map(of_unit).sum::<f32>() + 0.2;
                let value = from_pieces(&ends, &lines, input)[0];
                assert!((value - expected).abs() < 1e-5, "{value} for {expected} at {input}");
            }
        }
    }
}
