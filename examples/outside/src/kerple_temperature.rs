//! KERPLE's power kernel (Chi et al. 2022, arXiv:2205.09921, equation 4) with a learned temperature:
//! `temperature[h] * q.k / sqrt(D) - a[h] * distance^p[h]`.
//!
//! It scales the content logit, which no combination of the library's modifiers does.

use burn::module::{Module, Param};
use burn::tensor::{Device, Tensor};
use pe_zoo::card::Card;
use pe_zoo::encoding::ScoreContext;
use pe_zoo::reference::{Heads, ScalarInput, ScalarReference, table_f64};
use pe_zoo::score::{Number, Pair, PairTerm, Term};
use pe_zoo::{Cost, Dims, PeError, PositionEncoding, ScoreMod, init};
use rand_chacha::ChaCha8Rng;

pe_zoo::settings! {
    /// Settings: `kerple-temperature{temperature=2}`.
    pub(crate) struct KerpleConfig {
        /// Initial value of the temperatures, above 0.
        temperature: f64 = 1.0,
    }
}

/// Logarithms of temperature, `a` and `p` of each head and layer; the values themselves are positive.
#[derive(Module, Debug)]
pub(crate) struct Kerple {
    /// Logarithms of each layer, `[H, 3]`.
    logs: Vec<Param<Tensor<2>>>,
}

impl PositionEncoding for Kerple {
    type Settings = KerpleConfig;

    const CARD: Card = Card {
        id: "kerple-temperature",
        label: "KERPLE, tempered",
        summary: "Scales the logits and subtracts a learned power of the distance, both per head.",
        parameters: "3 L H",
        paper: "Chi et al. 2022, with a temperature",
        url: "https://arxiv.org/abs/2205.09921",
    };

    /// Refuses a temperature without a logarithm, before anything is built or trained.
    fn check(settings: &KerpleConfig, _: &Dims) -> Result<(), PeError> {
        let temperature = settings.temperature;
        if temperature.is_finite() && temperature > 0.0 {
            return Ok(());
        }
        Err(PeError::invalid(Self::CARD.id, "temperature", temperature, "a number above 0"))
    }

    fn build(
        settings: &KerpleConfig,
        dims: &Dims,
        _: &mut ChaCha8Rng,
        device: &Device,
    ) -> Result<Self, PeError> {
        // A penalty of 0.1 at distance 1, and its square root's growth.
        let start = [settings.temperature as f32, 0.1, 0.5].map(f32::ln).repeat(dims.heads);
        let layer = || init::given(start.clone(), [dims.heads, 3], device);
        Ok(Self { logs: (0..dims.layers).map(|_| layer()).collect() })
    }

    fn param_count(_: &KerpleConfig, dims: &Dims) -> Option<usize> {
        Some(3 * dims.layers * dims.heads)
    }

    fn cost(_: &KerpleConfig, dims: &Dims, len: usize) -> Option<Cost> {
        let pairs = dims.layers * dims.heads * len * len;
        Some(Cost::none().pair_elementwise("temperature, power, slope, sum of logits", 6 * pairs))
    }

    fn reference(&self) -> Option<&dyn ScalarReference> {
        Some(self)
    }

    fn score(&self, ctx: &ScoreContext<'_>) -> ScoreMod {
        let params = self.logs[ctx.layer.layer].val().exp();
        ScoreMod::Term(Term::new(Power).head_params(params))
    }
}

#[derive(Debug, Clone)]
struct Power;

impl PairTerm<3> for Power {
    #[inline(always)]
    fn value<N: Number>(&self, pair: Pair<N, 3>) -> N {
        let [temperature, a, power] = pair.params;
        temperature * pair.content - a * pair.distance.pow(power)
    }
}

impl ScalarReference for Kerple {
    fn scalar_logits(&self, input: &ScalarInput) -> Heads {
        let logs = table_f64(&self.logs[input.layer]);
        let root = (input.head_dim() as f64).sqrt();
        input.map(|h, row, i, j| {
            let [temperature, a, power] = [logs[h][0].exp(), logs[h][1].exp(), logs[h][2].exp()];
            let distance = input.distance(i, j) as f64;
            let penalty = if distance == 0.0 { 0.0 } else { a * distance.powf(power) };
            temperature * input.content(h, row, j) / root - penalty
        })
    }
}
