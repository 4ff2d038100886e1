//! Effect size of paired differences, with its confidence interval.

use statrs::function::gamma::ln_gamma;

use super::student::normal_cdf;

/// Number of steps of the integral over the spread, even.
const STEPS: u32 = 128;

/// Returns Hedges' g of paired differences: Cohen's d of the differences, `d_z = mean / std`, times the small-sample
/// correction `J = Gamma(m / 2) / (sqrt(m / 2) Gamma((m - 1) / 2))` with `m = n - 1` (Hedges 1981). The correction is
/// exact, not its usual approximation; without it, d is too large by 77% on average at n = 3.
///
/// `None` below n = 3, where the correction is 0, and without spread, where d is infinite.
pub fn hedges_g(mean: f64, std: f64, n: u32) -> Option<f64> {
    let usable = n >= 3 && std > 0.0;
    usable.then(|| correction(n) * mean / std)
}

/// Returns `J = Gamma(m / 2) / (sqrt(m / 2) Gamma((m - 1) / 2))` with `m = n - 1`.
fn correction(n: u32) -> f64 {
    let m = f64::from(n - 1);
    (ln_gamma(m / 2.0) - ln_gamma((m - 1.0) / 2.0) - 0.5 * (m / 2.0).ln()).exp()
}

/// 95% interval of Hedges' g, from the noncentral t distribution (Steiger and Fouladi 1997): `t = g sqrt(n) / J` has the
/// noncentrality `sqrt(n) mean / std` of the truth; the ends are the noncentralities under which `t` is the 97.5 and the
/// 2.5 percent point. It assumes normal differences. `None` where [`hedges_g`] is.
pub fn hedges_g_interval(g: f64, n: u32) -> Option<(f64, f64)> {
    if n < 3 || !g.is_finite() {
        return None;
    }
    let j = correction(n);
    let root = f64::from(n).sqrt();
    let t = g * root / j;
    let spread = spread(f64::from(n - 1));
    let end = |level: f64, z: f64| {
        let known = solution(t, &spread, level, z, n);
        bisected(t, |delta| match known {
            Some(known) if (delta - known).abs() > CERTAIN * (1.0 + t.abs()) => delta < known,
            _ => noncentral_t_cdf(t, &spread, delta) > level,
        }) * j
            / root
    };
    Some((end(0.975, NORMAL), end(0.025, -NORMAL)))
}

/// The 97.5 percent point of the standard normal distribution.
const NORMAL: f64 = 1.959_964;
/// Distance from the solution of Newton's method, relative to `1 + |t|`, beyond which the side of a point is certain: the
/// solution is accurate to a hundredth of it.
const CERTAIN: f64 = 1e-8;

/// Returns the noncentrality found by bisection to a width of `1e-6 (1 + |t|)`; `too_small` tells whether the solution is
/// above a point. The distribution function falls as the noncentrality grows.
fn bisected(t: f64, too_small: impl Fn(f64) -> bool) -> f64 {
    let (mut low, mut high) = (t - 8.0 - 2.0 * t.abs(), t + 8.0 + 2.0 * t.abs());
    while high - low > 1e-6 * (1.0 + t.abs()) {
        let middle = f64::midpoint(low, high);
        if too_small(middle) { low = middle } else { high = middle }
    }
    f64::midpoint(low, high)
}

/// Returns the noncentrality at which the distribution function is `level`, whose standard normal quantile is `z`, by
/// Newton's method; `None` if it does not converge. It decides most steps of the bisection, which is then as accurate as
/// before and six times as fast: a report has tens of thousands of pairs.
fn solution(t: f64, spread: &SpreadPoints, level: f64, z: f64, n: u32) -> Option<f64> {
    const STEPS: usize = 8;
    let SpreadPoints { points, step } = spread;
    // `Z - t y` is nearly normal, with these moments of y.
    let mean = 1.0 - 0.25 / f64::from(n - 1);
    let variance = 0.5 / f64::from(n - 1);
    let mut delta = t * mean - z * (1.0 + t * t * variance).sqrt();
    for _ in 0..STEPS {
        let density = |(y, weight): &(f64, f64)| weight * (-0.5 * (t * y - delta).powi(2)).exp();
        let slope =
            points.iter().map(density).sum::<f64>() * step / 3.0 / std::f64::consts::TAU.sqrt();
        let change = (noncentral_t_cdf(t, spread, delta) - level) / slope;
        delta += change;
        if change.abs() <= 1e-2 * CERTAIN * (1.0 + t.abs()) {
            return Some(delta);
        }
    }
    None
}

/// Points of Simpson's rule over the spread `y` of a t distribution.
struct SpreadPoints {
    /// Each `y` with its weighted density.
    points: Vec<(f64, f64)>,
    step: f64,
}

/// Returns the points over the spread whose square times `df` is chi-squared with `df` degrees of freedom.
fn spread(df: f64) -> SpreadPoints {
    let ln_scale = std::f64::consts::LN_2 + 0.5 * df * (0.5 * df).ln() - ln_gamma(0.5 * df);
    // y has the mean 1 and the variance 1 / (2 df), roughly; its tails are normal.
    let reach = 7.0 / (2.0 * df).sqrt();
    let (low, high) = ((1.0 - reach).max(1e-9), 1.0 + reach);
    let step = (high - low) / f64::from(STEPS);
    let point = |i: u32| {
        let y = low + step * f64::from(i);
        let density = (ln_scale + (df - 1.0) * y.ln() - 0.5 * df * y * y).exp();
        let weight = match i {
            0 | STEPS => 1.0,
            i if i % 2 == 1 => 4.0,
            _ => 2.0,
        };
        (y, weight * density)
    };
    SpreadPoints { points: (0..=STEPS).map(point).collect(), step }
}

/// Returns `P(T <= t)` for the noncentral t distribution: the mean of `Phi(t y - delta)` over the [`spread`] `y`.
fn noncentral_t_cdf(t: f64, spread: &SpreadPoints, delta: f64) -> f64 {
    let SpreadPoints { points, step } = spread;
    let sum: f64 = points.iter().map(|(y, weight)| weight * normal_cdf(t * y - delta)).sum();
    sum * step / 3.0
}

#[cfg(test)]
mod tests {
    use super::super::student::t_cdf;
    use super::*;

    #[test]
    fn two_seeds_and_no_spread_have_no_effect_size() {
        assert_eq!((hedges_g(1.0, 0.1, 2), hedges_g(1.0, 0.0, 5)), (None, None));
        assert_eq!((hedges_g(1.0, f64::NAN, 5), hedges_g_interval(1.0, 2)), (None, None));
    }

    #[test]
    fn without_noncentrality_it_is_students_t() {
        for df in [2.0, 4.0, 9.0, 30.0] {
            for t in [-3.0, -0.5, 0.0, 1.0, 4.0] {
                let (found, central) = (noncentral_t_cdf(t, &spread(df), 0.0), t_cdf(t, df));
                assert!((found - central).abs() < 2e-6, "{t} {df}: {found} {central}");
            }
        }
    }

    #[test]
    fn the_interval_is_the_one_of_the_noncentral_t() {
        // scipy: quadrature over `stats.chi`, the ends by `brentq`, confirmed by `stats.nct.cdf`.
        for (g, n, low, high) in FROM_SCIPY {
            let (found_low, found_high) = hedges_g_interval(g, n).unwrap();
            assert!(
                (found_low - low).abs() < 2e-4 && (found_high - high).abs() < 2e-4,
                "g = {g}, n = {n}: {found_low} to {found_high}"
            );
        }
    }

    #[test]
    fn the_ends_are_those_of_bisection_alone_to_the_bit() {
        let mut solved = 0;
        for n in [3, 4, 5, 8, 20, 50, 300] {
            for g in [-40.0, -3.0, -0.71, -1e-3, 0.0, 0.2, 0.9, 1.7, 6.0, 25.0] {
                let (j, root) = (correction(n), f64::from(n).sqrt());
                let t = g * root / j;
                let spread = spread(f64::from(n - 1));
                let end = |level| {
                    bisected(t, |delta| noncentral_t_cdf(t, &spread, delta) > level) * j / root
                };
                assert_eq!(hedges_g_interval(g, n), Some((end(0.975), end(0.025))), "{g} {n}");
                solved += u32::from(solution(t, &spread, 0.975, NORMAL, n).is_some());
            }
        }
        assert!(solved > 60, "Newton's method converged for {solved} of 70");
    }

    const FROM_SCIPY: [(f64, u32, f64, f64); 7] = [
        (5.6419, 3, 0.8396, 10.8673),
        (0.5, 3, -0.3166, 1.2502),
        (-1.2, 5, -2.2363, -0.1111),
        (2.0, 6, 0.6087, 3.3588),
        (0.0, 8, -0.6155, 0.6155),
        (0.8, 12, 0.1659, 1.4084),
        (8.0, 5, 2.7268, 13.3913),
    ];
}
