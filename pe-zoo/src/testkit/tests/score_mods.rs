//! The reference engine against scalar f64 for every modifier that no encoding uses yet.

use burn::tensor::{Device, Tensor};

use crate::attention::{Weights, attend};
use crate::reference::{Heads, ScalarInput, attention, score};
use crate::score::{Beyond, Contextual, ContextualFunction, Convention, GateSource};
use crate::testkit::close::{self, F32, numbers};
use crate::testkit::problem::{Problem, tensor4};
use crate::{Dims, Positions, ScoreMod};

const DIMS: Dims = Dims { layers: 1, heads: 3, head_dim: 6, train_len: 13, max_len: 13 };
const TOKENS: usize = 13;

struct Case {
    problem: Problem,
    at: Positions,
    input: ScalarInput,
    device: Device,
}

impl Case {
    fn new() -> Self {
        let problem = Problem::random(1, TOKENS, &DIMS, 17);
        // Neither contiguous nor from zero.
        let at = Positions::new((0..TOKENS).map(|n| 3 + n * n / 4 + n).collect(), 0).unwrap();
        let input = problem.scalar(0, 0, &at);
        Self { problem, at, input, device: Device::flex() }
    }

    fn scale(&self) -> f64 {
        1.0 / (self.input.head_dim() as f64).sqrt()
    }

    fn plain(&self, h: usize, row: usize, j: usize) -> f64 {
        self.input.content(h, row, j) * self.scale()
    }

    #[track_caller]
    fn assert(&self, modifier: &ScoreMod, weights: &Heads) {
        let tensor = |heads: &Vec<Heads>| tensor4(heads, &self.device);
        let v = tensor(&self.problem.v);
        let attended = attend(
            &tensor(&self.problem.q),
            &tensor(&self.problem.k),
            &v,
            v.clone(),
            modifier,
            &self.at,
            self.scale(),
            Weights::Return,
        );
        let mixed = attention::mix(weights, &self.input.v);
        let expected = mixed.into_iter().flatten().flatten().collect::<Vec<_>>();
        close::compare(&numbers(attended.output), &expected, F32).unwrap();
        let padded = weights
            .iter()
            .flatten()
            .flat_map(|row| row.iter().copied().chain(std::iter::repeat(0.0)).take(TOKENS))
            .collect::<Vec<_>>();
        close::compare(&numbers(attended.weights.unwrap()), &padded, F32).unwrap();
    }
}

#[test]
fn distance_tables_are_read_at_the_distance_and_end_as_stated() {
    let case = Case::new();
    let table = [[0.5f32, -1.0, 2.0, 0.25], [1.0, 0.0, -0.5, 3.0], [0.0, 1.0, 1.5, -2.0]];
    for beyond in [Beyond::Zero, Beyond::Last] {
        let logits = case.input.map(|h, row, i, j| {
            let distance = case.input.distance(i, j);
            let bias = match (distance < 4, beyond) {
                (true, _) => table[h][distance],
                (false, Beyond::Last) => table[h][3],
                (false, Beyond::Zero) => 0.0,
            };
            case.plain(h, row, j) + f64::from(bias)
        });
        let table = Tensor::from_data(table, &case.device);
        case.assert(&ScoreMod::Distance { table, beyond }, &attention::softmax(&logits));
    }
}

#[test]
fn decay_adds_the_sum_of_log_forgetting_between_the_two_tokens() {
    let case = Case::new();
    let log_forget = (0..DIMS.heads)
        .map(|h| (0..TOKENS).map(|t| -0.1 * ((h + 2 * t) as f64).cos().abs()).collect())
        .collect::<Vec<Vec<f64>>>();
    let weights = attention::softmax(&score::decay(&case.input, &log_forget));
    let flat = log_forget.iter().flatten().map(|x| *x as f32).collect::<Vec<_>>();
    let cumulative = Tensor::<1>::from_data(flat.as_slice(), &case.device)
        .reshape([1, DIMS.heads, TOKENS])
        .cumsum(2);
    case.assert(&ScoreMod::Decay { cumulative }, &weights);
}

#[test]
fn stick_breaking_replaces_the_softmax() {
    let case = Case::new();
    case.assert(&ScoreMod::StickBreaking, &score::stick_breaking(&case.input));
}

#[test]
fn contextual_slopes_and_gates_from_keys_of_their_own() {
    let case = Case::new();
    let other = Problem::random(1, TOKENS, &DIMS, 18);
    let slopes = [0.3f32, -0.2, 0.05];
    let side = crate::reference::cope::GateSide::Own(&other.k[0]);
    let positions = crate::reference::cope::positions(&case.input, 3.0, Convention::Listing, side);
    let logits = case
        .input
        .map(|h, row, _i, j| case.plain(h, row, j) + f64::from(slopes[h]) * positions[h][row][j]);
    let modifier = ScoreMod::Contextual(Contextual {
        gates: GateSource::Keys(tensor4(&other.k, &case.device)),
        max_position: 3.0,
        function: ContextualFunction::Slope(Tensor::from_data(slopes, &case.device)),
        convention: Convention::Listing,
    });
    case.assert(&modifier, &attention::softmax(&logits));
}

#[test]
fn a_sum_adds_its_parts_and_a_dense_bias_is_added_as_it_is() {
    let case = Case::new();
    let slopes = [0.5f32, 0.25, 0.125];
    let dense = |h: usize, i: usize, j: usize| ((h + 3 * i + 7 * j) as f64).sin();
    let logits = case.input.map(|h, row, i, j| {
        let slope = f64::from(slopes[h]) * case.input.distance(i, j) as f64;
        case.plain(h, row, j) - slope + dense(h, i, j)
    });
    let bias = (0..DIMS.heads * TOKENS * TOKENS)
        .map(|n| dense(n / (TOKENS * TOKENS), n / TOKENS % TOKENS, n % TOKENS) as f32)
        .collect::<Vec<_>>();
    let bias = Tensor::<1>::from_data(bias.as_slice(), &case.device)
        .reshape([1, DIMS.heads, TOKENS, TOKENS]);
    let modifier = ScoreMod::Sum(vec![
        ScoreMod::None,
        ScoreMod::Slope(Tensor::from_data(slopes, &case.device)),
        ScoreMod::Sum(vec![ScoreMod::Dense(bias)]),
    ]);
    case.assert(&modifier, &attention::softmax(&logits));
}
