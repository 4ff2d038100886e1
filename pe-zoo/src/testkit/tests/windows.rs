//! A long pass within a window is computed in blocks, and its cache drops keys; neither changes any output.

use burn::tensor::{Device, Tensor};

use crate::attention::{Engine, LayerCache, LayerInput, Weights, layer};
use crate::testkit::close::{self, F32, F32_REORDERED, numbers};
use crate::testkit::problem::{Problem, tensor3, tensor4};
use crate::testkit::stack;
use crate::{Combination, Combined, Dims, Hooks, Positions, Registry, TokenState};

const DIMS: Dims = Dims { layers: 1, width: 8, heads: 2, head_dim: 4, train_len: 64, max_len: 512 };

/// Every encoding of the zoo beside a window, if the rules allow that and it takes sequences of this length.
fn windowed(size: usize) -> Vec<(String, Combined)> {
    let three_taps = "dape{mixer=convolution}(alibi)".to_owned();
    let registry = Registry::builtin();
    let ids = registry.cards().map(|card| card.id.to_owned()).chain([three_taps]);
    let texts = ids.map(|id| format!("{id}+window{{size={size}}}"));
    let fitting = texts.filter_map(|text| {
        let combination = Combination::parse(&text).ok()?;
        let encoding = stack::built(&combination, &DIMS, &Device::flex()).ok()?;
        Some((text, encoding))
    });
    fitting.filter(|(_, encoding)| encoding.max_len().is_none()).collect()
}

struct Pass<'a> {
    problem: &'a Problem,
    encoding: &'a Combined,
    device: Device,
}

impl Pass<'_> {
    fn output(
        &self,
        engine: Engine,
        tokens: std::ops::Range<usize>,
        cache: Option<&mut LayerCache>,
        weights: Weights,
    ) -> Tensor<4> {
        let at = Positions::contiguous(tokens.start, tokens.len());
        let x = tensor3(&self.problem.x, &self.device).slice_dim(1, tokens.clone());
        let projections = [&self.problem.q, &self.problem.k, &self.problem.v]
            .map(|heads| tensor4(heads, &self.device).slice_dim(2, tokens.clone()));
        let carried = TokenState::default();
        let input = LayerInput::new(0, &at, &x, projections, &carried);
        layer(self.encoding, LayerInput { engine, ..input }, cache, weights).output
    }
}

/// Attention that returns its weights is computed whole.
#[test]
fn blocks_of_rows_give_what_the_whole_attention_gives() {
    const TOKENS: usize = 421;
    let problem = Problem::random(1, TOKENS, &DIMS, 5);
    let encodings = windowed(60);
    assert!(encodings.len() > 20, "{encodings:?}");
    for (text, encoding) in &encodings {
        let pass = Pass { problem: &problem, encoding, device: Device::flex() };
        let whole = pass.output(Engine::Reference, 0..TOKENS, None, Weights::Return);
        for engine in [Engine::Reference, Engine::Fused] {
            let blocks = pass.output(engine, 0..TOKENS, None, Weights::Drop);
            close::compare(&numbers(blocks), &numbers(whole.clone()), F32)
                .unwrap_or_else(|error| panic!("{text}, {} engine: {error}", engine.id()));
        }
    }
}

#[test]
fn gradients_pass_through_the_blocks() {
    const TOKENS: usize = 300;
    let problem = Problem::random(1, TOKENS, &DIMS, 6);
    let device = Device::flex().autodiff();
    for text in
        ["fox+window{size=40}", "cope{max_positions=8}+window{size=40}", "window{size=40}+rope"]
    {
        let combination = Combination::parse(text).unwrap();
        let encoding = stack::built(&combination, &DIMS, &device).unwrap();
        let gradients = |weights| {
            let at = Positions::contiguous(0, TOKENS);
            let x = tensor3(&problem.x, &device).require_grad();
            let [q, k, v] = [&problem.q, &problem.k, &problem.v]
                .map(|heads| tensor4(heads, &device).require_grad());
            let carried = TokenState::default();
            let projections = [q.clone(), k.clone(), v.clone()];
            let input = LayerInput::new(0, &at, &x, projections, &carried);
            let output = layer(&encoding, input, None, weights).output;
            let gradients = output.powf_scalar(2.0).sum().backward();
            let of = |u: &Tensor<4>| numbers(u.grad(&gradients).unwrap());
            [of(&q), of(&k), of(&v)].concat()
        };
        close::compare(&gradients(Weights::Drop), &gradients(Weights::Return), F32)
            .unwrap_or_else(|error| panic!("{text}: {error}"));
    }
}

#[test]
fn a_cache_that_drops_keys_decodes_as_a_full_pass() {
    const TOKENS: usize = 90;
    const SIZE: usize = 10;
    let problem = Problem::random(1, TOKENS, &DIMS, 7);
    for (text, encoding) in &windowed(SIZE) {
        let pass = Pass { problem: &problem, encoding, device: Device::flex() };
        let mut cache = LayerCache::default();
        let mut start = 0;
        for added in [30, 1, 1, 7].into_iter().chain([1; 51]) {
            let tokens = start..start + added;
            let whole = pass.output(Engine::Reference, 0..tokens.end, None, Weights::Return);
            let whole = whole.slice_dim(2, tokens.clone());
            let step = pass.output(Engine::Fused, tokens.clone(), Some(&mut cache), Weights::Drop);
            close::compare(&numbers(step), &numbers(whole), F32_REORDERED)
                .unwrap_or_else(|error| panic!("{text}, tokens {tokens:?}: {error}"));
            start = tokens.end;
            assert_eq!(cache.len(), start);
        }
        assert_eq!(start, TOKENS);
        let kept = cache.kept();
        match encoding.horizon(0) {
            Some(_) => assert!(kept < 3 * SIZE, "{text} keeps {kept} tokens"),
            None => assert_eq!(kept, TOKENS, "{text}"),
        }
    }
}

/// Where positions are chosen, tokens come nearer as a sequence grows.
#[test]
fn windows_on_chosen_positions_have_no_horizon() {
    let horizons = |text: &str| Combination::parse(text).unwrap().horizons(4);
    assert_eq!(horizons("rope+window{size=7}"), [Some(7); 4]);
    assert_eq!(horizons("window{size=7}+rope/nope"), [Some(7), None, Some(7), None]);
    assert_eq!(horizons("window{size=9}+(window{size=3}+rope/nope)")[..2], [Some(3), Some(9)]);
    assert_eq!(horizons("randomized(rope+window{size=7})"), [None; 4]);
}
