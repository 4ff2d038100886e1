//! What an encoding claims, and the negation of what it denies.

use burn::tensor::{Device, Int, Tensor};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;

use super::Outcome;
use crate::encoding::{EmbedContext, PositionRequest, check_limit};
use crate::meta::{Conduct, Site};
use crate::reference::{Heads, ScalarInput, ScalarReference};
use crate::testkit::close::{self, Tolerance, numbers};
use crate::testkit::passes::{DIMS, TOKENS, embedded, full_pass, stack};
use crate::testkit::problem::{Problem, tensor3};
use crate::testkit::stack::moved_by_a_shift;
use crate::{EncodingConfig, PositionEncoding, Positions};

/// A claim held against what was seen.
pub(super) fn held(claim: &str, claimed: bool, seen: Option<String>) -> Outcome {
    match (claimed, seen) {
        (true, None) => Err(format!("claims {claim}, and nothing shows it")),
        (false, Some(seen)) => Err(format!("denies {claim}, but {seen}")),
        _ => Ok(()),
    }
}

pub(super) fn shift<C: EncodingConfig>(
    encoding: &C::Encoding,
    config: &C,
    device: &Device,
) -> Outcome {
    // Rotations lose digits as angles grow: f32 sines of a few dozen radians.
    const SHIFTED: Tolerance = Tolerance { absolute: 1e-4, relative: 1e-4 };
    let problem = Problem::random(1, TOKENS, &DIMS, 5);
    let at = Positions::contiguous(0, TOKENS);
    let plain = (
        numbers(full_pass(encoding, &problem, &at, 0, device)),
        numbers(embedded(encoding, &problem, &at, device)),
    );
    // A denial is also tried far out: some encodings tell shifts apart only past a length of their
    // own, such as FIRE's normaliser.
    let denied = !config.meta().claims.shift_invariant && encoding.max_len().is_none();
    let far = denied.then_some(4000);
    let mut moved = None;
    for shift in [1, 9, 40].into_iter().chain(far) {
        let at = at.shifted(shift);
        let same = close::compare(
            &numbers(full_pass(encoding, &problem, &at, 0, device)),
            &plain.0,
            SHIFTED,
        )
        .and_then(|()| {
            close::compare(&numbers(embedded(encoding, &problem, &at, device)), &plain.1, SHIFTED)
        });
        moved = moved.or(same.err().map(|e| format!("shift by {shift}: {e}")));
    }
    moved = moved.or(moved_by_a_shift(config, device));
    match (config.meta().claims.shift_invariant, moved) {
        (true, Some(found)) => Err(format!("claims shift invariance, but {found}")),
        (false, None) => Err("denies shift invariance, but no shift moved anything".to_owned()),
        _ => Ok(()),
    }
}

pub(super) fn length<C: EncodingConfig>(
    encoding: &C::Encoding,
    config: &C,
    device: &Device,
) -> Outcome {
    let id = config.meta().id;
    let far = Positions::contiguous(0, 8 * DIMS.train_len);
    let limited = config.meta().claims.limited_length;
    let finite = |at: &Positions| {
        let problem = Problem::random(1, at.cols().len(), &DIMS, 6);
        let output = numbers(full_pass(encoding, &problem, at, 0, device));
        let embedding = numbers(embedded(encoding, &problem, at, device));
        output.iter().chain(&embedding).all(|x| x.is_finite())
    };
    match (limited, encoding.max_len()) {
        (true, None) => Err(format!("claims a limit, but {} tokens pass", far.cols().len())),
        (false, Some(limit)) => Err(format!("claims no limit, but has one of {limit}")),
        (true, Some(limit)) => {
            let tokens = TOKENS.min(limit);
            let last = Positions::contiguous(0, tokens).shifted(limit - tokens);
            check_limit(encoding, id, &last).map_err(|e| format!("at its limit: {e}"))?;
            if check_limit(encoding, id, &last.shifted(1)).is_ok() {
                return Err(format!("claims a limit, but position {limit} passes"));
            }
            finite(&last).then_some(()).ok_or_else(|| "not finite at its limit".to_owned())
        }
        (false, None) => {
            check_limit(encoding, id, &far).map_err(|error| error.to_string())?;
            finite(&far).then_some(()).ok_or_else(|| "not finite at 8 times the length".to_owned())
        }
    }
}

/// Positions are as many as tokens, repeat, and are the encoding's own choice only if it says so.
pub(super) fn positions<C: EncodingConfig>(encoding: &C::Encoding, config: &C) -> Outcome {
    let longest = config.dims_beside(&DIMS).max_len;
    let ask = |cached_tokens, new_tokens, seed: Option<u64>| {
        let mut rng = ChaCha8Rng::seed_from_u64(seed.unwrap_or(0));
        let training_rng = seed.map(|_| &mut rng);
        let request = PositionRequest { cached_tokens, new_tokens, training_rng };
        let at = encoding.positions(request).map_err(|error| error.to_string())?;
        let tokens = cached_tokens + new_tokens;
        if (at.cols().len(), at.first_row()) != (tokens, cached_tokens) {
            return Err(format!("{} positions for {tokens} tokens", at.cols().len()));
        }
        match at.cols().last() {
            Some(last) if *last >= longest => Err(format!("position {last} past {longest}")),
            _ => Ok(at),
        }
    };
    let mut chosen = None;
    for (cached, new) in [(0, TOKENS), (0, 1), (9, 1), (6, 3)] {
        for seed in [None, Some(1), Some(2)] {
            let at = ask(cached, new, seed)?;
            if ask(cached, new, seed)? != at {
                return Err("the same request gave other positions".to_owned());
            }
            if at != Positions::contiguous(cached, new) {
                chosen = Some(format!("{:?} are not contiguous", at.cols()));
            }
        }
    }
    held("to choose positions", config.meta().sites.contains(&Site::Positions), chosen)
}

/// Sums of a few dozen products in f64.
const LINEAR: Tolerance = Tolerance { absolute: 1e-9, relative: 1e-9 };

/// An encoding that does not look at tokens gives logits that are linear in queries and in keys,
/// plus a constant, and embeddings that differ from the input by a constant.
pub(super) fn content<C: EncodingConfig>(
    encoding: &C::Encoding,
    config: &C,
    device: &Device,
) -> Outcome
where
    C::Encoding: ScalarReference,
{
    let broken = (0..DIMS.layers).find_map(|layer| broken_law(encoding, layer));
    let replaces = config.conduct().contains(&Conduct::ReplacesSoftmax);
    let replaced = replaces.then(|| "it weighs tokens by other tokens' weights".to_owned());
    let seen = broken.or(replaced).or_else(|| carries_content(encoding, device));
    let seen = seen.or_else(|| reads(encoding, device));
    held("to look at tokens", config.meta().claims.content_dependent, seen)
}

/// What is not as it is for an encoding that does not look at tokens.
fn broken_law<P: ScalarReference>(encoding: &P, layer: usize) -> Option<String> {
    let at = Positions::contiguous(0, TOKENS);
    let scalar = |seed| Problem::random(1, TOKENS, &DIMS, seed).scalar(0, layer, &at);
    let (one, two) = (scalar(12), scalar(13));
    let logits = |input: &ScalarInput| -> Vec<f64> {
        encoding.scalar_logits(input).into_iter().flatten().flatten().collect()
    };
    let zero = |heads: &Heads| sum(heads, heads, -1.0);
    let nothing = ScalarInput { q: zero(&one.q), k: zero(&one.k), ..one.clone() };
    let constant = logits(&nothing);
    let plain = logits(&one);
    let other_q = ScalarInput { q: two.q.clone(), ..one.clone() };
    let other_k = ScalarInput { k: two.k.clone(), ..one.clone() };
    let both_q = ScalarInput { q: sum(&one.q, &two.q, 1.0), ..one.clone() };
    let both_k = ScalarInput { k: sum(&one.k, &two.k, 1.0), ..one.clone() };
    let added = |other: &ScalarInput| {
        let terms = plain.iter().zip(logits(other)).zip(&constant);
        terms.map(|((one, two), constant)| one + two - constant).collect::<Vec<_>>()
    };
    let other_x = ScalarInput { x: two.x.clone(), v: two.v.clone(), ..one.clone() };
    let no_query = ScalarInput { q: zero(&one.q), ..one.clone() };
    let no_key = ScalarInput { k: zero(&one.k), ..one.clone() };
    let laws = [
        ("the sum of two queries", logits(&both_q), added(&other_q)),
        ("the sum of two keys", logits(&both_k), added(&other_k)),
        ("no queries", logits(&no_query), constant.clone()),
        ("no keys", logits(&no_key), constant.clone()),
        ("other layer inputs and values", logits(&other_x), plain.clone()),
    ];
    laws.into_iter().find_map(|(law, found, expected)| {
        close::compare(&found, &expected, LINEAR).err().map(|e| format!("with {law}, logit {e}"))
    })
}

/// `a + by * b`.
fn sum(a: &Heads, b: &Heads, by: f64) -> Heads {
    let mut sum = a.clone();
    let terms = sum.iter_mut().flatten().flatten().zip(b.iter().flatten().flatten());
    terms.for_each(|(a, b)| *a += by * b);
    sum
}

/// Whether what tokens carry from layer to layer depends on them.
fn carries_content<P: PositionEncoding>(encoding: &P, device: &Device) -> Option<String> {
    let at = Positions::contiguous(0, TOKENS);
    let carried = |seed| {
        let problem = Problem::random(1, TOKENS, &DIMS, seed);
        let (_, state) = stack(encoding, &problem, &at, 1, device);
        state.tensors.into_iter().flat_map(numbers).collect::<Vec<_>>()
    };
    (carried(12) != carried(13)).then(|| "what tokens carry depends on them".to_owned())
}

/// Whether the embedding looks at token ids.
fn reads<P: PositionEncoding>(encoding: &P, device: &Device) -> Option<String> {
    let at = Positions::contiguous(0, TOKENS);
    let x = tensor3(&Problem::random(1, TOKENS, &DIMS, 12).x, device);
    let embed = |tokens: Tensor<2, Int>| {
        numbers(encoding.embed(x.clone(), &EmbedContext { at: &at, tokens: &tokens }))
    };
    let range = Tensor::<1, Int>::arange(0..TOKENS as i64, device).reshape([1, TOKENS]);
    let zeros = Tensor::zeros([1, TOKENS], device);
    (embed(range) != embed(zeros)).then(|| "the embedding depends on token ids".to_owned())
}
