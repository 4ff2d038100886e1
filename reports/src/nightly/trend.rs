//! The trend page: every workload and encoding over the nights, with commits.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use super::history::{Night, NightLine};
use crate::number::{bytes, percent, si, thousands, three_digits};
use crate::page::{html_table, plain_page};
use crate::render::COLOURS;
use crate::table::{Cell, Table};
use crate::text::html;

const DASHES: [&str; 4] = ["", "6 3", "2 2", "8 3 2 3"];
const WIDTH: f64 = 560.0;
const HEIGHT: f64 = 150.0;
const LEFT: f64 = 52.0;
const TOP: f64 = 12.0;
const BOTTOM: f64 = 24.0;

/// What is drawn: a name, its value of a line, and how it is written.
struct Quantity {
    name: &'static str,
    get: fn(&NightLine) -> Option<f64>,
    show: fn(f64) -> String,
    /// Ends of the axis where they are always the same.
    whole: Option<(f64, f64)>,
}

const QUANTITIES: [Quantity; 9] = [
    Quantity {
        name: "exact match in distribution",
        get: |line| line.exact_match,
        show: percent,
        whole: Some((0.0, 1.0)),
    },
    Quantity {
        name: "token accuracy beyond training",
        get: |line| line.beyond_token_accuracy,
        show: percent,
        whole: Some((0.0, 1.0)),
    },
    Quantity {
        name: "nll in distribution, nats per scored token",
        get: |line| line.nll,
        show: three_digits,
        whole: None,
    },
    Quantity {
        name: "median step, ms",
        get: |line| line.step_seconds.map(|seconds| 1000.0 * seconds),
        show: three_digits,
        whole: None,
    },
    Quantity { name: "parameters", get: |line| Some(line.params as f64), show: si, whole: None },
    Quantity {
        name: "operations of a step, by formula",
        get: |line| Some(line.flops_train_step as f64),
        show: si,
        whole: None,
    },
    Quantity {
        name: "instructions of a step",
        get: |line| line.step_instructions,
        show: si,
        whole: None,
    },
    Quantity {
        name: "allocations of a step",
        get: |line| line.step_allocations,
        show: |count| thousands(count.round() as u64),
        whole: None,
    },
    Quantity {
        name: "bytes allocated in a step",
        get: |line| line.step_allocated_bytes,
        show: bytes,
        whole: None,
    },
];

/// The page, in one file: no script, no request.
pub fn page(nights: &[Night]) -> String {
    let workloads = names(nights, |line| &line.workload);
    let encodings = names(nights, |line| &line.encoding);
    let mut out = String::new();
    let _ = writeln!(
        out,
        "<p>{} nights; each point is a mean over the seeds of a night. A triangle marks a night that the gate did not take.</p>",
        nights.len()
    );
    out.push_str("<p class=\"legend\">");
    for (index, encoding) in encodings.iter().enumerate() {
        let (colour, dash) = style(index);
        let _ = write!(
            out,
            "<span><svg width=\"30\" height=\"8\" aria-hidden=\"true\"><line x1=\"0\" y1=\"4\" x2=\"30\" y2=\"4\" \
             style=\"stroke:{colour}\" stroke-width=\"2\" stroke-dasharray=\"{dash}\"/></svg> {}</span>",
            html(encoding)
        );
    }
    out.push_str("</p>\n");
    for workload in &workloads {
        let _ = writeln!(out, "<h2>{}</h2>\n<div class=\"figures\">", html(workload));
        for quantity in &QUANTITIES {
            if let Some(svg) = svg(nights, workload, &encodings, quantity) {
                let _ = writeln!(
                    out,
                    "<figure>{svg}<figcaption>{}</figcaption></figure>",
                    html(quantity.name)
                );
            }
        }
        out.push_str("</div>\n");
    }
    let row = |(index, night): (usize, &Night)| {
        let texts = [(index + 1).to_string(), night.started_utc.clone(), commit(night)];
        texts.into_iter().map(Cell::from).chain([gate(night).into()]).collect()
    };
    let columns = ["night", "started", "commit", "gate"].map(str::to_owned).to_vec();
    let rows = nights.iter().enumerate().map(row).collect();
    let commits = Table { columns, rows, words: true, ..Table::default() };
    let _ = write!(out, "<h2>Commits</h2>\n{}", html_table(&commits));
    plain_page("Nights", &out)
}

/// The last two nights as a table in Markdown, and the list of commits.
pub fn markdown(nights: &[Night]) -> String {
    let mut out = String::from("# Nights\n\n");
    let Some(last) = nights.last() else { return out + "No night yet.\n" };
    let before = nights.len().checked_sub(2).and_then(|index| nights.get(index));
    out.push_str(
        "| workload | encoding | exact match | beyond: token accuracy | nll | step, ms | parameters | operations \
         | instructions | allocations | allocated |\n",
    );
    out.push_str("| --- | --- |");
    out.push_str(&" ---: |".repeat(QUANTITIES.len()));
    out.push('\n');
    for line in &last.lines {
        let same = |l: &&NightLine| l.workload == line.workload && l.encoding == line.encoding;
        let old = before.and_then(|night| night.lines.iter().find(same));
        let cell = |quantity: &Quantity| {
            let now = (quantity.get)(line).map_or_else(|| "–".to_owned(), quantity.show);
            let was = old.and_then(quantity.get).map(quantity.show);
            match was {
                Some(was) if was != now => format!("{was} -> {now}"),
                _ => now,
            }
        };
        let cells: Vec<String> = QUANTITIES.iter().map(cell).collect();
        let names = [escape_markdown(&line.workload), escape_markdown(&line.encoding)];
        let _ = writeln!(out, "| {} | {} |", names.join(" | "), cells.join(" | "));
    }
    out.push_str("\n| night | started | commit | gate |\n| ---: | --- | --- | --- |\n");
    for (index, night) in nights.iter().enumerate() {
        let (started, commit) =
            (escape_markdown(&night.started_utc), escape_markdown(&commit(night)));
        let _ = writeln!(out, "| {} | {started} | {commit} | {} |", index + 1, gate(night));
    }
    out
}

fn commit(night: &Night) -> String {
    let dirty = if night.dirty == Some(true) { ", with uncommitted changes" } else { "" };
    format!("{}{dirty}", night.commit.as_deref().unwrap_or("unknown"))
}

fn gate(night: &Night) -> &'static str {
    match night.passed {
        Some(true) => "passed",
        Some(false) => "failed",
        None => "no baseline",
    }
}

fn names(nights: &[Night], get: fn(&NightLine) -> &String) -> Vec<String> {
    let all: BTreeSet<&String> = nights.iter().flat_map(|night| &night.lines).map(get).collect();
    all.into_iter().cloned().collect()
}

/// Colour, of the page's own, and dash.
fn style(index: usize) -> (String, &'static str) {
    (format!("var(--c{})", index % COLOURS), DASHES[index / COLOURS % DASHES.len()])
}

/// One quantity of one workload, a line per encoding; `None` where no night has it.
fn svg(
    nights: &[Night],
    workload: &str,
    encodings: &[String],
    quantity: &Quantity,
) -> Option<String> {
    let series: Vec<Vec<Option<f64>>> = encodings
        .iter()
        .map(|encoding| {
            let value = |night: &Night| {
                let own = |l: &&NightLine| l.workload == workload && l.encoding == *encoding;
                night.lines.iter().find(own).and_then(quantity.get)
            };
            nights.iter().map(value).collect()
        })
        .collect();
    let values: Vec<f64> = series.iter().flatten().flatten().copied().collect();
    if values.is_empty() {
        return None;
    }
    let ends = |(low, high): (f64, f64), value: &f64| (low.min(*value), high.max(*value));
    let (low, high) =
        quantity.whole.unwrap_or_else(|| values.iter().fold((f64::MAX, f64::MIN), ends));
    let spread = if high > low { high - low } else { high.abs().max(1.0) };
    let (low, high) = if quantity.whole.is_some() {
        (low, high)
    } else {
        // No loss and no time is below 0, so no axis suggests it.
        let least = if low < 0.0 { f64::MIN } else { 0.0 };
        ((low - 0.05 * spread).max(least), high + 0.05 * spread)
    };
    let step = (WIDTH - LEFT - 10.0) / (nights.len().saturating_sub(1).max(1)) as f64;
    let x = |index: usize| LEFT + index as f64 * step;
    let y = |value: f64| {
        TOP + (HEIGHT - TOP - BOTTOM) * (1.0 - ((value - low) / (high - low)).clamp(0.0, 1.0))
    };
    let mut out = format!(
        "<svg viewBox=\"0 0 {WIDTH} {HEIGHT}\" width=\"{WIDTH}\" height=\"{HEIGHT}\" role=\"img\" font-size=\"11\" \
         font-family=\"system-ui,sans-serif\" style=\"fill:var(--soft)\"><title>{}: {}</title>",
        html(workload),
        html(quantity.name)
    );
    for value in [low, f64::midpoint(low, high), high] {
        let at = y(value);
        let _ = write!(
            out,
            "<line x1=\"{LEFT}\" x2=\"{WIDTH}\" y1=\"{at:.1}\" y2=\"{at:.1}\" style=\"stroke:var(--grid)\"/>\
             <text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>",
            LEFT - 5.0,
            at + 4.0,
            html(&(quantity.show)(value))
        );
    }
    let every = nights.len().div_ceil(8).max(1);
    for (index, night) in nights.iter().enumerate().filter(|(index, _)| index % every == 0) {
        let anchor = if index == 0 {
            "start"
        } else if index + 1 == nights.len() {
            "end"
        } else {
            "middle"
        };
        let _ = write!(
            out,
            "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"{anchor}\">{}</text>",
            x(index),
            HEIGHT - 6.0,
            html(&night.short_commit())
        );
    }
    for (index, (encoding, values)) in encodings.iter().zip(&series).enumerate() {
        line(&mut out, index, encoding, values, nights, quantity, &|i, v| (x(i), y(v)));
    }
    out.push_str("</svg>");
    Some(out)
}

fn line(
    out: &mut String,
    index: usize,
    encoding: &str,
    values: &[Option<f64>],
    nights: &[Night],
    quantity: &Quantity,
    place: &dyn Fn(usize, f64) -> (f64, f64),
) {
    let (colour, dash) = style(index);
    let points: Vec<(usize, f64)> =
        values.iter().enumerate().filter_map(|(night, value)| Some((night, (*value)?))).collect();
    let mut path = String::new();
    for (night, value) in &points {
        let (x, y) = place(*night, *value);
        let _ = write!(path, "{x:.1},{y:.1} ");
    }
    let _ = write!(
        out,
        "<polyline points=\"{}\" fill=\"none\" style=\"stroke:{colour}\" stroke-width=\"1.8\" stroke-dasharray=\"{dash}\"/>",
        path.trim_end()
    );
    for (night, value) in points {
        let (x, y) = place(night, value);
        let about =
            format!("{encoding}, {}: {}", nights[night].short_commit(), (quantity.show)(value));
        let shape = if nights[night].passed == Some(false) {
            format!("<path d=\"M{x:.1} {:.1}l5 9h-10z\" style=\"fill:{colour}\">", y - 5.0)
        } else {
            format!("<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"2.6\" style=\"fill:{colour}\">")
        };
        let end = if shape.starts_with("<path") { "</path>" } else { "</circle>" };
        let _ = write!(out, "{shape}<title>{}</title>{end}", html(&about));
    }
}

fn escape_markdown(text: &str) -> String {
    html(text).replace('|', "\\|").replace('`', "\\`")
}
