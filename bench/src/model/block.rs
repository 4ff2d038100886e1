//! One block: attention under the encoding, then the feed-forward part.

use burn::module::{Module, Param};
use burn::nn::Linear;
use burn::tensor::{Device, Tensor};
use pe_zoo::attention::{Engine, LayerCache, LayerInput, Sharpness, Weights, layer};
use pe_zoo::encoding::Update;
use pe_zoo::{PositionEncoding, Positions, TokenState, ops};
use rand_chacha::ChaCha8Rng;

use super::config::{ModelConfig, NormPlace};
use super::dropout::Dropout;
use super::layers::{AnyNorm, FeedForward, Into, apply, linear};

#[derive(Module, Debug)]
pub(super) struct Block {
    attention_norm: AnyNorm,
    qkv: Linear,
    out: Linear,
    feed_forward_norm: AnyNorm,
    feed_forward: FeedForward,
    #[module(skip)]
    heads: usize,
    #[module(skip)]
    norm_place: NormPlace,
    #[module(skip)]
    sharpness: Sharpness,
}

/// What stays the same through all blocks of a pass.
pub(super) struct Through<'a, P> {
    pub(super) encoding: &'a P,
    pub(super) at: &'a Positions,
    pub(super) weights: Weights,
    pub(super) engine: Engine,
}

impl Block {
    pub(super) fn new(config: &ModelConfig, rng: &mut ChaCha8Rng, device: &Device) -> Self {
        let width = config.width;
        Self {
            attention_norm: AnyNorm::new(config, device),
            qkv: linear(config, [width, 3 * width], Into::Layer, rng, device),
            out: linear(config, [width, width], Into::Residual, rng, device),
            feed_forward_norm: AnyNorm::new(config, device),
            feed_forward: FeedForward::new(config, rng, device),
            heads: config.heads,
            norm_place: config.norm_place,
            sharpness: config.attention,
        }
    }

    /// `[B, T, C] -> [B, T, C]`, with what the tokens carry on and the weights if asked for.
    pub(super) fn forward<P: PositionEncoding>(
        &self,
        index: usize,
        x: Tensor<3>,
        carried: &TokenState,
        through: &Through<'_, P>,
        cache: Option<&mut LayerCache>,
        dropout: &mut Dropout<'_>,
    ) -> (Tensor<3>, TokenState, Option<Tensor<4>>) {
        let input = match self.norm_place {
            NormPlace::Pre => self.attention_norm.forward(x.clone()),
            NormPlace::Post => x.clone(),
        };
        let [q, k, v] = self.project(&input);
        let attended = layer(
            through.encoding,
            LayerInput {
                layer: index,
                at: through.at,
                x: &input,
                q,
                k,
                v,
                carried,
                engine: through.engine,
                sharpness: self.sharpness,
            },
            cache,
            through.weights,
        );
        let [batch, heads, tokens, head_dim] = attended.output.dims();
        let mixed = attended.output.swap_dims(1, 2).reshape([batch, tokens, heads * head_dim]);
        let x = x + dropout.apply(apply(&self.out, mixed));
        let (x, input) = match self.norm_place {
            NormPlace::Pre => (x.clone(), self.feed_forward_norm.forward(x)),
            NormPlace::Post => {
                let x = self.attention_norm.forward(x);
                (x.clone(), x)
            }
        };
        let output = self.feed_forward.forward(input);
        let carried =
            through.encoding.update(attended.carried, index, Update::FeedForward(&output));
        let x = x + dropout.apply(output);
        let x = match self.norm_place {
            NormPlace::Pre => x,
            NormPlace::Post => self.feed_forward_norm.forward(x),
        };
        (x, carried, attended.weights)
    }

    /// Queries, keys and values, each `[B, H, T, D]`.
    fn project(&self, x: &Tensor<3>) -> [Tensor<4>; 3] {
        let [batch, tokens, width] = x.dims();
        let head_dim = width / self.heads;
        let (weight, bias) = (self.qkv.weight.val(), self.qkv.bias.as_ref().map(Param::val));
        // The weight is cut, not the product: gradients of slices are as large as what is cut.
        [0, 1, 2].map(|part| {
            let columns = part * width..(part + 1) * width;
            let weight = weight.clone().slice_dim(1, columns.clone());
            let bias = bias.clone().map(|bias| bias.slice_dim(0, columns));
            ops::linear(x.clone(), weight, bias)
                .reshape([batch, tokens, self.heads, head_dim])
                .swap_dims(1, 2)
        })
    }
}
