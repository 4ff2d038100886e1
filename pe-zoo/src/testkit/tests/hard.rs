//! Tests hard attention, which puts the whole weight on the largest logit, with the gradient of the
//! softmax.

use burn::tensor::{Device, Tensor};

use crate::attention::{AttentionKind, LayerInput, Weights, layer};
use crate::reference::attention;
use crate::testkit::close::{self, F32, numbers};
use crate::testkit::problem::{Problem, tensor3, tensor4};
use crate::{AnyEncoding, Dims, Positions, Registry, TokenState};

const DIMS: Dims = Dims { layers: 1, width: 18, heads: 3, head_dim: 6, train_len: 11, max_len: 11 };
const TOKENS: usize = 11;

fn pe(id: &str, device: &Device) -> AnyEncoding {
    use rand_chacha::rand_core::SeedableRng;
    let mut rng = rand_chacha::ChaCha8Rng::seed_from_u64(1);
    Registry::builtin().encoding(id).unwrap().build(&DIMS, &mut rng, device).unwrap()
}

/// Returns output, weights, and the queries from which they were computed.
fn attended(
    pe: &AnyEncoding,
    problem: &Problem,
    attention_kind: AttentionKind,
    device: &Device,
) -> (Tensor<4>, Tensor<4>, Tensor<4>) {
    let q = tensor4(&problem.q, device);
    let q = if device.is_autodiff() { q.require_grad() } else { q };
    let x = tensor3(&problem.x, device);
    let carried = TokenState::default();
    let at = Positions::contiguous(0, TOKENS);
    let input = LayerInput {
        attention_kind,
        ..LayerInput::new(
            0,
            &at,
            &x,
            [q.clone(), tensor4(&problem.k, device), tensor4(&problem.v, device)],
            &carried,
        )
    };
    let output = layer(pe.hooks(), input, None, Weights::Return);
    (output.output, output.weights.unwrap(), q)
}

#[test]
fn each_row_takes_the_value_of_its_largest_logit() {
    let device = Device::flex();
    let problem = Problem::random(1, TOKENS, &DIMS, 3);
    for id in ["nope", "alibi", "rope", "stick-breaking"] {
        let pe = pe(id, &device);
        let input = problem.scalar(0, 0, &Positions::contiguous(0, TOKENS));
        let weights = attention::argmax_weights(&pe.scalar().scalar_weights(&input));
        let expected = attention::mix(&weights, &input.v);
        let expected = expected.into_iter().flatten().flatten().collect::<Vec<_>>();
        let padded = weights
            .iter()
            .flatten()
            .flat_map(|row| row.iter().copied().chain(std::iter::repeat(0.0)).take(TOKENS))
            .collect::<Vec<_>>();
        let (output, weights, _q) = attended(&pe, &problem, AttentionKind::Hard, &device);
        close::compare(&numbers(output), &expected, F32).unwrap();
        // One 1 per row, and none in the first row of stick-breaking, which has no earlier token.
        assert_eq!(numbers(weights), padded, "{id}");
    }
}

#[test]
fn the_gradient_is_that_of_the_softmax() {
    let device = Device::flex().autodiff();
    let problem = Problem::random(1, TOKENS, &DIMS, 4);
    let pe = pe("alibi", &device);
    let gradient = |attention_kind| {
        let (output, _weights, q) = attended(&pe, &problem, attention_kind, &device);
        let grads = (output * tensor4(&problem.v, &device)).sum().backward();
        numbers(q.grad(&grads).unwrap())
    };
    let (soft, hard) = (gradient(AttentionKind::Soft), gradient(AttentionKind::Hard));
    close::compare(&hard, &soft, F32).unwrap();
    assert!(soft.iter().any(|g| g.abs() > 1e-3));
}
