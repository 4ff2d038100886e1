use super::*;
use crate::frame::Frames;
use crate::record::RunRecord;
use crate::testkit::{TestCell, counted, suite};

fn ranking(records: &[RunRecord], region: Region, metric: Metric) -> Ranking {
    let frames = Frames::of(records).unwrap();
    Ranking::new(&counted(&frames), &BTreeMap::new(), region, metric).unwrap()
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
    let ranking = ranking(&records, Region::Beyond, Metric::ExactMatch);
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
    let beyond = ranking(&records, Region::Beyond, Metric::ExactMatch);
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
    let ranking = ranking(&[complete, short], Region::Beyond, Metric::ExactMatch);
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
    let ranking = ranking(&records, Region::Beyond, Metric::Perplexity);
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
    let by_token = ranking(&told, Region::Beyond, Metric::ExactMatch);
    assert_eq!((by_token.metric, by_token.fallback), (Metric::TokenAccuracy, Some(0.0)));
    assert_eq!(by_token.ranked()[0].encoding, "cope");
    let untold = [cell("rope", 0.8), cell("cope", 0.8)];
    let same = ranking(&untold, Region::Beyond, Metric::ExactMatch);
    assert_eq!((same.metric, same.common_value()), (Metric::ExactMatch, Some(0.0)));
}

#[test]
fn a_value_that_is_not_finite_is_not_ranked() {
    let mut bad = TestCell::new("w", "cope", 0).record();
    bad.evals[1].exact_match = f64::NAN;
    let good = TestCell::new("w", "rope", 0).beyond(0.1).record();
    let ranking = ranking(&[bad, good], Region::Beyond, Metric::ExactMatch);
    assert_eq!(ranking.results[0].rank, Rank::Unranked);
    assert_eq!(ranking.results[1].rank, Rank::Best);
}

#[test]
fn all_pairs_are_one_family_and_ranks_are_shared() {
    let mut records = Vec::new();
    for (encoding, values) in
        [("cope", [0.97, 0.98, 0.99]), ("rope", [0.96, 0.99, 0.95]), ("nope", [0.10, 0.12, 0.11])]
    {
        for (seed, value) in (0..).zip(values) {
            records.push(TestCell::new("w", encoding, seed).beyond(value).record());
        }
    }
    let ranking = ranking(&records, Region::Beyond, Metric::ExactMatch);
    let pairs: Vec<_> = ranking
        .pairs
        .iter()
        .map(|p| (&*p.better, &*p.worse, p.comparison.family, p.comparison.separable))
        .collect();
    assert_eq!(
        pairs,
        [("cope", "rope", 3, false), ("cope", "nope", 3, true), ("rope", "nope", 3, true)]
    );
    let groups: Vec<_> = ranking.results.iter().map(|s| (&*s.encoding, s.group.unwrap())).collect();
    assert_eq!(groups, [("cope", 1), ("nope", 2), ("rope", 1)]);
    assert_eq!(ranking.seed_spread(), SeedSpread::Unimodal);
}

#[test]
fn seeds_half_of_the_scale_apart_are_noticed_above_chance() {
    // Chance is 50 % for these cells: half of the scale is 25 points.
    let cells = |values: [f64; 3]| -> Vec<RunRecord> {
        (0..)
            .zip(values)
            .map(|(seed, v)| TestCell::new("w", "rope", seed).beyond(v).record())
            .collect()
    };
    let jumps = ranking(&cells([0.5, 1.0, 1.0]), Region::Beyond, Metric::ExactMatch);
    assert_eq!((jumps.bimodal_seeds.len(), jumps.seed_spread()), (1, SeedSpread::Bimodal));
    let even = ranking(&cells([0.8, 1.0, 1.0]), Region::Beyond, Metric::ExactMatch);
    assert_eq!(even.seed_spread(), SeedSpread::Unimodal);
}
