//! Functions of pairs: those of `examples/outside`, and one with every function of a number. Only the simulation runs all of them.

#![cfg_attr(not(feature = "cores-sim"), allow(dead_code, reason = "PTX is made of one"))]

use crate::score::{Number, Pair, PairTerm};

#[derive(Debug, Clone)]
pub(super) struct Power;

impl PairTerm<3> for Power {
    fn value<N: Number>(&self, pair: Pair<N, 3>) -> N {
        let [temperature, a, power] = pair.params;
        temperature * pair.content - a * pair.distance.pow(power)
    }
}

#[derive(Debug, Clone)]
pub(super) struct RowFactor;

impl PairTerm<0, 1> for RowFactor {
    fn value<N: Number>(&self, pair: Pair<N, 0, 1>) -> N {
        pair.row[0] * pair.content
    }
}

#[derive(Debug, Clone)]
pub(super) struct StateDifference;

impl PairTerm<0, 2> for StateDifference {
    fn value<N: Number>(&self, pair: Pair<N, 0, 2>) -> N {
        pair.content + (pair.row[0] - pair.column[0]) + (pair.row[1] - pair.column[1])
    }
}

/// Every function of a number.
#[derive(Debug, Clone)]
pub(super) struct Everything;

impl PairTerm<2, 1> for Everything {
    fn value<N: Number>(&self, pair: Pair<N, 2, 1>) -> N {
        let ([a, b], [row], [column]) = (pair.params, pair.row, pair.column);
        let near = (pair.distance * a).pow(b.sigmoid()) - (row - column).abs();
        let soft = (pair.content * column).softplus() / (N::constant(2.0) + row * row).sqrt();
        let bent = (-near).max(pair.content).min(N::constant(1.5) + b);
        bent + (soft * N::constant(0.5)).exp() - (N::constant(1.0) + pair.distance).ln() * a
    }
}
