//! Independent streams of random numbers from one seed, so that draws of one component do not affect another.

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;

/// Purpose of a stream of random numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stream {
    /// Initial weights of the model: the same for all encodings of a seed.
    Model,
    /// Initial weights of the encoding.
    Encoding,
    /// Training samples: the same, in the same order, for all encodings of a seed.
    Data,
    /// Random stream of dropout masks.
    Dropout,
    /// Random positions in training.
    Positions,
}

/// Returns the generator of one stream under a seed.
pub fn stream(seed: u64, stream: Stream) -> ChaCha8Rng {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    rng.set_stream(stream as u64);
    rng
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::RngExt;

    #[test]
    fn streams_of_one_seed_differ_and_repeat() {
        let draw = |s| stream(5, s).random::<u64>();
        let all =
            [Stream::Model, Stream::Encoding, Stream::Data, Stream::Dropout, Stream::Positions];
        assert_eq!(std::collections::BTreeSet::from(all.map(draw)).len(), all.len());
        assert_eq!(draw(Stream::Data), draw(Stream::Data));
    }
}
