//! Compares the reference engine with scalar f64 for every modifier that no encoding uses yet.

use burn::tensor::{Device, Int, Tensor};

use crate::attention::{Weights, attend};
use crate::reference::cope::{self, GateSide};
use crate::reference::{Heads, ScalarInput, attention, decay};
use crate::score::{
    Beyond, Contextual, ContextualFunction, Current, GateSource, LogitScaling, Remainder,
    StepPrices, StickBreakingRule,
};
use crate::testkit::close::{self, F32, numbers};
use crate::testkit::problem::{Problem, tensor4};
use crate::{Dims, Positions, ScoreMod};

const DIMS: Dims = Dims { layers: 1, width: 18, heads: 3, head_dim: 6, train_len: 13, max_len: 13 };
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
        // Positions neither contiguous nor from zero.
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
fn vectors_of_the_rows_meet_the_vector_of_the_distance() {
    let case = Case::new();
    let entry = |e: usize, n: usize| (1.0 + 0.7 * n as f32 + e as f32).sin();
    let vector = |h: usize, t: usize, e: usize| (0.4 * h as f32 - 0.3 * t as f32 + e as f32).cos();
    let logits = case.input.map(|h, row, i, j| {
        let distance = case.input.distance(i, j);
        let product = |e: usize| f64::from(vector(h, row, e)) * f64::from(entry(e, distance));
        let bias = if distance < 9 { (0..2).map(product).sum() } else { 0.0 };
        case.plain(h, row, j) + bias
    });
    let tensor = |values: Vec<f32>| Tensor::<1>::from_data(values.as_slice(), &case.device);
    let table = (0..18).map(|n| entry(n / 9, n % 9)).collect();
    let vectors = (0..DIMS.heads * TOKENS * 2).map(|n| {
        let (head, token) = (n / 2 / TOKENS, n / 2 % TOKENS);
        vector(head, token, n % 2)
    });
    let modifier = ScoreMod::RowDistance {
        vectors: tensor(vectors.collect()).reshape([1, DIMS.heads, TOKENS, 2]),
        table: tensor(table).reshape([2, 9]),
        beyond: Beyond::Zero,
    };
    case.assert(&modifier, &attention::softmax(&logits));
}

#[test]
fn decay_adds_the_sum_of_log_forgetting_between_the_two_tokens() {
    let case = Case::new();
    let log_forget = (0..DIMS.heads)
        .map(|h| (0..TOKENS).map(|t| -0.1 * ((h + 2 * t) as f64).cos().abs()).collect())
        .collect::<Vec<Vec<f64>>>();
    let weights = attention::softmax(&decay::forgetting(&case.input, &log_forget));
    let flat = log_forget.iter().flatten().map(|x| *x as f32).collect::<Vec<_>>();
    let cumulative = Tensor::<1>::from_data(flat.as_slice(), &case.device)
        .reshape([1, DIMS.heads, TOKENS])
        .cumsum(2);
    case.assert(&ScoreMod::Decay { cumulative }, &weights);
}

const STICKS: [StickBreakingRule; 4] = [
    StickBreakingRule { current: Current::Excluded, remainder: Remainder::Dropped },
    StickBreakingRule { current: Current::Excluded, remainder: Remainder::OwnToken },
    StickBreakingRule { current: Current::Included, remainder: Remainder::Dropped },
    StickBreakingRule { current: Current::Included, remainder: Remainder::OwnToken },
];

#[test]
fn stick_breaking_replaces_the_softmax() {
    let case = Case::new();
    for settings in STICKS {
        let weights =
            decay::stick_breaking(&case.input.plain(), settings.current, settings.remainder);
        case.assert(&ScoreMod::StickBreaking(settings), &weights);
    }
}

#[test]
fn stick_breaking_with_huge_logits_stays_finite_and_right() {
    // Logits from -1e4 to 1e4, among them shares of exactly nothing and of everything.
    for size in [30.0, 1e3, 1e4] {
        let mut case = Case::new();
        case.input
            .q
            .iter_mut()
            .flatten()
            .for_each(|q| *q = vec![6f64.sqrt(), 0.0, 0.0, 0.0, 0.0, 0.0]);
        for (n, key) in case.input.k.iter_mut().flatten().enumerate() {
            let logit = [-1.0, 1e-4, 1.0, -0.3, 2e-5, -1e-4, 0.6][n * n % 7];
            *key = vec![f64::from((size * logit) as f32), 0.0, 0.0, 0.0, 0.0, 0.0];
        }
        case.problem.q = vec![case.input.q.clone()];
        case.problem.k = vec![case.input.k.clone()];
        for settings in STICKS {
            let weights =
                decay::stick_breaking(&case.input.plain(), settings.current, settings.remainder);
            case.assert(&ScoreMod::StickBreaking(settings), &weights);
        }
    }
}

#[test]
fn stick_breaking_has_finite_gradients_at_huge_logits() {
    let device = Device::flex().autodiff();
    let at = Positions::contiguous(0, TOKENS);
    let q = Tensor::<4>::ones([1, 1, TOKENS, 1], &device);
    let keys = (0..TOKENS).map(|n| [1e4f32, -1e4, 0.5, -0.5][n % 4]).collect::<Vec<_>>();
    let k = Tensor::<1>::from_data(keys.as_slice(), &device).reshape([1, 1, TOKENS, 1]);
    let k = k.require_grad();
    let values = Tensor::<1, Int>::arange(0..TOKENS as i64, &device).float();
    let values = values.reshape([1, 1, TOKENS, 1]);
    for settings in STICKS {
        let modifier = ScoreMod::StickBreaking(settings);
        let attended = attend(&q, &k, &values, values.clone(), &modifier, &at, 1.0, Weights::Drop);
        let grad = numbers(k.grad(&attended.output.sum().backward()).unwrap());
        assert!(grad.iter().all(|g| g.is_finite()), "{settings:?}: {grad:?}");
        assert!(grad.iter().any(|g| *g != 0.0), "{settings:?}: no gradient");
    }
}

#[test]
fn stick_breaking_breaks_logits_with_all_that_is_added_to_them() {
    let case = Case::new();
    let slopes = [0.5f32, 0.25, 0.125];
    // The same logits as dot products alone: two more channels hold the slope.
    let root = (DIMS.head_dim as f64).sqrt();
    let mut input = case.input.clone();
    for (h, slope) in slopes.iter().enumerate() {
        let slope = f64::from(*slope) * root;
        for (t, position) in case.input.positions.iter().enumerate() {
            let q = &mut input.q[h][t];
            for x in q.iter_mut() {
                *x *= root * case.scale();
            }
            q.extend([-slope * *position as f64, slope]);
            input.k[h][t].extend([1.0, *position as f64]);
        }
    }
    let weights = decay::stick_breaking(&input.plain(), Current::Excluded, Remainder::Dropped);
    let modifier = ScoreMod::Sum(vec![
        ScoreMod::StickBreaking(STICKS[0]),
        ScoreMod::Slope(Tensor::from_data(slopes, &case.device)),
    ]);
    case.assert(&modifier, &weights);
}

#[test]
fn products_stand_in_for_the_dot_products_in_logits_and_not_in_gates() {
    let case = Case::new();
    // The products of other queries and keys.
    let other = Problem::random(1, TOKENS, &DIMS, 19);
    let mut input = case.input.clone();
    input.q.clone_from(&other.q[0]);
    input.k.clone_from(&other.k[0]);
    let tensor = |heads: &Vec<Heads>| tensor4(heads, &case.device);
    let products = ScoreMod::Products(tensor(&other.q).matmul(tensor(&other.k).swap_dims(2, 3)));

    let plain = input.map(|h, row, _i, j| input.content(h, row, j) * case.scale());
    case.assert(&products, &attention::softmax(&plain));

    let sticks = ScoreMod::Sum(vec![products.clone(), ScoreMod::StickBreaking(STICKS[0])]);
    case.assert(
        &sticks,
        &decay::stick_breaking(&input.plain(), Current::Excluded, Remainder::Dropped),
    );

    let positions = cope::positions(&case.input, 3.0, LogitScaling::Equation, GateSide::Keys);
    let undivided = input.map(|h, row, _i, j| input.content(h, row, j) + positions[h][row][j]);
    let gated = ScoreMod::Contextual(Contextual {
        gates: GateSource::QueryKey,
        max_position: 3.0,
        function: ContextualFunction::Slope(Tensor::ones([DIMS.heads], &case.device)),
        convention: LogitScaling::Equation,
    });
    case.assert(&ScoreMod::Sum(vec![gated, products]), &attention::softmax(&undivided));
}

/// Sums of the prices after a step do not contain its own.
#[test]
fn a_huge_price_of_a_step_leaves_the_digits_of_later_ones() {
    let device = Device::flex();
    let zeros = Tensor::<4>::zeros([1, 1, 4, 1], &device);
    let modifier = ScoreMod::StepPrices(StepPrices {
        queries: Tensor::ones([1, 1, 4, 1], &device),
        keys: Tensor::<1>::from_data([0.0f32, -1e6, 0.0, 0.0], &device).reshape([1, 1, 4, 1]),
        slopes: Tensor::ones([1], &device),
    });
    let at = Positions::contiguous(0, 4);
    let (q, values) = (&zeros, zeros.clone());
    let attended = attend(q, q, q, values, &modifier, &at, 1.0, Weights::Return);
    let weights = numbers(attended.weights.unwrap());
    // In the last row, of which the last two steps cost ln 2 each.
    let expected = [0.0, 1.0 / 7.0, 2.0 / 7.0, 4.0 / 7.0];
    close::compare(&weights[12..], &expected, F32).unwrap();
}

#[test]
fn contextual_slopes_and_gates_from_keys_of_their_own() {
    let case = Case::new();
    let other = Problem::random(1, TOKENS, &DIMS, 18);
    let slopes = [0.3f32, -0.2, 0.05];
    let side = GateSide::Own(&other.k[0]);
    let positions = cope::positions(&case.input, 3.0, LogitScaling::Listing, side);
    let logits = case
        .input
        .map(|h, row, _i, j| case.plain(h, row, j) + f64::from(slopes[h]) * positions[h][row][j]);
    let modifier = ScoreMod::Contextual(Contextual {
        gates: GateSource::Keys(tensor4(&other.k, &case.device)),
        max_position: 3.0,
        function: ContextualFunction::Slope(Tensor::from_data(slopes, &case.device)),
        convention: LogitScaling::Listing,
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
