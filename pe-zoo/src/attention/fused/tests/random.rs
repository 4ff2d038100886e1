//! Compares engines on random shapes, positions and sums of modifiers.

use proptest::prelude::*;
use proptest::test_runner::RngSeed;

use super::{Leaves, Sizes, compare_at, contextual, decay, dense, distance, query_distance, slope};
use crate::score::{Beyond, Contextual, GateSource, LogitScaling};
use crate::{Positions, ScoreMod};

fn modifier<const KINDS: usize>(sizes: &Sizes, leaves: &mut Leaves) -> ScoreMod {
    let mut parts = Vec::new();
    let bit = |n: usize| KINDS >> n & 1 == 1;
    if bit(0) {
        parts.push(slope(sizes, leaves));
    }
    if bit(1) {
        parts.push(distance(sizes, leaves, Beyond::Zero));
    }
    if bit(2) {
        parts.push(query_distance(sizes, leaves, Beyond::Last));
    }
    if bit(3) {
        parts.push(decay(sizes, leaves));
    }
    if bit(4) {
        let own = contextual(sizes, leaves, 6, LogitScaling::Code);
        let gates = if bit(0) { GateSource::QueryValue } else { GateSource::QueryKey };
        parts.push(ScoreMod::Contextual(Contextual { gates, ..own }));
    }
    if bit(5) {
        parts.push(dense(sizes, leaves));
    }
    ScoreMod::Sum(parts)
}

proptest! {
    // The seed is fixed, so that a failure in CI can be repeated.
    #![proptest_config(ProptestConfig {
        cases: 60,
        rng_seed: RngSeed::Fixed(1),
        ..ProptestConfig::default()
    })]

    #[test]
    fn any_shape_agrees(
        batch in 1_usize..4,
        heads in 1_usize..4,
        rows in 1_usize..150,
        before in 0_usize..40,
        head_dim in 1_usize..20,
        value_dim in 1_usize..20,
        steps in prop::collection::vec(1_usize..4, 190),
        spread in prop::sample::select(vec![0.0, 0.5, 3.0]),
        kinds in 0_usize..8,
        contiguous: bool,
    ) {
        let columns = before + rows;
        let sizes = Sizes { batch, heads, rows, columns, head_dim, value_dim };
        let at = if contiguous {
            Positions::contiguous(before, rows)
        } else {
            let mut position = 0;
            let columns = steps[..columns].iter().map(|step| { position += step; position }).collect();
            Positions::new(columns, before).unwrap()
        };
        let make = [
            modifier::<0>, modifier::<0b1>, modifier::<0b110>, modifier::<0b1000>,
            modifier::<0b1_0000>, modifier::<0b1_0101>, modifier::<0b11_1000>, modifier::<0b1_1110>,
        ][kinds];
        compare_at(&sizes, &at, spread, make);
    }
}
