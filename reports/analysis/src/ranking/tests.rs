use super::*;
use records::RunRecord;
use records::testkit::{TestCell, suite};

fn ranking(records: &[RunRecord], region: Region, metric: Metric) -> Ranking {
    let mut runs: Vec<SeedRun> = records.iter().map(SeedRun::of).collect();
    runs.sort_by(|a, b| (&a.encoding, a.seed).cmp(&(&b.encoding, b.seed)));
    Ranking::new(&runs, &BTreeMap::new(), region, metric)
}

#[test]
fn values_are_means_over_evaluations_and_then_over_seeds() {
    let records: Vec<RunRecord> = [(0, 0.9, 0.5), (1, 0.7, 0.3)]
        .into_iter()
        .map(|(seed, at_128, at_256)| {
            TestCell::new("w", "rope", seed)
                .beyond(at_128)
                .eval("sparse", false, 256, at_256)
                .record()
        })
        .collect();
    let ranking = ranking(&records, Region::Both, Metric::ExactMatch);
    assert_eq!(ranking.points, [("sparse".into(), 128), ("sparse".into(), 256)]);
    let rope = &ranking.results[0];
    let by_hand = [(0, f64::midpoint(0.9, 0.5)), (1, f64::midpoint(0.7, 0.3))];
    assert_eq!(rope.per_seed, by_hand);
    assert!((rope.mean() - 0.6).abs() < 1e-12);
    assert_eq!(rope.rank, Rank::Best);
}

#[test]
fn an_encoding_without_the_long_evaluations_is_shown_and_not_ranked() {
    let records: Vec<RunRecord> =
        suite().into_iter().filter(|r| r.workload == "flip-flop" && !r.evals.is_empty()).collect();
    let beyond = ranking(&records, Region::Both, Metric::ExactMatch);
    let learned = beyond.results.iter().find(|s| s.encoding == "learned-absolute").unwrap();
    assert_eq!((learned.rank, learned.estimate, learned.evaluated), (Rank::Unranked, None, 0));
    let names: Vec<_> = beyond.ranked().iter().map(|s| s.encoding.clone()).collect();
    assert_eq!(names, ["cope", "rope(linear)", "rope"]);
    let inside = ranking(&records, Region::Inside, Metric::ExactMatch);
    assert!(inside.results.iter().all(|s| s.rank == Rank::Best));
}

#[test]
fn a_perfect_short_score_does_not_beat_a_complete_one() {
    let complete = TestCell::new("w", "rope", 0).eval("sparse", false, 512, 0.2).record();
    let short =
        TestCell::new("w", "learned", 0).eval("sparse", false, 512, 0.0).limited_to(128).record();
    let ranking = ranking(&[complete, short], Region::Both, Metric::ExactMatch);
    let learned = &ranking.results[0];
    assert_eq!((learned.evaluated, learned.mean(), learned.rank), (1, 1.0, Rank::Unranked));
    assert_eq!(ranking.ranked().len(), 1);
}

#[test]
fn lower_perplexity_wins_and_the_difference_is_positive() {
    let records = [
        TestCell::new("text", "rope", 0).text(1.4, 1.55).record(),
        TestCell::new("text", "cope", 0).text(1.4, 1.5).record(),
    ];
    let ranking = ranking(&records, Region::Both, Metric::Perplexity);
    assert_eq!(ranking.ranked()[0].encoding, "cope");
    let Rank::Behind(Some(c)) = ranking.results[1].rank else { panic!("rope is behind") };
    assert!((c.paired.mean_difference - 0.05).abs() < 1e-12 && !c.separable);
    assert!(ranking.results[1].is_level());
    assert_eq!(ranking.metric.show(ranking.results[0].mean()), "4.48");
}

#[test]
fn equal_exact_matches_hand_over_to_token_accuracy_only_when_it_tells_more() {
    let cell = |encoding, tokens| {
        TestCell::new("w", encoding, 0).exact(0.0).token_accuracy(tokens).record()
    };
    let told = [cell("rope", 0.8), cell("cope", 0.9)];
    let by_token = ranking(&told, Region::Both, Metric::ExactMatch);
    assert_eq!((by_token.metric, by_token.fallback), (Metric::TokenAccuracy, Some(0.0)));
    assert_eq!(by_token.ranked()[0].encoding, "cope");
    let untold = [cell("rope", 0.8), cell("cope", 0.8)];
    let same = ranking(&untold, Region::Both, Metric::ExactMatch);
    assert_eq!((same.metric, same.common_value()), (Metric::ExactMatch, Some(0.0)));
}

#[test]
fn a_value_that_is_not_finite_is_not_ranked() {
    let mut bad = TestCell::new("w", "cope", 0).record();
    bad.evals[1].exact_match = f64::NAN;
    let good = TestCell::new("w", "rope", 0).beyond(0.1).record();
    let ranking = ranking(&[bad, good], Region::Both, Metric::ExactMatch);
    assert_eq!(ranking.results[0].rank, Rank::Unranked);
    assert_eq!(ranking.results[1].rank, Rank::Best);
}

#[test]
fn all_pairs_are_one_family_and_ranks_are_shared() {
    let mut records = Vec::new();
    for (encoding, values) in [
        ("cope", [0.97, 0.98, 0.99, 0.98]),
        ("rope", [0.96, 0.99, 0.95, 0.98]),
        ("nope", [0.10, 0.12, 0.11, 0.12]),
    ] {
        for (seed, value) in (0..).zip(values) {
            records.push(TestCell::new("w", encoding, seed).beyond(value).record());
        }
    }
    let found = ranking(&records, Region::Both, Metric::ExactMatch);
    let pairs: Vec<_> = found
        .pairs
        .iter()
        .map(|p| (&*p.better, &*p.worse, p.comparison.family, p.comparison.separable))
        .collect();
    assert_eq!(
        pairs,
        [("cope", "rope", 3, false), ("cope", "nope", 3, true), ("rope", "nope", 3, true)]
    );
    let groups: Vec<_> = found.results.iter().map(|s| (&*s.encoding, s.group.unwrap())).collect();
    assert_eq!(groups, [("cope", 1), ("nope", 2), ("rope", 1)]);
    assert_eq!((found.seeds_needed, found.separates()), (None, true));
    // Three seeds cannot carry three pairs, however far apart: no ranks, and the number that could.
    records.retain(|r| r.seed < 3);
    let few = ranking(&records, Region::Both, Metric::ExactMatch);
    assert!(few.results.iter().all(|s| s.group.is_none()) && !few.separates());
    assert_eq!(few.seeds_needed, Some(4));
}

#[test]
fn nothing_at_or_below_chance_is_better_than_anything() {
    let mut records = Vec::new();
    for seed in 0..4_u64 {
        let noise = 0.001 * seed as f64;
        for (encoding, value) in [("cope", 0.3 + noise), ("rope", 0.1)] {
            // The task states no chance, the evaluation does.
            let cell = TestCell::new("w", encoding, seed).beyond(value);
            let known = |r: &mut RunRecord| {
                r.task.chance = None;
                r.evals[1].chance = Some(0.4);
            };
            records.push(cell.change(known).record());
        }
    }
    let below = ranking(&records, Region::Longer, Metric::ExactMatch);
    assert_eq!((below.chance, below.results[0].above_chance), (Some(0.4), Some(false)));
    assert!(!below.separates() && !below.pairs[0].comparison.separable);
    for record in &mut records {
        record.evals[1].chance = Some(0.2);
    }
    let above = ranking(&records, Region::Longer, Metric::ExactMatch);
    assert_eq!(above.results[0].above_chance, Some(true));
    assert!(above.separates());
}

#[test]
fn answers_to_questions_widen_intervals_and_can_undo_a_verdict() {
    use records::{Answers, Outcomes};
    let cell = |encoding: &str, seed, wrong: usize| {
        let right: Vec<bool> = (0..400).map(|question| question >= wrong).collect();
        let share = (400 - wrong) as f64 / 400.0;
        let outcomes = Outcomes { questions: "q".into(), answers: Answers::ExactMatch(right) };
        let cell = TestCell::new("w", encoding, seed).beyond(share);
        cell.change(|r| r.evals[1].outcomes = Some(outcomes)).record()
    };
    // Two questions of 400 are wrong, the same in every one of eight seeds.
    let mut records: Vec<RunRecord> =
        (0..8).flat_map(|seed| [cell("rope", seed, 2), cell("cope", seed, 0)]).collect();
    let known = ranking(&records, Region::Both, Metric::ExactMatch);
    let (low, high) = known.results[1].estimate.unwrap().ci95.unwrap();
    assert!(0.987 < low && low < 0.989 && high > 1.0, "{low} {high}");
    assert!(!known.separates(), "{:?}", known.pairs);
    for record in &mut records {
        record.evals[1].outcomes = None;
    }
    let unknown = ranking(&records, Region::Both, Metric::ExactMatch);
    assert_eq!(unknown.results[1].estimate.unwrap().ci95, Some((0.995, 0.995)));
    assert!(unknown.separates(), "as before");
}

#[test]
fn one_encoding_with_too_few_seeds_has_no_rank_and_hides_no_difference() {
    let mut records = vec![TestCell::new("w", "alibi", 0).beyond(0.983).record()];
    for seed in 0..5_u64 {
        let noise = 0.001 * seed as f64;
        for (encoding, value) in [("rope", 0.97), ("nope", 0.72)] {
            records.push(TestCell::new("w", encoding, seed).beyond(value + noise).record());
        }
    }
    let found = ranking(&records, Region::Both, Metric::ExactMatch);
    let [alibi, rest @ ..] = &*found.results else { panic!("no results") };
    assert_eq!((alibi.rank, alibi.group), (Rank::TooFewSeeds, None));
    assert!((found.complete().len(), found.pairs.len()) == (3, 3) && found.separates());
    let names: Vec<_> = found.ranked().iter().map(|s| (&*s.encoding, s.group)).collect();
    assert_eq!(names, [("rope", Some(1)), ("nope", Some(2))]);
    let without = ranking(&records[1..], Region::Both, Metric::ExactMatch);
    assert_eq!(rest, without.results);
    // If no pair can be tested, nothing is ranked.
    records.retain(|r| r.seed < 2);
    let few = ranking(&records, Region::Both, Metric::ExactMatch);
    assert!(few.results.iter().all(|s| s.group.is_none() && s.rank != Rank::TooFewSeeds));
    assert_eq!((few.results[0].rank, few.seeds_needed), (Rank::Best, Some(4)));
}

#[test]
fn encodings_that_would_share_one_rank_have_none_and_may_be_separable() {
    let mut records = Vec::new();
    for (encoding, values) in [
        // Not separable from either of the others, which differ in every seed.
        ("alibi", [1.0, 0.6, 1.0, 0.6, 1.0, 0.6, 1.0, 0.6, 1.0]),
        ("cope", [0.75, 0.76, 0.75, 0.77, 0.76, 0.75, 0.77, 0.76, 0.75]),
        ("rope", [0.70, 0.71, 0.71, 0.72, 0.70, 0.71, 0.72, 0.70, 0.71]),
    ] {
        for (seed, value) in (0..).zip(values) {
            records.push(TestCell::new("w", encoding, seed).beyond(value).record());
        }
    }
    let found = ranking(&records, Region::Both, Metric::ExactMatch);
    assert!(found.results.iter().all(|s| s.group.is_none()), "{:?}", found.results);
    assert!(found.separates() && !found.has_several_ranks());
}

#[test]
fn an_encoding_far_behind_has_no_rank_though_the_seeds_do_not_separate_it() {
    let mut records = Vec::new();
    for seed in 0..8_u64 {
        let noise = 0.001 * seed as f64;
        // ALiBi solves three seeds of eight, CoPE seven.
        let alibi = if seed < 3 { 1.0 } else { 0.6 };
        let cope = if seed < 7 { 1.0 } else { 0.6 };
        for (encoding, value) in [("alibi", alibi), ("cope", cope), ("rope", 0.99), ("nope", 0.7)] {
            records.push(TestCell::new("w", encoding, seed).beyond(value - noise).record());
        }
    }
    let found = ranking(&records, Region::Both, Metric::ExactMatch);
    let groups: Vec<_> = found.results.iter().map(|s| (&*s.encoding, s.group)).collect();
    assert_eq!(groups, [("alibi", None), ("cope", Some(1)), ("nope", Some(2)), ("rope", Some(1))]);
    let alibi = found.pair("rope", "alibi").unwrap();
    assert!(!alibi.comparison.separable && alibi.comparison.paired.mean_difference > FAR);
}

#[test]
fn contrasts_with_a_control_are_a_family_of_their_own() {
    let mut records = Vec::new();
    for seed in 0..4_u64 {
        let noise = 0.001 * seed as f64;
        for (encoding, value) in
            [("alibi", 0.9), ("cope", 0.8), ("fox", 0.75), ("nope", 0.6), ("rope", 0.7)]
        {
            records.push(TestCell::new("w", encoding, seed).beyond(value + noise).record());
        }
    }
    let found = ranking(&records, Region::Both, Metric::ExactMatch);
    // Four seeds carry four comparisons, not ten.
    assert!(!found.separates() && found.pairs[0].comparison.family == 10);
    let contrasts = found.contrasts("rope");
    let told: Vec<_> = contrasts
        .iter()
        .map(|pair| {
            (&*pair.better, &*pair.worse, pair.comparison.family, pair.comparison.separable)
        })
        .collect();
    assert_eq!(
        told,
        [
            ("alibi", "rope", 4, true),
            ("cope", "rope", 4, true),
            ("fox", "rope", 4, true),
            ("rope", "nope", 4, true)
        ]
    );
}

fn cells(encoding: &str, values: &[f64]) -> Vec<RunRecord> {
    let cell =
        |(seed, value): (u64, &f64)| TestCell::new("w", encoding, seed).beyond(*value).record();
    (0..).zip(values).map(cell).collect()
}

/// Returns the gains of an encoding over a control.
fn gains(ranking: &Ranking, control: &str, encoding: &str) -> Comparison {
    let pairs = ranking.contrasts(control);
    let own = |pair: &&RankedPair| pair.better == encoding || pair.worse == encoding;
    pairs.iter().find(own).unwrap().gains(encoding)
}

#[test]
fn each_encoding_is_compared_with_the_control_and_not_with_the_best() {
    let records = [
        cells("cope", &[0.80, 0.82, 0.84, 0.82]),
        cells("cope(gates=none)", &[0.40, 0.43, 0.44, 0.42]),
        cells("cope(wide)", &[0.81, 0.80, 0.86, 0.82]),
        cells("rope", &[0.95, 0.96, 0.98, 0.97]),
    ]
    .concat();
    let ranking = ranking(&records, Region::Both, Metric::ExactMatch);
    let gains = |encoding: &str| gains(&ranking, "cope", encoding);
    let better = ["cope(gates=none)", "cope(wide)", "rope"].map(|name| gains(name).better());
    assert_eq!(better, [Better::B, Better::NotSeparable, Better::A]);
    let worse = gains("cope(gates=none)");
    assert_eq!(worse.family, 3, "three comparisons, not six pairs");
    assert!((worse.paired.mean_difference + 0.3975).abs() < 1e-6);
    assert_eq!(ranking.contrasts("alibi"), []);
}

#[test]
fn less_perplexity_than_the_control_is_a_gain() {
    let cell = |encoding, seed, nll| TestCell::new("t", encoding, seed).text(1.4, nll).record();
    let records: Vec<RunRecord> = (0..3)
        .flat_map(|seed| {
            let noise = 0.01 * seed as f64;
            [cell("cope", seed, 1.5 + noise), cell("rope", seed, 1.7 + 2.0 * noise)]
        })
        .collect();
    let ranking = ranking(&records, Region::Both, Metric::Perplexity);
    assert_eq!(gains(&ranking, "rope", "cope").better(), Better::A);
    assert_eq!(gains(&ranking, "cope", "rope").better(), Better::B);
}

#[test]
fn comparisons_with_a_control_have_the_error_of_the_questions() {
    let answered = |encoding, seed, right: u64| {
        let answers: Vec<bool> = (0..20).map(|question| question < right).collect();
        let answers = records::Answers::ExactMatch(answers);
        let outcomes = records::Outcomes { questions: "q".into(), answers };
        TestCell::new("w", encoding, seed)
            .exact(right as f64 / 20.0)
            .change(|r| r.evals.iter_mut().for_each(|e| e.outcomes = Some(outcomes.clone())))
            .record()
    };
    let records: Vec<RunRecord> =
        (0..5).flat_map(|seed| [answered("a", seed, 14), answered("b", seed, 12)]).collect();
    let ranking = ranking(&records, Region::Both, Metric::ExactMatch);
    let comparison = gains(&ranking, "a", "b");
    assert!((comparison.paired.mean_difference + 0.1).abs() < 1e-9);
    assert!(comparison.paired.question_error.is_some());
    // Five equal seeds, but two of twenty questions.
    assert_eq!(comparison.better(), Better::NotSeparable);
}
