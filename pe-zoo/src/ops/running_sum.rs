//! Running sums whose differences stay exact when the sums are large.

use burn::tensor::Tensor;

#[cfg(feature = "cube")]
use crate::kernels::gpu::elementwise;

/// Maximum number of terms for which a plain f32 sum is accurate enough: the relative error of a
/// difference is at most the number of terms times 6e-8.
const PLAIN: usize = 256;

/// Running sums with their rounding errors.
#[derive(Debug)]
pub struct RunningSum {
    /// Running sums rounded to f32, `[B, H, S]`; gradients flow through these.
    pub rounded: Tensor<3>,
    /// Rounding errors of the sums, for long sequences; without gradient.
    pub lost: Option<Tensor<3>>,
}

/// Computes the sum of `x[.., ..=t]` for each `t`, `[B, H, S] -> [B, H, S]`.
///
/// Rounding changes a plain sum of 32768 terms by up to a five-hundredth of one term per term,
/// always in the same direction if the terms are equal, which would make a decay steeper or flatter
/// than specified.
pub fn running_sum(x: Tensor<3>) -> RunningSum {
    let [_batch, _heads, len] = x.dims();
    #[cfg(feature = "cube")]
    if elementwise::has_running_sums(&x) {
        let lost = (len > PLAIN).then(|| elementwise::lost_of_running_sums(x.clone()));
        return RunningSum { rounded: elementwise::running_sums(x), lost };
    }
    let rounded = x.clone().cumsum(2);
    let lost = (len > PLAIN).then(|| {
        let (high, low) = scan(&x.detach(), len);
        (high - rounded.clone().detach()) + low
    });
    RunningSum { rounded, lost }
}

/// Computes running sums as unevaluated pairs of f32 (Hillis and Steele's scan: `log2 len`
/// additions).
fn scan(x: &Tensor<3>, len: usize) -> (Tensor<3>, Tensor<3>) {
    let mut sums = (x.clone(), x.zeros_like());
    let mut step = 1;
    while step < len {
        let earlier = (later_by(&sums.0, step), later_by(&sums.1, step));
        sums = add_pairs(sums, earlier);
        step *= 2;
    }
    sums
}

/// Shifts a tensor to later tokens, `out[.., t] = x[.., t - step]`, with 0 before the start.
fn later_by(x: &Tensor<3>, step: usize) -> Tensor<3> {
    let [batch, heads, len] = x.dims();
    let nothing = Tensor::zeros([batch, heads, step], &x.device());
    Tensor::cat(vec![nothing, x.clone().slice_dim(2, 0..len - step)], 2)
}

type HighLow = (Tensor<3>, Tensor<3>);

/// Adds two pairs: Knuth's two-sum of the high parts, whose error is added to the low parts.
fn add_pairs((a, a_low): HighLow, (b, b_low): HighLow) -> HighLow {
    let sum = a.clone() + b.clone();
    let b_seen = sum.clone() - a.clone();
    let a_seen = sum.clone() - b_seen.clone();
    let error = (a - a_seen) + (b - b_seen) + a_low + b_low;
    let high = sum.clone() + error.clone();
    let low = error - (high.clone() - sum);
    (high, low)
}

#[cfg(test)]
mod tests {
    use burn::tensor::{Device, TensorData};

    use super::*;
    use crate::testkit::close::numbers;

    /// Computes the largest error of `sum[i] - sum[j]` over pairs up to 40 apart, without and with
    /// the stored rounding errors.
    fn worst_errors(terms: &[f32]) -> (f64, f64) {
        let data = TensorData::new(terms.to_vec(), [1, 1, terms.len()]);
        let sums = running_sum(Tensor::from_data(data, &Device::flex()));
        let (rounded, lost) = (numbers(sums.rounded), numbers(sums.lost.unwrap()));
        let mut errors = (0.0f64, 0.0f64);
        for i in (40..terms.len()).step_by(17) {
            let mut exact = 0.0;
            for j in (i - 40..i).rev() {
                exact += f64::from(terms[j + 1]);
                let plain = (rounded[i] - rounded[j]) as f32;
                let mended = plain + (lost[i] - lost[j]) as f32;
                errors.0 = errors.0.max((f64::from(plain) - exact).abs());
                errors.1 = errors.1.max((f64::from(mended) - exact).abs());
            }
        }
        errors
    }

    #[test]
    fn differences_of_sums_of_32768_terms_are_right_to_f32() {
        for terms in [
            vec![-0.7f32; 32_768],
            vec![-0.011; 32_768],
            (0..32_768).map(|t| -(t as f32).sin().powi(2)).collect(),
        ] {
            let size = f64::from(terms.iter().map(|x| x.abs()).fold(0.0, f32::max));
            let (plain, mended) = worst_errors(&terms);
            assert!(mended < 1e-5 * size, "{mended} of {size}");
            assert!(plain > 1e-3 * size, "{plain} of {size}: the plain sum needs no mending");
        }
    }

    #[test]
    fn short_sums_are_plain() {
        let sums = running_sum(Tensor::ones([1, 1, PLAIN], &Device::flex()));
        assert!(sums.lost.is_none());
    }
}
