//! README.md and the guide: links resolve, named files exist, command lines parse.
#![allow(clippy::unwrap_used, reason = "tests panic on failure")]

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// A document, with its code blocks apart from its text.
struct Document {
    path: PathBuf,
    /// Lines outside of code blocks.
    text: Vec<String>,
    /// Lines of code blocks in the language `sh`.
    shell: Vec<String>,
}

impl Document {
    fn read(path: &Path) -> Self {
        Self::parse(
            path,
            &fs::read_to_string(path).unwrap_or_else(|e| panic!("{}: {e}", path.display())),
        )
    }

    fn parse(path: &Path, content: &str) -> Self {
        let mut document = Self { path: path.to_owned(), text: Vec::new(), shell: Vec::new() };
        let mut language = None;
        for line in content.lines() {
            match (line.strip_prefix("```"), &language) {
                (Some(name), None) => language = Some(name.to_owned()),
                (Some(_), Some(_)) => language = None,
                (None, None) => document.text.push(line.to_owned()),
                (None, Some(name)) if name == "sh" => document.shell.push(line.to_owned()),
                (None, Some(_)) => {}
            }
        }
        document
    }

    /// Targets of links and images.
    fn links(&self) -> Vec<&str> {
        let pieces = self.text.iter().flat_map(|line| line.split("](").skip(1));
        pieces.map(|piece| piece.split(')').next().unwrap()).collect()
    }

    /// Anchors of the headings, as GitHub and mdBook make them.
    fn anchors(&self) -> BTreeSet<String> {
        let headings = self.text.iter().filter(|line| line.starts_with('#'));
        headings
            .map(|line| {
                let text = line.trim_start_matches('#').trim().to_lowercase();
                let kept = text.chars().filter(|c| c.is_alphanumeric() || " -_".contains(*c));
                kept.collect::<String>().replace(' ', "-")
            })
            .collect()
    }

    /// Inline code.
    fn code(&self) -> Vec<&str> {
        self.text.iter().flat_map(|line| line.split('`').skip(1).step_by(2)).collect()
    }

    fn broken_links(&self) -> Vec<String> {
        let folder = self.path.parent().unwrap();
        let broken = |link: &&str| {
            if link.contains("://") {
                return false;
            }
            let (file, anchor) = link.split_once('#').unwrap_or((link, ""));
            let target = if file.is_empty() { self.path.clone() } else { folder.join(file) };
            let lacks = |anchor| !Self::read(&target).anchors().contains(anchor);
            !target.exists() || (!anchor.is_empty() && lacks(anchor))
        };
        self.links()
            .into_iter()
            .filter(broken)
            .map(|link| format!("{}: link {link}", self.path.display()))
            .collect()
    }

    /// Files of the repository that are named in inline code and do not exist. Names with placeholders are left out.
    fn missing_files(&self, root: &Path) -> Vec<String> {
        let folders = ["pe-zoo/", "tasks/", "reports/", "bench/", "ci/", "doc/", "examples/"];
        let placeholder = |name: &str| name.contains(['<', '*', ' ', '{']);
        let committed =
            |name: &str| folders.iter().any(|f| name.starts_with(f)) && !name.contains("/target/");
        let names = self.code().into_iter().filter(|name| committed(name) && !placeholder(name));
        names
            .filter(|name| !root.join(name).exists())
            .map(|name| format!("{}: file {name}", self.path.display()))
            .collect()
    }

    /// Command lines of `pe-bench`, split into words, the program's name first.
    fn commands(&self) -> Vec<Vec<String>> {
        let lines = self.shell.iter().filter_map(|line| {
            let arguments = match line.strip_prefix("cargo run ") {
                Some(line) => line.split_once("-- ")?.1,
                None => line.strip_prefix("pe-bench ")?,
            };
            let words = words(arguments);
            let own = words.into_iter().take_while(|w| ![">", "|", "&&"].contains(&w.as_str()));
            Some(std::iter::once("pe-bench".to_owned()).chain(own).collect())
        });
        lines.collect()
    }

    fn refused_commands(&self) -> Vec<String> {
        let commands = self.commands().into_iter();
        commands
            .filter_map(|command| {
                let error = pe_bench::cli::parses(&command).err()?;
                let path = self.path.display();
                Some(format!("{path}: `{}`: {error}", command.join(" ")))
            })
            .collect()
    }
}

/// Words of a shell command up to its comment; single quotes keep blanks.
fn words(line: &str) -> Vec<String> {
    let (mut words, mut word, mut quoted) = (Vec::new(), String::new(), false);
    for c in line.chars() {
        match c {
            '\'' => quoted = !quoted,
            ' ' if !quoted => {
                if !word.is_empty() {
                    words.push(std::mem::take(&mut word));
                }
            }
            '#' if !quoted && word.is_empty() => return words,
            c => word.push(c),
        }
    }
    assert!(!quoted, "an open quote: {line}");
    words.extend(Some(word).filter(|word| !word.is_empty()));
    words
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_owned()
}

fn documents() -> Vec<Document> {
    let entries = fs::read_dir(root().join("doc/guide")).unwrap();
    let pages = entries.map(|entry| entry.unwrap().path());
    let mut paths =
        pages.filter(|path| path.extension().is_some_and(|e| e == "md")).collect::<Vec<_>>();
    paths.sort();
    paths.push(root().join("README.md"));
    paths.iter().map(|path| Document::read(path)).collect()
}

fn faults(of: impl Fn(&Document) -> Vec<String>) -> String {
    documents().iter().flat_map(of).collect::<Vec<_>>().join("\n")
}

#[test]
fn links_resolve() {
    let number = documents().iter().map(|document| document.links().len()).sum::<usize>();
    assert!(number > 60, "{number}");
    assert_eq!(faults(Document::broken_links), "");
}

#[test]
fn named_files_exist() {
    assert_eq!(faults(|document| document.missing_files(&root())), "");
}

#[test]
fn commands_parse() {
    let number = documents().iter().map(|document| document.commands().len()).sum::<usize>();
    assert!(number > 50, "{number}");
    assert_eq!(faults(Document::refused_commands), "");
}

#[test]
fn every_page_is_in_the_summary() {
    let documents = documents();
    let summary = documents.iter().find(|page| page.path.ends_with("SUMMARY.md")).unwrap();
    let listed = summary.links().into_iter().collect::<BTreeSet<_>>();
    let names = documents.iter().map(|page| page.path.file_name().unwrap().to_str().unwrap());
    let pages = names.filter(|name| !["SUMMARY.md", "README.md"].contains(name));
    assert_eq!(pages.collect::<BTreeSet<_>>(), listed);
}

/// The main result is a part of the example report, which `pe-bench docs` writes.
#[test]
fn the_readme_has_the_numbers_of_the_example_report() {
    let report = fs::read_to_string(root().join("doc/example/report.md")).unwrap();
    let readme = fs::read_to_string(root().join("README.md")).unwrap();
    let cells = |line: &str| {
        let cells = line.trim_matches('|').split('|').map(str::trim).map(str::to_owned);
        cells.collect::<Vec<_>>()
    };
    let head =
        readme.lines().position(|line| line.starts_with("| encoding | all tasks |")).unwrap();
    let rows = readme.lines().skip(head + 2).take_while(|line| line.starts_with('|'));
    let rows = rows.map(cells).collect::<Vec<_>>();
    assert!(rows.len() > 3);
    for row in rows {
        let start = format!("| {} |", row[0]);
        let found = report.lines().find(|line| line.starts_with(&start)).unwrap();
        for (ours, theirs) in row.iter().zip(cells(found)) {
            let begins = theirs.strip_prefix(ours.as_str()).is_some_and(|rest| {
                rest.is_empty() || [" [", " n=", " rank"].iter().any(|next| rest.starts_with(next))
            });
            assert!(begins, "{}: `{ours}`, the report has `{theirs}`", row[0]);
        }
    }
}

#[test]
fn the_readme_has_at_most_160_lines() {
    let lines = fs::read_to_string(root().join("README.md")).unwrap().lines().count();
    assert!(lines <= 160, "{lines}");
}

#[test]
fn faults_are_found() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("page.md");
    let content = "# One heading: `a`-b\n[x](#one-heading-a-b) [y](#other) [z](none.md) [w](https://none)\n\
                   ![i](page.md)\n`bench/none.rs` `bench/<name>.rs` `tasks/there.rs`\n\
                   ```sh\npe-bench run quick # comment\ncargo run --release -- explain 'a b' > file\n\
                   pe-bench run --no-such-option\nls\n```\n```text\npe-bench nonsense\n```\n";
    fs::write(&path, content).unwrap();
    fs::create_dir(folder.path().join("tasks")).unwrap();
    fs::write(folder.path().join("tasks/there.rs"), "").unwrap();
    let page = Document::read(&path);
    let ends = |faults: Vec<String>| {
        let words = faults.iter().map(|fault| fault.rsplit(' ').next().unwrap().to_owned());
        words.collect::<Vec<_>>()
    };
    assert_eq!(ends(page.broken_links()), ["#other", "none.md"]);
    assert_eq!(ends(page.missing_files(folder.path())), ["bench/none.rs"]);
    assert_eq!(
        page.commands()[..2],
        [vec!["pe-bench", "run", "quick"], vec!["pe-bench", "explain", "a b"]]
    );
    let refused = page.refused_commands();
    assert_eq!(refused.len(), 1);
    assert!(refused[0].contains("--no-such-option"), "{refused:?}");
}
