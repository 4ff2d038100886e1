//! `pe-bench docs`: the parts of README.md and the guide that are generated from the registries and from the zoo's records.

use std::fmt::Write as _;
use std::path::Path;

use anyhow::{Context, bail};
use pe_zoo::{Combination, PeError, Registry};

use super::out::say;
use super::{folders, report};
use train::flops::Bill;
use train::flops::config::CostConfig;

pub(super) fn docs(root: &Path, check: bool) -> anyhow::Result<()> {
    write_part(root, "doc/guide/encodings.md", "encodings", &encodings()?, check)?;
    write_part(root, "doc/guide/tasks.md", "tasks", &tasks_table()?, check)?;
    result(root, check)
}

/// Replaces the part of a document between the markers, or checks that it is up to date.
fn write_part(
    root: &Path,
    file: &str,
    marker: &str,
    part: &str,
    check: bool,
) -> anyhow::Result<()> {
    let path = root.join(file);
    let text = std::fs::read_to_string(&path).with_context(|| {
        format!(
            "cannot read {}; run this in the root of the repository, or set --root",
            path.display()
        )
    })?;
    let wanted = replaced(&text, marker, part)
        .with_context(|| format!("{}: markers of `{marker}`", path.display()))?;
    if wanted == text {
        return Ok(());
    }
    if check {
        bail!("{}: part `{marker}` is out of date; run `pe-bench docs`", path.display());
    }
    std::fs::write(&path, wanted).with_context(|| path.display().to_string())?;
    say(&format!("{}: part `{marker}` written", path.display()));
    Ok(())
}

/// Results folder whose main result README.md shows.
const RESULT_OF: &str = "results/zoo/2-cores_2026-11";
/// Folder of the figures that README.md shows.
const FIGURES: &str = "doc/figures";

/// Writes the main result of README.md and its figures, or checks that both are up to date.
fn result(root: &Path, check: bool) -> anyhow::Result<()> {
    let folders = folders::or_all(&[root.join(RESULT_OF)])?;
    let (frames, mut meta, settings) = report::gathered(&folders, RESULT_OF)?;
    for folder in &folders {
        report::add_files(folder, &root.join(FIGURES), &mut meta)?;
    }
    let cells = frames.cells.height();
    let rendered = reports::render_report(frames, &meta, &settings, &["svg".to_owned()])?;
    let headline = rendered.headline.replace("](figures/", &format!("]({FIGURES}/"));
    let part = format!(
        "\n{headline}\n`pe-bench report {RESULT_OF} --out page` writes the whole report of these {cells} cells: intervals, \
         tests, curves, costs, and a page for each encoding and task.\n"
    );
    write_part(root, "README.md", "result", &part, check)?;
    for file in &rendered.files {
        let Some(name) = Path::new(&file.path).file_name().map(Path::new) else { continue };
        let path = root.join(FIGURES).join(name);
        let is_shown = part.contains(&format!("]({FIGURES}/{})", name.display()));
        if !is_shown || std::fs::read(&path).is_ok_and(|bytes| bytes == file.bytes) {
            continue;
        }
        if check {
            bail!("{} is out of date; run `pe-bench docs`", path.display());
        }
        std::fs::create_dir_all(root.join(FIGURES)).with_context(|| FIGURES.to_owned())?;
        std::fs::write(&path, &file.bytes).with_context(|| path.display().to_string())?;
        say(&format!("{} written", path.display()));
    }
    Ok(())
}

/// Returns the text with everything between the two markers replaced.
fn replaced(text: &str, marker: &str, content: &str) -> anyhow::Result<String> {
    let (begin, end) =
        (format!("<!-- generated: {marker} -->\n"), format!("<!-- end: {marker} -->"));
    let start = text.find(&begin).context("the begin marker is missing")? + begin.len();
    let stop = start + text[start..].find(&end).context("the end marker is missing")?;
    Ok(format!("{}{content}{}", &text[..start], &text[stop..]))
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
            format!("+{:.2} %", 100.0 * (with as f64 / without as f64 - 1.0))
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

fn tasks_table() -> anyhow::Result<String> {
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
        )?;
    }
    Ok(table)
}

#[cfg(test)]
mod tests {
    use super::replaced;

    #[test]
    fn only_what_stands_between_the_markers_changes() {
        let text = "a\n<!-- generated: x -->\nold\n<!-- end: x -->\nb\n";
        let new = replaced(text, "x", "new\n").unwrap();
        assert_eq!(new, "a\n<!-- generated: x -->\nnew\n<!-- end: x -->\nb\n");
        assert!(replaced(text, "y", "").is_err());
    }
}
