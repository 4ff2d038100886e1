use super::*;
use crate::analysis::Report;
use crate::analysis::ReportMeta;
use crate::testkit::{TestCell, suite};

#[test]
fn the_tables_of_the_front_page_read_like_this() {
    let records = [
        TestCell::new("flip-flop", "cope", 0).beyond(0.97).record(),
        TestCell::new("flip-flop", "cope", 1).beyond(0.99).record(),
        TestCell::new("flip-flop", "nope", 0).beyond(0.10).record(),
        TestCell::new("flip-flop", "nope", 1).beyond(0.11).record(),
        TestCell::new("flip-flop", "rope", 0).beyond(0.95).record(),
        TestCell::new("flip-flop", "rope", 1).beyond(0.90).record(),
    ];
    let report = Report::new(&records, &ReportMeta::default()).unwrap();
    let front = table(&tables::summary(&report), "") + &table(&tables::prices(&report), "");
    insta::assert_snapshot!("front", front);
}

#[test]
fn the_tables_of_a_workload_read_like_this() {
    let report = Report::new(suite(), &ReportMeta::default()).unwrap();
    let workload = &report.workloads[0];
    let mut text = String::new();
    for (heading, found) in tables::statistics(&report, workload) {
        let _ = write!(text, "{heading}\n{}", table(&found, ""));
    }
    text.push_str(&table(&tables::costs(&report, workload), ""));
    text.push_str(&table(&tables::flops(&report, workload), ""));
    insta::assert_snapshot!("workload", text);
}

#[test]
fn a_table_without_rows_is_not_explained() {
    let report = Report::new(suite(), &ReportMeta::default()).unwrap();
    let claims = tables::claims(&report);
    let legend = &claims.legends[0];
    let mut tables = Tables::default();
    assert!(claims.rows.is_empty() && tables.add(&claims, "").is_empty());
    assert!(tables.legends.is_empty(), "{legend}");
    let page = page(&Contents::of(&report).unwrap());
    assert!(!page.contains(&legend[..40]), "{page}");
}

#[test]
fn the_page_names_everything_and_every_link_has_a_file() {
    let meta = ReportMeta {
        title: "A | title".into(),
        command: "pe-bench run quick".into(),
        skipped: vec!["text/shaw".into()],
        ..ReportMeta::default()
    };
    let report = Report::new(suite(), &meta).unwrap();
    let contents = Contents::of(&report).unwrap();
    let page = page(&contents);
    for text in [
        "# A \\| title",
        "pe-bench run quick",
        "- text/shaw",
        "at step 17: loss is NaN",
        "no corpus \\| &lt;gone>",
        "the table has 64 positions",
        "– ‡",
        "### Ranks on other distributions at longer lengths",
        "### Solving and effective length",
        "not separable with n = 3",
        "Test: paired t test with Holm's correction over 3 pairs",
    ] {
        assert!(page.contains(text), "{text}\n{page}");
    }
    let links: Vec<&str> =
        page.split("](").skip(1).map(|rest| rest.split(')').next().unwrap()).collect();
    let mut files: Vec<String> = contents.figures.iter().map(|f| f.path()).collect();
    let mut linked: Vec<String> = links.into_iter().map(str::to_owned).collect();
    files.sort();
    linked.sort();
    assert_eq!(linked, files);
}

#[test]
fn text_of_records_has_no_signs_of_markdown() {
    assert_eq!(escape("[a](http://x)![b](y)"), "[a\\](http://x)![b\\](y)");
    assert_eq!(escape("# a *b* `c` <d> \\"), "\\# a \\*b\\* \\`c\\` &lt;d> \\\\");
    assert_eq!(escape("flip_flop _x_ [92.0 to 100.0]"), "flip_flop \\_x\\_ [92.0 to 100.0]");
    assert_eq!(prose("on `a_b|c` at *3*"), "on `a_b|c` at \\*3\\*");
    assert_eq!(prose("on `a` at 3 `"), "on \\`a\\` at 3 \\`");
    assert_eq!(prose("on `a``b`"), "on \\`a\\`\\`b\\`");
}
