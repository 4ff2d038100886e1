//! Learned maps of one layer of TAPE.

use burn::module::{Module, Param};
use burn::tensor::{Device, Tensor};
use rand_chacha::ChaCha8Rng;

use super::{AttentionUpdate, TapeConfig};
use crate::reference::{Tokens, table_f64, tape};
use crate::{Dims, init};

/// Standard deviation of the initial values that are not zero.
const STD: f64 = 0.02;

/// Learned maps of one layer; `M` is the number of mixed components, `I` the position size. Cosine
/// and sine share their maps or have one each.
#[derive(Module, Debug)]
pub struct Maps {
    /// Maps `W_A`, `[M, M]`, initially zero; empty without an attention update.
    pub attention: Vec<Param<Tensor<2>>>,
    /// Maps `W_U`, `[I, M]`, initially zero; empty without a feed-forward update.
    pub up: Vec<Param<Tensor<2>>>,
    /// Gate map `W_X`, `[I, C]`; `None` without a feed-forward update.
    pub gate: Option<Param<Tensor<2>>>,
    /// Maps `W_D`, `[M, I]`; empty without a feed-forward update.
    pub down: Vec<Param<Tensor<2>>>,
}

impl Maps {
    pub(super) fn new(
        config: &TapeConfig,
        dims: &Dims,
        rng: &mut ChaCha8Rng,
        device: &Device,
    ) -> Self {
        let mixed = config.form.mixed(dims.heads, dims.head_dim);
        let attention = match config.attention_update {
            AttentionUpdate::None => 0,
            AttentionUpdate::Code | AttentionUpdate::FullMix => config.form.attention_maps(),
        };
        let size = config.position_size(dims);
        let pairs = size.map_or(0, |_| config.form.feed_forward_maps());
        let size = size.unwrap_or(0);
        Self {
            attention: (0..attention).map(|_| init::zeros([mixed, mixed], device)).collect(),
            up: (0..pairs).map(|_| init::zeros([size, mixed], device)).collect(),
            gate: (pairs > 0).then(|| init::normal(STD, [size, dims.width], rng, device)),
            down: (0..pairs).map(|_| init::normal(STD, [mixed, size], rng, device)).collect(),
        }
    }

    /// Number of learned parameters of one layer.
    pub(super) fn count(config: &TapeConfig, dims: &Dims) -> usize {
        let mixed = config.form.mixed(dims.heads, dims.head_dim);
        let attention = match config.attention_update {
            AttentionUpdate::None => 0,
            AttentionUpdate::Code | AttentionUpdate::FullMix => {
                config.form.attention_maps() * mixed * mixed
            }
        };
        let feed_forward = config
            .position_size(dims)
            .map_or(0, |size| size * (dims.width + 2 * mixed * config.form.feed_forward_maps()));
        attention + feed_forward
    }

    /// Converts the maps for the scalar reference.
    pub(super) fn scalar(&self, config: &TapeConfig) -> tape::ScalarMaps {
        tape::ScalarMaps {
            mixes: config.form.mixes(),
            attention: pair(&self.attention),
            full_mix: config.attention_update == AttentionUpdate::FullMix,
            feed_forward: pair(&self.up)
                .zip(self.gate.as_ref().map(table_f64))
                .zip(pair(&self.down))
                .map(|((up, gate), down)| (up, gate, down)),
        }
    }
}

/// Maps of cosine and sine; the same map twice if they share one.
fn pair(maps: &[Param<Tensor<2>>]) -> Option<[Tokens; 2]> {
    Some([table_f64(maps.first()?), table_f64(maps.last()?)])
}

#[cfg(test)]
mod tests {
    use crate::zoo::tape::Tape;
    use crate::zoo::tape::{FeedForwardUpdate, TapeConfig};
    use crate::{Dims, PositionEncoding};

    /// Table 7 of the paper, in units of 2^20: 0.11, 0.22 and 0.44, and four times as many with
    /// separate maps.
    #[test]
    fn parameters_of_the_155m_model_are_those_of_table_7() {
        let dims = Dims {
            layers: 12,
            width: 768,
            heads: 12,
            head_dim: 64,
            train_len: 1024,
            max_len: 1024,
        };
        for (size, expected) in [
            (Some(12), 115_776),
            (Some(24), 229_824),
            (None, 457_920),
            (Some(96), 914_112),
            (Some(192), 1_826_496),
        ] {
            let feed_forward_update = FeedForwardUpdate::On { position_size: size };
            let config = TapeConfig { feed_forward_update, ..TapeConfig::default() };
            assert_eq!(Tape::param_count(&config, &dims), Some(expected), "{size:?}");
        }
    }
}
