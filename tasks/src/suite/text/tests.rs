//! Tests of text.

use std::collections::BTreeMap;
use std::num::NonZeroU32;

use rand::SeedableRng;
use tempfile::TempDir;

use super::*;
use crate::TaskConfig;
use crate::data::{Borders, TextDocument};
use crate::testing::{Example, harbour_text, write_temp};

/// Golden output of `checks::golden`: generator version and hash.
const GOLDEN: &str = "v1 f33d643c502c8e2898997324dea6e924fa77e60d6c6abb0890f7a0b32f1eab87";

fn of_path(path: std::path::PathBuf) -> TextConfig {
    TextConfig { source: TextSource::Path { path, field: None }, ..TextConfig::default() }
}

fn text(text: &str) -> Text {
    Text::new(text).unwrap()
}

pub(crate) fn example() -> Example {
    let (folder, path) = write_temp(harbour_text().as_bytes());
    Example::from_text(TaskConfig::from(of_path(path)), folder, 24, oracle, GOLDEN)
}

/// Searches the text for the prefix and returns the next token if all occurrences agree.
fn oracle(prefix: &[String]) -> Option<String> {
    let text = harbour_text();
    let next = |(at, found): (usize, &str)| text[at + found.len()..].chars().next();
    let prefix = prefix.concat();
    let mut answers: Vec<char> = text.match_indices(&prefix).filter_map(next).collect();
    answers.dedup();
    match answers[..] {
        [only] => Some(only.to_string()),
        [] => Some(format!("{prefix:?} is not in the text")),
        _ => None,
    }
}

fn decode(task: &Text, sample: &Sample) -> String {
    sample.tokens.iter().map(|t| task.token_text(*t)).collect()
}

#[test]
fn vocabulary_is_sorted_and_spans_the_whole_text() {
    // Ten characters: the last, not seen in training, is in the vocabulary all the same.
    let task = text("bbabababaé");
    assert_eq!(task.vocab_size(), 3);
    assert_eq!(task.part(Part::Train).tokens, 9);
    assert_eq!(task.bytes_per_token(), Some(2.0));
    assert_eq!(task.token_text(2), "é");
    assert_eq!(task.token_text(3), "?");
}

#[test]
fn training_windows_come_from_the_first_part_and_reach_both_ends() {
    let letters: String = ('a'..='z').chain('A'..='D').collect();
    let task = text(&letters);
    assert_eq!(task.part(Part::Train).tokens, 27);
    let mut rng = ChaCha8Rng::seed_from_u64(1);
    let windows: std::collections::BTreeSet<String> =
        (0..2000).map(|_| decode(&task, &task.train_sample(2, &mut rng))).collect();
    let all = (0..25).map(|start| letters[start..start + 3].to_owned()).collect();
    assert_eq!(windows, all);
}

#[test]
fn validation_windows_do_not_overlap_and_spread_over_the_last_part() {
    let whole = harbour_text();
    let task = text(&whole);
    let part: String = whole.chars().skip(task.part(Part::Train).tokens).collect();
    for (len, count) in [(9, 1), (9, 7), (9, task.max_eval_samples(9).unwrap())] {
        let set = task.eval_set("validation", len, count, 1).unwrap();
        assert_eq!(set, task.eval_set("validation", len, count, 2).unwrap());
        let chars: Vec<char> = part.chars().collect();
        let mut free_from = 0;
        for sample in &set {
            let window: Vec<char> = decode(&task, sample).chars().collect();
            let at = (free_from..=chars.len() - window.len())
                .find(|at| chars[*at..at + window.len()] == window);
            free_from = at.unwrap() + window.len();
        }
        assert_eq!(set.len(), count);
    }
}

#[test]
fn too_short_a_text_says_how_much_fits() {
    let task = text(&"abcde".repeat(40));
    let said = task.eval_set("validation", 4, 5, 0).unwrap_err().to_string();
    assert!(said.starts_with("text: 5 windows of 5 tokens do not fit into the validation part"));
    let rest = "20 tokens in 1 document (windows that fit: 4); use a shorter len, fewer samples or a longer text";
    assert!(said.ends_with(rest), "{said}");
    assert!(task.eval_set("validation", 4, 4, 0).is_ok());
    assert!(task.check_len(19).is_ok());
    let said = task.check_len(20).unwrap_err().to_string();
    assert!(said.starts_with("text: 1 window of 21 tokens does not fit into the validation part"));
    assert!(said.ends_with("(windows that fit: 0); use a shorter len or a longer text"), "{said}");
    assert!(task.check_len(0).is_err());
    assert!(text("").check_len(1).is_err());
}

#[test]
fn both_keys_together_are_refused_and_neither_is_the_default() {
    let parse = serde_json::from_str::<TaskConfig>;
    let said = parse(r#"{"kind": "text", "corpus": "a", "path": "b"}"#).unwrap_err();
    assert!(said.to_string().starts_with("text: `corpus` and `path` are both given"));
    let neither = parse(r#"{"kind": "text"}"#).unwrap();
    assert_eq!(neither, TaskConfig::from(TextConfig::default()));
    let json = serde_json::to_string(&neither).unwrap();
    assert_eq!(json, r#"{"kind":"text","corpus":"tinyshakespeare"}"#);
}

#[test]
fn settings_are_written_flat_and_only_where_they_differ() {
    let parse = |json: &str| serde_json::from_str::<TextConfig>(json).map_err(|e| e.to_string());
    let all = r#"{"path":"a.jsonl","field":"body","tokenizer":{"bpe":4096},"documents":"joined","eval_windows":{"sliding":64}}"#;
    let config = parse(all).unwrap();
    assert_eq!(config.tokenizer, TokenizerConfig::Bpe(4096));
    assert_eq!(config.documents, Borders::Joined);
    assert_eq!(config.eval_windows, EvalWindows::Sliding(NonZeroU32::new(64).unwrap()));
    assert_eq!(serde_json::to_string(&config).unwrap(), all);
    for written in [
        r#"{"corpus":"sotu","tokenizer":"gpt2"}"#,
        r#"{"corpus":"sotu","tokenizer":{"file":"a/tokenizer.json"},"eval_windows":"whole"}"#,
    ] {
        assert_eq!(serde_json::to_string(&parse(written).unwrap()).unwrap(), written);
    }
    for (wrong, why) in [
        (r#"{"corpus": "sotu", "field": "body"}"#, "`field` is given without `path`"),
        (r#"{"tokenizer": "gpt3"}"#, "unknown variant `gpt3`"),
        (r#"{"eval_windows": {"sliding": 0}}"#, "nonzero"),
        (r#"{"tokenizer": {"bpe": -1}}"#, "invalid value"),
    ] {
        let said = parse(wrong).unwrap_err();
        assert!(said.contains(why), "{said}");
    }
}

/// Makes a text of five documents of one part with the listed numbers of tokens, all different.
fn five(sizes: [usize; 5]) -> Text {
    let mut next = 0x4e00;
    let mut document = |part: Part, size: usize| {
        let text: String = (next..next + size as u32).filter_map(char::from_u32).collect();
        next += size as u32;
        (part, TextDocument { name: String::new(), text })
    };
    let mut documents = Vec::new();
    for part in Part::ALL {
        documents.extend(sizes.iter().map(|size| document(part, *size)));
    }
    let config = TextConfig::default();
    Text::of(Parts::new(documents), &config, TempDir::new().unwrap().path()).unwrap()
}

fn documents_of(task: &Text, part: Part) -> Vec<Vec<u32>> {
    let mut start = match part {
        Part::Train => 0,
        Part::Validation => task.part(Part::Train).tokens,
        Part::Test => task.part(Part::Train).tokens + task.part(Part::Validation).tokens,
    };
    let sizes = SIZES;
    let of = |size| {
        start += size;
        task.tokens.copy(start - size..start)
    };
    sizes.map(of).into()
}

const SIZES: [usize; 5] = [40, 1, 7, 0, 95];

/// Each token but the first of each document is scored exactly once, in its place, by windows within one document.
#[test]
fn whole_and_sliding_windows_score_every_token_once() {
    let mut task = five(SIZES);
    for (len, how) in [
        (8, EvalWindows::Whole),
        (40, EvalWindows::Whole),
        (1, EvalWindows::Whole),
        (8, EvalWindows::Sliding(NonZeroU32::new(3).unwrap())),
        (8, EvalWindows::Sliding(NonZeroU32::new(8).unwrap())),
        (8, EvalWindows::Sliding(NonZeroU32::MIN)),
    ] {
        task.eval_windows = how;
        for (split, part) in [("validation", Part::Validation), ("test", Part::Test)] {
            let documents = documents_of(&task, part);
            let most = task.max_eval_samples(len).unwrap();
            let set = task.eval_set(split, len, most, 0).unwrap();
            assert_eq!(set.len(), most);
            let mut scored = BTreeMap::new();
            for sample in &set {
                let home = documents.iter().position(|d| d.contains(&sample.tokens[0])).unwrap();
                let place = documents[home].iter().position(|t| *t == sample.tokens[0]).unwrap();
                let end = place + sample.tokens.len();
                assert_eq!(documents[home][place..end], sample.tokens);
                assert!(!sample.scored[0] && sample.tokens.len() <= len + 1);
                for (token, _) in sample.tokens.iter().zip(&sample.scored).filter(|(_, s)| **s) {
                    *scored.entry(*token).or_insert(0) += 1;
                }
            }
            let expected: Vec<u32> =
                documents.iter().flat_map(|d| d.iter().skip(1)).copied().collect();
            assert_eq!(scored.keys().copied().collect::<Vec<_>>(), expected, "{how:?}");
            assert!(scored.values().all(|times| *times == 1));
        }
    }
}

/// Each scored token has as context everything before it in its window: at least `len` minus the stride, except at
/// the start of a document.
#[test]
fn sliding_windows_keep_the_context_that_they_promise() {
    let mut task = five(SIZES);
    task.eval_windows = EvalWindows::Sliding(NonZeroU32::new(3).unwrap());
    let set = task.eval_set("test", 8, usize::MAX, 0).unwrap();
    let starts: Vec<u32> =
        documents_of(&task, Part::Test).iter().filter_map(|d| d.first().copied()).collect();
    for sample in set {
        let first = sample.scored.iter().position(|scored| *scored).unwrap();
        assert!(starts.contains(&sample.tokens[0]) == (first == 1) && (first == 1 || first >= 5));
    }
    assert!(task.check_len(2).unwrap_err().to_string().contains("the stride"));
    assert!(task.check_len(3).is_ok());
}

#[test]
fn spread_windows_stay_within_documents_and_share_them_by_their_room() {
    let task = five(SIZES);
    let documents = documents_of(&task, Part::Validation);
    let most = task.max_eval_samples(9).unwrap();
    assert_eq!(most, 4 + 9);
    for count in 1..=most {
        let set = task.eval_set("validation", 9, count, 0).unwrap();
        assert_eq!(set.len(), count);
        let mut seen = std::collections::BTreeSet::new();
        for sample in &set {
            assert_eq!(sample.tokens.len(), 10);
            assert!(documents.iter().any(|d| d.windows(10).any(|w| w == sample.tokens)));
            assert!(sample.tokens.iter().all(|token| seen.insert(*token)), "windows overlap");
        }
    }
    assert!(task.eval_set("validation", 9, most + 1, 0).is_err());
}

#[test]
fn fewer_windows_of_a_whole_are_spread_over_it() {
    let mut task = five(SIZES);
    task.eval_windows = EvalWindows::Whole;
    let most = task.max_eval_samples(8).unwrap();
    let all = task.eval_set("test", 8, most, 0).unwrap();
    let some = task.eval_set("test", 8, 4, 0).unwrap();
    let expected: Vec<_> = (0..4).map(|k| all[k * most / 4].clone()).collect();
    assert_eq!(some, expected);
}

#[test]
fn training_draws_documents_by_size_and_short_ones_whole() {
    let task = five(SIZES);
    let documents = documents_of(&task, Part::Train);
    let mut rng = ChaCha8Rng::seed_from_u64(5);
    let mut counts = [0_u32; 5];
    for _ in 0..14_200 {
        let sample = task.train_sample(9, &mut rng);
        let home = documents.iter().position(|d| d.contains(&sample.tokens[0])).unwrap();
        counts[home] += 1;
        assert_eq!(sample.tokens.len(), 10.min(documents[home].len()));
        assert!(documents[home].windows(sample.tokens.len()).any(|w| w == sample.tokens));
        assert_eq!(sample.slices, [("document", [0, 9, 1, 9, 2][home])]);
    }
    // 142 tokens in documents that have something to predict; 5 standard deviations.
    for (count, expected) in counts.into_iter().zip([4000_u32, 0, 700, 0, 9500]) {
        assert!(count.abs_diff(expected) <= 5 * expected.isqrt(), "{counts:?}");
    }
}

#[test]
fn positions_are_grouped_by_powers_of_two_and_bytes_counted_exactly() {
    let task = text(&"aé€b".repeat(30));
    let sample = task.eval_set("validation", 9, 1, 0).unwrap().remove(0);
    let positions = vec![1, 2, 2, 4, 4, 4, 4, 8, 8];
    assert_eq!(task.token_slices(&sample), [("position", positions)]);
    assert_eq!(task.sample_text(&sample), "aé€baé€baé");
    assert_eq!(task.scored_bytes(&sample), Some(2 + 3 + 1 + 1 + 2 + 3 + 1 + 1 + 2));
}

#[test]
fn joined_documents_are_one_text_of_the_same_data() {
    let folder = TempDir::new().unwrap();
    for k in 0..20 {
        let name = folder.path().join(format!("{k:02}.txt"));
        std::fs::write(name, format!("document {k}: {}\n", "words ".repeat(9))).unwrap();
    }
    let apart = of_path(folder.path().to_path_buf());
    let joined = TextConfig { documents: Borders::Joined, ..apart.clone() };
    let (apart, joined) = (apart.build().unwrap(), joined.build().unwrap());
    assert_eq!(apart.data_sha256(), joined.data_sha256());
    let sizes =
        |task: &Text| task.parts().iter().map(|p| (p.documents, p.bytes)).collect::<Vec<_>>();
    let [(16, train), (2, validation), (2, test)] = sizes(&apart)[..] else { panic!() };
    assert_eq!(sizes(&joined), [(1, train), (1, validation), (1, test)]);
    assert!(apart.check_len(100).is_err() && joined.check_len(100).is_ok());
    assert_eq!(apart.splits().len(), 2);
}

/// Tests all tokenizers in the task: windows are pieces of the text, and their bytes are those of the text.
#[test]
fn every_tokenizer_makes_a_task_of_the_text() {
    let (folder, path) = write_temp(harbour_text().as_bytes());
    let cache = folder.path().join("cache");
    for (tokenizer, vocabulary) in [
        (TokenizerConfig::Bytes, 256),
        (TokenizerConfig::Gpt2, 50_257),
        (TokenizerConfig::Bpe(290), 290),
    ] {
        let config = TextConfig {
            tokenizer: tokenizer.clone(),
            eval_windows: EvalWindows::Whole,
            ..of_path(path.clone())
        };
        let task = config.build_in(&cache).unwrap();
        assert_eq!(task.vocab_size(), vocabulary);
        let most = task.max_eval_samples(16).unwrap();
        let set = task.eval_set("validation", 16, most, 0).unwrap();
        let validation = task.parts()[1];
        let bytes: u64 = set.iter().map(|sample| task.scored_bytes(sample).unwrap()).sum();
        // All but the first token, whose bytes nobody predicts.
        let first = task.tokenizer.bytes(set[0].tokens[0]).unwrap().len();
        assert_eq!(bytes as usize + first, validation.bytes, "{tokenizer:?}");
        let mean = task.bytes_per_token().unwrap();
        assert!((mean - validation.bytes as f64 / validation.tokens as f64).abs() < 1e-12);
        assert!((0..vocabulary as u32).all(|token| !task.token_text(token).is_empty()));
        let again = config.build_in(&cache).unwrap();
        assert_eq!(again.eval_set("validation", 16, most, 0).unwrap(), set);
        assert!(again.notes().is_empty());
    }
}

#[test]
fn damaged_tokens_are_made_again_and_the_user_is_told() {
    let (folder, path) = write_temp(harbour_text().as_bytes());
    let config = TextConfig { tokenizer: TokenizerConfig::Gpt2, ..of_path(path) };
    let build = || config.build_in(folder.path()).unwrap();
    let Origin::Made(file) = build().origin().clone() else { panic!() };
    let mut bytes = std::fs::read(&file).unwrap();
    let last = bytes.len() - 1;
    bytes[last] ^= 4;
    std::fs::write(&file, bytes).unwrap();
    let task = build();
    let [note] = task.notes() else { panic!("{:?}", task.notes()) };
    assert!(note.contains(".tok") && note.contains("computed again"), "{note}");
    assert!(build().notes().is_empty());
}

/// Another `tokenizer.json` at the same path gives another task.
#[test]
fn hash_of_the_data_covers_the_tokenizer_file() {
    let (folder, path) = write_temp(harbour_text().as_bytes());
    let file = folder.path().join("tokenizer.json");
    let hash = |words: &str| {
        let json = format!(
            r#"{{"version": "1.0", "truncation": null, "padding": null, "added_tokens": [], "normalizer": null,
            "pre_tokenizer": {{"type": "Whitespace"}}, "post_processor": null, "decoder": null,
            "model": {{"type": "WordLevel", "vocab": {{"[UNK]": 0, {words}}}, "unk_token": "[UNK]"}}}}"#
        );
        std::fs::write(&file, json).unwrap();
        let tokenizer = TokenizerConfig::File(file.clone());
        let config = TextConfig { tokenizer, ..of_path(path.clone()) };
        let task = config.build_in(folder.path()).unwrap();
        // Unknown words lose their bytes: only the mean is known.
        let sample = task.eval_set("validation", 4, 1, 0).unwrap().remove(0);
        assert_eq!(task.scored_bytes(&sample), None);
        assert!(task.bytes_per_token().unwrap() > 1.0);
        task.data_sha256().unwrap().to_owned()
    };
    assert_ne!(hash("\"the\": 1"), hash("\"the\": 1, \"tide\": 2"));
}

/// Sizes of the corpora in the tasks. Corpora that are not on this machine are reported and skipped, because tests
/// fetch nothing.
#[test]
fn corpora_that_are_here_have_their_known_sizes() {
    type Sizes = [(usize, usize)];
    let known: [(&str, usize, &Sizes); 3] = [
        ("tinyshakespeare", 65, &[(1, 1_003_851), (1, 111_539)]),
        ("rust-code", 1411, &[(873, 14_558_985), (109, 1_681_097), (109, 2_028_613)]),
        ("sotu", 106, &[(203, 9_752_678), (24, 1_268_071), (22, 1_160_344)]),
    ];
    for (corpus, vocabulary, expected) in known {
        let meta = corpus::find(corpus).unwrap();
        if corpus::state(meta) == corpus::CorpusState::Absent {
            eprintln!("SKIPPED: corpus {corpus} is not on this machine (pe-bench data fetch)");
            continue;
        }
        let source = TextSource::Corpus(corpus.to_owned());
        let task = TextConfig { source, ..TextConfig::default() }.build().unwrap();
        let sizes: Vec<_> = task.parts().iter().map(|p| (p.documents, p.tokens)).collect();
        assert_eq!((task.vocab_size(), &sizes[..]), (vocabulary, expected), "{corpus}");
        assert_eq!(task.eval_set("validation", 256, 400, 0).unwrap().len(), 400);
    }
}
