//! Everything that is printed goes through `bench/cli/src/out.rs`, which escapes control characters.

use crate::sources;

/// Ways to reach standard output and standard error, followed by the files that may use them.
const WAYS: [(&str, &[&str]); 8] = [
    // The protocol of workers: JSON, which escapes control characters, to a pipe.
    (
        "stdout()",
        &[
            "bench/cli/src/out.rs",
            "bench/cli/src/lib.rs",
            "bench/cli/src/extend.rs",
            "bench/cli/src/columns.rs",
        ],
    ),
    // Bars are drawn there; their texts are `Printable`.
    ("stderr()", &["bench/cli/src/out.rs", "bench/cli/src/run/table.rs"]),
    // For tests.
    ("println!", &["reports/analysis/src/tests.rs"]),
    ("print!", &[]),
    ("eprintln!", &[]),
    ("eprint!", &[]),
    ("dbg!", &[]),
    ("console::Term", &[]),
];

#[test]
fn nothing_is_printed_but_through_one_door() {
    let root = crate::root();
    let mut files = Vec::new();
    for member in crate::MEMBERS {
        sources(&root.join(member).join("src"), &mut files);
    }
    let mut faults = Vec::new();
    for file in files {
        let text = std::fs::read_to_string(&file).unwrap();
        let code = crate::without_tests(&text);
        let name = file.strip_prefix(&root).unwrap().to_str().unwrap().replace('\\', "/");
        for (way, allowed) in WAYS {
            let used = code.match_indices(way).any(|(at, _)| {
                let before = code[..at].chars().next_back();
                !before.is_some_and(|c| c.is_alphanumeric() || c == '_')
            });
            if used && !allowed.contains(&name.as_str()) {
                faults.push(format!("{name}: {way}"));
            }
        }
    }
    assert!(faults.is_empty(), "{faults:#?}");
}
