//! Escaping of text for Markdown.

use crate::text::visible;

/// Escapes text so that Markdown renders it literally: no link, image, tag, code or heading.
pub(super) fn escape(text: &str) -> String {
    let text = visible(text);
    let mut out = String::with_capacity(text.len());
    let letters: Vec<char> = text.chars().collect();
    for (i, letter) in letters.iter().enumerate() {
        let next = letters.get(i + 1);
        let word = |at: Option<&char>| at.is_some_and(|c| c.is_alphanumeric());
        let within = i > 0 && word(letters.get(i - 1)) && word(next);
        match letter {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '\\' | '`' | '*' | '|' | '~' => out.extend(['\\', *letter]),
            '_' if !within => out.push_str("\\_"),
            // A bracket could begin a link, a definition or a footnote.
            ']' if next.is_some_and(|c| matches!(c, '(' | '[' | ':')) => out.push_str("\\]"),
            // A sign before a digit does not begin a list.
            '+' | '-' if i == 0 && next.is_some_and(char::is_ascii_digit) => out.push(*letter),
            '#' | '+' | '-' | '=' | '>' if i == 0 => out.extend(['\\', *letter]),
            shown => out.push(*shown),
        }
    }
    out
}

/// Escapes text and renders `x` between backticks as code. Unpaired backticks are literal.
pub(super) fn prose(text: &str) -> String {
    let text = visible(text);
    let parts: Vec<&str> = text.split('`').collect();
    let empty =
        parts.iter().skip(1).take(parts.len().saturating_sub(2)).any(|part| part.is_empty());
    if parts.len().is_multiple_of(2) || empty {
        return escape(&text);
    }
    let shown = parts
        .iter()
        .enumerate()
        .map(|(index, part)| if index % 2 == 1 { format!("`{part}`") } else { escape(part) });
    shown.collect()
}
