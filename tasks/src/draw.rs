//! A sample as people read it.

use crate::{Sample, Task};

/// Columns after which a drawing starts a new line.
const WIDTH: usize = 78;

/// Draws a sample token by token, with `^` under each token that is scored.
///
/// Tokens are separated by a blank; inside a token a blank is shown as `·` and a line end as `↵`.
pub fn draw(task: &dyn Task, sample: &Sample) -> String {
    let mut lines: Vec<String> = Vec::new();
    let (mut tokens, mut marks, mut column) = (String::new(), String::new(), 0);
    for (token, scored) in sample.tokens.iter().zip(&sample.scored) {
        let text = visible(&task.token_text(*token));
        let width = text.chars().count();
        if column > 0 && column + width > WIDTH {
            finish(&mut lines, &mut tokens, &mut marks);
            column = 0;
        }
        tokens.push_str(&text);
        tokens.push(' ');
        let mark = if *scored { "^" } else { " " };
        marks.push_str(&mark.repeat(width));
        marks.push(' ');
        column += width + 1;
    }
    finish(&mut lines, &mut tokens, &mut marks);
    lines.join("\n")
}

/// Moves a row and its marks to `lines`; a row without marks needs only one line.
fn finish(lines: &mut Vec<String>, tokens: &mut String, marks: &mut String) {
    lines.push(tokens.trim_end().to_owned());
    if !marks.trim_end().is_empty() {
        lines.push(marks.trim_end().to_owned());
    }
    tokens.clear();
    marks.clear();
}

/// Makes white space and control characters visible.
fn visible(text: &str) -> String {
    text.chars()
        .map(|c| match c {
            ' ' => "·".to_owned(),
            '\n' => "↵".to_owned(),
            c if c.is_control() => c.escape_debug().to_string(),
            c => c.to_string(),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::TaskConfig;

    #[test]
    fn marks_stand_under_scored_tokens_also_after_a_line_break() {
        let task = TaskConfig::from_id("counting").unwrap().build().unwrap();
        // Token 0 is `pass;`: 13 of them fill a line of 78 columns.
        let sample = Sample {
            tokens: vec![0; 15],
            scored: (0..15).map(|t| t == 1 || t == 14).collect(),
            slices: Vec::new(),
        };
        let first = ["pass;"; 13].join(" ");
        let expected = format!("{first}\n      ^^^^^\npass; pass;\n      ^^^^^");
        assert_eq!(draw(task.as_ref(), &sample), expected);
    }

    #[test]
    fn white_space_is_visible() {
        assert_eq!(visible("a \n\t"), "a·↵\\t");
    }
}
