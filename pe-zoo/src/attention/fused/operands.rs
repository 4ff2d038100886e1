//! Splits a modifier of the logits into the operands of the kernels.

use std::sync::Arc;

use burn::backend::{Dispatch, DispatchTensor};
use burn::tensor::{DType, Tensor};

#[cfg(feature = "flex")]
use super::cpu_operands::{self, CpuOperands};
#[cfg(feature = "cube")]
use super::piecewise::{DevicePieces, HiddenUnits, PiecewiseTensors, units};
use super::{endless, stretched};
#[cfg(feature = "cube")]
use crate::Positions;
use crate::ScoreMod;
use crate::attention::reference::LogitInputs;
use crate::attention::support::PlannedPart;
#[cfg(feature = "cube")]
use crate::kernels;
use crate::kernels::Kernels;
use crate::kernels::operands::{Operands, SLOTS, Slot};
use crate::kernels::spec::{self, ContextualSpec, HeadMlpSpec, Spec, WeightRule};
use crate::ops::MatmulPrecision;
#[cfg(feature = "cube")]
use crate::parts::householder::{EdgeProducts, HouseholderMaps};
#[cfg(feature = "cube")]
use crate::score::{Beyond, PositionMlp, Reflected};
use crate::score::{
    Contextual, ContextualFunction, FarPairs, FarProducts, GateSource, LogitScaling, Perceptron,
    StepPrices, Term,
};

/// Operands of a modifier for the kernels, which support at most one modifier of each kind.
pub(super) struct ModifierOperands {
    /// Tensors of the modifier by slot, all f32. The slots of queries, keys, values and gate keys
    /// are empty.
    tensors: [Option<DispatchTensor>; SLOTS],
    /// Contextual positions that the kernels compute; the tensors of their function are in the
    /// slots.
    contextual: Option<Contextual>,
    /// Replacement of the products `q k^T`, `[B, H, T, S]`.
    products: Option<Tensor<4>>,
    /// Pair terms applied to the content logits, in this order.
    terms: Vec<Term>,
    /// Content logits with the pair terms already applied, `[B, H, T, S]`.
    content: Option<Tensor<4>>,
    weights: Option<WeightRule>,
    /// Boundaries between the pieces of a piecewise linear bias, ascending.
    position_mlp_bends: Arc<[f32]>,
    head_mlp: Option<HeadMlpSpec>,
    /// Pairs with products of their own, if there are any.
    far_pairs: Option<FarPairs>,
    /// Queries and keys in place of those of the content.
    reflected: Option<[Tensor<4>; 2]>,
    /// Whether the content logits are not divided by `sqrt(D)`.
    undivided: bool,
}

impl ModifierOperands {
    /// Operands for the kernels of a device. The reference engine makes the parts dense that these kernels do not compute.
    pub(super) fn of(modifier: &ScoreMod, inputs: &LogitInputs<'_>, kernels: Kernels) -> Self {
        let mut operands = Self {
            tensors: [const { None }; SLOTS],
            contextual: None,
            products: None,
            terms: Vec::new(),
            content: None,
            weights: None,
            position_mlp_bends: Arc::default(),
            head_mlp: None,
            far_pairs: None,
            reflected: None,
            undivided: false,
        };
        let mut dense_terms = false;
        for PlannedPart { part, in_kernels } in modifier.planned(kernels) {
            dense_terms |= !in_kernels && matches!(part, ScoreMod::Term(_));
            operands.add(part, in_kernels.then_some(kernels), inputs);
        }
        if dense_terms { operands.with_dense_terms(inputs) } else { operands }
    }

    /// Adds a part that these kernels compute; the reference engine makes it dense if none do.
    fn add(&mut self, part: &ScoreMod, kernels: Option<Kernels>, inputs: &LogitInputs<'_>) {
        match part {
            // The plan has no sums, and the reference engine computes hard attention, see `attend`.
            ScoreMod::None | ScoreMod::Hard | ScoreMod::Sum(_) => {}
            ScoreMod::Slope(slopes) => self.plus(Slot::Slope, slopes.clone()),
            ScoreMod::Distance { table, beyond } => {
                self.plus_table(Slot::Distance, endless(table, *beyond));
            }
            ScoreMod::QueryDistance { table, beyond } => {
                self.plus_table(Slot::QueryDistance, endless(table, *beyond));
            }
            ScoreMod::RowDistance { vectors, table, beyond } if kernels.is_some() => {
                self.put(Slot::RowVectors, vectors.clone());
                self.put(Slot::RowDistance, endless(table, *beyond));
            }
            ScoreMod::Decay { cumulative } => {
                // All parts after the first, which may hold its rounding errors.
                let further = self.tensors[Slot::Decay as usize].is_some();
                let slot = if further { Slot::DecayResidual } else { Slot::Decay };
                self.plus(slot, cumulative.clone());
            }
            ScoreMod::Contextual(contextual) => {
                self.add_contextual(contextual, kernels, inputs);
            }
            ScoreMod::StickBreaking(rule) => {
                self.weights = Some(WeightRule::StickBreaking(*rule));
            }
            ScoreMod::Sinks(sinks) => self.plus(Slot::Sink, sinks.clone()),
            ScoreMod::Products(products) => self.products = Some(in_f32(products.clone())),
            ScoreMod::Term(term) => self.terms.push(term.clone()),
            ScoreMod::Dense(bias) => self.plus(Slot::Dense, bias.clone()),
            #[cfg(feature = "cube")]
            ScoreMod::PositionMlp(mlp) if kernels == Some(Kernels::GpuCores) => {
                self.add_pieces(mlp, inputs.at);
            }
            #[cfg(feature = "cube")]
            ScoreMod::Reflected(reflected) if kernels == Some(Kernels::GpuCores) => {
                self.add_reflected(reflected, inputs);
            }
            ScoreMod::StepPrices(prices) if kernels.is_some() => {
                let StepPrices { queries, keys, slopes } = match kernels {
                    Some(Kernels::GpuCores) => prices.in_whole_pieces(),
                    _ => prices.clone(),
                };
                self.put(Slot::StepPricesQueries, queries);
                self.put(Slot::StepPricesKeys, keys);
                self.put(Slot::StepPricesSlopes, slopes);
            }
            ScoreMod::FarProducts(FarProducts { queries, keys, pairs }) if kernels.is_some() => {
                self.put(Slot::FarQuery, queries.clone());
                self.put(Slot::FarKey, keys.clone());
                self.far_pairs = Some(*pairs);
            }
            ScoreMod::ChannelDecay { cumulative } if kernels.is_some() => {
                self.put(Slot::ChannelDecay, cumulative.clone());
            }
            ScoreMod::RowDistance { .. }
            | ScoreMod::Reflected(_)
            | ScoreMod::FarProducts(_)
            | ScoreMod::ChannelDecay { .. }
            | ScoreMod::PositionMlp(_)
            | ScoreMod::HeadMlp(_)
            | ScoreMod::TokenPrice(_)
            | ScoreMod::StepPrices(_) => {
                #[cfg(feature = "flex")]
                if kernels == Some(Kernels::Cpu) {
                    return self.add_cpu(cpu_operands::of(part, inputs));
                }
                self.add_dense(part, inputs);
            }
        }
    }

    #[cfg(feature = "flex")]
    fn add_cpu(&mut self, operands: CpuOperands) {
        for (slot, tensor) in operands.tensors {
            self.tensors[slot as usize] = Some(tensor);
        }
        if !operands.position_mlp_bends.is_empty() {
            self.position_mlp_bends = operands.position_mlp_bends;
        }
        self.head_mlp = operands.head_mlp.or(self.head_mlp.take());
    }

    #[cfg(feature = "cube")]
    fn add_pieces(&mut self, mlp: &PositionMlp, at: &Positions) {
        let DevicePieces { ends, slopes } = DevicePieces::of(&units(mlp));
        let PiecewiseTensors { lines, distances, rows } = PiecewiseTensors::of(mlp, slopes, at);
        self.put(Slot::Bends, ends);
        self.put(Slot::PositionMlpLines, lines);
        self.put(Slot::PositionMlpDistances, distances);
        self.put(Slot::PositionMlpRows, rows);
    }

    #[cfg(feature = "cube")]
    fn add_reflected(&mut self, reflected: &Reflected, inputs: &LogitInputs<'_>) {
        let LogitInputs { q, k, at, .. } = *inputs;
        let Reflected { directions, strengths } = reflected.clone();
        let maps = HouseholderMaps { k: k.clone(), w: directions.clone(), beta: strengths };
        let EdgeProducts { q, k, updates, products } =
            EdgeProducts::new(q, maps, at, kernels::gpu::REFLECTED_CHUNK);
        self.put(Slot::ReflectedDirections, directions);
        self.put(Slot::ReflectedChunks, updates);
        self.put(Slot::ReflectedProducts, products);
        self.reflected = Some([q, k]);
    }

    fn add_dense(&mut self, part: &ScoreMod, inputs: &LogitInputs<'_>) {
        if let Some(products) = inputs.products(part) {
            self.products = Some(in_f32(products));
        }
        if let Some(bias) = inputs.bias(part) {
            self.plus(Slot::Dense, bias);
        }
    }

    fn add_contextual(
        &mut self,
        contextual: &Contextual,
        kernels: Option<Kernels>,
        inputs: &LogitInputs<'_>,
    ) {
        self.undivided |= contextual.convention == LogitScaling::Equation;
        if kernels.is_none() {
            self.plus(Slot::Dense, inputs.contextual(contextual));
            return;
        }
        self.contextual = Some(contextual.clone());
        match &contextual.function {
            ContextualFunction::Table(table) => self.put(Slot::ContextualVectors, table.clone()),
            ContextualFunction::Slope(slopes) => self.put(Slot::ContextualSlopes, slopes.clone()),
            #[cfg(feature = "cube")]
            ContextualFunction::Mlp(Perceptron { w1, b1, w2, b2, activation: _ })
                if kernels == Some(Kernels::GpuCores) =>
            {
                let largest = contextual.max_position;
                let units = HiddenUnits { w1, b1, negative_slope: 0.0, largest };
                let DevicePieces { ends, slopes } = DevicePieces::of(&units);
                self.put(Slot::Bends, ends);
                self.put(Slot::ContextualVectors, units.lines(w2, b2, slopes));
            }
            ContextualFunction::Mlp(Perceptron { w1, b1, w2, b2, activation: _ }) => {
                let last = b2.clone().unsqueeze_dim(1);
                self.put(Slot::ContextualVectors, Tensor::cat(vec![w2.clone(), last], 1));
                self.put(
                    Slot::ContextualHidden,
                    Tensor::stack::<2>(vec![w1.clone(), b1.clone()], 0),
                );
            }
        }
    }

    fn put<const D: usize>(&mut self, slot: Slot, tensor: Tensor<D>) {
        self.tensors[slot as usize] = Some(in_f32(tensor).into_dispatch());
    }

    fn take<const D: usize>(&mut self, slot: Slot) -> Option<Tensor<D>> {
        self.tensors[slot as usize].take().map(Tensor::from_dispatch)
    }

    fn plus<const D: usize>(&mut self, slot: Slot, term: Tensor<D>) {
        let sum = match self.take(slot) {
            Some(sum) => sum + in_f32(term),
            None => term,
        };
        self.put(slot, sum);
    }

    /// Adds a distance table to the one in a slot; the shorter of the two is extended by repeating
    /// its last entry.
    fn plus_table<const D: usize>(&mut self, slot: Slot, table: Tensor<D>) {
        let table = in_f32(table);
        let sum = match self.take::<D>(slot) {
            Some(sum) => {
                let entries = sum.dims()[D - 1].max(table.dims()[D - 1]);
                stretched(sum, entries) + stretched(table, entries)
            }
            None => table,
        };
        self.put(slot, sum);
    }

    fn content_scale(&self, scale: f64) -> f64 {
        if self.undivided { 1.0 } else { scale }
    }

    /// Returns the same modifier with its pair terms evaluated by the reference engine.
    fn with_dense_terms(mut self, inputs: &LogitInputs<'_>) -> Self {
        let products = self.products.take().unwrap_or_else(|| inputs.content());
        let content = products * self.content_scale(inputs.scale);
        let terms = std::mem::take(&mut self.terms);
        let values = terms.iter().fold(content, |content, term| term.values(content, inputs.at));
        self.content = Some(values);
        self
    }

    /// Writes parameters and state of all terms to their slots, one term after the other.
    fn put_terms(&mut self, terms: &[Term]) {
        let tensors = terms.iter().map(Term::tensors).collect::<Vec<_>>();
        let params = tensors.iter().filter_map(|(params, _)| params.cloned()).collect::<Vec<_>>();
        if !params.is_empty() {
            self.put(Slot::TermParams, Tensor::cat(params, 1));
        }
        let state = tensors.iter().filter_map(|(_, state)| state.cloned()).collect::<Vec<_>>();
        if !state.is_empty() {
            self.put(Slot::TermState, Tensor::cat(state, 3));
        }
    }

    /// Returns operands and specification of one attention for the kernels.
    pub(super) fn operands(
        mut self,
        inputs: &LogitInputs<'_>,
        values: &Tensor<4>,
        precision: MatmulPrecision,
    ) -> (Operands<Dispatch>, Spec) {
        let LogitInputs { q, k, v, at, scale, .. } = *inputs;
        let [batch, heads, rows, _head_dim] = q.dims();
        let [_batch, _heads, columns, _value_dim] = values.dims();
        let content_scale = self.content_scale(inputs.scale);
        let products = self.products.take().map(|products| products * content_scale);
        let content = match products.or(self.content.take()) {
            None => Some(content_scale as f32),
            Some(content) => {
                self.plus(Slot::Dense, content);
                None
            }
        };
        let replaced = [Slot::ReflectedChunks, Slot::FarKey, Slot::ChannelDecay];
        let mapped = replaced.iter().any(|slot| self.tensors[*slot as usize].is_some());
        let terms = std::mem::take(&mut self.terms);
        self.put_terms(&terms);
        let contextual = self.contextual.take().map(|contextual| {
            let Contextual { gates, max_position, convention, function } = contextual;
            let activation = match function {
                ContextualFunction::Mlp(perceptron) => Some(perceptron.activation),
                ContextualFunction::Table(_) | ContextualFunction::Slope(_) => None,
            };
            let gate_keys = match gates {
                // The kernel computes these products anyway, unless they are replaced.
                GateSource::QueryKey => {
                    (content.is_none() || mapped || !terms.is_empty()).then(|| k.clone())
                }
                GateSource::QueryValue => Some(v.clone()),
                GateSource::Keys(keys) => Some(keys),
            };
            if let Some(keys) = gate_keys {
                self.put(Slot::ContextualGateKeys, keys);
            }
            ContextualSpec::new(max_position, convention, scale, activation)
        });
        if let Some(dense) = self.take::<4>(Slot::Dense) {
            self.put(Slot::Dense, dense.expand([batch, heads, rows, columns]));
        }
        let [q, k] = self.reflected.take().unwrap_or_else(|| [q, k].map(Clone::clone));
        self.put(Slot::Query, q);
        self.put(Slot::Key, k);
        self.put(Slot::Values, values.clone());
        let absent = Tensor::<1>::zeros([0], &inputs.device);
        let absent = || absent.clone().into_dispatch();
        let operands = Operands(self.tensors.map(|tensor| tensor.unwrap_or_else(absent)));
        let spec = Spec {
            columns: Arc::from(at.cols()),
            contiguous: spec::contiguous(at.cols()),
            first_row: at.first_row(),
            content_scale: content,
            distance_scale: scale as f32,
            weights: self.weights.unwrap_or(WeightRule::Softmax),
            precision,
            contextual,
            position_mlp_bends: self.position_mlp_bends,
            head_mlp: self.head_mlp,
            far_pairs: self.far_pairs,
            terms: terms.iter().map(|term| term.kernel().clone()).collect(),
        };
        (operands, spec)
    }
}

/// Converts a tensor to f32, the type of the kernels; f32 tensors are returned unchanged.
fn in_f32<const D: usize>(tensor: Tensor<D>) -> Tensor<D> {
    if tensor.dtype() == DType::F32 { tensor } else { tensor.cast(DType::F32) }
}

/// Operands for the GPU's kernels: tables that are multiplied with queries are replaced by the
/// scaled products. The products are of the size of the queries, and their gradients need no sum
/// over rows.
#[cfg(feature = "cube")]
impl ModifierOperands {
    pub(super) fn with_products(mut self, inputs: &LogitInputs<'_>) -> Self {
        let LogitInputs { q, at, scale, .. } = *inputs;
        if !spec::contiguous(at.cols())
            && let Some(table) = self.take(Slot::Distance)
            && let Some(bias) = inputs.bias(&ScoreMod::Distance { table, beyond: Beyond::Last })
        {
            self.plus(Slot::Dense, bias);
        }
        if let Some(table) = self.take(Slot::QueryDistance) {
            let table = first_entries(table, at.longest_distance() + 1) * scale;
            let products = crate::kernels::product(q.clone(), table.unsqueeze());
            self.put(Slot::QueryDistance, products);
        }
        if let Some(vectors) = self.take::<4>(Slot::RowVectors)
            && let Some(table) = self.take(Slot::RowDistance)
        {
            let table = first_entries(table, at.longest_distance() + 1);
            let products = crate::kernels::product(vectors, table.unsqueeze());
            self.plus_table(Slot::QueryDistance, products);
        }
        let code = (self.contextual.as_ref())
            .is_some_and(|contextual| contextual.convention == LogitScaling::Code);
        let factor = if code { scale } else { 1.0 };
        if let Some(table) = self.take(Slot::ContextualVectors) {
            let is_table = [Slot::ContextualHidden, Slot::Bends]
                .iter()
                .all(|slot| self.tensors[*slot as usize].is_none());
            let table = if is_table { first_entries(table, at.cols().len() + 1) } else { table };
            let products = crate::kernels::product(q.clone(), (table * factor).unsqueeze());
            self.put(Slot::ContextualVectors, products);
        }
        if let Some(slopes) = self.take::<1>(Slot::ContextualSlopes) {
            self.put(Slot::ContextualSlopes, slopes * factor);
        }
        self
    }
}

/// Returns the first entries of a table, or the whole table if it is shorter.
#[cfg(feature = "cube")]
fn first_entries(table: Tensor<2>, entries: usize) -> Tensor<2> {
    let [_rows, all] = table.dims();
    if all > entries { table.slice_dim(1, 0..entries) } else { table }
}
