//! Passes of one layer over random problems, by the fastest engine.

use burn::tensor::{Device, Tensor};

use crate::attention::{Engine, LayerCache};
use crate::probe::passes::{LayerEngine, chunk_by};
use crate::probe::problem::Problem;
use crate::{Hooks, Positions};

/// Output of one layer, `[B, H, T, D]`, for the rows `at.first_row()..` in one pass.
pub(super) fn full_pass(
    encoding: &dyn Hooks,
    problem: &Problem,
    at: &Positions,
    index: usize,
    device: &Device,
) -> Tensor<4> {
    chunk(encoding, problem, at, 0..at.cols().len(), index, None, device)
}

/// Output for the tokens in `range`, with the tokens before it in the cache, by the fastest engine.
pub(super) fn chunk(
    encoding: &dyn Hooks,
    problem: &Problem,
    at: &Positions,
    range: std::ops::Range<usize>,
    index: usize,
    cache: Option<&mut LayerCache>,
    device: &Device,
) -> Tensor<4> {
    let place = LayerEngine { layer: index, engine: Engine::best(device) };
    chunk_by(encoding, problem, at, range, place, cache, device)
}

/// Engines on which encodings are run: the fastest, which most checks use, and the reference.
pub(super) fn engines(device: &Device) -> Vec<Engine> {
    let mut engines = vec![Engine::best(device), Engine::Reference];
    engines.dedup();
    engines
}

/// Problem of this batch entry and the later ones.
pub(super) fn later_entries(problem: &Problem, entry: usize) -> Problem {
    Problem {
        q: problem.q[entry..].to_vec(),
        k: problem.k[entry..].to_vec(),
        v: problem.v[entry..].to_vec(),
        x: problem.x[entry..].to_vec(),
        tokens: problem.tokens[entry..].to_vec(),
    }
}
