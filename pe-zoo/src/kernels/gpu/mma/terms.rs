//! Pair terms: the author's function of one pair, recorded as an expression and expanded here, with its derivatives.

use burn_cubecl::cubecl;
use burn_cubecl::cubecl::prelude::*;

use super::approximate::{LOG2_E, logarithm, power_of_two, reciprocal};
use super::biases::LOWEST;
use super::config::{ACROSS, MmaConfig, OWNED, PLANES};
use super::inputs::{MmaInputs, MmaSizes};
use super::pair::PairPlace;
use super::rows::RowStatistics;
use super::tile::SumPair;
use crate::score::{Expression, PairInput, StepOperation, TracedTerm};

/// Gradients of a term's inputs that one unit adds up: by rows or by columns.
#[derive(CubeType)]
pub(super) struct TermSums {
    sums: Array<f32>,
}

/// Inputs of a term at one pair.
#[cube]
fn inputs_of(
    inputs: &MmaInputs,
    place: &MmaSizes,
    at: &PairPlace,
    content: f32,
    #[comptime] one: usize,
    #[comptime] term: &'static TracedTerm,
) -> Array<f32> {
    let mut values = Array::<f32>::new(comptime![term.inputs()]);
    let column = at.column + one;
    values[0usize] = content;
    // Columns that the row does not see are masked later; here they must only be harmless.
    values[1usize] = f32::cast_from(u32::cast_from(max(at.own, column) - column));
    #[unroll]
    for p in 0..comptime![term.params] {
        let head = at.plane % place.heads * comptime![term.params];
        values[comptime![term.input(PairInput::Param(p))]] = inputs.term_params[head + p];
    }
    let first = at.plane * place.columns;
    let row = first + min(at.own, place.columns - 1);
    let column = first + min(column, place.columns - 1);
    #[unroll]
    for k in 0..comptime![term.state] {
        let state = comptime![term.state];
        values[comptime![term.input(PairInput::Row(k))]] = inputs.term_state[row * state + k];
        values[comptime![term.input(PairInput::Column(k))]] = inputs.term_state[column * state + k];
    }
    values
}

/// Computes all steps of an expression.
#[cube]
#[allow(
    clippy::eq_op,
    clippy::float_cmp,
    reason = "only NaN differs from itself, and only zero is zero"
)]
fn evaluate(
    inputs: &Array<f32>,
    #[comptime] expression: &'static Expression,
    #[comptime] term: &'static TracedTerm,
    #[comptime] native: bool,
) -> Array<f32> {
    let mut values = Array::<f32>::new(comptime![expression.steps.len()]);
    #[unroll]
    for at in 0..comptime![expression.steps.len()] {
        let operation = comptime![expression.steps[at].operation];
        let operands = comptime![expression.steps[at].operands];
        let value = if comptime![matches!(operation, StepOperation::Input(_))] {
            inputs[comptime![input_index(operation, term)]]
        } else if comptime![matches!(operation, StepOperation::Constant(_))] {
            f32::cast_from(comptime![constant(operation)])
        } else {
            let a = values[comptime![operands[0]]];
            let b = values[comptime![operands[1]]];
            if comptime![operation == StepOperation::Add] {
                a + b
            } else if comptime![operation == StepOperation::Sub] {
                a - b
            } else if comptime![operation == StepOperation::Mul] {
                a * b
            } else if comptime![operation == StepOperation::Div] {
                a / b
            } else if comptime![operation == StepOperation::Neg] {
                -a
            } else if comptime![operation == StepOperation::ZeroAtZero] {
                select(a == f32::new(0.0), f32::new(0.0), b)
            } else if comptime![operation == StepOperation::IfAtLeast] {
                let c = values[comptime![operands[2]]];
                let d = values[comptime![operands[3]]];
                // A comparison with NaN is false.
                select(a >= b, c, select(a == a, d, c))
            } else {
                function(a, operation, native)
            }
        };
        values[at] = value;
    }
    values
}

/// Place of an input among the inputs.
fn input_index(operation: StepOperation, term: &TracedTerm) -> usize {
    match operation {
        StepOperation::Input(input) => term.input(input),
        _ => 0,
    }
}

/// Value of a constant.
fn constant(operation: StepOperation) -> f32 {
    match operation {
        StepOperation::Constant(bits) => f32::from_bits(bits),
        _ => 0.0,
    }
}

/// Function of one number.
#[cube]
fn function(x: f32, #[comptime] operation: StepOperation, #[comptime] native: bool) -> f32 {
    if comptime![operation == StepOperation::Exp] {
        power_of_two(x * comptime![LOG2_E], native)
    } else if comptime![operation == StepOperation::Ln] {
        logarithm(x, native) * comptime![std::f32::consts::LN_2]
    } else if comptime![operation == StepOperation::Sqrt] {
        x.sqrt()
    } else if comptime![operation == StepOperation::Sigmoid] {
        reciprocal(f32::new(1.0) + power_of_two(-x * comptime![LOG2_E], native), native)
    } else if comptime![operation == StepOperation::Softplus] {
        let smaller = power_of_two(-x.abs() * comptime![LOG2_E], native);
        let above = logarithm(f32::new(1.0) + smaller, native) * comptime![std::f32::consts::LN_2];
        max(x, f32::new(0.0)) + above
    } else if comptime![operation == StepOperation::Abs] {
        x.abs()
    } else {
        // The sign.
        let negative = select(x < f32::new(0.0), f32::new(-1.0), x);
        select(x > f32::new(0.0), f32::new(1.0), negative)
    }
}

/// Bias in base 2 of a distance table, which is added to the result of the function.
#[cube]
fn bias_by_distance(
    inputs: &MmaInputs,
    place: &MmaSizes,
    at: &PairPlace,
    #[comptime] one: usize,
    #[comptime] config: MmaConfig,
) -> f32 {
    let mut bias = f32::new(0.0);
    if comptime![config.distance] {
        let column = at.column + one;
        let entry = min(max(at.own, column) - column, place.distance_entries - 1);
        let first = at.plane % place.heads * place.distance_entries;
        bias = inputs.distance[first + entry] * comptime![LOG2_E];
    }
    bias
}

/// Logits in base 2 of two adjacent columns, without the mask.
#[cube]
pub(super) fn term_logits(
    inputs: &MmaInputs,
    place: &MmaSizes,
    at: &PairPlace,
    products: SumPair,
    #[comptime] config: MmaConfig,
) -> SumPair {
    let term = comptime![config.term().unwrap()];
    let mut logits = SumPair::empty();
    #[unroll]
    for one in 0..2usize {
        let content = products.extract(one) * place.scale;
        let of_pair = inputs_of(inputs, place, at, content, one, term);
        let expression = comptime![&term.value];
        let values = evaluate(&of_pair, expression, term, comptime![config.native]);
        let value = values[comptime![expression.results[0]]];
        let bias = bias_by_distance(inputs, place, at, one, config);
        logits.insert(one, fma(value, f32::new(LOG2_E), bias));
    }
    logits
}

#[cube]
impl TermSums {
    /// Sums of 0. With `by_rows`, of the parameters and the row's state for two rows, else of the columns' state for 16
    /// columns.
    pub(super) fn new(#[comptime] by_rows: bool, #[comptime] config: MmaConfig) -> TermSums {
        let count = comptime![config.term_sums(by_rows)];
        let mut sums = TermSums { sums: Array::new(comptime![count.max(1)]) };
        #[unroll]
        for at in 0..comptime![count.max(1)] {
            sums.sums[at] = f32::new(0.0);
        }
        sums
    }

    /// Replaces products and gradients of weights of two adjacent columns by weights and gradients of products, and adds the
    /// gradients of the other inputs. The columns are the pair `n` of a block of 64, or of a part of it.
    #[expect(clippy::too_many_arguments, reason = "the numbers of one pair, and where it is")]
    pub(super) fn differentiate(
        &mut self,
        inputs: &MmaInputs,
        place: &MmaSizes,
        rows: &RowStatistics,
        at: &PairPlace,
        products: SumPair,
        of_weights: SumPair,
        #[comptime] n: usize,
        #[comptime] eight: usize,
        #[comptime] by_rows: bool,
        #[comptime] config: MmaConfig,
    ) -> (SumPair, SumPair) {
        let term = comptime![config.term().unwrap()];
        let mut weights = SumPair::empty();
        let mut gradients = SumPair::empty();
        #[unroll]
        for one in 0..2usize {
            let content = products.extract(one) * place.scale;
            let of_pair = inputs_of(inputs, place, at, content, one, term);
            let expression = comptime![&term.derivatives];
            let values = evaluate(&of_pair, expression, term, comptime![config.native]);
            let value = values[comptime![expression.results[0]]];
            let bias = bias_by_distance(inputs, place, at, one, config);
            let logit = fma(value, f32::new(LOG2_E), bias);
            let seen = select(at.column + one <= at.own, logit, f32::new(LOWEST));
            let weight = power_of_two(seen - rows.log[eight], comptime![config.native]);
            let gradient = weight * (of_weights.extract(one) - rows.share[eight]);
            weights.insert(one, weight);
            gradients.insert(one, chain(gradient, values[comptime![expression.results[1]]]));
            #[unroll]
            for i in 0..comptime![config.term_numbers(by_rows)] {
                let result = comptime![2 + i + if by_rows { 0 } else { term.params + term.state }];
                let derivative = values[comptime![expression.results[result]]];
                let line = comptime![if by_rows { eight } else { n * 2 + one }];
                let sum = comptime![line * config.term_numbers(by_rows) + i];
                self.sums[sum] += chain(gradient, derivative);
            }
        }
        (weights, gradients)
    }

    /// Writes the sums of a plane's rows to `out`, `[plane, T, P + K]`.
    pub(super) fn write_rows(
        &self,
        out: &mut Box<[f32]>,
        place: &MmaSizes,
        plane: usize,
        first_row: usize,
        #[comptime] config: MmaConfig,
    ) {
        let lane = UNIT_POS_PLANE as usize;
        let numbers = comptime![config.term_numbers(true)];
        #[unroll]
        for eight in 0..2usize {
            let row = first_row + lane / 4 + eight * 8;
            #[unroll]
            for i in 0..numbers {
                let sum = super::tile::row_sum(self.sums[comptime![eight * numbers + i]]);
                if lane % 4 == 0 && row < place.rows {
                    out[(plane * place.rows + row) * numbers + i] = sum;
                }
            }
        }
    }

    /// Writes the sums of the cube's columns to `out`, `[plane, S, K]`. All units must call it.
    pub(super) fn write_columns(
        &self,
        out: &mut Box<[f32]>,
        place: &MmaSizes,
        plane: usize,
        first: usize,
        #[comptime] config: MmaConfig,
    ) {
        let numbers = comptime![config.term_numbers(false)];
        let mut of_planes = Shared::<[f32]>::new_slice(comptime![PLANES * OWNED * numbers]);
        let lane = UNIT_POS_PLANE as usize;
        let unit = UNIT_POS as usize;
        #[unroll]
        for n in 0..comptime![OWNED / ACROSS] {
            #[unroll]
            for one in 0..2usize {
                #[unroll]
                for i in 0..numbers {
                    let mut sum = self.sums[comptime![(n * 2 + one) * numbers + i]];
                    sum += plane_shuffle_xor(sum, 4);
                    sum += plane_shuffle_xor(sum, 8);
                    sum += plane_shuffle_xor(sum, 16);
                    if lane < 4 {
                        let column = lane * 2 + comptime![n * 8 + one];
                        of_planes[(unit / 32 * OWNED + column) * numbers + i] = sum;
                    }
                }
            }
        }
        sync_cube();
        let column = first + unit;
        if unit < OWNED && column < place.columns {
            #[unroll]
            for i in 0..numbers {
                let mut sum = f32::new(0.0);
                #[unroll]
                for of_plane in 0..PLANES {
                    sum += of_planes[(of_plane * OWNED + unit) * numbers + i];
                }
                out[(plane * place.columns + column) * numbers + i] = sum;
            }
        }
    }
}

/// Product of a gradient and a derivative; 0 where the gradient is 0, whatever the derivative.
#[cube]
#[allow(clippy::float_cmp, reason = "only zero is zero")]
fn chain(gradient: f32, derivative: f32) -> f32 {
    select(gradient == f32::new(0.0), f32::new(0.0), gradient * derivative)
}
