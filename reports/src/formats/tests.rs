//! Tests of all formats with records whose names contain code of the format; none may be left unescaped.

use super::*;
use analysis::{Description, Report, ReportMeta};
use records::testkit::TestCell;
use records::{RunRecord, Status};

/// Names that contain code, one for each format.
const WICKED: [&str; 9] = [
    "<script>alert(1)</script>",
    "\"onload=\"alert(2)",
    "]]><svg onload=alert(3)>",
    "\\input{/etc/passwd}$x$",
    "=cmd|' /C calc'!A0",
    "line\nbreak<!--",
    "\u{202E}gnp.exe\u{2066}",
    "![x](http://example.test/p.png)`</code>",
    "<a href='javascript:alert(4)'>%{meta}</a>",
];

fn records() -> Vec<RunRecord> {
    let mut records = Vec::new();
    for (index, name) in WICKED.iter().enumerate() {
        for seed in 0..2 {
            let cell = TestCell::new(name, name, seed).eval(name, false, 256, 0.5).change(|r| {
                let wicked = (*name).to_owned();
                r.key = format!("{index:015x}{seed}");
                r.encoding.label.clone_from(&wicked);
                r.encoding.id.clone_from(&wicked);
                r.task.id.clone_from(&wicked);
                r.task.label.clone_from(&wicked);
                r.task.len_unit.clone_from(&wicked);
                r.suite = "s".into();
                r.host.cpu.clone_from(&wicked);
                r.host.os.clone_from(&wicked);
                r.commit = Some(wicked.clone());
                r.started_utc.clone_from(&wicked);
                r.versions.insert(wicked.clone(), wicked.clone());
                r.config = serde_json::json!({ *name: name });
                if seed == 1 {
                    r.status = Status::Failed { reason: wicked };
                }
            });
            records.push(cell.record());
            // A second encoding, so that there is something to compare.
            records.push(TestCell::new(name, "rope", seed).eval(name, false, 256, 0.4).record());
        }
    }
    records
}

fn files() -> Vec<OutFile> {
    let all = WICKED.join(" ");
    let meta = ReportMeta {
        title: all.clone(),
        command: all.clone(),
        skipped: vec![all.clone()],
        descriptions: WICKED
            .map(|text| Description {
                name: text.to_owned(),
                summary: all.clone(),
                source: all.clone(),
                url: all.clone(),
                text: WICKED.join("\n"),
                acts_outside: false,
            })
            .to_vec(),
        inspected: vec![(all.clone(), all)],
        ..ReportMeta::default()
    };
    let report = Report::new(records(), &meta).unwrap();
    let contents = Contents::of(&report, &[]).unwrap();
    FORMATS.iter().flat_map(|(_, render)| render(&contents).unwrap()).collect()
}

fn texts(extension: &str) -> Vec<(String, String)> {
    let files: Vec<_> = files()
        .into_iter()
        .filter(|f| f.path.ends_with(extension))
        .map(|f| (f.path, String::from_utf8(f.bytes).unwrap()))
        .collect();
    assert!(!files.is_empty(), "{extension}");
    files
}

#[test]
fn file_names_are_plain() {
    for file in files() {
        let plain = |c: char| c.is_ascii_alphanumeric() || "-./".contains(c);
        assert!(file.path.chars().all(plain) && !file.path.contains(".."), "{}", file.path);
    }
}

#[test]
fn the_page_holds_no_foreign_element_attribute_or_hidden_sign() {
    for (path, page) in texts(".html") {
        let (page, script) = page.split_once("<script>").unwrap();
        assert_eq!(script.matches("</script>").count(), 1, "{path}");
        for tag in page.split('<').skip(1).map(|rest| rest.split('>').next().unwrap()) {
            let name = tag.split([' ', '\n']).next().unwrap().trim_start_matches('/');
            let known = [
                "!DOCTYPE",
                "link",
                "main",
                "footer",
                "caption",
                "input",
                "label",
                "i",
                "use",
                "defs",
                "html",
                "head",
                "meta",
                "title",
                "style",
                "body",
                "header",
                "h1",
                "h2",
                "h3",
                "div",
                "p",
                "a",
                "nav",
                "ul",
                "li",
                "section",
                "span",
                "table",
                "thead",
                "tbody",
                "tr",
                "th",
                "td",
                "small",
                "b",
                "code",
                "figure",
                "figcaption",
                "details",
                "summary",
                "pre",
                "svg",
                "path",
                "rect",
                "text",
                "g",
                "line",
            ];
            assert!(known.contains(&name), "{path}: <{tag}>");
            // An attribute outside quotation marks that begins with `on` is a handler.
            let outside: String = tag.split('"').step_by(2).collect();
            assert!(!outside.contains(" on"), "<{tag}>");
        }
        assert!(!page.contains(['\u{202E}', '\u{2066}']), "{path}");
    }
    let (_, front) = texts("index.html").remove(0);
    assert!(front.contains("[U+202E]"), "shown, not dropped");
}

#[test]
fn figures_hold_no_script_and_are_well_formed() {
    for (path, svg) in texts(".svg") {
        for tag in svg.split('<').skip(1).map(|rest| rest.split('>').next().unwrap()) {
            let name = tag.split([' ', '\n', '/']).find(|part| !part.is_empty()).unwrap();
            let known = ["svg", "style", "rect", "text", "g", "title", "path", "defs", "use"];
            assert!(known.contains(&name), "{path}: <{tag}>");
        }
        let parsed = roxmltree::Document::parse(&svg);
        assert!(parsed.is_ok(), "{path}: {parsed:?}");
    }
}

#[test]
fn markdown_has_no_foreign_link_picture_or_tag() {
    let (_, text) = texts("report.md").remove(0);
    for line in text.lines() {
        let plain = line.replace("\\`", "");
        let outside: Vec<&str> = plain.split('`').step_by(2).collect();
        assert!(!outside.iter().any(|part| part.contains('<')), "{line}");
        for part in outside {
            let places: Vec<usize> = part.match_indices("](").map(|(at, _)| at).collect();
            for at in places {
                let escaped = part[..at].ends_with('\\');
                assert!(escaped || part[at..].starts_with("](figures/"), "{line}");
            }
        }
    }
    assert!(!text.contains('\u{202E}'));
}

#[test]
fn tex_runs_nothing() {
    for (path, text) in texts(".tex") {
        for line in text.lines().filter(|line| !line.starts_with('%')) {
            // The one command that reads a file takes names of the report's own tables.
            for argument in line.split("\\input").skip(1) {
                let name = argument.strip_prefix('{').and_then(|rest| rest.split('}').next());
                let own = |name: &str| {
                    name.starts_with("tables/")
                        && name.chars().all(|c| c.is_ascii_alphanumeric() || "-./".contains(c))
                };
                assert!(path == "report.tex" && name.is_some_and(own), "{path}: {line}");
            }
            assert!(!line.contains("$x$"), "{path}: {line}");
        }
    }
}

#[test]
fn no_field_of_a_table_is_a_formula() {
    use polars::prelude::*;
    for (path, text) in texts(".csv") {
        let frame = CsvReader::new(std::io::Cursor::new(text)).finish().unwrap();
        for column in frame.columns() {
            let Ok(fields) = column.str() else { continue };
            for field in fields.iter().flatten() {
                assert!(!field.starts_with(['=', '+', '@']), "{path}: {field}");
            }
        }
    }
    let wicked = ["=1", "+1", "-1", "@a", "\t=1", "\r=1", "\n=1"];
    let frame = df!("name" => wicked).unwrap();
    let text = String::from_utf8(super::csv::bytes(frame).unwrap()).unwrap();
    assert_eq!(text.matches('\'').count(), wicked.len(), "{text}");
}
