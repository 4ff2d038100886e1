//! The parts of README.md and the guide that are generated from the registries and from the zoo's records.

mod suite_keys;

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use analysis::Report;
use anyhow::Context as _;
use pe_zoo::{Combination, PeError, Registry};
use reports::document::text::{findings, in_short};

use super::{folders, report};
use train::flops::Bill;
use train::flops::config::CostConfig;

/// Writes what is out of date, and fails then: a second run passes.
#[test]
fn generated_parts_of_documents_are_up_to_date() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut documents = Documents { root, written: Vec::new() };
    documents.write_part("doc/guide/encodings.md", "encodings", &encodings().unwrap());
    documents.write_part("doc/guide/tasks.md", "tasks", &tasks_table());
    documents.write_part("doc/guide/suite-keys.md", "suite-keys", &suite_keys::suite_keys());
    let encodings = Registry::builtin().cards().count();
    documents.write_count("README.md", "pe-zoo implements ", encodings);
    documents.write_count("README.md", "combinable, and selectable per layer | ", encodings);
    documents.write_count("doc/guide/index.md", "pe-zoo has ", encodings);
    documents.write_result().unwrap();
    let written = documents.written;
    assert!(written.is_empty(), "this test has just written them; commit them: {written:?}");
}

/// The documents of the repository, and which of them were written.
struct Documents {
    root: PathBuf,
    written: Vec<String>,
}

impl Documents {
    /// Writes a file if it has other bytes.
    fn write(&mut self, file: &str, bytes: &[u8]) {
        let path = self.root.join(file);
        if std::fs::read(&path).is_ok_and(|old| old == bytes) {
            return;
        }
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, bytes).unwrap();
        self.written.push(file.to_owned());
    }

    /// Replaces the part of a document between the markers.
    fn write_part(&mut self, file: &str, marker: &str, part: &str) {
        let text = std::fs::read_to_string(self.root.join(file)).unwrap();
        self.write(file, replaced(&text, marker, part).as_bytes());
    }

    /// Replaces the number after some words.
    fn write_count(&mut self, file: &str, before: &str, count: usize) {
        let text = std::fs::read_to_string(self.root.join(file)).unwrap();
        let at = text.find(before).expect("the words") + before.len();
        let digits = text[at..].chars().take_while(char::is_ascii_digit).count();
        let (head, rest) = (&text[..at], &text[at + digits..]);
        self.write(file, format!("{head}{count}{rest}").as_bytes());
    }

    /// Writes the main result of README.md, its figures, and its table in results/README.md.
    fn write_result(&mut self) -> anyhow::Result<()> {
        let folders = folders::or_all(&[self.root.join(RESULT_OF)])?;
        let (frames, mut meta, settings) = report::gathered(&folders, RESULT_OF)?;
        for folder in &folders {
            report::add_files(folder, &self.root.join(FIGURES), &mut meta)?;
        }
        let report = Report::with(frames.clone(), &meta, &settings)?;
        let found = serde_json::to_string_pretty(&findings(&report))? + "\n";
        self.write("bench/cli/zoo.json", found.as_bytes());
        let rendered = reports::render_report(frames, &meta, &settings, &["svg".to_owned()])?;
        let headline = &rendered.headline;
        let figures = format!("](../{FIGURES}/");
        let part = format!("\n{}", headline.replace("](figures/", &figures));
        self.write_part("results/README.md", "zoo", &part);
        for file in &rendered.files {
            let Some(name) = Path::new(&file.path).file_name() else { continue };
            if headline.contains(&format!("]({})", file.path)) {
                self.write(&format!("{FIGURES}/{}", name.display()), &file.bytes);
            }
        }
        let best = reports::leaders_svg(&report, LEADERS).context("no aggregate")?;
        self.write(&format!("{FIGURES}/leaders.svg"), best.as_bytes());
        let findings = format!("- {}\n", in_short(&report).join("\n- "));
        self.write_part("README.md", "result", &findings);
        Ok(())
    }
}

/// Results folder whose main result README.md shows.
const RESULT_OF: &str = "results/zoo/2-cores_2026-11";
/// Folder of the figures that the documents show; a book has the files below its own folder.
const FIGURES: &str = "doc/guide/figures";
/// Number of encodings besides RoPE in the figure of README.md.
const LEADERS: usize = 10;

/// Returns the text with everything between the two markers replaced.
fn replaced(text: &str, marker: &str, content: &str) -> String {
    let (begin, end) =
        (format!("<!-- generated: {marker} -->\n"), format!("<!-- end: {marker} -->"));
    let start = text.find(&begin).expect("the begin marker") + begin.len();
    let stop = start + text[start..].find(&end).expect("the end marker");
    format!("{}{content}{}", &text[..start], &text[stop..])
}

/// Model configuration of the cost table.
const SIZE: &str = "tape-155m";

fn encodings() -> anyhow::Result<String> {
    let mut table = String::from(
        "| id | encoding | acts on | learned parameters | content-dependent | length limit | work | paper |\n\
         | --- | --- | --- | --- | --- | --- | --- | --- |\n",
    );
    let config = CostConfig::named(SIZE)?;
    let flops =
        |encoding: &Combination| Ok::<_, PeError>(Bill::of(&config, encoding)?.honest().flops);
    let without = flops(&train::encodings::parse("nope")?)?;
    let registry = Registry::builtin();
    for card in registry.cards() {
        let properties = pe_zoo::probe::properties(&registry.encoding(card.id)?)?;
        let acts_on = properties.acts_on.iter().map(|part| part.label()).collect::<Vec<_>>();
        let yes = |holds: bool, text: &'static str| if holds { text } else { "–" };
        let with = flops(&registry.parse(card.id)?)?;
        let work = if with == without {
            "–".to_owned()
        } else {
            format!("{:+.2}%", 100.0 * (with as f64 / without as f64 - 1.0))
        };
        writeln!(
            table,
            "| `{}` | {} | {} | {} | {} | {} | {work} | [{}]({}) |",
            card.id,
            card.label,
            if acts_on.is_empty() { "–".to_owned() } else { acts_on.join(", ") },
            card.parameters,
            yes(properties.content_dependent, "yes"),
            yes(properties.limited_length, "table"),
            card.paper,
            card.url,
        )?;
    }
    Ok(table)
}

fn tasks_table() -> String {
    let mut table =
        String::from("| id | task | ranked by | summary |\n| --- | --- | --- | --- |\n");
    for meta in tasks::ALL {
        writeln!(
            table,
            "| `{}` | {} | {} | {} |",
            meta.id,
            meta.label,
            meta.headline.id(),
            meta.summary
        )
        .unwrap();
    }
    table
}

#[test]
fn only_what_stands_between_the_markers_changes() {
    let text = "a\n<!-- generated: x -->\nold\n<!-- end: x -->\nb\n";
    let new = replaced(text, "x", "new\n");
    assert_eq!(new, "a\n<!-- generated: x -->\nnew\n<!-- end: x -->\nb\n");
}
