//! Precision of the factors of matrix products.

/// Precision to which the factors of linear maps are rounded before they are multiplied. Weights,
/// their updates, tables, rotations, logits, softmax, suffix sums and all sums stay f32, as do all
/// other products except those of the fused engine on tensor cores.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize,
)]
#[serde(rename_all = "kebab-case")]
pub enum MatmulPrecision {
    /// Single precision: nothing is rounded.
    #[default]
    F32,
    /// Eleven significant bits, on tensor cores of NVIDIA GPUs. Burn uses them for large f32
    /// tensors where it finds them faster, and has no switch against that.
    Tf32,
    /// Eight significant bits, on tensor cores of GPUs; the result is rounded as well.
    Bf16,
}

impl MatmulPrecision {
    /// All precisions, the default first.
    pub const ALL: [Self; 3] = [Self::F32, Self::Tf32, Self::Bf16];

    /// Name of the precision in suites and records.
    pub fn id(self) -> &'static str {
        match self {
            Self::F32 => "f32",
            Self::Tf32 => "tf32",
            Self::Bf16 => "bf16",
        }
    }
}
