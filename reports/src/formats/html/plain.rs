//! Pages without scripts, in the style of a report.

use crate::formats::chart::of_pages;
use crate::text::html as escape;

pub(super) const CSS: &str = include_str!("page.css");

/// A page of its own for `body`, which is HTML in which everything from records is escaped already; `title` is text.
///
/// It has the style sheet of a report, for light and dark, wide and narrow screens, asks nobody for anything, and
/// forbids every script.
pub fn plain_page(title: &str, body: &str) -> String {
    let title = escape(title);
    format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'; \
         img-src data:; base-uri 'none'; form-action 'none'\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <title>{title}</title>\n<style>\n{}{CSS}</style>\n</head>\n<body>\n<header>\n<h1>{title}</h1>\n</header>\n\
         {body}</body>\n</html>\n",
        of_pages()
    )
}
