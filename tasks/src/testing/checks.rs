//! Checks of properties that every task must have.

use std::collections::{BTreeMap, BTreeSet};

use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;

use super::Example;
use crate::files::sha256_hex;
use crate::generator::most_frequent;
use crate::registry::module_doc;
use crate::{Batch, EvaluatedSplit, Sample, Task, TaskConfig, TaskError, draw};

/// Number of samples per split, limited by the size of the example text.
const COUNT: usize = 8;

fn build(example: &Example) -> Box<dyn Task> {
    example.config.build().unwrap()
}

fn train(task: &dyn Task, len: usize, seed: u64, count: usize) -> Vec<Sample> {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    (0..count).map(|_| task.train_sample(len, &mut rng)).collect()
}

pub(crate) fn same_seed(example: &Example) {
    let (task, again) = (build(example), build(example));
    let len = example.len;
    let first = train(task.as_ref(), len, 3, 20);
    assert_eq!(first, train(again.as_ref(), len, 3, 20));
    assert_ne!(first, train(task.as_ref(), len, 4, 20));
    for split in task.splits() {
        let set = |task: &dyn Task, seed| task.eval_set(split.name, len, COUNT, seed).unwrap();
        assert_eq!(set(task.as_ref(), 3), set(again.as_ref(), 3));
        let seed_matters = set(task.as_ref(), 3) != set(task.as_ref(), 4);
        assert_eq!(seed_matters, example.synthetic, "{}", split.name);
    }
}

pub(crate) fn eval_differs(example: &Example) {
    let task = build(example);
    let mut seen = Vec::new();
    for split in task.splits() {
        let set = task.eval_set(split.name, example.len, COUNT, 5).unwrap();
        assert!(!seen.contains(&set), "{} equals another split", split.name);
        assert_ne!(set, train(task.as_ref(), example.len, 5, COUNT), "{}", split.name);
        seen.push(set);
    }
}

/// Checks a sample against the contract of [`Sample`] and the task's own bounds.
fn check_sample(task: &dyn Task, len: usize, sample: &Sample) {
    let Sample { tokens, scored, slices } = sample;
    assert_eq!(tokens.len(), scored.len());
    assert!(tokens.len() >= 2 && tokens.len() <= task.max_tokens(len));
    assert!(tokens.iter().all(|t| (*t as usize) < task.vocab_size()));
    assert!(!scored[0] && scored.contains(&true));
    assert!(slices.iter().all(|(name, _)| !name.is_empty()));
}

pub(crate) fn well_formed(example: &Example) {
    let task = build(example);
    let task = task.as_ref();
    assert!(task.check_len(example.len).is_ok());
    assert!(task.check_len(usize::MAX).is_err());
    // Asked before a length is checked, these must not overflow.
    assert_eq!(task.max_tokens(usize::MAX), usize::MAX);
    assert!(task.max_train_tokens(usize::MAX) > usize::MAX / 2);
    assert!(task.max_eval_samples(usize::MAX).is_none_or(|count| count == 0));
    assert!((0..task.vocab_size() as u32).all(|t| !task.token_text(t).is_empty()));
    assert_eq!(task.token_text(u32::MAX), "?");
    // A fixed seed: a failure must come back on the next run.
    let config = Config { failure_persistence: None, cases: 200, ..Config::default() };
    let rng = TestRng::deterministic_rng(RngAlgorithm::ChaCha);
    let arguments = (0..=150_usize, proptest::num::u64::ANY);
    let checked = TestRunner::new_with_rng(config, rng).run(&arguments, |(len, seed)| {
        let valid = task.check_len(len).is_ok();
        let mut samples = Vec::new();
        if valid {
            samples.extend(train(task, len, seed, 4));
            let longest = samples.iter().map(|sample| sample.tokens.len()).max();
            assert!(longest.is_some_and(|tokens| tokens <= task.max_train_tokens(len)));
            assert!(task.max_train_tokens(len) <= task.max_tokens(len));
        }
        for split in task.splits() {
            let set = task.eval_set(split.name, len, 2, seed);
            assert_eq!(set.is_ok(), valid);
            samples.extend(set.into_iter().flatten());
        }
        for sample in &samples {
            check_sample(task, len, sample);
            let names = |sample: &Sample| -> Vec<_> { sample.slices.iter().map(|s| s.0).collect() };
            assert_eq!(names(sample), names(&samples[0]), "slices differ between samples");
        }
        if valid {
            assert!(Batch::collate(&samples).len < task.max_tokens(len));
        }
        Ok(())
    });
    checked.unwrap();
}

pub(crate) fn oracle(example: &Example) {
    let (config, len) = &example.oracle_config;
    let task = config.build().unwrap();
    let mut samples = train(task.as_ref(), *len, 11, 50);
    for split in task.splits() {
        samples.extend(task.eval_set(split.name, *len, COUNT, 11).unwrap());
    }
    let (mut asked, mut answered) = (0, 0);
    for Sample { tokens, scored, .. } in &samples {
        let texts: Vec<String> = tokens.iter().map(|t| task.token_text(*t)).collect();
        for t in (0..tokens.len()).filter(|t| scored[*t]) {
            asked += 1;
            if let Some(answer) = (example.oracle)(&texts[..t]) {
                assert_eq!(answer, texts[t], "after {:?}", &texts[..t]);
                answered += 1;
            }
        }
    }
    // A text is determined only where its prefix occurs once.
    let enough = if example.synthetic { asked } else { asked / 3 };
    assert!(answered >= enough, "{answered} of {asked}");
}

pub(crate) fn round_trip(example: &Example) {
    for config in [&example.config, &example.oracle_config.0] {
        let json = serde_json::to_string(config).unwrap();
        assert_eq!(&serde_json::from_str::<TaskConfig>(&json).unwrap(), config);
        let toml = toml::to_string(config).unwrap();
        // A setting is one value, or another task.
        assert!(!toml.replace("[task]", "").contains('['), "not flat: {toml}");
        assert_eq!(&toml::from_str::<TaskConfig>(&toml).unwrap(), config);
    }
    // Left out, every setting has its default.
    let id = example.config.meta().id;
    let bare: TaskConfig = toml::from_str(&format!("kind = \"{id}\"")).unwrap();
    assert_eq!(bare, TaskConfig::from_id(id).unwrap());
}

pub(crate) fn unknown_key(example: &Example) {
    let id = example.config.meta().id;
    let toml = "ignor = 0.5\n".to_owned() + &toml::to_string(&example.config).unwrap();
    let said = toml::from_str::<TaskConfig>(&toml).unwrap_err().to_string();
    assert!(said.contains(&format!("{id}: unknown field `ignor`, expected")), "{said}");
    let json = format!(r#"{{"kind": "{id}", "ignor": 0.5}}"#);
    let said = serde_json::from_str::<TaskConfig>(&json).unwrap_err().to_string();
    assert!(said.starts_with(&format!("{id}: unknown field `ignor`, expected")), "{said}");
}

/// Checks that any value of a setting gives either an error or a task that fulfils its contract.
pub(crate) fn extreme_settings(example: &Example) {
    let extremes = serde_json::json!([
        0,
        1,
        2,
        3,
        -1,
        26,
        65_536,
        16_777_216,
        u32::MAX,
        u64::MAX,
        0.5,
        1e-300,
        1e308,
        "x",
        "",
        null,
        true,
        [],
        {}
    ]);
    for config in [&example.config, &example.oracle_config.0] {
        let table = serde_json::to_value(config).unwrap();
        // The path of a text is not a numeric setting.
        let keys = table.as_object().unwrap().keys().filter(|key| *key != "path");
        for (key, extreme) in
            keys.flat_map(|key| extremes.as_array().unwrap().iter().map(move |e| (key, e)))
        {
            let mut table = table.clone();
            table[key] = extreme.clone();
            let Ok(config) = serde_json::from_value::<TaskConfig>(table) else { continue };
            let Ok(task) = config.build() else { continue };
            assert!(task.check_len(usize::MAX).is_err());
            for len in [0, 1, 2, 17, 40, 300] {
                // The chance level of some tasks is simulated, which is slow, so it is computed once.
                if len == 40 {
                    assert_eq!(task.chance_at(len).is_some(), task.check_len(len).is_ok());
                }
                if task.check_len(len).is_ok() {
                    for sample in train(task.as_ref(), len, 1, 2) {
                        check_sample(task.as_ref(), len, &sample);
                    }
                }
            }
        }
    }
}

pub(crate) fn unknown_split(example: &Example) {
    let task = build(example);
    let name = task.splits()[0].name;
    let misspelt = &name[..name.len() - 1];
    let error = task.eval_set(misspelt, example.len, 1, 0).unwrap_err();
    assert!(matches!(error, TaskError::UnknownSplit { nearest: Some(n), .. } if n == name));
    assert!(error.to_string().contains(&format!("did you mean `{name}`?")), "{error}");
}

pub(crate) fn token_slices(example: &Example) {
    let task = build(example);
    let mut samples = train(task.as_ref(), example.len, 2, 20);
    for split in task.splits() {
        samples.extend(task.eval_set(split.name, example.len, COUNT, 2).unwrap());
    }
    let names = |sample: &Sample| -> Vec<_> {
        task.token_slices(sample).into_iter().map(|(name, _)| name).collect()
    };
    for sample in &samples {
        assert_eq!(names(sample), names(&samples[0]), "slices differ between samples");
        let asked = sample.answer_len();
        for (name, values) in task.token_slices(sample) {
            assert_eq!(values.len(), asked, "{name}");
            // One name has one meaning in a report.
            assert!(sample.slices.iter().all(|(of_sample, _)| *of_sample != name), "{name}");
        }
    }
}

/// Checks that no sample that counts as longer, or as one of another split, is one that training draws, and that every
/// other sample is no larger than those of training.
pub(crate) fn unseen(example: &Example) {
    const DRAWN: usize = 4000;
    let (config, train_len) = &example.oracle_config;
    let (task, train_len) = (config.build().unwrap(), *train_len);
    let drawn = train(task.as_ref(), train_len, 17, DRAWN);
    let trained: BTreeSet<&[u32]> = drawn.iter().map(|sample| &sample.tokens[..]).collect();
    let most = task.max_train_tokens(train_len);
    let lens = [train_len, train_len + 1, train_len + 2, train_len * 3 / 2, 2 * train_len];
    for split in task.splits() {
        for len in lens.into_iter().filter(|len| task.check_len(*len).is_ok()) {
            let evaluation =
                EvaluatedSplit::new(task.as_ref(), split.name, len, train_len).unwrap();
            let count = if example.synthetic { 1000 } else { COUNT };
            let samples = task.eval_set(split.name, len, count, 17).unwrap();
            let place = format!("{} at {len} after {train_len}", split.name);
            if evaluation.in_distribution() {
                assert!(
                    samples.iter().all(|s| task.has_trained_size(s, len, train_len)),
                    "{place}"
                );
                continue;
            }
            let (unseen, others): (Vec<&Sample>, Vec<&Sample>) =
                samples.iter().partition(|sample| evaluation.is_unseen(sample));
            let longest = others.iter().map(|sample| sample.tokens.len()).max().unwrap_or(0);
            assert!(longest <= most, "{place}: {longest} tokens as in training");
            // Of a split that differs in frequencies alone, each sample could occur in training.
            if len > train_len || split.part_of_training {
                let repeated = unseen.iter().filter(|s| trained.contains(&s.tokens[..])).count();
                assert_eq!(repeated, 0, "{place}: samples of the training set count as unseen");
            } else {
                assert_eq!(others.len(), 0, "{place}");
                let found = distance(&unseen, &drawn);
                assert!(found > 0.02, "{place}: frequencies as in training, {found}");
            }
        }
    }
}

/// Greatest difference between the shares of a token in two sets of samples.
fn distance(unseen: &[&Sample], drawn: &[Sample]) -> f64 {
    let shares = |samples: &mut dyn Iterator<Item = &Sample>| {
        let mut shares: BTreeMap<u32, f64> = BTreeMap::new();
        let mut tokens = 0.0;
        for token in samples.flat_map(|sample| &sample.tokens) {
            *shares.entry(*token).or_default() += 1.0;
            tokens += 1.0;
        }
        for count in shares.values_mut() {
            *count /= tokens;
        }
        shares
    };
    let (unseen, drawn) = (shares(&mut unseen.iter().copied()), shares(&mut drawn.iter()));
    let other = |token| drawn.get(token).copied().unwrap_or(0.0);
    unseen.iter().map(|(token, share)| (share - other(token)).abs()).fold(0.0, f64::max)
}

/// Compares the chance level with the rate of the most frequent answer, determined on one half of many samples and
/// measured on the other.
pub(crate) fn chance(example: &Example) {
    const HALF: usize = 40_000;
    let (config, len) = &example.chance_config;
    let task = config.build().unwrap();
    assert_eq!(task.chance_at(usize::MAX), None);
    if !example.synthetic {
        return;
    }
    let p = task.chance_at(*len).unwrap();
    assert!(task.chance().is_none_or(|fixed| fixed.to_bits() == p.to_bits()));
    let split = task.splits()[0].name;
    let answers: Vec<Vec<u32>> = task
        .eval_set(split, *len, 2 * HALF, 21)
        .unwrap()
        .into_iter()
        .map(Sample::into_answer)
        .collect();
    let (guess, _) = most_frequent(&answers[..HALF]).unwrap();
    let hits = answers[HALF..].iter().filter(|answer| *answer == guess).count();
    // 5 standard deviations, and the one hit that a rare answer may have by luck.
    let tolerance = 5.0 * (p * (1.0 - p) / HALF as f64).sqrt() + 1.5 / HALF as f64;
    let rate = hits as f64 / HALF as f64;
    assert!((rate - p).abs() <= tolerance, "stated {p}, measured {rate} with {guess:?}");
    // A level too low to be observed in so few samples would always pass.
    assert!(p > 0.001, "chance {p} is too small to be tested: give the example a smaller one");
}

pub(crate) fn golden(example: &Example) {
    let task = build(example);
    let mut samples = train(task.as_ref(), example.len, 0, 64);
    for split in task.splits() {
        samples.extend(task.eval_set(split.name, example.len, COUNT, 0).unwrap());
    }
    let mut bytes = Vec::new();
    for Sample { tokens, scored, slices } in &samples {
        bytes.extend(tokens.iter().flat_map(|t| t.to_le_bytes()));
        bytes.extend(scored.iter().map(|s| u8::from(*s)));
        bytes.extend(format!("{slices:?}\n").bytes());
    }
    let got = format!("v{} {}", task.meta().version, sha256_hex(&bytes));
    assert!(
        got == example.golden,
        "{}: the samples have the hash `{got}`, expected `{}`. For a new task, put it into `GOLDEN`. If the samples of an older task \
         are meant to change, raise `META.version` first",
        task.meta().id,
        example.golden
    );
}

const HEADINGS: [&str; 6] = [
    "# ",
    "## What it asks of an encoding",
    "## Predicted order",
    "## Definition",
    "## Sample",
    "## Source",
];

/// Seed of the documented sample.
const SEED: u64 = 0;

/// Checks that the documentation of a task has its headings and a sample that the task draws.
pub(crate) fn documented(card: &str, source: &str, example: &Example) {
    let doc = module_doc(source);
    let doc: Vec<&str> = doc.lines().collect();
    let headings = doc.iter().filter(|line| line.starts_with('#'));
    for (line, heading) in headings.clone().zip(HEADINGS) {
        assert!(line.starts_with(heading), "`{line}` instead of `{heading}`");
    }
    assert_eq!(headings.count(), HEADINGS.len());
    assert_eq!(card, doc.join("\n"));

    let task = example.config.build().unwrap();
    let sample = task.train_sample(example.len, &mut ChaCha8Rng::seed_from_u64(SEED));
    let drawn = draw(task.as_ref(), &sample);
    let documented = doc
        .iter()
        .skip_while(|line| **line != "## Sample")
        .skip_while(|line| **line != "```text")
        .skip(1)
        .take_while(|line| **line != "```")
        .copied()
        .collect::<Vec<_>>()
        .join("\n");
    assert_eq!(documented, drawn, "write this sample into the documentation:\n{drawn}\n");
}
