//! Which channels are rotated together.

/// Pairing of channels that are rotated together.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize,
)]
#[serde(rename_all = "kebab-case")]
pub enum Pairs {
    /// Pairs channel `m` with `m + D / 2`: HuggingFace Llama, TAPE, YaRN.
    #[default]
    HalfSplit,
    /// Pairs channel `2 m` with `2 m + 1`: RoFormer, xPos.
    Interleaved,
}
