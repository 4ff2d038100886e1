//! Skeleton of a page, with its style sheet and its script.

use std::sync::LazyLock;

use askama::Template;
use sha2::{Digest, Sha256};

use super::foot::PageFoot;
use super::inline::rendered;
use super::table::alignments;
use crate::formats::chart::{marks, of_pages};
use crate::text::visible;

/// Style sheet of all pages.
static STYLE: LazyLock<String> =
    LazyLock::new(|| of_pages() + include_str!("page.css") + &alignments());

/// Script of all pages: sorting, filters, columns, values under the pointer. Pages are complete without it.
pub(super) const SCRIPT: &str = include_str!("page.js");

/// Content security policy: no request, and no script but this one.
static POLICY: LazyLock<String> = LazyLock::new(|| {
    format!(
        "default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{}'; img-src data:; base-uri 'none'; form-action 'none'",
        base64(&Sha256::digest(SCRIPT))
    )
});

/// A table of positions against tokens, in the colours of a matrix.
pub(super) const ICON: &str = "data:image/svg+xml,%3Csvg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 4 4'%3E\
    %3Cpath fill='%230072b2' d='M0 0h1v1h-1zM1 1h1v1h-1zM2 2h1v1h-1zM3 3h1v1h-1z'/%3E\
    %3Cpath fill='%23d55e00' d='M0 1h1v1h-1zM1 2h1v1h-1zM2 3h1v1h-1z'/%3E\
    %3Cpath fill='%238a929a' d='M0 2h1v2h1v-1h-1v-1z'/%3E%3C/svg%3E";

/// Encodes bytes in base 64, as content security policies do.
fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let of_three = |three: &[u8]| -> String {
        let byte = |index: usize| u32::from(three.get(index).copied().unwrap_or_default());
        let bits = (byte(0) << 16) | (byte(1) << 8) | byte(2);
        let digit = |place: usize| {
            let is_full = place <= three.len();
            if is_full { char::from(DIGITS[(bits >> (18 - 6 * place)) as usize & 63]) } else { '=' }
        };
        (0..4).map(digit).collect()
    };
    bytes.chunks(3).map(of_three).collect()
}

#[derive(Template)]
#[template(path = "page.html")]
struct Skeleton<'a> {
    policy: &'a str,
    title: String,
    heading: &'a str,
    description: &'a str,
    icon: &'a str,
    style: &'a str,
    marks: String,
    menu: &'a str,
    body: &'a str,
    foot: &'a str,
    script: &'a str,
}

/// A page: texts, and HTML in which everything from records is escaped.
#[derive(Default)]
pub(super) struct PageParts<'a> {
    pub(super) title: &'a str,
    /// Text that search engines and link previews show.
    pub(super) description: &'a str,
    /// Contents and ways to other pages, as HTML.
    pub(super) menu: &'a str,
    pub(super) body: &'a str,
    /// Text below everything, as HTML.
    pub(super) foot: &'a str,
}

/// Renders a standalone page.
pub(super) fn page(parts: &PageParts<'_>) -> String {
    let PageParts { title, description, menu, body, foot } = *parts;
    rendered(&Skeleton {
        policy: &POLICY,
        title: format!("{} – pe-zoo", visible(title)),
        heading: title,
        description: if description.is_empty() { title } else { description },
        icon: ICON,
        style: &STYLE,
        marks: marks(),
        menu,
        body,
        foot,
        script: SCRIPT,
    })
}

/// A page that is no document.
#[derive(Debug, Clone, Copy, Default)]
pub struct PlainPage<'a> {
    /// Title of the page as text.
    pub title: &'a str,
    /// Ways to other pages as HTML in which everything from records is escaped; empty for none.
    pub menu: &'a str,
    /// Content as HTML in which everything from records is escaped.
    pub body: &'a str,
    /// Links and version below the content.
    pub foot: PageFoot<'a>,
}

/// Renders a standalone page.
///
/// The page has the style sheet of a report, for light and dark, wide and narrow screens, makes no request, and
/// forbids every script but its own.
pub fn plain_page(parts: &PlainPage<'_>) -> String {
    let PlainPage { title, menu, body, foot } = *parts;
    page(&PageParts { title, menu, body, foot: &foot.html(), ..PageParts::default() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base_64_is_that_of_the_rfc() {
        for (text, expected) in [("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foobar", "Zm9vYmFy")] {
            assert_eq!(base64(text.as_bytes()), expected);
        }
        assert_eq!(base64(&[0xfb, 0xff]), "+/8=");
    }
}
