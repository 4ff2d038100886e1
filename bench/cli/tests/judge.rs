//! `pe-bench judge` reports on trainings of other programs.
#![allow(clippy::unwrap_used, reason = "tests panic on failure")]

mod program;

use std::fmt::Write as _;

use program::{done, refused};
use records::testkit::TestCell;

fn table(better: &str) -> String {
    let mut table = "encoding,task,train_len,seed,split,len,score,answers\n".to_owned();
    for seed in 0..8 {
        for encoding in ["mine", "rope"] {
            let right = if encoding == better { 9 } else { 2 + seed % 2 };
            let answers = "1".repeat(right) + &"0".repeat(10 - right);
            let score = right as f64 / 10.0;
            writeln!(table, "{encoding},sorting,64,{seed},longer,128,{score},{answers}").unwrap();
        }
    }
    table
}

#[test]
fn a_table_of_scores_gets_a_report_and_the_tests_of_records() {
    let folder = tempfile::tempdir().unwrap();
    let [scores, out] = ["scores.csv", "out"].map(|name| folder.path().join(name));
    let [scores_text, out_text] = [&scores, &out].map(|path| path.to_str().unwrap());
    std::fs::write(&scores, table("mine")).unwrap();
    let judge = ["judge", scores_text, "--out", out_text, "--formats", "markdown"];
    assert!(done(&judge).contains("mine"));
    let compared = done(&["compare", "mine", "rope", out_text]);
    assert!(compared.contains("0.0078"), "the least p-value of eight seeds: {compared}");
    let report = std::fs::read_to_string(out.join("report.md")).unwrap();
    assert!(report.contains("sorting") && report.contains("RoPE"), "{report}");

    // The table of the same folder may change: nothing of the old one stays.
    std::fs::write(&scores, table("rope").replace("sorting", "copying")).unwrap();
    done(&judge);
    let report = std::fs::read_to_string(out.join("report.md")).unwrap();
    assert!(report.contains("copying") && !report.contains("sorting"), "{report}");

    // Records of training runs stay, whatever lies beside them.
    let trained = TestCell::new("copy", "rope", 0).record();
    trained.write(&out).unwrap();
    refused(&judge, "has records of training runs");
    assert!(out.join("cells").join(format!("{}.json", trained.key)).exists());
    std::fs::remove_file(out.join("cells").join(format!("{}.json", trained.key))).unwrap();
    std::fs::write(out.join("records.parquet"), "").unwrap();
    refused(&judge, "has packed records");
    std::fs::remove_file(out.join("records.parquet")).unwrap();
    std::fs::write(&scores, table("rope").replace("0.9", "9")).unwrap();
    refused(&["judge", scores_text], "score is `9`, expected an exact match from 0 to 1");

    // As spreadsheets on Windows write it.
    std::fs::write(&scores, format!("\u{feff}{}", table("rope").replace('\n', "\r\n"))).unwrap();
    let marked = folder.path().join("marked").display().to_string();
    assert!(done(&["judge", scores_text, "--out", &marked]).contains("RoPE"));
    let utf_16 = table("rope").encode_utf16().flat_map(u16::to_le_bytes).collect::<Vec<_>>();
    std::fs::write(&scores, [&[0xff, 0xfe], &*utf_16].concat()).unwrap();
    refused(&["judge", scores_text], "it is UTF-16; save the file as UTF-8");
}
