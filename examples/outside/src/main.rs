//! `pe-bench` with five encodings of its own. This file has the simplest, a bias by distance.

mod cable;
mod interleaved;
mod kerple_temperature;
mod llama4_temperature;

use std::process::ExitCode;

use burn::module::{Module, Param};
use burn::tensor::{Device, Tensor};
use pe_zoo::card::Card;
use pe_zoo::encoding::ScoreContext;
use pe_zoo::score::{Number, Pair, PairTerm, Term};
use pe_zoo::{Dims, PeError, PositionEncoding, Registry, ScoreMod, init};
use rand_chacha::ChaCha8Rng;

pe_zoo::settings! {
    /// Settings, as the command line and suites write them: `square-root{slope=0.25}`.
    struct Settings {
        slope: f64 = 0.5,
    }
}

/// A learned slope for each head, `[H, 1]`, times the square root of the distance.
#[derive(Module, Debug)]
struct SquareRoot {
    slopes: Param<Tensor<2>>,
}

impl PositionEncoding for SquareRoot {
    type Settings = Settings;

    const CARD: Card = Card {
        id: "square-root",
        label: "Square root",
        summary: "Subtracts a learned slope per head times the square root of the distance.",
        parameters: "H",
        paper: "this example",
        url: "",
    };

    fn build(s: &Settings, dims: &Dims, _: &mut ChaCha8Rng, on: &Device) -> Result<Self, PeError> {
        Ok(Self { slopes: init::constant(s.slope as f32, [dims.heads, 1], on) })
    }

    fn score(&self, _ctx: &ScoreContext<'_>) -> ScoreMod {
        ScoreMod::Term(Term::new(Penalty).head_params(self.slopes.val()))
    }
}

#[derive(Debug, Clone)]
struct Penalty;

impl PairTerm<1> for Penalty {
    #[inline(always)]
    fn value<N: Number>(&self, pair: Pair<N, 1>) -> N {
        pair.content - pair.params[0] * pair.distance.sqrt()
    }
}

fn registry() -> Result<Registry, PeError> {
    Registry::builtin()
        .with::<SquareRoot>()?
        .with::<cable::Cable>()?
        .with::<kerple_temperature::Kerple>()?
        .with::<llama4_temperature::Llama4Temperature>()?
        .with::<interleaved::Interleaved>()
}

fn main() -> ExitCode {
    pe_bench::main_with(registry())
}
