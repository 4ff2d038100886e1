//! The width of the factors of matrix products.

/// The precision of the factors of linear maps, rounded before they are multiplied. Weights, their updates,
/// tables, rotations, logits, softmax, suffix sums and everything that is added stay f32; so do all other
/// products but those of the fused engine on tensor cores.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize,
)]
#[serde(rename_all = "kebab-case")]
pub enum MatmulPrecision {
    /// Single precision: nothing is rounded.
    #[default]
    F32,
    /// Eleven significant bits, by the tensor cores of NVIDIA GPUs, where Burn finds them faster: it
    /// multiplies large f32 tensors so, and has no switch.
    Tf32,
    /// Eight significant bits, by the tensor cores of GPUs; the sum is rounded once more.
    Bf16,
}

impl MatmulPrecision {
    /// All precisions, the default first.
    pub const ALL: [Self; 3] = [Self::F32, Self::Tf32, Self::Bf16];

    /// The name in suites and records.
    pub fn id(self) -> &'static str {
        match self {
            Self::F32 => "f32",
            Self::Tf32 => "tf32",
            Self::Bf16 => "bf16",
        }
    }
}
