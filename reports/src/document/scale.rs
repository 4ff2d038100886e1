//! Scales of axes: positions of values and round ticks.

use records::number;

/// Spacing of the values on an axis.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Spacing {
    /// Shares from 0 to 1, shown as percent.
    Percent,
    /// Linear spacing of values.
    Linear,
    /// Logarithmic spacing of positive values.
    Log,
}

/// Map of the values of an axis to 0..1, with ticks.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Scale {
    /// Lower end of the axis.
    pub(crate) low: f64,
    /// Upper end of the axis.
    pub(crate) high: f64,
    pub(crate) spacing: Spacing,
    /// Ticks: value and label.
    pub(crate) ticks: Vec<(f64, String)>,
    /// Whether values exist at the ticks only, so that no ticks are added in between.
    pub(crate) only_ticks: bool,
}

impl Scale {
    /// Creates a scale from 0 to 100%, the same for all figures so that they can be compared.
    pub(crate) fn percent() -> Self {
        let ticks = [0, 25, 50, 75, 100].map(|p| (f64::from(p) / 100.0, format!("{p}%"))).to_vec();
        Self { low: 0.0, high: 1.0, spacing: Spacing::Percent, ticks, only_ticks: false }
    }

    /// Creates a scale around `values` with round ticks; logarithmic if they span more than a factor of 8.
    pub(crate) fn around(values: &[f64]) -> Self {
        let (low, high) = range(values);
        let log = low > 0.0 && high / low > 8.0;
        let (low, high) = if log {
            (low / 1.1, high * 1.1)
        } else {
            let margin = if high > low { 0.06 * (high - low) } else { 0.05 * high.abs().max(1.0) };
            (low - margin, high + margin)
        };
        let ticks = if log { log_ticks(low, high) } else { linear_ticks(low, high) };
        Self { low, high, spacing: spacing(log), ticks, only_ticks: false }
    }

    /// Labels the ticks as percent of shares.
    pub(crate) fn in_percent(mut self) -> Self {
        for (value, label) in &mut self.ticks {
            *label = format!("{:.0}%", 100.0 * *value);
        }
        self
    }

    /// Creates a linear scale over the range of `values` with round ticks.
    pub(crate) fn linear(values: &[f64]) -> Self {
        let (low, high) = range(values);
        let high = if high > low { high } else { low + 1.0 };
        let ticks = linear_ticks(low, high);
        Self { low, high, spacing: Spacing::Linear, ticks, only_ticks: false }
    }

    /// Creates a scale with a tick at each of `values`; logarithmic if they span a factor of 4 or more.
    pub(crate) fn at(values: &[f64]) -> Self {
        let (low, high) = range(values);
        let mut sorted = values.to_vec();
        sorted.sort_by(f64::total_cmp);
        sorted.dedup();
        let ticks = sorted.into_iter().map(|v| (v, format!("{v}"))).collect();
        Self {
            low,
            high,
            spacing: spacing(low > 0.0 && high / low >= 4.0),
            ticks,
            only_ticks: true,
        }
    }

    /// Returns the position of `value`, clamped to 0..1.
    pub(crate) fn place(&self, value: f64) -> f64 {
        let (value, low, high) = if self.spacing == Spacing::Log {
            (value.max(f64::MIN_POSITIVE).ln(), self.low.ln(), self.high.ln())
        } else {
            (value, self.low, self.high)
        };
        if high > low { ((value - low) / (high - low)).clamp(0.0, 1.0) } else { 0.5 }
    }
}

fn spacing(log: bool) -> Spacing {
    if log { Spacing::Log } else { Spacing::Linear }
}

fn range(values: &[f64]) -> (f64, f64) {
    let finite = || values.iter().copied().filter(|v| v.is_finite());
    let low = finite().fold(f64::INFINITY, f64::min);
    let high = finite().fold(f64::NEG_INFINITY, f64::max);
    if low <= high { (low, high) } else { (0.0, 1.0) }
}

/// Returns at most seven ticks at multiples of 1, 2 or 5 times a power of ten.
fn linear_ticks(low: f64, high: f64) -> Vec<(f64, String)> {
    let power = 10.0_f64.powf(((high - low) / 5.0).log10().floor());
    let step = [1.0, 2.0, 5.0, 10.0]
        .map(|factor| factor * power)
        .into_iter()
        .find(|step| (high - low) / step <= 6.5)
        .unwrap_or(10.0 * power);
    let decimals = if step >= 1.0 { 0 } else { (-step.log10()).ceil() as usize };
    let first = (low / step).ceil();
    (0..8)
        .map(|i| (first + f64::from(i)) * step)
        .take_while(|v| *v <= high)
        .map(|v| (v, if v.abs() >= 1e5 { number::si(v) } else { format!("{v:.decimals$}") }))
        .collect()
}

fn log_ticks(low: f64, high: f64) -> Vec<(f64, String)> {
    let decades = (high / low).log10();
    let factors: &[f64] = if decades <= 2.5 { &[1.0, 2.0, 5.0] } else { &[1.0] };
    let (first, last) = (low.log10().floor() as i32, high.log10().ceil() as i32);
    let every = (((last - first) / 6).max(1)) as usize;
    (first..=last)
        .step_by(every)
        .flat_map(|power| factors.iter().map(move |factor| factor * 10.0_f64.powi(power)))
        .filter(|v| (low..=high).contains(v))
        .map(|v| (v, short(v)))
        .collect()
}

fn short(value: f64) -> String {
    if (1e-3..1e5).contains(&value) {
        format!("{}", (value * 1e6).round() / 1e6)
    } else if value >= 1e5 {
        number::si(value)
    } else {
        format!("{value:.0e}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(scale: &Scale) -> Vec<&str> {
        scale.ticks.iter().map(|(_, label)| label.as_str()).collect()
    }

    #[test]
    fn ticks_are_round() {
        assert_eq!(labels(&Scale::around(&[1.23, 2.9])), ["1.5", "2.0", "2.5", "3.0"]);
        assert_eq!(labels(&Scale::around(&[0.0, 100.0])), ["0", "20", "40", "60", "80", "100"]);
        assert_eq!(labels(&Scale::around(&[2.0, 90.0])), ["2", "5", "10", "20", "50"]);
        assert_eq!(labels(&Scale::at(&[256.0, 64.0, 64.0])), ["64", "256"]);
        assert_eq!(labels(&Scale::around(&[1.5e-4, 1.5e-3]))[..2], ["2e-4", "5e-4"]);
    }

    #[test]
    fn places_lie_within_the_axis_whatever_the_values() {
        let largest = vec![2.0_f64.powi(64); 2];
        for values in [vec![], vec![3.0], vec![0.0, 0.0], vec![f64::NAN], vec![1e-9, 1e12], largest]
        {
            let scale = Scale::around(&values);
            assert!(Scale::linear(&values).ticks.len() <= 9, "{values:?}");
            assert!(scale.ticks.len() <= 9, "{values:?}: {:?}", scale.ticks);
            for value in [-1.0, 0.0, 1.0, 1e300] {
                assert!((0.0..=1.0).contains(&scale.place(value)), "{values:?} {value}");
            }
        }
        let log = Scale::at(&[64.0, 1024.0]);
        assert!((log.place(256.0) - 0.5).abs() < 1e-12, "doublings are equally far apart");
    }
}
