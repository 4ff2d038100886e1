//! Operations of models, fused where the device has a kernel and plain tensor operations elsewhere.
//!
//! Without these functions, a training step on Flex spends half of its time in elementwise operations
//! on one thread. Each function here is one operation with an explicit gradient, in SIMD, on all
//! threads, that stores only what its backward pass needs.

#[cfg(feature = "flex")]
mod adamw;
#[cfg(feature = "flex")]
mod add;
#[cfg(feature = "flex")]
mod convolution;
#[cfg(feature = "flex")]
mod cross_entropy;
#[cfg(feature = "flex")]
mod gated;
#[cfg(feature = "flex")]
mod gelu;
#[cfg(feature = "flex")]
mod head_rows;
#[cfg(feature = "flex")]
mod linear;
#[cfg(feature = "flex")]
mod mix_heads;
#[cfg(feature = "flex")]
mod norm;
#[cfg(feature = "flex")]
mod polar;
mod precision;
#[cfg(feature = "flex")]
mod repeat_heads;
#[cfg(feature = "flex")]
mod rotate;
#[cfg(feature = "flex")]
mod row_product;
#[cfg(feature = "flex")]
mod turn;
#[cfg(feature = "flex")]
mod unit_norm;

mod plain;
pub(crate) mod running_sum;

pub use crate::kernels::activation::GateFunction;
pub use crate::kernels::linear_map::LinearMap;
pub use crate::kernels::pairs::Pairs;
pub use crate::kernels::precision::MatmulPrecision;
pub use crate::kernels::product;
pub use plain::{AdamW, Moments};

#[cfg(feature = "cube")]
use burn::tensor::DType;
use burn::tensor::{Int, Tensor};

use crate::count::count;
use crate::kernels::activation::{ActivationKind, ActivationUnit, NumberActivation};
#[cfg(feature = "cube")]
use crate::kernels::gpu;
#[cfg(feature = "cube")]
use crate::kernels::gpu::elementwise::{self, AdamWFactors, AdamWTensors};
#[cfg(feature = "flex")]
use crate::kernels::{self, cpu::operation::apply};

/// Exact GELU of a tensor of any shape, `0.5 x (1 + erf(x / sqrt(2)))`.
pub fn gelu<const D: usize>(x: Tensor<D>) -> Tensor<D> {
    #[cfg(feature = "flex")]
    if fused(&x) {
        return apply(gelu::Gelu, [x.into_dispatch()]);
    }
    #[cfg(feature = "cube")]
    if elementwise::supports(&x) {
        return elementwise::gelu(x);
    }
    burn::tensor::activation::gelu(x)
}

/// Sum of two tensors of one shape, in place where the memory of one of them is not shared.
///
/// # Panics
///
/// If their shapes differ.
pub fn add<const D: usize>(x: Tensor<D>, y: Tensor<D>) -> Tensor<D> {
    assert_eq!(x.dims(), y.dims(), "shapes of a sum");
    #[cfg(feature = "flex")]
    if fused(&x) && fused(&y) {
        return apply(add::AddOp, [x, y].map(Tensor::into_dispatch));
    }
    x + y
}

/// Computes `gate(first half) * second half` over the last axis, `[.., 2 F] -> [.., F]`.
pub fn gated<const D: usize>(x: Tensor<D>, gate: GateFunction) -> Tensor<D> {
    #[cfg(feature = "flex")]
    if fused(&x) {
        return apply(gated::Gated { gate }, [x.into_dispatch()]);
    }
    #[cfg(feature = "cube")]
    if elementwise::supports(&x) {
        return elementwise::gated(x, gate);
    }
    plain::gated(x, gate)
}

fn count_linear<const D: usize>(x: &Tensor<D>, weight: &Tensor<2>) {
    let [_inputs, outputs] = weight.dims();
    count(x.shape().num_elements() * outputs);
}

/// Computes `x weight + bias` over the last axis, `[.., I] -> [.., O]`; `weight` `[I, O]`, `bias`
/// `[O]`.
pub fn linear<const D: usize>(
    x: Tensor<D>,
    weight: Tensor<2>,
    bias: Option<Tensor<1>>,
) -> Tensor<D> {
    count_linear(&x, &weight);
    #[cfg(feature = "flex")]
    if fused(&x) && fused(&weight) {
        return linear::linear(x, weight, bias, linear::Before::Nothing);
    }
    #[cfg(feature = "cube")]
    if x.dtype() == DType::F32 && crate::kernels::gpu::rounds(&x.device()) {
        let product = crate::kernels::gpu::product(x, weight.unsqueeze());
        return match bias {
            Some(bias) => product + bias.unsqueeze(),
            None => product,
        };
    }
    burn::tensor::module::linear(x, weight, bias)
}

/// Computes [`linear`] with a choice of precision.
pub fn linear_of<const D: usize>(
    precision: MatmulPrecision,
    x: Tensor<D>,
    weight: Tensor<2>,
    bias: Option<Tensor<1>>,
) -> Tensor<D> {
    match precision {
        MatmulPrecision::F32 => linear(x, weight, bias),
        MatmulPrecision::Tf32 => {
            count_linear(&x, &weight);
            burn::tensor::module::linear(x, weight, bias)
        }
        MatmulPrecision::Bf16 => {
            count_linear(&x, &weight);
            #[cfg(feature = "cube")]
            if elementwise::supports(&x) {
                return gpu::linear(DType::BF16, x, LinearMap { weight, bias });
            }
            precision::linear(x, weight, bias)
        }
    }
}

/// Maps `[B, T, C]` to heads, `[B, H, T, D]`, with one map for `N` tensors, each with its number of heads.
pub fn heads_of<const N: usize>(
    precision: MatmulPrecision,
    x: &Tensor<3>,
    LinearMap { weight, bias }: LinearMap,
    heads: [usize; N],
    head_dim: usize,
) -> [Tensor<4>; N] {
    #[cfg(feature = "cube")]
    if precision == MatmulPrecision::Bf16 && gpu::heads_of_map::supports(x, head_dim) {
        count_linear(x, &weight);
        let map = LinearMap { weight, bias };
        return gpu::heads_of_map::heads_of_map(x.clone(), map, heads, head_dim);
    }
    let [batch, tokens, _width] = x.dims();
    let mut first = 0;
    // The weight is sliced, not the product, because the gradient of a slice has the size of the whole.
    heads.map(|heads| {
        let columns = first..first + heads * head_dim;
        first = columns.end;
        let weight = weight.clone().slice_dim(1, columns.clone());
        let bias = bias.clone().map(|bias| bias.slice_dim(0, columns));
        let product = linear_of(precision, x.clone(), weight, bias);
        product.reshape([batch, tokens, heads, head_dim]).swap_dims(1, 2)
    })
}

/// Computes `down(activation(up(x)))`, a feed-forward network, `[.., I] -> [.., O]`.
///
/// The activation's output is not stored for the backward pass on the CPU. With [`MatmulPrecision::Bf16`] on GPUs, numbers
/// between the two maps are bf16.
pub fn feed_forward_of<const D: usize>(
    precision: MatmulPrecision,
    x: Tensor<D>,
    up: LinearMap,
    down: LinearMap,
    activation: ActivationKind,
) -> Tensor<D> {
    #[cfg(feature = "cube")]
    if precision == MatmulPrecision::Bf16 && gpu::feed_forward::supports(&x, &up, &down) {
        let ([inputs, between], [hidden, outputs]) = (up.weight.dims(), down.weight.dims());
        let rows = x.shape().num_elements() / inputs;
        count(rows * (inputs * between + hidden * outputs));
        return gpu::feed_forward::feed_forward(x, up, down, activation);
    }
    let x = linear_of(precision, x, up.weight, up.bias);
    let LinearMap { weight, bias } = down;
    match activation.unit() {
        ActivationUnit::Numbers(NumberActivation::Gelu) => {
            gelu_linear_of(precision, x, weight, bias)
        }
        ActivationUnit::Numbers(NumberActivation::Relu) => {
            relu_linear_of(precision, x, weight, bias)
        }
        ActivationUnit::Pairs(gate) => linear_of(precision, gated(x, gate), weight, bias),
    }
}

/// Computes [`linear_of`] of [`gelu`]; on the CPU, without storing the output of GELU for the backward pass.
fn gelu_linear_of<const D: usize>(
    precision: MatmulPrecision,
    x: Tensor<D>,
    weight: Tensor<2>,
    bias: Option<Tensor<1>>,
) -> Tensor<D> {
    #[cfg(feature = "flex")]
    if precision == MatmulPrecision::F32 && fused(&x) && fused(&weight) {
        count_linear(&x, &weight);
        return linear::linear(x, weight, bias, linear::Before::Gelu);
    }
    linear_of(precision, gelu(x), weight, bias)
}

/// Computes [`linear_of`] of `relu(x)`, in place where the memory of `x` is not shared.
fn relu_linear_of<const D: usize>(
    precision: MatmulPrecision,
    x: Tensor<D>,
    weight: Tensor<2>,
    bias: Option<Tensor<1>>,
) -> Tensor<D> {
    #[cfg(feature = "flex")]
    if precision == MatmulPrecision::F32 && fused(&x) && fused(&weight) {
        count_linear(&x, &weight);
        return linear::linear(x, weight, bias, linear::Before::Relu);
    }
    linear_of(precision, burn::tensor::activation::relu(x), weight, bias)
}

/// Layer normalisation over the last axis, `(x - mean) / sqrt(variance + epsilon) * gamma + beta`;
/// `gamma` and `beta` are `[C]`.
pub fn layer_norm<const D: usize>(
    x: Tensor<D>,
    gamma: Tensor<1>,
    beta: Tensor<1>,
    epsilon: f64,
) -> Tensor<D> {
    #[cfg(feature = "flex")]
    if fused(&x) {
        return norm::norm(x, gamma, Some(beta), epsilon);
    }
    #[cfg(feature = "cube")]
    if elementwise::supports(&x) {
        return elementwise::norm(x, gamma, Some(beta), epsilon);
    }
    burn::tensor::module::layer_norm(x, gamma, Some(beta), epsilon)
}

/// Root mean square normalisation over the last axis, `x / sqrt(mean(x^2) + epsilon) * gamma`;
/// `gamma` is `[C]`.
pub fn rms_norm<const D: usize>(x: Tensor<D>, gamma: Tensor<1>, epsilon: f64) -> Tensor<D> {
    #[cfg(feature = "flex")]
    if fused(&x) {
        return norm::norm(x, gamma, None, epsilon);
    }
    #[cfg(feature = "cube")]
    if elementwise::supports(&x) {
        return elementwise::norm(x, gamma, None, epsilon);
    }
    plain::rms_norm(x, gamma, epsilon)
}

/// Divides each row of the last axis by its length, `x / sqrt(sum(x^2) + epsilon)`.
pub fn unit_norm<const D: usize>(x: Tensor<D>, epsilon: f64) -> Tensor<D> {
    #[cfg(feature = "flex")]
    if fused(&x) {
        return apply(unit_norm::UnitNorm { epsilon: epsilon as f32 }, [x.into_dispatch()]);
    }
    plain::unit_norm(x, epsilon)
}

/// Causal convolution of each channel over the tokens, followed by SiLU if `silu` is set:
/// `sum over k of taps[k] x[t - (K - 1) + k]`, with zeros before the first token.
///
/// `x` is `[B, T, C]`, `taps` `[K, C]`, the last row for the token itself.
pub fn causal_convolution(x: Tensor<3>, taps: Tensor<2>, silu: bool) -> Tensor<3> {
    #[cfg(feature = "flex")]
    if fused(&x) {
        return apply(
            convolution::CausalConvolution { silu },
            [x.into_dispatch(), taps.into_dispatch()],
        );
    }
    plain::causal_convolution(x, &taps, silu)
}

/// Adds a weighted sum of all heads to each head, `z[h] + sum over g of weights[h, g] z[g]`, with weights of each token.
///
/// `z` is `[B, H, T, W]`, `weights` `[B, T, H H]`.
pub fn mix_heads(z: Tensor<4>, weights: Tensor<3>) -> Tensor<4> {
    #[cfg(feature = "flex")]
    if fused(&z) {
        return apply(mix_heads::MixHeads, [z.into_dispatch(), weights.into_dispatch()]);
    }
    plain::mix_heads(z, weights)
}

/// Repeats each head, one copy after the other: `[B, H, T, D] -> [B, times H, T, D]`.
pub fn repeat_heads(x: Tensor<4>, times: usize) -> Tensor<4> {
    if times == 1 {
        return x;
    }
    #[cfg(feature = "flex")]
    if fused(&x) {
        return apply(repeat_heads::RepeatHeads { times }, [x.into_dispatch()]);
    }
    plain::repeat_heads(x, times)
}

/// Computes `(m cos, m sin)` with the magnitudes `m = softplus(x)`.
///
/// `x` is `[B, H, T, R]`, `waves` `[1 or B, 1 or H, T, 2 R]`: cosines, then sines. The result is `[B, H, T, 2 R]`.
/// A cosine and its sine must not both be 0: on the CPU gradients are computed from the result, in which nothing of `x` is left then.
pub fn polar(x: Tensor<4>, waves: Tensor<4>) -> Tensor<4> {
    #[cfg(feature = "flex")]
    if fused(&x) {
        return apply(polar::Polar, [x, waves].map(Tensor::into_dispatch));
    }
    plain::polar(x, &waves)
}

/// Rotates each pair of channels by the angle of its token: `(a, b) -> (a cos - b sin, a sin + b cos)`.
///
/// `x` is `[B, H, T, D]`, `cos` and `sin` `[T, D / 2]`, one angle per pair; they are constants and
/// get no gradient.
pub fn rotate(x: Tensor<4>, cos: Tensor<2>, sin: Tensor<2>, pairs: Pairs) -> Tensor<4> {
    #[cfg(feature = "flex")]
    if fused(&x) {
        return apply(
            rotate::Rotate { pairs },
            [x.into_dispatch(), cos.into_dispatch(), sin.into_dispatch()],
        );
    }
    #[cfg(feature = "cube")]
    if elementwise::supports(&x) && elementwise::supports(&cos) && elementwise::supports(&sin) {
        return elementwise::rotate(x, cos, sin, pairs);
    }
    plain::rotate(x, cos, sin, pairs)
}

/// Rotates channel `m` with channel `m + D / 2` by angles that have gradients.
///
/// `x` is `[B, H, T, D]`, `angles` `[1 or B, 1 or H, T, D / 2]`.
pub fn turn_by_angles(x: Tensor<4>, angles: Tensor<4>) -> Tensor<4> {
    #[cfg(feature = "flex")]
    if fused(&x) {
        return apply(turn::Turning::Angles, [x, angles].map(Tensor::into_dispatch));
    }
    plain::turn_by_angles(x, angles)
}

/// Maps channels `(a, b)`, `m` and `m + D / 2`, to `(a cos - b sin, b cos' + a sin')`; cosines and sines have gradients.
///
/// `x` is `[B, H, T, D]`, `waves` `[1 or B, 1 or H, T, 2 E]`: `E` cosines, then `E` sines. `E` is `D / 2`, one for both
/// channels of a pair, or `D`, those of all first channels before those of all second channels.
pub fn turn_by_waves(x: Tensor<4>, waves: Tensor<4>) -> Tensor<4> {
    #[cfg(feature = "flex")]
    if fused(&x) {
        return apply(turn::Turning::Waves, [x, waves].map(Tensor::into_dispatch));
    }
    plain::turn_by_waves(x, &waves)
}

/// Negative log-likelihood of each row's label under the softmax of its logits, `[N, V], [N] -> [N]`.
///
/// # Panics
///
/// If there is not one label a row. If a label is negative or at least `V`, except on GPUs, where the loss of its row is NaN.
pub fn cross_entropy(logits: Tensor<2>, labels: Tensor<1, Int>) -> Tensor<1> {
    assert_eq!(logits.dims()[..1], labels.dims(), "one label a row of logits");
    #[cfg(feature = "flex")]
    if fused(&logits) {
        let labels = labels.into_data().convert::<i64>();
        let labels = labels.try_into_vec::<i64>().expect("labels are 64-bit integers");
        let labels = labels.into_iter().map(|label| label as usize).collect();
        return apply(cross_entropy::CrossEntropy { labels }, [logits.into_dispatch()]);
    }
    #[cfg(feature = "cube")]
    if elementwise::supports(&logits) {
        return elementwise::cross_entropy(logits, labels);
    }
    plain::cross_entropy(logits, labels)
}

/// Selects rows, `[R, C], [N] -> [N, C]`, such as the embedding of tokens.
///
/// # Panics
///
/// If an index is negative or at least `R`; on GPUs where gradients are computed.
pub fn select_rows(x: Tensor<2>, rows: Tensor<1, Int>) -> Tensor<2> {
    #[cfg(feature = "cube")]
    if elementwise::supports(&x) {
        return elementwise::select_rows(x, rows);
    }
    x.select(0, rows)
}

/// Applies one step of AdamW and returns the new parameter. `moments` are updated; no gradient
/// flows.
pub fn adamw<const D: usize>(
    param: Tensor<D>,
    grad: Tensor<D>,
    moments: &mut Moments<D>,
    step: &AdamW,
) -> Tensor<D> {
    let mut steps = AdamWSteps::default();
    let param = steps.add(param, grad, moments, step);
    steps.finish();
    param
}

/// Steps of AdamW of many parameters; on GPUs they have a launch in common, up to 32 each.
#[derive(Debug, Default)]
#[must_use = "parameters on GPUs are unchanged until `finish`"]
pub struct AdamWSteps {
    #[cfg(feature = "cube")]
    queue: elementwise::AdamWQueue,
}

impl AdamWSteps {
    /// Returns the parameter after one step and updates `moments`, like [`adamw`]; on GPUs their numbers are those before
    /// the step until [`Self::finish`].
    pub fn add<const D: usize>(
        &mut self,
        param: Tensor<D>,
        grad: Tensor<D>,
        moments: &mut Moments<D>,
        step: &AdamW,
    ) -> Tensor<D> {
        #[cfg(feature = "flex")]
        if fused(&param) {
            return adamw::adamw(param, grad, moments, step);
        }
        #[cfg(feature = "cube")]
        if elementwise::supports(&param) && elementwise::supports(&grad) {
            let [mean, square] = moments.take(&param);
            let [bias1, bias2] = step.corrections();
            let [mean_decay, square_decay] = step.betas.map(|beta| beta as f32);
            let factors = AdamWFactors {
                scale: step.grad_scale as f32,
                mean_decay,
                square_decay,
                keep: (1.0 - step.learning_rate * step.weight_decay) as f32,
                rate: (step.learning_rate / bias1) as f32,
                root: (1.0 / bias2) as f32,
                epsilon: step.epsilon as f32,
            };
            let tensors = AdamWTensors { param, grad, mean, square };
            let [param, mean, square] = self.queue.push(tensors, factors);
            moments.tensors = Some([mean, square]);
            return param;
        }
        plain::adamw(param, grad, moments, step)
    }

    /// Computes all added steps.
    pub fn finish(self) {
        #[cfg(feature = "cube")]
        self.queue.launch();
    }
}

#[cfg(feature = "flex")]
fn fused<const D: usize>(x: &Tensor<D>) -> bool {
    kernels::on_cpu(&x.device()) && x.dtype() == burn::tensor::DType::F32
}

#[cfg(all(test, feature = "flex"))]
mod tests;
