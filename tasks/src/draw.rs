//! Renders a sample as lines of text.

use crate::{Sample, Task};

/// Width of a line in columns.
const WIDTH: usize = 78;

/// Renders a sample token by token, with `^` under each scored token.
///
/// Tokens are separated by a space. Inside a token, a space is shown as `·` and a line break as `↵`.
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

/// Moves a line and its marks to `lines`; without marks it is one line.
fn finish(lines: &mut Vec<String>, tokens: &mut String, marks: &mut String) {
    lines.push(tokens.trim_end().to_owned());
    if !marks.trim_end().is_empty() {
        lines.push(marks.trim_end().to_owned());
    }
    tokens.clear();
    marks.clear();
}

/// Replaces white space and control characters by visible ones.
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
    use super::visible;

    #[test]
    fn white_space_is_visible() {
        assert_eq!(visible("a \n\t"), "a·↵\\t");
    }
}
