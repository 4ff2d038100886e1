//! Rotation of a Llama-type model from the fields of its `config.json`.

use std::path::Path;

use pe_zoo::rotary::{ORIGINAL_LENGTH, Scaling, Yarn};
use pe_zoo::zoo::rope;
use serde_json::{Map, Value};

use super::PretrainedError;

/// Base of the rotation if the file states none: the default of transformers and llama.cpp.
pub(super) const THETA: f64 = 10_000.0;

/// Fields of `config.json` that determine the rotation.
pub(super) struct RotationFields<'a> {
    /// `rope_theta`.
    pub(super) theta: Option<f64>,
    /// `rope_scaling`.
    pub(super) scaling: Option<&'a Map<String, Value>>,
    /// `rope_parameters`.
    pub(super) parameters: Option<&'a Map<String, Value>>,
    /// `partial_rotary_factor`.
    pub(super) rotary_fraction: Option<f64>,
    /// `original_max_position_embeddings` beside the scaling.
    pub(super) original_len: Option<usize>,
    /// `max_position_embeddings`.
    pub(super) context: usize,
}

impl RotationFields<'_> {
    /// Reads the rotation; `path` is that of the file. Old files have `rope_theta` beside `rope_scaling`, new ones have both in
    /// `rope_parameters`.
    pub(super) fn read(&self, path: &Path) -> Result<rope::RopeConfig, PretrainedError> {
        let given = match (self.scaling, self.parameters) {
            (Some(_), Some(_)) => {
                let expected = "one of `rope_scaling` and `rope_parameters`";
                return Err(PretrainedError::unsupported(path, "rope_scaling", "given", expected));
            }
            (Some(map), None) | (None, Some(map)) => map,
            (None, None) => &Map::new(),
        };
        let mut scaling = given.clone();
        scaling.retain(|_, value| !value.is_null());
        // In proportional scaling the share of pairs is a setting of its own, and all channels count as rotated.
        let is_proportional = kind(&scaling) == Some("proportional");
        if let Some(share) = self.rotary_fraction.filter(|_| is_proportional) {
            scaling.entry("partial_rotary_factor").or_insert_with(|| share.into());
        }
        // New files have these two fields in the object, old files next to it.
        let mut number = |key: &str, beside: Option<f64>, otherwise: f64| match scaling.remove(key)
        {
            None => Ok(beside.unwrap_or(otherwise)),
            Some(value) => value.as_f64().ok_or_else(|| {
                PretrainedError::unsupported(
                    path,
                    &format!("rope_parameters.{key}"),
                    value,
                    "a number",
                )
            }),
        };
        let base = number("rope_theta", self.theta, THETA)?;
        let rotary_fraction = if is_proportional {
            1.0
        } else {
            number("partial_rotary_factor", self.rotary_fraction, 1.0)?
        };
        self.complete(&mut scaling);
        let scaling = if scaling.is_empty() {
            Scaling::None
        } else {
            serde_json::from_value(Value::Object(scaling)).map_err(|reason| {
                let expected = "a supported type of rotary scaling, with its settings";
                let value = format!("{} ({reason})", Value::Object(given.clone()));
                PretrainedError::unsupported(path, "rope_scaling", value, expected)
            })?
        };
        if matches!(scaling, Scaling::Yarn(Yarn { factor: None, .. })) {
            let expected = format!("a number, or `{ORIGINAL_LENGTH}`, which determines it");
            return Err(PretrainedError::unsupported(
                path,
                "rope_scaling.factor",
                "absent",
                expected,
            ));
        }
        Ok(rope::RopeConfig { base, rotary_fraction, scaling, ..rope::RopeConfig::default() })
    }

    /// Brings original length and factor of a scaling to where transformers looks for them: linear scaling has none, dynamic
    /// scaling starts from the trained length alone, LongRoPE's original length is the one beside the object, that of the others the one within it
    /// if both are given, and a factor that is absent is the quotient of the lengths.
    fn complete(&self, scaling: &mut Map<String, Value>) {
        let (is_longrope, has_factor) = match kind(scaling) {
            Some("dynamic" | "linear") => {
                scaling.remove(ORIGINAL_LENGTH);
                return;
            }
            Some("longrope") => (true, true),
            Some("yarn") => (false, true),
            Some("llama3") => (false, false),
            _ => return,
        };
        if let Some(beside) = self.original_len
            && (is_longrope || !scaling.contains_key(ORIGINAL_LENGTH))
        {
            scaling.insert(ORIGINAL_LENGTH.to_owned(), beside.into());
        }
        let original =
            scaling.get(ORIGINAL_LENGTH).and_then(Value::as_u64).filter(|original| *original > 0);
        if let (true, Some(original)) = (has_factor, original) {
            let factor = self.context as f64 / original as f64;
            scaling.entry("factor").or_insert_with(|| factor.max(1.0).into());
        }
    }
}

/// Type of the scaling, if the object names one.
fn kind(scaling: &Map<String, Value>) -> Option<&str> {
    scaling.get("rope_type").or_else(|| scaling.get("type")).and_then(Value::as_str)
}
