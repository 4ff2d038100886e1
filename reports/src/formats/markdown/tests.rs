use super::*;
use crate::document::tables;
use analysis::{Report, ReportMeta};
use records::testkit::{TestCell, suite};

/// Table without its legends, which a report shows at its end.
fn shown(table: &Table) -> String {
    pieces(&Table { legends: Vec::new(), ..table.clone() }, COLUMNS)
}

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
    let front = shown(&tables::summary(&report)) + &shown(&tables::prices(&report));
    insta::assert_snapshot!("front", front);
}

#[test]
fn the_tables_of_a_workload_read_like_this() {
    let report = Report::new(suite(), &ReportMeta::default()).unwrap();
    let workload = &report.workloads[0];
    let mut text = String::new();
    for ranking in &workload.rankings {
        let ranks = tables::ranks(&report, workload, ranking);
        let _ = write!(text, "Ranks {}\n{}", ranking.region.name(), shown(&ranks));
    }
    let metrics = shown(&tables::run_metrics(&report, workload));
    let _ = write!(text, "Solving and effective length\n{metrics}");
    text.push_str(&shown(&tables::costs(&report, workload)));
    text.push_str(&shown(&tables::flops(&report, workload)));
    insta::assert_snapshot!("workload", text);
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
    let contents = Contents::of(&report, &[]).unwrap();
    let page = String::from_utf8(render(&contents).remove(0).bytes).unwrap();
    for text in [
        "# A \\| title",
        "pe-bench run quick",
        "- text/shaw",
        "at step 17: loss is NaN",
        "no corpus \\| &lt;gone>",
        "the table has 64 positions",
        "– ‡",
        "##### Ranks on other distributions at longer lengths",
        "##### Solving and effective length",
        "not separable with n = 3",
        "Test: paired t test over 3 seeds with Holm's correction over 3 pairs",
    ] {
        assert!(page.contains(text), "{text}\n{page}");
    }
    let links: Vec<&str> =
        page.split("](").skip(1).map(|rest| rest.split(')').next().unwrap()).collect();
    let figures = contents.document.figures();
    let mut files: Vec<String> = figures.into_iter().filter_map(Figure::path).collect();
    let mut linked: Vec<String> = links.into_iter().map(str::to_owned).collect();
    files.sort();
    linked.sort();
    assert_eq!(linked, files);
}

#[test]
fn text_of_records_has_no_signs_of_markdown() {
    assert_eq!(escape("[a](http://x)![b](y)"), "[a\\](http://x)![b\\](y)");
    assert_eq!(escape("# a *b* `c` <d> \\"), "\\# a \\*b\\* \\`c\\` &lt;d> \\\\");
    assert_eq!(escape("flip_flop _x_ [92.0, 100.0]"), "flip_flop \\_x\\_ [92.0, 100.0]");
    assert_eq!(prose("on `a_b|c` at *3*"), "on `a_b|c` at \\*3\\*");
    assert_eq!(prose("on `a` at 3 `"), "on \\`a\\` at 3 \\`");
    assert_eq!(prose("on `a``b`"), "on \\`a\\`\\`b\\`");
}
