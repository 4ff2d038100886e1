//! Settings of the model, and its size and cost computed without building it.

use crate::attention::AttentionKind;
use crate::kernels::activation::ActivationKind;
use crate::settings::is_default;
use crate::{Cost, Dims};
use serde::{Deserialize, Serialize};

/// Kind of normalisation layer.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum NormKind {
    /// LayerNorm: mean and variance, with gain and offset.
    #[default]
    LayerNorm,
    /// RMSNorm: root mean square, with gain.
    RmsNorm,
}

/// Place of the normalisation layers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum NormPlace {
    /// Before attention and feed-forward network, and once more before the head (pre-norm).
    #[default]
    Pre,
    /// After each residual sum (post-norm).
    Post,
    /// After attention and feed-forward network, before each residual sum, and once more before the head, as in OLMo 2.
    Output,
    /// Before and after attention and feed-forward network, and once more before the head, as in Gemma 2 and 3.
    Both,
}

impl NormPlace {
    /// Whether the residual stream is normalised before the head.
    pub(super) fn is_before_head(self) -> bool {
        self != Self::Post
    }
}

/// Initialization of the weights.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Init {
    /// Weights and biases uniform in `+-1 / sqrt(inputs)`, PyTorch's default; embeddings normal with standard
    /// deviation `width^(-1/2)`, as in CoPE's code.
    #[default]
    FanIn,
    /// Weights and embeddings normal with standard deviation 0.02, biases zero, projections to the residual stream
    /// divided by `sqrt(2 layers)`, as in GPT-2.
    Gpt2,
    /// Weights and embeddings normal with standard deviation 0.02, biases zero, as in Llama and TAPE.
    Normal002,
}

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

crate::settings! {
    /// Architecture of the decoder.
    pub struct ModelConfig {
        /// Number of transformer blocks.
        pub layers: usize = 2,
        /// Width of the residual stream.
        pub width: usize = 64,
        /// Number of attention heads; must divide `width` unless `head_dim` is set.
        pub heads: usize = 2,
        /// Number of channels of a head; `None`: `width / heads`. Not serialized if `None`, so that keys of older records stay
        /// valid.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub head_dim: Option<usize> = None,
        /// Number of heads of keys and values, each shared by `heads / kv_heads` query heads; `None`: as many as `heads`.
        /// Not serialized if `None`, so that keys of older records stay valid.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub kv_heads: Option<usize> = None,
        /// Hidden width of the feed-forward network; `None`: four times `width`.
        pub feed_forward_width: Option<usize> = None,
        /// Kind of normalisation layer.
        pub norm: NormKind = NormKind::LayerNorm,
        /// Constant added to the mean square in RMSNorm; `None`: 1e-5. Not serialized if `None`.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub norm_epsilon: Option<f64> = None,
        /// Place of the normalisation layers.
        pub norm_place: NormPlace = NormPlace::Pre,
        /// Activation of the feed-forward network.
        pub activation: ActivationKind = ActivationKind::Relu,
        /// Whether linear maps have a bias.
        pub bias: bool = true,
        /// Whether the maps to queries, keys and values have a bias although the others have none, as in Qwen2. Not
        /// serialized if false, so that keys of older records stay valid.
        #[serde(skip_serializing_if = "std::ops::Not::not")]
        pub qkv_bias: bool = false,
        /// Normalisation of queries and keys. Not serialized if there is none, so that keys of older records stay valid.
        #[serde(skip_serializing_if = "is_default")]
        pub qk_norm: QkNormKind = QkNormKind::None,
        /// Whether the output of attention is multiplied by a gate, `sigmoid(W x)` of the layer's input, as in Qwen3-Next. Not
        /// serialized if false, so that keys of older records stay valid.
        #[serde(skip_serializing_if = "is_default")]
        pub output_gate: bool = false,
        /// Whether the head shares its weights with the token embeddings.
        pub tied_head: bool = false,
        /// Whether token embeddings are multiplied by `sqrt(width)`, as in Gemma. Not serialized if false, so that keys of older
        /// records stay valid.
        #[serde(skip_serializing_if = "is_default")]
        pub scaled_embedding: bool = false,
        /// Bound `c` of the logits of the next token, `c tanh(z / c)`, as in Gemma 2; `None`: no bound. Not serialized if `None`,
        /// so that keys of older records stay valid.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub head_cap: Option<f64> = None,
        /// Share of activations dropped in training, after embedding, attention and feed-forward network.
        pub dropout: f64 = 0.0,
        /// Initialization of the weights.
        pub init: Init = Init::FanIn,
        /// Softmax attention, or all weight on the largest logit with the gradient of the softmax (a baseline of CoPE).
        /// Not serialized if soft, so that keys of older records stay valid.
        #[serde(skip_serializing_if = "is_default")]
        pub attention: AttentionKind = AttentionKind::Soft,
    }
}

/// Maximum number of operations of one training step, so that counts including the encoding's fit 64 bits.
pub const MOST_STEP_OPERATIONS: f64 = 1e18;

/// Maximum number of layers. This and the following limits are far above any trained model, and products of them fit
/// 64-bit integers.
const MOST_LAYERS: usize = 1 << 12;
const MOST_WIDTH: usize = 1 << 18;

/// Invalid setting of a model.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("model.{field} is {value}, expected {expected}; change `{field}` under [model]")]
pub struct ModelError {
    /// Name of the invalid field.
    pub field: &'static str,
    /// Value of the field.
    pub value: String,
    /// Description of the accepted values.
    pub expected: String,
}

impl ModelConfig {
    /// Checks the settings.
    ///
    /// # Errors
    /// [`ModelError`], which names the field.
    pub fn check(&self) -> Result<(), ModelError> {
        let error = |field, value: String, expected: &str| {
            Err(ModelError { field, value, expected: expected.to_owned() })
        };
        for (field, value, most) in [
            ("layers", self.layers, MOST_LAYERS),
            ("width", self.width, MOST_WIDTH),
            ("heads", self.heads, MOST_WIDTH),
            ("head_dim", self.head_dim.unwrap_or(1), MOST_WIDTH / self.heads.max(1)),
            ("kv_heads", self.kv_heads(), MOST_WIDTH),
            ("feed_forward_width", self.feed_forward_width.unwrap_or(1), 4 * MOST_WIDTH),
        ] {
            if value == 0 || value > most {
                return error(field, value.to_string(), &format!("1 to {most}"));
            }
        }
        if self.head_dim.is_none() && !self.width.is_multiple_of(self.heads) {
            let expected = format!("a divisor of `width`, which is {}", self.width);
            return error("heads", self.heads.to_string(), &expected);
        }
        if !self.heads.is_multiple_of(self.kv_heads()) {
            let expected = format!("a divisor of `heads`, which is {}", self.heads);
            return error("kv_heads", self.kv_heads().to_string(), &expected);
        }
        match self.norm_epsilon {
            Some(epsilon) if self.norm != NormKind::RmsNorm => {
                return error(
                    "norm_epsilon",
                    epsilon.to_string(),
                    "no value, because `norm` is layer-norm",
                );
            }
            Some(epsilon) if !(epsilon.is_finite() && epsilon > 0.0) => {
                return error("norm_epsilon", epsilon.to_string(), "a number above 0");
            }
            _ => {}
        }
        if let Some(cap) = self.head_cap.filter(|cap| !(cap.is_finite() && *cap > 0.0)) {
            return error("head_cap", cap.to_string(), "a number above 0");
        }
        if !(0.0..1.0).contains(&self.dropout) {
            return error("dropout", self.dropout.to_string(), "at least 0 and below 1");
        }
        Ok(())
    }

    /// Hidden width of the feed-forward network.
    pub fn hidden(&self) -> usize {
        self.feed_forward_width.unwrap_or(4 * self.width)
    }

    /// Number of heads of keys and values.
    pub fn kv_heads(&self) -> usize {
        self.kv_heads.unwrap_or(self.heads)
    }

    /// Gains of the normalisation of queries and keys in a layer; `None` without one.
    pub(super) fn qk_gains(&self) -> Option<GainCounts> {
        let (head_dim, queries) = (self.head_dim(), self.heads_width());
        match self.qk_norm {
            QkNormKind::None => None,
            QkNormKind::Head => Some(GainCounts { queries: head_dim, keys: head_dim }),
            QkNormKind::Width => Some(GainCounts { queries, keys: self.kv_width() }),
        }
    }

    /// Factor of the token embeddings; `None`: they are not scaled.
    pub fn embedding_scale(&self) -> Option<f64> {
        self.scaled_embedding.then(|| (self.width as f64).sqrt())
    }

    /// Whether embeddings are scaled or the logits of the next token are bounded.
    pub fn is_scaled(&self) -> bool {
        self.scaled_embedding || self.head_cap.is_some()
    }

    /// Number of channels of a head.
    pub fn head_dim(&self) -> usize {
        self.head_dim.unwrap_or(self.width / self.heads)
    }

    /// Total width of the queries of a token, and of the output of attention.
    pub fn heads_width(&self) -> usize {
        self.head_dim() * self.heads
    }

    /// Total width of the keys, and of the values, of a token.
    pub fn kv_width(&self) -> usize {
        self.head_dim() * self.kv_heads()
    }

    /// Sizes for which encodings are built.
    pub fn dims(&self, train_len: usize, max_len: usize) -> Dims {
        Dims {
            layers: self.layers,
            width: self.width,
            heads: self.heads,
            head_dim: self.head_dim(),
            train_len,
            max_len,
        }
    }

    /// Approximate number of floating-point operations of a training step on `batch_size` sequences of `len` tokens, without
    /// those of the encoding.
    pub fn step_operations(&self, vocabulary: usize, len: usize, batch_size: usize) -> f64 {
        let [layers, width, channels, hidden, len] =
            [self.layers, self.width, self.heads_width(), self.hidden(), len]
                .map(|size| size as f64);
        let block = 4.0 * width * channels + (self.ways_in() + 1) as f64 * hidden * width;
        let token = layers * (block + 2.0 * len * channels) + width * vocabulary as f64;
        6.0 * batch_size as f64 * len * token
    }

    /// Number of matrices of the feed-forward network that map to its hidden width.
    fn ways_in(&self) -> usize {
        if self.activation.is_gated() { 2 } else { 1 }
    }

    /// Number of normalisations of a block, without those of queries and keys.
    fn norms(&self) -> usize {
        if self.norm_place == NormPlace::Both { 4 } else { 2 }
    }

    /// Number of learned parameters without those of the encoding.
    pub fn param_count(&self, vocabulary: usize) -> usize {
        let (width, hidden, ways_in) = (self.width, self.hidden(), self.ways_in());
        let linear =
            |inputs: usize, outputs: usize| inputs * outputs + if self.bias { outputs } else { 0 };
        let norm = if self.norm == NormKind::LayerNorm { 2 * width } else { width };
        let channels = self.heads_width();
        let projected = channels + 2 * self.kv_width();
        let qkv_bias = if self.qkv_bias && !self.bias { projected } else { 0 };
        let block = linear(width, projected)
            + qkv_bias
            + linear(channels, width)
            + self.qk_gains().map_or(0, |gains| gains.queries + gains.keys)
            + if self.output_gate { linear(width, channels) } else { 0 }
            + linear(width, ways_in * hidden)
            + linear(hidden, width)
            + self.norms() * norm;
        let last_norm = if self.norm_place.is_before_head() { norm } else { 0 };
        let head = if self.tied_head { 0 } else { linear(width, vocabulary) };
        vocabulary * width + self.layers * block + last_norm + head
    }

    /// Cost of one forward pass over `len` tokens, without that of the encoding. All pairs of tokens are counted, and
    /// the head for every token. Embedding look-ups are free, and dropout is off.
    pub fn cost(&self, vocabulary: usize, len: usize) -> Cost {
        let Self { layers, width, heads, .. } = *self;
        let (hidden, ways_in) = (self.hidden(), self.ways_in());
        let (channels, kv_width) = (self.heads_width(), self.kv_width());
        let tokens = layers * len;
        let pairs = tokens * len;
        // Operations per element; the error function counts as one.
        let (activation, each) = match self.activation {
            ActivationKind::Relu => ("ReLU", 1),
            ActivationKind::Gelu => ("GELU", 5),
            ActivationKind::SwiGlu => ("SiLU", 4),
            ActivationKind::GeGlu => ("GELU", 9),
        };
        // Sum, subtraction, square, sum, product, gain, offset; or square, sum, product, gain.
        let norm_each = if self.norm == NormKind::LayerNorm { 7 } else { 4 };
        let norms = self.norms() * tokens + if self.norm_place.is_before_head() { len } else { 0 };
        let mut cost = Cost::none()
            .product("queries, keys, values, output", tokens * width * 2 * (channels + kv_width))
            .product("feed-forward", tokens * (ways_in + 1) * hidden * width)
            .product("head", len * width * vocabulary)
            .pair_product("queries with keys, weights with values", 2 * pairs * channels)
            .pair_elementwise("division by sqrt(D)", pairs * heads)
            // Largest, subtraction, exponential, sum, division.
            .pair_activation("softmax", pairs * heads, 5)
            .activation(activation, tokens * hidden, each)
            .elementwise("normalisation", norm_each * norms * width)
            .elementwise("residual sums", 2 * tokens * width);
        if self.activation.is_gated() {
            cost = cost.elementwise("gating", tokens * hidden);
        }
        if self.qk_norm != QkNormKind::None {
            cost = cost.elementwise(
                "normalisation of queries and keys",
                4 * tokens * (channels + kv_width),
            );
        }
        if self.output_gate {
            cost = cost
                .product("output gate", tokens * width * channels)
                // Sigmoid, product.
                .elementwise("gating of the output", 5 * tokens * channels);
        }
        if self.bias {
            let head = if self.tied_head { 0 } else { vocabulary };
            let gate = if self.output_gate { channels } else { 0 };
            let per_token = channels + 2 * kv_width + gate + 2 * width + ways_in * hidden;
            cost = cost.elementwise("biases", tokens * per_token + len * head);
        } else if self.qkv_bias {
            cost = cost.elementwise("biases", tokens * (channels + 2 * kv_width));
        }
        if self.scaled_embedding {
            cost = cost.elementwise("scaling of embeddings", len * width);
        }
        if self.head_cap.is_some() {
            // Division, hyperbolic tangent, product.
            cost = cost.activation("bound of logits", len * vocabulary, 3);
        }
        cost
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tapes_155m_model_has_its_published_size() {
        let tape = ModelConfig {
            layers: 12,
            width: 768,
            heads: 12,
            feed_forward_width: Some(3072),
            norm: NormKind::RmsNorm,
            activation: ActivationKind::SwiGlu,
            bias: false,
            init: Init::Normal002,
            ..ModelConfig::default()
        };
        assert_eq!(tape.param_count(32_000), 162_417_408);
        // Table 3 of the paper: 160.46 G multiply-accumulates for 1024 tokens.
        assert_eq!(tape.cost(32_000, 1024).macs(), 160_457_293_824);
    }

    #[test]
    fn smollm2_has_its_published_size() {
        let smollm2 = ModelConfig {
            layers: 30,
            width: 576,
            heads: 9,
            kv_heads: Some(3),
            feed_forward_width: Some(1536),
            norm: NormKind::RmsNorm,
            norm_epsilon: Some(1e-5),
            activation: ActivationKind::SwiGlu,
            bias: false,
            tied_head: true,
            ..ModelConfig::default()
        };
        smollm2.check().unwrap();
        assert_eq!(smollm2.param_count(49_152), 134_515_008);
    }

    #[test]
    fn a_bias_of_queries_keys_and_values_is_counted_once_and_written_only_if_chosen() {
        let plain = ModelConfig { bias: false, ..ModelConfig::default() };
        let qwen2 = ModelConfig { qkv_bias: true, ..plain.clone() };
        assert_eq!(qwen2.param_count(10) - plain.param_count(10), 2 * 3 * 64);
        let both = ModelConfig { qkv_bias: true, ..ModelConfig::default() };
        assert_eq!(both.param_count(10), ModelConfig::default().param_count(10));
        assert!(serde_json::to_value(&plain).unwrap().get("qkv_bias").is_none());
        assert_eq!(serde_json::to_value(&qwen2).unwrap()["qkv_bias"], true);
    }

    #[test]
    fn groups_and_epsilon_are_written_only_where_they_are_chosen() {
        let plain = serde_json::to_value(ModelConfig::default()).unwrap();
        assert!(plain.get("kv_heads").is_none() && plain.get("norm_epsilon").is_none());
        let grouped = ModelConfig { heads: 4, kv_heads: Some(2), ..ModelConfig::default() };
        assert_eq!(serde_json::to_value(&grouped).unwrap()["kv_heads"], 2);
        let refused = |model: ModelConfig, expected: &str| {
            let error = model.check().unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        };
        refused(ModelConfig { kv_heads: Some(3), ..grouped.clone() }, "model.kv_heads is 3");
        refused(ModelConfig { kv_heads: Some(0), ..grouped.clone() }, "model.kv_heads is 0");
        refused(
            ModelConfig { norm_epsilon: Some(1e-6), ..grouped },
            "no value, because `norm` is layer-norm",
        );
    }

    #[test]
    fn soft_attention_is_not_written_and_hard_is() {
        let written =
            |model: &ModelConfig| serde_json::to_value(model).unwrap()["attention"].clone();
        let hard = ModelConfig { attention: AttentionKind::Hard, ..ModelConfig::default() };
        assert_eq!(written(&ModelConfig::default()), serde_json::Value::Null);
        assert_eq!(written(&hard), "hard");
        let read = serde_json::from_value::<ModelConfig>(serde_json::to_value(&hard).unwrap());
        assert_eq!(read.unwrap(), hard);
    }

    #[test]
    fn heads_that_do_not_divide_the_width_are_refused_by_name() {
        let model = ModelConfig { heads: 3, ..ModelConfig::default() };
        let error = model.check().unwrap_err().to_string();
        assert!(
            error.contains("model.heads is 3") && error.contains("`width`, which is 64"),
            "{error}"
        );
    }
}
