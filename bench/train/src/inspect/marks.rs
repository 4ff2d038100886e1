//! Marks of a text: tokens at which a word, sentence or paragraph ends, by the texts of tokens.

use tasks::{Sample, Task};

/// Unit of a text whose ends are marked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TextMarks {
    /// Tokens with white space.
    Word,
    /// Tokens with `.`, `!` or `?`.
    Sentence,
    /// Tokens with `¶`, and line breaks that follow a line break.
    Paragraph,
}

impl TextMarks {
    /// Name of the unit.
    pub fn id(self) -> &'static str {
        match self {
            Self::Word => "word",
            Self::Sentence => "sentence",
            Self::Paragraph => "paragraph",
        }
    }

    /// Marks the tokens of a sample.
    pub fn of(self, task: &dyn Task, sample: &Sample) -> Vec<bool> {
        let mut before = false;
        let mark = |token: &u32| {
            let text = task.token_text(*token);
            match self {
                Self::Word => text.contains(char::is_whitespace),
                Self::Sentence => text.contains(['.', '!', '?']),
                Self::Paragraph => {
                    let after_break = before && text.trim_start_matches(' ').starts_with('\n');
                    before = text.trim_end_matches(' ').ends_with('\n')
                        || (before && text.trim().is_empty());
                    after_break || text.contains("\n\n") || text.contains('¶')
                }
            }
        };
        sample.tokens.iter().map(mark).collect()
    }
}

#[cfg(test)]
mod tests {
    use tasks::suite::text::Text;

    use super::*;

    #[test]
    fn ends_of_words_sentences_and_paragraphs_are_marked_by_character() {
        let text = "Oh! A b.\n\nC d.\n";
        let task = Text::new(&text.repeat(20)).unwrap();
        let all = task.eval_set("validation", 20, 1, 0).unwrap();
        // The validation part begins somewhere in the text; its first whole copy is found by its first letter.
        let shown = task.sample_text(&all[0]);
        let from = shown.find("Oh!").unwrap_or(0);
        let marked = |marks: TextMarks| -> Vec<usize> {
            let found = marks.of(&task, &all[0]);
            let within = found.iter().enumerate().skip(from).take(text.len());
            within.filter(|(_, marked)| **marked).map(|(at, _)| at - from).collect()
        };
        assert_eq!(&shown[from..from + 5], "Oh! A", "{shown}");
        assert!(marked(TextMarks::Sentence).starts_with(&[2, 7]), "{shown}");
        assert!(marked(TextMarks::Word).starts_with(&[3, 5, 8, 9]), "{shown}");
        assert!(marked(TextMarks::Paragraph).starts_with(&[9]), "{shown}");
    }
}
