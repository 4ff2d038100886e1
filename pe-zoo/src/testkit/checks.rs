//! One function per check; each says what it found.

use std::fmt;

use burn::module::{Module, ModuleVisitor, Param};
use burn::tensor::{Device, Gradients, Tensor};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;

use super::close::{self, F32, F32_REORDERED, Tolerance, numbers};
use super::problem::{Problem, ids, tensor3, tensor4};
use super::{decode, randomise, stack};
use crate::attention::{Engine, LayerCache, LayerInput, Sharpness, Weights, layer};
use crate::encoding::{EmbedContext, check_limit};
use crate::reference::{ScalarReference, attention};
use crate::{Dims, EncodingConfig, PositionEncoding, Positions, TokenState};

/// What is checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Check {
    /// Engine and embedding equal the scalar f64 reference, at odd sizes and with offsets.
    EqualsReference,
    /// Token by token, and in chunks of three: each step equals the full pass of its own length.
    DecodesAsFullPass,
    /// No output depends on a later token.
    Causal,
    /// Batch entries do not mix.
    BatchIndependent,
    /// The claim about shifts of all positions is true, and so is its negation where it is denied.
    ShiftClaim,
    /// The claim about the length limit is true.
    LengthClaim,
    /// The claim that later tokens change nothing of earlier ones is true, and so is its negation
    /// where it is denied.
    LengthDependence,
    /// The parameter formula equals the number of parameters built.
    ParameterFormula,
    /// Every parameter gets a finite gradient that is not zero everywhere.
    Gradients,
    /// The same seed gives the same bits.
    Reproducible,
}

/// A check that failed, and what it found.
#[derive(Debug, Clone)]
pub struct Failure {
    /// The check.
    pub check: Check,
    /// What it found.
    pub found: String,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}: {}", self.check, self.found)
    }
}

pub(super) type Outcome = Result<(), String>;

/// Sizes without luck: three heads, a length that is no multiple of anything.
pub(super) const DIMS: Dims = Dims { layers: 2, heads: 3, head_dim: 6, train_len: 16, max_len: 64 };
const TOKENS: usize = 13;

/// Runs every check; the result lists those that failed.
pub fn conforms<C>(config: &C) -> Vec<Failure>
where
    C: EncodingConfig,
    C::Encoding: ScalarReference,
{
    let device = Device::flex();
    let encoding = match build(config, 7, &device) {
        Ok(encoding) => randomise(encoding, 11),
        Err(found) => return vec![Failure { check: Check::Reproducible, found }],
    };
    let outcomes = [
        (Check::EqualsReference, equals_reference(&encoding)),
        (Check::DecodesAsFullPass, decode::decodes_as_full_pass(&encoding)),
        (Check::Causal, causal(&encoding)),
        (Check::BatchIndependent, batch_independent(&encoding)),
        (Check::ShiftClaim, shift_claim(&encoding, config)),
        (Check::LengthClaim, length_claim(&encoding, config)),
        (Check::LengthDependence, decode::length_dependence(&encoding, config)),
        (Check::ParameterFormula, parameter_formula(&encoding, config)),
        (Check::Gradients, gradients(config)),
        (Check::Reproducible, reproducible(config)),
    ];
    outcomes
        .into_iter()
        .chain(stack::outcomes(config))
        .filter_map(|(check, outcome)| outcome.err().map(|found| Failure { check, found }))
        .collect()
}

fn build<C: EncodingConfig>(config: &C, seed: u64, device: &Device) -> Result<C::Encoding, String> {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    config.init(&DIMS, &mut rng, device).map_err(|error| error.to_string())
}

/// Output of one layer, `[B, H, T, D]`, for rows `at.first_row()..` computed in one go.
pub(super) fn full_pass<P: PositionEncoding>(
    encoding: &P,
    problem: &Problem,
    at: &Positions,
    index: usize,
    device: &Device,
) -> Tensor<4> {
    chunk(encoding, problem, at, 0..at.cols().len(), index, None, device)
}

/// Output for the tokens in `range`, those before it being in the cache.
pub(super) fn chunk<P: PositionEncoding>(
    encoding: &P,
    problem: &Problem,
    at: &Positions,
    range: std::ops::Range<usize>,
    index: usize,
    cache: Option<&mut LayerCache>,
    device: &Device,
) -> Tensor<4> {
    let part =
        |heads: &[crate::reference::Heads]| tensor4(heads, device).slice_dim(2, range.clone());
    let x = tensor3(&problem.x, device).slice_dim(1, range.clone());
    let input = LayerInput {
        layer: index,
        at,
        x: &x,
        q: part(&problem.q),
        k: part(&problem.k),
        v: part(&problem.v),
        carried: &TokenState::default(),
        engine: Engine::best(device),
        sharpness: Sharpness::Soft,
    };
    layer(encoding, input, cache, Weights::Drop).output
}

/// Embeddings of the rows, `[B, T, C]`.
pub(super) fn embedded<P: PositionEncoding>(
    encoding: &P,
    problem: &Problem,
    at: &Positions,
    device: &Device,
) -> Tensor<3> {
    let columns = at.cols().len();
    let x = tensor3(&problem.x, device).slice_dim(1, at.first_row()..columns);
    let tokens = ids(&problem.tokens, device).slice_dim(1, 0..columns);
    encoding.embed(x, &EmbedContext { at, tokens: &tokens })
}

fn equals_reference<P: PositionEncoding + ScalarReference>(encoding: &P) -> Outcome {
    let device = Device::flex();
    for (batch, tokens, shift) in [(1, 1, 0), (2, TOKENS, 0), (2, TOKENS, 5), (1, 40, 0)] {
        let problem = Problem::random(batch, tokens, &DIMS, 100 + tokens as u64);
        let at = Positions::contiguous(0, tokens).shifted(shift);
        for index in 0..DIMS.layers {
            let output = full_pass(encoding, &problem, &at, index, &device);
            let [b, h, t, d] = output.dims();
            if [b, h, t, d] != [batch, DIMS.heads, tokens, DIMS.head_dim] {
                return Err(format!("output shape {:?}", [b, h, t, d]));
            }
            let mut expected = Vec::new();
            for entry in 0..batch {
                let input = problem.scalar(entry, index, &at);
                let weights = encoding.scalar_weights(&input);
                let mixed = attention::mix(&weights, &input.v);
                expected.extend(mixed.into_iter().flatten().flatten());
            }
            close::compare(&numbers(output), &expected, F32)
                .map_err(|e| format!("batch {batch}, {tokens} tokens, shift {shift}: {e}"))?;
        }
        let embedded = embedded(encoding, &problem, &at, &device);
        let expected = problem
            .x
            .iter()
            .zip(&problem.tokens)
            .flat_map(|(x, ids)| encoding.scalar_embed(x, ids, at.cols()))
            .flatten()
            .collect::<Vec<_>>();
        close::compare(&numbers(embedded), &expected, F32)
            .map_err(|e| format!("embedding, {tokens} tokens, shift {shift}: {e}"))?;
    }
    Ok(())
}

fn causal<P: PositionEncoding>(encoding: &P) -> Outcome {
    let device = Device::flex();
    let at = Positions::contiguous(0, TOKENS);
    let problem = Problem::random(1, TOKENS, &DIMS, 2);
    let other = Problem::random(1, TOKENS, &DIMS, 3);
    let changed_at = 7;
    let mut changed = problem.clone();
    for h in 0..DIMS.heads {
        changed.q[0][h][changed_at].clone_from(&other.q[0][h][changed_at]);
        changed.k[0][h][changed_at].clone_from(&other.k[0][h][changed_at]);
        changed.v[0][h][changed_at].clone_from(&other.v[0][h][changed_at]);
    }
    changed.x[0][changed_at].clone_from(&other.x[0][changed_at]);
    changed.tokens[0][changed_at] += 1;
    let split = |problem: &Problem| {
        let output = full_pass(encoding, problem, &at, 0, &device);
        let embedding = embedded(encoding, problem, &at, &device);
        let mut before = numbers(output.clone().slice_dim(2, 0..changed_at));
        before.extend(numbers(embedding.slice_dim(1, 0..changed_at)));
        (before, numbers(output.slice_dim(2, changed_at..TOKENS)))
    };
    let ((before, after), (before_changed, after_changed)) = (split(&problem), split(&changed));
    if before != before_changed {
        return Err(format!("changing token {changed_at} moved an earlier output"));
    }
    if after == after_changed {
        return Err(format!("changing token {changed_at} moved nothing"));
    }
    Ok(())
}

fn batch_independent<P: PositionEncoding>(encoding: &P) -> Outcome {
    let device = Device::flex();
    let at = Positions::contiguous(0, TOKENS);
    let both = Problem::random(2, TOKENS, &DIMS, 4);
    let second = Problem {
        q: both.q[1..].to_vec(),
        k: both.k[1..].to_vec(),
        v: both.v[1..].to_vec(),
        x: both.x[1..].to_vec(),
        tokens: both.tokens[1..].to_vec(),
    };
    let alone = numbers(full_pass(encoding, &second, &at, 0, &device));
    let together = numbers(full_pass(encoding, &both, &at, 0, &device).slice_dim(0, 1..2));
    close::compare(&together, &alone, F32_REORDERED)?;
    let alone = numbers(embedded(encoding, &second, &at, &device));
    let together = numbers(embedded(encoding, &both, &at, &device).slice_dim(0, 1..2));
    close::compare(&together, &alone, F32_REORDERED).map_err(|e| format!("embedding: {e}"))
}

fn shift_claim<C: EncodingConfig>(encoding: &C::Encoding, config: &C) -> Outcome {
    // Rotations lose digits as angles grow: f32 sines of a few dozen radians.
    const SHIFTED: Tolerance = Tolerance { absolute: 1e-4, relative: 1e-4 };
    let device = Device::flex();
    let problem = Problem::random(1, TOKENS, &DIMS, 5);
    let at = Positions::contiguous(0, TOKENS);
    let plain = (
        numbers(full_pass(encoding, &problem, &at, 0, &device)),
        numbers(embedded(encoding, &problem, &at, &device)),
    );
    // A denial is also tried far out: some encodings tell shifts apart only past a length of their
    // own, such as FIRE's normaliser.
    let denied = !config.meta().claims.shift_invariant && encoding.max_len().is_none();
    let far = denied.then_some(4000);
    let mut moved = None;
    for shift in [1, 9, 40].into_iter().chain(far) {
        let at = at.shifted(shift);
        let same = close::compare(
            &numbers(full_pass(encoding, &problem, &at, 0, &device)),
            &plain.0,
            SHIFTED,
        )
        .and_then(|()| {
            close::compare(&numbers(embedded(encoding, &problem, &at, &device)), &plain.1, SHIFTED)
        });
        moved = moved.or(same.err().map(|e| format!("shift by {shift}: {e}")));
    }
    moved = moved.or(stack::moved_by_a_shift(config));
    match (config.meta().claims.shift_invariant, moved) {
        (true, Some(found)) => Err(format!("claims shift invariance, but {found}")),
        (false, None) => Err("denies shift invariance, but no shift moved anything".to_owned()),
        _ => Ok(()),
    }
}

fn length_claim<C: EncodingConfig>(encoding: &C::Encoding, config: &C) -> Outcome {
    let id = config.meta().id;
    let far = Positions::contiguous(0, 8 * DIMS.train_len);
    let limited = config.meta().claims.limited_length;
    match (limited, encoding.max_len(), check_limit(encoding, id, &far)) {
        (true, Some(_), Err(_)) => Ok(()),
        (true, ..) => Err(format!("claims a limit, but {} tokens pass", far.cols().len())),
        (false, Some(limit), _) => Err(format!("claims no limit, but has one of {limit}")),
        (false, None, Err(error)) => Err(error.to_string()),
        (false, None, Ok(())) => {
            let problem = Problem::random(1, far.cols().len(), &DIMS, 6);
            let output = full_pass(encoding, &problem, &far, 0, &Device::flex());
            let finite = numbers(output).iter().all(|x| x.is_finite());
            finite.then_some(()).ok_or_else(|| "not finite at 8 times the length".to_owned())
        }
    }
}

fn parameter_formula<C: EncodingConfig>(encoding: &C::Encoding, config: &C) -> Outcome {
    let (built, formula) = (encoding.num_params(), config.param_count(&DIMS));
    (built == formula)
        .then_some(())
        .ok_or_else(|| format!("{built} parameters built, the formula gives {formula}"))
}

fn gradients<C: EncodingConfig>(config: &C) -> Outcome {
    let device = Device::flex().autodiff();
    let encoding = randomise(build(config, 7, &device)?, 11);
    if encoding.num_params() == 0 {
        return Ok(());
    }
    // As long as the longest sequence, so that every row of every table is used.
    let problem = Problem::random(2, DIMS.max_len, &DIMS, 8);
    let at = Positions::contiguous(0, DIMS.max_len);
    let loss = embedded(&encoding, &problem, &at, &device).powf_scalar(2.0).sum()
        + stack::loss(&encoding, &DIMS, &at, &device);
    let grads = loss.backward();
    let mut visitor = GradientVisitor { grads: &grads, found: Vec::new() };
    encoding.visit(&mut visitor);
    if visitor.found.is_empty() { Ok(()) } else { Err(visitor.found.join("; ")) }
}

struct GradientVisitor<'a> {
    grads: &'a Gradients,
    found: Vec<String>,
}

impl ModuleVisitor for GradientVisitor<'_> {
    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        let shape = param.val().dims();
        let Some(grad) = param.val().grad(self.grads) else {
            self.found.push(format!("parameter {shape:?} gets no gradient"));
            return;
        };
        let values = numbers(grad);
        if values.iter().any(|g| !g.is_finite()) {
            self.found.push(format!("parameter {shape:?} gets a gradient that is not finite"));
        } else if values.iter().all(|g| *g == 0.0) {
            self.found.push(format!("parameter {shape:?} gets a gradient of zero"));
        }
    }
}

fn reproducible<C: EncodingConfig>(config: &C) -> Outcome {
    let device = Device::flex();
    let problem = Problem::random(1, TOKENS, &DIMS, 9);
    let at = Positions::contiguous(0, TOKENS);
    let run = || -> Result<_, String> {
        let encoding = build(config, 21, &device)?;
        let output = numbers(full_pass(&encoding, &problem, &at, 0, &device));
        Ok((output, numbers(embedded(&encoding, &problem, &at, &device))))
    };
    (run()? == run()?).then_some(()).ok_or_else(|| "two runs gave different bits".to_owned())
}
