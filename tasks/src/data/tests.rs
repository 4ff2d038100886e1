//! Tests of reading files and folders that the tests write.

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;

use polars::prelude::{Column, DataFrame, NamedFrom as _, ParquetWriter, Series};
use tempfile::TempDir;

use super::*;
use crate::files::sha256_hex;
use crate::testing::write_temp;

/// Creates a folder with these files.
fn folder(files: &[(&str, &[u8])]) -> TempDir {
    let folder = TempDir::new().unwrap();
    for (name, bytes) in files {
        let path = folder.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, bytes).unwrap();
    }
    folder
}

fn parquet(rows: &[&str]) -> Vec<u8> {
    let texts: Column = Series::new("text".into(), rows).into();
    let numbers: Vec<i64> = (0..rows.len() as i64).collect();
    let numbers: Column = Series::new("id".into(), numbers).into();
    let mut frame = DataFrame::new(rows.len(), vec![numbers, texts]).unwrap();
    let mut bytes = Vec::new();
    ParquetWriter::new(&mut bytes).finish(&mut frame).unwrap();
    bytes
}

fn texts(parts: &Parts, part: Part) -> Vec<&str> {
    parts.texts(part).collect()
}

fn said(path: &std::path::Path, field: Option<&str>) -> String {
    read(path, field).unwrap_err().to_string()
}

#[test]
fn one_text_is_cut_at_nine_tenths_and_keeps_its_hash() {
    let (_folder, path) = write_temp("0123456789abcdefghé".as_bytes());
    let parts = read(&path, None).unwrap();
    assert_eq!(texts(&parts, Part::Train), ["0123456789abcdefg"]);
    assert_eq!(texts(&parts, Part::Validation), ["hé"]);
    assert_eq!(parts.sha256, sha256_hex("0123456789abcdefghé".as_bytes()));
}

#[test]
fn few_documents_are_each_cut_and_ten_are_parted_whole() {
    let few = folder(&[("a.txt", b"0123456789"), ("b/c.txt", b"abcdefghij"), ("x.md", b"no data")]);
    let parts = read(few.path(), None).unwrap();
    assert_eq!(texts(&parts, Part::Train), ["012345678", "abcdefghi"]);
    assert_eq!(texts(&parts, Part::Validation), ["9", "j"]);

    let line = |k| format!("{{\"text\": \"t{k}\", \"n\": {k}}}\n\n");
    let lines = (0..20).map(line).collect::<Vec<_>>().concat();
    let many = folder(&[("rows.jsonl", lines.as_bytes())]);
    for path in [many.path().to_path_buf(), many.path().join("rows.jsonl")] {
        let parts = read(&path, None).unwrap();
        assert_eq!(texts(&parts, Part::Validation), ["t8", "t18"]);
        assert_eq!(texts(&parts, Part::Test), ["t9", "t19"]);
        assert_eq!(texts(&parts, Part::Train).len(), 16);
    }
}

/// No text is lost or in two parts, whatever the number of documents.
#[test]
fn parts_are_disjoint_and_complete() {
    for rule in [SplitRule::ByNumber, SplitRule::ByYear] {
        for count in [1, 2, 9, 10, 11, 57] {
            let document = |k: usize| TextDocument {
                name: format!("{}-x", 1790 + k),
                text: (0..23)
                    .map(|c| char::from_u32(0x4e00 + (23 * k + c) as u32).unwrap())
                    .collect(),
            };
            let all: String = (0..count).map(|k| document(k).text).collect();
            let parts = rule.parts((0..count).map(document).collect()).unwrap();
            let got: Vec<char> = parts.documents.iter().flat_map(|(_, d)| d.text.chars()).collect();
            let distinct: BTreeSet<char> = got.iter().copied().collect();
            assert_eq!((got.len(), distinct), (23 * count, all.chars().collect()));
            let again = rule.parts((0..count).map(document).collect()).unwrap();
            assert_eq!(parts, again);
        }
    }
}

#[test]
fn years_decide_and_must_be_there() {
    let document = |name: &str| TextDocument { name: name.to_owned(), text: name.to_owned() };
    let names = ["1790-a", "1798-b", "1799-c", "1808-d", "2027-e"];
    let parts = SplitRule::ByYear.parts(names.map(document).into()).unwrap();
    assert_eq!(texts(&parts, Part::Train), ["1790-a", "2027-e"]);
    assert_eq!(texts(&parts, Part::Validation), ["1798-b", "1808-d"]);
    assert_eq!(texts(&parts, Part::Test), ["1799-c"]);
    let error = SplitRule::ByYear.parts(vec![document("speech")]).unwrap_err();
    assert!(
        error.to_string().contains("the name of document `speech` must begin with a year"),
        "{error}"
    );
}

#[test]
fn names_of_files_and_folders_say_the_parts() {
    let by_folder = folder(&[
        ("train/b.txt", b"two"),
        ("train/a.txt", b"one"),
        ("validation/c.txt", b"three"),
        ("test/d.txt", b"four"),
        ("README.md", b"about"),
        (".cache/e.txt", b"hidden"),
    ]);
    let parts = read(by_folder.path(), None).unwrap();
    assert_eq!(texts(&parts, Part::Train), ["one", "two"]);
    assert_eq!(texts(&parts, Part::Validation), ["three"]);
    assert_eq!(texts(&parts, Part::Test), ["four"]);
    let names: Vec<_> = parts.documents.iter().map(|(_, d)| d.name.as_str()).collect();
    assert_eq!(names, ["train/a.txt", "train/b.txt", "validation/c.txt", "test/d.txt"]);

    let by_file = folder(&[
        ("train-00001-of-00002.parquet", &parquet(&["c"])),
        ("train-00000-of-00002.parquet", &parquet(&["a", "b"])),
        ("validation-00000-of-00001.parquet", &parquet(&["d"])),
    ]);
    let parts = read(by_file.path(), None).unwrap();
    assert_eq!(texts(&parts, Part::Train), ["a", "b", "c"]);
    assert_eq!((texts(&parts, Part::Validation), texts(&parts, Part::Test)), (vec!["d"], vec![]));
}

#[test]
fn parts_by_name_must_be_whole() {
    let stray = folder(&[("train.txt", b"a"), ("valid.txt", b"b"), ("more.txt", b"c")]);
    assert!(said(stray.path(), None).contains("`more.txt` belongs to no part"));
    let without = folder(&[("train.txt", b"a"), ("test.txt", b"b")]);
    assert!(said(without.path(), None).contains("no part is named validation"));
    let empty = folder(&[("notes.md", b"a")]);
    let said = said(empty.path(), None);
    assert!(said.contains("has no data") && said.contains(".parquet"), "{said}");
}

#[test]
fn wikitext_is_cut_into_articles_in_both_of_its_forms() {
    const LINES: [&str; 6] =
        [" = One = \n", "text = 1 = 2\n", " = = Part = = \n", "more\n", " = Two = \n", "end\n"];
    let whole = LINES.concat();
    let raw = folder(&[
        ("wiki.train.raw", whole.as_bytes()),
        ("wiki.valid.raw", whole.as_bytes()),
        ("wiki.test.raw", b"no title\n = Three = \n"),
    ]);
    let rows = folder(&[
        ("wikitext-103-raw-v1/train-00000-of-00002.parquet", &parquet(&LINES[..2])),
        ("wikitext-103-raw-v1/train-00001-of-00002.parquet", &parquet(&LINES[2..])),
        ("wikitext-103-raw-v1/validation-00000-of-00001.parquet", &parquet(&LINES)),
        (
            "wikitext-103-raw-v1/test-00000-of-00001.parquet",
            &parquet(&["no title\n", " = Three = \n"]),
        ),
    ]);
    for path in [raw.path().to_path_buf(), rows.path().join("wikitext-103-raw-v1")] {
        let parts = read(&path, None).unwrap();
        let articles = [LINES[..4].concat(), LINES[4..].concat()];
        assert_eq!(texts(&parts, Part::Train), articles);
        assert_eq!(texts(&parts, Part::Validation), articles);
        assert_eq!(texts(&parts, Part::Test), ["no title\n", " = Three = \n"]);
        let joined = parts.with_borders(Borders::Joined);
        assert_eq!(texts(&joined, Part::Train), [whole.as_str()]);
    }
}

#[test]
fn enwik8_is_known_by_name_and_size_and_cut_at_characters() {
    let folder = TempDir::new().unwrap();
    let path: PathBuf = folder.path().join("enwik8");
    fs::write(&path, "short").unwrap();
    assert_eq!(layout::fixed_cuts(&path), None);
    // A file of zeros that takes no room.
    fs::File::create(&path).unwrap().set_len(100_000_000).unwrap();
    assert_eq!(layout::fixed_cuts(&path), Some([90_000_000, 95_000_000]));
    let parts = parts::cut_at("aé€😀b", [2, 6]);
    let got = Part::ALL.map(|part| texts(&parts, part).concat());
    assert_eq!(got, ["aé", "€", "😀b"]);
}

#[test]
fn fields_and_columns_are_chosen_and_wrong_ones_explained() {
    let (_folder, path) = write_temp(b"x");
    let lines = path.with_extension("jsonl");
    fs::write(&lines, "{\"body\": \"a\"}\n{\"body\": \"b\"}\n").unwrap();
    assert_eq!(read(&lines, Some("body")).unwrap().documents.len(), 4);
    assert!(said(&lines, None).contains("line 1: the line has no `text`, only body"));
    assert!(said(&path, Some("body")).contains("plain text, which has no fields"));
    for (line, why) in [
        ("{\"text\": \"a\"}\n{\"text\": 3}", "line 2: `text` is 3"),
        ("[1]", "line 1: the line is not an object"),
        ("{\"text\": \"a\"}\n{\"te", "line 2: EOF"),
    ] {
        fs::write(&lines, line).unwrap();
        assert!(said(&lines, None).contains(why), "{}", said(&lines, None));
    }
    let table = path.with_extension("parquet");
    fs::write(&table, parquet(&["a", "b"])).unwrap();
    assert!(said(&table, Some("body")).contains("no column `body`; columns of strings: text"));
    assert!(said(&table, Some("id")).contains("column `id` does not contain strings"));
    let texts: Column = Series::new("text".into(), [Some("a"), None]).into();
    let mut frame = DataFrame::new(2, vec![texts]).unwrap();
    ParquetWriter::new(fs::File::create(&table).unwrap()).finish(&mut frame).unwrap();
    assert!(said(&table, None).contains("row 1 of column `text` is null"));
}

/// A Parquet file that is truncated or has a changed byte in its footer gives an error or text, never a panic.
///
/// Bytes of the pages are not changed: Parquet has no mandatory hash of them, and the reader trusts their contents.
#[test]
fn damaged_parquet_is_an_error() {
    let whole = parquet(&["first row of text", "second row of text", "third"]);
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("rows.parquet");
    for cut in 1..whole.len() {
        fs::write(&path, &whole[..cut]).unwrap();
        assert!(matches!(read(&path, None), Err(DataError::Parquet { .. })), "cut at {cut}");
    }
    fs::write(&path, b"no table at all, but long enough to be one").unwrap();
    assert!(said(&path, None).contains("cannot be read as Parquet"));
    let (_, end) = whole.split_at(whole.len() - 8);
    let footer = u32::from_le_bytes(end[..4].try_into().unwrap()) as usize;
    let footer = whole.len() - 8 - footer;
    // In the headers of pages, -3 values in place of 3.
    let pages = (0..footer).filter(|at| whole[*at] == 6).map(|at| (at, 3));
    for (at, bits) in pages.chain((footer..whole.len()).map(|at| (at, 0x41))) {
        let mut damaged = whole.clone();
        damaged[at] ^= bits;
        fs::write(&path, &damaged).unwrap();
        if let Err(error) = read(&path, None) {
            let expected = matches!(error, DataError::Parquet { .. } | DataError::Column { .. });
            assert!(expected, "byte {at}: {error}");
        }
    }
}

#[test]
fn unreadable_texts_are_told_apart_with_their_path() {
    let (folder, bad) = write_temp(b"abc\xff");
    let text = said(&bad, None);
    assert!(text.contains(bad.to_str().unwrap()) && text.contains("byte 3"), "{text}");

    let text = said(&folder.path().join("nothing.txt"), None);
    assert!(text.contains("nothing.txt") && text.contains("No such file"), "{text}");

    let (_folder, empty) = write_temp(b"");
    assert!(matches!(read(&empty, None), Err(DataError::Empty { path }) if path == empty));
    assert!(matches!(read_text(folder.path()), Err(DataError::NotAFile { .. })));

    let (_folder, good) = write_temp("é\r\n".as_bytes());
    assert_eq!(read_text(&good).unwrap(), "é\r\n");
}

#[test]
fn a_byte_order_mark_is_no_character_of_a_text() {
    let lines = "{\"text\": \"abc\"}\n{\"text\": \"de\"}\n";
    for (name, content) in [("a.txt", "0123456789abcdefghé"), ("a.jsonl", lines)] {
        let of = |content: String| {
            let folder = folder(&[(name, content.as_bytes())]);
            [read(&folder.path().join(name), None), read(folder.path(), None)].map(Result::unwrap)
        };
        assert_eq!(of(format!("\u{feff}{content}")), of(content.to_owned()));
    }
    // Two files of lines, one appended to the other.
    let both = folder(&[("a.jsonl", format!("\u{feff}{lines}\u{feff}{lines}").as_bytes())]);
    let parts = read(&both.path().join("a.jsonl"), None).unwrap();
    let all = Part::ALL.map(|part| texts(&parts, part).concat()).concat();
    assert_eq!(all.len(), 2 * "abcde".len(), "{all}");
    // Within a text it is a character.
    let (_folder, within) = write_temp("a\u{feff}b".as_bytes());
    assert_eq!(read_text(&within).unwrap(), "a\u{feff}b");
    let (_folder, alone) = write_temp("\u{feff}".as_bytes());
    assert!(matches!(read_text(&alone), Err(DataError::Empty { .. })));
    let (_folder, bad) = write_temp(b"a\xff");
    assert!(said(&bad, None).contains("it is not UTF-8 from byte 1 on; save the file as UTF-8"));
    // With a mark and without one, in either order.
    for utf16 in [&b"\xff\xfea\0"[..], b"\xfe\xff\0a", b"a\0b\0", b"\0a\0b\0"] {
        let (_folder, utf16) = write_temp(utf16);
        let said = said(&utf16, None);
        assert!(said.contains("it is UTF-16; save the file as UTF-8"), "{said}");
    }
    // A character 0 is one of a text.
    let (_folder, zero) = write_temp(b"a\0bc");
    assert_eq!(read_text(&zero).unwrap(), "a\0bc");
}

/// Reading a pipe without a writer would block forever.
#[cfg(unix)]
#[test]
fn pipes_and_devices_are_refused() {
    let folder = folder(&[("a.txt", b"text")]);
    for name in ["pipe.txt", "pipe.jsonl", "pipe.parquet"] {
        let pipe = folder.path().join(name);
        let made = std::process::Command::new("mkfifo").arg(&pipe).status().unwrap();
        assert!(made.success());
        for path in [pipe.as_path(), folder.path()] {
            let said = said(path, None);
            assert!(said.contains(name) && said.contains("is not a regular file"), "{said}");
        }
        assert!(crate::tokenizer::HubTokenizer::read(&pipe).is_err());
        fs::remove_file(pipe).unwrap();
    }
    assert!(said(std::path::Path::new("/dev/zero"), None).contains("is not a regular file"));
}
