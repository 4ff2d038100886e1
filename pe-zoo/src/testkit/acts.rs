//! Settings at which the kit can observe what an encoding does.
//!
//! A check that compares an encoding with its reference holds for any reference that is right up to the sizes of the kit. A
//! factor from position 8,192 on, or a layer that the kit does not build, would be compared with nothing. The kit therefore
//! runs all checks again at smaller settings where a size has no effect, and says so where it finds none, or where an encoding
//! acts only beyond its sizes.

use std::panic::{AssertUnwindSafe, catch_unwind};

use burn::tensor::Device;

use super::checks::{
    Check, CheckResult, Finding, TOKENS, UncheckedReason, caught, engine, findings,
};
#[cfg(feature = "flex")]
use super::checks::{Failure, failures};
use super::{check_parameters, dims, random, stack};
use crate::probe::passes::DIMS;
use crate::probe::sizes;
use crate::reference::NoEffect;
use crate::{Combination, Dims, Hooks, PeError, Positions};

/// Checks that hold for any implementation if the encoding has no effect at the sizes of the kit.
const COMPARISONS: [Check; 6] = [
    Check::EqualsReference,
    Check::Transform,
    Check::ModelSettings,
    Check::EnginesAgree,
    Check::DecodesAsFullPass,
    Check::GradientValues,
];

/// Largest number of parameters of an encoding that is checked.
const MOST_PARAMETERS: usize = 1 << 20;

/// Runs every check of an encoding or a combination on the CPU. A check that panics has failed.
///
/// # Errors
/// As [`Combination::check`], if settings are refused at the sizes of the kit: 3 heads of 6 channels, 2 layers or
/// as many as the settings need; [`PeError::Combination`] if the encoding then has more than a million parameters.
#[cfg(feature = "flex")]
pub fn examine(config: &Combination) -> Result<Vec<Finding>, PeError> {
    examine_on(config, &Device::flex())
}

/// Runs every check as [`examine`] does, with tensors on another device; references stay scalar
/// loops in f64.
///
/// # Errors
/// As [`examine`].
pub fn examine_on(config: &Combination, device: &Device) -> Result<Vec<Finding>, PeError> {
    check_takes(config)?;
    Ok(examined(config, device))
}

/// Checks whether [`examine`] takes an encoding or a combination, in no time.
///
/// # Errors
/// As [`examine`].
pub fn check_takes(config: &Combination) -> Result<(), PeError> {
    // A check of settings that panics is found by the checks of the kit.
    if let Ok(checked) = catch_unwind(AssertUnwindSafe(|| config.check(&dims(config)))) {
        checked?;
    }
    check_parameters(config, MOST_PARAMETERS)
}

/// Runs every check on the CPU and returns those that failed; refused settings fail [`Check::Shapes`].
#[cfg(feature = "flex")]
pub fn conforms(config: &Combination) -> Vec<Failure> {
    failures(examined(config, &Device::flex()))
}

/// Runs all checks on the encoding, and at smaller settings if some of its sizes have no effect at the sizes of the kit.
fn examined(config: &Combination, device: &Device) -> Vec<Finding> {
    let acting = ActingCombination::of(config);
    let mut found = seen(config, device);
    if let Some(smaller) = &acting.smaller {
        for (found, other) in found.iter_mut().zip(seen(smaller, device)) {
            found.verdict = both(
                std::mem::replace(&mut found.verdict, CheckResult::Holds),
                other.verdict,
                smaller,
            );
        }
    }
    let unseen = found.iter().map(|finding| &finding.verdict).find(|verdict| {
        matches!(verdict, CheckResult::NotChecked(UncheckedReason::ActsElsewhere(_)))
    });
    let verdict = match unseen.cloned() {
        Some(unseen) => unseen,
        None if acting.without_effect.is_empty() => CheckResult::Holds,
        None => CheckResult::NotChecked(UncheckedReason::SizesWithoutEffect(acting.without_effect)),
    };
    found.push(Finding { check: Check::Acts, verdict });
    found
}

/// Result of a check at the settings of the encoding and at smaller ones.
fn both(at_settings: CheckResult, at_smaller: CheckResult, smaller: &Combination) -> CheckResult {
    match (at_settings, at_smaller) {
        (CheckResult::Fails(reason), _) => CheckResult::Fails(reason),
        (_, CheckResult::Fails(reason)) => CheckResult::Fails(format!("{smaller}: {reason}")),
        (CheckResult::NotChecked(_), other) => other,
        (CheckResult::Holds, _) => CheckResult::Holds,
    }
}

/// An encoding with sizes that act.
struct ActingCombination {
    /// The encoding with smaller sizes; `None` if those of its settings act, or if none that do were found.
    smaller: Option<Combination>,
    /// Sizes that have no effect at any number that was tried: name, encoding and value.
    without_effect: Vec<String>,
}

impl ActingCombination {
    fn of(config: &Combination) -> Self {
        let mut without_effect = Vec::new();
        let dims = dims(config);
        let parts = config.sized(&dims).map(|(part, dims)| {
            let acting = sizes::acting(part, &dims, TOKENS);
            let names = acting
                .without_effect
                .iter()
                .map(|size| format!("`{}` = {} of `{}`", size.name(), size.value, part.card().id));
            without_effect.extend(names);
            acting.config
        });
        let smaller = Combination::new(parts.collect()).ok().filter(|smaller| smaller != config);
        Self { smaller, without_effect }
    }
}

/// Findings of a combination, comparisons left out if it or one of its parts has no effect at the sizes of the kit but elsewhere.
fn seen(config: &Combination, device: &Device) -> Vec<Finding> {
    let mut found = findings(config, device);
    if let Some(unseen) = unseen(config, device) {
        let compares = |finding: &&mut Finding| COMPARISONS.contains(&finding.check);
        for finding in found.iter_mut().filter(compares) {
            if finding.verdict == CheckResult::Holds {
                let reason = UncheckedReason::ActsElsewhere(unseen.clone());
                finding.verdict = CheckResult::NotChecked(reason);
            }
        }
    }
    found
}

/// The combination, or the first of its parts that can act alone, whose effect the kit does not see.
fn unseen(config: &Combination, device: &Device) -> Option<String> {
    let parts = config.parts().iter().filter(|_| config.parts().len() > 1);
    let parts = parts.filter_map(|part| Combination::try_from(part.clone()).ok());
    let mut all = std::iter::once(config.clone()).chain(parts);
    all.find(|config| is_blind(config, device)).map(|config| config.id().to_owned())
}

/// Whether the outputs of an encoding are those without a position encoding at the sizes of the kit, but not elsewhere. An
/// encoding without any effect is right as it is.
fn is_blind(config: &Combination, device: &Device) -> bool {
    let equals_no_effect = || {
        engine::equals_reference(&random(config, device)?, &NoEffect, device)?;
        stack::equals_no_effect(config, device)
    };
    matches!(caught(|| Some(equals_no_effect())), Some(Ok(()))) && acts_elsewhere(config, device)
}

/// Sizes beyond those of the kit: layers, heads and channels of large models.
const LARGE: Dims = Dims { layers: 33, width: 1024, heads: 16, head_dim: 64, ..DIMS };

/// Number of tokens beyond those of the kit.
const MANY_TOKENS: usize = 512;

/// Whether an encoding has an effect at far positions, at larger sizes of the model or in longer sequences than those of the kit.
fn acts_elsewhere(config: &Combination, device: &Device) -> bool {
    let far = (0..=24).map(|power| 1_usize << power).collect::<Vec<_>>();
    let near = dims(config);
    let places = [(near, far.clone()), (LARGE, far), (near, (0..MANY_TOKENS).collect())];
    places.into_iter().any(|(dims, mut positions)| {
        let Some(Ok(encoding)) = caught(|| Some(stack::built(config, &dims, device))) else {
            return false;
        };
        positions.retain(|position| encoding.max_len().is_none_or(|limit| *position < limit));
        let Ok(at) = Positions::new(positions, 0) else { return false };
        let equal = || engine::equals_reference_at(&encoding, &NoEffect, &dims, &at, device);
        matches!(caught(|| Some(equal())), Some(Err(_)))
    })
}
