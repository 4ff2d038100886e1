//! Time of one attention layer, forward and backward.

use burn::tensor::{Device, Tensor, TensorData};
use pe_zoo::attention::{LayerInput, Weights, layer};
use pe_zoo::encoding::PositionRequest;
use pe_zoo::erased::positions;
use pe_zoo::init::standard_normal;
use pe_zoo::{Combination, TokenState};
use rand_chacha::ChaCha8Rng;

use super::{SpeedRequest, SpeedRow, SpeedSize, timed};
use crate::backend;
use crate::streams::{Stream, stream};

/// Measures one encoding's attention on random queries, keys and values in this process.
///
/// # Errors
///
/// If a setting is invalid or the measurement fails.
pub(super) fn measure(request: &SpeedRequest, encoding: &Combination) -> anyhow::Result<SpeedRow> {
    let SpeedSize { batch, len, dim, heads, steps, .. } = request.size;
    let device = backend::device(&request.backend)?.autodiff();
    backend::precision(request.precision, &request.backend, &device)?;
    let encoding_id = encoding.id();
    let encoding = encoding.init(&request.dims(), &mut stream(0, Stream::Encoding), &device)?;
    let new = PositionRequest { cached_tokens: 0, new_tokens: len, training_rng: None };
    let at = positions(&encoding, encoding_id, new)?;
    let mut rng = stream(0, Stream::Data);
    let x = random([batch, len, dim], &mut rng, &device);
    let [q, k, v] = [(); 3]
        .map(|()| random([batch, heads, len, dim / heads], &mut rng, &device).require_grad());
    let step_seconds = timed(steps, &device, || {
        let carried = TokenState::default();
        let input = LayerInput {
            engine: request.engine,
            precision: request.precision,
            ..LayerInput::new(0, &at, &x, [q.clone(), k.clone(), v.clone()], &carried)
        };
        let output = layer(&encoding, input, None, Weights::Drop).output;
        drop(output.sum().backward());
        Ok(())
    })?;
    Ok(SpeedRow::of(request, step_seconds, &device))
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
