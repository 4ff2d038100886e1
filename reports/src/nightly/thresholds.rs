//! Thresholds of the nightly gate.

/// Sizes of changes that fail or warn.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Thresholds {
    /// Least loss of a share (exact match, token accuracy) that fails; 0.01 is one point.
    pub least_share: f64,
    /// Least rise of the nll that fails, nats per scored token.
    pub least_nats: f64,
    /// Ratio of median step times from which the comparison warns.
    pub slower: f64,
    /// Ratio of peak memory from which the comparison warns.
    pub more_memory: f64,
    /// Largest accepted relative difference of the allocations of a step; METHODOLOGY.md lists
    /// observed differences.
    pub allocations_tolerance: f64,
    /// The bytes that they ask for may differ by this share.
    pub allocated_bytes_tolerance: f64,
    /// Instructions of a step may differ by this share.
    pub instructions_tolerance: f64,
}

impl Default for Thresholds {
    fn default() -> Self {
        Self {
            least_share: 0.01,
            least_nats: 0.01,
            slower: 1.25,
            more_memory: 1.1,
            allocations_tolerance: 0.001,
            allocated_bytes_tolerance: 0.005,
            instructions_tolerance: 0.005,
        }
    }
}
