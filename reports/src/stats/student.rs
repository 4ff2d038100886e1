//! Student's t distribution: its distribution function, the inverse of it, and the test.

/// `P(T <= t)` for Student's t with `df` degrees of freedom:
/// `1 - I_x(df / 2, 1 / 2) / 2` with `x = df / (df + t^2)` for `t >= 0`, and by symmetry below 0.
/// `I` is the regularised incomplete beta function. NaN unless `df > 0`.
pub fn t_cdf(t: f64, df: f64) -> f64 {
    if df.is_nan() || df <= 0.0 || t.is_nan() {
        return f64::NAN;
    }
    let tail = 0.5 * incomplete_beta(df / 2.0, 0.5, df / (df + t * t));
    if t >= 0.0 { 1.0 - tail } else { tail }
}

/// The `t` with `t_cdf(t, df) = p`: found by bisection to the last bit, because it is called a few
/// hundred times a report and must be right at 1 degree of freedom as well as at 1000.
/// NaN unless `0 < p < 1` and `df > 0`.
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

/// Two-sided p-value of Student's t test that a mean of `n` values with standard deviation `std` is
/// 0: `2 P(T > |mean| sqrt(n) / std)` at n - 1 degrees of freedom. NaN below n = 2 or without spread.
pub fn t_test(mean: f64, std: f64, n: u32) -> f64 {
    if n < 2 || std.is_nan() || std <= 0.0 {
        return f64::NAN;
    }
    let df = f64::from(n - 1);
    let t = mean * f64::from(n).sqrt() / std;
    // The tail itself and not 1 - cdf: that would lose all digits of a small p-value.
    incomplete_beta(df / 2.0, 0.5, df / (df + t * t))
}

/// `ln Gamma(x)` for `x > 0`, Lanczos' approximation (g = 7, 9 terms), relative error below 1e-14.
pub(super) fn ln_gamma(x: f64) -> f64 {
    const TERMS: [f64; 8] = [
        676.520_368_121_885_1,
        -1_259.139_216_722_402_8,
        771.323_428_777_653_1,
        -176.615_029_162_140_6,
        12.507_343_278_686_905,
        -0.138_571_095_265_720_12,
        9.984_369_578_019_572e-6,
        1.505_632_735_149_311_6e-7,
    ];
    if x < 0.5 {
        // Reflection: the series is accurate for x >= 1/2 only.
        let pi = std::f64::consts::PI;
        return (pi / (pi * x).sin()).ln() - ln_gamma(1.0 - x);
    }
    let x = x - 1.0;
    let base = x + 7.5;
    let sum = TERMS
        .iter()
        .zip(1_u32..)
        .fold(0.999_999_999_999_809_9, |sum, (term, index)| sum + term / (x + f64::from(index)));
    0.5 * (2.0 * std::f64::consts::PI).ln() + (x + 0.5) * base.ln() - base + sum.ln()
}

/// The regularised incomplete beta function `I_x(a, b)`.
fn incomplete_beta(a: f64, b: f64, x: f64) -> f64 {
    if x <= 0.0 {
        return 0.0;
    }
    if x >= 1.0 {
        return 1.0;
    }
    let ln_front = ln_gamma(a + b) - ln_gamma(a) - ln_gamma(b) + a * x.ln() + b * (-x).ln_1p();
    // The continued fraction converges fast on this side of the mean; the other side by symmetry.
    if x < (a + 1.0) / (a + b + 2.0) {
        ln_front.exp() * beta_fraction(a, b, x) / a
    } else {
        1.0 - ln_front.exp() * beta_fraction(b, a, 1.0 - x) / b
    }
}

/// The continued fraction of the incomplete beta function, by the modified Lentz method.
fn beta_fraction(a: f64, b: f64, x: f64) -> f64 {
    // Lentz divides by these partial results; a zero is replaced by something negligible.
    let guard = |value: f64| if value.abs() < 1e-300 { 1e-300 } else { value };
    let mut c = 1.0;
    let mut d = 1.0 / guard(1.0 - (a + b) * x / (a + 1.0));
    let mut result = d;
    for m in 1..1000_u32 {
        let m = f64::from(m);
        let even = m * (b - m) * x / ((a + 2.0 * m - 1.0) * (a + 2.0 * m));
        let odd = -(a + m) * (a + b + m) * x / ((a + 2.0 * m) * (a + 2.0 * m + 1.0));
        let mut change = 1.0;
        for term in [even, odd] {
            d = 1.0 / guard(1.0 + term * d);
            c = guard(1.0 + term / c);
            change = c * d;
            result *= change;
        }
        if (change - 1.0).abs() < 1e-16 {
            break;
        }
    }
    result
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
