//! Compares pair terms in the kernels: every function of [`Number`], explicit derivatives, sums
//! with every other modifier.

use burn::tensor::{Device, Tensor};

use super::cpu_operands::{position_mlp, token_price};
use super::*;
use crate::attention::Support;
use crate::score::{Derivative, HeadMlp, Number, Pair, PairTerm, Term};

/// Pair term that uses every function of a number, parameters and state.
#[derive(Debug, Clone)]
struct Everything;

impl PairTerm<3, 2> for Everything {
    #[inline(always)]
    fn value<N: Number>(&self, pair: Pair<N, 3, 2>) -> N {
        let [temperature, slope, power] = pair.params;
        let one = N::constant(1.0);
        let near = (-(pair.distance * N::constant(0.05))).exp();
        let far = (pair.distance + one).ln() / (pair.distance + N::constant(2.0)).sqrt();
        let decayed = (pair.row[0] - pair.column[0]).abs() * slope.softplus();
        let gate = (pair.content * pair.row[1]).sigmoid();
        let capped = pair.content.max(pair.column[1]).min(N::constant(3.0));
        let exponent = power.abs() + N::constant(0.1);
        temperature * pair.content + gate * near + far * slope
            - decayed
            - capped / (one + pair.distance.pow(exponent))
    }
}

/// Pair term that halves the content and adds the square root of the distance; second in a chain.
#[derive(Debug, Clone)]
struct Halved;

impl PairTerm<1> for Halved {
    #[inline(always)]
    fn value<N: Number>(&self, pair: Pair<N, 1>) -> N {
        pair.content * N::constant(0.5) - pair.params[0] * pair.distance.sqrt()
    }

    #[inline(always)]
    fn derivative<N: Number>(&self, pair: Pair<N, 1>) -> Option<Derivative<N, 1, 0>> {
        let mut found = Derivative::all(N::constant(0.5));
        found.params = [-pair.distance.sqrt()];
        Some(found)
    }
}

/// Pair term without parameters or state.
#[derive(Debug, Clone)]
struct Squashed;

impl PairTerm<0> for Squashed {
    #[inline(always)]
    fn value<N: Number>(&self, pair: Pair<N, 0>) -> N {
        pair.content.sigmoid() * N::constant(4.0)
    }
}

pub(super) fn everything(sizes: &Sizes, leaves: &mut Leaves) -> ScoreMod {
    let params = tensor([sizes.heads, 3], 0.7, 31);
    let state = tensor([sizes.batch, sizes.heads, sizes.columns, 2], 0.3, 32);
    leaves.two.push(params.clone());
    leaves.four.push(state.clone());
    ScoreMod::Term(Term::new(Everything).head_params(params).token_state(state))
}

fn halved(sizes: &Sizes, leaves: &mut Leaves) -> ScoreMod {
    let params = tensor([sizes.heads, 1], 0.3, 33);
    leaves.two.push(params.clone());
    ScoreMod::Term(Term::new(Halved).head_params(params))
}

#[test]
fn terms_with_parameters_and_state() {
    compare(everything);
    compare(|_, _| ScoreMod::Term(Term::new(Squashed)));
}

#[test]
fn a_term_with_its_own_derivative() {
    compare(halved);
}

/// Positions there are not exact in f32, but distances are.
#[test]
fn distances_are_exact_far_from_position_0() {
    for at in positions(&ODD) {
        let at = at.shifted(1 << 25);
        compare_at(&ODD, &at, 1.0, slope);
        compare_at(&ODD, &at, 1.0, everything);
    }
}

#[test]
fn terms_apply_one_after_the_other() {
    compare(|sizes, leaves| {
        let squashed = ScoreMod::Term(Term::new(Squashed));
        ScoreMod::Sum(vec![halved(sizes, leaves), everything(sizes, leaves), squashed])
    });
}

/// Kernels on tensor cores compute pair terms, and a distance table after them.
#[test]
fn a_modifier_for_cores_has_the_same_outputs_and_gradients() {
    let makes: [Make; 5] = [
        |sizes, leaves| token_price(sizes, leaves, [true, true]),
        |sizes, leaves| token_price(sizes, leaves, [true, false]),
        |sizes, leaves| token_price(sizes, leaves, [false, true]),
        |sizes, leaves| {
            let terms = ScoreMod::Sum(vec![halved(sizes, leaves), everything(sizes, leaves)]);
            let price = token_price(sizes, leaves, [true, false]);
            let biases = [slope(sizes, leaves), decay(sizes, leaves)];
            ScoreMod::Sum([biases.into(), vec![ScoreMod::None, terms, price]].concat())
        },
        |sizes, leaves| {
            let table = distance(sizes, leaves, Beyond::Last);
            ScoreMod::Sum(vec![table, halved(sizes, leaves), slope(sizes, leaves)])
        },
    ];
    let sizes = Sizes { rows: ODD.columns, ..ODD };
    let at = Positions::contiguous(0, sizes.columns);
    for make in makes {
        let for_cores = |sizes: &Sizes, leaves: &mut Leaves| {
            make(sizes, leaves).for_cores(sizes.columns).unwrap()
        };
        let ways = [&make as Way<'_>, &for_cores].map(|make| (reference as Attend, make));
        compare_ways(&sizes, &at, 1.0, ways, || {
            let shape = [sizes.batch, sizes.heads, sizes.columns, sizes.head_dim];
            (tensor(shape, 1.0, 1), tensor(shape, 1.0, 2))
        });
    }
}

#[test]
fn modifiers_of_another_form_are_not_for_cores() {
    let others: [Make; 4] = [
        // Other kernels compute these.
        |sizes, leaves| ScoreMod::Sum(vec![slope(sizes, leaves), decay(sizes, leaves)]),
        |sizes, leaves| {
            ScoreMod::Sum(vec![halved(sizes, leaves), query_distance(sizes, leaves, Beyond::Last)])
        },
        |sizes, leaves| {
            let mlp = position_mlp(sizes, leaves, [0.1, 500.0], 0.0);
            let table = distance(sizes, leaves, Beyond::Last);
            ScoreMod::Sum(vec![ScoreMod::PositionMlp(mlp), table])
        },
        // Earlier tokens have no price of a query.
        |sizes, leaves| token_price(sizes, leaves, [true, true]),
    ];
    for make in others {
        let mut leaves = Leaves { four: vec![], three: vec![], two: vec![], one: vec![] };
        assert!(make(&ODD, &mut leaves).for_cores(ODD.columns).is_none());
    }
}

#[test]
fn terms_beside_every_other_modifier() {
    fn sum(first: ScoreMod, sizes: &Sizes, leaves: &mut Leaves) -> ScoreMod {
        ScoreMod::Sum(vec![first, everything(sizes, leaves)])
    }
    compare(|sizes, leaves| sum(slope(sizes, leaves), sizes, leaves));
    compare(|sizes, leaves| sum(distance(sizes, leaves, Beyond::Zero), sizes, leaves));
    compare(|sizes, leaves| sum(query_distance(sizes, leaves, Beyond::Last), sizes, leaves));
    compare(|sizes, leaves| sum(decay(sizes, leaves), sizes, leaves));
    compare(|sizes, leaves| sum(dense(sizes, leaves), sizes, leaves));
    compare(|sizes, leaves| {
        let rule = StickBreakingRule { current: Current::Included, remainder: Remainder::OwnToken };
        sum(ScoreMod::StickBreaking(rule), sizes, leaves)
    });
    compare(|sizes, leaves| sum(ScoreMod::Hard, sizes, leaves));
}

#[test]
fn terms_leave_what_gates_read_as_it_is() {
    fn gated(sizes: &Sizes, leaves: &mut Leaves, by: LogitScaling, own: bool) -> ScoreMod {
        let mut gated = contextual(sizes, leaves, 6, by);
        if own {
            let keys = tensor([sizes.batch, sizes.heads, sizes.columns, sizes.head_dim], 1.0, 34);
            leaves.four.push(keys.clone());
            gated.gates = GateSource::Keys(keys);
        }
        ScoreMod::Sum(vec![everything(sizes, leaves), ScoreMod::Contextual(gated)])
    }
    compare(|sizes, leaves| gated(sizes, leaves, LogitScaling::Listing, false));
    compare(|sizes, leaves| gated(sizes, leaves, LogitScaling::Code, true));
    compare(|sizes, leaves| gated(sizes, leaves, LogitScaling::Equation, false));
}

#[test]
fn terms_of_products_in_the_place_of_the_content() {
    compare(|sizes, leaves| {
        let query = tensor([sizes.batch, sizes.heads, sizes.rows, sizes.head_dim], 1.0, 35);
        let key = tensor([sizes.batch, sizes.heads, sizes.columns, sizes.head_dim], 1.0, 36);
        leaves.four.drain(0..2);
        leaves.four.extend([query.clone(), key.clone()]);
        let products = ScoreMod::Products(query.matmul(key.swap_dims(2, 3)));
        ScoreMod::Sum(vec![everything(sizes, leaves), products, slope(sizes, leaves)])
    });
}

#[test]
fn forms_say_what_is_dense() {
    let device = Device::flex();
    let term = || ScoreMod::Term(Term::new(Squashed));
    let bias = ScoreMod::Dense(Tensor::zeros([1, 1, 2, 2], &device));
    let hard = ScoreMod::Sum(vec![term(), ScoreMod::Hard]);
    let gated = || {
        let table = Tensor::zeros([4, 3], &device);
        ScoreMod::Contextual(Contextual {
            gates: GateSource::QueryKey,
            max_position: 2.0,
            function: ContextualFunction::Table(table),
            convention: LogitScaling::Code,
        })
    };
    assert_eq!(term().support(&device), Support::Fused);
    assert_eq!(ScoreMod::Sum(vec![term(), gated()]).support(&device), Support::Fused);
    assert_eq!(ScoreMod::Sum(vec![gated(), gated()]).support(&device), Support::Dense);
    assert_eq!(ScoreMod::Sum(vec![term(), bias.clone()]).support(&device), Support::Dense);
    let mixed = |base| {
        let two = || Tensor::zeros([2, 2], &device);
        let one = || Tensor::zeros([2], &device);
        let (w1, c1, w2, c2) = (two(), one(), two(), one());
        let (taps, negative_slope, scale) = (1, 0.01, 1.0);
        let base = Some(Box::new(base));
        ScoreMod::HeadMlp(HeadMlp { base, taps, w1, c1, w2, c2, negative_slope, scale })
    };
    let slopes = ScoreMod::Slope(Tensor::zeros([1], &device));
    assert_eq!(mixed(slopes).support(&device), Support::Fused);
    assert_eq!(mixed(bias).support(&device), Support::Dense);
    assert_eq!(hard.support(&device), Support::Reference);
}

#[test]
#[should_panic(expected = "`head_params` of a term is not set")]
fn a_term_without_its_parameters_is_refused() {
    let x = Tensor::<4>::ones([1, 1, 2, 4], &Device::flex());
    let at = Positions::contiguous(0, 2);
    let term = ScoreMod::Term(Term::new(Halved));
    let _ = Engine::Fused.attend(&x, &x, &x, x.clone(), &term, &at, 0.5, Weights::Drop);
}
