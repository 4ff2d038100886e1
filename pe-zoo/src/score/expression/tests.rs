use super::*;
use crate::score::Dual;

/// Uses every function of a number, with parameters, state and constants.
#[derive(Debug, Clone)]
struct Everything;

impl PairTerm<2, 1> for Everything {
    fn value<N: Number>(&self, pair: Pair<N, 2, 1>) -> N {
        let [a, b] = pair.params;
        let ([row], [column]) = (pair.row, pair.column);
        let near = (pair.distance * a).pow(b.sigmoid()) - (row - column).abs();
        let soft = (pair.content * column).softplus() / (N::constant(2.0) + row * row).sqrt();
        let bent = near.max(pair.content).min(N::constant(1.5) * b);
        let one = N::constant(4.0).sqrt() - N::constant(1.0);
        bent * one + soft.exp() - (N::constant(1.0) + pair.distance).ln() * a
    }
}

fn evaluate(traced: &TracedTerm, which: &Expression, pair: &Pair<f64, 2, 1>) -> Vec<f64> {
    let [a, b] = pair.params;
    traced.evaluate(which, &[pair.content, pair.distance, a, b, pair.row[0], pair.column[0]])
}

#[test]
fn an_expression_has_the_values_and_derivatives_of_its_function() {
    let traced = TracedTerm::new::<_, 2, 1>(&Everything);
    for (content, distance, a) in [(0.3, 0.0, 0.7), (-1.2, 3.0, 0.4), (2.5, 11.0, 1.3)] {
        let pair = Pair { content, distance, params: [a, -0.6], row: [0.4], column: [0.9] };
        let dual: Dual<f64, 2, 1> = Everything.value(dual(&pair));
        let Derivative { content, params: [a, b], row: [row], column: [column] } = dual.tangent;
        let expected = [dual.value, content, a, b, row, column];
        for (traced, expected) in evaluate(&traced, &traced.derivatives, &pair).iter().zip(expected)
        {
            assert!((traced - expected).abs() < 1e-6 * expected.abs().max(1.0), "{pair:?}");
        }
        let value = evaluate(&traced, &traced.value, &pair)[0];
        assert!((value - Everything.value(pair)).abs() < 1e-6, "{pair:?}");
    }
}

/// Bends its content, so that the order of two terms matters.
#[derive(Debug, Clone)]
struct Bent;

impl PairTerm<1, 1> for Bent {
    fn value<N: Number>(&self, pair: Pair<N, 1, 1>) -> N {
        (pair.content * pair.params[0] + pair.distance.sqrt()).softplus() * pair.column[0]
            - pair.row[0]
    }
}

#[test]
fn a_chain_has_the_values_and_derivatives_of_terms_applied_one_after_the_other() {
    /// Both terms as one.
    #[derive(Debug, Clone)]
    struct Both;
    impl PairTerm<3, 2> for Both {
        fn value<N: Number>(&self, pair: Pair<N, 3, 2>) -> N {
            let [a, b, c] = pair.params;
            let Pair { content, distance, row, column, .. } = pair;
            let (first_row, first_column) = ([row[0]], [column[0]]);
            let content = Everything.value(Pair {
                content,
                distance,
                params: [a, b],
                row: first_row,
                column: first_column,
            });
            let (row, column) = ([row[1]], [column[1]]);
            Bent.value(Pair { content, distance, params: [c], row, column })
        }
    }
    let terms = [
        TracedTerm::new::<_, 2, 1>(&Everything).interned(),
        TracedTerm::new::<_, 1, 1>(&Bent).interned(),
    ];
    let chained = TracedTerm::chained(terms.into_iter()).unwrap();
    let both = TracedTerm::new::<_, 3, 2>(&Both);
    assert_eq!((chained.params, chained.state), (3, 2));
    for (content, distance, a) in [(0.3, 0.0, 0.7), (-1.2, 3.0, 0.4), (2.5, 11.0, 1.3)] {
        let inputs = [content, distance, a, -0.6, 0.8, 0.4, -1.1, 0.9, 0.3];
        for (found, expected) in [
            (chained.evaluate(&chained.value, &inputs), both.evaluate(&both.value, &inputs)),
            (
                chained.evaluate(&chained.derivatives, &inputs),
                both.evaluate(&both.derivatives, &inputs),
            ),
        ] {
            assert_eq!(found.len(), expected.len());
            for (found, expected) in found.iter().zip(&expected) {
                assert!((found - expected).abs() < 1e-5 * expected.abs().max(1.0), "{inputs:?}");
            }
        }
    }
    assert!(TracedTerm::chained(std::iter::empty()).is_none());
}

#[test]
fn constants_are_folded_and_equal_steps_are_recorded_once() {
    #[derive(Debug, Clone)]
    struct Slope;
    impl PairTerm<1> for Slope {
        fn value<N: Number>(&self, pair: Pair<N, 1>) -> N {
            pair.content * N::constant(1.0) - pair.params[0] * pair.distance
        }
    }
    let TracedTerm { value, derivatives, .. } = TracedTerm::new::<_, 1, 0>(&Slope);
    // Three inputs, a product and a difference.
    assert_eq!(value.steps.len(), 5, "{value:?}");
    assert!(derivatives.steps.len() <= 10, "{derivatives:?}");
}
