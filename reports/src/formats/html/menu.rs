//! Contents of a page, and the ways to the other pages of a report.

use super::links::{Links, front};
use crate::document::{Page, Target};
use crate::text::html as escape;

/// Heading of the pages of a kind, and whether a page is one.
type Kind = (&'static str, fn(&Target) -> bool);

/// Kinds of pages that a reader goes through.
const KINDS: [Kind; 2] = [
    ("Encodings", |target| matches!(target, Target::Encoding(_))),
    ("Tasks", |target| matches!(target, Target::Workload(_))),
];

fn item(href: &str, text: &str) -> String {
    format!("<li><a href=\"{}\">{}</a></li>\n", escape(href), escape(text))
}

fn list(items: impl IntoIterator<Item = String>) -> String {
    format!("<ul>\n{}</ul>\n", items.into_iter().collect::<String>())
}

/// Returns the menu of a page: its sections; on the first page every encoding and task, on another page the way back and its
/// neighbours.
pub(super) fn menu(pages: &[Page], own: &Page, links: &Links) -> String {
    let path = links.path(own.target.as_ref());
    let way = |page: &Page| page.target.as_ref().and_then(|target| links.href(target, path));
    let sections = own.document.sections.iter();
    let sections = list(sections.map(|own| item(&format!("#{}", own.id), &own.heading)));
    let of_kind = |is_own: fn(&Target) -> bool| {
        pages.iter().filter(move |page| page.target.as_ref().is_some_and(is_own))
    };
    let Some(target) = &own.target else {
        let kinds = KINDS.into_iter().map(|(name, is_own)| {
            let items: Vec<String> = of_kind(is_own)
                .filter_map(|page| Some(item(&way(page)?, &page.document.title)))
                .collect();
            if items.is_empty() {
                return String::new();
            }
            format!(
                "<details><summary>{name} ({})</summary>\n{}</details>\n",
                items.len(),
                list(items)
            )
        });
        return sections + &kinds.collect::<String>();
    };
    let back = item(&front(path), "All results");
    let neighbours = KINDS.into_iter().find(|(_, is_own)| is_own(target)).map(|(_, is_own)| {
        let pages: Vec<&Page> = of_kind(is_own).collect();
        let place = pages.iter().position(|page| page.target == own.target).unwrap_or_default();
        let near = [("Before", place.checked_sub(1)), ("Next", Some(place + 1))];
        let near = near.into_iter().filter_map(|(name, place)| {
            let page = pages.get(place?)?;
            Some(item(&way(page)?, &format!("{name}: {}", page.document.title)))
        });
        near.collect::<String>()
    });
    list([back, neighbours.unwrap_or_default()]) + "<b>On this page</b>\n" + &sections
}
