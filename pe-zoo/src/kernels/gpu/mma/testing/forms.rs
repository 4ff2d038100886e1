//! The kernels of every form in the simulation, compared with the formulas in f64.

use super::compare::{ROUNDED, close};
use super::reference::SimulatedProblem;
use super::simulated::Simulated;
use super::terms;
use crate::kernels::gpu::mma::config::{AlongRow, MOST_GROUPS, MmaConfig};
use crate::kernels::operands::Sizes;
use crate::score::{FarPairs, TracedTerm};

/// Factor of the tolerance for the gradient of slopes, in which every error is multiplied by a distance or a position.
const BY_DISTANCE: f64 = 5.0;

/// Gradients of the numbers whose running sums have these, `[B, H, S, D]`.
fn backwards<F: Copy + std::ops::AddAssign>(of_sums: &[F], dim: usize, columns: usize) -> Vec<F> {
    let mut of_steps = of_sums.to_vec();
    for plane in of_steps.chunks_mut(columns * dim) {
        for at in (0..plane.len() - dim).rev() {
            let next = plane[at + dim];
            plane[at] += next;
        }
    }
    of_steps
}

fn check(config: MmaConfig) {
    check_with(config, &|_| ());
}

/// Checks a configuration with the sinks of two heads.
fn check_with_sinks(config: MmaConfig, sinks: &[f32; 2]) {
    check_with(config, &|problem| problem.sinks = sinks.to_vec());
}

/// Checks a configuration with operands that are not those of other tests.
fn check_with(config: MmaConfig, change: &dyn Fn(&mut SimulatedProblem)) {
    let simulated = Simulated::new(config);
    let MmaConfig { head_dim, value_dim, .. } = config;
    for (batch, rows, columns) in
        [(1, 1, 1), (2, 17, 40), (1, 70, 70), (1, 3, 130), (1, 140, 140), (1, 129, 200)]
    {
        let sizes = Sizes { batch, heads: 2, rows, columns, head_dim, value_dim };
        let mut problem = SimulatedProblem::random(config, sizes);
        change(&mut problem);
        let expected = problem.solve();
        let solution = simulated.run(&problem);
        let name = |what: &str| format!("{what} of {config:?} at {sizes:?}");
        close(&name("output"), &solution.output, &expected.output, ROUNDED);
        close(&name("gradient of queries"), &solution.q, &expected.q, ROUNDED);
        close(&name("gradient of keys"), &solution.k, &expected.k, ROUNDED);
        close(&name("gradient of values"), &solution.values, &expected.values, ROUNDED);
        if config.has_slopes() {
            close(
                &name("gradient of slopes"),
                &solution.slopes,
                &expected.slopes,
                BY_DISTANCE * ROUNDED,
            );
        }
        if config.distance {
            let off = BY_DISTANCE * ROUNDED;
            close(&name("gradient of distances"), &solution.distance, &expected.distance, off);
        }
        if config.pieces > 0 {
            for (what, numbers, expected) in [
                ("distances", &solution.distance, &expected.distance),
                ("lines", &solution.piece_lines, &expected.piece_lines),
                ("rows' numbers", &solution.row_factors, &expected.row_factors),
            ] {
                let off = BY_DISTANCE * ROUNDED;
                close(&name(&format!("gradient of {what}")), numbers, expected, off);
            }
        }
        if config.decay {
            close(&name("gradient of running sums"), &solution.decay, &expected.decay, ROUNDED);
        }
        let sums = &solution.channel_sums;
        close(&name("gradient of channels' sums"), sums, &expected.channel_sums, ROUNDED);
        let (of_steps, expected_steps) = (
            backwards(sums, head_dim, columns),
            backwards(&expected.channel_sums, head_dim, columns),
        );
        let off = 2.0 * ROUNDED;
        close(&name("gradient of channels' decays"), &of_steps, &expected_steps, off);
        let (params, state) = (&solution.term_params, &solution.term_state);
        let off = BY_DISTANCE * ROUNDED;
        close(&name("gradient of parameters"), params, &expected.term_params, off);
        close(&name("gradient of token state"), state, &expected.term_state, ROUNDED);
        let off = if config.along == AlongRow::ContextualPieces { off } else { ROUNDED };
        close(&name("gradient of tables"), &solution.tables, &expected.tables, off);
        let again = simulated.run(&problem);
        let bits = |numbers: &[f32]| numbers.iter().map(|x| x.to_bits()).collect::<Vec<_>>();
        for (what, first, second) in [
            ("output", &solution.output, &again.output),
            ("gradient of queries", &solution.q, &again.q),
            ("gradient of keys", &solution.k, &again.k),
            ("gradient of values", &solution.values, &again.values),
            ("gradient of slopes", &solution.slopes, &again.slopes),
            ("gradient of distances", &solution.distance, &again.distance),
            ("gradient of lines", &solution.piece_lines, &again.piece_lines),
            ("gradient of rows' numbers", &solution.row_factors, &again.row_factors),
            ("gradient of running sums", &solution.decay, &again.decay),
            ("gradient of channels' sums", sums, &again.channel_sums),
            ("gradient of tables", &solution.tables, &again.tables),
            ("gradient of parameters", &solution.term_params, &again.term_params),
            ("gradient of token state", &solution.term_state, &again.term_state),
        ] {
            assert!(bits(first) == bits(second), "{} differs in a second run", name(what));
        }
    }
}

const PLAIN: MmaConfig = MmaConfig {
    head_dim: 64,
    value_dim: 64,
    second_dim: 0,
    slopes: false,
    distance: false,
    decay: false,
    decay_residual: false,
    pieces: 0,
    along: AlongRow::Nothing,
    entries: 0,
    row_groups: MOST_GROUPS,
    native: false,
    warpgroups: false,
};

#[test]
fn no_modifier() {
    check(PLAIN);
    check(MmaConfig { row_groups: 1, ..PLAIN });
}

#[test]
fn other_widths() {
    check(MmaConfig { head_dim: 24, value_dim: 32, ..PLAIN });
    check(MmaConfig { head_dim: 96, value_dim: 40, ..PLAIN });
    check(MmaConfig { head_dim: 128, value_dim: 128, ..PLAIN });
}

#[test]
fn slopes() {
    check(MmaConfig { slopes: true, ..PLAIN });
    check(MmaConfig { slopes: true, row_groups: 1, ..PLAIN });
}

#[test]
fn distances() {
    check(MmaConfig { distance: true, ..PLAIN });
    check(MmaConfig { distance: true, row_groups: 1, ..PLAIN });
    check(MmaConfig { distance: true, slopes: true, head_dim: 128, value_dim: 128, ..PLAIN });
}

/// The gradients of a row's logits do not add up to zero then.
#[test]
fn distances_beside_sinks() {
    check_with_sinks(MmaConfig { distance: true, ..PLAIN }, &[1.5, -0.5]);
}

#[test]
fn pieces_by_distance() {
    check(MmaConfig { pieces: 9, ..PLAIN });
    check(MmaConfig { pieces: 33, row_groups: 1, ..PLAIN });
    check(MmaConfig {
        pieces: 5,
        slopes: true,
        decay: true,
        head_dim: 128,
        value_dim: 96,
        ..PLAIN
    });
}

#[test]
fn running_sums() {
    check(MmaConfig { decay: true, ..PLAIN });
    check(MmaConfig { slopes: true, decay: true, decay_residual: true, head_dim: 128, ..PLAIN });
}

#[test]
fn contextual_positions() {
    // Rows count past the last of nine entries within a block, and hardly ever past that of 64.
    let config = MmaConfig { along: AlongRow::Contextual, entries: 9, ..PLAIN };
    check(config);
    check(MmaConfig { entries: 64, head_dim: 128, value_dim: 96, ..config });
    check(MmaConfig { entries: 8, head_dim: 24, value_dim: 128, ..config });
}

#[test]
fn slopes_of_contextual_positions() {
    let config = MmaConfig { along: AlongRow::ContextualSlope, ..PLAIN };
    check(config);
    check(MmaConfig { head_dim: 128, value_dim: 96, ..config });
}

#[test]
fn pieces_of_contextual_positions() {
    // Several pieces within one position, and pieces that no position reaches.
    let config = MmaConfig { along: AlongRow::ContextualPieces, entries: 2 * 33, ..PLAIN };
    check(config);
    check(MmaConfig { entries: 2 * 9, head_dim: 128, value_dim: 96, ..config });
    check(MmaConfig { entries: 2, head_dim: 24, value_dim: 32, ..config });
}

/// Gates of keys of their own.
#[test]
fn contextual_positions_by_second_products() {
    let config = MmaConfig { head_dim: 128, second_dim: 64, ..PLAIN };
    check(MmaConfig { along: AlongRow::Contextual, entries: 9, ..config });
    let config = MmaConfig { head_dim: 32, value_dim: 16, second_dim: 16, ..PLAIN };
    check(MmaConfig { along: AlongRow::ContextualSlope, ..config });
    check(MmaConfig { along: AlongRow::ContextualPieces, entries: 2 * 33, ..config });
}

#[test]
fn step_prices() {
    let config = MmaConfig { along: AlongRow::StepPrices, ..PLAIN };
    check(MmaConfig { head_dim: 64 + 8, second_dim: 8, ..config });
    check(MmaConfig { head_dim: 16 + 8, value_dim: 16, second_dim: 8, ..config });
    check(MmaConfig { head_dim: 96 + 32, value_dim: 96, second_dim: 32, ..config });
    check_with_sinks(MmaConfig { head_dim: 32 + 24, second_dim: 24, ..config }, &[1.5, -0.5]);
}

#[test]
fn far_products() {
    let config = |pairs| MmaConfig { along: AlongRow::FarProducts(pairs), ..PLAIN };
    let by_distance = config(FarPairs::Distance { from: 37 });
    check(MmaConfig { head_dim: 128, second_dim: 64, ..by_distance });
    check(MmaConfig { head_dim: 32, value_dim: 24, second_dim: 16, ..by_distance });
    let by_chunk = config(FarPairs::Chunks { chunk: 45, last: 13 });
    check(MmaConfig { head_dim: 96, second_dim: 48, ..by_chunk });
}

#[test]
fn channels_that_decay() {
    let config = MmaConfig { along: AlongRow::ChannelDecay, ..PLAIN };
    check(config);
    check(MmaConfig { head_dim: 24, value_dim: 32, ..config });
    check(MmaConfig { head_dim: 96, value_dim: 40, ..config });
    check(MmaConfig { head_dim: 128, value_dim: 128, ..config });
}

/// Running sums of many thousands: factors vanish, and nothing is infinite.
#[test]
fn channels_that_decay_at_once() {
    let config = MmaConfig { along: AlongRow::ChannelDecay, ..PLAIN };
    let faster = |factor: f32| {
        check_with(config, &|problem| {
            problem.channel_sums.iter_mut().for_each(|sum| *sum *= factor);
        });
    };
    faster(100.0);
    faster(1e4);
}

#[test]
fn channels_that_decay_beside_biases() {
    let config = MmaConfig { along: AlongRow::ChannelDecay, ..PLAIN };
    check(MmaConfig { slopes: true, distance: true, decay: true, ..config });
    check_with_sinks(
        MmaConfig { distance: true, head_dim: 128, value_dim: 96, ..config },
        &[1.5, -0.5],
    );
}

#[test]
fn broken_sticks() {
    check(MmaConfig { along: AlongRow::Sticks { strict: true }, ..PLAIN });
    let config = MmaConfig { along: AlongRow::Sticks { strict: false }, ..PLAIN };
    check(config);
    check(MmaConfig { head_dim: 128, value_dim: 96, ..config });
}

#[test]
fn distances_by_query() {
    let config = MmaConfig { along: AlongRow::QueryDistance, entries: 23, ..PLAIN };
    check(config);
    check(MmaConfig { entries: 3, ..config });
    check(MmaConfig { entries: 90, head_dim: 128, value_dim: 96, ..config });
}

#[test]
fn functions_of_pairs() {
    let along = |traced: TracedTerm| AlongRow::Term(traced.interned());
    let power = along(TracedTerm::new::<_, 3, 0>(&terms::Power));
    check(MmaConfig { along: power, ..PLAIN });
    let factor = along(TracedTerm::new::<_, 0, 1>(&terms::RowFactor));
    check(MmaConfig { along: factor, head_dim: 24, value_dim: 32, ..PLAIN });
    let difference = along(TracedTerm::new::<_, 0, 2>(&terms::StateDifference));
    check(MmaConfig { along: difference, head_dim: 128, ..PLAIN });
    let terms = [
        TracedTerm::new::<_, 3, 0>(&terms::Power).interned(),
        TracedTerm::new::<_, 0, 2>(&terms::StateDifference).interned(),
    ];
    let chained = AlongRow::Term(TracedTerm::chained(terms.into_iter()).unwrap());
    check(MmaConfig { along: chained, ..PLAIN });
    let everything = along(TracedTerm::new::<_, 2, 1>(&terms::Everything));
    check(MmaConfig { along: everything, head_dim: 24, value_dim: 32, ..PLAIN });
    check(MmaConfig { along: everything, distance: true, ..PLAIN });
    check_with_sinks(
        MmaConfig { along: chained, distance: true, head_dim: 128, value_dim: 96, ..PLAIN },
        &[1.5, -0.5],
    );
}
