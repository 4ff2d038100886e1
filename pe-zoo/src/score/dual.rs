//! Dual numbers: a value with its derivatives by every input of a pair.

use std::ops::{Add, Div, Mul, Neg, Sub};

use super::number::{Number, Real};

/// Runs a statement for every index below `$n`, with the first eight written out. With constant
/// indices the compiler keeps arrays in registers and vectorises the loops around them.
macro_rules! each {
    ($n:expr, |$i:ident| $body:expr) => {{
        each!(@one $n, $i, $body, 0, 1, 2, 3, 4, 5, 6, 7);
        for $i in 8..$n {
            $body;
        }
    }};
    (@one $n:expr, $i:ident, $body:expr, $($at:literal),*) => {
        $(if $n > $at {
            let $i: usize = $at;
            $body;
        })*
    };
}
pub(super) use each;

/// Derivatives of a pair's value by each of its inputs; `P` parameters, `K` numbers of token state.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Derivative<N, const P: usize, const K: usize> {
    /// Derivative with respect to the content logit.
    pub content: N,
    /// Derivatives with respect to the head's parameters.
    pub params: [N; P],
    /// Derivatives with respect to the token state at the row.
    pub row: [N; K],
    /// Derivatives with respect to the token state at the column.
    pub column: [N; K],
}

impl<N: Copy, const P: usize, const K: usize> Derivative<N, P, K> {
    /// Creates a derivative of `value` with respect to every input.
    #[inline(always)]
    pub fn all(value: N) -> Self {
        Self { content: value, params: [value; P], row: [value; K], column: [value; K] }
    }

    #[inline(always)]
    fn zip(&self, other: &Self, with: impl Fn(N, N) -> N) -> Self {
        let mut out = *self;
        out.content = with(self.content, other.content);
        each!(P, |p| out.params[p] = with(self.params[p], other.params[p]));
        each!(K, |k| out.row[k] = with(self.row[k], other.row[k]));
        each!(K, |k| out.column[k] = with(self.column[k], other.column[k]));
        out
    }
}

/// Value with its derivatives by every input of a pair (forward-mode differentiation).
#[derive(Debug, Clone, Copy)]
pub struct Dual<N, const P: usize, const K: usize> {
    pub(super) value: N,
    pub(super) tangent: Derivative<N, P, K>,
}

impl<N: Real, const P: usize, const K: usize> Dual<N, P, K> {
    /// Creates a number that depends on no input.
    #[inline(always)]
    pub(super) fn fixed(value: N) -> Self {
        Self { value, tangent: Derivative::all(N::NO_TANGENT) }
    }

    /// Applies `value = f(self)` with the derivative `slope`.
    #[inline(always)]
    fn of_one(self, value: N, slope: N) -> Self {
        let tangent = self.tangent.zip(
            &self.tangent,
            #[inline(always)]
            |t, _| slope.chain(t),
        );
        Self { value, tangent }
    }

    /// Applies `value = f(self, other)` with the derivatives `slope` and `other_slope`.
    #[inline(always)]
    fn of_two(self, other: Self, value: N, slope: N, other_slope: N) -> Self {
        let tangent = self.tangent.zip(
            &other.tangent,
            #[inline(always)]
            |t, u| slope.chain(t) + other_slope.chain(u),
        );
        Self { value, tangent }
    }

    /// Selects `self` where `left >= right`, else `other`.
    #[inline(always)]
    fn choose(self, other: Self, left: N, right: N) -> Self {
        let pick = |a: N, b: N| left.if_at_least(right, a, b);
        Self {
            value: pick(self.value, other.value),
            tangent: self.tangent.zip(&other.tangent, pick),
        }
    }
}

impl<N: Real, const P: usize, const K: usize> Add for Dual<N, P, K> {
    type Output = Self;

    #[inline(always)]
    fn add(self, other: Self) -> Self {
        let tangent = self.tangent.zip(
            &other.tangent,
            #[inline(always)]
            |t, u| t + u,
        );
        Self { value: self.value + other.value, tangent }
    }
}

impl<N: Real, const P: usize, const K: usize> Sub for Dual<N, P, K> {
    type Output = Self;

    #[inline(always)]
    fn sub(self, other: Self) -> Self {
        self + -other
    }
}

impl<N: Real, const P: usize, const K: usize> Neg for Dual<N, P, K> {
    type Output = Self;

    #[inline(always)]
    fn neg(self) -> Self {
        self.of_one(-self.value, -N::constant(1.0))
    }
}

impl<N: Real, const P: usize, const K: usize> Mul for Dual<N, P, K> {
    type Output = Self;

    #[inline(always)]
    fn mul(self, other: Self) -> Self {
        self.of_two(other, self.value * other.value, other.value, self.value)
    }
}

impl<N: Real, const P: usize, const K: usize> Div for Dual<N, P, K> {
    type Output = Self;

    #[inline(always)]
    fn div(self, other: Self) -> Self {
        let value = self.value / other.value;
        let slope = N::constant(1.0) / other.value;
        self.of_two(other, value, slope, -(value * slope))
    }
}

impl<N: Real, const P: usize, const K: usize> Number for Dual<N, P, K> {
    #[inline(always)]
    fn constant(value: f64) -> Self {
        Self::fixed(N::constant(value))
    }

    #[inline(always)]
    fn exp(self) -> Self {
        let value = self.value.exp();
        self.of_one(value, value)
    }

    #[inline(always)]
    fn ln(self) -> Self {
        self.of_one(self.value.ln(), N::constant(1.0) / self.value)
    }

    #[inline(always)]
    fn sqrt(self) -> Self {
        let value = self.value.sqrt();
        self.of_one(value, N::constant(0.5) / value)
    }

    #[inline(always)]
    fn pow(self, exponent: Self) -> Self {
        let base = self.value;
        let log = base.ln();
        let value = base.zero_at_zero((exponent.value * log).exp());
        let by_base = base.zero_at_zero(exponent.value * value / base);
        let by_exponent = base.zero_at_zero(value * log);
        self.of_two(exponent, value, by_base, by_exponent)
    }

    #[inline(always)]
    fn sigmoid(self) -> Self {
        let value = self.value.sigmoid();
        self.of_one(value, value * (N::constant(1.0) - value))
    }

    #[inline(always)]
    fn softplus(self) -> Self {
        self.of_one(self.value.softplus(), self.value.sigmoid())
    }

    #[inline(always)]
    fn abs(self) -> Self {
        self.of_one(self.value.abs(), self.value.sign())
    }

    #[inline(always)]
    fn max(self, other: Self) -> Self {
        self.choose(other, self.value, other.value)
    }

    #[inline(always)]
    fn min(self, other: Self) -> Self {
        self.choose(other, -self.value, -other.value)
    }
}
