//! Biases and slopes: learned parameters that change the logits, or the base bias that a network adapts to the content,
//! by amounts that depend on positions alone.
//!
//! Queries, keys and values have unit scale, and one unit of a logit is a factor of e between attention weights. Adam moves
//! every parameter by about its learning rate per step, whatever the parameter's scale, so that a bias needs as many
//! steps for one unit as a weight matrix needs to be rewritten. Optimizers therefore treat these parameters as a group.

use std::collections::BTreeSet;

use burn::module::{Module, ModuleVisitor, Param, ParamId};
use burn::tensor::{Bool, Device, Gradients, Tensor, TensorData};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;

use super::built_on;
use super::close::numbers;
use super::passes::TOKENS;
use super::problem::{Problem, tensor3, tensor4};
use crate::Dims;
use crate::attention::{base_biases, in_layer, logits};
use crate::erased::AnyEncoding;
use crate::init::standard_normal;
use crate::registry::EncodingConfig;

/// Gradients of random parameters are near 1; those of parameters that the softmax ignores are rounding errors.
const NO_EFFECT: f64 = 1e-4;

/// Largest relative difference of two gradients that counts as rounding.
const ROUNDING: f64 = 1e-3;

/// Quantity whose gradients are compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Of {
    /// The logits.
    Logits,
    /// The base biases, which a network adapts to the content ([`ScoreMod::HeadMlp`](crate::ScoreMod::HeadMlp)).
    BaseBiases,
}

/// Names of the biases and slopes: parameters whose gradient of the logits is the same for other queries, keys and
/// layer inputs. A parameter that shifts all logits of a row alike has no effect on the attention and is none of them.
///
/// A base bias reaches the logits by way of a network as well, where its gradients depend on the content. The gradients
/// of the base bias itself are therefore compared in the same way.
pub(super) fn find(config: &EncodingConfig, dims: &Dims) -> Result<BTreeSet<String>, String> {
    let device = super::device().autodiff();
    let encoding = built_on(config, dims, 0.5, &device)?;
    if encoding.num_params() == 0 {
        return Ok(BTreeSet::new());
    }
    let mut found = positional(&encoding, dims, Of::Logits, &device);
    found.extend(positional(&encoding, dims, Of::BaseBiases, &device));
    Ok(found)
}

/// Names of the parameters that change a quantity by amounts that depend on positions alone.
fn positional(encoding: &AnyEncoding, dims: &Dims, of: Of, device: &Device) -> BTreeSet<String> {
    let [one, other] = [21, 22].map(|seed| gradients(encoding, dims, of, seed, device));
    let (mut positional, mut contextual) = (BTreeSet::new(), BTreeSet::new());
    for (NamedParam { name, gradient: a, .. }, other) in one.into_iter().zip(other) {
        let b = other.gradient;
        let size = a.iter().chain(&b).fold(0.0, |size: f64, x| size.max(x.abs()));
        let same = a.iter().zip(&b).all(|(a, b)| (a - b).abs() <= ROUNDING * size);
        if size > NO_EFFECT {
            if same {
                positional.insert(name)
            } else {
                contextual.insert(name)
            };
        }
    }
    positional.difference(&contextual).cloned().collect()
}

/// Gradient of a fixed sum of a quantity over all visible pairs with regard to each parameter, by name; empty if the
/// parameter does not act on it.
fn gradients(
    encoding: &AnyEncoding,
    dims: &Dims,
    of: Of,
    seed: u64,
    device: &Device,
) -> Vec<NamedParam> {
    let problem = Problem::random(1, TOKENS, dims, seed);
    let x = tensor3(&problem.x, device);
    let q = tensor4(&problem.q, device).require_grad();
    let [k, v] = [&problem.k, &problem.v].map(|heads| tensor4(heads, device));
    let hooks = encoding.hooks();
    let mut rng = ChaCha8Rng::seed_from_u64(23);
    // The sum has a gradient even if no parameter acts on the quantity.
    let mut sum = q.clone().sum() * 0.0;
    for layer in 0..dims.layers {
        let values = in_layer(hooks, layer, &x, |ctx| {
            let (q, k) = hooks.transform_qk(q.clone(), k.clone(), ctx);
            match of {
                Of::Logits => Some(logits(hooks, ctx, &q, &k, &v)),
                Of::BaseBiases => base_biases(hooks, ctx, &q, &k, &v),
            }
        });
        let factors = factors(dims.heads, of, &mut rng, device);
        let Some(values) = values else { continue };
        let hidden = Tensor::<4, Bool>::tril_mask([1, 1, TOKENS, TOKENS], 0, device);
        let visible = values.mask_fill(hidden.expand([1, dims.heads, TOKENS, TOKENS]), 0.0);
        sum = sum + (visible * factors).sum();
    }
    by_name(encoding, Some(&sum.backward()))
}

/// Random factors of the visible pairs, `[1, H, T, T]`. Those of logits sum to 0 in each row, because the softmax
/// ignores a constant; the network that adapts a base bias does not.
fn factors(heads: usize, of: Of, rng: &mut ChaCha8Rng, device: &Device) -> Tensor<4> {
    let mut values = Vec::with_capacity(heads * TOKENS * TOKENS);
    for row in (0..heads).flat_map(|_| 0..TOKENS) {
        let drawn = (0..=row).map(|_| standard_normal(rng)).collect::<Vec<_>>();
        let mean = match of {
            Of::Logits => drawn.iter().sum::<f64>() / drawn.len() as f64,
            Of::BaseBiases => 0.0,
        };
        values.extend(drawn.iter().map(|x| (x - mean) as f32));
        values.extend(std::iter::repeat_n(0.0, TOKENS - row - 1));
    }
    Tensor::from_data(TensorData::new(values, [1, heads, TOKENS, TOKENS]), device)
}

/// Ids of the parameters of an encoding that have one of these names.
pub(crate) fn ids(encoding: &AnyEncoding, names: &BTreeSet<String>) -> BTreeSet<ParamId> {
    let params = by_name(encoding, None).into_iter();
    params.filter(|param| names.contains(&param.name)).map(|param| param.id).collect()
}

/// Float parameter of an encoding.
struct NamedParam {
    name: String,
    id: ParamId,
    /// Empty without gradients, and if nothing depends on the parameter.
    gradient: Vec<f64>,
}

/// Visits the float parameters of an encoding.
fn by_name(encoding: &AnyEncoding, gradients: Option<&Gradients>) -> Vec<NamedParam> {
    let mut visitor = ByName { path: Vec::new(), gradients, found: Vec::new() };
    encoding.visit(&mut visitor);
    visitor.found
}

/// Visitor that names a parameter by the fields that lead to it, without the indices of lists: the parameters of all
/// layers have one name.
struct ByName<'a> {
    path: Vec<String>,
    gradients: Option<&'a Gradients>,
    found: Vec<NamedParam>,
}

impl ModuleVisitor for ByName<'_> {
    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        let name = self.path.iter().filter(|part| !part.is_empty()).cloned().collect::<Vec<_>>();
        let gradient = self.gradients.and_then(|gradients| param.val().grad(gradients));
        let gradient = gradient.map(numbers).unwrap_or_default();
        self.found.push(NamedParam { name: name.join("."), id: param.id, gradient });
    }

    fn enter_module(&mut self, name: &str, container: &str) {
        let is_index = matches!(container, "Vec" | "Array" | "Tuple");
        self.path.push(if is_index { String::new() } else { name.to_owned() });
    }

    fn exit_module(&mut self, _name: &str, _container: &str) {
        self.path.pop();
    }
}
