//! Properties of encodings, found by running them on small random problems.
//!
//! [`properties`] builds an encoding at a small size with random parameters and observes how its
//! outputs change with positions, tokens, heads and lengths, so that nothing needs to be declared.
//! The rules about combinations and the tables of `list` and `explain` read these properties.

mod biases;
pub mod close;
mod observe;
pub(crate) mod passes;
pub mod problem;
mod randomise;
pub(crate) mod sizes;
mod transforms;

pub use randomise::{randomise, randomise_by};

use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use burn::tensor::Device;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;
use serde_json::Value;

use crate::attention::{Engine, Support};
use crate::card::Properties;
use crate::count::macs_of;
use crate::encoding::PositionRequest;
use crate::erased::AnyEncoding;
use crate::registry::{EncodingConfig, Probed};
use crate::{Dims, PeError, Positions};

/// Device on which encodings are probed and counted: the CPU where it is available.
pub fn device() -> Device {
    #[cfg(feature = "flex")]
    return Device::flex();
    #[cfg(not(feature = "flex"))]
    Device::default()
}

/// Properties of an encoding, probed once for each kind and settings.
///
/// # Errors
/// [`PeError::Probe`] if no small size suits the settings, or if the encoding panics.
pub fn properties(config: &EncodingConfig) -> Result<Arc<Properties>, PeError> {
    probed(config, &config.entry().properties, observe::observe)
}

/// Names of the biases and slopes among the parameters of an encoding, probed once for each kind and settings: learned
/// parameters that change the logits, or the base bias that a network adapts to the content, by amounts that depend on
/// positions alone. A parameter is named by the fields of its module, joined by dots; parameters of different layers
/// have the same name.
///
/// # Errors
/// As [`properties`].
pub fn biases(config: &EncodingConfig) -> Result<Arc<BTreeSet<String>>, PeError> {
    probed(config, &config.entry().biases, biases::find)
}

pub(crate) use biases::ids as bias_ids;

/// Probes an encoding unless the result for its settings is known.
fn probed<T>(
    config: &EncodingConfig,
    known: &Probed<T>,
    probe: impl FnOnce(&EncodingConfig, &Dims) -> Result<T, String>,
) -> Result<Arc<T>, PeError> {
    known.get_or_probe(Value::Object(config.fields().clone()).to_string(), || {
        let found = catch_unwind(AssertUnwindSafe(|| {
            let (config, dims) = sized(config)?;
            probe(&config, &dims)
        }));
        found
            .unwrap_or_else(|panic| Err(panic_text(&*panic)))
            .map_err(|reason| refused(config, reason))
    })
}

fn refused(config: &EncodingConfig, reason: String) -> PeError {
    PeError::Probe { pe: config.card().id.to_owned(), reason }
}

/// Reason for which the settings of an encoding suit none of the sizes used for probing; `None` if they suit one.
pub fn refusal(config: &EncodingConfig) -> Option<PeError> {
    let mut refusals = candidates().map(|dims| config.check(&dims).err());
    let first = refusals.next()??;
    refusals.all(|refused| refused.is_some()).then_some(first)
}

/// Whether a layer's attention depends on the state that the layers before it left.
///
/// # Errors
/// [`PeError::Probe`] if no small size suits the settings.
pub fn carries_state(config: &EncodingConfig) -> Result<bool, PeError> {
    let carries = || {
        let (config, dims) = sized(config)?;
        let encoding = built(&config, &dims, 0.5)?;
        let (hooks, device) = (encoding.hooks(), device());
        let problem = problem::Problem::random(1, passes::TOKENS, &dims, 25);
        let at = Positions::contiguous(0, passes::TOKENS);
        let (outputs, _) = passes::stack(hooks, &problem, &at, dims.layers, &device);
        let alone = |layer| {
            let place = passes::LayerEngine { layer, engine: Engine::Reference };
            let all = 0..passes::TOKENS;
            close::numbers(passes::chunk_by(hooks, &problem, &at, all, place, None, &device))
        };
        let mut outputs = outputs.into_iter().enumerate();
        Ok(outputs.any(|(layer, output)| close::numbers(output) != alone(layer)))
    };
    carries().map_err(|reason| refused(config, reason))
}

/// Whether an encoding chooses positions that are not whole, in training or in evaluation.
///
/// # Errors
/// [`PeError::Probe`] if no small size suits the settings, or if it gives no positions.
pub(crate) fn chooses_real_positions(config: &EncodingConfig) -> Result<bool, PeError> {
    let chooses = || {
        let (config, dims) = sized(config)?;
        let encoding = built(&config, &dims, 0.5)?;
        let mut rng = ChaCha8Rng::seed_from_u64(1);
        let chosen = [None, Some(&mut rng)].map(|training_rng| {
            let request =
                PositionRequest { cached_tokens: 0, new_tokens: passes::TOKENS, training_rng };
            encoding.hooks().positions(request).map(|at| at.steps() > 1)
        });
        let [evaluation, training] = chosen.map(|real| real.map_err(|error| error.to_string()));
        Ok(evaluation? || training?)
    };
    chooses().map_err(|reason| refused(config, reason))
}

/// Whether an encoding reads positions that are not whole.
///
/// # Errors
/// [`PeError::Probe`] if no small size suits the settings.
pub(crate) fn takes_real_positions(config: &EncodingConfig) -> Result<bool, PeError> {
    let takes = || {
        let (config, dims) = sized(config)?;
        observe::takes_real_positions(&config, &dims)
    };
    takes().map_err(|reason| refused(config, reason))
}

/// Whether the transforms of queries and keys of two encodings give the same in either order.
///
/// # Errors
/// [`PeError::Probe`] if no small size suits the settings of both.
pub(crate) fn transforms_commute(a: &EncodingConfig, b: &EncodingConfig) -> Result<bool, PeError> {
    let commute = || {
        let ((a, _), (b, _)) = (sized(a)?, sized(b)?);
        let dims = candidates().find(|dims| a.check(dims).is_ok() && b.check(dims).is_ok());
        let dims = dims.ok_or("no size used for probing suits both encodings")?;
        let encodings = [built(&a, &dims, 0.5)?, built(&b, &dims, 0.5)?];
        Ok(transforms::commute(&encodings, &dims))
    };
    // State that layers update changes their transforms, which are compared without it.
    if carries_state(a)? || carries_state(b)? {
        return Ok(false);
    }
    commute().map_err(|reason| refused(a, reason))
}

/// How the kernels of the CPU and of a GPU compute the logits of an encoding.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KernelSupport {
    /// Support by the kernels of [`device`].
    pub cpu: Support,
    /// Support by the kernels of a GPU, whether or not there is one.
    pub gpu: Support,
    /// Support by the kernels on the tensor cores of NVIDIA's GPUs, in bf16.
    pub tensor_cores: Support,
}

/// Determines how the kernels compute the logits of an encoding.
///
/// # Errors
/// [`PeError::Probe`] if no small size suits the settings.
pub fn support(config: &EncodingConfig) -> Result<KernelSupport, PeError> {
    let support = || {
        let (config, dims) = sized(config)?;
        let encoding = built(&config, &dims, 0.5)?;
        let (hooks, device) = (encoding.hooks(), device());
        let cpu = Support::of(hooks, &dims, &device);
        let gpu = Support::on_gpu(hooks, &dims, &device);
        let tensor_cores = Support::on_tensor_cores(hooks, &dims, &device);
        Ok(KernelSupport { cpu, gpu, tensor_cores })
    };
    support().map_err(|reason| refused(config, reason))
}

/// Extracts the message of a caught panic.
pub fn panic_text(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().cloned();
    let text = text.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()));
    format!("panicked: {}", text.unwrap_or_else(|| "no message".to_owned()))
}

/// Returns the encoding with sizes that are small and act, and dimensions that its settings accept.
fn sized(config: &EncodingConfig) -> Result<(EncodingConfig, Dims), String> {
    let (cut, dims) = sizes::cut(config, &candidates())?;
    Ok((sizes::acting(&cut, &dims, passes::TOKENS).config, dims))
}

/// Largest number of channels of a head that is probed.
const LARGEST_HEAD_DIM: usize = 512;

/// Numbers of layers that are tried, the smallest first.
pub(crate) const LAYERS: [usize; 13] = [2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128];

/// Candidate dimensions, the smallest first. Some settings need a certain number of layers, heads
/// or channels; last are all even numbers of channels, one of which fits a list with a number per pair of channels.
fn candidates() -> impl Iterator<Item = Dims> + Clone {
    let heads = [3, 2, 4, 6, 8, 12, 16, 1, 5, 7, 9, 10, 11, 13, 14, 15, 20, 24, 25, 32];
    let head_dims = [6, 8, 16, 32, 64, 128];
    let common = LAYERS.into_iter().flat_map(move |layers| {
        heads.into_iter().flat_map(move |heads| {
            head_dims.into_iter().map(move |head_dim| Dims {
                layers,
                width: heads * head_dim,
                heads,
                head_dim,
                ..passes::DIMS
            })
        })
    });
    let even = (2..=LARGEST_HEAD_DIM).step_by(2);
    common.chain(even.map(|head_dim| Dims {
        width: passes::DIMS.heads * head_dim,
        head_dim,
        ..passes::DIMS
    }))
}

/// Builds the encoding and fills every parameter with normal draws of standard deviation `std`.
fn built(config: &EncodingConfig, dims: &Dims, std: f64) -> Result<AnyEncoding, String> {
    built_on(config, dims, std, &device())
}

/// As [`built`], on a device.
fn built_on(
    config: &EncodingConfig,
    dims: &Dims,
    std: f64,
    device: &Device,
) -> Result<AnyEncoding, String> {
    let mut rng = ChaCha8Rng::seed_from_u64(7);
    let encoding = config.build(dims, &mut rng, device).map_err(|error| error.to_string())?;
    Ok(randomise_by(std, encoding, 11))
}

/// Lengths at which products are counted; the last one verifies the polynomial through the others.
const COUNTED_LENS: [usize; 4] = [8, 16, 24, 32];

/// Multiply-accumulates that an encoding adds to one forward pass over `len` tokens, counted by running
/// it at small lengths.
///
/// # Errors
/// [`PeError::Probe`] if the encoding cannot be built, or if the products are no quadratic function of
/// the length.
pub fn products(config: &EncodingConfig, dims: &Dims, len: usize) -> Result<usize, PeError> {
    let encoding = built(config, dims, 0.2).map_err(|reason| refused(config, reason))?;
    let count = |len: usize| {
        let problem = problem::Problem::random(1, len, dims, 19);
        let at = Positions::contiguous(0, len);
        let (_, counted) = macs_of(|| {
            passes::embedded(encoding.hooks(), &problem, &at, &device());
            passes::stack(encoding.hooks(), &problem, &at, dims.layers, &device())
        });
        i128::from(counted) - (2 * dims.layers * len * len * dims.heads_width()) as i128
    };
    let counts = COUNTED_LENS.map(count);
    // Newton's divided differences with steps of the first length.
    let at = |len: usize| {
        let step = COUNTED_LENS[0] as i128;
        let n = len as i128 - step;
        let (first, second) = (counts[1] - counts[0], counts[2] - 2 * counts[1] + counts[0]);
        counts[0] + first * n / step + second * n * (n - step) / (2 * step * step)
    };
    if at(COUNTED_LENS[3]) != counts[3] {
        let reason =
            "its number of products is not a quadratic function of the length; implement `cost`";
        return Err(refused(config, reason.to_owned()));
    }
    usize::try_from(at(len)).map_err(|_| {
        refused(config, "it has fewer products than a model without an encoding".to_owned())
    })
}
