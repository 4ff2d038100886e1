//! A modifier taken apart.

#[cfg(feature = "cube")]
use burn::tensor::DType;
use burn::tensor::Tensor;

use super::super::reference::LogitInputs;
use super::endless;
#[cfg(feature = "flex")]
use super::forms::FormParts;
#[cfg(feature = "cube")]
use crate::Positions;
use crate::ScoreMod;
use crate::kernels::spec::WeightRule;
use crate::kernels::{self, Kernels};
#[cfg(feature = "cube")]
use crate::score::Beyond;
use crate::score::{Contextual, ContextualFunction, LogitScaling, Perceptron};

/// A modifier in the form that the kernel takes: one of each kind.
#[derive(Default)]
pub(super) struct Parts {
    pub(super) slopes: Option<Tensor<1>>,
    pub(super) distance: Option<Tensor<2>>,
    pub(super) query_distance: Option<Tensor<2>>,
    /// What stands in for `query_distance` where kernels take products, `[B, H, T, N]`.
    pub(super) query_distance_products: Option<Tensor<4>>,
    pub(super) decay: Option<Tensor<3>>,
    /// All but the first, which may hold what the first has lost by rounding.
    pub(super) decay_residual: Option<Tensor<3>>,
    /// One whose function is in `table`, `table` and `hidden`, or `contextual_slopes`.
    pub(super) contextual: Option<Contextual>,
    pub(super) table: Option<Tensor<2>>,
    /// What stands in for `table` where kernels take products, `[B, H, T, N]`.
    pub(super) table_products: Option<Tensor<4>>,
    pub(super) hidden: Option<Tensor<2>>,
    pub(super) contextual_slopes: Option<Tensor<1>>,
    pub(super) dense: Option<Tensor<4>>,
    pub(super) products: Option<Tensor<4>>,
    /// Those with tensors of their own.
    #[cfg(feature = "flex")]
    pub(super) forms: FormParts,
    pub(super) weights: Option<WeightRule>,
    pub(super) undivided: bool,
}

impl Parts {
    pub(super) fn of(modifier: &ScoreMod, inputs: &LogitInputs<'_>) -> Self {
        let mut parts = Self::default();
        parts.add(modifier, inputs);
        parts
    }

    fn add(&mut self, modifier: &ScoreMod, inputs: &LogitInputs<'_>) {
        match modifier {
            // Hard attention is the reference engine's, see `attend`.
            ScoreMod::None | ScoreMod::Hard => {}
            ScoreMod::Sum(parts) => parts.iter().for_each(|part| self.add(part, inputs)),
            ScoreMod::Slope(slopes) => plus(&mut self.slopes, slopes.clone()),
            ScoreMod::Distance { table, beyond } => {
                add_table(&mut self.distance, endless(table, *beyond));
            }
            ScoreMod::QueryDistance { table, beyond } => {
                add_table(&mut self.query_distance, endless(table, *beyond));
            }
            ScoreMod::Decay { cumulative } if self.decay.is_none() => {
                self.decay = Some(cumulative.clone());
            }
            ScoreMod::Decay { cumulative } => plus(&mut self.decay_residual, cumulative.clone()),
            ScoreMod::Contextual(contextual) => {
                self.undivided |= contextual.convention == LogitScaling::Equation;
                if self.contextual.is_some() {
                    plus(&mut self.dense, inputs.contextual(contextual));
                    return;
                }
                self.contextual = Some(contextual.clone());
                match &contextual.function {
                    ContextualFunction::Table(table) => self.table = Some(table.clone()),
                    ContextualFunction::Slope(slopes) => {
                        self.contextual_slopes = Some(slopes.clone());
                    }
                    ContextualFunction::Mlp(Perceptron { w1, b1, w2, b2, activation: _ }) => {
                        let last = b2.clone().unsqueeze_dim(1);
                        self.table = Some(Tensor::cat(vec![w2.clone(), last], 1));
                        self.hidden = Some(Tensor::stack(vec![w1.clone(), b1.clone()], 0));
                    }
                }
            }
            ScoreMod::StickBreaking(rule) => {
                self.weights = Some(WeightRule::StickBreaking(*rule));
            }
            ScoreMod::Products(products) => self.products = Some(products.clone()),
            ScoreMod::Dense(bias) => plus(&mut self.dense, bias.clone()),
            ScoreMod::Reflected(_)
            | ScoreMod::PositionMlp(_)
            | ScoreMod::HeadMlp(_)
            | ScoreMod::TokenPrice(_)
            | ScoreMod::StepPrices(_) => {
                #[cfg(feature = "flex")]
                if kernels::of(&inputs.device) == Some(Kernels::Cpu)
                    && self.forms.add(modifier, inputs)
                {
                    return;
                }
                self.products = inputs.products(modifier).or(self.products.take());
                if let Some(bias) = inputs.bias(modifier) {
                    plus(&mut self.dense, bias);
                }
            }
        }
    }
}

pub(super) fn plus<const D: usize>(sum: &mut Option<Tensor<D>>, term: Tensor<D>) {
    *sum = Some(match sum.take() {
        Some(sum) => sum + term,
        None => term,
    });
}

/// Adds tables of different lengths, the last entry of the shorter one going on.
fn add_table(sum: &mut Option<Tensor<2>>, table: Tensor<2>) {
    let longest = sum.as_ref().map_or(0, |sum| sum.dims()[1]).max(table.dims()[1]);
    let stretch = |table: Tensor<2>| {
        let [rows, entries] = table.dims();
        let last = table.clone().slice_dim(1, entries - 1..entries);
        match longest - entries {
            0 => table,
            missing => Tensor::cat(vec![table, last.expand([rows, missing])], 1),
        }
    };
    *sum = Some(match sum.take() {
        Some(sum) => stretch(sum) + stretch(table),
        None => table,
    });
}

/// For the GPU's kernels: everything f32, and in the place of tables that are multiplied with queries
/// the products, factors included. Those are of the size of the queries, and their gradients need no
/// sum over rows.
#[cfg(feature = "cube")]
impl Parts {
    pub(super) fn with_products(
        self,
        q: &Tensor<4>,
        inputs: &LogitInputs<'_>,
        at: &Positions,
        scale: f64,
    ) -> Self {
        let mut parts = self.in_f32();
        if !crate::kernels::spec::contiguous(at.cols())
            && let Some(table) = parts.distance.take()
            && let Some(bias) = inputs.bias(&ScoreMod::Distance { table, beyond: Beyond::Last })
        {
            plus(&mut parts.dense, bias);
        }
        if let Some(table) = parts.query_distance.take() {
            let table = first_entries(table, at.longest_distance() + 1) * scale;
            parts.query_distance_products = Some(kernels::product(q.clone(), table.unsqueeze()));
        }
        let code = (parts.contextual.as_ref())
            .is_some_and(|contextual| contextual.convention == LogitScaling::Code);
        let factor = if code { scale } else { 1.0 };
        if let Some(table) = parts.table.take() {
            let table = match parts.hidden {
                Some(_) => table,
                None => first_entries(table, at.cols().len() + 1),
            };
            parts.table_products = Some(kernels::product(q.clone(), (table * factor).unsqueeze()));
        }
        parts.contextual_slopes = parts.contextual_slopes.map(|slopes| slopes * factor);
        parts
    }

    fn in_f32(mut self) -> Self {
        fn cast<const D: usize>(tensor: &mut Option<Tensor<D>>) {
            *tensor = tensor.take().map(|tensor| tensor.cast(DType::F32));
        }
        cast(&mut self.slopes);
        cast(&mut self.distance);
        cast(&mut self.query_distance);
        cast(&mut self.decay);
        cast(&mut self.decay_residual);
        cast(&mut self.table);
        cast(&mut self.hidden);
        cast(&mut self.contextual_slopes);
        cast(&mut self.dense);
        cast(&mut self.products);
        self
    }
}

/// At most so many.
#[cfg(feature = "cube")]
fn first_entries(table: Tensor<2>, entries: usize) -> Tensor<2> {
    let [_rows, all] = table.dims();
    if all > entries { table.slice_dim(1, 0..entries) } else { table }
}
