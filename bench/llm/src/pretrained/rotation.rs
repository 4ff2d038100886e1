//! Rotation of a Llama-type model from the fields of its `config.json`.

use std::path::Path;

use anyhow::Result;
use pe_zoo::rotary::{ORIGINAL_LENGTH, Scaling, Yarn};
use pe_zoo::settings::explain;
use pe_zoo::zoo::rope;
use serde_json::{Map, Value};

use super::error;
use super::kinds::Bases;
use super::layers::SLIDING;
use super::version::WrittenBy;

/// Fields of `config.json` that determine the rotation.
pub(super) struct RotationFields<'a> {
    /// `rope_theta`.
    pub(super) theta: Option<f64>,
    /// `rope_local_base_freq`: base of the rotation of layers with a window, in models whose bases differ.
    pub(super) windowed_theta: Option<f64>,
    /// Base if the file states none.
    pub(super) default_theta: f64,
    /// Bases by kind of layer that the file need not state.
    pub(super) bases: Option<Bases>,
    /// `rope_scaling`.
    pub(super) scaling: Option<&'a Map<String, Value>>,
    /// `rope_parameters`.
    pub(super) parameters: Option<&'a Map<String, Value>>,
    /// `partial_rotary_factor`: the share of pairs that proportional scaling turns.
    pub(super) turned_share: Option<f64>,
    /// `original_max_position_embeddings` beside the scaling.
    pub(super) original_len: Option<usize>,
    /// `max_position_embeddings`.
    pub(super) context: usize,
    /// `layer_types`: the kind of each layer.
    pub(super) layer_types: Option<&'a [String]>,
    /// Version whose rules hold.
    pub(super) written_by: &'a WrittenBy,
}

/// Base of a rotation whose object states none.
struct OtherBase {
    /// Base beside the object in the file.
    stated: Option<f64>,
    default: f64,
}

/// Object with the settings of a rotation.
struct RotationObject<'a> {
    /// Kind of the layers that have the rotation; `None`: all.
    kind: Option<&'a str>,
    /// Path of the object in the file.
    field: String,
    settings: &'a Map<String, Value>,
}

/// Rotation with the keys that it was read from.
pub(super) struct ReadRotation {
    /// Path of the object with the scaling.
    field: String,
    /// Path of the base.
    theta: String,
    /// Kind of the layers that have it; `None`: all.
    kind: Option<String>,
    pub(super) rope: rope::RopeConfig,
}

impl ReadRotation {
    /// Path in the file of a setting of the encoding.
    pub(super) fn key(&self, setting: &str) -> String {
        match setting {
            "base" => self.theta.clone(),
            other => other.replacen("scaling", &self.field, 1),
        }
    }
}

const THETA_KEY: &str = "rope_theta";
const WINDOWED_THETA_KEY: &str = "rope_local_base_freq";
const FRACTION_KEY: &str = "partial_rotary_factor";
const SCALING: &str = "rope_scaling";
const PARAMETERS: &str = "rope_parameters";

impl RotationFields<'_> {
    /// Reads the rotation; `path` is that of the file. Old files have `rope_theta` beside `rope_scaling`, new ones have both in
    /// `rope_parameters`, some of them in an object for each kind of layer. Several objects must describe the same rotation.
    pub(super) fn read(&self, path: &Path) -> Result<ReadRotation> {
        let mut rotations = self.read_all(path)?.into_iter();
        let Some(first) = rotations.next() else {
            return Err(error::damaged(path, "it has no rotation"));
        };
        match rotations.find(|other| other.rope != first.rope) {
            None => Ok(first),
            Some(other) if self.scaling.is_some() && self.parameters.is_some() => {
                let value = format!("another rotation than `{}`", first.field);
                let expected = format!(
                    "the same rotation in both, or only one of `{SCALING}` and `{PARAMETERS}`"
                );
                let expected = format!("{expected}; remove the wrong one");
                Err(error::unsuitable(path, &other.field, value, expected))
            }
            Some(other) => {
                let value = format!("another rotation than `{}`", first.field);
                let expected = "one rotation for all kinds of layers";
                Err(error::unsupported(path, &other.field, value, expected))
            }
        }
    }

    /// Reads the rotations of layers that see all tokens and of those with a window, one for both or one for each, in this
    /// order. Without an object for each, the scaling is that of the former alone, as transformers has it for `olmo3`.
    pub(super) fn read_by_kind(&self, path: &Path) -> Result<Vec<ReadRotation>> {
        if self.scaling.is_some() && self.parameters.is_some() {
            let expected = format!("one of `{SCALING}` and `{PARAMETERS}`; remove one of them");
            return Err(error::unsuitable(
                path,
                PARAMETERS,
                format!("given together with `{SCALING}`"),
                expected,
            ));
        }
        let mut rotations = self.read_all(path)?;
        if let Some(other) = rotations.iter().find(|one| one.theta == THETA_KEY) {
            // Versions of transformers have different defaults.
            if self.theta.is_none() && self.bases.is_none() {
                let field = format!("{}.{THETA_KEY}", other.field);
                return Err(error::unsupported(path, &field, "absent", "a number"));
            }
        }
        rotations.sort_by_key(|rotation| rotation.kind.as_deref() == Some(SLIDING));
        if let [ReadRotation { kind: None, field, theta, rope }] = &rotations[..] {
            let base =
                self.bases.map_or(rope.base, |bases| self.windowed_theta.unwrap_or(bases.windowed));
            let rope = rope::RopeConfig { base, scaling: Scaling::None, ..rope.clone() };
            let theta =
                if self.bases.is_some() { WINDOWED_THETA_KEY.to_owned() } else { theta.clone() };
            let field = field.clone();
            rotations.push(ReadRotation { field, theta, kind: None, rope });
        }
        Ok(rotations)
    }

    /// Reads all objects that describe a rotation.
    fn read_all(&self, path: &Path) -> Result<Vec<ReadRotation>> {
        let mut objects = Vec::new();
        for (field, settings) in [(SCALING, self.scaling), (PARAMETERS, self.parameters)] {
            if let Some(settings) = settings {
                objects.extend(self.objects(path, field, settings)?);
            }
        }
        let none = Map::new();
        if objects.is_empty() {
            objects.push(RotationObject { field: SCALING.to_owned(), kind: None, settings: &none });
        }
        objects.iter().map(|object| self.read_object(path, object)).collect()
    }

    /// Returns the objects of a field: the field itself, or one for each kind of layer that the model has.
    fn objects<'a>(
        &self,
        path: &Path,
        field: &str,
        settings: &'a Map<String, Value>,
    ) -> Result<Vec<RotationObject<'a>>> {
        if !settings.values().any(Value::is_object) {
            return Ok(vec![RotationObject { field: field.to_owned(), kind: None, settings }]);
        }
        let has_layers = |kind: &str| {
            self.layer_types.is_none_or(|types| types.iter().any(|other| other == kind))
        };
        let mut objects = Vec::new();
        for (kind, value) in settings.iter().filter(|(kind, _)| has_layers(kind)) {
            let field = format!("{field}.{kind}");
            match value {
                Value::Object(settings) => {
                    objects.push(RotationObject { field, kind: Some(kind), settings });
                }
                // Layers of this kind have no positions.
                Value::Null => {
                    let expected = "a rotation for all kinds of layers";
                    return Err(error::unsupported(path, &field, "null", expected));
                }
                // A setting that version 5 leaves beside the objects, which have their own.
                _ => {}
            }
        }
        if objects.is_empty() {
            let kinds = settings.keys().map(String::as_str).collect::<Vec<_>>().join(", ");
            let expected = "a rotation for the kinds in `layer_types`";
            return Err(error::unsupported(path, field, kinds, expected));
        }
        Ok(objects)
    }

    fn read_object(&self, path: &Path, object: &RotationObject<'_>) -> Result<ReadRotation> {
        let field = object.field.as_str();
        let mut scaling = object.settings.clone();
        scaling.retain(|_, value| !value.is_null());
        let is_proportional = kind(&scaling) == Some("proportional");
        if let Some(share) = self.turned_share.filter(|_| is_proportional) {
            scaling.entry(FRACTION_KEY).or_insert_with(|| share.into());
        }
        // New files have these two fields in the object, old files next to it.
        let mut number = |key: &str, beside: Option<f64>, otherwise: f64| match scaling.remove(key)
        {
            None => Ok(beside.unwrap_or(otherwise)),
            Some(value) => value.as_f64().ok_or_else(|| {
                error::unsupported(path, &format!("{field}.{key}"), value, "a number")
            }),
        };
        let other = self.other_base(object.kind);
        let base = number(THETA_KEY, other.stated, other.default)?;
        let share =
            if is_proportional { 1.0 } else { number(FRACTION_KEY, self.turned_share, 1.0)? };
        self.complete(&mut scaling);
        let scaling = if scaling.is_empty() {
            Scaling::None
        } else {
            serde_json::from_value(Value::Object(scaling)).map_err(
                |reason: serde_json::Error| {
                    let expected = "a supported type of rotary scaling, with its settings";
                    let reason = explain(&reason.to_string());
                    let value = format!("{} ({reason})", Value::Object(object.settings.clone()));
                    error::unsupported(path, field, value, expected)
                },
            )?
        };
        if matches!(scaling, Scaling::Yarn(Yarn { factor: None, .. })) {
            let expected = format!("a number, or `{ORIGINAL_LENGTH}`, which determines it");
            let field = format!("{field}.factor");
            return Err(error::unsupported(path, &field, "absent", expected));
        }
        let place = |key: &str| {
            let is_within = object.settings.contains_key(key);
            if is_within { format!("{field}.{key}") } else { key.to_owned() }
        };
        let is_windowed = self.bases.is_some() && object.kind == Some(SLIDING);
        let theta = match place(THETA_KEY) {
            beside if beside == THETA_KEY && is_windowed => WINDOWED_THETA_KEY.to_owned(),
            theta => theta,
        };
        // The models rotate all channels. Without a scaling transformers ignores the share; beside another one it computes too
        // few frequencies for the channels and fails.
        if share.to_bits() != 1f64.to_bits() && scaling != Scaling::None {
            let expected = "1 with this scaling, because all channels are rotated";
            return Err(error::unsupported(path, &place(FRACTION_KEY), share, expected));
        }
        let kind = object.kind.map(str::to_owned);
        let rope = rope::RopeConfig { base, scaling, ..rope::RopeConfig::default() };
        Ok(ReadRotation { field: field.to_owned(), theta, kind, rope })
    }

    /// Base of the layers of a kind if their object states none.
    fn other_base(&self, kind: Option<&str>) -> OtherBase {
        match self.bases {
            None => OtherBase { stated: self.theta, default: self.default_theta },
            Some(bases) if kind == Some(SLIDING) => {
                OtherBase { stated: self.windowed_theta, default: bases.windowed }
            }
            Some(bases) => OtherBase { stated: self.theta, default: bases.full },
        }
    }

    /// Brings original length and factor of a scaling to where transformers looks for them: linear scaling has none, dynamic
    /// scaling starts from the trained length alone, and a factor that is absent is the quotient of the lengths.
    ///
    /// Of an original length beside the object and one within it, LongRoPE takes the one beside, YaRN and Llama 3 the one
    /// within. Version 5 takes the one beside always; version 4 takes none beside for YaRN, none within for LongRoPE, and
    /// LongRoPE's factor is the quotient if a length is beside. Without a known version, both places and factors count.
    fn complete(&self, scaling: &mut Map<String, Value>) {
        let is_4 = self.written_by.is_known_4();
        let (is_longrope, is_yarn) = match kind(scaling) {
            Some("dynamic" | "linear") => {
                scaling.remove(ORIGINAL_LENGTH);
                return;
            }
            Some("longrope") => (true, false),
            Some("yarn") => (false, true),
            Some("llama3") => (false, false),
            _ => return,
        };
        let beside = self.original_len.filter(|_| !(is_4 && is_yarn));
        if is_4 && is_longrope {
            match beside {
                Some(_) => drop(scaling.remove("factor")),
                None if scaling.contains_key("factor") => drop(scaling.remove(ORIGINAL_LENGTH)),
                // Version 4 refuses the file.
                None => {}
            }
        }
        let is_first = is_longrope || self.written_by.is_5();
        if let Some(beside) = beside
            && (is_first || !scaling.contains_key(ORIGINAL_LENGTH))
        {
            scaling.insert(ORIGINAL_LENGTH.to_owned(), beside.into());
        }
        let original =
            scaling.get(ORIGINAL_LENGTH).and_then(Value::as_u64).filter(|original| *original > 0);
        if let (true, Some(original)) = (is_longrope || is_yarn, original) {
            let factor = self.context as f64 / original as f64;
            scaling.entry("factor").or_insert_with(|| factor.max(1.0).into());
        }
    }
}

/// Type of the scaling, if the object names one.
fn kind(scaling: &Map<String, Value>) -> Option<&str> {
    scaling.get("rope_type").or_else(|| scaling.get("type")).and_then(Value::as_str)
}
