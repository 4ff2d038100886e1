//! Thresholds of the nightly gate.

/// Sizes of changes above which the gate fails or warns.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Thresholds {
    /// Smallest loss of a share (exact match, token accuracy) that fails; 0.01 is one percentage point.
    pub least_share: f64,
    /// Smallest increase of the nll that fails, in nats per scored token.
    pub least_nats: f64,
    /// Ratio of median step times from which the gate warns.
    pub slower: f64,
    /// Ratio of peak memory from which the gate warns.
    pub more_memory: f64,
    /// Largest accepted relative increase of the allocations of a step; METHODOLOGY.md lists observed differences.
    pub allocations_tolerance: f64,
    /// Largest accepted relative increase of the bytes allocated in a step.
    pub allocated_bytes_tolerance: f64,
    /// Largest accepted relative increase of the instructions of a step.
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
