//! Deliberately broken encodings, each with the check that must reject it.
//!
//! Each family has one correct member, which must pass, so that the others are rejected for their
//! fault alone. Most of the faults have occurred in public code.

mod decays;
mod far;
mod learned;
mod rotations;
mod slopes;
mod token_state;

use std::fmt::Debug;

use super::{Choice, broken_state, combination, properties};
use crate::testkit::{Check, CheckResult, UncheckedReason, conforms, examine};
use crate::{Combination, EncodingConfig, PositionEncoding};

/// Asserts that every faulty member of a family is rejected by the check that targets its fault.
#[track_caller]
fn assert_rejected<E, F>(correct: F, faults: &[(F, Check)])
where
    E: PositionEncoding<Settings = Choice<F>>,
    F: Copy + Debug,
{
    let failures = conforms(&combination::<E, F>(correct));
    assert!(failures.is_empty(), "{correct:?}: {failures:?}");
    for (fault, check) in faults {
        let failures = conforms(&combination::<E, F>(*fault));
        assert!(
            failures.iter().any(|failure| failure.check == *check),
            "{fault:?} passes {check:?}; rejected by {failures:?}"
        );
    }
}

#[test]
fn biases_that_are_wrong_are_rejected() {
    assert_rejected::<slopes::Slopes, _>(slopes::Fault::None, slopes::FAULTS);
}

#[test]
fn learned_encodings_that_are_wrong_are_rejected() {
    assert_rejected::<learned::Learned, _>(learned::Fault::None, learned::FAULTS);
}

#[test]
fn states_and_gates_that_are_wrong_are_rejected() {
    assert_rejected::<token_state::Counting, _>(token_state::Fault::None, token_state::FAULTS);
}

#[test]
fn rotations_that_are_wrong_are_rejected() {
    assert_rejected::<rotations::Rotated, _>(rotations::Fault::None, rotations::FAULTS);
}

/// No other check sees factors that overflow once gates forget more than at the start.
#[test]
fn decays_that_overflow_in_training_are_rejected_by_one_check() {
    assert_rejected::<decays::Decays, _>(decays::Fault::None, decays::FAULTS);
    for (fault, check) in decays::FAULTS {
        let failures = conforms(&combination::<decays::Decays, _>(*fault));
        assert!(failures.iter().all(|failure| failure.check == *check), "{failures:?}");
    }
}

fn far(floor: usize, every: usize, fault: far::Fault) -> Combination {
    far_of(far::FarConfig { floor, every, fault, ..far::FarConfig::default() })
}

fn far_of(settings: far::FarConfig) -> Combination {
    Combination::try_from(EncodingConfig::of::<far::Far>(settings).unwrap()).unwrap()
}

/// A reference that ignores a factor from position 8,192 on, or in every fourth layer, is compared at settings at which the
/// factor acts.
#[test]
fn wrong_references_beyond_the_sizes_of_the_kit_are_rejected() {
    for (floor, every) in [(8192, 1), (3, 1), (3, 4), (8192, 4)] {
        let correct = far(floor, every, far::Fault::None);
        let findings = examine(&correct).unwrap();
        let wrong = findings.iter().filter(|finding| {
            !matches!(finding.check, Check::ParameterFormula | Check::MacFormula)
                && finding.verdict != CheckResult::Holds
        });
        assert_eq!(wrong.count(), 0, "{correct}: {findings:#?}");
        let failures = conforms(&far(floor, every, far::Fault::ReferenceIgnoresFactor));
        assert!(
            failures.iter().any(|failure| failure.check == Check::EqualsReference),
            "floor {floor}, every {every}: {failures:?}"
        );
    }
}

/// Lengths are not whole numbers in every encoding.
#[test]
fn a_length_with_a_fraction_is_compared_where_it_acts() {
    for start in [8192.0, 8192.5, 1e9] {
        let wrong = |fault| far_of(far::FarConfig { floor: 3, start, every: 1, fault });
        let failures = conforms(&wrong(far::Fault::None));
        assert!(failures.is_empty(), "{start}: {failures:?}");
        let failures = conforms(&wrong(far::Fault::ReferenceIgnoresFactor));
        assert!(
            failures.iter().any(|failure| failure.check == Check::EqualsReference),
            "{start}: {failures:?}"
        );
    }
}

/// The encodings that a factor excludes do not depend on the position from which on it acts.
#[test]
fn a_factor_of_late_rows_is_refused_beside_another_one() {
    for floor in [3, 8192, 1 << 24] {
        let settings = far::FarConfig { floor, ..far::FarConfig::default() };
        let factor = EncodingConfig::of::<far::Far>(settings).unwrap();
        assert!(crate::probe::properties(&factor).unwrap().scales_content, "{floor}");
        let mut parts = Combination::parse("cope{convention=equation}").unwrap().parts().to_vec();
        parts.push(factor);
        let refused = Combination::new(parts).unwrap_err().to_string();
        assert!(refused.contains("scales the products"), "{refused}");
    }
}

/// Where no setting helps, comparisons are not said to hold, neither alone nor beside an encoding that acts.
#[test]
fn comparisons_that_cannot_fail_are_not_run() {
    let alone = far::UNSEEN.map(|fault| far(8192, 1, fault));
    let floor = alone[0].parts()[0].clone();
    let rope = Combination::parse("rope").unwrap().parts()[0].clone();
    let beside = Combination::new(vec![rope, floor]).unwrap();
    let unseen = alone.iter().map(|combination| (combination, combination));
    for (combination, part) in unseen.chain([(&beside, &alone[0])]) {
        let unseen = UncheckedReason::ActsElsewhere(part.id().to_owned());
        for finding in examine(combination).unwrap() {
            let compares = [
                Check::EqualsReference,
                Check::Transform,
                Check::EnginesAgree,
                Check::DecodesAsFullPass,
                Check::GradientValues,
                UNSEEN,
            ]
            .contains(&finding.check);
            if compares {
                let not_checked = CheckResult::NotChecked(unseen.clone());
                assert_eq!(finding.verdict, not_checked, "{combination}: {finding:?}");
            }
        }
    }
}

/// The check that a factor which acts nowhere in the kit does not pass.
const UNSEEN: Check = Check::Acts;

#[test]
fn every_check_rejects_a_broken_encoding() {
    fn checks<C: Debug>(faults: &[(C, Check)]) -> impl Iterator<Item = Check> {
        faults.iter().map(|(_, check)| *check)
    }
    let made_for = checks(slopes::FAULTS)
        .chain(checks(learned::FAULTS))
        .chain(checks(token_state::FAULTS))
        .chain(checks(rotations::FAULTS))
        .chain(checks(decays::FAULTS))
        .chain(checks(properties::FAULTS))
        .chain(checks(broken_state::FAULTS))
        .chain(properties::OF_SETTINGS)
        .chain([UNSEEN])
        .collect::<Vec<_>>();
    for finding in examine(&combination::<slopes::Slopes, _>(slopes::Fault::None)).unwrap() {
        assert!(made_for.contains(&finding.check), "{:?}", finding.check);
    }
}
