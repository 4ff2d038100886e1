//! Normalisation of queries and keys.

use burn::module::Module;
use burn::nn::{RmsNorm, RmsNormConfig};
use burn::tensor::{Device, Tensor};

use super::config::ModelConfig;
use super::layers::rms_epsilon;
use super::weights::{QkGains, learned};
use crate::ops;

/// Normalisation of queries and keys.
#[derive(Module, Debug)]
pub(super) struct QueryKeyNorm {
    queries: RmsNorm,
    keys: RmsNorm,
}

impl QueryKeyNorm {
    pub(super) fn new(config: &ModelConfig, device: &Device) -> Option<Self> {
        let gains = config.qk_gains()?;
        let norm = |count| RmsNormConfig::new(count).with_epsilon(rms_epsilon(config)).init(device);
        Some(Self { queries: norm(gains.queries), keys: norm(gains.keys) })
    }

    /// Creates the normalisation with given gains.
    pub(super) fn of(config: &ModelConfig, gains: QkGains) -> Self {
        let norm = |gamma| RmsNorm { gamma: learned(gamma), epsilon: rms_epsilon(config) };
        Self { queries: norm(gains.queries), keys: norm(gains.keys) }
    }

    /// Lets frozen gains learn again.
    #[must_use]
    pub(super) fn learning(self) -> Self {
        let learning = |norm: RmsNorm| RmsNorm { gamma: norm.gamma.set_require_grad(true), ..norm };
        Self { queries: learning(self.queries), keys: learning(self.keys) }
    }

    /// Normalises queries `[B, H, T, D]` and keys `[B, K, T, D]`.
    pub(super) fn forward(&self, q: Tensor<4>, k: Tensor<4>) -> (Tensor<4>, Tensor<4>) {
        (normalised(&self.queries, q), normalised(&self.keys, k))
    }
}

/// Normalises over the channels of each head, or of all heads if there are as many gains.
fn normalised(norm: &RmsNorm, u: Tensor<4>) -> Tensor<4> {
    let [batch, heads, tokens, head_dim] = u.dims();
    let [gains] = norm.gamma.dims();
    if gains == head_dim {
        return ops::rms_norm(u, norm.gamma.val(), norm.epsilon);
    }
    let joined = u.swap_dims(1, 2).reshape([batch, tokens, heads * head_dim]);
    let joined = ops::rms_norm(joined, norm.gamma.val(), norm.epsilon);
    joined.reshape([batch, tokens, heads, head_dim]).swap_dims(1, 2)
}
