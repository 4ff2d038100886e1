//! Normalisation of queries and keys.

use burn::module::Module;
use burn::nn::{RmsNorm, RmsNormConfig};
use burn::tensor::{Device, Tensor};
use serde::{Deserialize, Serialize};

use super::config::ModelConfig;
use super::layers::rms_epsilon;
use super::weights::learned;
use crate::ops;

/// RMSNorm of queries and keys, with learned gains, before the encoding transforms them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum QkNormKind {
    /// Queries and keys are not normalised.
    #[default]
    None,
    /// Over the channels of each head; the heads share the gains, as in Qwen3 and Gemma 3.
    Head,
    /// Over the channels of all heads together, as in OLMo 2.
    Width,
}

/// Numbers of gains of the queries and of the keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct GainCounts {
    pub(super) queries: usize,
    pub(super) keys: usize,
}

impl GainCounts {
    /// Gains of a layer; `None` without normalisation.
    pub(super) fn of(config: &ModelConfig) -> Option<Self> {
        let head_dim = config.width / config.heads;
        match config.qk_norm {
            QkNormKind::None => None,
            QkNormKind::Head => Some(Self { queries: head_dim, keys: head_dim }),
            QkNormKind::Width => Some(Self { queries: config.width, keys: config.kv_width() }),
        }
    }
}

/// Gains of the queries `[D]` or `[C]` and of the keys `[D]` or `[K D]`, in a model that was trained elsewhere.
#[derive(Debug, Clone)]
pub struct QkGains {
    /// Gains of the queries.
    pub queries: Tensor<1>,
    /// Gains of the keys.
    pub keys: Tensor<1>,
}

/// Normalisation of queries and keys.
#[derive(Module, Debug)]
pub(super) struct QueryKeyNorm {
    queries: RmsNorm,
    keys: RmsNorm,
}

impl QueryKeyNorm {
    pub(super) fn new(config: &ModelConfig, device: &Device) -> Option<Self> {
        let gains = GainCounts::of(config)?;
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
