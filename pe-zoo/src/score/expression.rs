//! Number type that records a function of a pair as an expression, for kernels that are compiled at run time.

use std::cell::RefCell;
use std::ops::{Add, Div, Mul, Neg, Sub};
use std::sync::{Mutex, PoisonError};

use super::dual::Derivative;
use super::number::{Number, Real};
use super::pair::{Pair, PairTerm, dual};

/// Input of a pair's function.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum PairInput {
    Content,
    Distance,
    /// Parameter of the head.
    Param(usize),
    /// Value of the state of the row's token.
    Row(usize),
    /// Value of the state of the column's token.
    Column(usize),
}

/// Operation of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum StepOperation {
    Input(PairInput),
    /// Bits of an f32.
    Constant(u32),
    Add,
    Sub,
    Mul,
    Div,
    Neg,
    Exp,
    Ln,
    Sqrt,
    Sigmoid,
    Softplus,
    Abs,
    Sign,
    /// 0 where the first operand is 0, else the second.
    ZeroAtZero,
    /// The third operand where the first is NaN or at least the second, else the fourth.
    IfAtLeast,
}

impl StepOperation {
    /// Number of operands.
    const fn operands(self) -> usize {
        match self {
            Self::Input(_) | Self::Constant(_) => 0,
            Self::Exp
            | Self::Ln
            | Self::Sqrt
            | Self::Sigmoid
            | Self::Softplus
            | Self::Abs
            | Self::Sign
            | Self::Neg => 1,
            Self::Add | Self::Sub | Self::Mul | Self::Div | Self::ZeroAtZero => 2,
            Self::IfAtLeast => 4,
        }
    }
}

/// Step of an expression.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct ExpressionStep {
    pub(crate) operation: StepOperation,
    /// Indices of earlier steps; 0 for those that the operation does not have.
    pub(crate) operands: [usize; 4],
}

impl ExpressionStep {
    fn new(operation: StepOperation, operands: &[usize]) -> Self {
        let operand = |at: usize| operands.get(at).copied().unwrap_or_default();
        Self { operation, operands: std::array::from_fn(operand) }
    }
}

/// Function of a pair as steps, of which some are its results.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Expression {
    pub(crate) steps: Vec<ExpressionStep>,
    pub(crate) results: Vec<usize>,
}

/// A term's function: its value, and the value's derivatives by content, parameters, state of the row and state of the
/// column.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct TracedTerm {
    pub(crate) params: usize,
    pub(crate) state: usize,
    pub(crate) value: Expression,
    /// The value, then the derivatives in the order above.
    pub(crate) derivatives: Expression,
}

/// Steps recorded so far.
#[derive(Debug, Default)]
struct ExpressionTape(RefCell<Vec<ExpressionStep>>);

/// Number on a tape, or a constant.
#[derive(Debug, Clone, Copy)]
enum Traced<'t> {
    Constant(f32),
    Step(&'t ExpressionTape, usize),
}

impl ExpressionTape {
    /// Records a step, unless it is recorded already.
    fn step(&self, operation: StepOperation, operands: &[usize]) -> Traced<'_> {
        let step = ExpressionStep::new(operation, operands);
        let mut steps = self.0.borrow_mut();
        let at = steps.iter().position(|recorded| *recorded == step).unwrap_or_else(|| {
            steps.push(step);
            steps.len() - 1
        });
        Traced::Step(self, at)
    }

    fn index(&self, number: Traced<'_>) -> usize {
        match number {
            Traced::Step(_, at) => at,
            Traced::Constant(value) => {
                match self.step(StepOperation::Constant(value.to_bits()), &[]) {
                    Traced::Step(_, at) => at,
                    Traced::Constant(_) => unreachable!("a recorded step"),
                }
            }
        }
    }

    fn input(&self, input: PairInput) -> Traced<'_> {
        self.step(StepOperation::Input(input), &[])
    }

    /// Records an expression with these inputs; returns its results.
    fn again<'t>(
        &'t self,
        expression: &Expression,
        of_input: impl Fn(PairInput) -> Traced<'t>,
    ) -> Vec<Traced<'t>> {
        let mut numbers = Vec::<Traced<'t>>::new();
        for ExpressionStep { operation, operands } in &expression.steps {
            numbers.push(match operation {
                StepOperation::Input(input) => of_input(*input),
                StepOperation::Constant(bits) => Traced::Constant(f32::from_bits(*bits)),
                operation => {
                    let operands = &operands[..operation.operands()];
                    let operands = operands.iter().map(|at| self.index(numbers[*at]));
                    self.step(*operation, &operands.collect::<Vec<_>>())
                }
            });
        }
        expression.results.iter().map(|at| numbers[*at]).collect()
    }

    fn pair<const P: usize, const K: usize>(&self) -> Pair<Traced<'_>, P, K> {
        let input = |input| self.input(input);
        Pair {
            content: input(PairInput::Content),
            distance: input(PairInput::Distance),
            params: std::array::from_fn(|p| input(PairInput::Param(p))),
            row: std::array::from_fn(|k| input(PairInput::Row(k))),
            column: std::array::from_fn(|k| input(PairInput::Column(k))),
        }
    }

    fn expression(self, results: Vec<usize>) -> Expression {
        Expression { steps: self.0.into_inner(), results }
    }
}

impl TracedTerm {
    /// Returns the one copy of this function in the process. A kernel is compiled for each function once.
    pub(crate) fn interned(self) -> &'static Self {
        static ALL: Mutex<Vec<&'static TracedTerm>> = Mutex::new(Vec::new());
        let mut all = ALL.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = all.iter().find(|known| ***known == self) {
            return known;
        }
        let traced: &'static Self = Box::leak(Box::new(self));
        all.push(traced);
        traced
    }

    /// Returns the function that applies terms one after the other. Its parameters are those of the first, then those of the
    /// second, and so on, and so is its state. `None` without terms.
    pub(crate) fn chained(terms: impl Iterator<Item = &'static Self>) -> Option<&'static Self> {
        terms.reduce(|first, second| first.then(second).interned())
    }

    /// Returns the function that applies `next` to the result of this one.
    fn then(&self, next: &Self) -> Self {
        let shifted = |input| match input {
            PairInput::Param(p) => PairInput::Param(self.params + p),
            PairInput::Row(k) => PairInput::Row(self.state + k),
            PairInput::Column(k) => PairInput::Column(self.state + k),
            PairInput::Content | PairInput::Distance => input,
        };
        let tape = ExpressionTape::default();
        let first = tape.again(&self.value, |input| tape.input(input));
        let second = tape.again(&next.value, |input| match input {
            PairInput::Content => first[0],
            _ => tape.input(shifted(input)),
        });
        let value = tape.index(second[0]);
        let value = tape.expression(vec![value]);

        let tape = ExpressionTape::default();
        let first = tape.again(&self.derivatives, |input| tape.input(input));
        let second = tape.again(&next.derivatives, |input| match input {
            PairInput::Content => first[0],
            _ => tape.input(shifted(input)),
        });
        // The value, then the derivatives by content, by parameters, by the row's state and by the column's.
        let through = |tangent: &Traced<'_>| tape.index(second[1].chain(*tangent));
        let mut results = vec![tape.index(second[0]), through(&first[1])];
        let (mut at_first, mut at_second) = (2, 2);
        for (of_first, of_second) in
            [(self.params, next.params), (self.state, next.state), (self.state, next.state)]
        {
            results.extend(first[at_first..][..of_first].iter().map(through));
            results.extend(second[at_second..][..of_second].iter().map(|own| tape.index(*own)));
            at_first += of_first;
            at_second += of_second;
        }
        let (params, state) = (self.params + next.params, self.state + next.state);
        Self { params, state, value, derivatives: tape.expression(results) }
    }

    /// Number of inputs of a pair: content, distance, parameters, state of the row and state of the column.
    pub(crate) const fn inputs(&self) -> usize {
        2 + self.params + 2 * self.state
    }

    /// Index of an input in this order.
    pub(crate) const fn input(&self, input: PairInput) -> usize {
        match input {
            PairInput::Content => 0,
            PairInput::Distance => 1,
            PairInput::Param(p) => 2 + p,
            PairInput::Row(k) => 2 + self.params + k,
            PairInput::Column(k) => 2 + self.params + self.state + k,
        }
    }

    /// Computes the results of one of the expressions in f64, from the inputs in their order.
    #[cfg(test)]
    pub(crate) fn evaluate(&self, expression: &Expression, inputs: &[f64]) -> Vec<f64> {
        let mut values = Vec::<f64>::new();
        for step in &expression.steps {
            let [a, b, c, d] = step.operands.map(|at| values.get(at).copied().unwrap_or_default());
            values.push(match step.operation {
                StepOperation::Input(input) => inputs[self.input(input)],
                StepOperation::Constant(bits) => f64::from(f32::from_bits(bits)),
                StepOperation::Add => a + b,
                StepOperation::Sub => a - b,
                StepOperation::Mul => a * b,
                StepOperation::Div => a / b,
                StepOperation::Neg => -a,
                StepOperation::Exp => a.exp(),
                StepOperation::Ln => a.ln(),
                StepOperation::Sqrt => a.sqrt(),
                StepOperation::Sigmoid => Number::sigmoid(a),
                StepOperation::Softplus => Number::softplus(a),
                StepOperation::Abs => a.abs(),
                StepOperation::Sign => Real::sign(a),
                StepOperation::ZeroAtZero => a.zero_at_zero(b),
                StepOperation::IfAtLeast => a.if_at_least(b, c, d),
            });
        }
        expression.results.iter().map(|result| values[*result]).collect()
    }

    /// Records the function of a term and its derivatives.
    pub(crate) fn new<T: PairTerm<P, K>, const P: usize, const K: usize>(term: &T) -> Self {
        let tape = ExpressionTape::default();
        let value = tape.index(term.value(tape.pair::<P, K>()));
        let value = tape.expression(vec![value]);

        let tape = ExpressionTape::default();
        let pair = tape.pair::<P, K>();
        let (value_again, derivative) = if let Some(derivative) = term.derivative(pair) {
            (term.value(pair), derivative)
        } else {
            let dual = term.value(dual(&pair));
            (dual.value, dual.tangent)
        };
        let Derivative { content, params, row, column } = derivative;
        let results = [value_again, content].into_iter().chain(params).chain(row).chain(column);
        let results = results.map(|number| tape.index(number)).collect();
        Self { params: P, state: K, value, derivatives: tape.expression(results) }
    }
}

impl Traced<'_> {
    fn constant(self) -> Option<f32> {
        match self {
            Self::Constant(value) => Some(value),
            Self::Step(..) => None,
        }
    }

    fn one(self, fold: fn(f64) -> f64, operation: StepOperation) -> Self {
        match self {
            Self::Constant(value) => Self::Constant(fold(f64::from(value)) as f32),
            Self::Step(tape, at) => tape.step(operation, &[at]),
        }
    }

    fn two(self, other: Self, fold: fn(f64, f64) -> f64, operation: StepOperation) -> Self {
        match (self, other) {
            (Self::Constant(left), Self::Constant(right)) => {
                Self::Constant(fold(f64::from(left), f64::from(right)) as f32)
            }
            (Self::Step(tape, _), _) | (_, Self::Step(tape, _)) => {
                tape.step(operation, &[tape.index(self), tape.index(other)])
            }
        }
    }

    fn is(self, value: f32) -> bool {
        self.constant() == Some(value)
    }
}

impl Add for Traced<'_> {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        // Adding either zero changes at most the sign of a zero.
        if other.is(0.0) {
            self
        } else if self.is(0.0) {
            other
        } else {
            self.two(other, |a, b| a + b, StepOperation::Add)
        }
    }
}

impl Sub for Traced<'_> {
    type Output = Self;

    fn sub(self, other: Self) -> Self {
        if other.is(0.0) { self } else { self.two(other, |a, b| a - b, StepOperation::Sub) }
    }
}

impl Mul for Traced<'_> {
    type Output = Self;

    fn mul(self, other: Self) -> Self {
        if other.is(1.0) {
            self
        } else if self.is(1.0) {
            other
        } else {
            self.two(other, |a, b| a * b, StepOperation::Mul)
        }
    }
}

impl Div for Traced<'_> {
    type Output = Self;

    fn div(self, other: Self) -> Self {
        if other.is(1.0) { self } else { self.two(other, |a, b| a / b, StepOperation::Div) }
    }
}

impl Neg for Traced<'_> {
    type Output = Self;

    fn neg(self) -> Self {
        self.one(|x| -x, StepOperation::Neg)
    }
}

impl Number for Traced<'_> {
    fn constant(value: f64) -> Self {
        Self::Constant(value as f32)
    }

    fn exp(self) -> Self {
        self.one(f64::exp, StepOperation::Exp)
    }

    fn ln(self) -> Self {
        self.one(f64::ln, StepOperation::Ln)
    }

    fn sqrt(self) -> Self {
        self.one(f64::sqrt, StepOperation::Sqrt)
    }

    fn pow(self, exponent: Self) -> Self {
        self.zero_at_zero((exponent * self.ln()).exp())
    }

    fn sigmoid(self) -> Self {
        self.one(Number::sigmoid, StepOperation::Sigmoid)
    }

    fn softplus(self) -> Self {
        self.one(Number::softplus, StepOperation::Softplus)
    }

    fn abs(self) -> Self {
        self.one(f64::abs, StepOperation::Abs)
    }

    fn max(self, other: Self) -> Self {
        self.if_at_least(other, self, other)
    }

    fn min(self, other: Self) -> Self {
        (-self).if_at_least(-other, self, other)
    }
}

impl Real for Traced<'_> {
    const NO_TANGENT: Self = Self::Constant(-0.0);

    fn chain(self, tangent: Self) -> Self {
        match tangent {
            Self::Constant(0.0) => Self::NO_TANGENT,
            Self::Constant(_) => self * tangent,
            Self::Step(..) => tangent.zero_at_zero(self * tangent),
        }
    }

    fn zero_at_zero(self, other: Self) -> Self {
        match self {
            Self::Constant(0.0) => Self::Constant(0.0),
            Self::Constant(_) => other,
            Self::Step(tape, at) => tape.step(StepOperation::ZeroAtZero, &[at, tape.index(other)]),
        }
    }

    fn if_at_least(self, other: Self, yes: Self, no: Self) -> Self {
        match (self, other) {
            (Self::Constant(left), Self::Constant(right)) => {
                if left >= right || left.is_nan() {
                    yes
                } else {
                    no
                }
            }
            (Self::Step(tape, _), _) | (_, Self::Step(tape, _)) => {
                let operands = [self, other, yes, no].map(|number| tape.index(number));
                tape.step(StepOperation::IfAtLeast, &operands)
            }
        }
    }

    fn sign(self) -> Self {
        self.one(Real::sign, StepOperation::Sign)
    }
}

#[cfg(test)]
mod tests;
