//! Pieces of a line of HTML.

use std::borrow::Borrow;

use askama::Template;

use crate::formats::chart::MarkStyle;
use crate::text::html as escape;

/// Escapes text and renders `x` between backticks as code.
pub(super) fn prose(text: &str) -> String {
    let mut out = String::new();
    for (index, part) in text.split('`').enumerate() {
        if index > 0 {
            out.push_str(if index % 2 == 1 { "<code>" } else { "</code>" });
        }
        out.push_str(&escape(part));
    }
    if text.matches('`').count() % 2 == 1 {
        out.push_str("</code>");
    }
    out
}

/// Renders the mark of an encoding in its colour.
pub(super) fn swatch(look: impl Borrow<usize>) -> String {
    let MarkStyle { colour, marker, .. } = MarkStyle::of(*look.borrow());
    format!("<i class=\"k c{colour} m{marker}\"></i>")
}

/// Renders a template to a string.
pub(super) fn rendered<T: Template>(template: &T) -> String {
    let mut out = String::with_capacity(T::SIZE_HINT);
    // Writing to a string cannot fail.
    let _ = template.render_into(&mut out);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn backticks_become_code_even_when_one_is_missing() {
        assert_eq!(prose("on `a<b` at 3"), "on <code>a&lt;b</code> at 3");
        assert_eq!(prose("on `a"), "on <code>a</code>");
    }
}
