//! Settings of encodings as the PyTorch module reads them, with what this crate computes from them.

use anyhow::{Result, bail};
use pe_zoo::settings::is_default;
use pe_zoo::zoo::{
    alibi, cope, fox, layers, learned_absolute, nope, rope, sinusoidal, t5_bias, window,
};
use pe_zoo::{Combination, Dims, EncodingConfig, PositionEncoding};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use pe_zoo::rotary::Scaling;

type PartSettings = fn(&EncodingConfig, &Dims) -> Result<Value>;

/// Encodings that the module implements, by id.
const KNOWN: [(&str, PartSettings); 10] = [
    (nope::Nope::CARD.id, |_, _| Ok(json!({}))),
    (learned_absolute::LearnedAbsolute::CARD.id, |_, _| Ok(json!({}))),
    (sinusoidal::Sinusoidal::CARD.id, |part, _| {
        Ok(json!({ "base": read::<sinusoidal::Sinusoidal>(part).base }))
    }),
    (rope::Rope::CARD.id, |part, dims| of_rope(&read::<rope::Rope>(part), dims)),
    (alibi::Alibi::CARD.id, |part, dims| {
        let slopes = read::<alibi::Alibi>(part).slopes.values(dims.heads);
        Ok(json!({ "slopes": slopes }))
    }),
    (t5_bias::T5Bias::CARD.id, |part, _| {
        let settings = read::<t5_bias::T5Bias>(part);
        let buckets = settings.earlier_buckets();
        Ok(json!({ "max_distance": settings.max_distance, "buckets": buckets }))
    }),
    (cope::Cope::CARD.id, |part, dims| {
        let settings = read::<cope::Cope>(part);
        let slots = (0..dims.layers).map(|layer| settings.layers.slot(layer));
        Ok(json!({
            "slots": slots.collect::<Vec<_>>(),
            "gates": settings.gates,
            "convention": settings.convention,
        }))
    }),
    (fox::Fox::CARD.id, |part, dims| {
        let settings = read::<fox::Fox>(part);
        let log_forget = match settings.gates {
            fox::ForgetGate::Fixed(times) => {
                let gates = times.values(dims.heads).into_iter().map(|tau| -1.0 / tau);
                Some(gates.collect::<Vec<_>>())
            }
            _ => None,
        };
        let is_per_row = matches!(settings.gates, fox::ForgetGate::PerRow { .. });
        Ok(json!({ "log_forget": log_forget, "per_row": is_per_row }))
    }),
    (window::AttentionWindow::CARD.id, |part, _| {
        Ok(json!({ "size": read::<window::AttentionWindow>(part).size }))
    }),
    (layers::ByLayer::CARD.id, |part, dims| {
        let settings = read::<layers::ByLayer>(part);
        let placement = settings.placement(dims.layers);
        let kinds = placement.kinds.iter().map(|kind| of_parts(kind.encoding, &kind.dims(dims)));
        let places = placement.places.iter();
        Ok(json!({
            "kinds": kinds.collect::<Result<Vec<_>>>()?,
            "places": places.map(|place| json!({ "kind": place.kind, "layer": place.layer })).collect::<Vec<_>>(),
        }))
    }),
];

/// Settings of the parts of a combination.
///
/// # Errors
///
/// If the module does not implement an encoding.
pub(super) fn of_parts(encoding: &Combination, dims: &Dims) -> Result<Vec<Value>> {
    encoding.parts().iter().map(|part| settings(part, dims)).collect()
}

fn settings(part: &EncodingConfig, dims: &Dims) -> Result<Value> {
    let id = part.card().id;
    let Some((_, settings)) = KNOWN.iter().find(|(known, _)| *known == id) else {
        let known = KNOWN.iter().map(|(known, _)| *known).collect::<Vec<_>>().join(", ");
        bail!(
            "encoding `{id}` cannot be exported to PyTorch, expected one of {known}, or a combination of them"
        );
    };
    let mut settings = settings(part, dims)?;
    settings["kind"] = json!(id);
    Ok(settings)
}

/// Settings of a part of known type.
pub(super) fn read<E: PositionEncoding>(part: &EncodingConfig) -> E::Settings
where
    E::Settings: DeserializeOwned,
{
    // The part was made from such settings.
    serde_json::from_value(part.fields().clone().into()).expect("settings of the encoding")
}

fn of_rope(settings: &rope::RopeConfig, dims: &Dims) -> Result<Value> {
    let rope::RopeConfig { learning, imaginary, far, .. } = settings;
    for (setting, is_default) in
        [("learning", is_default(learning)), ("imaginary", !imaginary), ("far", is_default(far))]
    {
        if !is_default {
            bail!(
                "`rope` with `{setting}` cannot be exported to PyTorch, expected a rotation without this setting"
            );
        }
    }
    let scaling = settings.scaling.resolved(dims);
    let rotated = (settings.rotary_fraction * dims.head_dim as f64) as usize;
    let spectrum = |longest: Option<usize>, len: usize| {
        let spectrum = scaling.spectrum(settings.base, rotated, dims.train_len, len);
        json!({
            "longest": longest,
            "frequencies": spectrum.frequencies,
            "attention_factor": spectrum.attention_factor,
        })
    };
    let original = |given: Option<usize>| given.unwrap_or(dims.train_len);
    let (spectra, dynamic) = match &scaling {
        Scaling::LongRope(long) => {
            let original = original(long.original_max_position_embeddings);
            (vec![spectrum(Some(original), original), spectrum(None, original + 1)], Value::Null)
        }
        Scaling::Dynamic { factor, original_max_position_embeddings } => {
            let original = original(*original_max_position_embeddings);
            let dynamic = json!({ "factor": factor, "original": original });
            (vec![spectrum(None, 1)], dynamic)
        }
        scaling if scaling.depends_on_length() => {
            bail!(
                "rotation with the scaling `{}` cannot be exported to PyTorch, expected a scaling that is the same at \
                 every length, or that depends on the length alone",
                scaling.id()
            );
        }
        _ => (vec![spectrum(None, 1)], Value::Null),
    };
    Ok(json!({
        "layout": settings.layout,
        "base": settings.base,
        "rotated": rotated,
        "spectra": spectra,
        "dynamic": dynamic,
    }))
}
