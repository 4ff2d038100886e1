//! The checks of the conformance kit, and the run of all of them.

mod agree;
mod declared;
pub(in crate::testkit) mod derivatives;
pub(in crate::testkit) mod engine;
mod trained;
mod transform;

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};

use burn::tensor::Device;

use super::{Outcome, build, decode, random, stack};
use crate::model::equals_formulas;
use crate::probe::panic_text;
use crate::{Combination, Hooks};

/// Number of tokens over which sizes must act: the longest sequence that is compared with the reference from its start.
pub(super) const TOKENS: usize = 40;

/// A check of the conformance kit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Check {
    /// The encoding can be built, and hooks keep the shapes of the contract at odd sizes.
    Shapes,
    /// Outputs and embeddings are finite at all supported positions, with the initial parameters too.
    Finite,
    /// Outputs and gradients are finite after every parameter was moved from its initial value by as much as training moves
    /// it.
    FiniteAfterTraining,
    /// Both engines and the embedding equal the scalar f64 reference, at odd sizes and with offsets,
    /// and through a stack of layers.
    EqualsReference,
    /// Transformed queries and keys are those of the scalar reference, and of an allowed width.
    Transform,
    /// The attention of a block with normalised queries and keys, heads that share keys, and a gate equals its formulas, and
    /// gradients equal central differences of these.
    ModelSettings,
    /// The fused engine and the reference engine give the same outputs and the same gradients of
    /// queries, keys, values, layer inputs and parameters, through all layers.
    EnginesAgree,
    /// Decoding token by token, in chunks of three, and up to 80 tokens in chunks of 27, equals the
    /// full pass of the same length at each step.
    DecodesAsFullPass,
    /// No output depends on later tokens.
    Causal,
    /// Batch entries do not influence each other, in one layer and through a stack of layers.
    BatchIndependent,
    /// The encoding runs at 8 times the training length, or refuses positions past its limit.
    Length,
    /// There are as many positions as tokens, within the requested range, and the same request
    /// gives the same positions.
    Positions,
    /// The properties that combinations and tables need can be found by probing.
    Probe,
    /// The parameter formula equals the number of parameters built.
    ParameterFormula,
    /// The formula of multiply-accumulates equals those counted in the reference engine.
    MacFormula,
    /// Every parameter gets a finite gradient that is not zero everywhere.
    Gradients,
    /// Gradients equal central differences of the scalar f64 reference.
    GradientValues,
    /// The encoding, and each whole number of its settings, has an effect at the sizes of the kit: 2 layers, up to 128
    /// tokens. Where a number has none, all checks are run with a smaller one as well.
    Acts,
    /// A seed always gives the same bits.
    Reproducible,
    /// Settings written and read again are the same.
    SettingsRoundTrip,
    /// A setting that does not exist is refused by name.
    UnknownSettingRefused,
}

impl Check {
    /// Statement of the check in one line.
    pub fn statement(self) -> &'static str {
        match self {
            Self::Shapes => "can be built, and keeps tensor shapes at odd sizes",
            Self::Finite => "outputs are finite, also at offsets and for a single token",
            Self::FiniteAfterTraining => {
                "outputs and gradients are finite with parameters as large as training makes them"
            }
            Self::EqualsReference => "equals its scalar f64 reference, at odd sizes and offsets",
            Self::Transform => "queries and keys are transformed as in the scalar reference",
            Self::ModelSettings => {
                "equals its formulas with normalised queries and keys, shared keys and a gate"
            }
            Self::EnginesAgree => "both engines give the same outputs and gradients",
            Self::DecodesAsFullPass => {
                "decoding 1, 3 or 27 tokens at a time equals a full pass at each step"
            }
            Self::Causal => "no output depends on a later token",
            Self::BatchIndependent => "batch entries do not influence each other",
            Self::Length => {
                "runs at 8 times the training length, or refuses positions beyond its limit"
            }
            Self::Positions => "positions are valid and reproducible",
            Self::Probe => "its properties can be found by probing",
            Self::ParameterFormula => {
                "the parameter formula gives the number of parameters that are built"
            }
            Self::MacFormula => "the formula of multiply-accumulates gives their counted number",
            Self::Gradients => "every parameter gets a finite gradient that is not zero",
            Self::GradientValues => "gradients equal central differences of the f64 reference",
            Self::Acts => "the encoding and each size in its settings have an effect in the checks",
            Self::Reproducible => "the same seed gives the same bits",
            Self::SettingsRoundTrip => "settings written and read again are the same",
            Self::UnknownSettingRefused => "an unknown setting is refused by name",
        }
    }

    /// Optional part of an encoding that the check needs.
    fn needs(self) -> &'static str {
        match self {
            Self::ParameterFormula => "no parameter formula: implement `param_count`",
            Self::MacFormula => "no cost formula: implement `cost`",
            _ => "no scalar reference: implement `ScalarReference` and `reference`",
        }
    }
}

/// Result of one check.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CheckResult {
    /// The statement of the check holds.
    Holds,
    /// The check's statement does not hold, for this reason.
    Fails(String),
    /// The check could not be run, or could not have failed.
    NotChecked(UncheckedReason),
}

/// Why a check could not be run, or could not have failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum UncheckedReason {
    /// The encoding lacks the optional part that this check compares with.
    MissingPart(Check),
    /// The encoding, or this part of the combination, has no effect at the sizes of the kit, but at larger ones or at later
    /// positions.
    ActsElsewhere(String),
    /// Numbers of the settings have no effect at the sizes of the kit, nor do smaller ones: each with its name, encoding and
    /// value.
    SizesWithoutEffect(Vec<String>),
}

impl fmt::Display for UncheckedReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::MissingPart(check) => f.write_str(check.needs()),
            Self::ActsElsewhere(id) => write!(
                f,
                "`{id}` has no effect in 2 layers, 3 heads of 6 channels and 128 tokens, but it has one at larger sizes or at \
                 later positions; give settings at which it acts at the sizes of the checks"
            ),
            Self::SizesWithoutEffect(sizes) => {
                write!(
                    f,
                    "these settings have no effect in 2 layers and {TOKENS} tokens: {}; give values at which they act",
                    sizes.join(", ")
                )
            }
        }
    }
}

/// A check and its result.
#[derive(Debug, Clone)]
pub struct Finding {
    /// Check that was run.
    pub check: Check,
    /// Result of the check, with the reason if it failed.
    pub verdict: CheckResult,
}

impl Finding {
    fn new(check: Check, outcome: Option<Outcome>) -> Self {
        let verdict = match outcome {
            None => CheckResult::NotChecked(UncheckedReason::MissingPart(check)),
            Some(Ok(())) => CheckResult::Holds,
            Some(Err(found)) => CheckResult::Fails(found),
        };
        Self { check, verdict }
    }
}

/// A check that failed.
#[derive(Debug, Clone)]
pub struct Failure {
    /// The check that failed.
    pub check: Check,
    /// Reason why the check failed.
    pub found: String,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}: {}", self.check, self.found)
    }
}

/// Runs every check at the settings of the encoding.
pub(super) fn findings(config: &Combination, device: &Device) -> Vec<Finding> {
    let encoding = match caught(|| Some(random(config, device))) {
        Some(Ok(encoding)) => encoding,
        Some(Err(found)) => return vec![Finding::new(Check::Shapes, Some(Err(found)))],
        None => return Vec::new(),
    };
    let reference = encoding.reference();
    let run = |check, body: &dyn Fn() -> Outcome| Finding::new(check, caught(|| Some(body())));
    let optional = |check, body: &dyn Fn() -> Option<Outcome>| Finding::new(check, caught(body));
    let mut findings = vec![
        run(Check::Shapes, &|| engine::shapes(&encoding, device)),
        run(Check::Finite, &|| {
            engine::finite(&encoding, device)?;
            engine::finite(&build(config, 7, device)?, device)
                .map_err(|found| format!("with the initial parameters: {found}"))
        }),
        run(Check::FiniteAfterTraining, &|| trained::finite(config, device)),
        optional(Check::EqualsReference, &|| {
            let equal = engine::equals_reference(&encoding, reference?, device);
            Some(equal.and_then(|()| stack::equals_reference(config, device)))
        }),
        optional(Check::Transform, &|| transform::check(&encoding, config, device)),
        optional(Check::ModelSettings, &|| {
            let device = device.clone().autodiff();
            match random(config, &device) {
                Ok(encoding) => equals_formulas(&encoding, &device),
                Err(found) => Some(Err(found)),
            }
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
        run(Check::BatchIndependent, &|| {
            engine::batch_independent(&encoding, device)?;
            stack::batch_independent(config, device)
        }),
        run(Check::Length, &|| declared::length(&encoding, config, device)),
        run(Check::Positions, &|| declared::positions(&encoding, config)),
        run(Check::Probe, &|| config.properties().map(drop).map_err(|error| error.to_string())),
        optional(Check::ParameterFormula, &|| declared::parameters(&encoding, config)),
        optional(Check::MacFormula, &|| declared::macs(config, device)),
        run(Check::Gradients, &|| derivatives::present(config, device)),
        optional(Check::GradientValues, &|| derivatives::values(config, device)),
        run(Check::Reproducible, &|| engine::reproducible(config, device)),
    ];
    for part in config.parts() {
        findings.push(run(Check::SettingsRoundTrip, &|| declared::round_trip(part)));
        findings.push(run(Check::UnknownSettingRefused, &|| declared::unknown_refused(part)));
    }
    findings
}

/// Selects the findings that are failures.
pub fn failures(findings: Vec<Finding>) -> Vec<Failure> {
    findings
        .into_iter()
        .filter_map(|Finding { check, verdict }| match verdict {
            CheckResult::Fails(found) => Some(Failure { check, found }),
            CheckResult::Holds | CheckResult::NotChecked(_) => None,
        })
        .collect()
}

pub(super) fn caught<T>(
    body: impl FnOnce() -> Option<Result<T, String>>,
) -> Option<Result<T, String>> {
    catch_unwind(AssertUnwindSafe(body)).unwrap_or_else(|panic| Some(Err(panic_text(&*panic))))
}
