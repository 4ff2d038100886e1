//! The encodings of `examples/outside`, checked as their program would check them.
#![allow(clippy::unwrap_used, reason = "tests panic on failure")]

#[path = "../../examples/outside/src/cable.rs"]
mod cable;
#[path = "../../examples/outside/src/interleaved.rs"]
mod interleaved;
#[path = "../../examples/outside/src/kerple_temperature.rs"]
mod kerple_temperature;
#[path = "../../examples/outside/src/llama4_temperature.rs"]
mod llama4_temperature;

use cable::Cable;
use interleaved::Interleaved;
use kerple_temperature::Kerple;
use llama4_temperature::Llama4Temperature;
use pe_zoo::testkit::CheckResult;
use pe_zoo::testkit::{assert_conforms, examine, rejects_wrong_reference};
use pe_zoo::{PositionEncoding, Registry};

fn registry() -> Registry {
    let registry = Registry::builtin().with::<Cable>().and_then(Registry::with::<Kerple>);
    let registry = registry.and_then(Registry::with::<Llama4Temperature>);
    registry.and_then(Registry::with::<Interleaved>).unwrap()
}

/// The kit sees each encoding act, also from position 8,192 on and in every fourth layer.
#[test]
fn wrong_references_are_rejected() {
    fn rejected<E: PositionEncoding>() {
        let rejects = rejects_wrong_reference::<E>(E::Settings::default()).unwrap();
        assert!(rejects, "{}: a wrong reference passes", E::CARD.id);
    }
    rejected::<Cable>();
    rejected::<Kerple>();
    rejected::<Llama4Temperature>();
    rejected::<Interleaved>();
}

#[test]
fn every_check_holds() {
    for text in [
        "cable",
        "kerple-temperature",
        "llama4-temperature",
        "llama4-temperature+rope",
        "interleaved",
        "interleaved(cable)",
        "interleaved{every=2}(cope+rope)",
        "interleaved(tape)",
        "interleaved(interleaved(rope))",
    ] {
        for finding in examine(&registry().parse(text).unwrap()).unwrap() {
            assert_eq!(finding.verdict, CheckResult::Holds, "{text}: {:?}", finding.check);
        }
    }
    assert_conforms(&registry().parse("cope+interleaved{every=2}").unwrap());
}

#[test]
fn a_wrapper_is_written_and_read_with_the_encodings_of_its_program() {
    let registry = registry();
    for text in
        ["interleaved", "interleaved(cable)", "interleaved{every=2}(cable+rope{base=500.0})"]
    {
        let wrapped = registry.parse(text).unwrap();
        let again = registry.parse(&wrapped.to_string()).unwrap();
        assert_eq!(again, wrapped, "{text}");
        let fields = wrapped.parts()[0].fields().clone();
        assert_eq!(registry.configured("interleaved", fields).unwrap(), wrapped.parts()[0]);
    }
    for (text, expected) in [
        ("interleaved(cabel)", "did you mean `cable`?"),
        ("interleaved{inner=cabel}", "did you mean `cable`?"),
        ("interleaved(rope+xpos)", "both transform queries and keys"),
        ("interleaved{every=1}", "every is 1, expected at least 2"),
        ("interleaved(interleaved{every=1})", "every is 1, expected at least 2"),
    ] {
        let dims = pe_zoo::Dims {
            layers: 2,
            width: 16,
            heads: 2,
            head_dim: 8,
            train_len: 16,
            max_len: 32,
        };
        let outcome = registry.parse(text).and_then(|wrapped| wrapped.check(&dims));
        let error = outcome.unwrap_err().to_string();
        assert!(error.contains(expected), "{text}: {error}");
    }
    let wrapped = registry.parse("interleaved(cope)").unwrap();
    let parameters = wrapped.parts()[0].card().parameters;
    assert!(parameters.contains("max_positions"), "{parameters}");
}
