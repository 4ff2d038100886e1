//! Encodings that are wrong on purpose, each with the check that must reject it.
//!
//! Each family has one honest member, which must pass: what rejects the others is their fault alone.
//! Most faults have been seen in public code.

mod learned;
mod slopes;
mod token_state;
mod turned;

use std::fmt::Debug;

use crate::EncodingConfig;
use crate::meta::{Claims, PeMeta};
use crate::reference::ScalarReference;
use crate::testkit::{Check, conforms};

const HONEST: Claims = Claims {
    shift_invariant: true,
    content_dependent: false,
    limited_length: false,
    depends_on_length: false,
};

const fn meta(claims: Claims) -> PeMeta {
    PeMeta {
        id: "saboteur",
        label: "Saboteur",
        summary: "Wrong on purpose.",
        sites: &[],
        claims,
        parameters: "0",
        paper: "",
        url: "",
    }
}

/// The saboteurs of one family, with the check that each was made for.
#[track_caller]
fn assert_rejected<C>(honest: &C, saboteurs: &[(C, Check)])
where
    C: EncodingConfig,
    C::Encoding: ScalarReference,
{
    let failures = conforms(honest);
    assert!(failures.is_empty(), "the honest {honest:?}: {failures:?}");
    for (fault, check) in saboteurs {
        let failures = conforms(fault);
        assert!(
            failures.iter().any(|failure| failure.check == *check),
            "{fault:?} passes {check:?}; rejected by {failures:?}"
        );
    }
}

#[test]
fn biases_that_are_wrong_are_rejected() {
    assert_rejected(&slopes::Fault::None, slopes::SABOTEURS);
}

#[test]
fn learned_encodings_that_are_wrong_are_rejected() {
    assert_rejected(&learned::Fault::None, learned::SABOTEURS);
}

#[test]
fn states_and_gates_that_are_wrong_are_rejected() {
    assert_rejected(&token_state::Fault::None, token_state::SABOTEURS);
}

#[test]
fn rotations_that_are_wrong_are_rejected() {
    assert_rejected(&turned::Fault::None, turned::SABOTEURS);
}

#[test]
fn every_check_has_a_saboteur() {
    fn checks<C: Debug>(saboteurs: &[(C, Check)]) -> impl Iterator<Item = Check> {
        saboteurs.iter().map(|(_, check)| *check)
    }
    let made_for = checks(slopes::SABOTEURS)
        .chain(checks(learned::SABOTEURS))
        .chain(checks(token_state::SABOTEURS))
        .chain(checks(turned::SABOTEURS))
        .collect::<Vec<_>>();
    for check in [
        Check::EqualsReference,
        Check::DecodesAsFullPass,
        Check::Causal,
        Check::BatchIndependent,
        Check::ShiftClaim,
        Check::LengthClaim,
        Check::LengthDependence,
        Check::ParameterFormula,
        Check::Gradients,
        Check::Reproducible,
    ] {
        assert!(made_for.contains(&check), "{check:?}");
    }
    assert!(made_for.len() >= 12, "{}", made_for.len());
}
