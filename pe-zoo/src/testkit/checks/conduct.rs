//! How an encoding behaves beside others: what it states, and the negation.

use burn::tensor::{Device, Tensor};

use super::Outcome;
use super::claims::held;
use crate::encoding::{LayerContext, ScoreContext, StateContext};
use crate::meta::{Conduct, Site};
use crate::reference::{Heads, ScalarReference, dot};
use crate::score::{Contextual, LogitScaling};
use crate::testkit::close::{self, F32, Tolerance, numbers};
use crate::testkit::passes::{DIMS, TOKENS, embedded, full_pass};
use crate::testkit::problem::{Problem, tensor3, tensor4};
use crate::{EncodingConfig, PositionEncoding, Positions, ScoreMod, TokenState};

/// Changing one head's queries, keys and values moves other heads only if that is stated.
pub(super) fn heads<C: EncodingConfig>(
    encoding: &C::Encoding,
    config: &C,
    device: &Device,
) -> Outcome {
    let at = Positions::contiguous(0, TOKENS);
    let problem = Problem::random(1, TOKENS, &DIMS, 14);
    let other = Problem::random(1, TOKENS, &DIMS, 15);
    let mut changed = problem.clone();
    changed.q[0][1].clone_from(&other.q[0][1]);
    changed.k[0][1].clone_from(&other.k[0][1]);
    changed.v[0][1].clone_from(&other.v[0][1]);
    let head = |problem: &Problem, head: usize| {
        let output = full_pass(encoding, problem, &at, 0, device);
        numbers(output.slice_dim(1, head..=head))
    };
    if head(&problem, 1) == head(&changed, 1) {
        return Err("changing head 1 did not move head 1".to_owned());
    }
    let moved = [0, 2].into_iter().find(|h| head(&problem, *h) != head(&changed, *h));
    let moved = moved.map(|h| format!("changing head 1 moved head {h}"));
    held("to mix heads", config.conduct().contains(&Conduct::MixesHeads), moved)
}

/// Everything else that is stated of conduct.
pub(super) fn conduct<C: EncodingConfig>(
    encoding: &C::Encoding,
    config: &C,
    device: &Device,
) -> Outcome
where
    C::Encoding: ScalarReference,
{
    let stated = config.conduct();
    let states = |conduct| stated.contains(&conduct);
    let at = Positions::contiguous(0, TOKENS);
    let problem = Problem::random(1, TOKENS, &DIMS, 16);
    let x = tensor3(&problem.x, device);
    let carried = TokenState::default();
    let rows = encoding.state(&StateContext { layer: 0, at: &at, x: &x, carried: &carried });
    let ctx = LayerContext { layer: 0, at: &at, rows: &rows, cols: &rows };
    let (q, k) = (tensor4(&problem.q, device), tensor4(&problem.k, device));
    let (q, k) = encoding.transform_qk(q, k, &ctx);
    let transformed = encoding.scalar_transformed(&problem.scalar(0, 0, &at));
    let same = |tensor: &Tensor<4>, heads: &Heads| {
        let expected = heads.iter().flatten().flatten().copied().collect::<Vec<_>>();
        close::compare(&numbers(tensor.clone()), &expected, F32)
    };
    let stretched_one = same(&q, &transformed.q).and_then(|()| same(&k, &transformed.k)).err();
    let stretched_one =
        stretched_one.map(|e| format!("they are not those of scalar_transformed: {e}"));
    held("to stretch queries", states(Conduct::StretchesQueries), stretched_one)?;
    let [_batch, _heads, _tokens, width] = q.dims();
    if width != DIMS.head_dim && width != 2 * DIMS.head_dim {
        return Err(format!("queries are {width} wide, expected head_dim or twice that"));
    }
    let wider = (width > DIMS.head_dim).then(|| format!("they are {width} wide"));
    held("to widen queries", states(Conduct::WidensQueries), wider)?;
    let mixed = encoding.mixed_values(&ctx).map(|mixed| format!("it gives {:?}", mixed.dims()));
    held("to have the attention mix columns", states(Conduct::MixesValues), mixed)?;
    let scores = (0..DIMS.layers).map(|layer| {
        let rows = encoding.state(&StateContext { layer, at: &at, x: &x, carried: &carried });
        let ctx = LayerContext { layer, at: &at, rows: &rows, cols: &rows };
        encoding.score(&ScoreContext { layer: &ctx, q: &q, k: &k })
    });
    let score = ScoreMod::Sum(scores.collect());
    let has =
        |what: fn(&ScoreMod) -> bool| any(&score, what).then(|| format!("its score is {score:?}"));
    let softmax = has(|score| matches!(score, ScoreMod::StickBreaking(_)));
    held("to replace the softmax", states(Conduct::ReplacesSoftmax), softmax)?;
    let products = has(ScoreMod::replaces_products);
    held("to replace the products", states(Conduct::ReplacesProducts), products)?;
    let undivided = has(|score| {
        let equation = |own: &Contextual| own.convention == LogitScaling::Equation;
        matches!(score, ScoreMod::Contextual(own) if equation(own))
    });
    held("to leave the division out", states(Conduct::Undivided), undivided)?;
    reads_queries(encoding, config)?;
    // The one that is stated the other way round.
    let same =
        held("to read positions", !states(Conduct::IgnoresPositions), stretched(encoding, device));
    same.map_err(|e| format!("{e} (Conduct::IgnoresPositions)"))
}

/// Whether a modifier, or a part of it, is of a kind.
fn any(score: &ScoreMod, kind: fn(&ScoreMod) -> bool) -> bool {
    match score {
        ScoreMod::Sum(parts) => parts.iter().any(|part| any(part, kind)),
        other => kind(other),
    }
}

/// What changes when positions are others, with gaps between them.
fn stretched<P: PositionEncoding>(encoding: &P, device: &Device) -> Option<String> {
    let problem = Problem::random(1, TOKENS, &DIMS, 17);
    let with_gaps = Positions::new((0..TOKENS).map(|n| 3 + 2 * n + n * n / 7).collect(), 0);
    let run = |at: &Positions| {
        let mut found = numbers(full_pass(encoding, &problem, at, 0, device));
        found.extend(numbers(embedded(encoding, &problem, at, device)));
        found
    };
    let with_gaps = with_gaps.ok()?;
    (run(&with_gaps) != run(&Positions::contiguous(0, TOKENS)))
        .then(|| "other positions move the output".to_owned())
}

/// Weights between 0 and 1 in f64.
const SAME: Tolerance = Tolerance { absolute: 1e-9, relative: 0.0 };

/// A common reflection of queries and keys changes weights only where something else than each
/// other meets them.
fn reads_queries<C: EncodingConfig>(encoding: &C::Encoding, config: &C) -> Outcome
where
    C::Encoding: ScalarReference,
{
    if config.meta().sites.contains(&Site::QueryKey) {
        return Ok(());
    }
    let moved = (0..DIMS.layers).find_map(|layer| moved_by_reflection(encoding, layer));
    let moved = moved.map(|e| format!("reflecting queries and keys moves weights: {e}"));
    held("to read queries", config.conduct().contains(&Conduct::ReadsQueries), moved)
}

fn moved_by_reflection<P: ScalarReference>(encoding: &P, layer: usize) -> Option<String> {
    let at = Positions::contiguous(0, TOKENS);
    let input = Problem::random(1, TOKENS, &DIMS, 18).scalar(0, layer, &at);
    let normal = input.x[0][..DIMS.head_dim].to_vec();
    let length = dot(&normal, &normal);
    let reflected = |heads: &Heads| -> Heads {
        let reflect = |u: &Vec<f64>| {
            let by = 2.0 * dot(u, &normal) / length;
            u.iter().zip(&normal).map(|(u, n)| u - by * n).collect()
        };
        heads.iter().map(|head| head.iter().map(reflect).collect()).collect()
    };
    let mut turned = input.clone();
    (turned.q, turned.k) = (reflected(&input.q), reflected(&input.k));
    let weights = |input| -> Vec<f64> {
        encoding.scalar_weights(input).into_iter().flatten().flatten().collect()
    };
    close::compare(&weights(&turned), &weights(&input), SAME).err()
}
