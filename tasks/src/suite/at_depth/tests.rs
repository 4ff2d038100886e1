//! Tests of a task at a depth, with every generated task in the frames.

use std::collections::BTreeSet;

use rand::SeedableRng;

use super::*;
use crate::Generator as _;
use crate::suite::conformance::examples;
use crate::suite::flip_flop::FlipFlopConfig;
use crate::suite::mrcr::MrcrConfig;
use crate::suite::needle::NeedleConfig;
use crate::testing::Example;

/// Golden output of `checks::golden`: generator version and hash.
const GOLDEN: &str = "v1 11829edf809c894e2374826a0a40d21e98858d1770a1c847c32053bdc95e32b2";

fn holding(task: impl Into<TaskConfig>, task_len: usize) -> AtDepthConfig {
    AtDepthConfig { task: task.into(), task_len, ..AtDepthConfig::default() }
}

pub(crate) fn example() -> Example {
    let many = AtDepthConfig { distractors: 5, ..holding(CopyConfig::default(), 6) };
    let chance = AtDepthConfig { filler: Filler::Sentences, ..holding(CopyConfig::new(3, 1), 3) };
    Example::synthetic(AtDepthConfig::default(), 34, oracle, GOLDEN)
        .with_oracle_config(many.into(), 150)
        .with_chance_config(chance.into(), 24)
}

/// The task's own sample in texts: what stands in the frame that the question names, and what follows the question.
fn asked(prefix: &[String]) -> Vec<String> {
    let ask = prefix.iter().position(|text| text == "~?").unwrap();
    let label = &prefix[ask + 1];
    let mut frames = (0..ask).filter(|at| &prefix[*at] == label);
    let frame = &prefix[frames.next().unwrap() + 1..];
    assert_eq!(frames.count(), 0, "two frames are called {label}");
    let statement = frame.split(|text| text == "~;").next().unwrap();
    [statement, &prefix[ask + 2..]].concat()
}

/// Copies the string of the frame.
fn oracle(prefix: &[String]) -> Option<String> {
    let sample = asked(prefix);
    let bar = sample.iter().position(|text| text == "|")?;
    let string = &sample[1..bar];
    Some(string.get(sample.len() - bar - 1).cloned().unwrap_or_else(|| ".".to_owned()))
}

fn texts(task: &dyn Task, sample: &Sample) -> Vec<String> {
    sample.tokens.iter().map(|token| task.token_text(*token)).collect()
}

/// Each generated task answers from the frame and what follows the question, by its own oracle.
#[test]
fn every_generated_task_is_answered_from_its_frame_alone() {
    let mut wrapped = 0;
    for example in examples() {
        let (task, task_len) = example.oracle_config.clone();
        if task.meta().takes_path || task.meta().id == META.id {
            continue;
        }
        let id = task.meta().id;
        for solved in [false, true] {
            let config =
                AtDepthConfig { distractors: 3, solved, ..holding(task.clone(), task_len) };
            let built = config.build().unwrap();
            let len = built.own_tokens() + 30;
            let mut rng = ChaCha8Rng::seed_from_u64(7);
            let mut samples: Vec<Sample> =
                (0..10).map(|_| built.train_sample(len, &mut rng)).collect();
            for split in built.splits() {
                samples.extend(built.eval_set(split.name, len, 10, 7).unwrap());
            }
            for sample in samples {
                let texts = texts(&built, &sample);
                assert_eq!((texts.len(), &sample.slices[0].0), (len, &DEPTH), "{id}");
                for t in (0..len).filter(|t| sample.scored[*t]) {
                    let answer = (example.oracle)(&asked(&texts[..t]));
                    assert_eq!(answer.as_ref(), Some(&texts[t]), "{id}: {}", texts.join(" "));
                }
                let parts = AskedFrame::find(&sample.tokens).unwrap();
                let inner = parts.sample_of(&sample);
                let own = inner.tokens.iter().map(|token| built.task.token_text(*token));
                assert_eq!(own.collect::<Vec<_>>(), asked(&texts), "{id}");
                assert_eq!(built.counted(&sample).is_some(), built.task.counted(&inner).is_some());
            }
        }
        let inner = config_texts(&task);
        assert!(wrapper_texts().is_disjoint(&inner), "{id} has a text of the wrapper");
        wrapped += 1;
    }
    let generated = crate::ALL.iter().filter(|meta| !meta.takes_path && meta.id != META.id);
    assert_eq!(wrapped, generated.count());
}

fn config_texts(task: &TaskConfig) -> BTreeSet<String> {
    let task = task.build().unwrap();
    (0..task.vocab_size() as u32).map(|token| task.token_text(token)).collect()
}

fn wrapper_texts() -> BTreeSet<String> {
    let texts: BTreeSet<String> = (0..INNER).map(|token| token_text(&wrapper(), token)).collect();
    assert_eq!((texts.len(), vocab_size(&wrapper())), (INNER as usize, INNER as usize));
    texts
}

#[test]
fn other_frames_have_the_form_of_the_right_one_and_another_answer() {
    for solved in [false, true] {
        let config = AtDepthConfig { distractors: 4, solved, ..holding(CopyConfig::new(2, 2), 2) };
        let task = config.build().unwrap();
        for sample in task.eval_set("uniform", 80, 100, 1).unwrap() {
            let texts = texts(&task, &sample);
            let ask = texts.iter().position(|text| text == "~?").unwrap();
            let frames: Vec<&[String]> = (0..ask)
                .filter(|at| texts[*at].starts_with('#'))
                .map(|at| texts[at..].split(|text| text == "~;").next().unwrap())
                .collect();
            assert_eq!(frames.len(), 5);
            assert_eq!(frames.iter().map(|frame| &frame[0]).collect::<BTreeSet<_>>().len(), 5);
            for frame in frames {
                let is_asked = frame[0] == texts[ask + 1];
                assert_eq!(frame[2..4] == texts[ask + 2..ask + 4], is_asked, "{}", texts.join(" "));
                let len = if solved && !is_asked { 5 + 3 } else { 5 };
                assert_eq!(frame.len(), len);
            }
        }
    }
}

#[test]
fn a_task_with_one_answer_is_drawn_a_hundred_times_and_taken() {
    let none = r#"{"kind": "selective-counting", "object_rate": 0.0}"#;
    let task = holding(serde_json::from_str::<TaskConfig>(none).unwrap(), 9).build().unwrap();
    assert_eq!(task.eval_set("in-distribution", 50, 3, 0).unwrap().len(), 3);
}

#[test]
fn statements_stand_at_every_depth_equally_often_and_sets_take_the_tenths_in_turn() {
    let task = AtDepthConfig::default().build().unwrap();
    // 83 to 87 tokens of filler.
    let len = 110;
    let mut rng = ChaCha8Rng::seed_from_u64(2);
    let mut counts = [0_u32; 10];
    for _ in 0..10_000 {
        counts[task.train_sample(len, &mut rng).slices[0].1 as usize] += 1;
    }
    assert!(counts.iter().all(|count| count.abs_diff(1000) < 200), "{counts:?}");
    let set = task.eval_set("uniform", len, 1000, 2).unwrap();
    let mut counts = [0_u32; 10];
    for (index, sample) in set.iter().enumerate() {
        let tenth = sample.slices[0].1 as usize;
        // A place that is drawn just behind a border of tenths is before it.
        assert!(tenth == index % 10 || tenth + 1 == index % 10, "{tenth} {index}");
        counts[tenth] += 1;
    }
    assert!(counts.iter().all(|count| count.abs_diff(100) < 20), "{counts:?}");
}

#[test]
fn evaluations_of_one_split_have_statements_of_it_only() {
    let task = holding(FlipFlopConfig::default(), 20).build().unwrap();
    let names: Vec<&str> = task.splits().iter().map(|split| split.name).collect();
    assert_eq!(names, FlipFlopConfig::SPLITS.iter().map(|split| split.name).collect::<Vec<_>>());
    let ignored = |split: &str| -> usize {
        let set = task.eval_set(split, 100, 50, 3).unwrap();
        set.iter()
            .map(|sample| texts(&task, sample).iter().filter(|text| *text == "i").count())
            .sum()
    };
    assert!(ignored("sparse") > ignored("dense"));
}

#[test]
fn counted_tokens_and_slices_are_those_of_the_task() {
    let config = MrcrConfig { questions: 2, ..MrcrConfig::default() };
    let task = holding(config, 20).build().unwrap();
    for sample in task.eval_set("uniform", 80, 50, 4).unwrap() {
        let texts = texts(&task, &sample);
        let marks = task.counted(&sample).unwrap();
        let own = asked(&texts);
        let asked = [&own[14], &own[18]];
        let ask = texts.iter().position(|text| text == "~?").unwrap();
        let start = texts.iter().position(|text| *text == texts[ask + 1]).unwrap();
        for t in 0..80 {
            let is_write = (start..=start + 12).contains(&t) && asked.contains(&&texts[t]);
            assert_eq!(marks[t], is_write, "{t}: {}", texts.join(" "));
        }
        let names = task.token_slices(&sample).into_iter().map(|(name, _)| name);
        assert_eq!(names.collect::<Vec<_>>(), ["index", "distance"]);
    }
    // A needle has a depth of its own.
    let task = holding(NeedleConfig::default(), 20).build().unwrap();
    let sample = task.eval_set("uniform", 80, 1, 0).unwrap().remove(0);
    let names: Vec<&str> = sample.slices.iter().map(|(name, _)| *name).collect();
    assert_eq!(names, ["depth", "distance"]);
}

#[test]
fn the_version_of_the_task_is_part_of_the_data() {
    let hash = |config: TaskConfig| config.build().unwrap().data_sha256().map(str::to_owned);
    let of = |task: TaskConfig| hash(holding(task, 12).into());
    assert_eq!(of(CopyConfig::default().into()), of(CopyConfig::new(3, 1).into()));
    assert_ne!(of(CopyConfig::default().into()), of(MrcrConfig::default().into()));
}

#[test]
fn bad_settings_and_lengths_name_the_field() {
    let said = |json: &str| {
        let config: AtDepthConfig = serde_json::from_str(json).unwrap();
        config.build().unwrap_err().to_string()
    };
    for (json, expected) in [
        (r#"{"distractors": 16}"#, "at-depth: distractors is 16, must be between 0 and 15"),
        (
            r#"{"task": {"kind": "text"}}"#,
            "at-depth: task is \"text\", must be a task other than a text and `at-depth`",
        ),
        (
            r#"{"task": {"kind": "at-depth"}}"#,
            "at-depth: task is \"at-depth\", must be a task other than a text and `at-depth`",
        ),
        (r#"{"task": {"kind": "copy", "letters": 1}}"#, "copy: letters is 1, must be between"),
        (r#"{"task_len": 0}"#, "at-depth: task_len is 0, must be between 1 and 16777216 symbols"),
        (r#"{"task_len": 16777216}"#, "at-depth: task_len is 16777216, must be a length at which"),
    ] {
        let said = said(json);
        assert!(said.starts_with(expected), "{said}");
    }
    let unknown =
        serde_json::from_str::<TaskConfig>(r#"{"kind": "at-depth", "task": {"kind": "copi"}}"#);
    let said = unknown.unwrap_err().to_string();
    assert_eq!(said, "at-depth: task: unknown task `copi` (did you mean `copy`?)");
    let task = AtDepthConfig::default().build().unwrap();
    assert!(task.check_len(22).unwrap_err().to_string().contains("between 23 and"));
}
