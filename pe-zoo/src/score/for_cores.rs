//! Modifiers in the form in which the kernels on a GPU's tensor cores compute them without a tensor of all pairs.

use burn::tensor::Tensor;

use super::{
    Contextual, ContextualFunction, GateSource, HiddenActivation, Number, Pair, PairTerm, ScoreMod,
    StepPrices, Term, TokenPrice,
};
#[cfg(feature = "cube")]
use super::{FarProducts, Perceptron};

/// Channels that the kernels read at once.
const PIECE: usize = 8;

/// [`ScoreMod::Slope`]: subtracts the slope of the head times the distance.
#[derive(Debug, Clone)]
struct SlopeTerm;

impl PairTerm<1> for SlopeTerm {
    #[inline(always)]
    fn value<N: Number>(&self, pair: Pair<N, 1>) -> N {
        pair.content - pair.params[0] * pair.distance
    }
}

/// [`ScoreMod::Decay`]: adds the difference of running sums.
#[derive(Debug, Clone)]
struct DecayTerm;

impl PairTerm<0, 1> for DecayTerm {
    #[inline(always)]
    fn value<N: Number>(&self, pair: Pair<N, 0, 1>) -> N {
        pair.content + (pair.row[0] - pair.column[0])
    }
}

/// [`ScoreMod::TokenPrice`]: subtracts rate times distance times prices. State: the price as a key, then as a query.
#[derive(Debug, Clone)]
struct PriceTerm;

impl PairTerm<1, 2> for PriceTerm {
    #[inline(always)]
    fn value<N: Number>(&self, pair: Pair<N, 1, 2>) -> N {
        pair.content - pair.params[0] * pair.distance * (pair.column[0] + pair.row[1])
    }
}

impl TokenPrice {
    /// Returns the prices as a term; `None` if there are prices of queries for other tokens than those of the keys.
    fn as_term(&self) -> Option<Term> {
        let prices = [&self.keys, &self.queries].map(Option::as_ref);
        let like = prices[0].or(prices[1])?;
        if prices.iter().flatten().any(|price| price.dims() != like.dims()) {
            return None;
        }
        let state = prices.map(|price| price.cloned().unwrap_or_else(|| like.zeros_like()));
        let params = self.rate.clone().unsqueeze_dim(1);
        Some(Term::new(PriceTerm).head_params(params).token_state(Tensor::cat(state.into(), 3)))
    }
}

impl StepPrices {
    /// Returns the same prices from queries and keys with as many more channels of zeros as the kernels need.
    pub(crate) fn in_whole_pieces(&self) -> Self {
        let dim = self.keys.dims()[3];
        let padded = dim.next_multiple_of(PIECE);
        if padded == dim {
            return self.clone();
        }
        let pad = |vectors: &Tensor<4>| {
            let [batch, heads, tokens, _dim] = vectors.dims();
            let shape = [batch, heads, tokens, padded - dim];
            let zeros = Tensor::<4>::zeros(shape, &vectors.device()).cast(vectors.dtype());
            Tensor::cat(vec![vectors.clone(), zeros], 3)
        };
        // Products are divided by the number of channels.
        let queries = pad(&self.queries) * (padded as f64 / dim as f64);
        Self { queries, keys: pad(&self.keys), slopes: self.slopes.clone() }
    }
}

/// Sizes of a modifier by which the kernels on tensor cores decide whether they compute it; 0 where it has none.
#[cfg(feature = "cube")]
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct NeedsOfCores {
    /// Pieces of a piecewise linear function of the distance over the row's position.
    pub(crate) by_distance: usize,
    /// Pieces of a piecewise linear function of the contextual position.
    pub(crate) by_position: usize,
    /// Channels of products of queries and keys beside those of the content.
    pub(crate) second_dim: usize,
    /// Whether the channels of products decay.
    pub(crate) decays_channels: bool,
    /// Whether tokens reflect the products of later queries with earlier keys.
    pub(crate) reflects: bool,
    /// Whether the first position must be 0.
    pub(crate) from_zero: bool,
    /// Whether every column must be a row.
    pub(crate) all_rows: bool,
}

#[cfg(feature = "cube")]
impl NeedsOfCores {
    /// The larger sizes of both.
    fn max(self, other: Self) -> Self {
        Self {
            by_distance: self.by_distance.max(other.by_distance),
            by_position: self.by_position.max(other.by_position),
            second_dim: self.second_dim.max(other.second_dim),
            decays_channels: self.decays_channels || other.decays_channels,
            reflects: self.reflects || other.reflects,
            from_zero: self.from_zero || other.from_zero,
            all_rows: self.all_rows || other.all_rows,
        }
    }
}

impl ScoreMod {
    /// Returns what the kernels on tensor cores need for this modifier.
    #[cfg(feature = "cube")]
    pub(crate) fn needs_of_cores(&self) -> NeedsOfCores {
        let none = NeedsOfCores::default();
        match self {
            Self::PositionMlp(mlp) => NeedsOfCores { by_distance: mlp.w1.dims()[0] + 1, ..none },
            Self::Contextual(Contextual {
                function: ContextualFunction::Mlp(Perceptron { w1, .. }),
                ..
            }) => NeedsOfCores { by_position: w1.dims()[0] + 1, ..none },
            Self::StepPrices(StepPrices { keys, .. }) => {
                NeedsOfCores { second_dim: keys.dims()[3].next_multiple_of(PIECE), ..none }
            }
            Self::FarProducts(FarProducts { keys, .. }) => {
                NeedsOfCores { second_dim: keys.dims()[3], from_zero: true, ..none }
            }
            Self::ChannelDecay { .. } => NeedsOfCores { decays_channels: true, ..none },
            Self::Reflected(_) => NeedsOfCores { reflects: true, all_rows: true, ..none },
            Self::Sum(parts) => {
                parts.iter().map(Self::needs_of_cores).fold(none, NeedsOfCores::max)
            }
            _ => none,
        }
    }

    /// Returns the modifier in the form that kernels on tensor cores compute for `columns` tokens: one perceptron of the position
    /// beside slopes and running sums, decaying channels beside these and distance tables, reflected products beside running sums, one of
    /// contextual positions, step prices or far products alone, or pair terms beside a distance table. `None` if a part has no such form, or if all kernels of
    /// a GPU compute the modifier.
    pub(crate) fn for_cores(&self, columns: usize) -> Option<Self> {
        let mut parts = Vec::new();
        self.flatten_into(&mut parts);
        parts.retain(|part| !matches!(part, Self::None));
        let is_alone = |part: &Self| match part {
            Self::StepPrices(_) | Self::FarProducts(_) => true,
            Self::Contextual(Contextual {
                gates: GateSource::QueryKey,
                function: ContextualFunction::Mlp(perceptron),
                ..
            }) => perceptron.activation == HiddenActivation::Relu,
            _ => false,
        };
        let alone = parts.iter().filter(|part| is_alone(part)).count();
        if alone > 0 {
            let fits = |part: &&Self| is_alone(part) || matches!(part, Self::Sinks(_));
            return (alone == 1 && parts.iter().all(fits)).then(|| self.clone());
        }
        let reflected = parts.iter().filter(|part| matches!(part, Self::Reflected(_))).count();
        if reflected > 0 {
            let fits = |part: &&Self| {
                matches!(part, Self::Reflected(_) | Self::Decay { .. } | Self::Sinks(_))
            };
            return (reflected == 1 && parts.iter().all(fits)).then(|| self.clone());
        }
        let is_one =
            |part: &&&Self| matches!(part, Self::PositionMlp(_) | Self::ChannelDecay { .. });
        let ones = parts.iter().filter(is_one).count();
        if ones > 0 {
            let has_pieces = parts.iter().any(|part| matches!(part, Self::PositionMlp(_)));
            let adds_up = |part: &&Self| match part {
                Self::Slope(_) | Self::Decay { .. } | Self::Sinks(_) => true,
                Self::Distance { .. } => !has_pieces,
                _ => is_one(&part),
            };
            return (ones == 1 && parts.iter().all(adds_up)).then(|| self.clone());
        }
        let needs_term = |part: &&Self| matches!(part, Self::Term(_) | Self::TokenPrice(_));
        if !parts.iter().any(needs_term) {
            return None;
        }
        // Other parts are added to the result of the last term.
        parts.sort_by_key(|part| !matches!(part, Self::Term(_)));
        let written = |part: &Self| {
            let term = match part {
                Self::Sinks(_) | Self::Distance { .. } => return Some(part.clone()),
                Self::Term(term) => term.clone(),
                Self::Slope(slopes) => {
                    Term::new(SlopeTerm).head_params(slopes.clone().unsqueeze_dim(1))
                }
                Self::Decay { cumulative } => {
                    Term::new(DecayTerm).token_state(cumulative.clone().unsqueeze_dim(3))
                }
                Self::TokenPrice(price) => price.as_term()?,
                _ => return None,
            };
            let (_params, state) = term.tensors();
            let has_all_columns = state.is_none_or(|state| state.dims()[2] == columns);
            has_all_columns.then_some(Self::Term(term))
        };
        parts.into_iter().map(written).collect::<Option<Vec<_>>>().map(Self::Sum)
    }
}
