//! Softplus of channels times cosines and sines, in one pass over queries or keys.

use burn::backend::autodiff::checkpoint::base::Checkpointer;
use burn::backend::autodiff::checkpoint::strategy::CheckpointStrategy;
use burn::backend::autodiff::grads::Gradients;
use burn::backend::autodiff::ops::{Backward, Ops, OpsKind};
use burn::backend::flex::FlexTensor;
use burn::backend::tensor::FloatTensor;
use burn::backend::{Autodiff, Backend, Dispatch, Flex, backend_extension};
use burn::tensor::Tensor;

use super::head_rows::{HeadRows, dims, each_row, in_order, in_token_order};
use super::turn::summed;
use crate::math::lanes;

pub(super) fn polar(x: Tensor<4>, waves: Tensor<4>) -> Tensor<4> {
    let (x, waves) = (x.into_dispatch(), waves.into_dispatch());
    Tensor::from_dispatch(<Dispatch as PolarBackend>::fused_polar(x, waves))
}

#[backend_extension(Flex, Autodiff)]
pub(super) trait PolarBackend: Backend {
    fn fused_polar(x: FloatTensor<Self>, waves: FloatTensor<Self>) -> FloatTensor<Self>;
}

impl PolarBackend for Flex {
    fn fused_polar(x: FloatTensor<Self>, waves: FloatTensor<Self>) -> FloatTensor<Self> {
        forward(&in_order(x), &in_order(waves))
    }
}

#[derive(Debug)]
struct Polar;

impl Backward<Flex, 2> for Polar {
    type State = [FlexTensor; 2];

    fn backward(self, ops: Ops<Self::State, 2>, grads: &mut Gradients, _: &mut Checkpointer) {
        let grad = in_order(grads.consume::<Flex>(&ops.node));
        let [x, waves] = ops.state;
        let [to_x, to_waves] = ops.parents;
        if let Some(node) = to_waves {
            grads.register::<Flex>(node.id, wave_grads(&grad, &x, &waves));
        }
        if let Some(node) = to_x {
            grads.register::<Flex>(node.id, channel_grads(&grad, &x, &waves));
        }
    }
}

impl<C: CheckpointStrategy> PolarBackend for Autodiff<Flex, C> {
    fn fused_polar(x: FloatTensor<Self>, waves: FloatTensor<Self>) -> FloatTensor<Self> {
        let nodes = [x.node(), waves.node()];
        let (x, waves) = (in_order(x.into_primitive()), in_order(waves.into_primitive()));
        let output = forward(&x, &waves);
        match Polar.prepare::<C>(nodes).compute_bound().stateful() {
            OpsKind::Tracked(prep) => prep.finish([x, waves], output),
            OpsKind::UnTracked(prep) => prep.finish(output),
        }
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

/// Computes the gradient of the channels.
fn channel_grads(grad: &FlexTensor, x: &FlexTensor, waves: &FlexTensor) -> FlexTensor {
    let shape = dims(x);
    let width = shape[3];
    let (grad, x, waves) = (HeadRows::new(grad), HeadRows::new(x), HeadRows::new(waves));
    each_row(
        shape,
        #[inline(always)]
        |at, h, output| {
            let (of_cos, of_sin) = grad.row(at, h).split_at(width);
            let (cos, sin) = waves.row(at, h).split_at(width);
            let grads = of_cos.iter().zip(of_sin).zip(cos.iter().zip(sin));
            for ((output, x), ((of_cos, of_sin), (cos, sin))) in
                output.iter_mut().zip(x.row(at, h)).zip(grads)
            {
                let slope = lanes::log_sigmoid_and_slope(-x).1;
                *output = (of_cos * cos + of_sin * sin) * slope;
            }
        },
    )
}

/// Computes the gradient of the cosines and sines, summed along their axes of length 1.
fn wave_grads(grad: &FlexTensor, x: &FlexTensor, waves: &FlexTensor) -> FlexTensor {
    let [batch, heads, tokens, width] = dims(x);
    let [sequences, own_heads, ..] = dims(waves);
    let together = heads / own_heads;
    let (grad, x) = (HeadRows::new(grad), HeadRows::new(x));
    let of_each = each_row(
        [batch, own_heads, tokens, 2 * width],
        #[inline(always)]
        |at, own, output| {
            let (to_cos, to_sin) = output.split_at_mut(width);
            for h in own * together..(own + 1) * together {
                let (of_cos, of_sin) = grad.row(at, h).split_at(width);
                let grads = of_cos.iter().zip(of_sin).zip(x.row(at, h));
                let sums = to_cos.iter_mut().zip(to_sin.iter_mut());
                for (((of_cos, of_sin), x), (to_cos, to_sin)) in grads.zip(sums) {
                    let magnitude = -lanes::log_sigmoid(-x);
                    *to_cos += of_cos * magnitude;
                    *to_sin += of_sin * magnitude;
                }
            }
        },
    );
    if sequences == batch {
        return of_each;
    }
    let len = tokens * own_heads * 2 * width;
    in_token_order(summed(of_each.storage::<f32>(), len), [1, own_heads, tokens, 2 * width])
}
