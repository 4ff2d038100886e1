//! Comparison of the formulas for parameters and cost with the parameters built and the products
//! counted.

use burn::module::Module;
use burn::tensor::Device;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;

use crate::count::macs_of;
use crate::probe::passes::{embedded, stack};
use crate::probe::problem::Problem;
use crate::testkit::{Outcome, dims};
use crate::{Combination, Combined, Dims, Positions};

/// Compares the number of parameters with the formula; `None` if a part states no formula.
pub(super) fn parameters(encoding: &Combined, config: &Combination) -> Option<Outcome> {
    let (built, formula) = (encoding.num_params(), config.param_count(&dims(config))?);
    let equal = (built == formula).then_some(());
    Some(equal.ok_or_else(|| format!("{built} parameters built, the formula gives {formula}")))
}

/// Compares the products counted in a pass through all layers, minus those of a model without any
/// encoding, with the formula; `None` if a part states no cost.
pub(super) fn macs(config: &Combination, device: &Device) -> Option<Outcome> {
    config.cost(&dims(config), 1)?;
    Some(counted_macs(config, device))
}

fn counted_macs(config: &Combination, device: &Device) -> Outcome {
    let wide = Dims { layers: 3, width: 16, heads: 2, head_dim: 8, train_len: 11, max_len: 32 };
    // One length past a chunk and past a power of two, and other sizes if the settings accept
    // them.
    let other = config.check(&wide).is_ok().then_some((wide, 13));
    for (dims, len) in [13, 29, 64].map(|len| (dims(config), len)).into_iter().chain(other) {
        let mut rng = ChaCha8Rng::seed_from_u64(7);
        let encoding = config.init(&dims, &mut rng, device).map_err(|e| e.to_string())?;
        let problem = Problem::random(1, len, &dims, 19);
        let at = Positions::contiguous(0, len);
        let (_, counted) = macs_of(|| {
            embedded(&encoding, &problem, &at, device);
            stack(&encoding, &problem, &at, dims.layers, device)
        });
        let plain = (2 * dims.layers * len * len * dims.heads_width()) as u64;
        let expected = plain + config.cost(&dims, len).map_or(0, |cost| cost.macs());
        if counted != expected {
            return Err(format!(
                "{counted} multiply-accumulates over {len} tokens of {dims:?}, the formula gives \
                 {expected} ({plain} of them without any encoding)"
            ));
        }
    }
    Ok(())
}
