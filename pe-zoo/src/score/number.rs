//! Number type of a [`PairTerm`](super::PairTerm), in single and double precision.

use std::ops::{Add, Div, Mul, Neg, Sub};

#[cfg(feature = "flex")]
use crate::math::lanes;

/// Number type in which the value of a pair is computed.
///
/// The same function runs in single precision in the fused kernels, where it is vectorised over the
/// query rows of a block, in dual numbers for its gradient, in `f64`, and in tensors for the
/// reference engine. It must not branch on values; use [`max`](Self::max) and [`min`](Self::min).
pub trait Number:
    Copy
    + Add<Output = Self>
    + Sub<Output = Self>
    + Mul<Output = Self>
    + Div<Output = Self>
    + Neg<Output = Self>
{
    /// Converts a constant to this number type.
    fn constant(value: f64) -> Self;

    /// Natural exponential function, `e^self`.
    #[must_use]
    fn exp(self) -> Self;

    /// Natural logarithm: minus infinity at 0, NaN below.
    #[must_use]
    fn ln(self) -> Self;

    /// Square root; NaN below 0. Its derivative at 0 is infinite, and 0 for a constant such as the distance.
    #[must_use]
    fn sqrt(self) -> Self;

    /// Power `self^exponent` for `self >= 0`; NaN below. At 0 it is 0 with derivative 0 whatever
    /// the exponent, the limit for positive ones.
    #[must_use]
    fn pow(self, exponent: Self) -> Self;

    /// Logistic function, `1 / (1 + e^-self)`.
    #[must_use]
    fn sigmoid(self) -> Self;

    /// Softplus function, `ln(1 + e^self)`.
    #[must_use]
    fn softplus(self) -> Self;

    /// Absolute value; its derivative at 0 is 0.
    #[must_use]
    fn abs(self) -> Self;

    /// The larger of two numbers; NaN if either is. Among equals, the derivative is that of `self`.
    #[must_use]
    fn max(self, other: Self) -> Self;

    /// The smaller of two numbers; NaN if either is. Among equals, the derivative is that of
    /// `self`.
    #[must_use]
    fn min(self, other: Self) -> Self;
}

/// Number without derivatives, with the comparisons that [`Dual`](super::dual::Dual) needs.
pub trait Real: Number {
    /// Computes `self * tangent`, and 0 where the tangent is 0: a constant input has no derivative,
    /// even where the function is infinitely steep.
    #[must_use]
    fn chain(self, tangent: Self) -> Self;

    /// Returns 0 where `self` is 0, else `other`.
    #[must_use]
    fn zero_at_zero(self, other: Self) -> Self;

    /// Returns `yes` where `self >= other` or `self` is NaN, else `no`.
    #[must_use]
    fn if_at_least(self, other: Self, yes: Self, no: Self) -> Self;

    /// Sign of the number, -1, 0 or 1; NaN for NaN.
    #[must_use]
    fn sign(self) -> Self;

    /// Tangent of a constant. It is `-0`, because adding `-0` changes no bit of any number, so that
    /// the compiler may omit the addition, which it may not for `+0`.
    const NO_TANGENT: Self;
}

/// Implements [`Real`] for a primitive type from the given elementary functions.
macro_rules! real {
    ($float:ty, $exp:path, $ln:path, $sigmoid:path, $softplus:path) => {
        impl Number for $float {
            #[inline(always)]
            fn constant(value: f64) -> Self {
                value as Self
            }

            #[inline(always)]
            fn exp(self) -> Self {
                $exp(self)
            }

            #[inline(always)]
            fn ln(self) -> Self {
                $ln(self)
            }

            #[inline(always)]
            fn sqrt(self) -> Self {
                <$float>::sqrt(self)
            }

            #[inline(always)]
            fn pow(self, exponent: Self) -> Self {
                self.zero_at_zero($exp(exponent * $ln(self)))
            }

            #[inline(always)]
            fn sigmoid(self) -> Self {
                $sigmoid(self)
            }

            #[inline(always)]
            fn softplus(self) -> Self {
                $softplus(self)
            }

            #[inline(always)]
            fn abs(self) -> Self {
                <$float>::abs(self)
            }

            #[inline(always)]
            fn max(self, other: Self) -> Self {
                self.if_at_least(other, self, other)
            }

            #[inline(always)]
            fn min(self, other: Self) -> Self {
                (-self).if_at_least(-other, self, other)
            }
        }

        impl Real for $float {
            const NO_TANGENT: Self = -0.0;

            #[inline(always)]
            fn chain(self, tangent: Self) -> Self {
                if tangent == 0.0 { Self::NO_TANGENT } else { self * tangent }
            }

            #[inline(always)]
            fn zero_at_zero(self, other: Self) -> Self {
                if self == 0.0 { 0.0 } else { other }
            }

            #[inline(always)]
            fn if_at_least(self, other: Self, yes: Self, no: Self) -> Self {
                if self >= other || self.is_nan() { yes } else { no }
            }

            #[inline(always)]
            fn sign(self) -> Self {
                let positive = if self > 0.0 { 1.0 } else { 0.0 };
                let negative = if self < 0.0 { 1.0 } else { 0.0 };
                positive - negative + if self.is_nan() { self } else { 0.0 }
            }
        }
    };
}

#[cfg(feature = "flex")]
real!(f32, lanes::exp, lanes::ln, lanes::sigmoid, single_softplus);
real!(f64, f64::exp, f64::ln, double_sigmoid, double_softplus);

#[cfg(feature = "flex")]
#[inline(always)]
fn single_softplus(x: f32) -> f32 {
    -lanes::log_sigmoid(-x)
}

fn double_sigmoid(x: f64) -> f64 {
    1.0 / (1.0 + (-x).exp())
}

fn double_softplus(x: f64) -> f64 {
    let above = if x > 0.0 { x } else { 0.0 };
    above + (-x.abs()).exp().ln_1p()
}
