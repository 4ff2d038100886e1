//! Perceptron of ReLU units as the piecewise linear function that it is: `slope p + base` between two neighbouring bends.
//!
//! A unit `max(w p + b, 0)` bends at `-b / w`. The sums of the units that are active between two bends are computed once per
//! block, and each pair of tokens costs the search for its piece instead of all units. Positions grow from the newest column
//! to the oldest, so that the search starts at the first piece that any lane of the column before was in.

use super::modifier_scratch::ContextualMlpScratch;
use super::problem::{Block, ContextualMlpOperands};
use super::scratch::{Scratch, grow};
use super::view::MatrixMut;
use crate::math::lanes::{self, Lanes};

/// Adds `factor` times one row of lanes to another.
#[inline(always)]
fn add_scaled<const R: usize>(to: &mut Lanes<R>, from: &Lanes<R>, factor: f32) {
    for r in 0..R {
        to[r] += from[r] * factor;
    }
}

#[inline(always)]
fn add<const R: usize>(to: &mut Lanes<R>, from: &Lanes<R>) {
    for r in 0..R {
        to[r] += from[r];
    }
}

/// Whether a unit is active past its bend. All others are active before it; weights that are NaN are among them.
#[inline(always)]
fn rises(w: f32) -> bool {
    w > 0.0
}

/// Weight and bias of a unit.
#[inline(always)]
fn unit_of(perceptron: &ContextualMlpOperands<'_>, unit: usize) -> (f32, f32) {
    (perceptron.hidden.at(0, unit), perceptron.hidden.at(1, unit))
}

impl<const R: usize> ContextualMlpScratch<R> {
    /// Sorts the bends, and computes the pieces from the products of the queries with the second layer, the constant last.
    #[inline(always)]
    pub(super) fn prepare(
        &mut self,
        perceptron: &ContextualMlpOperands<'_>,
        products: &[Lanes<R>],
    ) {
        let units = perceptron.hidden.shape().columns;
        let bend = |unit: usize| {
            let (w, b) = unit_of(perceptron, unit);
            -b / w
        };
        self.order.clear();
        self.order.extend((0..units).filter(|unit| perceptron.hidden.at(0, *unit) != 0.0));
        self.order.sort_by(|a, b| bend(*a).total_cmp(&bend(*b)));
        self.bends.clear();
        self.bends.extend(self.order.iter().map(|unit| bend(*unit)));
        self.bends.push(f32::INFINITY);
        let pieces = self.bends.len();
        grow(&mut self.slopes, pieces);
        grow(&mut self.bases, pieces);

        // Rising units are active past their bends, all others before. Nothing is subtracted, which would cancel digits.
        let (mut slope, mut base) = ([0.0; R], products[units]);
        for unit in 0..units {
            let (w, b) = unit_of(perceptron, unit);
            if w == 0.0 && b > 0.0 {
                add_scaled(&mut base, &products[unit], b);
            }
        }
        for piece in 0..pieces {
            (self.slopes[piece], self.bases[piece]) = (slope, base);
            if let Some(unit) = self.order.get(piece) {
                let (w, b) = unit_of(perceptron, *unit);
                if rises(w) {
                    add_scaled(&mut slope, &products[*unit], w);
                    add_scaled(&mut base, &products[*unit], b);
                }
            }
        }
        let (mut slope, mut base) = ([0.0; R], [0.0; R]);
        for piece in (0..pieces).rev() {
            add(&mut self.slopes[piece], &slope);
            add(&mut self.bases[piece], &base);
            if let Some(unit) = piece.checked_sub(1).map(|before| self.order[before]) {
                let (w, b) = unit_of(perceptron, unit);
                if !rises(w) {
                    add_scaled(&mut slope, &products[unit], w);
                    add_scaled(&mut base, &products[unit], b);
                }
            }
        }
    }

    /// Returns the bias at one position per lane, and its derivative.
    ///
    /// Bends are compared with all lanes at once, and lanes past a bend select the row behind it, because gathering rows lane
    /// by lane takes longer.
    #[inline(always)]
    pub(super) fn at(&self, walk: &mut Walk, positions: &Lanes<R>) -> (Lanes<R>, Lanes<R>) {
        let first = walk.go_on(&self.bends, positions);
        let (mut slope, mut base) = (self.slopes[first], self.bases[first]);
        let next = self.slopes[first + 1..].iter().zip(&self.bases[first + 1..]);
        for (bend, (next_slope, next_base)) in self.bends[first..].iter().zip(next) {
            let mut passed = 0;
            for r in 0..R {
                let past = *bend < positions[r];
                // Read whether selected or not, because a read under a condition keeps the loop from being vectorised.
                let (to_slope, to_base) = (next_slope[r], next_base[r]);
                slope[r] = if past { to_slope } else { slope[r] };
                base[r] = if past { to_base } else { base[r] };
                passed |= u32::from(past);
            }
            if passed == 0 {
                break;
            }
        }
        let mut bias = [0.0; R];
        for r in 0..R {
            bias[r] = slope[r] * positions[r] + base[r];
        }
        (bias, slope)
    }

    /// Adds the gradients at one position per lane to the sums of their pieces: themselves and times the position.
    #[inline(always)]
    fn collect(
        &self,
        walk: &mut Walk,
        positions: &Lanes<R>,
        grads: &Lanes<R>,
        sums: &mut PieceSums<R>,
    ) {
        let first = walk.go_on(&self.bends, positions);
        let mut pieces = [first as u32; R];
        for bend in &self.bends[first..] {
            let mut passed = 0;
            for r in 0..R {
                let past = u32::from(*bend < positions[r]);
                // Wrapping sums, because tests of overflow would keep the loop from being vectorised.
                pieces[r] = pieces[r].wrapping_add(past);
                passed |= past;
            }
            if passed == 0 {
                break;
            }
        }
        let (totals, moments) = (&mut sums.totals, &mut sums.moments);
        let last = totals.len().min(moments.len()) - 1;
        for r in 0..R {
            let piece = (pieces[r] as usize).min(last);
            totals[piece][r] += grads[r];
            moments[piece][r] += grads[r] * positions[r];
        }
    }
}

/// Sums over the pairs of each piece.
struct PieceSums<const R: usize> {
    /// Sums of the gradients.
    totals: Vec<Lanes<R>>,
    /// Sums of the gradients times the position.
    moments: Vec<Lanes<R>>,
}

/// First piece that any position of a column is in.
#[derive(Default)]
pub(super) struct Walk(usize);

impl Walk {
    /// Goes on to larger positions, or equal ones.
    #[inline(always)]
    fn go_on<const R: usize>(&mut self, bends: &[f32], positions: &Lanes<R>) -> usize {
        // The last bend is infinity, which no position passes.
        while let Some(bend) = bends.get(self.0) {
            let mut passed = 1;
            for position in positions {
                passed &= u32::from(*bend < *position);
            }
            if passed == 0 {
                break;
            }
            self.0 += 1;
        }
        self.0
    }
}

/// Adds the gradients of the products (to `s.product_grads`) and of the hidden layer: column by
/// column from `constant_below` on, and from the sum over the columns before.
#[inline(always)]
pub(super) fn backward<const R: usize>(
    perceptron: &ContextualMlpOperands<'_>,
    max: f32,
    constant_below: usize,
    constant: &Lanes<R>,
    block: &Block<R>,
    s: &mut Scratch<R>,
    hidden_grads: &mut MatrixMut<'_>,
) {
    let mut walk = Walk::default();
    let pieces = s.contextual_mlp.bends.len();
    let zeros = vec![[0.0; R]; pieces];
    let mut sums = PieceSums { totals: zeros.clone(), moments: zeros };
    for j in (constant_below..block.columns).rev() {
        let positions = s.counts[j].map(|count| lanes::at_most(count, max));
        s.contextual_mlp.collect(&mut walk, &positions, &s.grads[j], &mut sums);
    }
    if constant_below > 0 {
        s.contextual_mlp.collect(&mut walk, &[max; R], constant, &mut sums);
    }

    let units = perceptron.hidden.shape().columns;
    let mut learn = |unit: usize, moment: &Lanes<R>, total: &Lanes<R>| {
        let (w, b) = unit_of(perceptron, unit);
        add_scaled(&mut s.product_grads[unit], moment, w);
        add_scaled(&mut s.product_grads[unit], total, b);
        let product = &s.products[unit];
        let (mut of_weight, mut of_bias) = (0.0, 0.0);
        for r in 0..block.rows {
            of_weight += product[r] * moment[r];
            of_bias += product[r] * total[r];
        }
        *hidden_grads.get(0, unit) += of_weight;
        *hidden_grads.get(1, unit) += of_bias;
    };
    let (mut moment, mut total) = ([0.0; R], [0.0; R]);
    for piece in 0..pieces {
        add(&mut moment, &sums.moments[piece]);
        add(&mut total, &sums.totals[piece]);
        if let Some(unit) = s.contextual_mlp.order.get(piece)
            && !rises(perceptron.hidden.at(0, *unit))
        {
            learn(*unit, &moment, &total);
        }
    }
    for unit in 0..units {
        let (w, b) = unit_of(perceptron, unit);
        if w == 0.0 && b > 0.0 {
            learn(unit, &moment, &total);
        }
    }
    let all = total;
    let (mut moment, mut total) = ([0.0; R], [0.0; R]);
    for piece in (1..pieces).rev() {
        add(&mut moment, &sums.moments[piece]);
        add(&mut total, &sums.totals[piece]);
        let unit = s.contextual_mlp.order[piece - 1];
        if rises(perceptron.hidden.at(0, unit)) {
            learn(unit, &moment, &total);
        }
    }
    add(&mut s.product_grads[units], &all);
}
