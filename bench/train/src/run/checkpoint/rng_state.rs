//! Random number generators as plain data.

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;
use serde::{Deserialize, Serialize};

/// Seed, stream and position of a ChaCha8 generator.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RngState {
    seed: [u8; 32],
    stream: u64,
    /// Words of 32 bits drawn so far; below 2^68.
    word: u128,
}

impl RngState {
    pub(super) fn of(rng: &ChaCha8Rng) -> Self {
        Self { seed: rng.get_seed(), stream: rng.get_stream(), word: rng.get_word_pos() }
    }

    pub(super) fn rng(&self) -> ChaCha8Rng {
        let mut rng = ChaCha8Rng::from_seed(self.seed);
        rng.set_stream(self.stream);
        rng.set_word_pos(self.word);
        rng
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::RngExt;

    #[test]
    fn a_generator_goes_on_from_every_standpoint() {
        let mut rng = ChaCha8Rng::seed_from_u64(3);
        rng.set_stream(7);
        for drawn in 0..200 {
            let mut again = RngState::of(&rng).rng();
            let mut copy = rng.clone();
            for _ in 0..40 {
                assert_eq!(copy.random::<u64>(), again.random::<u64>(), "after {drawn}");
                assert_eq!(copy.random::<u32>(), again.random::<u32>(), "after {drawn}");
            }
            let _: u32 = rng.random();
        }
    }
}
