//! Paths of the pages of a report, and links between them.

use std::collections::{BTreeMap, BTreeSet};

use super::FRONT;
use crate::document::{Page, Section, Target};
use crate::text::unique_slug;

/// A page, or an element of it.
#[derive(Debug)]
struct Location {
    /// Path of the page, relative to the report.
    page: String,
    /// Id of an element of the page; `None` for the page itself.
    anchor: Option<String>,
}

/// Pages and elements of all subjects that links lead to.
#[derive(Debug, Default)]
pub(super) struct Links {
    locations: BTreeMap<Target, Location>,
}

/// Returns the way from a page to the folder of the report.
pub(super) fn up(page: &str) -> String {
    "../".repeat(page.matches('/').count())
}

/// Returns the address of the first page for a link on `page`.
pub(super) fn front(page: &str) -> String {
    up(page) + FRONT
}

impl Links {
    /// Names the pages of a report, and the elements on them that links lead to.
    pub(super) fn of(pages: &[Page]) -> Self {
        let mut links = Self::default();
        let mut files: BTreeMap<&str, BTreeSet<String>> = BTreeMap::new();
        for Page { target, document } in pages {
            let named = match target {
                Some(Target::Encoding(name)) => Some(("encodings", name)),
                Some(Target::Workload(name)) => Some(("tasks", name)),
                Some(Target::Records(name)) => Some(("cells", name)),
                Some(Target::Cells { .. } | Target::File(_)) | None => None,
            };
            let page = named.map_or_else(
                || FRONT.to_owned(),
                |(folder, name)| {
                    let file = unique_slug(name, files.entry(folder).or_default());
                    format!("pages/{folder}/{file}.html")
                },
            );
            links.add_anchors(&page, &document.sections);
            if let Some(target) = target {
                links.locations.insert(target.clone(), Location { page, anchor: None });
            }
        }
        links
    }

    fn add_anchors(&mut self, page: &str, sections: &[Section]) {
        for section in sections {
            if let Some(target) = &section.target {
                let anchor = Some(section.id.clone());
                self.locations.insert(target.clone(), Location { page: page.to_owned(), anchor });
            }
            self.add_anchors(page, &section.sections);
        }
    }

    /// Returns the path of the page of a subject, relative to the report.
    pub(super) fn path(&self, target: Option<&Target>) -> &str {
        target
            .and_then(|target| self.locations.get(target))
            .map_or(FRONT, |location| &location.page)
    }

    /// Returns the address of a subject for a link on `page`; `None` if nothing shows it.
    pub(super) fn href(&self, target: &Target, page: &str) -> Option<String> {
        let up = up(page);
        if let Target::File(path) = target {
            return Some(up + path);
        }
        let location = self.locations.get(target)?;
        let anchor = location.anchor.as_ref().map_or_else(String::new, |id| format!("#{id}"));
        let path = if location.page == page { String::new() } else { up + &location.page };
        Some(path + &anchor).filter(|href| !href.is_empty())
    }
}
