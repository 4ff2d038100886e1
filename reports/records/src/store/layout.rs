//! Layout of record files: one field per line, lists of numbers and small objects on one line.

/// Maximum length in bytes of an object of scalars on one line.
const WIDTH: usize = 120;

/// Joins the lines of every list of scalars, and of every object of scalars that fits on a line, in JSON from serde's
/// pretty printer. Values are unchanged.
pub(crate) fn join_innermost(pretty: &str) -> String {
    let lines: Vec<&str> = pretty.lines().collect();
    let mut out = String::with_capacity(pretty.len());
    let mut at = 0;
    while at < lines.len() {
        let joined = innermost(&lines[at..]).map(|count| (join(&lines[at..=at + count]), count));
        match joined {
            Some((line, count)) if lines[at].ends_with('[') || line.len() <= WIDTH => {
                out.push_str(&line);
                at += count;
            }
            _ => out.push_str(lines[at]),
        }
        out.push('\n');
        at += 1;
    }
    out
}

/// Returns the index of the closing line if the first line opens a list or object of scalars.
fn innermost(lines: &[&str]) -> Option<usize> {
    let opens = |line: &str| line.ends_with(['[', '{']);
    if !opens(lines[0]) {
        return None;
    }
    // A scalar's line cannot begin with a bracket: strings begin with a quotation mark.
    let closes = |line: &str| line.trim_start().starts_with([']', '}']);
    let end = (1..lines.len()).find(|&i| closes(lines[i]) || opens(lines[i]))?;
    closes(lines[end]).then_some(end)
}

fn join(lines: &[&str]) -> String {
    let (first, rest) = (lines[0], &lines[1..]);
    let (last, middle) = rest.split_last().map_or(("", rest), |(last, middle)| (*last, middle));
    let middle: Vec<&str> = middle.iter().map(|line| line.trim()).collect();
    format!("{first}{}{}", middle.join(" "), last.trim())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    #[test]
    fn numbers_share_a_line_and_no_value_changes() {
        let long: Vec<u32> = (0..100).collect();
        let value = json!({
            "a": [1.5, 2.0, null], "b": {"c": "x [", "d": {"e": []}}, "f": [{"g": 1}, {"h": "{"}],
            "long": long, "wide": {"k": "w".repeat(130)},
        });
        let text = join_innermost(&serde_json::to_string_pretty(&value).unwrap());
        assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), value);
        assert!(text.contains("\"a\": [1.5, 2.0, null]"), "{text}");
        assert!(text.contains("{\"g\": 1},\n"), "{text}");
        assert!(text.contains(", 98, 99]"), "{text}");
        assert!(text.contains("\"wide\": {\n"), "{text}");
    }
}
