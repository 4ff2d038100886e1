//! Links, file names and command lines of a Markdown document.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// A document, with its code blocks apart from its text.
pub(crate) struct Document {
    pub(crate) path: PathBuf,
    /// Lines outside of code blocks.
    text: Vec<String>,
    /// Lines of code blocks in the language `sh`.
    pub(crate) shell: Vec<String>,
}

impl Document {
    pub(crate) fn read(path: &Path) -> Self {
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
    pub(crate) fn links(&self) -> Vec<&str> {
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

    pub(crate) fn broken_links(&self) -> Vec<String> {
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

    /// Files of the repository that are named in inline code and do not exist. Patterns such as `<key>.json` are left out.
    pub(crate) fn missing_files(&self, root: &Path) -> Vec<String> {
        let folders = ["pe-zoo/", "tasks/", "reports/", "bench/", "ci/", "doc/", "examples/"];
        let is_pattern = |name: &str| name.contains(['<', '*', ' ', '{']);
        let committed =
            |name: &str| folders.iter().any(|f| name.starts_with(f)) && !name.contains("/target/");
        let names = self.code().into_iter().filter(|name| committed(name) && !is_pattern(name));
        names
            .filter(|name| !root.join(name).exists())
            .map(|name| format!("{}: file {name}", self.path.display()))
            .collect()
    }

    /// Command lines of `pe-bench`, split into words, the program's name first.
    pub(crate) fn commands(&self) -> Vec<Vec<String>> {
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

    pub(crate) fn refused_commands(&self) -> Vec<String> {
        let commands = self.commands().into_iter();
        commands
            .filter_map(|command| {
                let error = pe_bench::parses(&command).err()?;
                let path = self.path.display();
                Some(format!("{path}: `{}`: {error}", command.join(" ")))
            })
            .collect()
    }
}

/// Words of a shell command up to its comment; single quotes keep blanks.
pub(crate) fn words(line: &str) -> Vec<String> {
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
