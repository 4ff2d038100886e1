//! Checks of what an encoding declares: its limit, its positions, its settings, its parameters and its cost.

use burn::module::Module;
use burn::tensor::Device;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;
use serde_json::Value;

use super::engine;
use crate::count::macs_of;
use crate::encoding::PositionRequest;
use crate::erased::check_limit;
use crate::probe::close::numbers;
use crate::probe::passes::{DIMS, TOKENS, embedded, stack};
use crate::probe::problem::Problem;
use crate::testkit::passes::full_pass;
use crate::testkit::{Outcome, dims};
use crate::{Combination, Combined, Dims, EncodingConfig, Hooks, Positions};

/// Checks that outputs are finite at 8 times the training length and equal the reference there, or
/// that they are finite at the limit past which positions are refused.
pub(super) fn length(encoding: &Combined, config: &Combination, device: &Device) -> Outcome {
    let id = &config.card().id;
    let finite = |at: &Positions, place: &str| {
        let problem = Problem::random(1, at.cols().len(), &DIMS, 6);
        let output = numbers(full_pass(encoding, &problem, at, 0, device));
        let embedding = numbers(embedded(encoding, &problem, at, device));
        let finite = output.iter().chain(&embedding).all(|x| x.is_finite());
        finite.then_some(()).ok_or_else(|| format!("an output or embedding is not finite {place}"))
    };
    let Some(limit) = encoding.max_len() else {
        let far = 8 * DIMS.train_len;
        finite(&Positions::contiguous(0, far), "at 8 times the training length")?;
        let last = Positions::contiguous(0, TOKENS).shifted(far - TOKENS);
        return encoding.reference().map_or(Ok(()), |reference| {
            engine::equals_reference_at(encoding, reference, &DIMS, &last, device)
                .map_err(|e| format!("at 8 times the training length: {e}"))
        });
    };
    let tokens = TOKENS.min(limit);
    let last = Positions::contiguous(0, tokens).shifted(limit - tokens);
    check_limit(encoding, id, &last).map_err(|error| {
        format!("`max_len` is {limit}, but a smaller position is refused: {error}")
    })?;
    if check_limit(encoding, id, &last.shifted(1)).is_ok() {
        return Err(format!(
            "`max_len` is {limit}, but position {limit} is accepted, expected an error"
        ));
    }
    finite(&last, "at the largest position that `max_len` allows")
}

/// Checks that there are as many positions as tokens, that they are within range, and that the same
/// request gives the same positions.
pub(super) fn positions(encoding: &dyn Hooks, config: &Combination) -> Outcome {
    let longest = config.dims_beside(&DIMS).max_len;
    let ask = |cached_tokens, new_tokens, seed: Option<u64>| {
        let mut rng = ChaCha8Rng::seed_from_u64(seed.unwrap_or(0));
        let training_rng = seed.map(|_| &mut rng);
        let request = PositionRequest { cached_tokens, new_tokens, training_rng };
        let at = encoding.positions(request).map_err(|error| error.to_string())?;
        let tokens = cached_tokens + new_tokens;
        if (at.cols().len(), at.first_row()) != (tokens, cached_tokens) {
            return Err(format!(
                "{} positions with the first new token at index {}, expected {tokens} positions with index \
                 {cached_tokens}",
                at.cols().len(),
                at.first_row()
            ));
        }
        if at.len() > longest {
            return Err(format!(
                "the largest position is {}, expected less than {longest}",
                at.len() - 1
            ));
        }
        Ok(at)
    };
    for (cached, new) in [(0, TOKENS), (0, 1), (9, 1), (6, 3)] {
        for seed in [None, Some(1), Some(2)] {
            if ask(cached, new, seed)? != ask(cached, new, seed)? {
                return Err("two equal requests gave different positions".to_owned());
            }
        }
    }
    Ok(())
}

/// Checks that settings survive being written and read.
pub(super) fn round_trip(config: &EncodingConfig) -> Outcome {
    let written = config.fields().clone();
    let read = config.reread(written.clone()).map_err(|error| error.to_string())?;
    read.same_settings(config).then_some(()).ok_or_else(|| {
        format!(
            "the settings {} were read back as {read:?}, expected {config:?}",
            Value::Object(written)
        )
    })
}

/// Checks that an unknown setting is refused by name.
pub(super) fn unknown_refused(config: &EncodingConfig) -> Outcome {
    const UNKNOWN: &str = "no_such_setting";
    let mut written = config.fields().clone();
    written.insert(UNKNOWN.to_owned(), Value::from(1));
    match config.reread(written) {
        Ok(_) => Err(format!("the unknown setting `{UNKNOWN}` was accepted, expected an error")),
        Err(error) if error.to_string().contains(UNKNOWN) => Ok(()),
        Err(error) => Err(format!(
            "the error about the unknown setting `{UNKNOWN}` does not name it: {error}"
        )),
    }
}

/// Compares the number of parameters with the formula; `None` if a part states no formula.
pub(super) fn parameters(encoding: &Combined, config: &Combination) -> Option<Outcome> {
    let (built, formula) = (encoding.num_params(), config.param_count(&dims(config))?);
    let equal = (built == formula).then_some(());
    Some(equal.ok_or_else(|| {
        format!("the encoding has {built} parameters, but `param_count` gives {formula}")
    }))
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
                "counted {counted} multiply-accumulates over {len} tokens in {} layers of width {} with {} heads, \
                 expected {expected}: {plain} of a model without an encoding, and {} from `cost`",
                dims.layers,
                dims.width,
                dims.heads,
                expected - plain
            ));
        }
    }
    Ok(())
}
