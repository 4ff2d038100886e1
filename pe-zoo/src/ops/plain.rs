//! Reference versions of the operations in plain tensor operations, for any backend and for tests
//! of the kernels.

use burn::tensor::activation::{log_softmax, sigmoid, silu, softplus};
use burn::tensor::{Int, Tensor};

use super::{GateFunction, Pairs};
use crate::kernels::activation::{GELU_CUBE, GELU_SLOPE};

/// Settings of one AdamW step.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct AdamW {
    /// Learning rate of this step.
    pub learning_rate: f64,
    /// Decay rates of the two moments.
    pub betas: [f64; 2],
    /// Constant added to the root of the second moment.
    pub epsilon: f64,
    /// Factor of the decoupled weight decay.
    pub weight_decay: f64,
    /// Factor of the gradients, for clipping.
    pub grad_scale: f64,
    /// Number of this step, from 1.
    pub step: u32,
}

impl AdamW {
    /// Bias corrections: divisors of the two moments, which are initialised with zeros.
    pub(super) fn corrections(&self) -> [f64; 2] {
        self.betas.map(|beta| 1.0 - beta.powf(f64::from(self.step)))
    }
}

/// Running means of a parameter's gradient and of its square; `None` before the first step.
#[derive(Debug, Clone, Default)]
pub struct Moments<const D: usize> {
    /// Both moments, of the parameter's shape.
    pub tensors: Option<[Tensor<D>; 2]>,
}

impl<const D: usize> Moments<D> {
    /// Takes both moments out; zeros before the first step.
    pub(super) fn take(&mut self, param: &Tensor<D>) -> [Tensor<D>; 2] {
        let zeros = || Tensor::zeros(param.shape(), &param.device());
        self.tensors.take().unwrap_or_else(|| [zeros(), zeros()])
    }
}

pub(super) fn cross_entropy(logits: Tensor<2>, labels: Tensor<1, Int>) -> Tensor<1> {
    log_softmax(logits, 1).gather(1, labels.unsqueeze_dim(1)).squeeze_dim::<1>(1).neg()
}

pub(super) fn gated<const D: usize>(x: Tensor<D>, gate: GateFunction) -> Tensor<D> {
    let both = x.dims()[D - 1];
    let first = x.clone().slice_dim(D - 1, 0..both / 2);
    let open = match gate {
        GateFunction::Silu => silu(first),
        GateFunction::Gelu => {
            let argument = (first.clone() + first.clone().powi_scalar(3) * GELU_CUBE) * GELU_SLOPE;
            first * sigmoid(argument)
        }
    };
    open * x.slice_dim(D - 1, both / 2..both)
}

pub(super) fn rms_norm<const D: usize>(x: Tensor<D>, gamma: Tensor<1>, epsilon: f64) -> Tensor<D> {
    let rms = (x.clone().square().mean_dim(D - 1) + epsilon).sqrt();
    x / rms * gamma.unsqueeze()
}

pub(super) fn unit_norm<const D: usize>(x: Tensor<D>, epsilon: f64) -> Tensor<D> {
    let length = (x.clone().square().sum_dim(D - 1) + epsilon).sqrt();
    x / length
}

pub(super) fn causal_convolution(x: Tensor<3>, taps: &Tensor<2>, with_silu: bool) -> Tensor<3> {
    let [batch, tokens, width] = x.dims();
    let [kernel, _width] = taps.dims();
    let x = if kernel > 1 {
        let before = Tensor::zeros([batch, kernel - 1, width], &x.device());
        Tensor::cat(vec![before, x], 1)
    } else {
        x
    };
    let term = |k: usize| {
        x.clone().slice_dim(1, k..k + tokens) * taps.clone().slice_dim(0, k..k + 1).unsqueeze()
    };
    let sum = (1..kernel).fold(term(0), |sum, k| sum + term(k));
    if with_silu { silu(sum) } else { sum }
}

pub(super) fn mix_heads(z: Tensor<4>, weights: Tensor<3>) -> Tensor<4> {
    let [batch, heads, tokens, _width] = z.dims();
    let weights = weights.reshape([batch, tokens, heads, heads]);
    z.clone() + crate::kernels::product(weights, z.swap_dims(1, 2)).swap_dims(1, 2)
}

pub(super) fn repeat_heads(x: Tensor<4>, times: usize) -> Tensor<4> {
    let [batch, heads, tokens, width] = x.dims();
    x.unsqueeze_dim::<5>(2).expand([batch, heads, times, tokens, width]).reshape([
        batch,
        heads * times,
        tokens,
        width,
    ])
}

pub(super) fn polar(x: Tensor<4>, waves: &Tensor<4>) -> Tensor<4> {
    let width = x.dims()[3];
    let magnitude = softplus(x, 1.0);
    let part = |start: usize| waves.clone().slice_dim(3, start..start + width);
    Tensor::cat(vec![magnitude.clone() * part(0), magnitude * part(width)], 3)
}

pub(super) fn rotate(x: Tensor<4>, cos: Tensor<2>, sin: Tensor<2>, pairs: Pairs) -> Tensor<4> {
    let [batch, heads, tokens, head_dim] = x.dims();
    let (shape, axis) = match pairs {
        Pairs::HalfSplit => ([batch, heads, tokens, 2, head_dim / 2], 3),
        Pairs::Interleaved => ([batch, heads, tokens, head_dim / 2, 2], 4),
    };
    let table = |t: Tensor<2>| t.unsqueeze::<4>().unsqueeze_dim::<5>(axis);
    let (cos, sin) = (table(cos), table(sin));
    let x = x.reshape(shape);
    let (a, b) = (x.clone().slice_dim(axis, 0..1), x.slice_dim(axis, 1..2));
    let first = a.clone() * cos.clone() - b.clone() * sin.clone();
    let second = a * sin + b * cos;
    Tensor::cat(vec![first, second], axis).reshape([batch, heads, tokens, head_dim])
}

pub(super) fn turn_by_angles(x: Tensor<4>, angles: Tensor<4>) -> Tensor<4> {
    let (cos, sin) = (angles.clone().cos(), angles.sin());
    turn_halves(x, [cos.clone(), cos], [sin.clone(), sin])
}

pub(super) fn turn_by_waves(x: Tensor<4>, waves: &Tensor<4>) -> Tensor<4> {
    let (half, all) = (x.dims()[3] / 2, waves.dims()[3] / 2);
    let part = |start: usize| waves.clone().slice_dim(3, start..start + half);
    // With one wave for each pair, both channels of a pair have the same.
    turn_halves(x, [part(0), part(all - half)], [part(all), part(2 * all - half)])
}

fn turn_halves(x: Tensor<4>, cos: [Tensor<4>; 2], sin: [Tensor<4>; 2]) -> Tensor<4> {
    let head_dim = x.dims()[3];
    let first = x.clone().slice_dim(3, 0..head_dim / 2);
    let second = x.slice_dim(3, head_dim / 2..head_dim);
    let ([cos_first, cos_second], [sin_first, sin_second]) = (cos, sin);
    let rotated = first.clone() * cos_first - second.clone() * sin_first;
    Tensor::cat(vec![rotated, second * cos_second + first * sin_second], 3)
}

pub(super) fn adamw<const D: usize>(
    param: Tensor<D>,
    grad: Tensor<D>,
    moments: &mut Moments<D>,
    step: &AdamW,
) -> Tensor<D> {
    let [mean, square] = moments.take(&param);
    let [beta1, beta2] = step.betas;
    let grad = grad * step.grad_scale;
    let mean = mean * beta1 + grad.clone() * (1.0 - beta1);
    let square = square * beta2 + grad.square() * (1.0 - beta2);
    moments.tensors = Some([mean.clone(), square.clone()]);
    let [bias1, bias2] = step.corrections();
    let update = (mean / bias1) / ((square / bias2).sqrt() + step.epsilon);
    param * (1.0 - step.learning_rate * step.weight_decay) - update * step.learning_rate
}
