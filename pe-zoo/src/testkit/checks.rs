//! What is checked, and the run of all checks.

mod agree;
mod claims;
mod conduct;
mod cost;
mod derivatives;
mod engine;
mod settings;

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};

use burn::tensor::Device;

use super::passes::random;
use super::{decode, stack};
use crate::EncodingConfig;
use crate::reference::ScalarReference;

pub use settings::examine_settings;

/// What is checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Check {
    /// It can be built, and hooks keep the shapes that the contract states, at odd sizes.
    Shapes,
    /// Outputs and embeddings are finite wherever it may be used.
    Finite,
    /// Both engines and the embedding equal the scalar f64 reference, at odd sizes and with offsets,
    /// and through a stack of layers.
    EqualsReference,
    /// The fused engine and the reference engine give the same outputs and the same gradients of
    /// queries, keys, values, layer inputs and parameters, through all layers.
    EnginesAgree,
    /// Token by token, and in chunks of three: each step equals the full pass of its own length.
    DecodesAsFullPass,
    /// No output depends on a later token.
    Causal,
    /// Batch entries do not mix.
    BatchIndependent,
    /// Heads do not mix, unless it is stated, and then they do.
    HeadClaim,
    /// The claim about shifts of all positions is true, and so is its negation where it is denied.
    ShiftClaim,
    /// The claim about looking at tokens is true, and so is its negation.
    ContentClaim,
    /// The claim about the length limit is true: at 8 times the training length, and at the limit.
    LengthClaim,
    /// The claim that later tokens change nothing of earlier ones is true, and so is its negation
    /// where it is denied.
    LengthDependence,
    /// Its positions are as many as tokens and repeat; it chooses them only where it says so.
    PositionsClaim,
    /// What it states of its conduct beside other encodings is true, and so is the negation.
    ConductClaim,
    /// The parameter formula equals the number of parameters built.
    ParameterFormula,
    /// The formula of multiply-accumulates equals those counted in the reference engine.
    MacFormula,
    /// Every parameter gets a finite gradient that is not zero everywhere.
    Gradients,
    /// Gradients equal central differences of the scalar f64 reference.
    GradientValues,
    /// The same seed gives the same bits.
    Reproducible,
    /// Settings written and read again are the same.
    SettingsRoundTrip,
    /// A setting that does not exist is refused by name.
    UnknownSettingRefused,
}

impl Check {
    /// What it states, for people.
    pub fn statement(self) -> &'static str {
        match self {
            Self::Shapes => "builds, and keeps its shapes at odd sizes",
            Self::Finite => "every number is finite, at offsets and one token too",
            Self::EqualsReference => "equals its scalar f64 reference, at odd sizes and offsets",
            Self::EnginesAgree => "both engines give the same outputs and gradients",
            Self::DecodesAsFullPass => "one token at a time, and three, equal a full pass each",
            Self::Causal => "no output depends on a later token",
            Self::BatchIndependent => "batch entries do not mix",
            Self::HeadClaim => "heads mix exactly if it is stated",
            Self::ShiftClaim => "invariant under shifts exactly if it is claimed",
            Self::ContentClaim => "looks at tokens exactly if it is claimed",
            Self::LengthClaim => "runs at 8 times the training length, or refuses past its limit",
            Self::LengthDependence => "looks at the length exactly if it is claimed",
            Self::PositionsClaim => "positions are sound, and chosen exactly if it is stated",
            Self::ConductClaim => "conduct beside other encodings is as stated",
            Self::ParameterFormula => "the parameter formula equals the parameters built",
            Self::MacFormula => "the formula of multiply-accumulates equals those counted",
            Self::Gradients => "every parameter gets a finite gradient that is not zero",
            Self::GradientValues => "gradients equal central differences of the f64 reference",
            Self::Reproducible => "the same seed gives the same bits",
            Self::SettingsRoundTrip => "settings written and read again are the same",
            Self::UnknownSettingRefused => "an unknown setting is refused by name",
        }
    }
}

/// A check that was run, and what it found.
#[derive(Debug, Clone)]
pub struct Finding {
    /// The check.
    pub check: Check,
    /// What is wrong, if anything is.
    pub outcome: Outcome,
}

/// A check that failed, and what it found.
#[derive(Debug, Clone)]
pub struct Failure {
    /// The check.
    pub check: Check,
    /// What it found.
    pub found: String,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}: {}", self.check, self.found)
    }
}

pub(super) type Outcome = Result<(), String>;

/// Runs every check of an encoding on the CPU and says what each found. One that panics has failed.
#[cfg(feature = "flex")]
pub fn examine<C>(config: &C) -> Vec<Finding>
where
    C: EncodingConfig,
    C::Encoding: ScalarReference,
{
    examine_on(config, &Device::flex())
}

/// As [`examine`], with tensors on a device of one's own: the references stay scalar loops in f64.
pub fn examine_on<C>(config: &C, device: &Device) -> Vec<Finding>
where
    C: EncodingConfig,
    C::Encoding: ScalarReference,
{
    let built = caught(|| random(config, device));
    let encoding = match built {
        Ok(encoding) => encoding,
        Err(found) => return vec![Finding { check: Check::Shapes, outcome: Err(found) }],
    };
    let run = |check, body: &dyn Fn() -> Outcome| Finding { check, outcome: caught(body) };
    vec![
        run(Check::Shapes, &|| engine::shapes(&encoding, device)),
        run(Check::Finite, &|| engine::finite(&encoding, device)),
        run(Check::EqualsReference, &|| {
            engine::equals_reference(&encoding, device)?;
            stack::equals_reference(config, device)
        }),
        run(Check::EnginesAgree, &|| agree::engines_agree(config, device)),
        run(Check::DecodesAsFullPass, &|| {
            decode::decodes_as_full_pass(&encoding, device)?;
            stack::decodes_as_full_pass(config, device)
        }),
        run(Check::Causal, &|| {
            engine::causal(&encoding, device)?;
            stack::causal(config, device)
        }),
        run(Check::BatchIndependent, &|| engine::batch_independent(&encoding, device)),
        run(Check::HeadClaim, &|| conduct::heads(&encoding, config, device)),
        run(Check::ShiftClaim, &|| claims::shift(&encoding, config, device)),
        run(Check::ContentClaim, &|| claims::content(&encoding, config, device)),
        run(Check::LengthClaim, &|| claims::length(&encoding, config, device)),
        run(Check::LengthDependence, &|| decode::length_dependence(&encoding, config, device)),
        run(Check::PositionsClaim, &|| claims::positions(&encoding, config)),
        run(Check::ConductClaim, &|| conduct::conduct(&encoding, config, device)),
        run(Check::ParameterFormula, &|| cost::parameters(&encoding, config)),
        run(Check::MacFormula, &|| cost::macs(config, device)),
        run(Check::Gradients, &|| derivatives::present(config, device)),
        run(Check::GradientValues, &|| derivatives::values(config, device)),
        run(Check::Reproducible, &|| engine::reproducible(config, device)),
    ]
}

/// Runs every check on the CPU; the result lists those that failed.
#[cfg(feature = "flex")]
pub fn conforms<C>(config: &C) -> Vec<Failure>
where
    C: EncodingConfig,
    C::Encoding: ScalarReference,
{
    failures(examine(config))
}

/// The findings that are failures.
pub fn failures(findings: Vec<Finding>) -> Vec<Failure> {
    findings
        .into_iter()
        .filter_map(|Finding { check, outcome }| {
            outcome.err().map(|found| Failure { check, found })
        })
        .collect()
}

fn caught<T>(body: impl FnOnce() -> Result<T, String>) -> Result<T, String> {
    catch_unwind(AssertUnwindSafe(body)).unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<String>().cloned();
        let text = text.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()));
        Err(format!("panicked: {}", text.unwrap_or_else(|| "no message".to_owned())))
    })
}
