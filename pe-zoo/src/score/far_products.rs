//! Products of other queries and keys for pairs of tokens far from each other.

use burn::tensor::Tensor;

/// Replaces the products `q_i . k_j` of far pairs by those of other queries and keys, as in methods that shorten distances beyond a
/// window.
#[derive(Debug, Clone)]
pub struct FarProducts {
    /// Queries of far pairs, `[B, H, T, D]`.
    pub queries: Tensor<4>,
    /// Keys of far pairs, `[B, H, S, D]`.
    pub keys: Tensor<4>,
    /// Pairs that are far.
    pub pairs: FarPairs,
}

/// Pairs of tokens that are far from each other; lengths are in steps of the positions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FarPairs {
    /// Pairs at this distance and more.
    Distance {
        /// Smallest distance.
        from: usize,
    },
    /// Pairs of different chunks of the sequence, without those of a row near the beginning of its chunk and a column of the chunk
    /// before.
    Chunks {
        /// Length of a chunk.
        chunk: usize,
        /// Largest distance of such a row from the beginning of its chunk.
        last: usize,
    },
}

impl FarPairs {
    /// The lengths in the order of the fields; those that it does not have are 0.
    #[cfg(feature = "cube")]
    pub(crate) const fn lengths(self) -> [usize; 2] {
        match self {
            Self::Distance { from } => [from, 0],
            Self::Chunks { chunk, last } => [chunk, last],
        }
    }

    /// Returns the first position that is not far from a row; it never descends as rows ascend.
    pub(crate) fn first_near(self, row: usize) -> usize {
        match self {
            Self::Distance { from } => (row + 1).saturating_sub(from),
            Self::Chunks { chunk, last } => {
                let within = row % chunk;
                let begin = row - within;
                if within <= last { begin.saturating_sub(chunk) } else { begin }
            }
        }
    }
}
