use super::*;
use crate::analysis::Report;
use crate::analysis::ReportMeta;
use crate::testkit::{TestCell, suite};

/// Removes the contents of script elements from a page.
fn without_scripts(page: &str) -> String {
    let mut out = String::new();
    for (index, part) in page.split("<script").enumerate() {
        match (index, part.split_once("</script>")) {
            (0, _) => out.push_str(part),
            (_, Some((_, after))) => out.push_str(after),
            (_, None) => panic!("a script is not closed"),
        }
    }
    out
}

fn example() -> (Report, String) {
    let meta = ReportMeta {
        title: "quick <suite>".into(),
        command: "pe-bench run quick".into(),
        skipped: vec!["text/shaw: no corpus".into()],
        ..ReportMeta::default()
    };
    let report = Report::new(suite(), &meta).unwrap();
    let page = page(&Contents::of(&report).unwrap()).unwrap();
    (report, page)
}

#[test]
fn the_page_asks_nobody_for_anything_and_runs_its_two_scripts_alone() {
    let (_, page) = example();
    let markup = without_scripts(&page);
    for request in ["http:", "https:", "src=", "url(", "@import", "<link", "href=\"/", "href=\"j"] {
        assert!(!markup.contains(request), "{request}");
    }
    for link in markup.split("href=\"").skip(1) {
        let own = ["#", "figures/", "tables/", "pages/", "data.parquet"];
        assert!(own.iter().any(|place| link.starts_with(place)), "{}", &link[..40]);
    }
    assert!(markup.contains("default-src 'none'") && markup.contains("connect-src 'none'"));
    let scripts = page.split("<script").skip(1);
    let run = scripts.filter(|s| !s.starts_with(" type=\"application/json\">")).count();
    assert_eq!(run, 2);
    assert_eq!(markup.matches("'sha256-").count(), 2);
    assert!(page.len() < 10_000_000, "{} bytes", page.len());
}

#[test]
fn the_page_shows_every_encoding_cell_and_reason() {
    let (report, page) = example();
    let markup = without_scripts(&page);
    for encoding in &report.encodings {
        assert!(markup.contains(&format!("{}</td>", encoding.display)), "{}", encoding.name);
        assert!(markup.contains(&format!("{}</button>", encoding.display)), "{}", encoding.name);
    }
    for key in report.frames.cells.column("key").unwrap().str().unwrap().iter().flatten() {
        assert!(markup.contains(key));
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
        "<h3>Ranks in distribution</h3>",
        "<h3>Solving and effective length</h3>",
        "<th>fit rate</th>",
        "<th>median</th>",
        "not separable with n\u{a0}=\u{a0}3",
        "2 of 17 cells are not counted",
    ] {
        assert!(markup.contains(text), "{text}");
    }
    for number in [">NaN", "\"NaN", " NaN ", "inf\"", ">inf"] {
        assert!(!markup.contains(number), "{number}");
    }
}

#[test]
fn every_number_of_the_front_page_leads_to_its_records() {
    let (report, page) = example();
    // The summary stands before the first list of links.
    let front = page.split("<nav>").next().unwrap();
    let results = report.workloads.iter().filter_map(|w| w.deciding()).map(|r| r.results.len());
    assert_eq!(front.matches("href=\"#w").count(), results.sum::<usize>());
    let links: Vec<&str> = page
        .split("href=\"#w")
        .skip(1)
        .map(|rest| rest.split('"').next().unwrap())
        .filter(|id| id.contains('e'))
        .collect();
    assert!(links.len() > report.encodings.len());
    for id in links {
        assert_eq!(page.matches(&format!("id=\"w{id}\"")).count(), 1, "w{id}");
    }
    assert!(page.contains("Configuration (without the seed)"));
}

#[test]
fn every_element_that_is_opened_is_closed_in_order() {
    let (_, page) = example();
    let markup = without_scripts(&page);
    let mut open: Vec<&str> = Vec::new();
    for tag in markup.split('<').skip(1).map(|rest| rest.split('>').next().unwrap()) {
        let name = tag.split([' ', '\n']).next().unwrap();
        if tag.ends_with('/') || name == "meta" || name == "!DOCTYPE" {
            continue;
        }
        if let Some(name) = name.strip_prefix('/') {
            assert_eq!(open.pop(), Some(name), "in <{tag}>");
        } else {
            open.push(name);
        }
    }
    assert_eq!(open, Vec::<&str>::new());
}

#[test]
fn backticks_become_code_even_when_one_is_missing() {
    assert_eq!(prose("on `a<b` at 3"), "on <code>a&lt;b</code> at 3");
    assert_eq!(prose("on `a"), "on <code>a</code>");
}

#[test]
fn figures_are_data_that_plotly_takes() {
    let (_, page) = example();
    let blocks: Vec<serde_json::Value> = page
        .split("<script type=\"application/json\">")
        .skip(1)
        .map(|rest| serde_json::from_str(rest.split("</script>").next().unwrap()).unwrap())
        .collect();
    assert_eq!(blocks.len(), page.matches("<div class=\"plot\"").count());
    for block in &blocks {
        let traces = block["data"].as_array().unwrap();
        assert!(!traces.is_empty() && block["layout"]["xaxis"].is_object());
        assert!(traces.iter().all(|t| t["meta"].is_number() || t["meta"] == "rule"), "{block}");
    }
}

#[test]
fn a_page_of_too_many_cells_counts_them_and_says_where_they_are() {
    let records: Vec<_> = (0..2001).map(|seed| TestCell::new("w", "rope", seed).record()).collect();
    let report = Report::new(records, &ReportMeta::default()).unwrap();
    let page = page(&Contents::of(&report).unwrap()).unwrap();
    assert!(page.contains("This report has 2001 cells") && page.contains("data.parquet"));
    let keys = report.frames.cells.column("key").unwrap().str().unwrap();
    assert!(!page.contains(keys.get(7).unwrap()));
    assert!(page.contains("id=\"w0e0\""), "links still lead somewhere");
}

#[test]
fn what_has_no_room_is_told() {
    let (report, _) = example();
    let mut none = PageState::with_room_for(10, &Contents::of(&report).unwrap());
    let text = table(&tables::summary(&report), &mut none);
    assert!(text.contains("rows have no room") && text.contains("<code>tables</code>"));
}
