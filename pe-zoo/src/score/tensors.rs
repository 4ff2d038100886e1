//! Visits the tensors of a modifier, with the axes along which they have tokens.

use burn::tensor::Tensor;

use super::{
    Contextual, ContextualFunction, FarProducts, GateSource, HeadMlp, Perceptron, PositionMlp,
    Reflected, ScoreMod, StepPrices, TokenPrice,
};

/// Axes along which a tensor has tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TokenAxes {
    pub(crate) rows: Option<usize>,
    pub(crate) columns: Option<usize>,
}

impl TokenAxes {
    pub(crate) const NONE: Self = Self { rows: None, columns: None };
    /// `[B, H, T, any]`.
    pub(crate) const ROWS: Self = Self { rows: Some(2), columns: None };
    /// `[B, H, S]` and `[B, H, S, any]`.
    pub(crate) const COLUMNS: Self = Self { rows: None, columns: Some(2) };
    /// `[B, H, T, S]`.
    pub(crate) const PAIRS: Self = Self { rows: Some(2), columns: Some(3) };
}

/// Function of each tensor of a modifier.
pub(crate) trait TensorMap {
    /// Returns the tensor in the place of this one.
    fn map<const D: usize>(&mut self, tensor: &Tensor<D>, axes: TokenAxes) -> Tensor<D>;

    /// [`map`](Self::map) of a tensor without tokens.
    fn param<const D: usize>(&mut self, tensor: &Tensor<D>) -> Tensor<D> {
        self.map(tensor, TokenAxes::NONE)
    }
}

impl ScoreMod {
    /// Returns the same modifier of other tensors. They are visited in an order that depends only on the form of the modifier.
    pub(crate) fn map_tensors(&self, f: &mut impl TensorMap) -> Self {
        match self {
            Self::None => Self::None,
            Self::StickBreaking(rule) => Self::StickBreaking(*rule),
            Self::Hard => Self::Hard,
            Self::Slope(slopes) => Self::Slope(f.param(slopes)),
            Self::Distance { table, beyond } => {
                Self::Distance { table: f.param(table), beyond: *beyond }
            }
            Self::QueryDistance { table, beyond } => {
                Self::QueryDistance { table: f.param(table), beyond: *beyond }
            }
            Self::RowDistance { vectors, table, beyond } => Self::RowDistance {
                vectors: f.map(vectors, TokenAxes::ROWS),
                table: f.param(table),
                beyond: *beyond,
            },
            Self::Decay { cumulative } => {
                Self::Decay { cumulative: f.map(cumulative, TokenAxes::COLUMNS) }
            }
            Self::Contextual(contextual) => Self::Contextual(contextual.map_tensors(f)),
            Self::Products(products) => Self::Products(f.map(products, TokenAxes::PAIRS)),
            Self::Reflected(Reflected { directions, strengths }) => Self::Reflected(Reflected {
                directions: f.map(directions, TokenAxes::COLUMNS),
                strengths: f.map(strengths, TokenAxes::COLUMNS),
            }),
            Self::FarProducts(FarProducts { queries, keys, pairs }) => {
                Self::FarProducts(FarProducts {
                    queries: f.map(queries, TokenAxes::ROWS),
                    keys: f.map(keys, TokenAxes::COLUMNS),
                    pairs: *pairs,
                })
            }
            Self::ChannelDecay { cumulative } => {
                Self::ChannelDecay { cumulative: f.map(cumulative, TokenAxes::COLUMNS) }
            }
            Self::PositionMlp(PositionMlp {
                c,
                threshold,
                eps,
                w1,
                b1,
                w2,
                b2,
                negative_slope,
            }) => Self::PositionMlp(PositionMlp {
                c: f.param(c),
                threshold: f.param(threshold),
                eps: *eps,
                w1: f.param(w1),
                b1: f.param(b1),
                w2: f.param(w2),
                b2: f.param(b2),
                negative_slope: *negative_slope,
            }),
            Self::HeadMlp(HeadMlp { base, taps, w1, c1, w2, c2, negative_slope, scale }) => {
                Self::HeadMlp(HeadMlp {
                    base: base.as_ref().map(|base| Box::new(base.map_tensors(f))),
                    taps: *taps,
                    w1: f.param(w1),
                    c1: f.param(c1),
                    w2: f.param(w2),
                    c2: f.param(c2),
                    negative_slope: *negative_slope,
                    scale: *scale,
                })
            }
            Self::TokenPrice(TokenPrice { rate, keys, queries }) => Self::TokenPrice(TokenPrice {
                rate: f.param(rate),
                keys: keys.as_ref().map(|keys| f.map(keys, TokenAxes::COLUMNS)),
                queries: queries.as_ref().map(|queries| f.map(queries, TokenAxes::ROWS)),
            }),
            Self::StepPrices(StepPrices { queries, keys, slopes }) => {
                Self::StepPrices(StepPrices {
                    queries: f.map(queries, TokenAxes::ROWS),
                    keys: f.map(keys, TokenAxes::COLUMNS),
                    slopes: f.param(slopes),
                })
            }
            Self::Sinks(sinks) => Self::Sinks(f.param(sinks)),
            Self::Term(term) => Self::Term(term.map_tensors(f)),
            Self::Dense(bias) => Self::Dense(f.map(bias, TokenAxes::PAIRS)),
            Self::Sum(parts) => Self::Sum(parts.iter().map(|part| part.map_tensors(f)).collect()),
        }
    }
}

impl Contextual {
    fn map_tensors(&self, f: &mut impl TensorMap) -> Self {
        let Self { gates, max_position, function, convention } = self;
        let gates = match gates {
            GateSource::QueryKey => GateSource::QueryKey,
            GateSource::QueryValue => GateSource::QueryValue,
            GateSource::Keys(keys) => GateSource::Keys(f.map(keys, TokenAxes::COLUMNS)),
        };
        let function = match function {
            ContextualFunction::Table(table) => ContextualFunction::Table(f.param(table)),
            ContextualFunction::Slope(slopes) => ContextualFunction::Slope(f.param(slopes)),
            ContextualFunction::Mlp(Perceptron { w1, b1, w2, b2, activation }) => {
                ContextualFunction::Mlp(Perceptron {
                    w1: f.param(w1),
                    b1: f.param(b1),
                    w2: f.param(w2),
                    b2: f.param(b2),
                    activation: *activation,
                })
            }
        };
        Self { gates, max_position: *max_position, function, convention: *convention }
    }
}
