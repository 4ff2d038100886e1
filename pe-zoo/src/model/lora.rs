//! LoRA: low-rank adapters of frozen weights (Hu et al. 2021, arXiv 2106.09685).
//!
//! Burn's own LoRA draws from a global generator and materializes the adapted weight in every pass. Here initial values
//! come from the run's generator, and an adapter adds two thin products.

use crate::{init, ops};
use burn::module::{Module, Param};
use burn::tensor::{Device, Tensor};
use rand_chacha::ChaCha8Rng;

crate::settings! {
    /// Settings of the adapters on queries, keys, values and output.
    #[derive(Copy)]
    pub struct LoraConfig {
        /// Rank of each adapter.
        pub rank: usize = 8,
        /// Numerator of the scale: the product is multiplied by `alpha / rank`.
        pub alpha: f64 = 16.0,
        /// Whether the token embeddings and the scales of the normalisations are trained as well, as in LongLoRA (Chen et al.
        /// 2023, arXiv 2309.12307). Not serialized if false, so that keys of older records stay valid.
        #[serde(skip_serializing_if = "std::ops::Not::not")]
        pub embedding_and_norms: bool = false,
    }
}

/// Invalid rank or scale.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("lora.{field} is {value}, expected {expected}; change `{field}`")]
pub struct LoraError {
    /// Name of the invalid field.
    pub field: &'static str,
    /// Value of the field.
    pub value: String,
    /// Description of the accepted values.
    pub expected: String,
}

impl LoraConfig {
    /// Checks the settings for a model of this width.
    ///
    /// # Errors
    /// [`LoraError`], which names the field.
    pub fn check(&self, width: usize) -> Result<(), LoraError> {
        if self.rank == 0 || self.rank > width {
            let expected = format!("1 to the model's width, {width}");
            return Err(LoraError { field: "rank", value: self.rank.to_string(), expected });
        }
        if !(self.alpha.is_finite() && self.alpha > 0.0) {
            let expected = "a number above 0".to_owned();
            return Err(LoraError { field: "alpha", value: self.alpha.to_string(), expected });
        }
        Ok(())
    }
}

/// Low-rank map `x A B alpha / r`, the output of an adapter: Hu et al. 2021 (arXiv:2106.09685), section 4.1.
#[derive(Module, Debug)]
pub(super) struct LowRank {
    /// Matrix `A`, `[I, r]`; initialised uniformly in `+-1 / sqrt(I)`, as in the authors' code.
    down: Param<Tensor<2>>,
    /// Matrix `B`, `[r, O]`; initialised with zeros.
    up: Param<Tensor<2>>,
    #[module(skip)]
    scale: f64,
}

/// Adapters of one transformer block.
#[derive(Module, Debug)]
pub(super) struct Adapters {
    /// Adapter of the query map.
    pub q: LowRank,
    /// Adapter of the key map.
    pub k: LowRank,
    /// Adapter of the value map.
    pub v: LowRank,
    /// Adapter of the attention's output map.
    pub out: LowRank,
}

impl LowRank {
    /// Creates an adapter from `inputs` to `outputs` channels whose output is zero until it is trained.
    pub(super) fn new(
        config: &LoraConfig,
        inputs: usize,
        outputs: usize,
        rng: &mut ChaCha8Rng,
        device: &Device,
    ) -> Self {
        let bound = (inputs as f64).powf(-0.5);
        Self {
            down: init::uniform(bound, [inputs, config.rank], rng, device),
            up: init::zeros([config.rank, outputs], device),
            scale: config.alpha / config.rank as f64,
        }
    }

    /// Adds the output of the adapter for `x`, `[B, T, I]`, to `output`, `[B, T, O]`; without an adapter, returns `output`.
    pub(super) fn beside(adapter: Option<&Self>, x: &Tensor<3>, output: Tensor<3>) -> Tensor<3> {
        match adapter {
            None => output,
            Some(Self { down, up, scale }) => {
                let inner = ops::linear(x.clone(), down.val(), None);
                output + ops::linear(inner, up.val(), None) * *scale
            }
        }
    }

    /// Computes `A B alpha / r`, `[I, O]`, the term added to the weight.
    pub(super) fn product(&self) -> Tensor<2> {
        ops::product(self.down.val(), self.up.val()) * self.scale
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_and_scales_that_cannot_work_are_refused_by_name() {
        let refused = |config: LoraConfig, expected: &str| {
            let error = config.check(16).unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        };
        LoraConfig::default().check(16).unwrap();
        refused(LoraConfig { rank: 0, ..LoraConfig::default() }, "lora.rank is 0");
        refused(LoraConfig { rank: 17, ..LoraConfig::default() }, "width, 16");
        refused(LoraConfig { alpha: f64::NAN, ..LoraConfig::default() }, "lora.alpha is NaN");
    }
}
