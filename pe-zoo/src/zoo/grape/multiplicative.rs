//! GRAPE-M: RoPE with learned frequencies, rotating in the opposite direction.

use burn::module::{Module, Param};
use burn::tensor::{Device, Tensor, TensorData};
use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};

use super::Grape;
use super::norm::{QkNorm, QkNorms};
use crate::card::Card;
use crate::encoding::LayerContext;
use crate::math::frequencies::{check_base, inverse_frequencies};
use crate::reference::{self, ScalarInput, ScalarReference, grape, table_f64};
use crate::rotary::{Rotation, check_pairs};
use crate::settings::check_above_zero;
use crate::{Cost, Dims, PeError, PositionEncoding, init};

/// Whether heads share a learned number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum HeadSharing {
    /// One number for all heads.
    AllHeads,
    /// One number for each head.
    PerHead,
}

impl HeadSharing {
    pub(super) fn sets(self, heads: usize) -> usize {
        match self {
            Self::AllHeads => 1,
            Self::PerHead => heads,
        }
    }
}

crate::settings! {
    /// Settings of GRAPE-M: frequencies and normalisation.
    pub struct MultiplicativeConfig {
        /// Base of RoPE's frequencies, the initial values of the learned ones.
        pub base: f64 = 1e4,
        /// Whether heads share frequencies.
        pub spectrum: HeadSharing = HeadSharing::AllHeads,
        /// Factor by which log-frequencies are multiplied for storage.
        pub storage: f64 = 16.0,
        /// Whether queries and keys are normalised after the rotation.
        pub qk_norm: QkNorm = QkNorm::None,
    }
}

/// Rotation by learned frequencies.
#[derive(Module, Debug)]
pub struct Multiplicative {
    /// Log-frequencies times `storage`, `[1 or H, D/2]` per layer.
    pub stored: Vec<Param<Tensor<2>>>,
    /// Normalisation of queries and keys after the rotation.
    pub norms: QkNorms,
    #[module(skip)]
    storage: f64,
}

impl PositionEncoding for Multiplicative {
    type Settings = MultiplicativeConfig;

    const CARD: Card = Card {
        id: "grape",
        label: "GRAPE-M",
        summary: "Rotates queries and keys by learned frequencies times their positions.",
        parameters: "L D / 2",
        paper: "Zhang et al. 2025",
        url: "https://arxiv.org/abs/2512.07805",
    };

    fn card(settings: &MultiplicativeConfig) -> Card {
        let parameters = match (settings.spectrum, settings.qk_norm) {
            (HeadSharing::AllHeads, QkNorm::None) => Self::CARD.parameters,
            (HeadSharing::AllHeads, QkNorm::Rms) => "L 5 D / 2",
            (HeadSharing::PerHead, QkNorm::None) => "L C / 2",
            (HeadSharing::PerHead, QkNorm::Rms) => "L (C / 2 + 2 D)",
        };
        Card { parameters, ..Self::CARD }
    }

    fn check(settings: &MultiplicativeConfig, dims: &Dims) -> Result<(), PeError> {
        check_above_zero(Self::CARD.id, "variant.storage", settings.storage)?;
        check_rotation(settings.base, dims)
    }

    fn build(
        settings: &MultiplicativeConfig,
        dims: &Dims,
        _rng: &mut ChaCha8Rng,
        device: &Device,
    ) -> Result<Self, PeError> {
        let sets = settings.spectrum.sets(dims.heads);
        let stored = (0..dims.layers)
            .map(|_| {
                let one = stored_frequencies(settings.base, dims.head_dim, settings.storage);
                init::given(one.repeat(sets), [sets, dims.head_dim / 2], device)
            })
            .collect();
        Ok(Multiplicative {
            stored,
            norms: settings.qk_norm.init(dims, device),
            storage: settings.storage,
        })
    }

    fn param_count(settings: &MultiplicativeConfig, dims: &Dims) -> Option<usize> {
        let frequencies = settings.spectrum.sets(dims.heads) * dims.head_dim / 2;
        Some(dims.layers * frequencies + settings.qk_norm.param_count(dims))
    }

    fn cost(settings: &MultiplicativeConfig, dims: &Dims, len: usize) -> Option<Cost> {
        let channels = dims.layers * len * dims.heads_width();
        Some(
            Cost::none()
                .elementwise("angles, rotation of queries and keys", 8 * channels)
                .and(settings.qk_norm.cost(dims, len)),
        )
    }

    fn reference(&self) -> Option<&dyn ScalarReference> {
        Some(self)
    }

    fn transform_qk(
        &self,
        q: Tensor<4>,
        k: Tensor<4>,
        ctx: &LayerContext<'_>,
    ) -> (Tensor<4>, Tensor<4>) {
        let columns = ctx.at.cols().len();
        let device = q.device();
        let positions = ctx.at.memo("grape-positions", &device, || {
            let values = ctx.at.cols().iter().map(|n| *n as f32).collect::<Vec<_>>();
            Tensor::<4>::from_data(TensorData::new(values, [1, 1, columns, 1]), &device)
        });
        let frequencies = (self.stored[ctx.layer].val() / self.storage).exp();
        let [heads, pairs] = frequencies.dims();
        let angles = positions * frequencies.reshape([1, heads, 1, pairs]);
        let (q, k) = Rotation::by_angles(angles.neg()).turn_both(q, k, ctx.at);
        self.norms.apply(ctx.layer, q, k)
    }
}

impl ScalarReference for Multiplicative {
    fn scalar_transformed(&self, input: &ScalarInput) -> ScalarInput {
        let stored = table_f64(&self.stored[input.layer]);
        let frequencies = (0..input.q.len())
            .map(|h| {
                let row = &stored[if stored.len() == 1 { 0 } else { h }];
                row.iter().map(|stored| (stored / self.storage).exp()).collect()
            })
            .collect();
        let norm = self.norms.scalar(input.layer);
        grape::multiplicative(input, &frequencies, norm.as_ref())
    }

    fn scalar_logits(&self, input: &ScalarInput) -> reference::Heads {
        self.scalar_transformed(input).plain()
    }
}

/// Computes logarithms of RoPE's frequencies, times `storage`.
pub(super) fn stored_frequencies(base: f64, head_dim: usize, storage: f64) -> Vec<f32> {
    inverse_frequencies(base, head_dim).iter().map(|f| (f.ln() * storage) as f32).collect()
}

/// Refuses sizes that neither rotating variant can use.
pub(super) fn check_rotation(base: f64, dims: &Dims) -> Result<(), PeError> {
    check_pairs(Grape::CARD.id, dims.head_dim)?;
    check_base(Grape::CARD.id, "variant.base", base)
}
