//! The reference engine: plain tensor operations, any backend, any [`ScoreMod`].

mod dense;

use std::cell::OnceCell;

use burn::tensor::activation::{gelu, log_sigmoid, relu, sigmoid, softmax};
use burn::tensor::{Bool, Device, Int, Tensor, TensorData};

use super::Weights;
use crate::count::CountedMatmul;
use crate::parts::householder::{self, CHUNK, HouseholderMaps};
use crate::score::{
    Beyond, Contextual, ContextualFunction, Current, FarPairs, FarProducts, GateSource,
    HiddenActivation, LogitScaling, Perceptron, Reflected, Remainder, StickBreakingRule, Term,
};
use crate::{Positions, ScoreMod};

/// Output of the engine.
#[derive(Debug)]
pub struct Attended {
    /// Attention output, `[B, H, T, E]`.
    pub output: Tensor<4>,
    /// Attention weights, `[B, H, T, S]`, if asked for.
    pub weights: Option<Tensor<4>>,
}

/// Computes causal attention, `softmax(q k^T * scale + modifier) values`.
///
/// # Shapes
///
/// `q` `[B, H, T, D]`, `k` `[B, H, S, D']` with the same last axis as `q`, `v` `[B, H, S, D]` (the
/// values from which gates may be computed), `values` `[B, H, S, E]` (the values that the weights
/// average).
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
    let plan = Plan::of(modifier);
    let inputs = LogitInputs::new(q, k, v, at, scale);
    let logits = inputs.logits(&plan);
    let probabilities = match plan.stick_breaking {
        Some(settings) => stick_breaking(logits, settings, at, &device),
        None => with_sinks(logits + at.causal_bias(&device).unsqueeze::<4>(), plan.sinks),
    };
    let probabilities =
        if plan.hard { straight_through_argmax(probabilities) } else { probabilities };
    let output = probabilities.clone().counted_matmul(values);
    let weights = (weights != Weights::Drop).then_some(probabilities);
    Attended { output, weights }
}

/// Modifier with its sums flattened and its parts sorted by kind.
#[derive(Default)]
pub(super) struct Plan<'a> {
    pub(super) parts: Vec<&'a ScoreMod>,
    products: Option<&'a ScoreMod>,
    pub(super) terms: Vec<&'a Term>,
    pub(super) stick_breaking: Option<StickBreakingRule>,
    sinks: Option<&'a Tensor<1>>,
    hard: bool,
    undivided: bool,
}

impl<'a> Plan<'a> {
    pub(super) fn of(modifier: &'a ScoreMod) -> Self {
        let mut plan = Self::default();
        plan.add(modifier);
        plan
    }

    fn add(&mut self, modifier: &'a ScoreMod) {
        match modifier {
            ScoreMod::Sum(parts) => parts.iter().for_each(|part| self.add(part)),
            ScoreMod::StickBreaking(settings) => self.stick_breaking = Some(*settings),
            ScoreMod::Products(_)
            | ScoreMod::Reflected(_)
            | ScoreMod::FarProducts(_)
            | ScoreMod::ChannelDecay { .. } => {
                self.products = Some(modifier);
            }
            ScoreMod::Sinks(sinks) => self.sinks = Some(sinks),
            ScoreMod::Hard => self.hard = true,
            ScoreMod::Term(term) => self.terms.push(term),
            ScoreMod::Contextual(contextual) => {
                self.undivided |= contextual.convention == LogitScaling::Equation;
                self.parts.push(modifier);
            }
            _ => self.parts.push(modifier),
        }
    }

    fn content_scale(&self, scale: f64) -> f64 {
        if self.undivided { 1.0 } else { scale }
    }
}

/// The tensors that biases of the logits are computed from.
pub(crate) struct LogitInputs<'a> {
    pub(super) q: &'a Tensor<4>,
    pub(super) k: &'a Tensor<4>,
    pub(super) v: &'a Tensor<4>,
    content: OnceCell<Tensor<4>>,
    pub(super) at: &'a Positions,
    pub(super) scale: f64,
    pub(super) device: Device,
}

impl<'a> LogitInputs<'a> {
    /// Collects tensors with the shapes of [`attend`].
    pub(crate) fn new(
        q: &'a Tensor<4>,
        k: &'a Tensor<4>,
        v: &'a Tensor<4>,
        at: &'a Positions,
        scale: f64,
    ) -> Self {
        Self { q, k, v, content: OnceCell::new(), at, scale, device: q.device() }
    }

    /// Returns `q k^T` without division; computed at most once.
    pub(super) fn content(&self) -> Tensor<4> {
        self.content.get_or_init(|| against(self.q, self.k)).clone()
    }

    /// Computes the logits before the mask, `[B, H, T, S]`.
    pub(super) fn logits(&self, plan: &Plan<'_>) -> Tensor<4> {
        let content = self.after_terms(plan, self.before_terms(plan));
        let biases = plan.parts.iter().filter_map(|part| self.bias(part));
        biases.fold(content, |logits, bias| logits + bias)
    }

    /// Returns the replacement of the products of queries and keys, undivided; `None` if the
    /// modifier has none.
    pub(crate) fn products(&self, modifier: &ScoreMod) -> Option<Tensor<4>> {
        match modifier {
            ScoreMod::Products(products) => Some(products.clone()),
            ScoreMod::Reflected(Reflected { directions, strengths }) => {
                let k = self.k.clone();
                let maps = HouseholderMaps { k, w: directions.clone(), beta: strengths.clone() };
                Some(householder::products(self.q, maps, self.at, CHUNK))
            }
            ScoreMod::FarProducts(FarProducts { queries, keys, pairs }) => {
                let far = against(queries, keys);
                let is_far = self.are_far(*pairs).unsqueeze::<4>().expand(far.dims());
                Some(self.content().mask_where(is_far, far))
            }
            ScoreMod::ChannelDecay { cumulative } => Some(self.channel_decay(cumulative)),
            _ => None,
        }
    }

    /// Whether pairs of rows and columns are far from each other, `[T, S]`.
    fn are_far(&self, pairs: FarPairs) -> Tensor<2, Bool> {
        let (rows, columns) = (self.at.rows(), self.at.cols());
        let is_far = |row: &usize| {
            let first_near = pairs.first_near(*row);
            columns.iter().map(move |column| *column < first_near)
        };
        let values = rows.iter().flat_map(is_far).collect::<Vec<_>>();
        Tensor::from_data(TensorData::new(values, [rows.len(), columns.len()]), &self.device)
    }

    /// Computes the products of channels that decay, one channel at a time, so that no tensor is larger than the logits.
    fn channel_decay(&self, cumulative: &Tensor<4>) -> Tensor<4> {
        let [_batch, _heads, columns, channels] = cumulative.dims();
        let of = |u: &Tensor<4>, c: usize| u.clone().slice_dim(3, c..c + 1);
        let products = (0..channels).map(|c| {
            let column = of(cumulative, c);
            let row = column.clone().slice_dim(2, self.at.first_row()..columns);
            // Later columns would grow; no row sees them.
            let decay = (row - column.swap_dims(2, 3)).clamp_max(0.0).exp();
            against(&of(self.q, c), &of(self.k, c)) * decay
        });
        let sum = products.reduce(|sum, product| sum + product);
        sum.unwrap_or_else(|| self.content())
    }

    /// Computes the content logits before any pair term, `[B, H, T, S]`.
    pub(super) fn before_terms(&self, plan: &Plan<'_>) -> Tensor<4> {
        let products = plan.products.and_then(|products| self.products(products));
        products.unwrap_or_else(|| self.content()) * plan.content_scale(self.scale)
    }

    /// Applies the pair terms to the content logits.
    pub(super) fn after_terms(&self, plan: &Plan<'_>, content: Tensor<4>) -> Tensor<4> {
        plan.terms.iter().fold(content, |content, term| term.values(content, self.at))
    }

    /// Returns `x` where the row sees the column, and 0 elsewhere.
    pub(super) fn seen(&self, x: Tensor<4>) -> Tensor<4> {
        x * self.at.visible(&self.device).unsqueeze::<4>()
    }

    /// Computes the bias of a modifier, `[1 or B, 1 or H, T, S]`; `None` for one that is not a
    /// bias.
    pub(crate) fn bias(&self, part: &ScoreMod) -> Option<Tensor<4>> {
        Some(match part {
            ScoreMod::None
            | ScoreMod::StickBreaking(_)
            | ScoreMod::Products(_)
            | ScoreMod::Reflected(_)
            | ScoreMod::FarProducts(_)
            | ScoreMod::ChannelDecay { .. }
            | ScoreMod::Term(_)
            | ScoreMod::Sinks(_)
            | ScoreMod::Hard
            | ScoreMod::Sum(_) => return None,
            ScoreMod::Slope(slopes) => self.slope(slopes),
            ScoreMod::Distance { table, beyond } => self.distance(table, *beyond),
            ScoreMod::QueryDistance { table, beyond } => {
                self.row_distance(self.q, table, *beyond) * self.scale
            }
            ScoreMod::RowDistance { vectors, table, beyond } => {
                self.row_distance(vectors, table, *beyond)
            }
            ScoreMod::Decay { cumulative } => {
                let cumulative = cumulative.clone().unsqueeze_dim::<4>(2);
                let [_batch, _heads, _one, columns] = cumulative.dims();
                let rows = cumulative.clone().slice_dim(3, self.at.first_row()..columns);
                rows.swap_dims(2, 3) - cumulative
            }
            ScoreMod::Contextual(contextual) => self.contextual(contextual),
            ScoreMod::PositionMlp(mlp) => mlp.dense(self.at, &self.device),
            ScoreMod::HeadMlp(mlp) => {
                let base = mlp.base.as_ref().and_then(|base| self.bias(base));
                mlp.dense(self.content(), base, self.at)
            }
            ScoreMod::TokenPrice(price) => return price.dense(self.at, &self.device),
            ScoreMod::StepPrices(prices) => prices.dense(self.at, &self.device),
            ScoreMod::Dense(bias) => bias.clone(),
        })
    }

    /// Computes the bias that is linear in the distance, `[1, H, T, S]`, from slopes `[H]`.
    fn slope(&self, slopes: &Tensor<1>) -> Tensor<4> {
        let distances = self.at.float_distances(&self.device);
        let [heads] = slopes.dims();
        slopes.clone().reshape([1, heads, 1, 1]) * distances.unsqueeze::<4>().neg()
    }

    /// Returns distances clamped to the table, `[T, S]`, and 1 where the distance is within the
    /// table, else 0.
    fn table_index(&self, len: usize) -> (Tensor<2, Int>, Tensor<2>) {
        self.at.memo(&format!("table-index-{len}"), &self.device, || {
            let distances = self.at.distances(&self.device);
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

    /// Computes `vectors_i . table[:, i - j]`, `[B, H, T, S]`.
    fn row_distance(&self, vectors: &Tensor<4>, table: &Tensor<2>, beyond: Beyond) -> Tensor<4> {
        let [_channels, len] = table.dims();
        let (index, within) = self.table_index(len);
        let products = vectors.clone().counted_matmul(table.clone().unsqueeze::<4>());
        let [batch, heads, rows, _len] = products.dims();
        let [_rows, columns] = index.dims();
        let index = index.unsqueeze::<4>().expand([batch, heads, rows, columns]);
        let bias = products.gather(3, index);
        match beyond {
            Beyond::Last => bias,
            Beyond::Zero => bias * within.unsqueeze::<4>(),
        }
    }

    /// Computes the gates, 0 where the row does not see the column, and the contextual positions
    /// that they sum to; `[B, H, T, S]` each.
    pub(super) fn counted(&self, contextual: &Contextual) -> (Tensor<4>, Tensor<4>) {
        let gate_content = match &contextual.gates {
            GateSource::QueryKey => self.content(),
            GateSource::QueryValue => against(self.q, self.v),
            GateSource::Keys(keys) => against(self.q, keys),
        };
        let gate_scale = match contextual.convention {
            LogitScaling::Listing | LogitScaling::Code => self.scale,
            LogitScaling::Equation => 1.0,
        };
        let gates = self.seen(sigmoid(gate_content * gate_scale));
        let positions = suffix_sum(gates.clone()).clamp_max(contextual.max_position);
        (gates, positions)
    }

    /// Computes the bias of contextual positions, `[B, H, T, S]`.
    pub(crate) fn contextual(&self, contextual: &Contextual) -> Tensor<4> {
        let (_gates, positions) = self.counted(contextual);
        let bias = match &contextual.function {
            ContextualFunction::Table(table) => interpolate(self.q, table, positions),
            ContextualFunction::Slope(slopes) => {
                let [heads] = slopes.dims();
                positions * slopes.clone().reshape([1, heads, 1, 1])
            }
            ContextualFunction::Mlp(perceptron) => embedded(self.q, perceptron, &positions),
        };
        match contextual.convention {
            LogitScaling::Listing | LogitScaling::Equation => bias,
            LogitScaling::Code => bias * self.scale,
        }
    }
}

/// Computes `q k^T`, `[B, H, T, S]`.
fn against(q: &Tensor<4>, k: &Tensor<4>) -> Tensor<4> {
    q.clone().counted_matmul(k.clone().swap_dims(2, 3))
}

/// Computes `out[.., j] = sum of x[.., j..]`.
fn suffix_sum(x: Tensor<4>) -> Tensor<4> {
    x.flip([3]).cumsum(3).flip([3])
}

/// Computes `q_i . table[:, p]`, interpolated linearly between the integer positions on both sides
/// of `p`.
fn interpolate(q: &Tensor<4>, table: &Tensor<2>, positions: Tensor<4>) -> Tensor<4> {
    let products = q.clone().counted_matmul(table.clone().unsqueeze::<4>());
    let below = positions.clone().detach().floor();
    let above = positions.clone().detach().ceil();
    let fraction = positions - below.clone();
    let low = products.clone().gather(3, below.int());
    let high = products.gather(3, above.int());
    low.clone() + (high - low) * fraction
}

/// Computes `q_i . e(p)` one hidden unit at a time, so that no tensor is larger than the logits.
fn embedded(q: &Tensor<4>, perceptron: &Perceptron, positions: &Tensor<4>) -> Tensor<4> {
    let Perceptron { w1, b1, w2, b2, activation } = perceptron;
    let [units] = w1.dims();
    let [head_dim] = b2.dims();
    let out = q.clone().counted_matmul(w2.clone().unsqueeze::<4>());
    let constant = q.clone().counted_matmul(b2.clone().reshape([1, 1, head_dim, 1]));
    let unit = |weights: &Tensor<1>, n: usize| {
        weights.clone().slice_dim(0, n..n + 1).reshape([1, 1, 1, 1])
    };
    (0..units).fold(constant, |sum, n| {
        let hidden = positions.clone() * unit(w1, n) + unit(b1, n);
        let hidden = match activation {
            HiddenActivation::Relu => relu(hidden),
            HiddenActivation::Gelu => gelu(hidden),
        };
        sum + hidden * out.clone().slice_dim(3, n..n + 1)
    })
}

/// Softmax over the columns, with the sinks `[H]` in the denominator.
fn with_sinks(logits: Tensor<4>, sinks: Option<&Tensor<1>>) -> Tensor<4> {
    let Some(sinks) = sinks else { return softmax(logits, 3) };
    let [batch, heads, rows, columns] = logits.dims();
    let sinks = sinks.clone().reshape([1, heads, 1, 1]).expand([batch, heads, rows, 1]);
    softmax(Tensor::cat(vec![logits, sinks], 3), 3).slice_dim(3, 0..columns)
}

/// Returns 1 at each row's largest weight and 0 elsewhere; rows of zeros are unchanged. The
/// gradient is that of the given weights.
fn straight_through_argmax(weights: Tensor<4>) -> Tensor<4> {
    let fixed = weights.clone().detach();
    let [_batch, _heads, _rows, columns] = fixed.dims();
    let places = Tensor::<1, Int>::arange(0..columns as i64, &fixed.device()).unsqueeze::<4>();
    let largest = fixed.clone().argmax(3).equal(places).float();
    let hard = largest * fixed.clone().greater_elem(0).float();
    hard + (weights - fixed)
}

/// Computes `w_ij = sigma(z_ij) * product over j < m < i of (1 - sigma(z_im))`; if the row's own
/// token takes part, the product includes `m = i`.
fn stick_breaking(
    z: Tensor<4>,
    settings: StickBreakingRule,
    at: &Positions,
    device: &Device,
) -> Tensor<4> {
    let before =
        at.memo("strictly-before", device, || at.distances(device).greater_elem(0).float());
    let takes = match settings.current {
        Current::Excluded => before.clone(),
        Current::Included => at.visible(device),
    };
    let takes = takes.unsqueeze::<4>();
    // ln(1 - sigma(z)) = log_sigmoid(-z), in logarithms because products of many such factors
    // would underflow.
    let stays = log_sigmoid(z.clone().neg()) * takes.clone();
    let weights = (log_sigmoid(z) + sum_after(stays.clone())).exp() * takes;
    match settings.remainder {
        Remainder::Dropped => weights,
        Remainder::OwnToken => {
            let own_token = (at.visible(device) - before).unsqueeze::<4>();
            weights + stays.sum_dim(3).exp() * own_token
        }
    }
}

/// Computes `out[.., j] = sum of x[.., j + 1..]`, the suffix sum of `x` behind its first column.
/// Subtracting `x` from its suffix sum would lose small sums next to one large term.
fn sum_after(x: Tensor<4>) -> Tensor<4> {
    let [batch, heads, rows, columns] = x.dims();
    let nothing = Tensor::zeros([batch, heads, rows, 1], &x.device());
    suffix_sum(Tensor::cat(vec![x, nothing], 3)).slice_dim(3, 1..=columns)
}
