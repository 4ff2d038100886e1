//! Parser of benchmark files.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Result, anyhow, ensure};
use serde::Deserialize;
use serde_json::Value;

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

/// Line of a benchmark file. Other fields are ignored.
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
        id: Option<Value>,
        input: String,
        outputs: Vec<String>,
    },
    Scrolls {
        id: Option<Value>,
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

/// Reads a JSON Lines file. Lines of SCROLLS with the same `id` are one item with several outputs, at the place of the
/// first, as in the data set's evaluator.
///
/// # Errors
/// If the file has no items, or a line does not have the fields of a known data set, with its number.
pub fn read(path: &Path) -> Result<Vec<BenchmarkItem>> {
    let text = tasks::read_text(path)?;
    let mut items = Vec::new();
    // Number of the line, and index of the item, with each id.
    let mut places = BTreeMap::<String, (usize, usize)>::new();
    for (number, line) in tasks::json_lines(&text) {
        let refuse = |reason: String| {
            let path = path.display();
            anyhow!(
                "{path} line {number}: {reason}; see the fields under `pe-bench benchmark --help`"
            )
        };
        let parsed = serde_json::from_str::<Line>(line).map_err(|e| {
            let known = "expected an object with the fields of SCROLLS, QuALITY, MMLU or ARC";
            refuse(if e.is_data() { known.to_owned() } else { e.to_string() })
        })?;
        let id = parsed.id();
        let read = parsed.items().map_err(refuse)?;
        if let Some(id) = id {
            let (first, place) = *places.entry(id.clone()).or_insert((number, items.len()));
            let pair = (items.get_mut(place), &*read);
            if let (
                Some(BenchmarkItem::Write { input, outputs }),
                [BenchmarkItem::Write { input: other, outputs: more }],
            ) = pair
            {
                if input != other {
                    return Err(refuse(format!(
                        "`id` is {id} as in line {first}, but `input` differs; expected the same input with another \
                         output, or another id"
                    )));
                }
                outputs.extend_from_slice(more);
                continue;
            }
        }
        items.extend(read);
    }
    ensure!(!items.is_empty(), "{} contains no item", path.display());
    Ok(items)
}

impl Line {
    /// Id that other outputs of the same input share, as JSON.
    fn id(&self) -> Option<String> {
        match self {
            Self::Scrolls { id, .. } | Self::ScrollsMany { id, .. } => {
                id.as_ref().map(Value::to_string)
            }
            _ => None,
        }
    }

    fn items(self) -> Result<Vec<BenchmarkItem>, String> {
        let one = |item| Ok(vec![item]);
        match self {
            Self::Scrolls { input, output, .. } => {
                let input = tasks::without_mark(&input).to_owned();
                one(BenchmarkItem::Write { input, outputs: vec![output] })
            }
            Self::ScrollsMany { outputs, .. } if outputs.is_empty() => {
                Err("`outputs` is empty, expected at least one text".to_owned())
            }
            Self::ScrollsMany { input, outputs, .. } => {
                let input = tasks::without_mark(&input).to_owned();
                one(BenchmarkItem::Write { input, outputs })
            }
            Self::Mmlu { question, choices, answer, subject } => {
                let right = match answer {
                    AnswerField::Number(right) => right,
                    AnswerField::Letter(letter) => from_letter(&letter)?,
                };
                one(choose(subject, &question, choices, right)?)
            }
            Self::Arc { question, choices: Columns { text, label }, answer_key } => {
                if label.len() != text.len() {
                    let (texts, labels) = (text.len(), label.len());
                    return Err(format!(
                        "{texts} texts and {labels} labels, expected a label for each text"
                    ));
                }
                let right = labelled(&label, &answer_key)?;
                one(choose(None, &question, text, right)?)
            }
            Self::ArcOriginal { question: Stem { stem, choices }, answer_key } => {
                let (text, label): (Vec<_>, Vec<_>) =
                    choices.into_iter().map(|choice| (choice.text, choice.label)).unzip();
                let right = labelled(&label, &answer_key)?;
                one(choose(None, &stem, text, right)?)
            }
            Self::Quality { article, questions } => questions
                .into_iter()
                .map(|QualityQuestion { question, options, gold_label }| {
                    let Some(right) = gold_label.checked_sub(1) else {
                        return Err("`gold_label` is 0, expected 1 or more".to_owned());
                    };
                    choose(None, &format!("{article}\n\n{question}"), options, right)
                })
                .collect(),
        }
    }
}

/// Builds a multiple-choice item.
fn choose(
    subject: Option<String>,
    question: &str,
    options: Vec<String>,
    right: usize,
) -> Result<BenchmarkItem, String> {
    if right >= options.len() {
        return Err(format!(
            "the answer is option {right}, counted from 0, but the number of options is {}",
            options.len()
        ));
    }
    if options.len() < 2 {
        return Err("there is one option, expected at least two".to_owned());
    }
    let question = tasks::without_mark(question).to_owned();
    Ok(BenchmarkItem::Choose { subject, question, options, right })
}

fn from_letter(letter: &str) -> Result<usize, String> {
    match letter.trim().as_bytes() {
        [letter @ b'A'..=b'Z'] => Ok(usize::from(letter - b'A')),
        _ => Err(format!("`answer` is \"{letter}\", expected a number or one capital letter")),
    }
}

fn labelled(labels: &[String], key: &str) -> Result<usize, String> {
    if let Some(label) = labels.iter().enumerate().find(|(at, label)| labels[..*at].contains(label))
    {
        return Err(format!("two options have the label \"{}\"", label.1));
    }
    let place = labels.iter().position(|label| label == key);
    place.ok_or_else(|| format!("`answerKey` is \"{key}\", expected one of {labels:?}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(lines: &str) -> Result<Vec<BenchmarkItem>> {
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
            r#"{"question": {"stem": "Wet?", "choices": [{"text": "sea", "label": "1"}, {"text": "sand", "label": "2"}]}, "answerKey": "1"}"#,
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
    fn options_must_be_told_apart_and_marks_are_no_part_of_a_question() {
        let arc = |text: &str, label: &str| {
            let line = format!(
                r#"{{"question": "Wet?", "choices": {{"text": {text}, "label": {label}}}, "answerKey": "A"}}"#
            );
            parse(&line).unwrap_err().to_string()
        };
        let twice = arc(r#"["sea", "sand"]"#, r#"["A", "A"]"#);
        assert!(twice.contains("two options have the label \"A\""), "{twice}");
        let uneven = arc(r#"["sea", "sand"]"#, r#"["A"]"#);
        assert!(uneven.contains("2 texts and 1 labels"), "{uneven}");
        assert!(arc(r#"["sea"]"#, r#"["A"]"#).contains("one option, expected at least two"));
        let marked =
            parse("{\"question\": \"\u{feff}1?\", \"choices\": [\"1\", \"2\"], \"answer\": 0}");
        let BenchmarkItem::Choose { question, .. } = &marked.unwrap()[0] else { unreachable!() };
        assert_eq!(question, "1?");
    }

    #[test]
    fn a_byte_order_mark_is_no_part_of_a_line() {
        let line = r#"{"input": "Who rows?", "output": "We do."}"#;
        let both = parse(&format!("\u{feff}{line}\r\n\u{feff}{line}\n")).unwrap();
        assert_eq!(both, parse(&format!("{line}\n{line}\n")).unwrap());
    }

    /// As the evaluator of SCROLLS does with the several answers to a question of Qasper and NarrativeQA.
    #[test]
    fn lines_with_one_id_are_one_item_with_all_their_outputs() {
        let line = |id: Value, input: &str, output: &str| {
            serde_json::json!({ "id": id, "input": input, "output": output }).to_string()
        };
        let [one, two] = [Value::from("1"), Value::from("2")];
        let lines = [
            line(one.clone(), "Who rows?", "We do."),
            line(two.clone(), "Who rows?", "They do."),
            line(one.clone(), "Who rows?", "Us."),
            line(Value::Null, "Who rows?", "I do."),
            line(Value::Null, "Who rows?", "You do."),
            line(1.into(), "Who rows?", "He does."),
            r#"{"id": "2", "input": "Who rows?", "outputs": ["Them.", "It."]}"#.to_owned(),
        ];
        let outputs = |item| match item {
            BenchmarkItem::Write { outputs, .. } => outputs,
            BenchmarkItem::Choose { .. } => Vec::new(),
        };
        let read = parse(&lines.join("\n")).unwrap().into_iter().map(outputs).collect::<Vec<_>>();
        let expected: [&[&str]; 5] = [
            &["We do.", "Us."],
            &["They do.", "Them.", "It."],
            &["I do."],
            &["You do."],
            &["He does."],
        ];
        assert_eq!(read, expected);
        let lines =
            [line(one.clone(), "Who?", "We"), line(two, "Who?", "We"), line(one, "Why?", "So")];
        let said = parse(&lines.join("\n")).unwrap_err().to_string();
        assert!(said.contains("line 3: `id` is \"1\" as in line 1, but `input` differs"), "{said}");
    }

    #[test]
    fn wrong_lines_are_refused_with_their_number() {
        for (line, expected) in [
            (r#"{"text": "x"}"#, "SCROLLS, QuALITY, MMLU or ARC"),
            ("{", "EOF"),
            (
                r#"{"question": "?", "choices": ["a"], "answer": 1}"#,
                "the answer is option 1, counted from 0, but the number of options is 1",
            ),
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
        assert!(parse("\n").unwrap_err().to_string().ends_with("contains no item"));
    }
}
