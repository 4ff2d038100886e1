//! Settings of a training.

use burn::tensor::Device;
use pe_zoo::ops::MatmulPrecision;
use serde::{Deserialize, Serialize};

use super::optimizer::OptimizerConfig;

/// Settings of a training.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct TrainConfig {
    /// Number of optimizer steps.
    pub steps: usize,
    /// Number of sequences per step.
    pub batch_size: usize,
    /// Length of training sequences, in the task's unit.
    pub len: usize,
    /// Points of the training curve.
    pub curve_points: usize,
    /// Sequences that go through the model at once; gradients are summed over a step, so this changes memory and
    /// time, and results by rounding only (encodings that draw positions at random draw them anew each time). `None`:
    /// all of a step. Like the two below not written where it is not set, so that the keys of records from before
    /// there was a choice stay valid.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub micro_batch_size: Option<usize>,
    /// Activations that are cheap to make are made again on the way back instead of being kept; less memory, more
    /// time, the same results.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub gradient_checkpointing: bool,
    /// Optimizer and learning rate.
    pub optimizer: OptimizerConfig,
    /// Validation during the training; `None`: none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub validation: Option<ValidationConfig>,
    /// How wide the factors of linear maps are. Not written where they are f32, for the same reason.
    #[serde(skip_serializing_if = "is_f32")]
    pub precision: MatmulPrecision,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands over a reference")]
fn is_f32(precision: &MatmulPrecision) -> bool {
    *precision == MatmulPrecision::F32
}

impl TrainConfig {
    /// Sequences that go through the model at once.
    pub fn at_once(&self) -> usize {
        self.micro_batch_size.unwrap_or(self.batch_size)
    }

    /// The device to train on.
    pub fn autodiff(&self, device: Device) -> Device {
        let device = device.autodiff();
        if self.gradient_checkpointing { device.gradient_checkpointing() } else { device }
    }
}

/// Validation during a training: the task's first split at the training length, on
/// samples that neither training nor the final evaluation sees.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ValidationConfig {
    /// Steps between two looks; `None`: only after the last step.
    pub every_steps: Option<usize>,
    /// Sequences of each look.
    pub samples: usize,
    /// Seed of these sequences; it must not be `eval.seed`.
    pub seed: u64,
    /// Training counts as solved with an exact match of at least this ...
    pub solved_exact_match: f64,
    /// ... in so many looks in a row.
    pub solved_checks: usize,
    /// Ends training early once it is solved; `None`: all steps are taken.
    pub stop: Option<EarlyStop>,
}

/// The end of a training that is solved.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct EarlyStop {
    /// Steps in which the learning rate falls to 0 in a straight line from where its schedule has it.
    pub cooldown_steps: usize,
}

impl Default for ValidationConfig {
    fn default() -> Self {
        Self {
            every_steps: None,
            samples: 64,
            seed: 2_000_003,
            solved_exact_match: 0.99,
            solved_checks: 2,
            stop: None,
        }
    }
}

impl Default for TrainConfig {
    fn default() -> Self {
        Self {
            steps: 1000,
            batch_size: 32,
            len: 64,
            curve_points: 50,
            micro_batch_size: None,
            gradient_checkpointing: false,
            optimizer: OptimizerConfig::default(),
            validation: None,
            precision: MatmulPrecision::F32,
        }
    }
}
