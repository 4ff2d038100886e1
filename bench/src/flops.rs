//! Analytic cost of a model under an encoding: one multiply-accumulate is two operations, the
//! whole square of the attention is counted, and a training step is three forward passes.

pub mod config;

use pe_zoo::cost::Sums;
use pe_zoo::{Combination, Cost, Dims, EncodingConfig, PeError};
use reports::FlopCount;

use crate::model::ModelConfig;

/// Operations of one training step over `batch_size` sequences of `len` tokens.
pub fn count(
    encoding: &Combination,
    model: &ModelConfig,
    dims: &Dims,
    vocabulary: usize,
    batch_size: usize,
    len: usize,
) -> FlopCount {
    let macs = model.forward_macs(vocabulary, len) + encoding.cost(dims, len).macs();
    FlopCount {
        train_step: 3 * 2 * macs * batch_size as u64,
        forward_per_token: 2 * macs / (len as u64).max(1),
    }
}

/// Cost of one pass over one sequence, and the number of parameters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bill {
    /// All items, the model's own first.
    pub cost: Cost,
    /// Learned numbers, the encoding's included.
    pub params: u64,
    /// Tokens of the sequence.
    pub len: usize,
}

impl Bill {
    /// The bill of a model under an encoding.
    ///
    /// # Errors
    /// [`PeError`] if the encoding refuses the sizes.
    pub fn of(config: &config::CostConfig, encoding: &Combination) -> Result<Self, PeError> {
        let (dims, len) = (config.dims(), config.len);
        encoding.check(&dims)?;
        let params = config.model.param_count(config.vocabulary) + encoding.param_count(&dims);
        let own = config.model.cost(config.vocabulary, len);
        Ok(Self { cost: own.and(encoding.cost(&dims, len)), params: params as u64, len })
    }

    /// As TAPE's table 3 prints it: `[FLOPs in 1e9, MACs in 1e9, parameters in 2^20]`.
    pub fn as_in_table_3(&self) -> [String; 3] {
        let Sums { macs, flops } = self.cost.as_in_table_3();
        let billions = |n: u64| format!("{:.2}", n as f64 / 1e9);
        [billions(flops), billions(macs), format!("{:.2}", self.params as f64 / f64::from(1 << 20))]
    }

    /// Operations that a causal model needs: each pair of tokens once, every operation counted.
    pub fn honest(&self) -> Sums {
        self.cost.causal(self.len)
    }
}

#[cfg(test)]
mod tests;
