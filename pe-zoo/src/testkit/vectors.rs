//! Test vectors: inputs, logits, outputs and gradients of the scalar f64 reference, for implementations in other languages.

use burn::module::{Module, ModuleVisitor, Param};
use burn::tensor::Tensor;
use serde::Serialize;
use serde_json::Value;

use super::checks::derivatives::{Differences, WeightedLoss};
use super::{check_parameters, random};
use crate::encoding::Constant;
use crate::probe::close::numbers;
use crate::probe::passes::DIMS;
use crate::reference::{Heads, ScalarInput, Tokens, attention};
use crate::{Combination, Dims, Hooks};

/// Largest number of tokens of test vectors: scalar loops are slow.
pub const MOST_VECTOR_TOKENS: usize = 64;

/// Largest number of parameters, each of which has a difference of its own.
const MOST_PARAMETERS: usize = 1 << 16;

/// Test vectors of one encoding with random parameters, in f64.
///
/// Queries, keys, values, `x` and parameters are exact in f32. Gradients are those of `loss`, by central differences of
/// the reference, with about nine correct digits.
#[derive(Debug, Clone, Serialize)]
pub struct TestVectors {
    /// Canonical text of the encoding.
    pub encoding: String,
    /// Id and settings of the encoding ([`Combination::identity`]).
    pub settings: Value,
    /// Sizes that the encoding is built for.
    pub dims: VectorDims,
    /// Ids of the tokens, `[T]`.
    pub ids: Vec<usize>,
    /// Positions of the tokens, `[T]`.
    pub positions: Vec<usize>,
    /// Layer inputs, and embeddings before the encoding, `[T][C]`.
    pub x: Tokens,
    /// Queries before the encoding, `[H][T][D]`.
    pub q: Heads,
    /// Keys before the encoding, `[H][T][D]`.
    pub k: Heads,
    /// Values of every layer, `[H][T][D]`.
    pub v: Heads,
    /// Parameters of the encoding, in the order of a visit.
    pub parameters: Vec<VectorParameter>,
    /// Tensors that were drawn when the encoding was built and are never trained, such as the mixtures of FoPE.
    pub constants: Vec<Constant>,
    /// Embeddings after the encoding, `[T][C]`.
    pub embedded: Tokens,
    /// Results of each layer, without state from the layer before.
    pub layers: Vec<LayerVectors>,
    /// Sum over all layers of the products of outputs and `output_weights`, and of `embedded` and `embedding_weights`.
    pub loss: f64,
    /// `sin(1 + 2.3 n)` for entry `n` of an output, `[H T D]`.
    pub output_weights: Vec<f64>,
    /// The same for the embeddings, `[T C]`.
    pub embedding_weights: Vec<f64>,
    /// Gradients of the `loss`.
    pub gradients: VectorGradients,
}

/// Sizes of the test vectors.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct VectorDims {
    /// Number of attention layers.
    pub layers: usize,
    /// Number of heads per layer.
    pub heads: usize,
    /// Number of channels of one head.
    pub head_dim: usize,
    /// Longest training sequence in tokens.
    pub train_len: usize,
    /// Longest sequence in tokens.
    pub max_len: usize,
}

/// A parameter with its values in row-major order.
#[derive(Debug, Clone, Serialize)]
pub struct VectorParameter {
    /// Path of the parameter in the module.
    pub name: String,
    /// Dimensions of the parameter.
    pub shape: Vec<usize>,
    /// Values in row-major order.
    pub values: Vec<f64>,
}

/// Results of one layer.
#[derive(Debug, Clone, Serialize)]
pub struct LayerVectors {
    /// Logits before the softmax, `[H][row][column]` for the columns up to the row; empty if the encoding replaces
    /// the softmax.
    pub logits: Heads,
    /// Attention weights, in the same shape.
    pub weights: Heads,
    /// Output of the attention, `[H][T][D]`.
    pub output: Heads,
}

/// Gradients of the loss, in the shapes of the inputs.
#[derive(Debug, Clone, Serialize)]
pub struct VectorGradients {
    /// Gradient with respect to the queries, `[H][T][D]`.
    pub q: Heads,
    /// Gradient with respect to the keys, `[H][T][D]`.
    pub k: Heads,
    /// Gradient with respect to the values, `[H][T][D]`.
    pub v: Heads,
    /// Gradient with respect to `x`, `[T][C]`.
    pub x: Tokens,
    /// Gradients with respect to the parameters, each in row-major order.
    pub parameters: Vec<Vec<f64>>,
}

/// Computes test vectors for `tokens` tokens; `seed` draws the inputs.
///
/// # Errors
///
/// Message, if the encoding has no scalar reference, refuses the sizes, has more than 65,536 parameters, or has no
/// derivative at its random parameters.
///
/// # Panics
///
/// If `tokens` is 0 or above [`MOST_VECTOR_TOKENS`].
pub fn vectors(config: &Combination, tokens: usize, seed: u64) -> Result<TestVectors, String> {
    assert!((1..=MOST_VECTOR_TOKENS).contains(&tokens), "{tokens} tokens");
    check_parameters(config, MOST_PARAMETERS).map_err(|error| error.to_string())?;
    let encoding = random(config, &crate::probe::device().autodiff())?;
    if encoding.reference().is_none() {
        return Err(format!(
            "`{config}` has no scalar reference; implement `reference` of its encodings"
        ));
    }
    let differences = Differences::of(encoding, WeightedLoss::new(tokens, seed))?;
    let (loss, reference) = (&differences.loss, differences.reference());
    let input = loss.problem.scalar(0, 0, &loss.at);
    let replaces_softmax = config.properties().is_ok_and(|found| found.replaces_softmax);
    let layers = (0..differences.encoding.layers).map(|layer| {
        let input = ScalarInput { layer, ..input.clone() };
        let weights = reference.scalar_weights(&input);
        LayerVectors {
            logits: if replaces_softmax { Heads::new() } else { reference.scalar_logits(&input) },
            output: attention::mix(&weights, &input.v),
            weights,
        }
    });
    let per_head = |flat: Vec<f64>| -> Heads {
        let heads = flat.chunks(tokens * DIMS.head_dim);
        heads.map(|head| head.chunks(DIMS.head_dim).map(<[f64]>::to_vec).collect()).collect()
    };
    let gradient = |name: &str, len: usize| -> Vec<f64> {
        (0..len).map(|entry| differences.input(&input, name, entry)).collect()
    };
    let len = DIMS.heads * tokens * DIMS.head_dim;
    let mut parameters = ParameterCollector::default();
    differences.encoding.visit(&mut parameters);
    let parameters = parameters.found;
    let gradients = VectorGradients {
        q: per_head(gradient("queries", len)),
        k: per_head(gradient("keys", len)),
        v: per_head(gradient("values", len)),
        x: gradient("layer inputs", tokens * DIMS.width)
            .chunks(DIMS.width)
            .map(<[f64]>::to_vec)
            .collect(),
        parameters: parameters
            .iter()
            .enumerate()
            .map(|(index, parameter)| {
                let entries = 0..parameter.values.len();
                entries.map(|entry| differences.parameter(&input, index, entry)).collect()
            })
            .collect(),
    };
    let Dims { layers: count, heads, head_dim, train_len, max_len, .. } = super::dims(config);
    Ok(TestVectors {
        encoding: config.to_string(),
        settings: config.identity(),
        dims: VectorDims { layers: count, heads, head_dim, train_len, max_len },
        ids: loss.problem.tokens[0].clone(),
        positions: input.positions.clone(),
        embedded: reference.scalar_embed(&input.x, &loss.problem.tokens[0], loss.at.cols()),
        layers: layers.collect(),
        loss: loss.scalar(&differences.encoding, &input),
        constants: differences.encoding.constants(),
        output_weights: loss.output.clone(),
        embedding_weights: loss.embedding.clone(),
        gradients,
        parameters,
        x: input.x,
        q: input.q,
        k: input.k,
        v: input.v,
    })
}

#[derive(Default)]
struct ParameterCollector {
    path: Vec<String>,
    found: Vec<VectorParameter>,
}

impl ModuleVisitor for ParameterCollector {
    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        let tensor = param.val();
        let (name, shape) = (self.path.join("."), tensor.dims().to_vec());
        self.found.push(VectorParameter { name, shape, values: numbers(tensor) });
    }

    fn enter_module(&mut self, name: &str, _container: &str) {
        self.path.push(name.to_owned());
    }

    fn exit_module(&mut self, _name: &str, _container: &str) {
        self.path.pop();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Registry;
    use crate::probe::close::{self, DERIVATIVE, F32};
    use crate::probe::passes::embedded;
    use crate::reference::dot;
    use crate::testkit::passes::full_pass;

    #[test]
    fn every_encoding_has_vectors_that_the_engine_gives_too() {
        for id in Registry::builtin().cards().map(|card| card.id) {
            let config = Combination::parse(id).unwrap();
            let found = vectors(&config, 3, 5).unwrap();
            let device = crate::probe::device().autodiff();
            let encoding = random(&config, &device).unwrap();
            let loss = WeightedLoss::new(3, 5);
            let Ok(encoding) = Differences::of(encoding, loss) else { continue };
            let slopes = encoding.loss.engine(&encoding.encoding, &device).unwrap();
            let flat =
                |heads: &Heads| heads.iter().flatten().flatten().copied().collect::<Vec<_>>();
            let VectorGradients { q, k, v, x, parameters } = &found.gradients;
            let ours = [flat(q), flat(k), flat(v), x.concat()];
            for ((name, theirs), ours) in slopes.inputs.iter().zip(&ours) {
                close::compare(theirs, ours, DERIVATIVE)
                    .unwrap_or_else(|e| panic!("{id}, {name}: {e}"));
            }
            assert_eq!(slopes.parameters.len(), parameters.len(), "{id}");
            for (theirs, ours) in slopes.parameters.iter().zip(parameters) {
                close::compare(theirs, ours, DERIVATIVE).unwrap_or_else(|e| panic!("{id}: {e}"));
            }
            let WeightedLoss { problem, at, output, embedding } = &encoding.loss;
            let times = |values: &[f64], weights: &[f64]| {
                values.iter().zip(weights).map(|(a, b)| a * b).sum::<f64>()
            };
            let theirs = numbers(embedded(&encoding.encoding, problem, at, &device));
            close::compare(&found.embedded.concat(), &theirs, F32)
                .unwrap_or_else(|e| panic!("{id}, embedding: {e}"));
            let mut loss = times(&theirs, embedding);
            assert_eq!(found.layers.len(), encoding.encoding.layers, "{id}");
            for (index, layer) in found.layers.iter().enumerate() {
                let theirs = numbers(full_pass(&encoding.encoding, problem, at, index, &device));
                close::compare(&flat(&layer.output), &theirs, F32)
                    .unwrap_or_else(|e| panic!("{id}, layer {index}: {e}"));
                loss += times(&theirs, output);
                if !layer.logits.is_empty() && id != "sinks" {
                    let weights = flat(&attention::softmax(&layer.logits));
                    close::compare(&flat(&layer.weights), &weights, F32)
                        .unwrap_or_else(|e| panic!("{id}, logits of layer {index}: {e}"));
                }
                for row in layer.weights.iter().flatten() {
                    assert!(row.iter().sum::<f64>() <= 1.0 + 1e-12, "{id}: {row:?}");
                }
            }
            close::compare(&[found.loss], &[loss], DERIVATIVE)
                .unwrap_or_else(|e| panic!("{id}, loss: {e}"));
        }
    }

    #[test]
    fn gradients_have_nine_digits() {
        let config = Combination::parse("alibi").unwrap();
        let found = vectors(&config, 4, 1).unwrap();
        // The gradient of the values is known: the attention weights times the weights of the loss.
        for (h, head) in found.gradients.v.iter().enumerate() {
            for (column, gradient) in head.iter().enumerate() {
                for (d, gradient) in gradient.iter().enumerate() {
                    let exact = found.layers.iter().flat_map(|layer| {
                        let rows = layer.weights[h].iter().enumerate().skip(column);
                        rows.map(|(row, weights)| {
                            let entry = (h * 4 + row) * DIMS.head_dim + d;
                            weights[column] * found.output_weights[entry]
                        })
                    });
                    let exact = exact.sum::<f64>();
                    assert!((gradient - exact).abs() < 1e-8, "{gradient} and {exact}");
                }
            }
        }
        // That of the queries passes the softmax, of which a difference is not exact.
        let root = (DIMS.head_dim as f64).sqrt();
        for (h, head) in found.gradients.q.iter().enumerate() {
            for (row, gradient) in head.iter().enumerate() {
                let from = (h * 4 + row) * DIMS.head_dim;
                let upstream = &found.output_weights[from..from + DIMS.head_dim];
                let mut exact = vec![0.0; DIMS.head_dim];
                for layer in &found.layers {
                    let mean = dot(upstream, &layer.output[h][row]);
                    for (column, weight) in layer.weights[h][row].iter().enumerate() {
                        let slope = weight * (dot(upstream, &found.v[h][column]) - mean) / root;
                        for (exact, key) in exact.iter_mut().zip(&found.k[h][column]) {
                            *exact += slope * key;
                        }
                    }
                }
                for (gradient, exact) in gradient.iter().zip(&exact) {
                    assert!((gradient - exact).abs() < 1e-8, "{gradient} and {exact}");
                }
            }
        }
    }
}
