//! Skeleton of a page, with its style sheet.

use askama::Template;

use super::inline::rendered;
use crate::formats::chart::of_pages;
use crate::text::html as escape;

const CSS: &str = include_str!("page.css");
/// Content security policy of pages without scripts: no request and no script.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'";

#[derive(Template)]
#[template(path = "page.html")]
struct Skeleton<'a> {
    policy: &'a str,
    title: &'a str,
    style: String,
    body: &'a str,
}

/// Renders a standalone page. `title` is text, `body` is HTML in which everything from records is escaped.
///
/// The page has the style sheet of a report, for light and dark, wide and narrow screens, makes no request, and
/// forbids every script.
pub fn plain_page(title: &str, body: &str) -> String {
    let body = format!("<header>\n<h1>{}</h1>\n</header>\n{body}", escape(title));
    let style = of_pages() + CSS;
    rendered(&Skeleton { policy: POLICY, title, style, body: &body })
}
