use super::*;
use analysis::ReportMeta;
use records::RunRecord;
use records::testkit::TestCell;

fn records() -> Vec<RunRecord> {
    let mut records = Vec::new();
    for workload in ["a", "b"] {
        for seed in 0..8_u64 {
            let noise = 0.01 * seed as f64;
            for (encoding, value) in [("cope", 0.9 + noise), ("rope", 0.75 - noise)] {
                records.push(TestCell::new(workload, encoding, seed).beyond(value).record());
            }
        }
    }
    records
}

#[test]
fn four_sentences_hold_the_numbers_that_they_state() {
    let report = Report::new(records(), &ReportMeta::default()).unwrap();
    let sentences = abstract_of(&report);
    let texts: Vec<&str> = sentences.iter().map(|sentence| &*sentence.text).collect();
    assert_eq!(sentences.len(), 4, "{texts:?}");
    assert!(
        texts[0].starts_with(
            "CoPE scores highest outside the training distribution: 87.0% [83.0, 91.0]"
        ),
        "{}",
        texts[0]
    );
    assert!(texts[0].contains(" over 8 seeds on 2 workloads; 2 encodings are"), "{}", texts[0]);
    assert!(
        texts[1].starts_with("CoPE and RoPE differ significantly on 2 of 2 workloads"),
        "{}",
        texts[1]
    );
    // Inside everything is right; outside 93.5% and 71.5% on average.
    assert!(
        texts[2].contains("costs CoPE 6.5 points [")
            && texts[2].contains("costs RoPE 28.5 points [")
    );
    assert!(texts[3].contains("1.00 times") && texts[3].contains("2.00 times"), "{}", texts[3]);
    // No training stopped early.
    assert!(!texts[3].contains("A whole run"), "{}", texts[3]);
    let numbers = sentences.iter().flat_map(|sentence| &sentence.numbers);
    assert!(numbers.clone().all(|number| number.interval.is_some()));
    assert_eq!(numbers.count(), 7);
}

#[test]
fn a_change_is_at_most_all_of_exact_match() {
    let mut records = records();
    records.retain(|record| record.seed < 2);
    for record in &mut records {
        record.evals[1].exact_match = record.seed as f64;
    }
    let sentences = abstract_of(&Report::new(records, &ReportMeta::default()).unwrap());
    let numbers = sentences.iter().flat_map(|sentence| &sentence.numbers);
    let changes: Vec<_> = numbers.filter(|n| n.name.starts_with("change")).collect();
    // The t interval of 0 and -1 has a half width of 6.35.
    assert_eq!(changes.len(), 2, "{sentences:?}");
    assert!(changes.iter().all(|change| change.interval == Some((-1.0, 1.0))), "{changes:?}");
}

#[test]
fn changes_are_over_the_workloads_of_both_encodings() {
    let mut records = records();
    for seed in 0..8 {
        // A third workload, which only one encoding finished: the long evaluation of the other is missing.
        let cope = TestCell::new("c", "cope", seed).eval("sparse", false, 256, 0.1);
        let rope = TestCell::new("c", "rope", seed).eval("sparse", false, 256, 0.1);
        let nope = TestCell::new("c", "nope", seed).eval("sparse", false, 256, 0.1);
        records.extend([cope.record(), nope.record(), rope.limited_to(128).record()]);
    }
    let report = Report::new(records, &ReportMeta::default()).unwrap();
    let text = change(&report, "cope", "rope").unwrap().text;
    assert!(
        text.contains("costs CoPE 6.5 points") && text.contains("costs RoPE 28.5 points"),
        "{text}"
    );
    assert!(text.contains(". Both numbers are means over 2 workloads of the difference"), "{text}");
}

#[test]
fn a_count_of_workloads_says_that_others_were_compared_by_another_metric() {
    let mut records = records();
    for seed in 0..8 {
        for (encoding, nll) in [("cope", 1.5), ("rope", 1.6)] {
            records.push(TestCell::new("text", encoding, seed).text(1.4, nll).record());
        }
    }
    let sentences = abstract_of(&Report::new(records, &ReportMeta::default()).unwrap());
    assert!(
        sentences[1].text.contains(" on 2 of 2 workloads compared by exact match. The"),
        "{}",
        sentences[1].text
    );
}

#[test]
fn a_difference_that_is_not_significant_is_better_for_neither() {
    let mut records = records();
    for record in records.iter_mut().filter(|r| r.encoding.name == "cope") {
        record.evals[1].exact_match = if record.seed < 4 { 0.99 } else { 0.6 };
    }
    let report = Report::new(records, &ReportMeta::default()).unwrap();
    let text = largest(&report, "cope", "rope").unwrap().text;
    assert!(text.contains("on 0 of 2 workloads. The largest difference"), "{text}");
    assert!(text.contains(": the mean of CoPE minus that of RoPE is 8.0 points ["), "{text}");
    assert!(text.contains("], which is not significant (p = "), "{text}");
}

#[test]
fn the_planned_question_is_answered_on_each_of_its_workloads() {
    let answered = |tasks: &str| {
        let text = format!("encodings = ['rope', 'cope']\ntasks = {tasks}");
        let question = Some(toml::from_str(&text).unwrap());
        let settings = records::settings::Settings { question, ..Default::default() };
        let mut records = records();
        for record in records.iter_mut().filter(|r| r.workload == "b") {
            record.evals[1].exact_match = 0.8 + 0.01 * record.seed as f64;
        }
        let frames = analysis::frame::Frames::of(&records).unwrap();
        let report = Report::with(frames, &ReportMeta::default(), &settings).unwrap();
        abstract_of(&report).remove(1).text
    };
    let both = answered("['a', 'b']");
    assert!(
        both.starts_with(
            "The planned question compares RoPE with CoPE on 2 workloads. CoPE is better than RoPE by 22.0 points ["
        ),
        "{both}"
    );
    assert!(
        both.contains(
            "on `a`. After Holm's correction, the two encodings are not separable on `b` ("
        ),
        "{both}"
    );
    let missing = answered("['a', 'c']");
    assert!(
        missing.contains(" on 2 workloads, with results by exact match on 1 of them. CoPE"),
        "{missing}"
    );
}

#[test]
fn the_first_sentence_counts_the_workloads_of_the_aggregate() {
    let mut records = records();
    for seed in 0..8 {
        records.push(TestCell::new("c", "cope", seed).record());
        for (encoding, nll) in [("cope", 1.5), ("rope", 1.6)] {
            records.push(TestCell::new("text", encoding, seed).text(1.4, nll).record());
        }
    }
    let first = |records: &[RunRecord]| {
        let report = Report::new(records, &ReportMeta::default()).unwrap();
        abstract_of(&report).remove(0).text
    };
    let text = first(&records);
    assert!(text.contains(" on the 2 of 3 workloads that are ranked by exact match; "), "{text}");
    assert!(text.contains("scores highest outside the training distribution: "), "{text}");
    for record in records.iter_mut().filter(|r| r.workload == "a") {
        record.evals.remove(0);
        record.evals[0].in_distribution = true;
        record.evals[0].len = 64;
    }
    let text = first(&records);
    assert!(!text.contains("outside"), "{text}");
}

#[test]
fn disturbed_times_are_not_stated_and_one_workload_has_no_abstract() {
    let mut records = records();
    for record in &mut records {
        record.host.jobs = 2;
    }
    let report = Report::new(&records, &ReportMeta::default()).unwrap();
    let last = abstract_of(&report).pop().unwrap();
    assert!(
        last.text.contains("no workload has undisturbed times of both encodings")
            && last.numbers.len() == 1
    );
    records.retain(|record| record.workload == "a");
    assert_eq!(abstract_of(&Report::new(&records, &ReportMeta::default()).unwrap()), []);
}
