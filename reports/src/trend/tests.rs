use super::*;
use crate::formats::{html_document, markdown_document};
use records::RunRecord;
use records::testkit::TestCell;

#[test]
fn nights_are_drawn_with_their_commits() {
    let mut records: Vec<RunRecord> =
        ["a", "b"].map(|workload| TestCell::new(workload, "rope", 0).record()).into();
    let first = Night::of(&records, None).unwrap();
    for record in &mut records {
        record.started_utc = "2026-01-03T03:04:05Z".into();
        record.commit = Some("<script>alert(1)</script>".into());
        record.workload = format!("{}<img>", record.workload);
    }
    let nights = [first, Night::of(&records, Some(false)).unwrap()];
    let page = html_document(&document(&nights));
    assert!(page.matches("<script").count() == 1 && !page.contains("<img"), "{page}");
    assert!(
        page.contains("abc1234") && page.contains(">failed</text>"),
        "the failed night is marked"
    );
    let text = markdown_document(&document(&nights));
    assert!(text.contains("| 2 | 2026-01-03T03:04:05Z |") && !text.contains("<img"), "{text}");
    assert_eq!(markdown_document(&document(&[])), "# Nights\n\nNo night yet.\n");
}
