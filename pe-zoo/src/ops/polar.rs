//! Softplus of channels times cosines and sines, in one pass over queries or keys.
//!
//! The backward pass computes the softplus from the output, which attention keeps anyway, so that the channels need not be kept.

use burn::backend::flex::FlexTensor;

use super::head_rows::{HeadRows, each_row};
use super::turn::summed;
use crate::kernels::cpu::operation::Operation;
use crate::kernels::cpu::tensors::{dims, in_order, in_token_order};
use crate::math::lanes;

/// Softplus of channels times cosines and sines.
#[derive(Debug, Clone)]
pub(super) struct Polar;

impl Operation<2> for Polar {
    /// Output, and cosines and sines.
    type Kept = [FlexTensor; 2];

    fn forward(&self, inputs: [FlexTensor; 2]) -> (FlexTensor, Self::Kept) {
        let [x, waves] = inputs.map(in_order);
        let output = forward(&x, &waves);
        (output.clone(), [output, waves])
    }

    fn backward(
        &self,
        [output, waves]: Self::Kept,
        grad: FlexTensor,
        [of_x, of_waves]: [bool; 2],
    ) -> [Option<FlexTensor>; 2] {
        let grad = in_order(grad);
        let to_waves = of_waves.then(|| wave_grads(&grad, &output, &waves));
        [of_x.then(|| channel_grads(&grad, &output, &waves)), to_waves]
    }
}

fn forward(x: &FlexTensor, waves: &FlexTensor) -> FlexTensor {
    let [batch, heads, tokens, width] = dims(x);
    let (x, waves) = (HeadRows::new(x), HeadRows::new(waves));
    each_row(
        [batch, heads, tokens, 2 * width],
        #[inline(always)]
        |at, h, output| {
            let (to_cos, to_sin) = output.split_at_mut(width);
            let (cos, sin) = waves.row(at, h).split_at(width);
            let all = x.row(at, h).iter().zip(cos).zip(sin).zip(to_cos).zip(to_sin);
            for ((((x, cos), sin), to_cos), to_sin) in all {
                let magnitude = -lanes::log_sigmoid(-x);
                *to_cos = magnitude * cos;
                *to_sin = magnitude * sin;
            }
        },
    )
}

/// Returns the softplus of each channel, which is the length of its part of the output along the cosine and the sine.
#[inline(always)]
fn magnitudes<'a>(output: &'a [f32], waves: &'a [f32]) -> impl Iterator<Item = f32> + 'a {
    let ((of_cos, of_sin), (cos, sin)) =
        (output.split_at(output.len() / 2), waves.split_at(waves.len() / 2));
    of_cos.iter().zip(of_sin).zip(cos.iter().zip(sin)).map(
        #[inline(always)]
        |((of_cos, of_sin), (cos, sin))| {
            let square = (cos * cos + sin * sin).max(f32::MIN_POSITIVE);
            (of_cos * cos + of_sin * sin) / square
        },
    )
}

/// Computes the gradient of the channels.
fn channel_grads(grad: &FlexTensor, output: &FlexTensor, waves: &FlexTensor) -> FlexTensor {
    let [batch, heads, tokens, both] = dims(output);
    let width = both / 2;
    let (grad, y, waves) = (HeadRows::new(grad), HeadRows::new(output), HeadRows::new(waves));
    each_row(
        [batch, heads, tokens, width],
        #[inline(always)]
        |at, h, to_x| {
            let (of_cos, of_sin) = grad.row(at, h).split_at(width);
            let (cos, sin) = waves.row(at, h).split_at(width);
            let grads = of_cos.iter().zip(of_sin).zip(cos.iter().zip(sin));
            let channels = to_x.iter_mut().zip(magnitudes(y.row(at, h), waves.row(at, h)));
            for ((to_x, magnitude), ((of_cos, of_sin), (cos, sin))) in channels.zip(grads) {
                // The derivative of `softplus(x)` is `sigmoid(x) = 1 - exp(-softplus(x))`.
                *to_x = (of_cos * cos + of_sin * sin) * lanes::one_minus_exp(magnitude);
            }
        },
    )
}

/// Computes the gradient of the cosines and sines, summed along their axes of length 1.
fn wave_grads(grad: &FlexTensor, output: &FlexTensor, waves: &FlexTensor) -> FlexTensor {
    let [batch, heads, tokens, both] = dims(output);
    let [sequences, own_heads, ..] = dims(waves);
    let together = heads / own_heads;
    let (grad, y, waves) = (HeadRows::new(grad), HeadRows::new(output), HeadRows::new(waves));
    let of_each = each_row(
        [batch, own_heads, tokens, both],
        #[inline(always)]
        |at, own, to_waves| {
            let (to_cos, to_sin) = to_waves.split_at_mut(both / 2);
            for h in own * together..(own + 1) * together {
                let (of_cos, of_sin) = grad.row(at, h).split_at(both / 2);
                let magnitudes = magnitudes(y.row(at, h), waves.row(at, own));
                let grads = of_cos.iter().zip(of_sin).zip(magnitudes);
                let sums = to_cos.iter_mut().zip(to_sin.iter_mut());
                for (((of_cos, of_sin), magnitude), (to_cos, to_sin)) in grads.zip(sums) {
                    *to_cos += of_cos * magnitude;
                    *to_sin += of_sin * magnitude;
                }
            }
        },
    );
    if sequences == batch {
        return of_each;
    }
    let len = tokens * own_heads * both;
    in_token_order(summed(of_each.storage::<f32>(), len), [1, own_heads, tokens, both])
}
