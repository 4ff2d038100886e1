//! Settings of AdamW and its learning-rate schedule.

use pe_zoo::Combination;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::out_of_range;

/// Decay of the learning rate after the warm-up.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Decay {
    /// Linear decay of the learning rate.
    #[default]
    Linear,
    /// Decay along half a period of a cosine.
    Cosine,
    /// Constant learning rate without decay.
    Constant,
}

pe_zoo::settings! {
    /// Settings of AdamW and its learning-rate schedule.
    pub struct OptimizerConfig {
        /// Learning rate after the warm-up.
        pub learning_rate: f64 = 1e-3,
        /// Number of warm-up steps, in which the learning rate rises linearly from 0.
        pub warmup_steps: usize = 50,
        /// Decay of the learning rate after the warm-up.
        pub decay: Decay = Decay::Linear,
        /// Final learning rate as a share of the peak.
        pub final_share: f64 = 0.0,
        /// Decay rates of the two moments.
        pub betas: [f64; 2] = [0.9, 0.999],
        /// Constant added to the root of the second moment.
        pub epsilon: f64 = 1e-8,
        /// Decoupled weight decay, on all parameters except biases and slopes of encodings.
        pub weight_decay: f64 = 0.01,
        /// Learning rate of biases and slopes of encodings ([`pe_zoo::probe::biases`]) relative to that of all other
        /// parameters; 8 by default. Not serialized at its default: the configuration of a cell has it beside the encoding
        /// ([`Experiment::config`](crate::experiment::Experiment::config)) if the encoding has such parameters.
        #[serde(skip_serializing_if = "is_default_bias_rate")]
        pub bias_rate: f64 = BIAS_RATE,
        /// Maximum global norm of the gradient; `None`: no clipping.
        pub clip_norm: Option<f64> = Some(1.0),
    }
}

/// Default of [`OptimizerConfig::bias_rate`]: the factor `sqrt(head_dim)` that x-transformers puts before T5's bias, for
/// its `head_dim` of 64.
const BIAS_RATE: f64 = 8.0;

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands over a reference")]
fn is_default_bias_rate(rate: &f64) -> bool {
    rate.to_bits() == BIAS_RATE.to_bits()
}

impl OptimizerConfig {
    /// Checks that all numbers are in range.
    ///
    /// # Errors
    /// If one is out of range, with the field.
    pub fn check(&self) -> anyhow::Result<()> {
        let positive = |x: f64| x.is_finite() && x > 0.0;
        let share = |x: f64| (0.0..1.0).contains(&x);
        let not_negative = |x: f64| x.is_finite() && x >= 0.0;
        let [first, second] = self.betas;
        let clip_norm = self.clip_norm.unwrap_or(1.0);
        let is_share = (0.0..=1.0).contains(&self.final_share);
        let [above, below_one, least] =
            ["a number above 0", "at least 0 and below 1", "at least 0"];
        let checks = [
            ("learning_rate", self.learning_rate, positive(self.learning_rate), above),
            ("final_share", self.final_share, is_share, "a share from 0 to 1"),
            ("betas", first, share(first), below_one),
            ("betas", second, share(second), below_one),
            ("epsilon", self.epsilon, positive(self.epsilon), above),
            ("weight_decay", self.weight_decay, not_negative(self.weight_decay), least),
            ("bias_rate", self.bias_rate, not_negative(self.bias_rate), least),
            ("clip_norm", clip_norm, positive(clip_norm), above),
        ];
        match checks.into_iter().find(|(_, _, fine, _)| !fine) {
            None => Ok(()),
            Some((field, value, _, expected)) => {
                Err(out_of_range(&format!("train.optimizer.{field}"), value, expected))
            }
        }
    }

    /// Ids and settings of an encoding, with `bias_rate` if it has biases or slopes: the part of a cell's configuration
    /// that stands for the encoding. Encodings without such parameters learn as they did before there was a group.
    pub fn identity_of(&self, encoding: &Combination) -> Value {
        let mut identity = encoding.identity();
        // An encoding that cannot be probed cannot be built either: the check of the experiment says so.
        let has_biases = encoding.biases().is_ok_and(|parts| parts.iter().any(|p| !p.is_empty()));
        if let (true, Some(identity)) = (has_biases, identity.as_object_mut()) {
            identity.insert("bias_rate".to_owned(), self.bias_rate.into());
        }
        identity
    }

    /// Learning rate of step `step` (from 0) of `steps`.
    pub fn learning_rate_at(&self, step: usize, steps: usize) -> f64 {
        if step < self.warmup_steps {
            return self.learning_rate * (step + 1) as f64 / self.warmup_steps as f64;
        }
        let left = steps.saturating_sub(self.warmup_steps).max(1) as f64;
        let done = (step - self.warmup_steps) as f64 / left;
        let share = match self.decay {
            Decay::Linear => 1.0 - done,
            Decay::Cosine => 0.5 * (1.0 + (std::f64::consts::PI * done).cos()),
            Decay::Constant => 1.0,
        };
        self.learning_rate * (self.final_share + (1.0 - self.final_share) * share)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rate_rises_peaks_and_falls_to_its_final_share() {
        let config = OptimizerConfig { warmup_steps: 10, ..OptimizerConfig::default() };
        assert!((config.learning_rate_at(0, 110) - 1e-4).abs() < 1e-12);
        assert!((config.learning_rate_at(9, 110) - 1e-3).abs() < 1e-12);
        assert!((config.learning_rate_at(10, 110) - 1e-3).abs() < 1e-12);
        assert!((config.learning_rate_at(60, 110) - 5e-4).abs() < 1e-12);
        assert!(config.learning_rate_at(109, 110) < 1.1e-5);
        let cosine = OptimizerConfig { decay: Decay::Cosine, final_share: 0.1, ..config.clone() };
        assert!((cosine.learning_rate_at(60, 110) - 5.5e-4).abs() < 1e-12);
        // A quarter of the way; halfway the line is there, too.
        let quarter = 1e-3 * (0.1 + 0.9 * 0.5 * (1.0 + 0.5_f64.sqrt()));
        assert!((cosine.learning_rate_at(35, 110) - quarter).abs() < 1e-12);
        let constant = OptimizerConfig { decay: Decay::Constant, ..config };
        assert!((constant.learning_rate_at(109, 110) - 1e-3).abs() < 1e-12);
    }

    #[test]
    fn only_encodings_with_biases_have_their_rate_in_their_identity() {
        let config = OptimizerConfig::default();
        let identity = |text: &str| config.identity_of(&Combination::parse(text).unwrap());
        for text in ["rope", "alibi", "cope", "learned-absolute", "fox", "dape(alibi)"] {
            assert_eq!(identity(text), Combination::parse(text).unwrap().identity());
        }
        let with_biases =
            ["t5-bias", "kerple", "fire", "dape", "alibi{learning=per-layer}", "rope+t5-bias"];
        for text in with_biases {
            assert_eq!(identity(text)["bias_rate"], 8.0, "{text}");
        }
        assert!(serde_json::to_value(&config).unwrap().get("bias_rate").is_none());
        let slow = OptimizerConfig { bias_rate: 1.0, ..config };
        assert_eq!(serde_json::to_value(&slow).unwrap()["bias_rate"], 1.0);
    }

    #[test]
    fn a_rate_of_zero_is_refused_by_name() {
        let config = OptimizerConfig { learning_rate: 0.0, ..OptimizerConfig::default() };
        assert!(config.check().unwrap_err().to_string().contains("train.optimizer.learning_rate"));
    }
}
