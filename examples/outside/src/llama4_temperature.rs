//! The attention temperature of Llama 4 (Meta 2025): a factor of the content logits that grows with the position of the row.
//!
//! `logit[h, i, j] = (1 + scale ln(1 + floor((p_i + 1) / floor))) q_i . k_j / sqrt(D)`, with `p_i` the position of row `i`.
//!
//! A pair term sees positions as distances only; a number of each row is token state, computed in `score` from the
//! positions. Beside an encoding that adds to the logits, such as CoPE, only the content logit is scaled.

use burn::module::Module;
use burn::tensor::{Device, Tensor};
use pe_zoo::card::Card;
use pe_zoo::encoding::ScoreContext;
use pe_zoo::reference::{Heads, ScalarInput, ScalarReference};
use pe_zoo::score::{Number, Pair, PairTerm, Term};
use pe_zoo::settings::{check_above_zero, check_size};
use pe_zoo::{Cost, Dims, PeError, PositionEncoding, ScoreMod};
use rand_chacha::ChaCha8Rng;

pe_zoo::settings! {
    /// Settings: `llama4-temperature{floor=8192,scale=0.1}`.
    pub(crate) struct Llama4Config {
        /// Number of positions with the same factor; the factor is 1 at the first ones.
        floor: usize = 8192,
        /// Growth of the factor with the logarithm of the position.
        scale: f64 = 0.1,
    }
}

/// Factor of the content logits by the position of the row.
#[derive(Module, Debug)]
pub(crate) struct Llama4Temperature {
    #[module(skip)]
    floor: usize,
    #[module(skip)]
    scale: f64,
}

impl Llama4Temperature {
    fn factor(&self, position: usize) -> f64 {
        1.0 + self.scale * (((position + 1) / self.floor) as f64).ln_1p()
    }
}

impl PositionEncoding for Llama4Temperature {
    type Settings = Llama4Config;

    const CARD: Card = Card {
        id: "llama4-temperature",
        label: "Llama 4 temperature",
        summary: "Scales the logits by a factor that grows with the position of the query.",
        parameters: "0",
        paper: "Meta 2025",
        url: "https://github.com/meta-llama/llama-models",
    };

    fn check(settings: &Llama4Config, _: &Dims) -> Result<(), PeError> {
        check_size(Self::CARD.id, "floor", settings.floor)?;
        check_above_zero(Self::CARD.id, "scale", settings.scale)
    }

    fn build(
        settings: &Llama4Config,
        _: &Dims,
        _: &mut ChaCha8Rng,
        _: &Device,
    ) -> Result<Self, PeError> {
        Ok(Self { floor: settings.floor, scale: settings.scale })
    }

    fn cost(_: &Llama4Config, dims: &Dims, len: usize) -> Option<Cost> {
        let pairs = dims.layers * dims.heads * len * len;
        Some(Cost::none().pair_elementwise("factor", pairs))
    }

    fn reference(&self) -> Option<&dyn ScalarReference> {
        Some(self)
    }

    fn score(&self, ctx: &ScoreContext<'_>) -> ScoreMod {
        let (at, device) = (ctx.layer.at, ctx.q.device());
        let [batch, heads, _rows, _width] = ctx.q.dims();
        // Computed once for all layers and steps at the same positions.
        let key = format!("llama4-temperature {} {}", self.floor, self.scale);
        let factors = at.memo(&key, &device, || {
            let factors = at.cols().iter().map(|position| self.factor(*position) as f32);
            let factors = factors.collect::<Vec<_>>();
            Tensor::<1>::from_data(factors.as_slice(), &device).reshape([1, 1, -1, 1])
        });
        let columns = at.cols().len();
        ScoreMod::Term(Term::new(RowFactor).token_state(factors.expand([batch, heads, columns, 1])))
    }
}

#[derive(Debug, Clone)]
struct RowFactor;

impl PairTerm<0, 1> for RowFactor {
    #[inline(always)]
    fn value<N: Number>(&self, pair: Pair<N, 0, 1>) -> N {
        pair.row[0] * pair.content
    }
}

impl ScalarReference for Llama4Temperature {
    fn scalar_logits(&self, input: &ScalarInput) -> Heads {
        let root = (input.head_dim() as f64).sqrt();
        input.map(|h, row, i, j| {
            let block = ((input.positions[i] + 1) / self.floor) as f64;
            (1.0 + self.scale * (1.0 + block).ln()) * input.content(h, row, j) / root
        })
    }
}
