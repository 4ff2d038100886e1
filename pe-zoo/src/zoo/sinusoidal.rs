//! # Sinusoidal: fixed waves added to the embeddings
//!
//! ## What it does
//! Adds to each token's embedding a vector of sines and cosines of its position. Wavelengths grow
//! geometrically from channel to channel.
//!
//! ## Formula
//! `x[n, 2m] += sin(n * base^(-2m / C))`, `x[n, 2m+1] += cos(n * base^(-2m / C))`
//!
//! ## Shapes
//! `embed: [B, T, C] -> [B, T, C]`; `C` even.
//!
//! ## Settings
//! `base` (10000, the paper's): sets the longest wavelength.
//!
//! ## Deviations
//! None. (Some code concatenates all sines and all cosines: equal up to a permutation.) The paper
//! multiplies token embeddings by `sqrt(C)`; see the `embedding` setting of the model for that.
//!
//! ## References
//! Vaswani et al. 2017, "Attention Is All You Need", arXiv 1706.03762, section 3.5.

use burn::module::Module;
use burn::tensor::{Device, Tensor, TensorData};
use rand_chacha::ChaCha8Rng;

use crate::card::Card;
use crate::encoding::EmbedContext;
use crate::math::frequencies::{check_base, inverse_frequencies};
use crate::reference::{ScalarReference, Tokens, absolute};
use crate::{Cost, Dims, PeError, PositionEncoding};

crate::settings! {
    /// Settings of sinusoidal positions.
    pub struct SinusoidalConfig {
        /// Base of the wavelengths, which run from `2 pi` to `2 pi base`.
        pub base: f64 = 10_000.0,
    }
}

/// Sum of embeddings with fixed sines and cosines of the position.
#[derive(Module, Debug)]
pub struct Sinusoidal {
    #[module(skip)]
    base: f64,
}

impl PositionEncoding for Sinusoidal {
    type Settings = SinusoidalConfig;

    const CARD: Card = Card {
        id: "sinusoidal",
        label: "Sinusoidal",
        summary: "Adds fixed sines and cosines of the position to the token embeddings.",
        parameters: "0",
        paper: "Vaswani et al. 2017",
        url: "https://arxiv.org/abs/1706.03762",
    };

    fn check(settings: &SinusoidalConfig, dims: &Dims) -> Result<(), PeError> {
        let (pe, width) = (Self::CARD.id, dims.width);
        PeError::require(width.is_multiple_of(2), pe, "model.width", width, "an even number")?;
        check_base(pe, "base", settings.base)
    }

    fn build(
        settings: &SinusoidalConfig,
        _dims: &Dims,
        _rng: &mut ChaCha8Rng,
        _device: &Device,
    ) -> Result<Self, PeError> {
        Ok(Sinusoidal { base: settings.base })
    }

    fn cost(_settings: &SinusoidalConfig, dims: &Dims, len: usize) -> Option<Cost> {
        Some(Cost::none().elementwise("sum with the embeddings", len * dims.width))
    }

    fn reference(&self) -> Option<&dyn ScalarReference> {
        Some(self)
    }

    fn embed(&self, x: Tensor<3>, ctx: &EmbedContext<'_>) -> Tensor<3> {
        let [_batch, rows, width] = x.dims();
        let device = x.device();
        let key = format!("sinusoidal {} {width}", self.base);
        let waves = ctx.at.memo(&key, &device, || {
            let frequencies = inverse_frequencies(self.base, width);
            let values = ctx
                .at
                .rows()
                .iter()
                .flat_map(|n| frequencies.iter().map(move |f| *n as f64 * f))
                .flat_map(|angle| [angle.sin() as f32, angle.cos() as f32])
                .collect::<Vec<_>>();
            Tensor::<3>::from_data(TensorData::new(values, [1, rows, width]), &device)
        });
        x + waves
    }
}

impl ScalarReference for Sinusoidal {
    fn scalar_embed(&self, x: &Tokens, _ids: &[usize], positions: &[usize]) -> Tokens {
        absolute::sinusoidal(x, positions, self.base)
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use crate::zoo::tests::Examples;

    pub(crate) const EXAMPLES: &[Examples] = &[Examples {
        facts: "acts on embedding",
        texts: &["sinusoidal", "sinusoidal{base=100.0}"],
    }];
}
