//! Sanitizing of text from records.
//!
//! Names, reasons and hosts come from files that may have been written by anyone. Each format escapes its own special
//! characters; characters that are unsafe in all formats are replaced here by visible codes.

use std::collections::BTreeSet;
use std::fmt::{self, Write as _};

/// Replaces white space by spaces and every character that is invisible or changes the direction of the text by its
/// code, `[U+202E]`, so that the result is one line.
pub(crate) fn visible(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '\n' | '\r' | '\t' | '\u{2028}' | '\u{2029}' => out.push(' '),
            hidden if is_hidden(hidden) => {
                let _ = write!(out, "[U+{:04X}]", u32::from(hidden));
            }
            shown => out.push(shown),
        }
    }
    out
}

/// Reports whether a character is a control character, a mark or override of direction, or a zero-width space.
fn is_hidden(letter: char) -> bool {
    letter.is_control()
        || matches!(letter,
            '\u{061C}' | '\u{200B}'..='\u{200F}' | '\u{202A}'..='\u{202E}' | '\u{2060}'..='\u{206F}'
            | '\u{FEFF}')
}

/// Escaper of the HTML templates; see [`html`].
#[derive(Debug, Clone, Copy)]
pub(crate) struct HtmlEscaper;

impl askama::filters::Escaper for HtmlEscaper {
    fn write_escaped_str<W: fmt::Write>(&self, mut dest: W, text: &str) -> fmt::Result {
        dest.write_str(&html(text))
    }
}

/// Escapes text for HTML and SVG, in elements and in quoted attributes.
pub(crate) fn html(text: &str) -> String {
    visible(text)
        .replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
        .replace('\'', "&#39;")
}

/// Builds a name that every file system and every link accepts: lower-case words joined by `-`.
pub(crate) fn slug(text: &str) -> String {
    let words = text
        .split(|c: char| !c.is_ascii_alphanumeric())
        .filter(|word| !word.is_empty())
        .map(str::to_ascii_lowercase);
    let slug = words.collect::<Vec<_>>().join("-");
    // File names are limited to 255 bytes, including an extension and a number.
    slug.chars().take(120).collect()
}

/// Returns a [`slug`] that is not among `taken`, and adds it. Names that differ only in signs get a number, so that they do
/// not share a file.
pub(crate) fn unique_slug(text: &str, taken: &mut BTreeSet<String>) -> String {
    let base = slug(text);
    let numbered = (2..).map(|number| format!("{base}-{number}"));
    let mut free = std::iter::once(base.clone()).chain(numbered);
    free.find(|file| !file.is_empty() && taken.insert(file.clone())).unwrap_or_default()
}

/// Appends the texts that a list does not have yet.
pub(crate) fn add_new(list: &mut Vec<String>, texts: impl IntoIterator<Item = String>) {
    for text in texts {
        if !list.contains(&text) {
            list.push(text);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_hidden_is_shown_and_lines_do_not_break() {
        assert_eq!(visible("a\nb\u{202E}c\u{0}"), "a b[U+202E]c[U+0000]");
        assert_eq!(visible("97.1% – † ‡ ≥ 104\u{2009}000 名"), "97.1% – † ‡ ≥ 104\u{2009}000 名");
    }

    #[test]
    fn nothing_opens_a_tag_or_leaves_an_attribute() {
        assert_eq!(html("\"onload='x'<script>&"), "&quot;onload=&#39;x&#39;&lt;script&gt;&amp;");
    }

    #[test]
    fn slugs_are_short_and_plain() {
        assert_eq!(slug("../A b: c/\u{202E}"), "a-b-c");
        assert_eq!(slug(&"x".repeat(500)).len(), 120);
    }
}
