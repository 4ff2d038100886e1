//! Suggestions for misspelt names.

/// Returns the known name most similar to `name`, or `None` if no name is similar.
pub(crate) fn nearest(name: &str, known: &[&'static str]) -> Option<&'static str> {
    /// Least similarity of a suggestion. A two-letter slip in a short id scores about 0.6.
    const SIMILAR: f64 = 0.5;
    known
        .iter()
        .map(|k| (strsim::normalized_damerau_levenshtein(name, k), *k))
        .filter(|(similarity, _)| *similarity >= SIMILAR)
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .map(|(_, k)| k)
}

/// Formats a suggestion for the end of an "unknown name" message; empty without one.
pub(crate) fn did_you_mean(nearest: Option<&str>) -> String {
    nearest.map_or_else(String::new, |name| format!(" (did you mean `{name}`?)"))
}

/// Formats the end of an "unknown name" message: a suggestion, or without one the known names.
pub(crate) fn or_known(nearest: Option<&str>, kind: &str, known: &[&str]) -> String {
    match nearest {
        Some(_) => did_you_mean(nearest),
        None => format!("; known {kind}: {}", known.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nearest_finds_a_slip_and_refuses_nonsense() {
        let known = ["copy", "counting", "flip-flop", "text"];
        assert_eq!(nearest("flipflop", &known), Some("flip-flop"));
        assert_eq!(nearest("count", &known), Some("counting"));
        assert_eq!(nearest("zzz", &known), None);
    }
}
