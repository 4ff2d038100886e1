//! Tests of cached tokens: reused when intact, detected when damaged.

use std::fs;

use tempfile::TempDir;

use super::*;
use super::{Encoded, encode};
use crate::data::{Borders, Part, Parts, TextDocument};
use crate::testing::harbour_text;
use crate::tokenizer::{Bytes, Gpt2, Tokenizer};

fn parts() -> Parts {
    let document = |text: &str| TextDocument { name: String::new(), text: text.to_owned() };
    let text = harbour_text();
    Parts::new(vec![
        (Part::Train, document(&text)),
        (Part::Train, document("")),
        (Part::Validation, document("a short one")),
    ])
}

fn open(cache: &Path) -> LoadedTokens {
    open_or_encode(&parts(), Borders::Apart, &Gpt2::new().unwrap(), cache).unwrap()
}

fn file_in(cache: &Path) -> PathBuf {
    let files = fs::read_dir(cache.join("tokens")).unwrap().map(|entry| entry.unwrap().path());
    let files: Vec<_> = files.collect();
    assert_eq!(files.len(), 1, "{files:?}");
    files[0].clone()
}

fn same(found: &LoadedTokens) {
    let encoded = encode(&parts(), &Gpt2::new().unwrap()).unwrap();
    assert_eq!(found.tokens.copy(0..encoded.tokens.len()), encoded.tokens);
    assert_eq!(found.tokens.copy(5..9), encoded.tokens[5..9]);
    assert_eq!(found.spans, encoded.spans);
    assert!(found.exact);
}

#[test]
fn tokens_are_made_once_and_found_again() {
    let cache = TempDir::new().unwrap();
    let first = open(cache.path());
    let path = file_in(cache.path());
    assert_eq!(first.origin, Origin::Made(path.clone()));
    same(&first);
    let before = fs::metadata(&path).unwrap().modified().unwrap();
    let second = open(cache.path());
    assert_eq!(second.origin, Origin::Reused(path.clone()));
    assert_eq!(fs::metadata(&path).unwrap().modified().unwrap(), before);
    same(&second);
}

#[test]
fn damaged_file_is_found_out_repaired_and_said() {
    let cache = TempDir::new().unwrap();
    open(cache.path());
    let path = file_in(cache.path());
    let whole = fs::read(&path).unwrap();
    // Every byte of the header and of the documents, and some of the tokens, one bit each.
    let places = (0..128 + 3 * 24).chain((200..whole.len()).step_by(101)).chain([whole.len() - 1]);
    for (k, at) in places.enumerate() {
        let mut damaged = whole.clone();
        damaged[at] ^= 1 << (k % 8);
        fs::write(&path, &damaged).unwrap();
        // The header alone decides most cases; a whole repair for each would be slow.
        let key = whole[32..64].try_into().unwrap();
        assert!(file::open(&path, 50_257, key).is_err(), "byte {at}");
    }
    let longer = [&whole[..], b"more"].concat();
    for damaged in [&whole[..whole.len() - 1], &whole[..50], b"", &longer, b"garbage"] {
        fs::write(&path, damaged).unwrap();
        let found = open(cache.path());
        assert!(
            matches!(&found.origin, Origin::Repaired { path: p, why } if *p == path && !why.is_empty())
        );
        same(&found);
        assert_eq!(fs::read(&path).unwrap(), whole);
    }
    assert!(matches!(open(cache.path()).origin, Origin::Reused(_)));
}

#[test]
fn other_text_borders_or_tokenizer_are_other_files() {
    let cache = TempDir::new().unwrap();
    let gpt2 = Gpt2::new().unwrap();
    open(cache.path());
    let joined = parts().with_borders(Borders::Joined);
    open_or_encode(&joined, Borders::Joined, &gpt2, cache.path()).unwrap();
    let mut other = parts();
    other.documents.pop();
    open_or_encode(&Parts::new(other.documents), Borders::Apart, &gpt2, cache.path()).unwrap();
    assert_eq!(fs::read_dir(cache.path().join("tokens")).unwrap().count(), 3);
}

#[test]
fn quick_tokenizers_leave_no_file_for_small_texts() {
    let cache = TempDir::new().unwrap();
    let found = open_or_encode(&parts(), Borders::Apart, &Bytes, cache.path()).unwrap();
    assert_eq!(found.origin, Origin::Memory);
    assert_eq!(fs::read_dir(cache.path()).unwrap().count(), 0);
}

#[test]
fn both_widths_hold_every_token() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("wide.tok");
    for (vocabulary, width) in [(1 << 16, 2), ((1 << 16) + 1, 4)] {
        let tokens: Vec<u32> = vec![0, 1, 255, 256, 65_535, vocabulary - 1];
        let spans = vec![Span { part: Part::Test, end: tokens.len(), bytes: 12 }];
        let encoded = Encoded { tokens: tokens.clone(), spans: spans.clone(), exact: false };
        let bytes = file::to_bytes(&encoded, vocabulary as usize, [7; 32]);
        assert_eq!(bytes.len(), 128 + 24 + width * tokens.len());
        replace_file(&path, &bytes).unwrap();
        let (mapped, found, exact) = file::open(&path, vocabulary as usize, [7; 32]).unwrap();
        assert_eq!((mapped.copy(0..tokens.len()), found, exact), (tokens, spans, false));
        // The file of another key, and of a vocabulary that its ids leave, are not believed.
        assert!(file::open(&path, vocabulary as usize, [8; 32]).is_err());
        assert!(file::open(&path, 200, [7; 32]).unwrap_err().contains("outside the vocabulary"));
    }
}

#[test]
fn cache_that_cannot_be_written_is_named_with_the_next_step() {
    let folder = TempDir::new().unwrap();
    let in_the_way = folder.path().join("file");
    fs::write(&in_the_way, "x").unwrap();
    let gpt2 = Gpt2::new().unwrap();
    let error = open_or_encode(&parts(), Borders::Apart, &gpt2, &in_the_way).unwrap_err();
    let said = error.to_string();
    assert!(said.contains("file/tokens") && said.contains("PE_ZOO_CACHE"), "{said}");
    assert_eq!(fs::read(&in_the_way).unwrap(), b"x");
}

#[test]
fn many_processes_may_ask_at_once() {
    let cache = TempDir::new().unwrap();
    std::thread::scope(|scope| {
        let opened: Vec<_> = (0..4).map(|_| scope.spawn(|| open(cache.path()))).collect();
        for found in opened {
            same(&found.join().unwrap());
        }
    });
    file_in(cache.path());
}

#[test]
fn tokens_that_do_not_add_up_to_the_text_are_known() {
    #[derive(Debug)]
    struct Forgetful;
    impl Tokenizer for Forgetful {
        fn vocab_size(&self) -> usize {
            256
        }
        fn encode(&self, text: &str, tokens: &mut Vec<u32>) -> Result<(), crate::TokenizerError> {
            tokens.extend(text.trim().bytes().map(u32::from));
            Ok(())
        }
        fn bytes(&self, token: u32) -> Option<std::borrow::Cow<'_, [u8]>> {
            Bytes.bytes(token)
        }
        fn sha256(&self) -> String {
            String::new()
        }
    }
    assert!(!encode(&parts(), &Forgetful).unwrap().exact);
    assert!(encode(&parts(), &Bytes).unwrap().exact);
}
