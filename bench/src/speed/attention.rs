//! Time of one attention layer: forward and backward, and forward alone.

use burn::module::Module;
use burn::tensor::{Device, Tensor, TensorData};
use pe_zoo::attention::{LayerInput, Weights, layer};
use pe_zoo::compose::Combined;
use pe_zoo::encoding::PositionRequest;
use pe_zoo::erased::positions;
use pe_zoo::init::standard_normal;
use pe_zoo::{Combination, Dims, TokenState};
use rand_chacha::ChaCha8Rng;

use super::{SpeedRequest, SpeedRow, SpeedSize, timed};
use crate::backend;
use crate::streams::{Stream, stream};

/// Measures one encoding's attention on random queries, keys and values in this process.
///
/// # Errors
///
/// Message, if a setting is invalid or the measurement fails.
pub(super) fn measure(request: &SpeedRequest, encoding: &Combination) -> Result<SpeedRow, String> {
    let SpeedSize { len, dim, heads, .. } = request.size;
    let head_dim = dim / heads;
    let dims = Dims { layers: 1, heads, head_dim, train_len: len, max_len: len };
    let device = backend::device(&request.backend).map_err(|error| error.to_string())?.autodiff();
    backend::precision(request.precision, &request.backend, &device)
        .map_err(|error| error.to_string())?;
    let id = encoding.id();
    let encoding = encoding
        .init(&dims, &mut stream(0, Stream::Encoding), &device)
        .map_err(|error| error.to_string())?;
    let step_seconds = time(request, id, &encoding, &device, AttentionPass::Training)?;
    let plain = device.clone().inner();
    let forward_seconds = time(request, id, &encoding.valid(), &plain, AttentionPass::Forward)?;
    Ok(SpeedRow::of(request, [step_seconds, forward_seconds], &device))
}

#[derive(Clone, Copy, PartialEq)]
enum AttentionPass {
    Training,
    Forward,
}

/// Returns the median time of a pass in seconds.
fn time(
    request: &SpeedRequest,
    id: &str,
    encoding: &Combined,
    device: &Device,
    pass: AttentionPass,
) -> Result<f64, String> {
    let SpeedSize { batch, len, dim, heads, steps, .. } = request.size;
    let new = PositionRequest { cached_tokens: 0, new_tokens: len, training_rng: None };
    let at = positions(encoding, id, new).map_err(|error| error.to_string())?;
    let mut rng = stream(0, Stream::Data);
    let x = random([batch, len, dim], &mut rng, device);
    let [q, k, v] = [(); 3].map(|()| {
        let drawn = random([batch, heads, len, dim / heads], &mut rng, device);
        if pass == AttentionPass::Training { drawn.require_grad() } else { drawn }
    });
    timed(steps, device, || {
        let carried = TokenState::default();
        let input = LayerInput {
            engine: request.engine,
            precision: request.precision,
            ..LayerInput::new(0, &at, &x, [q.clone(), k.clone(), v.clone()], &carried)
        };
        let output = layer(encoding, input, None, Weights::Drop).output;
        if pass == AttentionPass::Training {
            drop(output.sum().backward());
        }
        Ok(())
    })
}

/// Number of random numbers after which they repeat. Drawing hundreds of millions would take longer than the
/// measurement.
const DRAWN: usize = 1 << 20;

fn random<const D: usize>(shape: [usize; D], rng: &mut ChaCha8Rng, device: &Device) -> Tensor<D> {
    let count: usize = shape.iter().product();
    let drawn = (0..count.min(DRAWN)).map(|_| standard_normal(rng) as f32).collect::<Vec<_>>();
    let values = drawn.into_iter().cycle().take(count).collect::<Vec<_>>();
    Tensor::from_data(TensorData::new(values, shape), device)
}
