//! Markdown as text of a terminal.

use console::Style;

use super::columns::{self, width};
use super::out::{Printable, print};

/// Number of characters of a line of prose in a wide terminal.
const WIDEST: usize = 100;

/// Prints Markdown: headings bold, code coloured, paragraphs wrapped to the terminal.
pub(super) fn say_markdown(text: &str) {
    let width = width().unwrap_or(WIDEST).min(WIDEST);
    lines(text, width).iter().for_each(print);
}

fn lines(text: &str, width: usize) -> Vec<Printable> {
    let (mut lines, mut paragraph, mut is_code) = (Vec::new(), String::new(), false);
    for line in text.lines().chain([""]) {
        let is_fence = line.starts_with("```");
        let is_item = ["- ", "* ", "#"].iter().any(|mark| line.starts_with(mark))
            || (line.starts_with('`') && paragraph.ends_with('.'));
        if line.is_empty() || is_code || is_fence || is_item {
            lines.extend(wrapped(&std::mem::take(&mut paragraph), width));
        }
        if is_fence {
            is_code = !is_code;
        } else if is_code {
            lines.push(Printable::of(&format!("    {line}")));
        } else if line.is_empty() {
            lines.push(Printable::of(""));
        } else if line.starts_with('#') {
            let heading = line.trim_start_matches(['#', ' ']);
            lines.push(Printable::of(heading).styled(&Style::new().bold()));
        } else {
            paragraph = format!("{paragraph} {line}");
        }
    }
    lines.pop();
    lines
}

/// Lines of a paragraph; those after the first of an item are indented. Where there are colours, code has one in place of its
/// backticks.
fn wrapped(paragraph: &str, width: usize) -> Vec<Printable> {
    let paragraph = paragraph.trim_start();
    let indent = if paragraph.starts_with("- ") || paragraph.starts_with("* ") { "  " } else { "" };
    let is_coloured = console::colors_enabled();
    let shown = |text: &str| text.chars().filter(|c| !(is_coloured && *c == '`')).count();
    let lines = columns::wrapped(paragraph, width, indent, shown);
    let mut is_code = false;
    let line = |line: String| {
        if !is_coloured {
            return Printable::of(&line);
        }
        let parts = line.split('`').enumerate().map(|(at, part)| {
            is_code ^= at > 0;
            let part = Printable::of(part);
            if is_code { part.styled(&Style::new().cyan()) } else { part }
        });
        Printable::joined(parts)
    };
    lines.into_iter().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markdown_is_wrapped_and_without_colours_keeps_the_marks_of_code() {
        let text = "# A `b`\n\n## Settings\n`width` (4): how wide the\ntable is, in entries.\n`sharing`: none.\n- an item \
                    that is long `with code` in it\n\n**Bold** begins a line, or\n`code` does, which is\n**no** item\n```text\na   b\n```\nend\n";
        let lines = lines(text, 24);
        let lines = lines.iter().map(Printable::as_str).collect::<Vec<_>>();
        let expected = [
            "A `b`",
            "",
            "Settings",
            "`width` (4): how wide",
            "the table is, in",
            "entries.",
            "`sharing`: none.",
            "- an item that is long",
            "  `with code` in it",
            "",
            "**Bold** begins a line,",
            "or `code` does, which is",
            "**no** item",
            "    a   b",
            "end",
        ];
        assert_eq!(lines, expected);
    }
}
