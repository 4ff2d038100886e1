//! Decay of the logits from the logarithms of forget gates.

use burn::tensor::Tensor;

use crate::ScoreMod;
use crate::ops::running_sum::running_sum;

/// Returns the modifier that adds `factor * (sum of ln f over the tokens after j, up to and
/// including i)`; `log_forget` is `[B, H, S, 1]`, one number per column.
///
/// The engine subtracts running sums of the whole sequence, which are large and nearly equal for
/// long sequences. Their rounding errors are passed on as a second, small decay.
pub(crate) fn decay(log_forget: Tensor<4>, factor: f64) -> ScoreMod {
    let sums = running_sum(log_forget.squeeze_dim::<3>(3) * factor);
    let decay = |cumulative| ScoreMod::Decay { cumulative };
    match sums.lost {
        Some(lost) => ScoreMod::Sum(vec![decay(sums.rounded), decay(lost)]),
        None => decay(sums.rounded),
    }
}
