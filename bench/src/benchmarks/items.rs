//! Parser of benchmark files.

use std::path::{Path, PathBuf};

use serde::Deserialize;

/// Item of a benchmark.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BenchmarkItem {
    /// Free answer; each of the outputs is a correct answer.
    Write {
        /// Prompt that the model continues.
        input: String,
        /// Answers that count as correct.
        outputs: Vec<String>,
    },
    /// Item with a choice among given answers.
    Choose {
        /// Subject of the item, by which results are grouped; `None`: the file states none.
        subject: Option<String>,
        /// Question, after its text if it has one.
        question: String,
        /// Options to choose among.
        options: Vec<String>,
        /// Index of the right option.
        right: usize,
    },
}

impl BenchmarkItem {
    /// Subject of the item, if it states one.
    pub fn subject(&self) -> Option<&str> {
        match self {
            Self::Write { .. } => None,
            Self::Choose { subject, .. } => subject.as_deref(),
        }
    }
}

/// Error in a benchmark file.
#[derive(Debug, thiserror::Error)]
pub enum ItemError {
    /// The file cannot be read.
    #[error(transparent)]
    Io(#[from] tasks::FileError),
    /// A line does not have the fields of a known data set.
    #[error("{} line {line}: {reason}; see the fields under `pe-bench benchmark --help`", path.display())]
    Line {
        /// Path of the file.
        path: PathBuf,
        /// Number of the line, from 1.
        line: usize,
        /// Description of what is wrong.
        reason: String,
    },
    /// The file has no items.
    #[error("{} contains no item", path.display())]
    Empty {
        /// Path of the file.
        path: PathBuf,
    },
}

/// Line of a benchmark file. Other fields, such as ids, are ignored.
#[derive(Deserialize)]
#[serde(untagged)]
enum Line {
    Quality {
        article: String,
        questions: Vec<QualityQuestion>,
    },
    ArcOriginal {
        question: Stem,
        #[serde(rename = "answerKey")]
        answer_key: String,
    },
    Arc {
        question: String,
        choices: Columns,
        #[serde(rename = "answerKey")]
        answer_key: String,
    },
    Mmlu {
        question: String,
        choices: Vec<String>,
        answer: AnswerField,
        subject: Option<String>,
    },
    ScrollsMany {
        input: String,
        outputs: Vec<String>,
    },
    Scrolls {
        input: String,
        output: String,
    },
}

#[derive(Deserialize)]
struct QualityQuestion {
    question: String,
    options: Vec<String>,
    gold_label: usize,
}

#[derive(Deserialize)]
struct Stem {
    stem: String,
    choices: Vec<Labelled>,
}

#[derive(Deserialize)]
struct Labelled {
    text: String,
    label: String,
}

#[derive(Deserialize)]
struct Columns {
    text: Vec<String>,
    label: Vec<String>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum AnswerField {
    Number(usize),
    Letter(String),
}

/// Reads a JSON Lines file.
///
/// # Errors
/// [`ItemError`], with the number of the line.
pub fn read(path: &Path) -> Result<Vec<BenchmarkItem>, ItemError> {
    let text = std::fs::read_to_string(path).map_err(tasks::FileError::of("read", path))?;
    let mut items = Vec::new();
    for (index, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
        let refuse =
            |reason: String| ItemError::Line { path: path.to_owned(), line: index + 1, reason };
        let parsed = serde_json::from_str::<Line>(line).map_err(|e| {
            let known = "expected an object with the fields of SCROLLS, QuALITY, MMLU or ARC";
            refuse(if e.is_data() { known.to_owned() } else { e.to_string() })
        })?;
        for item in parsed.items().map_err(refuse)? {
            items.push(item);
        }
    }
    if items.is_empty() {
        return Err(ItemError::Empty { path: path.to_owned() });
    }
    Ok(items)
}

impl Line {
    fn items(self) -> Result<Vec<BenchmarkItem>, String> {
        let one = |item| Ok(vec![item]);
        match self {
            Self::Scrolls { input, output } => {
                one(BenchmarkItem::Write { input, outputs: vec![output] })
            }
            Self::ScrollsMany { outputs, .. } if outputs.is_empty() => {
                Err("`outputs` is empty, expected at least one text".to_owned())
            }
            Self::ScrollsMany { input, outputs } => one(BenchmarkItem::Write { input, outputs }),
            Self::Mmlu { question, choices, answer, subject } => {
                let right = match answer {
                    AnswerField::Number(right) => right,
                    AnswerField::Letter(letter) => from_letter(&letter)?,
                };
                one(choose(subject, question, choices, right)?)
            }
            Self::Arc { question, choices: Columns { text, label }, answer_key } => {
                let right = labelled(&label, &answer_key)?;
                one(choose(None, question, text, right)?)
            }
            Self::ArcOriginal { question: Stem { stem, choices }, answer_key } => {
                let (text, label): (Vec<_>, Vec<_>) =
                    choices.into_iter().map(|choice| (choice.text, choice.label)).unzip();
                let right = labelled(&label, &answer_key)?;
                one(choose(None, stem, text, right)?)
            }
            Self::Quality { article, questions } => questions
                .into_iter()
                .map(|QualityQuestion { question, options, gold_label }| {
                    let Some(right) = gold_label.checked_sub(1) else {
                        return Err("`gold_label` is 0, expected 1 or more".to_owned());
                    };
                    choose(None, format!("{article}\n\n{question}"), options, right)
                })
                .collect(),
        }
    }
}

/// Builds a multiple-choice item.
fn choose(
    subject: Option<String>,
    question: String,
    options: Vec<String>,
    right: usize,
) -> Result<BenchmarkItem, String> {
    if right >= options.len() {
        return Err(format!("answer {right} (from 0) of {} options", options.len()));
    }
    Ok(BenchmarkItem::Choose { subject, question, options, right })
}

fn from_letter(letter: &str) -> Result<usize, String> {
    match letter.trim().as_bytes() {
        [letter @ b'A'..=b'Z'] => Ok(usize::from(letter - b'A')),
        _ => Err(format!("`answer` is \"{letter}\", expected a number or one capital letter")),
    }
}

fn labelled(labels: &[String], key: &str) -> Result<usize, String> {
    let place = labels.iter().position(|label| label == key);
    place.ok_or_else(|| format!("`answerKey` is \"{key}\", expected one of {labels:?}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(lines: &str) -> Result<Vec<BenchmarkItem>, ItemError> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("items.jsonl");
        std::fs::write(&path, lines).unwrap();
        read(&path)
    }

    #[test]
    fn every_form_is_read() {
        let items = parse(concat!(
            r#"{"id": "1", "input": "Who rows?", "output": "We do."}"#,
            "\n\n",
            r#"{"input": "Who rows?", "outputs": ["We", "They"]}"#,
            "\n",
            r#"{"question": "1 + 1?", "subject": "sums", "choices": ["1", "2"], "answer": 1}"#,
            "\n",
            r#"{"question": "1 + 1?", "choices": ["1", "2"], "answer": "B"}"#,
            "\n",
            r#"{"question": "Wet?", "choices": {"text": ["sea", "sand"], "label": ["A", "B"]}, "answerKey": "A"}"#,
            "\n",
            r#"{"question": {"stem": "Wet?", "choices": [{"text": "sea", "label": "1"}]}, "answerKey": "1"}"#,
            "\n",
            r#"{"article": "A tide.", "questions": [{"question": "What?", "options": ["a", "b"], "gold_label": 2}]}"#,
            "\n",
        ))
        .unwrap();
        let right = |item: &BenchmarkItem| match item {
            BenchmarkItem::Choose { right, .. } => Some(*right),
            BenchmarkItem::Write { .. } => None,
        };
        let all = items.iter().map(right).collect::<Vec<_>>();
        assert_eq!(all, [None, None, Some(1), Some(1), Some(0), Some(0), Some(1)]);
        let BenchmarkItem::Choose { question, .. } = &items[6] else { unreachable!() };
        assert_eq!(question, "A tide.\n\nWhat?");
        assert_eq!([2, 3].map(|n| items[n].subject()), [Some("sums"), None]);
    }

    #[test]
    fn wrong_lines_are_refused_with_their_number() {
        for (line, expected) in [
            (r#"{"text": "x"}"#, "SCROLLS, QuALITY, MMLU or ARC"),
            ("{", "EOF"),
            (r#"{"question": "?", "choices": ["a"], "answer": 1}"#, "answer 1 (from 0) of 1"),
            (r#"{"question": "?", "choices": ["a"], "answer": "first"}"#, "\"first\""),
            (
                r#"{"question": "?", "choices": {"text": ["a"], "label": ["A"]}, "answerKey": "C"}"#,
                "`answerKey` is \"C\"",
            ),
            (r#"{"input": "x", "outputs": []}"#, "`outputs` is empty"),
        ] {
            let said = parse(&format!("\n{line}\n")).unwrap_err().to_string();
            assert!(said.contains("line 2") && said.contains(expected), "{line}: {said}");
        }
        assert!(matches!(parse("\n"), Err(ItemError::Empty { .. })));
    }
}
