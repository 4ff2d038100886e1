use std::collections::BTreeSet;

use crate::document::plot::Plot;
use crate::document::{Figure, Section, report};
use analysis::{Report, ReportMeta};
use records::testkit::{TestCell, suite};

/// All figures of a report that have a file.
fn figures(of: &Report) -> Vec<Figure> {
    report(of, Section::default()).unwrap().figures().into_iter().cloned().collect()
}

fn example() -> (Report, Vec<Figure>) {
    let report = Report::new(suite(), &ReportMeta::default()).unwrap();
    let figures = figures(&report);
    (report, figures)
}

#[test]
fn splits_with_lengths_have_lines_and_the_others_share_dots() {
    let (_, figures) = example();
    let titles: Vec<_> =
        figures.into_iter().filter(|f| !f.title.contains(" against ")).map(|f| f.title).collect();
    assert_eq!(
        titles,
        [
            "flip-flop: exact match, split sparse",
            "flip-flop: exact match, splits of one length",
            "flip-flop: single seeds",
            "flip-flop: token accuracy, split sparse",
            "flip-flop: token accuracy, splits of one length",
            "flip-flop: training loss",
            "text: perplexity",
            "text: training loss",
        ]
    );
}

#[test]
fn each_validated_split_has_a_curve_over_the_seeds() {
    let at = |step: u64, exact_match: f64| records::Validation {
        step,
        exact_match,
        token_accuracy: 1.0,
        nll: 0.0,
        samples: 4,
        seconds: 0.0,
    };
    let cell = |seed: u64| {
        TestCell::new("flip-flop", "rope", seed)
            .change(|r| {
                r.train.validations = vec![at(5, 0.5), at(10, 1.0)];
                let of =
                    |split: &str, result| records::SplitValidation { split: split.into(), result };
                r.train.split_validations = vec![
                    of("sparse", at(5, 0.2)),
                    of("dense", at(5, 0.3)),
                    of("sparse", at(10, 0.4)),
                ];
            })
            .record()
    };
    let report = Report::new([cell(0), cell(1)], &ReportMeta::default()).unwrap();
    let figures = figures(&report);
    let titles: Vec<&str> = figures
        .iter()
        .map(|f| f.title.as_str())
        .filter(|title| title.contains("validation"))
        .collect();
    let expected = ["validation", "validation on sparse", "validation on dense"];
    assert_eq!(titles, expected.map(|title| format!("flip-flop: {title}")));
    let sparse = figures.iter().find(|f| f.title.ends_with("on sparse")).unwrap();
    let Plot::Lines(lines) = &sparse.plot else { panic!("{sparse:?}") };
    let points: Vec<(f64, f64)> = lines.series[0].points.iter().map(|p| (p.x, p.y)).collect();
    assert_eq!(points, [(5.0, 0.2), (10.0, 0.4)]);
    assert!(lines.level.is_none(), "the chance level is that of the training distribution");
}

#[test]
fn figures_of_like_names_do_not_share_a_file() {
    let records = ["a b", "a-b"].map(|name| TestCell::new(name, "rope", 0).record());
    let report = Report::new(&records, &ReportMeta::default()).unwrap();
    let figures = figures(&report);
    let paths: BTreeSet<_> = figures.iter().filter_map(Figure::path).collect();
    assert_eq!(paths.len(), figures.len());
    assert!(paths.contains("figures/a-b-exact-match-2.svg"), "{paths:?}");
}

#[test]
fn a_name_without_letters_still_has_a_file() {
    let report =
        Report::new(&[TestCell::new("名", "rope", 0).record()], &ReportMeta::default()).unwrap();
    assert!(
        figures(&report)
            .iter()
            .all(|f| f.file.as_ref().is_some_and(|file| !file.is_empty() && file.is_ascii()))
    );
}

fn sliced(name: &str, encoding: &str, values: Vec<u32>) -> records::RunRecord {
    let n = values.len();
    let slices = records::Slices {
        name: name.into(),
        unit: records::SliceUnit::Samples,
        values,
        counts: vec![3; n],
        accuracy: vec![0.5; n],
        nll: vec![1.0; n],
    };
    let put = |r: &mut records::RunRecord| {
        for eval in &mut r.evals {
            eval.slices = vec![slices.clone()];
        }
    };
    let cell = TestCell::new("w", encoding, 0).eval("in-distribution", false, 128, 0.5);
    cell.eval("in-distribution", false, 256, 0.5).change(put).record()
}

/// Figures of a report with a word in their titles.
fn of(records: &[records::RunRecord], word: &str) -> Vec<Figure> {
    let report = Report::new(records, &ReportMeta::default()).unwrap();
    figures(&report).into_iter().filter(|f| f.title.contains(word)).collect()
}

/// Curves by a property of samples.
fn curves(records: &[records::RunRecord]) -> Vec<Figure> {
    let mut figures = of(records, " by ");
    figures.retain(|figure| matches!(figure.plot, Plot::Lines(_)));
    figures
}

fn maps(records: &[records::RunRecord]) -> Vec<Figure> {
    let mut figures = of(records, " by ");
    figures.retain(|figure| matches!(figure.plot, Plot::Heat(_)));
    figures
}

#[test]
fn slices_have_a_curve_where_training_was_and_where_it_was_not_and_a_map_over_lengths() {
    let records = [sliced("depth", "rope", (0..10).collect()), sliced("depth", "cope", vec![0, 1])];
    let titles: Vec<_> = curves(&records).into_iter().map(|f| f.title).collect();
    assert_eq!(
        titles,
        [
            "w: exact match by depth on in-distribution at 64",
            "w: exact match by depth on in-distribution at 256",
            "w: exact match by depth on sparse at 128",
        ]
    );
    let maps = maps(&records);
    let [Figure { plot: Plot::Heat(heat), .. }] = &maps[..] else { panic!("{maps:?}") };
    assert_eq!((&heat.columns[..], heat.rows.len(), heat.maps.len()), (&[64, 128, 256][..], 10, 2));
    let cope = heat.maps.iter().find(|m| m.label == "CoPE").unwrap();
    assert_eq!((cope.values[1][0], cope.values[2][0]), (Some(0.5), None));
}

#[test]
fn operands_of_up_to_80_digits_have_a_map() {
    // One map for each split.
    for (digits, count) in [(80, 2), (81, 0)] {
        let row = |row: u32| (1..=digits).map(move |column| row * 1000 + column);
        let record = sliced("first x second", "rope", (1..=digits).flat_map(row).collect());
        assert_eq!(maps(&[record]).len(), count, "{digits} digits");
    }
}

#[test]
fn numbers_that_are_names_have_no_curve() {
    assert!(curves(&[sliced("document", "rope", vec![0, 1, 2])]).is_empty());
}

#[test]
fn two_properties_told_together_are_a_map_of_their_own() {
    let values = vec![1001, 1002, 2001, 2002];
    let records = [sliced("digits-a x digits-b", "rope", values)];
    assert!(curves(&records).is_empty());
    let maps = maps(&records);
    let Some(Figure { plot: Plot::Heat(heat), .. }) = maps.first() else { panic!("{maps:?}") };
    assert_eq!((&*heat.y_label, &*heat.x_label), ("digits-a", "digits-b"));
    assert_eq!((&heat.rows[..], &heat.columns[..]), (&[1, 2][..], &[1, 2][..]));
}

#[test]
fn workloads_that_differ_in_training_samples_alone_are_one_figure() {
    let cell = |samples: u64, other: u64| {
        let config = serde_json::json!({
            "encoding": "rope", "seed": 0, "task": {"train_samples": samples, "other": other}
        });
        TestCell::new(&format!("w{samples}-{other}"), "rope", 0)
            .change(|r| r.config = config)
            .record()
    };
    let mut records = [cell(100, 0), cell(1000, 0), cell(1000, 7)];
    for record in &mut records {
        record.task.id = "w".into();
    }
    let found = of(&records, " by training samples");
    assert_eq!(found.len(), 2, "in distribution and beyond");
    let Plot::Lines(lines) = &found[0].plot else { panic!() };
    let sizes: Vec<f64> = lines.series[0].points.iter().map(|p| p.x).collect();
    assert_eq!(sizes, [100.0, 1000.0]);
}

#[test]
fn a_price_is_the_median_over_the_workloads_that_have_it() {
    let mut records = records::testkit::two_workloads();
    for seed in 0..8 {
        let text = |encoding: &str| TestCell::new("text", encoding, seed).text(1.4, 1.5).record();
        records.extend(["cope", "rope"].map(text));
    }
    let caption = of(&records, "All tasks: score against FLOPs").remove(0).caption;
    // The score is over the two workloads with exact match.
    let expected = "against FLOPs of a training step relative to RoPE: the median over 3 workloads";
    assert!(caption.contains(expected), "{caption}");
}

#[test]
fn costs_are_traded_only_where_there_are_several_encodings() {
    let report = Report::new(suite(), &ReportMeta::default()).unwrap();
    let costs = |workload: &str| {
        let of = |f: &&Figure| f.title.starts_with(workload) && f.title.contains(" against ");
        figures(&report).iter().filter(of).count()
    };
    assert_eq!((costs("flip-flop"), costs("text")), (3, 3));
    assert!(of(&[TestCell::new("w", "rope", 0).record()], " against ").is_empty());
}

/// Two workloads, on the second of which RoPE does not learn the task.
fn half_learned() -> Vec<records::RunRecord> {
    let mut records = records::testkit::two_workloads();
    for record in &mut records {
        if record.workload == "w" && record.encoding.name == "rope" {
            record.evals[0].exact_match = 0.5;
        }
    }
    records
}

#[test]
fn the_heat_map_has_every_workload_and_hatches_what_is_not_learned() {
    let found = of(&half_learned(), "by encoding and workload");
    let [Figure { plot: Plot::Matrix(matrix), .. }] = &found[..] else { panic!("{found:?}") };
    assert_eq!(matrix.columns, ["v", "w"]);
    let row = |label: &str| matrix.rows.iter().find(|row| row.label == label).unwrap();
    let hatched =
        |label: &str| row(label).cells.iter().flatten().map(|c| c.is_hatched).collect::<Vec<_>>();
    assert_eq!((hatched("CoPE"), hatched("RoPE")), (vec![false, false], vec![false, true]));
    assert!((row("CoPE").cells[0].unwrap().share - 0.935).abs() < 1e-9);
    assert_eq!(matrix.rows.last().unwrap().label, "chance");
}

#[test]
fn learning_a_task_and_holding_beyond_it_are_one_figure() {
    let found = of(&half_learned(), "in and outside");
    let [Figure { plot: Plot::Scatter(scatter), .. }] = &found[..] else { panic!("{found:?}") };
    let rope = scatter.series.iter().find(|series| series.label == "RoPE").unwrap();
    let point = &rope.points[0];
    assert!((point.x - 0.75).abs() < 1e-9 && (point.y - 0.785).abs() < 1e-9, "{point:?}");
}

#[test]
fn lengths_are_small_charts_of_the_workloads_that_have_several() {
    let records: Vec<_> = ["v", "w", "one length"]
        .iter()
        .flat_map(|name| ["cope", "rope"].map(|encoding| (name, encoding)))
        .map(|(name, encoding)| {
            let cell = TestCell::new(name, encoding, 0);
            let cell = if *name == "v" || *name == "w" {
                cell.eval("in-distribution", false, 128, 0.5)
            } else {
                cell
            };
            cell.record()
        })
        .collect();
    let found = of(&records, "exact match by length");
    let [Figure { plot: Plot::Panels(panels), .. }] = &found[..] else { panic!("{found:?}") };
    let names: Vec<&str> = panels.iter().map(|(name, _)| &**name).collect();
    assert_eq!(names, ["v", "w"]);
    let at: Vec<(f64, f64)> = panels[0].1.series[0].points.iter().map(|p| (p.x, p.y)).collect();
    assert_eq!(at, [(1.0, 1.0), (2.0, 0.5)]);
}

#[test]
fn every_seed_is_a_dot() {
    let found = of(&records::testkit::two_workloads(), "v: single seeds");
    let [Figure { plot: Plot::Dots(dots), .. }] = &found[..] else { panic!("{found:?}") };
    let points: Vec<usize> = dots.groups[0].1.iter().map(|series| series.points.len()).collect();
    assert_eq!(points, [8, 8]);
    assert!(of(&[TestCell::new("w", "rope", 0).record()], "single seeds").is_empty());
}

#[test]
fn claims_are_a_forest_on_the_side_of_the_better_one() {
    let claim = |pair: &str| {
        let comparisons = format!("[{{ encodings = {pair}, tasks = ['v'] }}]");
        let text =
            format!("text = 'It counts'\nsource = 's'\nrecipe = 'r'\ncomparisons = {comparisons}");
        toml::from_str::<records::settings::PaperClaim>(&text).unwrap()
    };
    let claims = vec![claim("['cope', 'rope']"), claim("['rope', 'cope']")];
    let settings = records::settings::Settings { claims, ..Default::default() };
    let frames = analysis::frame::Frames::of(&records::testkit::two_workloads()).unwrap();
    let report = Report::with(frames, &ReportMeta::default(), &settings).unwrap();
    let found: Vec<Figure> =
        figures(&report).into_iter().filter(|f| f.title.starts_with("Claims")).collect();
    let [Figure { plot: Plot::Dots(dots), .. }] = &found[..] else { panic!("{found:?}") };
    let values: Vec<(&str, f64)> = dots
        .groups
        .iter()
        .map(|(_, series)| (&*series[0].label, series[0].points[0].y.round()))
        .collect();
    assert_eq!(values, [("v", 20.0), ("v", -20.0)]);
    // CoPE is significantly better in both.
    let cope = report.encoding("cope").unwrap().look;
    assert!(dots.groups.iter().all(|(_, series)| series[0].look == cope));
}
