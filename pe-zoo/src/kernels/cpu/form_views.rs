//! The operands of the forms of one (batch, head), borrowed.

use super::view::Matrix;
use crate::kernels::spec::MixerSpec;

/// The forms of one (batch, head).
#[derive(Debug, Clone, Copy)]
pub(super) struct FormHead<'a> {
    pub(super) curve: Option<Curve<'a>>,
    pub(super) price: Option<Price<'a>>,
    pub(super) steps: Option<Steps<'a>>,
    /// What stands in for the products of queries and keys.
    pub(super) maps: Option<Maps<'a>>,
    pub(super) mixer: Option<Mixer<'a>>,
}

/// A piecewise linear function of distance over position.
#[derive(Debug, Clone, Copy)]
pub(super) struct Curve<'a> {
    /// Where pieces end, ascending.
    pub(super) bends: &'a [f32],
    /// Slopes of the pieces, then their values at 0, `[1, 2 N]`.
    pub(super) lines: Matrix<'a>,
    /// Scaled distances, ascending, `[1, N]`.
    pub(super) distances: Matrix<'a>,
    /// What they are multiplied with in each row, `[1, T]`.
    pub(super) rows: Matrix<'a>,
}

/// What is added per unit of distance.
#[derive(Debug, Clone, Copy)]
pub(super) struct Price<'a> {
    /// `[S, 1]`.
    pub(super) keys: Option<Matrix<'a>>,
    /// `[T, 1]`.
    pub(super) queries: Option<Matrix<'a>>,
}

/// Prices of the steps between key and query.
#[derive(Debug, Clone, Copy)]
pub(super) struct Steps<'a> {
    /// `[T, E]`.
    pub(super) queries: Matrix<'a>,
    /// `[S, E]`.
    pub(super) keys: Matrix<'a>,
    /// What the sum of prices is multiplied with.
    pub(super) slope: f32,
}

/// Householder-like maps.
#[derive(Debug, Clone, Copy)]
pub(super) struct Maps<'a> {
    /// Directions, `[S, D]`.
    pub(super) directions: Matrix<'a>,
    /// What each chunk of `K` columns does to keys, then to queries, `[S, K + D]`.
    pub(super) chunks: Matrix<'a>,
}

/// A perceptron across heads, its base for one head.
#[derive(Debug, Clone, Copy)]
pub(super) struct Mixer<'a> {
    pub(super) spec: &'a MixerSpec,
    /// `[N, taps planes]`.
    pub(super) inner: Matrix<'a>,
    /// `[1, N]`.
    pub(super) inner_bias: Matrix<'a>,
    /// `[H, taps N]`.
    pub(super) outer: Matrix<'a>,
    /// `[1, H]`.
    pub(super) outer_bias: Matrix<'a>,
    pub(super) base: Option<Base<'a>>,
}

/// The bias that is seen, and added too.
#[derive(Debug, Clone, Copy)]
pub(super) enum Base<'a> {
    /// `[1, N]`, read at the distance; the last entry goes on for ever.
    Table(Matrix<'a>),
    Curve(Curve<'a>),
}
