//! Quantities inside an attention, for inspection.
//!
//! They are derived from the encoding's description of the logits ([`ScoreMod`]), so they exist for
//! every encoding and combination, also those of other crates, without code in the encoding.

use burn::tensor::Tensor;
use burn::tensor::activation::sigmoid;

use super::reference::{LogitInputs, Plan};
use crate::ScoreMod;
use crate::count::CountedMatmul;
use crate::encoding::LayerContext;
use crate::erased::Hooks;

/// Largest difference between position products with and without an encoding that is attributed to
/// rounding.
const ROUNDING: f64 = 1e-6;

/// Quantity traced in one layer.
#[derive(Debug, Clone)]
pub struct Trace {
    /// Quantity that was traced.
    pub kind: TraceKind,
    /// Values of the quantity, `[1 or B, 1 or H, T, S]`, or `[B, H, 1, S]` if it belongs to columns
    /// alone. Entries of columns that a row does not see are undefined.
    pub values: Tensor<4>,
}

/// Quantity that can be inspected besides the attention weights.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum TraceKind {
    /// Gates of contextual positions, 0 to 1: by how much a column increases the contextual
    /// position of the columns before it.
    Gates,
    /// Contextual positions `p_ij`, the sum of the gates over `j..=i`, clamped as the encoding clamps them.
    ContextualPositions,
    /// Forgetting `1 - f_j`, 0 to 1: the share of the columns before `j` that later rows lose at
    /// column `j`.
    Forgetting,
    /// Share of a column that is retained under forgetting, 0 to 1: the product of `f` over
    /// `j+1..=i`.
    Retention,
    /// Shares of stick-breaking, 0 to 1: the part that a column takes of the remainder left by the
    /// columns after it.
    Shares,
    /// Sum of all terms that the encoding adds to the logits.
    AddedLogits,
    /// `q_i . k_j / sqrt(D)` for queries and keys that are `(1, 1, ...)` before the encoding
    /// transforms them: the effect of positions alone on a dot product. Without a transform it is
    /// `sqrt(D)` everywhere.
    PositionProducts,
}

impl TraceKind {
    /// All kinds of quantities.
    pub const ALL: [Self; 7] = [
        Self::Gates,
        Self::ContextualPositions,
        Self::Forgetting,
        Self::Retention,
        Self::Shares,
        Self::AddedLogits,
        Self::PositionProducts,
    ];

    /// Name of the quantity in files.
    pub fn id(self) -> &'static str {
        match self {
            Self::Gates => "gates",
            Self::ContextualPositions => "contextual-positions",
            Self::Forgetting => "forgetting",
            Self::Retention => "retention",
            Self::Shares => "shares",
            Self::AddedLogits => "added-logits",
            Self::PositionProducts => "position-products",
        }
    }

    /// Name of the quantity in figures and tables.
    pub fn label(self) -> &'static str {
        match self {
            Self::Gates => "gates",
            Self::ContextualPositions => "contextual positions",
            Self::Forgetting => "forgetting, 1 - f",
            Self::Retention => "share retained after forgetting",
            Self::Shares => "stick-breaking shares",
            Self::AddedLogits => "added to the logits",
            Self::PositionProducts => "products of positions alone",
        }
    }

    /// Whether the quantity is a gate, 0 to 1, that should open for counted tokens; gate scores are
    /// computed from such quantities.
    pub fn is_gate(self) -> bool {
        matches!(self, Self::Gates | Self::Forgetting | Self::Shares)
    }
}

/// Traces the quantities of a modifier for queries `[B, H, T, D]`, keys and values `[B, H, S, D]`.
pub(super) fn of_modifier(modifier: &ScoreMod, inputs: &LogitInputs<'_>) -> Vec<Trace> {
    let plan = Plan::of(modifier);
    let mut traces = Vec::new();
    let mut decay: Option<Tensor<3>> = None;
    for part in &plan.parts {
        match part {
            ScoreMod::Contextual(contextual) => {
                let (gates, positions) = inputs.counted(contextual);
                traces.push(Trace { kind: TraceKind::Gates, values: gates });
                traces.push(Trace { kind: TraceKind::ContextualPositions, values: positions });
            }
            // One decay may come in several parts, which are added up.
            ScoreMod::Decay { cumulative } => {
                decay = Some(decay.map_or(cumulative.clone(), |sum| sum + cumulative.clone()));
            }
            _ => {}
        }
    }
    if let Some(cumulative) = decay {
        traces.push(Trace { kind: TraceKind::Forgetting, values: forgetting(&cumulative) });
        if let Some(bias) = inputs.bias(&ScoreMod::Decay { cumulative }) {
            traces.push(Trace { kind: TraceKind::Retention, values: inputs.seen(bias).exp() });
        }
    }
    if plan.stick_breaking.is_some() {
        traces.push(Trace { kind: TraceKind::Shares, values: sigmoid(inputs.logits(&plan)) });
    }
    let added = plan.parts.iter().filter_map(|part| inputs.bias(part));
    let by_terms = (!plan.terms.is_empty()).then(|| {
        let content = inputs.before_terms(&plan);
        inputs.after_terms(&plan, content.clone()) - content
    });
    if let Some(values) = added.chain(by_terms).reduce(|sum, bias| sum + bias) {
        traces.push(Trace { kind: TraceKind::AddedLogits, values });
    }
    traces
}

/// Computes `1 - exp(c_j - c_{j-1})`, `[B, H, 1, S]`, from a running sum `[B, H, S]` of logarithms.
fn forgetting(cumulative: &Tensor<3>) -> Tensor<4> {
    let [batch, heads, columns] = cumulative.dims();
    let zero = Tensor::zeros([batch, heads, 1], &cumulative.device());
    let before = Tensor::cat(vec![zero, cumulative.clone()], 2).slice_dim(2, 0..columns);
    let forget = (cumulative.clone() - before).exp();
    (forget.neg() + 1.0).unsqueeze_dim::<4>(2)
}

/// Traces the products of constant vectors under the transform of queries and keys; `None` if the
/// transform is the identity.
pub(super) fn of_transform(
    encoding: &dyn Hooks,
    [batch, heads, rows, head_dim]: [usize; 4],
    columns: usize,
    ctx: &LayerContext<'_>,
    device: &burn::tensor::Device,
) -> Option<Trace> {
    let ones = |tokens| Tensor::<4>::ones([batch, heads, tokens, head_dim], device);
    let (q, k) = encoding.transform_qk(ones(rows), ones(columns), ctx);
    let values = q.counted_matmul(k.swap_dims(2, 3)) / (head_dim as f64).sqrt();
    let plain = (head_dim as f64).sqrt();
    let difference = (values.clone() - plain).abs().max().into_scalar::<f32>();
    // NaN counts as a difference, so that it is shown.
    let same = f64::from(difference) <= ROUNDING * plain;
    (!same).then_some(Trace { kind: TraceKind::PositionProducts, values })
}

#[cfg(test)]
mod tests {
    use burn::tensor::Device;
    use rand_chacha::ChaCha8Rng;
    use rand_chacha::rand_core::SeedableRng;

    use super::*;
    use crate::attention::{Engine, LayerInput, LayerOutput, Weights, layer};
    use crate::reference::Heads;
    use crate::reference::cope::{GateSide, positions};
    use crate::score::LogitScaling;
    use crate::testkit::close::{self, F32_REORDERED, numbers};
    use crate::testkit::problem::{Problem, tensor3, tensor4};
    use crate::testkit::randomise;
    use crate::{Combination, Dims, Positions, TokenState};

    const TOKENS: usize = 7;
    const DIMS: Dims =
        Dims { layers: 2, width: 8, heads: 2, head_dim: 4, train_len: TOKENS, max_len: TOKENS };

    /// One layer's attention over a random problem, by the reference engine.
    fn attended(text: &str, weights: Weights) -> (LayerOutput, Problem) {
        let device = Device::flex();
        let config = Combination::parse(text).unwrap();
        let mut rng = ChaCha8Rng::seed_from_u64(1);
        let encoding = randomise(config.init(&DIMS, &mut rng, &device).unwrap(), 2);
        let problem = Problem::random(1, TOKENS, &DIMS, 3);
        let at = Positions::contiguous(0, TOKENS);
        let x = tensor3(&problem.x, &device);
        let carried = TokenState::default();
        let input = LayerInput {
            engine: Engine::Reference,
            ..LayerInput::new(
                0,
                &at,
                &x,
                [&problem.q, &problem.k, &problem.v].map(|heads| tensor4(heads, &device)),
                &carried,
            )
        };
        (layer(&encoding, input, None, weights), problem)
    }

    fn explained(text: &str) -> LayerOutput {
        attended(text, Weights::Explain).0
    }

    /// Returns the values of one trace, `[head][row][column]`; values that belong to columns alone are
    /// repeated for all rows.
    fn of(output: &LayerOutput, kind: TraceKind) -> Heads {
        let trace = output.traces.iter().find(|trace| trace.kind == kind).unwrap();
        square(trace.values.clone())
    }

    fn square(values: Tensor<4>) -> Heads {
        let values = numbers(values.expand([1, DIMS.heads, TOKENS, TOKENS]));
        let rows = values.chunks(TOKENS).map(<[f64]>::to_vec).collect::<Vec<_>>();
        rows.chunks(TOKENS).map(<[Vec<f64>]>::to_vec).collect()
    }

    /// Asserts that two tables are equal wherever rows see columns.
    fn assert_seen(actual: &Heads, expected: impl Fn(usize, usize, usize) -> f64) {
        let (mut found, mut wanted) = (Vec::new(), Vec::new());
        for (h, head) in actual.iter().enumerate() {
            for i in 0..TOKENS {
                for j in 0..=i {
                    found.push(head[i][j]);
                    wanted.push(expected(h, i, j));
                }
            }
        }
        close::compare(&found, &wanted, F32_REORDERED).unwrap();
    }

    #[test]
    fn contextual_positions_are_those_of_the_scalar_reference_and_sums_of_the_gates() {
        for (text, convention, by_values) in [
            ("cope", LogitScaling::Listing, false),
            ("cope{convention=equation}", LogitScaling::Equation, false),
            ("cope{gates=query-value}", LogitScaling::Listing, true),
            ("cope-mlp", LogitScaling::Listing, false),
        ] {
            let (output, problem) = attended(text, Weights::Explain);
            let (gates, found) =
                (of(&output, TraceKind::Gates), of(&output, TraceKind::ContextualPositions));
            let at = Positions::contiguous(0, TOKENS);
            let side = if by_values { GateSide::Values } else { GateSide::Keys };
            let input = problem.scalar(0, 0, &at);
            let truth = positions(&input, f64::INFINITY, convention, side);
            assert_seen(&found, |h, i, j| truth[h][i][j]);
            assert_seen(&found, |h, i, j| gates[h][i][j..=i].iter().sum());
            assert!(gates.iter().flatten().flatten().all(|gate| (0.0..=1.0).contains(gate)));
        }
    }

    #[test]
    fn forgetting_says_what_retention_keeps_and_retention_what_is_added() {
        let output = explained("fox");
        let forgetting = of(&output, TraceKind::Forgetting);
        let retention = of(&output, TraceKind::Retention);
        let added = of(&output, TraceKind::AddedLogits);
        assert_seen(&retention, |h, i, j| {
            forgetting[h][i][j + 1..=i].iter().map(|x| 1.0 - x).product()
        });
        assert_seen(&retention, |h, i, j| added[h][i][j].exp());
        assert!(forgetting.iter().flatten().flatten().any(|x| *x > 0.05), "nothing is forgotten");
    }

    #[test]
    fn shares_of_the_stick_give_the_weights() {
        let output = explained("stick-breaking");
        let shares = of(&output, TraceKind::Shares);
        let weights = square(output.weights.unwrap());
        assert_seen(&weights, |h, i, j| {
            let left: f64 = shares[h][i][j + 1..i.max(j + 1)].iter().map(|x| 1.0 - x).product();
            if j < i { shares[h][i][j] * left } else { 0.0 }
        });
    }

    #[test]
    fn rotations_make_products_of_distances_alone() {
        let products = of(&explained("rope"), TraceKind::PositionProducts);
        // Frequencies 1 and 1/100 of a head of 4 channels.
        let expected = |distance: f64| 2.0 * (distance.cos() + (distance / 100.0).cos()) / 2.0;
        assert_seen(&products, |_, i, j| expected((i - j) as f64));
    }

    #[test]
    fn slopes_are_added_and_leave_products_alone() {
        let output = explained("alibi");
        let kinds = output.traces.iter().map(|trace| trace.kind).collect::<Vec<_>>();
        assert_eq!(kinds, [TraceKind::AddedLogits]);
        // 2 heads: slopes 2^-4 and 2^-8.
        let slopes = [0.0625, 0.003_906_25];
        assert_seen(&of(&output, TraceKind::AddedLogits), |h, i, j| -slopes[h] * (i - j) as f64);
        assert!(explained("nope").traces.is_empty());
    }

    #[test]
    fn combinations_show_what_each_part_does() {
        let kinds = |text| explained(text).traces.iter().map(|t| t.kind).collect::<Vec<_>>();
        assert_eq!(
            kinds("cope+rope"),
            [
                TraceKind::Gates,
                TraceKind::ContextualPositions,
                TraceKind::AddedLogits,
                TraceKind::PositionProducts
            ]
        );
        assert!(kinds("fox+rope").contains(&TraceKind::Forgetting));
    }

    #[test]
    fn looking_changes_nothing_and_every_encoding_can_be_looked_into() {
        for meta in crate::Registry::builtin().cards() {
            let [dropped, returned, explained] = [Weights::Drop, Weights::Return, Weights::Explain]
                .map(|weights| attended(meta.id, weights).0);
            assert_eq!(numbers(dropped.output.clone()), numbers(explained.output), "{}", meta.id);
            assert!(dropped.traces.is_empty() && dropped.weights.is_none(), "{}", meta.id);
            assert!(returned.traces.is_empty() && returned.weights.is_some(), "{}", meta.id);
            assert!(explained.weights.is_some(), "{}", meta.id);
            for trace in explained.traces {
                let values = square(trace.values);
                let seen = |head: &Vec<Vec<f64>>| {
                    (0..TOKENS).all(|i| head[i][..=i].iter().all(|x| x.is_finite()))
                };
                assert!(values.iter().all(seen), "{}: {:?}", meta.id, trace.kind);
            }
        }
    }
}
