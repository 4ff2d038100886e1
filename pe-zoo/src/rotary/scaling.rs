//! Frequency scaling of rotations for lengths beyond training: settings and checks.
//!
//! Settings read and write as the `rope_scaling` objects of HuggingFace's model configurations.

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Map, Value};

use crate::settings::{check_above_zero, is_default};
use crate::{Dims, PeError};

/// Name of the field with the original length.
pub const ORIGINAL_LENGTH: &str = "original_max_position_embeddings";

/// Frequency scaling of a rotation for lengths beyond training.
///
/// `s` is `factor`, `f` a pair's own frequency, `L0` `original_max_position_embeddings` (default:
/// the training length), `L` the length of the sequence: its last position plus one.
///
/// ```
/// use pe_zoo::rotary::Scaling;
/// let text = r#"{ "type": "yarn", "factor": 4.0, "original_max_position_embeddings": 64 }"#;
/// let yarn: Scaling = serde_json::from_str(text)?;
/// assert_eq!(serde_json::to_value(&yarn)?["rope_type"], "yarn");
/// let refused = serde_json::from_str::<Scaling>(r#"{ "rope_type": "linear" }"#).unwrap_err();
/// assert!(refused.to_string().contains("factor"));
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(tag = "rope_type", rename_all = "kebab-case", deny_unknown_fields, remote = "Self")]
pub enum Scaling {
    /// No scaling; written `default`, read also from `none` and from null.
    #[default]
    #[serde(rename = "default", alias = "none")]
    None,
    /// Frequencies `f / s`: positions are interpolated.
    Linear {
        /// Factor `s`, at least 1.
        factor: f64,
    },
    /// NTK-aware scaling: the base becomes `base s^(R / (R - 2))`, where `R` is the number of
    /// rotated channels. HuggingFace has no name for it.
    Ntk {
        /// Factor `s`, at least 1.
        factor: f64,
    },
    /// As `ntk` with `s L / L0 - (s - 1)` in place of `s`, once `L > L0`. Depends on the length:
    /// the angles of all keys change as the sequence grows.
    Dynamic {
        /// Factor `s`, at least 1.
        factor: f64,
        /// Original length `L0` in positions.
        #[serde(skip_serializing_if = "Option::is_none")]
        original_max_position_embeddings: Option<usize>,
    },
    /// Fast pairs keep `f`, slow ones get `f / s`, with a linear ramp in between.
    Yarn(Yarn),
    /// Frequencies `f / factor[m]`, with one list of factors up to `L0` and another beyond. Depends
    /// on the length.
    #[serde(rename = "longrope")]
    LongRope(LongRope),
    /// Frequencies `f` for wavelengths below `L0 / high_freq_factor`, `f / s` for those above `L0 /
    /// low_freq_factor`, and an interpolation in between.
    Llama3(Llama3),
    /// Division by `s` of the slowest pairs, NTK-aware scaling of faster ones and no change of the fastest, with ramps in
    /// between: YaRN's predecessor in `jquesnelle/yarn`. HuggingFace has no name for it.
    PartNtk(PartNtk),
    /// Several scalings, each applied to the frequencies that the previous one returns; attention factors are
    /// multiplied. HuggingFace has no name for it.
    Composed {
        /// Scalings in the order in which they apply, the trained one first.
        parts: Vec<Scaling>,
    },
    /// The first `floor(p R / 2)` pairs get `f / s`, the others 0: they are not rotated (p-RoPE).
    Proportional {
        /// Fraction `p`, from 0 to 1.
        #[serde(default = "one")]
        partial_rotary_factor: f64,
        /// Factor `s`, at least 1.
        #[serde(default = "one")]
        factor: f64,
    },
    /// The slowest pairs get `f (1 + cos t) / 2` with `t` from 0 to pi, or 0: clipped RoPE. HuggingFace has no name for it.
    Clipped {
        /// Number of pairs, from the slowest, whose frequencies are clipped; all pairs if there are fewer, as in the authors' code.
        #[serde(default = "twenty")]
        pairs: usize,
        /// Whether all of these frequencies become 0.
        #[serde(default, skip_serializing_if = "is_default")]
        hard: bool,
    },
    /// Pairs that complete no whole turn within `L0` get 0 (HoPE). HuggingFace has no name for it.
    HighFrequency {
        /// Original length `L0` in positions.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        original_max_position_embeddings: Option<usize>,
    },
}

/// Settings of YaRN scaling.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Yarn {
    /// Factor `s`, at least 1; `None`: the longest sequence of the run divided by `L0`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub factor: Option<f64>,
    /// Original length `L0` in positions; `None`: the training length.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub original_max_position_embeddings: Option<usize>,
    /// Pairs that complete at least this many turns within `L0` keep their frequency.
    #[serde(default = "thirty_two")]
    pub beta_fast: f64,
    /// Pairs that complete at most this many turns within `L0` are divided by `s`.
    #[serde(default = "one")]
    pub beta_slow: f64,
    /// Whether the ends of the ramp are rounded outward to whole pairs.
    #[serde(default = "yes")]
    pub truncate: bool,
    /// Factor of cosines and sines; `None`: `0.1 ln s + 1`, or the quotient that `mscale` defines.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub attention_factor: Option<f64>,
    /// Together with `mscale_all_dim` sets the factor of cosines and sines to `(0.1 mscale ln s +
    /// 1) / (0.1 mscale_all_dim ln s + 1)`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mscale: Option<f64>,
    /// Denominator's coefficient; used together with `mscale`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mscale_all_dim: Option<f64>,
    /// Share of its own frequency that a fast pair keeps, from 0 to 1; `None`: 1. With 0 all pairs are divided by `s`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub extrapolation_factor: Option<f64>,
}

/// Settings of the part-NTK scaling of `jquesnelle/yarn`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PartNtk {
    /// Factor `s`, at least 1.
    pub factor: f64,
    /// Share of NTK-aware scaling in the pairs that are not the slowest, from 0 to 1.
    #[serde(default = "one")]
    pub ntk_factor: f64,
    /// Share of its own frequency that a fast pair keeps, from 0 to 1.
    #[serde(default = "one")]
    pub extrapolation_factor: f64,
    /// Original length `L0` in positions; `None`: the training length.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub original_max_position_embeddings: Option<usize>,
}

/// Settings of LongRoPE scaling.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LongRope {
    /// Divisors of the frequencies up to `L0`, one per pair.
    pub short_factor: Vec<f64>,
    /// Divisors of the frequencies beyond `L0`, one per pair.
    pub long_factor: Vec<f64>,
    /// Factor `s`, at least 1: cosines and sines are multiplied by `sqrt(1 + ln s / ln L0)`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub factor: Option<f64>,
    /// Factor of cosines and sines, in place of the one computed from `factor`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub attention_factor: Option<f64>,
    /// Original length `L0` in positions; `None`: the training length.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub original_max_position_embeddings: Option<usize>,
}

/// Settings of Llama 3's scaling.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Llama3 {
    /// Factor `s`, at least 1 (8 in the model).
    pub factor: f64,
    /// Divisor of `L0`: the wavelength above which frequencies are divided by `s` (1 in the model).
    pub low_freq_factor: f64,
    /// Divisor of `L0`: the wavelength below which frequencies stay unchanged (4 in the model).
    pub high_freq_factor: f64,
    /// Original length `L0` in positions (8192 in the model).
    pub original_max_position_embeddings: usize,
}

fn one() -> f64 {
    1.0
}

fn twenty() -> usize {
    20
}

fn thirty_two() -> f64 {
    32.0
}

fn yes() -> bool {
    true
}

impl Serialize for Scaling {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        Self::serialize(self, serializer)
    }
}

/// Keys of the same object in HuggingFace's format that are separate settings here.
const ELSEWHERE: [(&str, &str); 2] =
    [("rope_theta", "base"), ("partial_rotary_factor", "rotary_fraction")];

impl<'de> Deserialize<'de> for Scaling {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let Some(mut fields) = Option::<Map<String, Value>>::deserialize(deserializer)? else {
            return Ok(Self::None);
        };
        if let Some(legacy) = fields.remove("type") {
            let kind = fields.entry("rope_type").or_insert_with(|| legacy.clone());
            if *kind != legacy {
                return Err(D::Error::custom(format!(
                    "`rope_type` is {kind} and `type` is {legacy}, expected one kind; remove `type`"
                )));
            }
        }
        let kind = fields.get("rope_type").cloned();
        let proportional = kind.as_ref().is_some_and(|kind| kind == "proportional");
        for (theirs, ours) in ELSEWHERE {
            if fields.contains_key(theirs) && !(proportional && theirs == "partial_rotary_factor") {
                return Err(D::Error::custom(format!(
                    "unknown field `{theirs}` within `scaling`; set `{ours}` next to `scaling` instead"
                )));
            }
        }
        let scaling = Self::deserialize(Value::Object(fields.clone())).map_err(D::Error::custom)?;
        // serde accepts any fields for a variant without fields.
        match fields.keys().find(|key| *key != "rope_type") {
            Some(key) if scaling == Self::None => Err(D::Error::custom(format!(
                "unknown field `{key}`, expected only `rope_type`, because it is \"default\""
            ))),
            _ => Ok(scaling),
        }
    }
}

impl Scaling {
    /// Name of the scaling in `rope_type`.
    pub fn id(&self) -> &'static str {
        match self {
            Self::None => "default",
            Self::Linear { .. } => "linear",
            Self::Ntk { .. } => "ntk",
            Self::Dynamic { .. } => "dynamic",
            Self::Yarn(_) => "yarn",
            Self::LongRope(_) => "longrope",
            Self::Llama3(_) => "llama3",
            Self::PartNtk(_) => "part-ntk",
            Self::Composed { .. } => "composed",
            Self::Proportional { .. } => "proportional",
            Self::Clipped { .. } => "clipped",
            Self::HighFrequency { .. } => "high-frequency",
        }
    }

    /// Returns the scaling with YaRN's factor computed from the lengths of the run if it is not
    /// set.
    #[must_use]
    pub fn resolved(&self, dims: &Dims) -> Self {
        match self {
            Self::Yarn(yarn) if yarn.factor.is_none() => {
                let original = yarn.original_max_position_embeddings.unwrap_or(dims.train_len);
                let factor = (dims.max_len as f64 / original as f64).max(1.0);
                Self::Yarn(Yarn { factor: Some(factor), ..yarn.clone() })
            }
            Self::Composed { parts } => {
                Self::Composed { parts: parts.iter().map(|part| part.resolved(dims)).collect() }
            }
            _ => self.clone(),
        }
    }

    /// Whether the frequencies change as the sequence grows.
    pub fn depends_on_length(&self) -> bool {
        match self {
            Self::Dynamic { .. } => true,
            Self::LongRope(long_rope) => long_rope.short_factor != long_rope.long_factor,
            Self::Composed { parts } => parts.iter().any(Self::depends_on_length),
            _ => false,
        }
    }

    /// Refuses settings that HuggingFace refuses or warns of, for `dim` rotated channels.
    ///
    /// # Errors
    /// [`PeError::InvalidSetting`], the field named as `scaling.<field>`.
    pub fn check(&self, pe: &str, dim: usize, train_len: usize) -> Result<(), PeError> {
        let check = ScalingCheck { pe };
        match self {
            Self::None => Ok(()),
            Self::Linear { factor } => check.at_least("factor", *factor, 1.0),
            Self::Ntk { factor } => {
                check.at_least("factor", *factor, 1.0)?;
                check.channels(dim)
            }
            Self::Dynamic { factor, original_max_position_embeddings } => {
                check.at_least("factor", *factor, 1.0)?;
                check.original(*original_max_position_embeddings, train_len, 1)?;
                check.channels(dim)
            }
            Self::Yarn(yarn) => yarn.check(&check, train_len),
            Self::LongRope(long_rope) => long_rope.check(&check, dim / 2, train_len),
            Self::Llama3(llama) => {
                check.at_least("factor", llama.factor, 1.0)?;
                check.at_least("low_freq_factor", llama.low_freq_factor, 0.0)?;
                let (low, high) = (llama.low_freq_factor, llama.high_freq_factor);
                let expected = format!("more than low_freq_factor, which is {low}");
                check.require(
                    high.is_finite() && high > low,
                    "high_freq_factor",
                    high,
                    &expected,
                )?;
                check.original(Some(llama.original_max_position_embeddings), train_len, 1)
            }
            Self::PartNtk(part) => {
                check.at_least("factor", part.factor, 1.0)?;
                check.share("ntk_factor", part.ntk_factor)?;
                check.share("extrapolation_factor", part.extrapolation_factor)?;
                check.original(part.original_max_position_embeddings, train_len, 1)?;
                check.channels(dim)
            }
            Self::Composed { parts } => {
                check.require(!parts.is_empty(), "parts", "empty", "at least one scaling")?;
                parts.iter().try_for_each(|part| part.check(pe, dim, train_len))
            }
            Self::Proportional { partial_rotary_factor, factor } => {
                check.share("partial_rotary_factor", *partial_rotary_factor)?;
                check.at_least("factor", *factor, 1.0)
            }
            Self::Clipped { pairs, hard: _ } => {
                check.require(*pairs > 0, "pairs", pairs, "at least 1")
            }
            Self::HighFrequency { original_max_position_embeddings } => {
                check.original(*original_max_position_embeddings, train_len, 1)
            }
        }
    }
}

impl Yarn {
    fn check(&self, check: &ScalingCheck<'_>, train_len: usize) -> Result<(), PeError> {
        check.at_least("factor", self.factor.unwrap_or(1.0), 1.0)?;
        check.original(self.original_max_position_embeddings, train_len, 1)?;
        check.above_zero("beta_slow", self.beta_slow)?;
        check.at_least("beta_fast", self.beta_fast, self.beta_slow)?;
        check.share("extrapolation_factor", self.extrapolation_factor.unwrap_or(1.0))?;
        check.attention_factor(self.attention_factor)?;
        for (field, value) in [("mscale", self.mscale), ("mscale_all_dim", self.mscale_all_dim)] {
            check.at_least(field, value.unwrap_or(0.0), 0.0)?;
        }
        let [own, all] = [self.mscale, self.mscale_all_dim].map(|mscale| mscale.is_some());
        let unused = self.attention_factor.is_some() && (own || all);
        let expected = "no value, because it would override mscale and mscale_all_dim";
        check.require(!unused, "attention_factor", "given", expected)?;
        let expected = "a number, because mscale is given";
        check.require(all || !own, "mscale_all_dim", "absent", expected)?;
        let expected = "a number, because mscale_all_dim is given";
        check.require(own || !all, "mscale", "absent", expected)
    }
}

impl LongRope {
    fn check(
        &self,
        check: &ScalingCheck<'_>,
        pairs: usize,
        train_len: usize,
    ) -> Result<(), PeError> {
        for (field, factors) in
            [("short_factor", &self.short_factor), ("long_factor", &self.long_factor)]
        {
            let count = format!("{} numbers", factors.len());
            let expected = format!("{pairs}, one per rotated pair");
            check.require(factors.len() == pairs, field, count, &expected)?;
            factors.iter().try_for_each(|factor| {
                let usable = factor.is_finite() && *factor > 0.0;
                check.require(usable, field, factor, "numbers above 0")
            })?;
        }
        check.attention_factor(self.attention_factor)?;
        check.at_least("factor", self.factor.unwrap_or(1.0), 1.0)?;
        let is_scaled = self.factor.is_some() || self.attention_factor.is_some();
        let expected =
            "the extended length divided by the original length, unless attention_factor is given";
        check.require(is_scaled, "factor", "absent", expected)?;
        check.original(self.original_max_position_embeddings, train_len, 2)
    }
}

struct ScalingCheck<'a> {
    pe: &'a str,
}

impl ScalingCheck<'_> {
    fn require(
        &self,
        holds: bool,
        field: &str,
        value: impl std::fmt::Display,
        expected: &str,
    ) -> Result<(), PeError> {
        PeError::require(holds, self.pe, &format!("scaling.{field}"), value, expected)
    }

    fn at_least(&self, field: &str, value: f64, least: f64) -> Result<(), PeError> {
        let expected = format!("at least {least}");
        self.require(value.is_finite() && value >= least, field, value, &expected)
    }

    fn above_zero(&self, field: &str, value: f64) -> Result<(), PeError> {
        check_above_zero(self.pe, &format!("scaling.{field}"), value)
    }

    /// Refuses a factor under which rotated queries and keys are all 0.
    fn attention_factor(&self, factor: Option<f64>) -> Result<(), PeError> {
        self.above_zero("attention_factor", factor.unwrap_or(1.0))
    }

    fn share(&self, field: &str, value: f64) -> Result<(), PeError> {
        self.require((0.0..=1.0).contains(&value), field, value, "a number from 0 to 1")
    }

    /// Refuses an original length below `least`; the default is the training length.
    fn original(
        &self,
        length: Option<usize>,
        train_len: usize,
        least: usize,
    ) -> Result<(), PeError> {
        if let Some(length) = length {
            let expected = format!("at least {least}");
            return self.require(length >= least, ORIGINAL_LENGTH, length, &expected);
        }
        let expected =
            format!("at least {least}, because `scaling.{ORIGINAL_LENGTH}` is the same by default");
        PeError::require(train_len >= least, self.pe, "train.len", train_len, expected)
    }

    /// Refuses two channels or fewer: the exponent of the base is divided by `dim - 2`.
    fn channels(&self, dim: usize) -> Result<(), PeError> {
        let expected = "at least 4 rotated channels, which this scaling of the base needs";
        PeError::require(dim >= 4, self.pe, "model.head_dim", dim, expected)
    }
}
