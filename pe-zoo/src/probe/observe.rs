//! Experiments from which the properties of an encoding are derived.

use burn::tensor::{Device, Int, Tensor};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;

use super::close::{self, F32_REORDERED, Tolerance, numbers};
use super::passes::{LayerEngine, TOKENS, chunk_by, embedded, stack};
use super::problem::{Problem, tensor3, tensor4};
use super::transforms::{self as of_transforms, SHIFTED};
use super::{built, device};
use crate::attention::{Engine, in_layer, logits};
use crate::card::{ActsOn, Properties};
use crate::encoding::{EmbedContext, LayerContext, PositionRequest, ScoreContext};
use crate::erased::Hooks;
use crate::reference::{Heads, dot};
use crate::registry::EncodingConfig;
use crate::score::{LogitScaling, Term};
use crate::{Dims, Positions, ScoreMod};

/// Standard deviation of random parameters in a stack of layers. Larger ones would make logits so
/// large that rounding errors look like effects.
const STACK_STD: f64 = 0.2;

/// Tolerance for outputs of three layers. The rounding error of rotations grows with the angle, and
/// layers multiply it.
const STACK: Tolerance = Tolerance { absolute: 3e-4, relative: 3e-4 };

/// Determines the properties of an encoding by running it on small problems.
pub(super) fn observe(config: &EncodingConfig, dims: &Dims) -> Result<Properties, String> {
    let encoding = built(config, dims, 0.5)?;
    let small = built(config, &Dims { layers: dims.layers.max(3), ..*dims }, STACK_STD)?;
    let subject = ProbedEncoding { encoding: encoding.hooks(), dims: *dims, device: device() };
    let longest = config.dims_beside(dims).max_len;
    let scores = subject.scores();
    let has = |kind: fn(&ScoreMod) -> bool| scores.iter().any(|score| score.any(kind));
    let mixed = subject.in_layers(|ctx| subject.encoding.mixed_values(ctx).is_some());
    let (transforms, width) = subject.transforms();
    let mut acts_on = Vec::new();
    let mut note = |acts, part| {
        if acts {
            acts_on.push(part);
        }
    };
    note(subject.embeds(), ActsOn::Embedding);
    note(transforms, ActsOn::QueryKey);
    note(has(changes_logits), ActsOn::Logits);
    note(has(|score| matches!(score, ScoreMod::StickBreaking(_))), ActsOn::Weights);
    note(subject.chooses_positions(longest)?, ActsOn::Positions);
    note(subject.keeps_state(), ActsOn::State);
    let replaces_softmax = has(|score| matches!(score, ScoreMod::StickBreaking(_)));
    let depends_on_length = subject.depends_on_length();
    Ok(Properties {
        acts_on,
        shift_invariant: !subject.moved_by_shifts() && !moved_in_a_stack(small.hooks(), dims),
        content_dependent: replaces_softmax || subject.looks_at_tokens(),
        limited_length: subject.encoding.max_len().is_some(),
        depends_on_length,
        ignores_positions: !subject.reads_positions(),
        mixes_heads: subject.mixes_heads(),
        mixes_values: mixed.into_iter().any(|gives| gives),
        reads_vectors: (0..dims.layers).any(|layer| subject.reads_vectors(layer)),
        has_terms: has(|score| matches!(score, ScoreMod::Term(_))),
        scales_content: subject.scales_content(&scores),
        replaces_products: has(|score| {
            matches!(
                score,
                ScoreMod::Products(_)
                    | ScoreMod::Reflected(_)
                    | ScoreMod::FarProducts(_)
                    | ScoreMod::ChannelDecay { .. }
            )
        }),
        decays_channels: has(|score| matches!(score, ScoreMod::ChannelDecay { .. })),
        replaces_softmax,
        has_sinks: has(|score| matches!(score, ScoreMod::Sinks(_))),
        scales_rows: transforms && of_transforms::scales_rows(subject.encoding, dims),
        // Factors that depend on the length and do not cancel count as a dependence on the length.
        stretches_queries: !depends_on_length && subject.stretches_queries(),
        undivided: has(
            |score| matches!(score, ScoreMod::Contextual(own) if own.convention == LogitScaling::Equation),
        ),
        widens_queries: width > dims.head_dim,
    })
}

/// Whether an encoding reads positions that are not whole.
pub(super) fn takes_real_positions(config: &EncodingConfig, dims: &Dims) -> Result<bool, String> {
    let encoding = built(config, dims, 0.5)?;
    let subject = ProbedEncoding { encoding: encoding.hooks(), dims: *dims, device: device() };
    Ok(subject.takes_real_positions())
}

fn changes_logits(score: &ScoreMod) -> bool {
    !matches!(
        score,
        ScoreMod::None | ScoreMod::StickBreaking(_) | ScoreMod::Hard | ScoreMod::Sum(_)
    )
}

/// Tolerance for sums of a few dozen products in f32, of numbers near 1.
const LINEAR: Tolerance = Tolerance { absolute: 1e-3, relative: 1e-3 };

/// Tolerance for attention weights from f32 logits.
const WEIGHTS: Tolerance = Tolerance { absolute: 1e-4, relative: 0.0 };

/// Tolerance for three layers with rotations by angles of thousands of radians.
const SHIFTED_FAR: Tolerance = Tolerance { absolute: 5e-3, relative: 5e-3 };

struct ProbedEncoding<'a> {
    encoding: &'a dyn Hooks,
    dims: Dims,
    device: Device,
}

impl ProbedEncoding<'_> {
    fn problem(&self, tokens: usize, seed: u64) -> Problem {
        Problem::random(1, tokens, &self.dims, seed)
    }

    /// Output of one layer.
    fn output(&self, problem: &Problem, at: &Positions, layer: usize) -> Tensor<4> {
        let place = LayerEngine { layer, engine: Engine::Reference };
        let all = 0..at.cols().len();
        chunk_by(self.encoding, problem, at, all, place, None, &self.device)
    }

    fn embedding(&self, problem: &Problem, at: &Positions) -> Vec<f64> {
        numbers(embedded(self.encoding, problem, at, &self.device))
    }

    /// Outputs of all layers, each run separately, and the embeddings.
    fn everything(&self, problem: &Problem, at: &Positions) -> Vec<f64> {
        let mut found = self.embedding(problem, at);
        for layer in 0..self.dims.layers {
            found.extend(numbers(self.output(problem, at, layer)));
        }
        found
    }

    /// Calls `body` with the context of each layer.
    fn in_layers<T>(&self, body: impl Fn(&LayerContext<'_>) -> T) -> Vec<T> {
        let x = tensor3(&self.problem(TOKENS, 16).x, &self.device);
        (0..self.dims.layers).map(|layer| in_layer(self.encoding, layer, &x, &body)).collect()
    }

    fn embeds(&self) -> bool {
        let problem = self.problem(TOKENS, 16);
        let at = Positions::contiguous(0, TOKENS);
        self.embedding(&problem, &at) != numbers(tensor3(&problem.x, &self.device))
    }

    /// Whether queries or keys change in any layer, and their width after the change.
    fn transforms(&self) -> (bool, usize) {
        let problem = self.problem(TOKENS, 16);
        let (q, k) = (tensor4(&problem.q, &self.device), tensor4(&problem.k, &self.device));
        let before = [numbers(q.clone()), numbers(k.clone())];
        let found = self.in_layers(|ctx| {
            let (q, k) = self.encoding.transform_qk(q.clone(), k.clone(), ctx);
            let [_batch, _heads, _tokens, width] = q.dims();
            ([numbers(q), numbers(k)] != before, width)
        });
        let changes = found.iter().any(|(changed, _)| *changed);
        (changes, found.iter().map(|(_, width)| *width).max().unwrap_or(self.dims.head_dim))
    }

    fn scores(&self) -> Vec<ScoreMod> {
        let problem = self.problem(TOKENS, 16);
        let score = |ctx: &LayerContext<'_>, [q, k]: [Tensor<4>; 2]| {
            self.encoding.score(&ScoreContext { layer: ctx, q: &q, k: &k })
        };
        (0..self.dims.layers).map(|layer| self.transformed(&problem, layer, score)).collect()
    }

    fn keeps_state(&self) -> bool {
        let kept = self.in_layers(|ctx| !ctx.rows.tensors.is_empty());
        let at = Positions::contiguous(0, TOKENS);
        let (_, carried) =
            stack(self.encoding, &self.problem(TOKENS, 12), &at, self.dims.layers, &self.device);
        kept.into_iter().any(|kept| kept) || !carried.tensors.is_empty()
    }

    /// Whether the positions differ from `0, 1, 2, ...` in training or in evaluation.
    fn chooses_positions(&self, longest: usize) -> Result<bool, String> {
        let mut chosen = false;
        for (cached_tokens, new_tokens) in [(0, TOKENS), (0, 1), (9, 1), (6, 3)] {
            for seed in [None, Some(1), Some(2)] {
                let mut rng = ChaCha8Rng::seed_from_u64(seed.unwrap_or(0));
                let training_rng = seed.map(|_| &mut rng);
                let request = PositionRequest { cached_tokens, new_tokens, training_rng };
                let at = self.encoding.positions(request).map_err(|error| error.to_string())?;
                if at.len() > longest {
                    return Err(format!(
                        "it chooses the position {}, expected less than {longest}",
                        at.len() - 1
                    ));
                }
                chosen |= at != Positions::contiguous(cached_tokens, new_tokens);
            }
        }
        Ok(chosen)
    }

    fn moved_by_shifts(&self) -> bool {
        let problem = self.problem(TOKENS, 5);
        let at = Positions::contiguous(0, TOKENS);
        let plain = self.everything(&problem, &at);
        // Some encodings react to shifts only past a length of their own.
        let far = self.encoding.max_len().is_none().then_some((4000, SHIFTED_FAR));
        let near = [1, 9, 40].map(|shift| (shift, SHIFTED));
        near.into_iter().chain(far).any(|(shift, tolerance)| {
            close::compare(&self.everything(&problem, &at.shifted(shift)), &plain, tolerance)
                .is_err()
        })
    }

    fn reads_positions(&self) -> bool {
        let problem = self.problem(TOKENS, 17);
        let with_gaps = (0..TOKENS).map(|n| 3 + 2 * n + n * n / 7).collect();
        let with_gaps = Positions::new(with_gaps, 0).expect("ascending positions");
        self.everything(&problem, &with_gaps)
            != self.everything(&problem, &Positions::contiguous(0, TOKENS))
    }

    /// Whether outputs are the same for equal positions in whole units and in halves of them.
    fn takes_real_positions(&self) -> bool {
        let problem = self.problem(TOKENS, 18);
        let halves = Positions::new((0..TOKENS).map(|n| 2 * n).collect(), 0);
        let halves = halves.expect("ascending positions").in_steps(2);
        let whole = self.everything(&problem, &Positions::contiguous(0, TOKENS));
        close::compare(&self.everything(&problem, &halves), &whole, F32_REORDERED).is_ok()
    }

    fn mixes_heads(&self) -> bool {
        let at = Positions::contiguous(0, TOKENS);
        let (problem, other) = (self.problem(TOKENS, 14), self.problem(TOKENS, 15));
        // A head may give to others without taking from them.
        [self.dims.heads / 2, 0].into_iter().any(|head| {
            let mut changed = problem.clone();
            changed.q[0][head].clone_from(&other.q[0][head]);
            changed.k[0][head].clone_from(&other.k[0][head]);
            changed.v[0][head].clone_from(&other.v[0][head]);
            (0..self.dims.layers).any(|layer| {
                let (before, after) =
                    (self.output(&problem, &at, layer), self.output(&changed, &at, layer));
                let of =
                    |output: &Tensor<4>, head| numbers(output.clone().slice_dim(1, head..head + 1));
                (0..self.dims.heads).any(|h| h != head && of(&before, h) != of(&after, h))
            })
        })
    }

    /// Whether a pass over more tokens changes the outputs of the first ones.
    fn depends_on_length(&self) -> bool {
        let longest = self.dims.max_len;
        let problem = self.problem(longest, 10);
        let pass = |len: usize| {
            let at = Positions::contiguous(0, len);
            (0..self.dims.layers)
                .map(|layer| self.output(&problem, &at, layer))
                .chain([embedded(self.encoding, &problem, &at, &self.device).unsqueeze_dim(1)])
                .collect::<Vec<_>>()
        };
        let whole = pass(longest);
        let train_len = self.dims.train_len;
        [1, 7, train_len, train_len + 1, longest / 2, longest - 1].into_iter().any(|len| {
            pass(len).into_iter().zip(&whole).any(|(short, whole)| {
                let first = numbers(whole.clone().slice_dim(2, 0..len));
                close::compare(&numbers(short), &first, F32_REORDERED).is_err()
            })
        })
    }

    /// Whether queries of the same tokens are transformed differently when more tokens follow.
    fn stretches_queries(&self) -> bool {
        let problem = self.problem(TOKENS, 16);
        let queries = |tokens: usize, layer| {
            let x = tensor3(&problem.x, &self.device).slice_dim(1, 0..tokens);
            let part = |heads: &[Heads]| tensor4(heads, &self.device).slice_dim(2, 0..tokens);
            let (q, _) = in_layer(self.encoding, layer, &x, |ctx| {
                self.encoding.transform_qk(part(&problem.q), part(&problem.k), ctx)
            });
            numbers(q.slice_dim(2, 0..7))
        };
        (0..self.dims.layers).any(|layer| {
            close::compare(&queries(7, layer), &queries(TOKENS, layer), F32_REORDERED).is_err()
        })
    }

    /// Calls `body` with the context of one layer on one problem, and with queries and keys after the transform.
    fn transformed<T>(
        &self,
        problem: &Problem,
        layer: usize,
        body: impl FnOnce(&LayerContext<'_>, [Tensor<4>; 2]) -> T,
    ) -> T {
        let x = tensor3(&problem.x, &self.device);
        in_layer(self.encoding, layer, &x, |ctx| {
            let (q, k) = (tensor4(&problem.q, &self.device), tensor4(&problem.k, &self.device));
            body(ctx, self.encoding.transform_qk(q, k, ctx).into())
        })
    }

    /// Logits of the visible pairs, row by row, for transformed queries and keys.
    fn visible_logits(
        &self,
        problem: &Problem,
        ctx: &LayerContext<'_>,
        q: &Tensor<4>,
        k: &Tensor<4>,
    ) -> Vec<Vec<f64>> {
        let v = tensor4(&problem.v, &self.device);
        let heads = nested(logits(self.encoding, ctx, q, k, &v)).into_iter().flatten();
        heads
            .flat_map(|rows| rows.into_iter().enumerate())
            .map(|(row, mut logits)| {
                logits.truncate(row + 1);
                logits
            })
            .collect()
    }

    /// Logits of the visible pairs of a layer, row by row.
    fn logits(&self, problem: &Problem, layer: usize) -> Vec<Vec<f64>> {
        self.transformed(problem, layer, |ctx, [q, k]| self.visible_logits(problem, ctx, &q, &k))
    }

    /// Whether the encoding depends on tokens. If it does not, its logits are linear in queries and
    /// in keys plus a constant, its embeddings do not depend on token ids, and it keeps no state of
    /// tokens.
    fn looks_at_tokens(&self) -> bool {
        (0..self.dims.layers).any(|layer| self.breaks_linearity(layer))
            || self.carries_content()
            || self.embeds_ids()
    }

    fn breaks_linearity(&self, layer: usize) -> bool {
        let (one, two) = (self.problem(TOKENS, 12), self.problem(TOKENS, 13));
        let flat = |problem: &Problem| self.logits(problem, layer).concat();
        let zero = |heads: &[Heads]| sum(heads, heads, -1.0);
        let plain = flat(&one);
        let constant = flat(&Problem { q: zero(&one.q), k: zero(&one.k), ..one.clone() });
        let added = |other: &Problem| {
            let terms = plain.iter().zip(flat(other)).zip(&constant);
            terms.map(|((one, two), constant)| one + two - constant).collect::<Vec<_>>()
        };
        let with =
            |q: &Vec<Heads>, k: &Vec<Heads>| Problem { q: q.clone(), k: k.clone(), ..one.clone() };
        let both_q = flat(&with(&sum(&one.q, &two.q, 1.0), &one.k));
        let both_k = flat(&with(&one.q, &sum(&one.k, &two.k, 1.0)));
        let other_inputs = Problem { x: two.x.clone(), v: two.v.clone(), ..one.clone() };
        [
            (both_q, added(&with(&two.q, &one.k))),
            (both_k, added(&with(&one.q, &two.k))),
            (flat(&with(&zero(&one.q), &one.k)), constant.clone()),
            (flat(&with(&one.q, &zero(&one.k))), constant.clone()),
            (flat(&other_inputs), plain.clone()),
        ]
        .into_iter()
        .any(|(found, expected)| close::compare(&found, &expected, LINEAR).is_err())
    }

    fn carries_content(&self) -> bool {
        let at = Positions::contiguous(0, TOKENS);
        let carried = |seed| {
            let problem = self.problem(TOKENS, seed);
            let (_, state) = stack(self.encoding, &problem, &at, 1, &self.device);
            state.tensors.into_iter().flat_map(numbers).collect::<Vec<_>>()
        };
        carried(12) != carried(13)
    }

    fn embeds_ids(&self) -> bool {
        let at = Positions::contiguous(0, TOKENS);
        let x = tensor3(&self.problem(TOKENS, 12).x, &self.device);
        let embed = |tokens: Tensor<2, Int>| {
            numbers(self.encoding.embed(x.clone(), &EmbedContext { at: &at, tokens: &tokens }))
        };
        let range = Tensor::<1, Int>::arange(0..TOKENS as i64, &self.device).reshape([1, TOKENS]);
        embed(range) != embed(Tensor::zeros([1, TOKENS], &self.device))
    }

    /// Whether what a pair term adds to content logits depends on them. `scores` are the modifiers
    /// of a sequence of [`TOKENS`] tokens.
    fn scales_content(&self, scores: &[ScoreMod]) -> bool {
        let at = Positions::contiguous(0, TOKENS);
        let square = Problem::random(
            1,
            TOKENS,
            &Dims { width: self.dims.heads * TOKENS, head_dim: TOKENS, ..self.dims },
            20,
        );
        let contents = [&square.q, &square.k].map(|heads| tensor4(heads, &self.device));
        let scales = |term: &Term| {
            let [one, two] = contents
                .each_ref()
                .map(|content| numbers(term.values(content.clone(), &at) - content.clone()));
            close::compare(&one, &two, LINEAR).is_err()
        };
        scores
            .iter()
            .any(|score| score.any(|part| matches!(part, ScoreMod::Term(term) if scales(term))))
    }

    /// Whether queries or keys are read other than through their products: a common reflection of
    /// both then changes the attention weights.
    fn reads_vectors(&self, layer: usize) -> bool {
        let problem = self.problem(TOKENS, 18);
        self.transformed(&problem, layer, |ctx, heads| {
            let [q, k] = heads.map(nested);
            let normal = &problem.x[0].concat()[..q[0][0][0].len()];
            let weights = |q: &[Heads], k: &[Heads]| {
                let [q, k] = [q, k].map(|heads| tensor4(heads, &self.device));
                let logits = self.visible_logits(&problem, ctx, &q, &k);
                logits.iter().flat_map(|row| softmax(row)).collect::<Vec<_>>()
            };
            let found = weights(&reflected(&q, normal), &reflected(&k, normal));
            close::compare(&found, &weights(&q, &k), WEIGHTS).is_err()
        })
    }
}

/// Whether a shift of all positions changes the outputs of a stack of layers.
fn moved_in_a_stack(encoding: &dyn Hooks, dims: &Dims) -> bool {
    let (layers, device) = (dims.layers.max(3), device());
    let problem = Problem::random(1, TOKENS, dims, 240);
    let at = Positions::contiguous(0, TOKENS);
    let run = |at: &Positions| {
        let (outputs, _) = stack(encoding, &problem, at, layers, &device);
        outputs.into_iter().flat_map(numbers).collect::<Vec<_>>()
    };
    close::compare(&run(&at.shifted(9)), &run(&at), STACK).is_err()
}

/// Computes the elementwise sum `a + by * b`.
fn sum(a: &[Heads], b: &[Heads], by: f64) -> Vec<Heads> {
    let mut sum = a.to_vec();
    let terms = sum.iter_mut().flatten().flatten().flatten();
    terms.zip(b.iter().flatten().flatten().flatten()).for_each(|(a, b)| *a += by * b);
    sum
}

/// Reflects every vector at the plane with this normal.
fn reflected(heads: &[Heads], normal: &[f64]) -> Vec<Heads> {
    let length = dot(normal, normal);
    let mut out = heads.to_vec();
    for u in out.iter_mut().flatten().flatten() {
        let by = 2.0 * dot(u, normal) / length;
        u.iter_mut().zip(normal).for_each(|(u, n)| *u -= by * n);
    }
    out
}

fn softmax(row: &[f64]) -> Vec<f64> {
    let largest = row.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let sum = row.iter().map(|x| (x - largest).exp()).sum::<f64>();
    row.iter().map(|x| (x - largest).exp() / sum).collect()
}

/// Converts a tensor to `[batch][head][row][column]`.
fn nested(tensor: Tensor<4>) -> Vec<Heads> {
    let [_batch, heads, rows, columns] = tensor.dims();
    let values = numbers(tensor);
    values
        .chunks(heads * rows * columns)
        .map(|batch| {
            batch
                .chunks(rows * columns)
                .map(|head| head.chunks(columns).map(<[f64]>::to_vec).collect())
                .collect()
        })
        .collect()
}
