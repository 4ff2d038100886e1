mod additive_fixtures;
mod additive_laws;
mod broken_encodings;
mod broken_state;
mod contextual_laws;
mod fixtures;
mod hard;
mod laws;
mod option_fixtures;
mod production;
mod properties;
mod score_mods;
mod state;
mod tape;
mod windows;

use serde::{Deserialize, Serialize};

use crate::card::Card;
use burn::tensor::Device;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;

use crate::{AnyEncoding, Combination, Dims, EncodingConfig, PositionEncoding, Registry};

/// Settings that select one broken encoding of a family by its fault.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Choice<F> {
    fault: F,
}

/// Card of the deliberately broken encodings.
const BROKEN: Card = Card {
    id: "broken",
    label: "Broken",
    summary: "Wrong on purpose.",
    parameters: "0",
    paper: "",
    url: "",
};

/// Returns the member of a family with this fault.
fn combination<E, F>(fault: F) -> Combination
where
    E: PositionEncoding<Settings = Choice<F>>,
{
    let config = EncodingConfig::of::<E>(Choice { fault }).unwrap();
    Combination::try_from(config).unwrap()
}

/// Builds the encoding with this id and these settings, with seed 1.
fn encoding(id: &str, settings: serde_json::Value, dims: &Dims) -> AnyEncoding {
    let serde_json::Value::Object(fields) = settings else { panic!("settings are a map") };
    let config = Registry::builtin().configured(id, fields).unwrap();
    config.build(dims, &mut ChaCha8Rng::seed_from_u64(1), &Device::flex()).unwrap()
}

/// Builds the encoding of this type with these settings, with seed 1.
fn built<E: PositionEncoding>(settings: serde_json::Value, dims: &Dims) -> E {
    let settings = serde_json::from_value(settings).unwrap();
    E::build(&settings, dims, &mut ChaCha8Rng::seed_from_u64(1), &Device::flex()).unwrap()
}
