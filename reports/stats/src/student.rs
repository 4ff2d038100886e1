//! Student's t distribution (distribution function, quantiles, test) and the normal distribution function. The
//! special functions are those of `statrs`.

use statrs::function::beta::checked_beta_reg;
use statrs::function::erf::erfc;

/// Returns `P(Z <= x)` of the standard normal distribution.
pub(super) fn normal_cdf(x: f64) -> f64 {
    0.5 * erfc(-x / std::f64::consts::SQRT_2)
}

/// Returns `P(|T| > |t|)` for Student's t with `df` degrees of freedom, `I_x(df / 2, 1 / 2)` with `x = df / (df +
/// t^2)`. The tail is computed directly, because `1 - cdf` would lose all digits of a small one. NaN unless `df > 0`.
pub(super) fn two_sided(t: f64, df: f64) -> f64 {
    // Infinite degrees of freedom are the normal distribution.
    if df.is_infinite() && df > 0.0 {
        return 2.0 * normal_cdf(-t.abs());
    }
    checked_beta_reg(df / 2.0, 0.5, df / (df + t * t)).unwrap_or(f64::NAN)
}

/// Returns `P(T <= t)` for Student's t with `df` degrees of freedom. NaN unless `df > 0`.
pub fn t_cdf(t: f64, df: f64) -> f64 {
    let tail = 0.5 * two_sided(t, df);
    if t >= 0.0 { 1.0 - tail } else { tail }
}

/// Returns the `t` with `t_cdf(t, df) = p`, found by bisection to the last bit, which is accurate for 1 degree of
/// freedom as well as for 1000. NaN unless `0 < p < 1` and `df > 0`.
pub fn t_quantile(p: f64, df: f64) -> f64 {
    if !(p > 0.0 && p < 1.0 && df > 0.0) {
        return f64::NAN;
    }
    if p < 0.5 {
        return -t_quantile(1.0 - p, df);
    }
    let (mut low, mut high) = (0.0, 1.0);
    while t_cdf(high, df) < p && high < 1e300 {
        high *= 2.0;
    }
    loop {
        let middle = 0.5 * (low + high);
        if middle <= low || middle >= high {
            return middle;
        }
        if t_cdf(middle, df) < p {
            low = middle;
        } else {
            high = middle;
        }
    }
}

/// Returns the two-sided p-value of Student's t test that a mean of `n` values with standard deviation `std` is 0: `2
/// P(T > |mean| sqrt(n) / std)` at n - 1 degrees of freedom. NaN below n = 2 or without spread.
pub fn t_test(mean: f64, std: f64, n: u32) -> f64 {
    if n < 2 || std.is_nan() || std <= 0.0 {
        return f64::NAN;
    }
    two_sided(mean * f64::from(n).sqrt() / std, f64::from(n - 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_equal_the_printed_tables() {
        for (df, p, t) in [
            (1.0, 0.975, 12.706),
            (2.0, 0.975, 4.303),
            (3.0, 0.975, 3.182),
            (4.0, 0.975, 2.776),
            (9.0, 0.975, 2.262),
            (30.0, 0.975, 2.042),
            (120.0, 0.975, 1.980),
            (5.0, 0.95, 2.015),
            (10.0, 0.995, 3.169),
        ] {
            let got = t_quantile(p, df);
            assert!((got - t).abs() < 6e-4, "t({p}, {df}) = {got}, table {t}");
        }
    }

    #[test]
    fn one_and_two_degrees_have_closed_forms() {
        for t in [-30.0, -1.5, 0.0, 0.3, 2.0, 12.7, 400.0] {
            let cauchy = 0.5 + f64::atan(t) / std::f64::consts::PI;
            assert!((t_cdf(t, 1.0) - cauchy).abs() < 1e-13, "{t}");
            let two = 0.5 + t / (2.0 * (2.0 + t * t).sqrt());
            assert!((t_cdf(t, 2.0) - two).abs() < 1e-13, "{t}");
        }
    }

    #[test]
    fn the_quantile_inverts_the_distribution() {
        for df in [1.0, 2.0, 7.0, 99.0, 5000.0] {
            for p in [0.01, 0.2, 0.5, 0.9, 0.999] {
                assert!((t_cdf(t_quantile(p, df), df) - p).abs() < 1e-12, "{p} {df}");
            }
        }
        assert!((t_quantile(0.975, 1e6) - 1.959_966).abs() < 1e-5, "tends to the normal one");
    }

    #[test]
    fn nonsense_gives_nan() {
        for (p, df) in [(0.0, 1.0), (1.0, 1.0), (0.5, 0.0), (f64::NAN, 1.0), (0.9, f64::NAN)] {
            assert!(t_quantile(p, df).is_nan(), "{p} {df}");
        }
    }
}
