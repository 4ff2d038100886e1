//! Attention of one layer, its gradients, and their comparison.

use burn::tensor::{Device, Distribution, Tensor};
use pe_zoo::attention::{Engine, LayerInput, Weights, layer};
use pe_zoo::{Combined, Dims, Positions, TokenState};
use train::streams::{Stream, stream};

use crate::plan::AttentionWork;

/// Inputs of one layer's attention.
pub(crate) struct AttentionProblem {
    encoding: Combined,
    at: Positions,
    x: Tensor<3>,
    qkv: [Tensor<4>; 3],
    upstream: Tensor<4>,
}

/// Output of attention, and the gradients of queries, keys and values.
pub(crate) type AttentionResult = [Tensor<4>; 4];

impl AttentionProblem {
    /// Draws the inputs of a measurement on an autodiff device; the same for the same sizes.
    ///
    /// # Errors
    /// Message, if the encoding does not exist or refuses the sizes.
    pub(crate) fn new(work: &AttentionWork, device: &Device) -> Result<Self, String> {
        let AttentionWork { batch, len, heads, width, .. } = *work;
        let dims = Dims {
            layers: 1,
            width: heads * width,
            heads,
            head_dim: width,
            train_len: len,
            max_len: len,
        };
        let encoding = train::encodings::parse(&work.encoding)
            .and_then(|encoding| encoding.init(&dims, &mut stream(0, Stream::Encoding), device))
            .map_err(|error| error.to_string())?;
        device.seed(7);
        let normal = Distribution::Normal(0.0, 1.0);
        let random = || Tensor::<4>::random([batch, heads, len, width], normal, device);
        Ok(Self {
            encoding,
            at: Positions::contiguous(0, len),
            x: Tensor::random([batch, len, heads * width], normal, device),
            qkv: [(); 3].map(|()| random().require_grad()),
            upstream: random(),
        })
    }

    fn output(&self, work: &AttentionWork) -> Tensor<4> {
        let carried = TokenState::default();
        let input = LayerInput {
            engine: Engine::Fused,
            precision: work.precision,
            ..LayerInput::new(0, &self.at, &self.x, self.qkv.clone(), &carried)
        };
        layer(&self.encoding, input, None, Weights::Drop).output
    }

    /// Runs the forward pass.
    pub(crate) fn forward(&self, work: &AttentionWork) {
        drop(self.output(work));
    }

    /// Runs the forward and the backward pass of the sum of all outputs.
    pub(crate) fn of_sum(&self, work: &AttentionWork) {
        drop(self.output(work).sum().backward());
    }

    /// Runs the forward and the backward pass, with a random gradient of the output.
    ///
    /// # Errors
    /// Message, if an input has no gradient.
    pub(crate) fn run(&self, work: &AttentionWork) -> Result<AttentionResult, String> {
        let output = self.output(work);
        let grads = (output.clone() * self.upstream.clone()).sum().backward();
        let [q, k, v] = self.qkv.each_ref().map(|tensor| tensor.grad(&grads));
        match (q, k, v) {
            (Some(q), Some(k), Some(v)) => Ok([output.inner(), q, k, v]),
            _ => Err("queries, keys or values have no gradient".to_owned()),
        }
    }
}

/// Largest difference of each tensor, relative to the largest number of the tensor that it is compared with.
pub(crate) fn differences<const D: usize, const N: usize>(
    results: &[Tensor<D>; N],
    references: &[Tensor<D>; N],
) -> [f32; N] {
    std::array::from_fn(|at| {
        let (result, reference) = (results[at].clone(), references[at].clone());
        let largest = reference.clone().abs().max().into_scalar::<f32>();
        let apart = (result - reference).abs();
        // A maximum may pass over NaN, a sum does not.
        let sum = apart.clone().sum().into_scalar::<f32>();
        if sum.is_nan() { f32::NAN } else { apart.max().into_scalar::<f32>() / largest }
    })
}

/// Whether all numbers are equal; NaN is not.
pub(crate) fn equal<const D: usize, const N: usize>(
    results: &[Tensor<D>; N],
    others: &[Tensor<D>; N],
) -> bool {
    let pairs = results.iter().zip(others);
    pairs.into_iter().all(|(a, b)| a.clone().equal(b.clone()).all().into_scalar::<bool>())
}
