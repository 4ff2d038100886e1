use std::collections::BTreeSet;

use super::page::{ICON, SCRIPT};
use super::*;
use analysis::{PageLink, Report, ReportMeta};
use records::testkit::suite;

fn files() -> Vec<(String, String)> {
    let meta = ReportMeta {
        title: "quick <suite>".into(),
        command: "pe-bench run quick".into(),
        skipped: vec!["text/shaw: no corpus".into()],
        ..ReportMeta::default()
    };
    let report = Report::new(suite(), &meta).unwrap();
    let files = render(&Contents::of(&report, &[]).unwrap()).into_iter();
    files.map(|file| (file.path, String::from_utf8(file.bytes).unwrap())).collect()
}

#[test]
fn pages_make_no_request_and_run_their_own_script_alone() {
    for (path, page) in files() {
        // The icon of the page is part of it.
        let page = page.replacen(&format!("<link rel=\"icon\" href=\"{ICON}\">"), "", 1);
        for request in ["http:", "https:", "src=", "url(", "@import", "<link", "href=\"/"] {
            assert!(!page.contains(request), "{path}: {request}");
        }
        assert!(page.contains("default-src 'none'"), "{path}");
        assert!(page.contains("<footer><p>Made with pe-zoo "), "{path}");
        assert_eq!(page.matches("<script").count(), 1, "{path}");
        assert!(
            page.contains(&format!("<script>{SCRIPT}</script>")) && page.contains("'sha256-"),
            "{path}"
        );
    }
}

#[test]
fn every_page_has_the_links_of_the_report() {
    let link = PageLink { name: "Guide".into(), address: "../index.html".into() };
    let meta = ReportMeta { links: vec![link], ..ReportMeta::default() };
    let report = Report::new(suite(), &meta).unwrap();
    for file in render(&Contents::of(&report, &[]).unwrap()) {
        let up = "../".repeat(file.path.matches('/').count() + 1);
        let expected = format!("<a href=\"{up}index.html\" rel=\"noreferrer\">Guide</a>");
        let page = String::from_utf8(file.bytes).unwrap();
        assert!(page.contains(&expected), "{}", file.path);
    }
}

#[test]
fn every_link_leads_to_a_place_and_every_page_is_reached() {
    let files = files();
    let resolved = |page: &str, link: &str| {
        let mut folders: Vec<&str> = page.split('/').collect();
        folders.pop();
        for step in link.split('/') {
            if step == ".." {
                folders.pop();
            } else {
                folders.push(step);
            }
        }
        folders.join("/")
    };
    let mut reached = BTreeSet::new();
    for (path, page) in &files {
        for link in page.split("href=\"").skip(1).map(|rest| rest.split('"').next().unwrap()) {
            let (file, id) = link.split_once('#').unwrap_or((link, ""));
            let target = if file.is_empty() { path.clone() } else { resolved(path, file) };
            if link.starts_with("data:") || link.starts_with("#_") || link.ends_with("data.parquet")
            {
                continue;
            }
            let (_, text) = files.iter().find(|(path, _)| *path == target).unwrap();
            assert!(id.is_empty() || text.matches(&format!(" id=\"{id}\"")).count() == 1, "{link}");
            reached.insert(target);
        }
    }
    assert_eq!(reached.len(), files.len(), "{reached:?}");
}

#[test]
fn the_pages_show_every_encoding_cell_and_reason() {
    let report = Report::new(suite(), &ReportMeta::default()).unwrap();
    let files = files();
    let all: String = files.iter().map(|(_, page)| &**page).collect();
    for encoding in &report.encodings {
        assert!(files[0].1.contains(&format!("{}</", encoding.display)), "{}", encoding.name);
    }
    for key in report.frames.cells.column("key").unwrap().str().unwrap().iter().flatten() {
        assert!(all.contains(key));
    }
    for text in [
        "quick &lt;suite&gt;",
        "pe-bench run quick",
        "text/shaw: no corpus",
        "at step 17: loss is NaN",
        "no corpus | &lt;gone&gt;",
        "the table has 64 positions",
        "Test CPU &lt;9000&gt;",
        "abc1234",
        "prefers-color-scheme:dark",
        "Limitations",
        ">Ranks in distribution</h",
        ">Solving and effective length</h",
        ">fit rate</span></th>",
        ">median</span></th>",
        "not separable with n\u{a0}=\u{a0}3",
        "Not counted: 2 of 17 cells.",
    ] {
        assert!(all.contains(text), "{text}");
    }
    for number in [">NaN", "\"NaN", " NaN ", "inf\"", ">inf"] {
        assert!(!all.contains(number), "{number}");
    }
}

#[test]
fn every_element_that_is_opened_is_closed_in_order() {
    for (path, page) in files() {
        // Scripts compare with `<`.
        let page = page.replace(SCRIPT, "");
        let mut open: Vec<&str> = Vec::new();
        for tag in page.split('<').skip(1).map(|rest| rest.split('>').next().unwrap()) {
            let name = tag.split([' ', '\n']).next().unwrap();
            if tag.ends_with('/') || ["meta", "link", "input", "!DOCTYPE"].contains(&name) {
                continue;
            }
            if let Some(name) = name.strip_prefix('/') {
                assert_eq!(open.pop(), Some(name), "{path}: in <{tag}>");
            } else {
                open.push(name);
            }
        }
        assert_eq!(open, Vec::<&str>::new(), "{path}");
    }
}

#[test]
fn a_source_is_linked_if_its_address_is_one() {
    let format = Html { links: &Links::default(), page: FRONT };
    assert_eq!(
        format.source("Me <2026>", "https://example.org/?a=1&b=2"),
        "<p>Source: <a href=\"https://example.org/?a=1&amp;b=2\" rel=\"noreferrer\">Me &lt;2026&gt;</a></p>\n"
    );
    assert_eq!(format.source("Me", "javascript:alert(1)"), "<p>Source: Me</p>\n");
}
