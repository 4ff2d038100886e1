//! The reference engine: plain tensor operations, any backend, any [`ScoreMod`].

use burn::tensor::activation::{log_sigmoid, sigmoid, softmax};
use burn::tensor::{Device, Int, Tensor};

use super::Weights;
use crate::count::CountedMatmul;
use crate::score::{Beyond, Contextual, ContextualFunction, Convention, GateSource};
use crate::{Positions, ScoreMod};

/// Output of the engine.
#[derive(Debug)]
pub struct Attended {
    /// `[B, H, T, E]`.
    pub output: Tensor<4>,
    /// `[B, H, T, S]`, if asked for.
    pub weights: Option<Tensor<4>>,
}

/// Attends causally: `softmax(q k^T * scale + modifier) values`.
///
/// # Shapes
/// `q` `[B, H, T, D]`, `k` `[B, H, S, D']` with the same last axis as `q`, `v` `[B, H, S, D]` (gates
/// from values look at it), `values` `[B, H, S, E]` (what is mixed).
#[expect(clippy::too_many_arguments, reason = "the six tensors of one formula")]
pub fn attend(
    q: &Tensor<4>,
    k: &Tensor<4>,
    v: &Tensor<4>,
    values: Tensor<4>,
    modifier: &ScoreMod,
    at: &Positions,
    scale: f64,
    weights: Weights,
) -> Attended {
    let device = q.device();
    let content = q.clone().counted_matmul(k.clone().swap_dims(2, 3));
    let plan = Plan::of(modifier);
    let probabilities = if plan.stick_breaking {
        stick_breaking(content * scale, at, &device)
    } else {
        let row = Row { q, v, content: &content, at, scale, device: &device };
        let mut logits = content.clone() * plan.content_scale(scale);
        for part in &plan.parts {
            if let Some(bias) = row.bias(part) {
                logits = logits + bias;
            }
        }
        softmax(logits + at.causal_bias(&device).unsqueeze::<4>(), 3)
    };
    let output = probabilities.clone().counted_matmul(values);
    let weights = (weights == Weights::Return).then_some(probabilities);
    Attended { output, weights }
}

/// A modifier with its sums opened.
struct Plan<'a> {
    parts: Vec<&'a ScoreMod>,
    stick_breaking: bool,
    undivided: bool,
}

impl<'a> Plan<'a> {
    fn of(modifier: &'a ScoreMod) -> Self {
        let mut plan = Self { parts: Vec::new(), stick_breaking: false, undivided: false };
        plan.add(modifier);
        plan
    }

    fn add(&mut self, modifier: &'a ScoreMod) {
        match modifier {
            ScoreMod::Sum(parts) => parts.iter().for_each(|part| self.add(part)),
            ScoreMod::StickBreaking => self.stick_breaking = true,
            ScoreMod::Contextual(contextual) => {
                self.undivided |= contextual.convention == Convention::Equation;
                self.parts.push(modifier);
            }
            _ => self.parts.push(modifier),
        }
    }

    fn content_scale(&self, scale: f64) -> f64 {
        if self.undivided { 1.0 } else { scale }
    }
}

/// What a bias may be made of.
struct Row<'a> {
    q: &'a Tensor<4>,
    v: &'a Tensor<4>,
    content: &'a Tensor<4>,
    at: &'a Positions,
    scale: f64,
    device: &'a Device,
}

impl Row<'_> {
    fn bias(&self, part: &ScoreMod) -> Option<Tensor<4>> {
        Some(match part {
            ScoreMod::None | ScoreMod::StickBreaking | ScoreMod::Sum(_) => return None,
            ScoreMod::Slope(slopes) => self.slope(slopes),
            ScoreMod::Distance { table, beyond } => self.distance(table, *beyond),
            ScoreMod::QueryDistance { table, beyond } => {
                self.query_distance(table, *beyond) * self.scale
            }
            ScoreMod::Decay { cumulative } => {
                let cumulative = cumulative.clone().unsqueeze_dim::<4>(2);
                let [_batch, _heads, _one, columns] = cumulative.dims();
                let rows = cumulative.clone().slice_dim(3, self.at.first_row()..columns);
                rows.swap_dims(2, 3) - cumulative
            }
            ScoreMod::Contextual(contextual) => self.contextual(contextual),
            ScoreMod::Dense(bias) => bias.clone(),
        })
    }

    /// `[1, H, T, S]`.
    fn slope(&self, slopes: &Tensor<1>) -> Tensor<4> {
        let distances =
            self.at.memo("distances-float", self.device, || self.at.distances(self.device).float());
        let [heads] = slopes.dims();
        slopes.clone().reshape([1, heads, 1, 1]) * distances.unsqueeze::<4>().neg()
    }

    /// Distances clamped to the table, `[T, S]`, and 1 where the distance is within it.
    fn table_index(&self, len: usize) -> (Tensor<2, Int>, Tensor<2>) {
        self.at.memo(&format!("table-index-{len}"), self.device, || {
            let distances = self.at.distances(self.device);
            let within = distances.clone().lower_elem(len as i64).float();
            (distances.clamp_max(len as i64 - 1), within)
        })
    }

    fn distance(&self, table: &Tensor<2>, beyond: Beyond) -> Tensor<4> {
        let [heads, len] = table.dims();
        let (index, within) = self.table_index(len);
        let [rows, columns] = index.dims();
        let bias = table
            .clone()
            .select(1, index.reshape([rows * columns]))
            .reshape([1, heads, rows, columns]);
        match beyond {
            Beyond::Last => bias,
            Beyond::Zero => bias * within.unsqueeze::<4>(),
        }
    }

    /// `q_i . table[:, i - j]`, `[B, H, T, S]`.
    fn query_distance(&self, table: &Tensor<2>, beyond: Beyond) -> Tensor<4> {
        let [_head_dim, len] = table.dims();
        let (index, within) = self.table_index(len);
        let products = self.q.clone().counted_matmul(table.clone().unsqueeze::<4>());
        let [batch, heads, rows, _len] = products.dims();
        let [_rows, columns] = index.dims();
        let index = index.unsqueeze::<4>().expand([batch, heads, rows, columns]);
        let bias = products.gather(3, index);
        match beyond {
            Beyond::Last => bias,
            Beyond::Zero => bias * within.unsqueeze::<4>(),
        }
    }

    fn contextual(&self, contextual: &Contextual) -> Tensor<4> {
        let gate_content = match &contextual.gates {
            GateSource::QueryKey => self.content.clone(),
            GateSource::QueryValue => self.q.clone().counted_matmul(self.v.clone().swap_dims(2, 3)),
            GateSource::Keys(keys) => self.q.clone().counted_matmul(keys.clone().swap_dims(2, 3)),
        };
        let gate_scale = match contextual.convention {
            Convention::Listing | Convention::Code => self.scale,
            Convention::Equation => 1.0,
        };
        let visible = self.at.visible(self.device).unsqueeze::<4>();
        let gates = sigmoid(gate_content * gate_scale) * visible;
        let positions = suffix_sum(gates).clamp_max(contextual.max_position);
        let bias = match &contextual.function {
            ContextualFunction::Table(table) => interpolate(self.q, table, positions),
            ContextualFunction::Slope(slopes) => {
                let [heads] = slopes.dims();
                positions * slopes.clone().reshape([1, heads, 1, 1])
            }
        };
        match contextual.convention {
            Convention::Listing | Convention::Equation => bias,
            Convention::Code => bias * self.scale,
        }
    }
}

/// `out[.., j] = sum of x[.., j..]`.
fn suffix_sum(x: Tensor<4>) -> Tensor<4> {
    x.flip([3]).cumsum(3).flip([3])
}

/// `q_i . table[:, p]`, linear between the integer positions on both sides of `p`.
fn interpolate(q: &Tensor<4>, table: &Tensor<2>, positions: Tensor<4>) -> Tensor<4> {
    let products = q.clone().counted_matmul(table.clone().unsqueeze::<4>());
    let below = positions.clone().detach().floor();
    let above = positions.clone().detach().ceil();
    let fraction = positions - below.clone();
    let low = products.clone().gather(3, below.int());
    let high = products.gather(3, above.int());
    low.clone() + (high - low) * fraction
}

/// `w_ij = sigma(z_ij) * product over j < m < i of (1 - sigma(z_im))`, 0 unless `j < i`.
fn stick_breaking(z: Tensor<4>, at: &Positions, device: &Device) -> Tensor<4> {
    let strict =
        at.memo("strictly-before", device, || at.distances(device).greater_elem(0).float());
    let strict = strict.unsqueeze::<4>();
    // ln(1 - sigma(z)) = log_sigmoid(-z); columns after j and before i are kept by `strict`.
    let stays = log_sigmoid(z.clone().neg()) * strict.clone();
    let after = suffix_sum(stays.clone()) - stays;
    (log_sigmoid(z) + after).exp() * strict
}
