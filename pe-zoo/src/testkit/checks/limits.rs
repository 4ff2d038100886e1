//! Checks of length limits and of positions chosen by an encoding.

use burn::tensor::Device;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;

use super::engine;
use crate::encoding::PositionRequest;
use crate::erased::check_limit;
use crate::probe::close::numbers;
use crate::probe::passes::{DIMS, TOKENS, embedded};
use crate::probe::problem::Problem;
use crate::testkit::Outcome;
use crate::testkit::passes::full_pass;
use crate::{Combination, Combined, Hooks, Positions};

/// Checks that outputs are finite at 8 times the training length and equal the reference there, or
/// that they are finite at the limit past which positions are refused.
pub(super) fn length(encoding: &Combined, config: &Combination, device: &Device) -> Outcome {
    let id = &config.card().id;
    let finite = |at: &Positions, place: &str| {
        let problem = Problem::random(1, at.cols().len(), &DIMS, 6);
        let output = numbers(full_pass(encoding, &problem, at, 0, device));
        let embedding = numbers(embedded(encoding, &problem, at, device));
        let finite = output.iter().chain(&embedding).all(|x| x.is_finite());
        finite.then_some(()).ok_or_else(|| format!("not finite {place}"))
    };
    let Some(limit) = encoding.max_len() else {
        let far = 8 * DIMS.train_len;
        finite(&Positions::contiguous(0, far), "at 8 times the length")?;
        let last = Positions::contiguous(0, TOKENS).shifted(far - TOKENS);
        return encoding.reference().map_or(Ok(()), |reference| {
            engine::equals_reference_at(encoding, reference, &DIMS, &last, device)
                .map_err(|e| format!("at 8 times the training length: {e}"))
        });
    };
    let tokens = TOKENS.min(limit);
    let last = Positions::contiguous(0, tokens).shifted(limit - tokens);
    check_limit(encoding, id, &last).map_err(|error| format!("at its limit: {error}"))?;
    if check_limit(encoding, id, &last.shifted(1)).is_ok() {
        return Err(format!("has a limit, but position {limit} is accepted"));
    }
    finite(&last, "at its limit")
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
            return Err(format!("{} positions for {tokens} tokens", at.cols().len()));
        }
        if at.len() > longest {
            return Err(format!("position {} past {longest}", at.len() - 1));
        }
        Ok(at)
    };
    for (cached, new) in [(0, TOKENS), (0, 1), (9, 1), (6, 3)] {
        for seed in [None, Some(1), Some(2)] {
            if ask(cached, new, seed)? != ask(cached, new, seed)? {
                return Err("the same request gave other positions".to_owned());
            }
        }
    }
    Ok(())
}
