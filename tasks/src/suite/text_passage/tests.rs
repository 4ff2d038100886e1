//! Tests of text passage.

use super::*;
use crate::TaskConfig;
use crate::passage::answer;
use crate::testing::{Example, harbour_text, write_temp};

/// Golden output of `checks::golden`: generator version and hash.
const GOLDEN: &str = "v1 97d49973df8c3e1663a694d6698a0e8912f04dd0530c334b9c2aca8e491843d0";

pub(crate) fn example() -> Example {
    let (folder, path) = write_temp(harbour_text().as_bytes());
    let config = TextPassageConfig { path: Some(path), words: 12, ..TextPassageConfig::default() };
    let mut example = Example::from_text(
        TaskConfig::from(config),
        folder,
        40,
        |prefix| answer(prefix, 63),
        GOLDEN,
    );
    // Samples are drawn, although their text is given.
    example.synthetic = true;
    example
}

#[test]
fn sentences_and_paragraphs_of_a_text_are_found() {
    let text = "\nOne two. \"Three!\" four\n\n\nFive (six) ...\nseven?\" 8.5\n";
    let shown: Vec<String> = units(text)
        .into_iter()
        .map(|unit| match unit {
            Unit::Word(word) => word,
            Unit::SentenceEnd => ".".to_owned(),
            Unit::Paragraph => "¶".to_owned(),
        })
        .collect();
    let expected = "¶ one two . three . four . ¶ five six . seven . 8.5 .";
    assert_eq!(shown.join(" "), expected);
}

#[test]
fn rare_words_are_other_and_a_text_without_sentences_is_refused() {
    let config = TextPassageConfig { words: 1, ..TextPassageConfig::default() };
    let parts = |text: &str| {
        let cut = |part| (part, crate::data::TextDocument::unnamed(text.to_owned()));
        Parts::new([Part::Train, Part::Validation].map(cut).to_vec())
    };
    let task = TextPassage::of(&parts("a b b. c b."), &config).unwrap();
    let first = config.numbers().first_word();
    let (other, b) = (first, first + 1);
    assert_eq!(task.part(Part::Train).tokens, [PARAGRAPH, other, b, b, 0, other, b, 0]);
    assert_eq!((task.token_text(other).as_str(), task.token_text(b).as_str()), (OTHER, "b"));
    assert_eq!(task.token_text(b + 1), "?");
    assert_eq!(task.splits().len(), 1);
    let said = |config| TextPassage::of(&parts(" \n"), &config).unwrap_err().to_string();
    let expected = "must be a text with sentences in its training part";
    assert_eq!(said(config), format!("text-passage: corpus is \"tinyshakespeare\", {expected}"));
    let of_path = TextPassageConfig { path: Some("a.txt".into()), ..TextPassageConfig::default() };
    assert_eq!(said(of_path), format!("text-passage: path is \"a.txt\", {expected}"));
}

#[test]
fn settings_that_name_two_texts_or_rows_of_none_are_refused() {
    let said = |json| {
        let config: TextPassageConfig = serde_json::from_str(json).unwrap();
        config.build().unwrap_err().to_string()
    };
    assert_eq!(
        said(r#"{"corpus": "sotu", "path": "a.txt"}"#),
        "text-passage: path is \"a.txt\", must be left out, because `corpus` is given"
    );
    assert_eq!(
        said(r#"{"corpus": "sotu", "field": "body"}"#),
        "text-passage: field is \"body\", must be left out, because `field` names a column of `path`, which is not \
         given"
    );
}
