//! Prompts of benchmark items, with examples before them.

use std::iter;

use serde::Serialize;

use super::items::BenchmarkItem;

/// Form of the prompt of a multiple-choice item.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, clap::ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum PromptStyle {
    /// The prompt is the question alone; the answers are the texts of the options.
    #[default]
    Texts,
    /// The prompt names the subject in its first line and lists the options with letters; the answers are the
    /// letters. MMLU's own evaluation has the same prompt, but with two blanks before the subject.
    Letters,
}

impl PromptStyle {
    /// Text before the answer of a multiple-choice item.
    pub fn prompt(self, question: &str, options: &[String]) -> String {
        let mut lines = match self {
            Self::Texts => vec![format!("Question: {question}")],
            Self::Letters => {
                let lettered =
                    ('A'..).zip(options).map(|(letter, option)| format!("{letter}. {option}"));
                iter::once(question.to_owned()).chain(lettered).collect()
            }
        };
        lines.push("Answer:".to_owned());
        lines.join("\n")
    }

    /// Answers among which the model chooses.
    pub fn answers(self, options: &[String]) -> Vec<String> {
        match self {
            Self::Texts => options.to_vec(),
            Self::Letters => ('A'..).map(String::from).take(options.len()).collect(),
        }
    }

    /// Text before the answer of an item, with each of its right answers.
    pub fn pairs(self, item: &BenchmarkItem) -> Vec<(String, String)> {
        match item {
            BenchmarkItem::Write { input, outputs } => {
                outputs.iter().map(|output| (input.clone(), output.clone())).collect()
            }
            BenchmarkItem::Choose { question, options, right, .. } => {
                vec![(self.prompt(question, options), self.answers(options)[*right].clone())]
            }
        }
    }

    /// Text before the examples and the question of an item.
    fn header(self, item: &BenchmarkItem) -> String {
        match (self, item.subject()) {
            (Self::Letters, Some(subject)) => format!(
                "The following are multiple choice questions (with answers) about {}.\n\n",
                subject.replace('_', " ")
            ),
            _ => String::new(),
        }
    }

    /// An item with its first right answer, as an example before another item.
    fn example(self, item: &BenchmarkItem) -> String {
        let first = self.pairs(item).into_iter().next();
        first.map(|(before, answer)| format!("{before} {answer}\n\n")).unwrap_or_default()
    }
}

/// Examples that stand before every item (few-shot).
#[derive(Debug, Clone, Copy, Default)]
pub struct Shots<'a> {
    /// Items to take examples from.
    pub items: &'a [BenchmarkItem],
    /// Number of examples before an item.
    pub count: usize,
}

impl Shots<'_> {
    /// Text before an item: with letters a line that names its subject, and the examples, the first ones of its subject, or
    /// of all if it states none. An item is not an example of itself.
    ///
    /// # Errors
    /// If there are fewer than requested.
    pub fn before(&self, item: &BenchmarkItem, style: PromptStyle) -> anyhow::Result<String> {
        let subject = item.subject();
        let fits = |example: &&BenchmarkItem| {
            *example != item && (subject.is_none() || example.subject() == subject)
        };
        let examples = self.items.iter().filter(fits).take(self.count).collect::<Vec<_>>();
        anyhow::ensure!(
            examples.len() == self.count,
            "--shots is {}, expected at most {}, the number of examples{} without the item itself in the file of \
             --examples; choose a smaller --shots, or add examples to the file",
            self.count,
            examples.len(),
            subject.map(|subject| format!(" of subject `{subject}`")).unwrap_or_default()
        );
        let examples = examples.into_iter().map(|example| style.example(example));
        Ok(iter::once(style.header(item)).chain(examples).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn item(subject: Option<&str>, question: &str) -> BenchmarkItem {
        BenchmarkItem::Choose {
            subject: subject.map(str::to_owned),
            question: question.to_owned(),
            options: vec!["one".to_owned(), "two".to_owned()],
            right: 1,
        }
    }

    #[test]
    fn examples_are_of_the_item_s_subject() {
        let items = [item(Some("sums"), "1?"), item(Some("birds"), "2?"), item(Some("sums"), "3?")];
        let shots = Shots { items: &items, count: 2 };
        let text = shots.before(&item(Some("sums"), "4?"), PromptStyle::Texts).unwrap();
        assert_eq!(text, "Question: 1?\nAnswer: two\n\nQuestion: 3?\nAnswer: two\n\n");
        let said = shots.before(&item(Some("birds"), "4?"), PromptStyle::Texts).unwrap_err();
        let expected = "at most 1, the number of examples of subject `birds`";
        assert!(said.to_string().contains(expected), "{said}");
        let write = |input: &str| BenchmarkItem::Write {
            input: input.to_owned(),
            outputs: vec!["y".to_owned()],
        };
        let one = Shots { items: &[write("x")], count: 1 };
        assert_eq!(one.before(&write("z"), PromptStyle::Texts).unwrap(), "x y\n\n");
    }

    #[test]
    fn an_item_is_not_an_example_of_itself() {
        let items = [item(None, "1?"), item(None, "2?")];
        let before = |count| Shots { items: &items, count }.before(&items[0], PromptStyle::Texts);
        assert_eq!(before(1).unwrap(), "Question: 2?\nAnswer: two\n\n");
        assert!(before(2).unwrap_err().to_string().contains("--shots is 2, expected at most 1"));
    }

    #[test]
    fn letters_list_the_options_and_answer_with_one() {
        let items = [item(None, "1?")];
        let shots = Shots { items: &items, count: 1 };
        let text = shots.before(&item(None, "2?"), PromptStyle::Letters).unwrap();
        assert_eq!(text, "1?\nA. one\nB. two\nAnswer: B\n\n");
    }

    /// The text of `gen_prompt` and `format_example` in MMLU's `evaluate.py`, with one blank before the subject.
    #[test]
    fn letters_name_the_subject_once_before_the_examples() {
        let items = [item(Some("high_school_physics"), "1?")];
        let asked = item(Some("high_school_physics"), "2?");
        let header =
            "The following are multiple choice questions (with answers) about high school physics.";
        let before = |count, style| Shots { items: &items, count }.before(&asked, style).unwrap();
        assert_eq!(before(0, PromptStyle::Letters), format!("{header}\n\n"));
        let one = format!("{header}\n\n1?\nA. one\nB. two\nAnswer: B\n\n");
        assert_eq!(before(1, PromptStyle::Letters), one);
        assert_eq!(before(0, PromptStyle::Texts), "");
    }
}
