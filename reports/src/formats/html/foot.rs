//! What stands below every page: program, date, where to go on, how to cite.

use crate::text::html as escape;
use analysis::PageLink;

/// Contents of the foot of a page.
#[derive(Debug, Clone, Copy, Default)]
pub struct PageFoot<'a> {
    /// Title of what is cited.
    pub title: &'a str,
    /// Time at which the newest run started, RFC 3339; `None` if unknown.
    pub date: Option<&'a str>,
    /// Links that stand in place of links of the same name to the repository, and further ones.
    pub links: &'a [PageLink],
    /// File with the data of the page, in the folder from which relative addresses start.
    pub data: Option<&'a str>,
    /// Way from the page to that folder: empty, or `../` once or several times.
    pub up: &'a str,
}

impl PageFoot<'_> {
    /// Renders the foot as HTML.
    pub(super) fn html(&self) -> String {
        let Self { title, data, .. } = *self;
        let date = self.date.and_then(|date| date.get(..10));
        let version = env!("CARGO_PKG_VERSION");
        let links: Vec<String> = self
            .all_links()
            .iter()
            .map(|PageLink { name, address }| {
                let up = if address.contains("://") { "" } else { self.up };
                let href = escape(&format!("{up}{address}"));
                format!(" · <a href=\"{href}\" rel=\"noreferrer\">{}</a>", escape(name))
            })
            .collect();
        let links = links.concat();
        let data = data.map_or_else(String::new, |file| {
            format!(" · <a href=\"{}{}\">Data</a>", self.up, escape(file))
        });
        let run = date.map_or_else(String::new, |date| format!(", newest run {}", escape(date)));
        let year = date.and_then(|date| date.get(..4)).unwrap_or_default();
        let cite = format!(
            "@software{{pe-zoo, title = {{pe-zoo: position encodings for Transformers}}, version = {{{version}}}, year = {{{year}}}, note = {{{title}}}}}"
        );
        format!(
            "<p>Made with pe-zoo {version}{run}{links}{data}</p>\n<details><summary>How to cite</summary><pre>{}</pre></details>",
            escape(&cite)
        )
    }

    /// The links to the repository, if its address is known, and all others.
    fn all_links(&self) -> Vec<PageLink> {
        let (home, site) = (env!("CARGO_PKG_REPOSITORY"), env!("CARGO_PKG_HOMEPAGE"));
        let in_repository = |path: &str| format!("{home}{path}");
        // The site begins with the guide.
        let has_site = site.starts_with("https://") && site != home;
        let guide = if has_site { site.to_owned() } else { in_repository("/tree/main/doc/guide") };
        let known = [
            ("Repository", home.to_owned()),
            ("Guide", guide),
            ("Records and plans", in_repository("/tree/main/results")),
        ];
        let link = |(name, address): (&str, String)| PageLink { name: name.to_owned(), address };
        let is_free = |link: &PageLink| self.links.iter().all(|own| own.name != link.name);
        let known = known.map(link).into_iter().filter(|_| home.starts_with("https://"));
        known.filter(is_free).chain(self.links.iter().cloned()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_foot_has_version_date_links_and_citation() {
        let link =
            |name: &str, address: &str| PageLink { name: name.into(), address: address.into() };
        let links = [link("Guide", "../index.html"), link("Plan <1>", "https://example.org/?a&b")];
        let foot = PageFoot {
            title: "quick",
            date: Some("2026-11-25T10:00:00Z"),
            links: &links,
            data: Some("data.parquet"),
            up: "../../",
        };
        let html = foot.html();
        for expected in [
            &format!("pe-zoo {}, newest run 2026-11-25", env!("CARGO_PKG_VERSION")),
            "<a href=\"../../../index.html\" rel=\"noreferrer\">Guide</a>",
            "<a href=\"https://example.org/?a&amp;b\" rel=\"noreferrer\">Plan &lt;1&gt;</a>",
            "<a href=\"../../data.parquet\">Data</a>",
            "year = {2026}, note = {quick}",
        ] {
            assert!(html.contains(expected), "{expected}: {html}");
        }
        let empty = PageFoot::default().html();
        assert!(!empty.contains("newest run") && !empty.contains("Data"), "{empty}");
    }
}
