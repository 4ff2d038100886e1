//! Deliberately broken encodings, each with the check that must reject it.
//!
//! Each family has one correct member, which must pass, so that the others are rejected for their
//! fault alone. Most of the faults have occurred in public code.

mod learned;
mod rotations;
mod slopes;
mod token_state;

use std::fmt::Debug;

use super::{Choice, broken_state, combination, properties};
use crate::PositionEncoding;
use crate::testkit::{Check, conforms, examine};

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

#[test]
fn every_check_rejects_a_broken_encoding() {
    fn checks<C: Debug>(faults: &[(C, Check)]) -> impl Iterator<Item = Check> {
        faults.iter().map(|(_, check)| *check)
    }
    let made_for = checks(slopes::FAULTS)
        .chain(checks(learned::FAULTS))
        .chain(checks(token_state::FAULTS))
        .chain(checks(rotations::FAULTS))
        .chain(checks(properties::FAULTS))
        .chain(checks(broken_state::FAULTS))
        .chain(properties::OF_SETTINGS)
        .collect::<Vec<_>>();
    for finding in examine(&combination::<slopes::Slopes, _>(slopes::Fault::None)).unwrap() {
        assert!(made_for.contains(&finding.check), "{:?}", finding.check);
    }
}
