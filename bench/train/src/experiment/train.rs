//! Settings of a training.

use burn::tensor::Device;
use pe_zoo::ops::MatmulPrecision;
use serde::{Deserialize, Serialize};

use super::optimizer::OptimizerConfig;
use pe_zoo::settings::is_default;

pe_zoo::settings! {
    /// Settings of a training.
    pub struct TrainConfig {
        /// Number of optimizer steps.
        pub steps: usize = 1000,
        /// Number of sequences per step.
        pub batch_size: usize = 32,
        /// Length of training sequences, in the task's unit.
        pub len: usize = 64,
        /// Number of points of the training curve.
        pub curve_points: usize = 50,
        /// Number of sequences per forward pass; `None`: all sequences of a step. Gradients are accumulated over a step, so
        /// this setting changes time and memory, and results only by rounding. Encodings with random positions are an
        /// exception, because they draw positions for each forward pass. Not serialized if unset, like the two fields
        /// below, so that keys of older records stay valid.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub micro_batch_size: Option<usize> = None,
        /// Whether cheap activations are recomputed in the backward pass instead of stored: less memory, more time, the
        /// same results.
        #[serde(skip_serializing_if = "std::ops::Not::not")]
        pub gradient_checkpointing: bool = false,
        /// Optimizer and learning rate.
        pub optimizer: OptimizerConfig = OptimizerConfig::default(),
        /// Validation during the training; `None`: none.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub validation: Option<ValidationConfig> = None,
        /// Precision of matrix products; `f32` by default. Not serialized if f32, so that keys of older records stay valid.
        #[serde(skip_serializing_if = "is_default")]
        pub precision: MatmulPrecision = MatmulPrecision::F32,
    }
}

impl TrainConfig {
    /// Number of sequences per forward pass.
    pub fn at_once(&self) -> usize {
        self.micro_batch_size.unwrap_or(self.batch_size)
    }

    /// Number of forward passes of a step.
    pub fn micro_batches(&self) -> usize {
        self.batch_size.div_ceil(self.at_once().max(1))
    }

    /// Checks that every device of data parallel training gets the same number of micro-batches.
    ///
    /// # Errors
    /// If it does not, with the numbers.
    pub fn check_data_parallel(&self, devices: usize) -> anyhow::Result<()> {
        let micro_batches = self.micro_batches();
        anyhow::ensure!(
            micro_batches.is_multiple_of(devices),
            "the number of micro-batches in a step is {micro_batches} (batch_size {}, micro_batch_size {}), expected a \
             multiple of {devices}, the number of devices of --data-parallel; set train.micro_batch_size, for instance \
             to {}",
            self.batch_size,
            self.at_once(),
            self.batch_size.div_ceil(devices.max(1))
        );
        Ok(())
    }

    /// Autodiff device to train on, with gradient checkpointing if it is set.
    pub fn autodiff(&self, device: Device) -> Device {
        let device = device.autodiff();
        if self.gradient_checkpointing { device.gradient_checkpointing() } else { device }
    }
}

pe_zoo::settings! {
    /// Validation during training, on the first split of the task at the training length. Its samples are used neither in
    /// training nor in the final evaluation, except for text, whose validations and evaluations may share windows of the
    /// validation part.
    pub struct ValidationConfig {
        /// Steps between validations; `None`: only after the last step.
        pub every_steps: Option<usize> = None,
        /// Number of sequences per validation.
        pub samples: usize = 64,
        /// Further splits that are validated at the same steps, such as `sparse`. They do not affect the training: the last
        /// step, the chosen rates and the best weights follow from the first split alone.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        pub splits: Vec<String> = Vec::new(),
        /// Seed of these sequences; it must differ from `eval.seed`.
        pub seed: u64 = 2_000_003,
        /// Smallest exact match at which a validation counts as solved.
        pub solved_exact_match: f64 = 0.99,
        /// Number of consecutive solved validations after which the training counts as solved.
        pub solved_checks: usize = 2,
        /// Early end of training once the task is solved; `None`: all steps are taken.
        pub stop: Option<EarlyStop> = None,
    }
}

/// Early stop of a training that is solved.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct EarlyStop {
    /// Number of steps in which the learning rate falls linearly to 0 before the end.
    pub cooldown_steps: usize,
}
