//! Compares the attention of a block with its formulas in scalar f64, under the settings of the model that change it:
//! normalised queries and keys, heads that share keys and values, and the gate of the output.

use burn::module::{Param, ParamId};
use burn::nn::Linear;
use burn::tensor::{Device, Tensor, TensorData};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;

use super::super::config::{ModelConfig, NormKind, QkNormKind};
use super::super::dropout::Dropout;
use super::super::layers::{AnyNorm, FeedForward};
use super::super::projections::QueryKeyNorm;
use super::super::weights::{QkGains, learned};
use super::{DecoderBlock, Through};
use crate::attention::{Engine, Weights};
use crate::compose::Combined;
use crate::ops::MatmulPrecision;
use crate::probe::close::{self, DERIVATIVE, DERIVATIVE_STEP, F32, Tolerance, numbers};
use crate::probe::passes::DIMS;
use crate::reference::{Heads, ScalarInput, ScalarReference, Tokens, attention, dot};
use crate::{Hooks, Positions, TokenState};

const TOKENS: usize = 9;
const WIDTH: usize = DIMS.width;
const HEADS: usize = DIMS.heads;
const EPSILON: f64 = 1e-3;

/// Tolerance of gradients: the weights of a block are so small that its gradients are more accurate than others.
const GRADIENT: Tolerance = Tolerance { absolute: 2e-4, ..DERIVATIVE };

/// Number of entries compared in each tensor, about.
const TRIED: usize = 5;

/// Names and shapes of the inputs of a block's attention.
const INPUTS: [&str; 8] = [
    "layer inputs",
    "gains of the normalisation",
    "projection of queries, keys and values",
    "gains of queries",
    "gains of keys",
    "projection of the gate",
    "bias of the gate",
    "projection of the output",
];

/// Compares the output of a block's attention under an encoding with its formulas, and the gradients with central differences
/// of these, in both engines; `None` if the encoding has no scalar reference. The encoding has the sizes of the probes, and
/// `device` computes gradients.
pub(crate) fn equals_formulas(encoding: &Combined, device: &Device) -> Option<Result<(), String>> {
    let reference = encoding.reference()?;
    let settings = [
        (QkNormKind::None, false),
        (QkNormKind::Head, false),
        (QkNormKind::Width, false),
        (QkNormKind::None, true),
        (QkNormKind::Head, true),
    ];
    let compared = settings.into_iter().try_for_each(|(qk_norm, output_gate)| {
        let case = Case::new(
            encoding,
            reference,
            ModelConfig {
                layers: 1,
                width: WIDTH,
                heads: HEADS,
                kv_heads: Some(1),
                norm: NormKind::RmsNorm,
                norm_epsilon: Some(EPSILON),
                bias: false,
                qk_norm,
                output_gate,
                ..ModelConfig::default()
            },
        );
        [Engine::Reference, Engine::best(device)].into_iter().try_for_each(|engine| {
            case.agrees(engine, device).map_err(|found| {
                format!(
                    "qk_norm = {qk_norm:?} and output_gate = {output_gate} under [model], {} engine: {found}",
                    engine.id()
                )
            })
        })
    });
    Some(compared)
}

/// The settings that are compared, and the inputs that they have.
struct Case<'a> {
    config: ModelConfig,
    encoding: &'a Combined,
    reference: &'a dyn ScalarReference,
    /// Numbers of each of [`INPUTS`] in row-major order; empty if the model does not have it.
    inputs: [Vec<f64>; 8],
}

/// Output of a block, and the gradients of its weighted sum by each of [`INPUTS`].
struct ModelPass {
    output: Vec<f64>,
    gradients: Vec<Vec<f64>>,
}

fn drawn(count: usize, seed: f64, about: f64) -> Vec<f64> {
    // Numbers of f32, so that both sides have the same.
    (0..count).map(|n| f64::from((about + 0.4 * (seed + 1.7 * n as f64).sin()) as f32)).collect()
}

impl<'a> Case<'a> {
    fn new(
        encoding: &'a Combined,
        reference: &'a dyn ScalarReference,
        config: ModelConfig,
    ) -> Self {
        let gains = config.qk_gains();
        let gate = if config.output_gate { WIDTH } else { 0 };
        let inputs = [
            drawn(TOKENS * WIDTH, 1.0, 0.0),
            drawn(WIDTH, 2.0, 1.0),
            drawn(WIDTH * (WIDTH + 2 * config.kv_width()), 3.0, 0.0),
            drawn(gains.as_ref().map_or(0, |gains| gains.queries), 4.0, 1.0),
            drawn(gains.as_ref().map_or(0, |gains| gains.keys), 5.0, 1.0),
            drawn(gate * WIDTH, 6.0, 0.0),
            drawn(gate, 7.0, 0.0),
            drawn(WIDTH * WIDTH, 8.0, 0.0),
        ];
        Self { config, encoding, reference, inputs }
    }

    /// Compares the block of the model with the formulas.
    fn agrees(&self, engine: Engine, device: &Device) -> Result<(), String> {
        let ModelPass { output, gradients } = self.by_model(engine, device);
        close::compare(&output, &self.by_formula(&self.inputs), F32)
            .map_err(|found| format!("output: {found}"))?;
        for (at, name) in INPUTS.iter().enumerate() {
            let count = self.inputs[at].len();
            if gradients[at].len() != count {
                return Err(format!("{name}: no gradient"));
            }
            for entry in (0..count).step_by((count / TRIED).max(1)) {
                let moved = |by: f64| {
                    let mut inputs = self.inputs.clone();
                    inputs[at][entry] += by;
                    self.loss(&inputs)
                };
                let difference =
                    (moved(DERIVATIVE_STEP) - moved(-DERIVATIVE_STEP)) / (2.0 * DERIVATIVE_STEP);
                close::compare_one(gradients[at][entry], difference, GRADIENT).map_err(
                    |found| {
                        format!(
                            "{name}: element {entry} (counted from 0) of the gradient is {found}"
                        )
                    },
                )?;
            }
        }
        Ok(())
    }

    /// Runs the block of the model.
    fn by_model(&self, engine: Engine, device: &Device) -> ModelPass {
        let leaves = self.inputs.each_ref().map(|values| {
            let values = values.iter().map(|x| *x as f32).collect::<Vec<_>>();
            let count = values.len();
            Tensor::<1>::from_data(TensorData::new(values, [count]), device).require_grad()
        });
        let [x, norm, qkv, queries, keys, gate, gate_bias, out] = leaves.clone();
        let map = |weight: Tensor<1>, outputs: usize, bias: Option<Tensor<1>>| Linear {
            // Not a leaf: its gradient is that of the leaf that was reshaped.
            weight: Param::initialized(ParamId::new(), weight.reshape([WIDTH, outputs])),
            bias: bias.map(learned),
        };
        let mut rng = ChaCha8Rng::seed_from_u64(2);
        let hidden = self.config.hidden();
        let zeros = |shape: [usize; 2]| Linear {
            weight: learned(Tensor::zeros(shape, device)),
            bias: None,
        };
        let block = DecoderBlock {
            attention_norm: AnyNorm::of(&self.config, norm),
            qkv: map(qkv, WIDTH + 2 * self.config.kv_width(), None),
            qk_norm: (self.config.qk_norm != QkNormKind::None)
                .then(|| QueryKeyNorm::of(&self.config, QkGains { queries, keys })),
            gate: self.config.output_gate.then(|| map(gate, WIDTH, Some(gate_bias))),
            out: map(out, WIDTH, None),
            // The block returns its input plus the output of attention.
            feed_forward: FeedForward::of(
                &self.config,
                zeros([WIDTH, hidden]),
                zeros([hidden, WIDTH]),
            ),
            ..DecoderBlock::new(&self.config, &mut rng, device)
        };
        let at = Positions::contiguous(0, TOKENS);
        let through = Through {
            encoding: self.encoding,
            at: &at,
            weights: Weights::Drop,
            engine,
            groups: None,
            precision: MatmulPrecision::F32,
            rows: None,
        };
        let x = x.reshape([1, TOKENS, WIDTH]);
        let state = TokenState::default();
        let (output, ..) = block.forward(0, x, &state, &through, None, &mut Dropout::off());
        let weights = Tensor::<1>::from_data(
            TensorData::new(weights().map(|w| w as f32).collect::<Vec<_>>(), [TOKENS * WIDTH]),
            device,
        );
        let loss = (output.clone() * weights.reshape([1, TOKENS, WIDTH])).sum();
        let gradients = loss.backward();
        let of = |leaf: &Tensor<1>| leaf.grad(&gradients).map(numbers).unwrap_or_default();
        ModelPass { output: numbers(output), gradients: leaves.iter().map(of).collect() }
    }

    /// Output of the block by the formulas.
    fn by_formula(&self, inputs: &[Vec<f64>; 8]) -> Vec<f64> {
        let [x, norm, qkv, query_gains, key_gains, gate, gate_bias, out] = inputs;
        let x = rows(x, WIDTH);
        let input = x.iter().map(|x| normalised(x, norm)).collect::<Tokens>();
        let (head_dim, kv_width) = (self.config.head_dim(), self.config.kv_width());
        let kv_heads = self.config.kv_heads();
        let projected = product(&input, qkv, WIDTH + 2 * kv_width);
        let part = |from: usize, count: usize, gains: &[f64]| -> Tokens {
            let of = |row: &Vec<f64>| normalised_heads(&row[from..from + count], gains, head_dim);
            projected.iter().map(of).collect()
        };
        let by_head = |part: &Tokens, heads: usize| -> Heads {
            // Heads of keys and values serve several heads of queries.
            let of = |h: usize| {
                let from = h * heads / HEADS * head_dim;
                part.iter().map(|row| row[from..from + head_dim].to_vec()).collect()
            };
            (0..HEADS).map(of).collect()
        };
        let problem = ScalarInput {
            layer: 0,
            q: by_head(&part(0, WIDTH, query_gains), HEADS),
            k: by_head(&part(WIDTH, kv_width, key_gains), kv_heads),
            v: by_head(&part(WIDTH + kv_width, kv_width, &[]), kv_heads),
            x: input.clone(),
            positions: (0..TOKENS).collect(),
            unit: 1.0,
            first_row: 0,
        };
        let mixed = attention::mix(&self.reference.scalar_weights(&problem), &problem.v);
        let mut mixed = (0..TOKENS)
            .map(|t| mixed.iter().flat_map(|head| head[t].clone()).collect())
            .collect::<Tokens>();
        if self.config.output_gate {
            let logits = product(&input, gate, WIDTH);
            for (mixed, logits) in mixed.iter_mut().zip(logits) {
                for ((value, logit), bias) in mixed.iter_mut().zip(logits).zip(gate_bias) {
                    *value /= 1.0 + (-(logit + bias)).exp();
                }
            }
        }
        let output = product(&mixed, out, WIDTH);
        x.iter().flatten().zip(output.iter().flatten()).map(|(x, output)| x + output).collect()
    }

    fn loss(&self, inputs: &[Vec<f64>; 8]) -> f64 {
        self.by_formula(inputs).into_iter().zip(weights()).map(|(output, w)| output * w).sum()
    }
}

/// Weights of the outputs in the loss.
fn weights() -> impl Iterator<Item = f64> {
    (0..TOKENS * WIDTH).map(|n| f64::from((0.3 + 0.9 * n as f64).cos() as f32))
}

fn rows(values: &[f64], columns: usize) -> Tokens {
    values.chunks(columns).map(<[f64]>::to_vec).collect()
}

fn product(x: &Tokens, map: &[f64], outputs: usize) -> Tokens {
    let column = |n: usize| map.iter().skip(n).step_by(outputs).copied().collect::<Vec<_>>();
    let columns = (0..outputs).map(column).collect::<Vec<_>>();
    x.iter().map(|x| columns.iter().map(|column| dot(x, column)).collect()).collect()
}

/// `gain u / sqrt(mean(u^2) + epsilon)`.
fn normalised(u: &[f64], gains: &[f64]) -> Vec<f64> {
    let root = (dot(u, u) / u.len() as f64 + EPSILON).sqrt();
    u.iter().zip(gains).map(|(u, gain)| gain * u / root).collect()
}

/// Normalises over the channels of each head, or of all heads if there are as many gains; without gains, not at all.
fn normalised_heads(u: &[f64], gains: &[f64], head_dim: usize) -> Vec<f64> {
    match gains.len() {
        0 => u.to_vec(),
        count if count == head_dim => {
            u.chunks(head_dim).flat_map(|head| normalised(head, gains)).collect()
        }
        _ => normalised(u, gains),
    }
}
