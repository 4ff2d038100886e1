//! Tests every tokenizer on invented texts.

use tempfile::TempDir;

use super::readable;
use super::*;
use crate::data::{Part, SplitRule, TextDocument};
use crate::testing::harbour_text;

const SAMPLES: [&str; 7] = [
    "The ferry leaves at 7.",
    "  two  spaces,\ttab\r\n\n\n   and breaks   ",
    "Zoé drinks a café crème — naïve, isn't it?",
    "日本語とかな、emoji 🚢👩‍🚀 and e\u{301}",
    "<|endoftext|> is text here; {\"a\": [1, 2]}",
    "fn main() { println!(\"{}\", 0x1f_u32); }",
    "\u{0}\u{7f}\u{feff}\u{10ffff}",
];

fn parts() -> Parts {
    let text = harbour_text() + &SAMPLES.concat();
    let document = TextDocument { name: String::new(), text };
    Parts { documents: vec![(Part::Train, document)], sha256: String::new() }
}

fn built(config: &TokenizerConfig, cache: &Path) -> Arc<dyn Tokenizer> {
    config.build(&parts(), cache).unwrap().0
}

fn encode(tokenizer: &dyn Tokenizer, text: &str) -> Vec<u32> {
    let mut tokens = Vec::new();
    tokenizer.encode(text, &mut tokens).unwrap();
    tokens
}

/// Writes a byte-level `tokenizer.json` with a special token and learned byte pairs.
fn tokenizer_json(cache: &Path) -> PathBuf {
    let json = learned::tests::learned_json(&parts(), 300);
    let mut tokenizer: tokenizers::Tokenizer = json.parse().unwrap();
    let end = tokenizers::AddedToken::from("<end>", true);
    tokenizer.add_special_tokens([end]).unwrap();
    let path = cache.join("tokenizer.json");
    tokenizer.save(&path, false).unwrap();
    path
}

fn all(cache: &Path) -> Vec<TokenizerConfig> {
    let file = TokenizerConfig::File(tokenizer_json(cache));
    vec![
        TokenizerConfig::Chars,
        TokenizerConfig::Bytes,
        TokenizerConfig::Gpt2,
        file,
        TokenizerConfig::Bpe(300),
    ]
}

#[test]
fn every_tokenizer_gives_every_text_back() {
    let cache = TempDir::new().unwrap();
    for config in all(cache.path()) {
        let tokenizer = built(&config, cache.path());
        for sample in SAMPLES.into_iter().chain(["", &harbour_text()]) {
            let tokens = encode(&*tokenizer, sample);
            assert!(tokens.iter().all(|token| (*token as usize) < tokenizer.vocab_size()));
            assert_eq!(tokenizer.decode(&tokens), sample, "{config:?}");
            let bytes: Vec<_> = tokens.iter().map(|t| tokenizer.bytes(*t).unwrap()).collect();
            assert_eq!(bytes.concat(), sample.as_bytes(), "{config:?}");
        }
        let outside = tokenizer.vocab_size() as u32;
        assert_eq!((tokenizer.bytes(outside), tokenizer.decode(&[outside]).as_str()), (None, "?"));
    }
}

#[test]
fn vocabularies_have_the_sizes_asked_for() {
    let cache = TempDir::new().unwrap();
    let sizes =
        all(cache.path()).iter().map(|c| built(c, cache.path()).vocab_size()).collect::<Vec<_>>();
    let chars =
        parts().documents[0].1.text.chars().collect::<std::collections::BTreeSet<_>>().len();
    assert_eq!(sizes, [chars, 256, 50_257, 301, 300]);
}

/// Numbers from OpenAI's `encoder.json`: "Hello world" and " the" are 15496 995 and 262.
#[test]
fn gpt2_has_its_published_ids() {
    let gpt2 = Gpt2::new().unwrap();
    assert_eq!(encode(&gpt2, "Hello world the"), [15496, 995, 262]);
    assert_eq!(gpt2.bytes(50_256).unwrap(), &b"<|endoftext|>"[..]);
}

#[test]
fn characters_are_sorted_and_unknown_ones_refused() {
    let chars = Chars::of(["bé€a", "😀a"].into_iter());
    assert_eq!(encode(&chars, "abé€😀"), [0, 1, 2, 3, 4]);
    let error = chars.encode("z", &mut Vec::new()).unwrap_err();
    assert!(error.to_string().contains("'z' is not in its alphabet"), "{error}");
}

#[test]
fn split_characters_are_shown_as_bytes() {
    assert_eq!(Bytes.decode(&encode(&Bytes, "aé")[..2]), "a<0xC3>");
    assert_eq!(readable(b"a\xffb"), "a<0xFF>b");
}

#[test]
fn hashes_tell_tokenizers_apart() {
    let cache = TempDir::new().unwrap();
    let mut hashes: Vec<_> =
        all(cache.path()).iter().map(|c| built(c, cache.path()).sha256()).collect();
    hashes.push(Chars::of(["ab"].into_iter()).sha256());
    hashes.push(built(&TokenizerConfig::Bpe(301), cache.path()).sha256());
    let distinct: std::collections::BTreeSet<_> = hashes.iter().collect();
    assert_eq!(distinct.len(), hashes.len());
}

#[test]
fn learning_is_the_same_each_time_kept_and_repaired() {
    let cache = TempDir::new().unwrap();
    let build = |cache: &Path| TokenizerConfig::Bpe(300).build(&parts(), cache).unwrap();
    let (first, note) = build(cache.path());
    assert_eq!(note, None);
    let folder = cache.path().join("tokenizers");
    let files: Vec<_> = std::fs::read_dir(&folder).unwrap().map(|e| e.unwrap().path()).collect();
    let [file] = &files[..] else { panic!("{files:?}") };
    let kept = std::fs::read(file).unwrap();
    let other = TempDir::new().unwrap();
    assert_eq!(first.sha256(), build(other.path()).0.sha256());

    // The file was reused: a rewritten one would have another modification time.
    let before = std::fs::metadata(file).unwrap().modified().unwrap();
    assert_eq!(build(cache.path()).1, None);
    assert_eq!(std::fs::metadata(file).unwrap().modified().unwrap(), before);

    for damage in [kept.len() / 2, 3, kept.len() - 2] {
        let mut damaged = kept.clone();
        damaged[damage] ^= 1;
        std::fs::write(file, &damaged).unwrap();
        let (again, note) = build(cache.path());
        assert!(note.unwrap().contains("damaged"));
        assert_eq!(again.sha256(), first.sha256());
        assert_eq!(std::fs::read(file).unwrap(), kept);
    }
}

#[test]
fn sizes_that_cannot_be_are_refused() {
    let cache = TempDir::new().unwrap();
    let said = |size, parts: &Parts| {
        TokenizerConfig::Bpe(size).build(parts, cache.path()).map(|_| ()).unwrap_err().to_string()
    };
    assert!(said(256, &parts()).contains("tokenizer.bpe is 256, must be between 257"));
    let short = vec![TextDocument { name: String::new(), text: "abababab cd cd".repeat(9) }];
    let short = SplitRule::ByNumber.parts(short).unwrap();
    assert!(said(5000, &short).contains("has pairs for"), "{}", said(5000, &short));
    assert!(!cache.path().join("tokenizers").exists());
}

/// A `tokenizer.json` truncated anywhere gives an error, never a panic.
#[test]
fn damaged_tokenizer_files_are_errors_with_their_path() {
    let cache = TempDir::new().unwrap();
    let path = tokenizer_json(cache.path());
    let whole = std::fs::read(&path).unwrap();
    let said = |bytes: &[u8]| {
        std::fs::write(&path, bytes).unwrap();
        HubTokenizer::read(&path).unwrap_err().to_string()
    };
    for cut in (0..whole.len()).step_by(97) {
        let said = said(&whole[..cut]);
        assert!(said.contains("as a tokenizer.json"), "{said}");
    }
    for wrong in ["{\"model\": {}}", "{\"decoder\": 3}", "[]", "null", "{\"added_tokens\": [1]}"] {
        assert!(said(wrong.as_bytes()).contains("as a tokenizer.json"), "{wrong}");
    }
    assert!(said(b"\xff\xfe").contains("as a tokenizer.json"));
    let missing = HubTokenizer::read(&cache.path().join("none.json")).unwrap_err();
    assert!(missing.to_string().contains("none.json"), "{missing}");
}

/// Lower-casing loses bytes, so tokens have no fixed bytes of the text, and the tokenizer must not claim that they
/// do.
#[test]
fn tokenizer_that_changes_the_text_is_read_and_known_as_such() {
    let json = r#"{"version": "1.0", "truncation": null, "padding": null, "added_tokens": [],
        "normalizer": {"type": "Lowercase"}, "pre_tokenizer": {"type": "Whitespace"},
        "post_processor": null, "decoder": null,
        "model": {"type": "WordLevel", "vocab": {"[UNK]": 0, "hello": 1, "größe": 2}, "unk_token": "[UNK]"}}"#;
    let tokenizer = HubTokenizer::from_json(json.as_bytes()).unwrap();
    assert_eq!(encode(&tokenizer, "Hello Größe there"), [1, 2, 0]);
    assert_eq!(tokenizer.decode(&[1]), "hello");
    assert_eq!(tokenizer.bytes(1), None);
    // Both letters stand for bytes in byte-level vocabularies.
    assert_eq!(tokenizer.decode(&[2]), "größe");
}

/// Options of a file for training and for batches do not change the tokens of a text.
#[test]
fn truncation_padding_stride_and_dropout_of_a_file_change_no_tokens() {
    let json = learned::tests::learned_json(&parts(), 400);
    let mut file: serde_json::Value = json.parse().unwrap();
    let plain = HubTokenizer::from_json(json.as_bytes()).unwrap();
    let text = harbour_text();
    let expected = encode(&plain, &text);
    let truncation = serde_json::json!(
        {"direction": "Right", "max_length": 4, "strategy": "LongestFirst", "stride": 2});
    let padding = serde_json::json!({"strategy": {"Fixed": 9000}, "direction": "Right",
        "pad_to_multiple_of": null, "pad_id": 1, "pad_type_id": 0, "pad_token": "!"});
    for (key, value) in [("truncation", truncation), ("padding", padding)] {
        file[key] = value;
        let read = HubTokenizer::from_json(file.to_string().as_bytes()).unwrap();
        assert_eq!(encode(&read, &text), expected, "{key}");
    }
    file["truncation"]["stride"] = 4.into();
    let read = HubTokenizer::from_json(file.to_string().as_bytes()).unwrap();
    assert_eq!(encode(&read, &text), expected, "stride");
    for rate in [0.5, 1.0] {
        file["model"]["dropout"] = rate.into();
        let json = file.to_string();
        let read = HubTokenizer::from_json(json.as_bytes()).unwrap();
        assert_eq!(encode(&read, &text), expected, "dropout");
        assert_ne!(read.sha256(), crate::files::sha256_hex(json.as_bytes()));
        assert_eq!(
            load(json.as_bytes()).unwrap().encode_fast(&text[..], true).unwrap().get_ids(),
            expected
        );
    }
}

#[test]
fn sparse_ids_are_refused_with_numbers() {
    let json = |id: u32| {
        format!(
            r#"{{"version": "1.0", "added_tokens": [], "normalizer": null, "pre_tokenizer": {{"type": "Whitespace"}},
            "model": {{"type": "WordLevel", "vocab": {{"a": 0, "b": {id}}}, "unk_token": "a"}}}}"#
        )
    };
    for id in [u32::MAX, 4_000_000_000, 1028] {
        let said = HubTokenizer::from_json(json(id).as_bytes()).unwrap_err();
        assert_eq!(said, format!("it has 2 tokens with ids up to {id}, expected ids below 1028"));
    }
    assert_eq!(HubTokenizer::from_json(json(1027).as_bytes()).unwrap().vocab_size(), 1028);
}

#[test]
fn files_of_tokenizers_give_the_same_tokens_and_texts() {
    let cache = TempDir::new().unwrap();
    let with_file = all(cache.path()).into_iter().filter(|config| *config != TokenizerConfig::Gpt2);
    for config in with_file {
        let own = built(&config, cache.path());
        let read = HubTokenizer::from_json(own.json().unwrap().as_bytes()).unwrap();
        assert_eq!(read.vocab_size(), own.vocab_size(), "{config:?}");
        for text in SAMPLES {
            let tokens = encode(&*own, text);
            assert_eq!(encode(&read, text), tokens, "{config:?}: {text:?}");
            assert_eq!(read.decode(&tokens), own.decode(&tokens), "{config:?}");
        }
    }
    // A character outside the alphabet has no token in either form.
    let chars = Chars::of(["ab "].into_iter());
    let read = HubTokenizer::from_json(chars.json().unwrap().as_bytes()).unwrap();
    assert!(chars.encode("abc", &mut Vec::new()).is_err());
    assert!(read.encode("abc", &mut Vec::new()).is_err());
}
