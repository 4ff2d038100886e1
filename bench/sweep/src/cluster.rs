//! Batch scripts for Slurm and manifests for Kubernetes: templates, and the words of a shell.

use std::collections::BTreeMap;

/// Template of the batch script for Slurm.
pub const SLURM: &str = include_str!("cluster/slurm.sh");

/// Template of the manifests for Kubernetes.
pub const KUBERNETES: &str = include_str!("cluster/kubernetes.yaml");

/// Writes a template with its placeholders filled in, which are the names of `fields` in double braces. A line is left out if a
/// field has no texts, and repeated if it has several. Texts are not searched for placeholders.
///
/// # Panics
///
/// If the template has a placeholder without a field.
pub fn render(template: &str, fields: &BTreeMap<&str, Vec<String>>) -> String {
    let mut rendered = String::new();
    for line in template.lines() {
        let mut pieces = line.split("{{");
        let start = pieces.next().unwrap_or_default();
        let pieces = pieces.filter_map(|piece| piece.split_once("}}"));
        let pieces = pieces.map(|(name, rest)| (&fields[name], rest)).collect::<Vec<_>>();
        let counts = pieces.iter().map(|(texts, _)| texts.len());
        let times = if counts.clone().any(|n| n == 0) { 0 } else { counts.max().unwrap_or(1) };
        for i in 0..times {
            rendered.push_str(start);
            for (texts, rest) in &pieces {
                rendered.push_str(&texts[i.min(texts.len() - 1)]);
                rendered.push_str(rest);
            }
            rendered.push('\n');
        }
    }
    rendered
}

/// Formats a word for bash, on one line: as it is, in single quotes, or as `$'...'` if it has control characters.
pub fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "_-./:=,+@%".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        return word.to_owned();
    }
    if !word.chars().any(char::is_control) {
        return format!("'{}'", word.replace('\'', "'\\''"));
    }
    let mut text = String::from("$'");
    for c in word.chars() {
        match c {
            '\'' | '\\' => text.extend(['\\', c]),
            c if c.is_control() => text.extend(format!("\\u{:04x}", c as u32).chars()),
            c => text.push(c),
        }
    }
    text.push('\'');
    text
}

/// Formats a command line for bash.
pub fn command_line<W: AsRef<str>>(words: &[W]) -> String {
    words.iter().map(|word| quoted(word.as_ref())).collect::<Vec<_>>().join(" ")
}

/// Parses the value of an option of `sbatch`, which has no blanks, quotes, comments or control characters.
///
/// # Errors
/// Message with the value.
pub fn sbatch_value(text: &str) -> Result<String, String> {
    let allowed = |c: char| c.is_ascii_alphanumeric() || "_-./:=,+@[]&|*()!".contains(c);
    let fits = !text.is_empty() && text.chars().all(allowed);
    fits.then(|| text.to_owned()).ok_or_else(|| {
        format!(
            "`{text}` cannot be the value of an option of sbatch, expected letters, digits and _-./:=,+@[]&|*()!"
        )
    })
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn a_line_is_written_once_for_each_text_of_its_placeholder() {
        let field = |name, texts: &[&str]| (name, texts.iter().map(|&t| t.to_owned()).collect());
        let fields = [field("a", &["1", "{{b}}"]), field("b", &["x"]), field("none", &[])];
        let fields = fields.into_iter().collect();
        let rendered = render("start\n{{b}}: {{a}};\n- {{none}} {{a}}\nend", &fields);
        assert_eq!(rendered, "start\nx: 1;\nx: {{b}};\nend\n");
    }

    #[test]
    fn bash_reads_every_word_as_it_was_and_no_line_ends_within_one() {
        let words = [
            "",
            "plain-word_1.toml",
            "two words",
            "it's",
            "a\nb\r\t\u{1b}[31m\\'",
            "$(touch x) `y` \"z\" !",
            "größer – 漢字",
            "~/x *",
            "# no comment",
        ];
        let script = format!("printf '%s\\0' {}", command_line(&words));
        assert!(!script.contains('\n'), "{script}");
        let output = Command::new("bash").args(["-c", &script]).env("LC_ALL", "C.UTF-8").output();
        let output = String::from_utf8(output.unwrap().stdout).unwrap();
        assert_eq!(output.split_terminator('\0').collect::<Vec<_>>(), words);
    }

    #[test]
    fn values_of_options_have_no_room_for_other_lines() {
        for text in ["gpu:a100:2", "long,short", "a@b", "[a|b]&c*2"] {
            assert_eq!(sbatch_value(text), Ok(text.to_owned()));
        }
        for text in ["", "a b", "a\n#SBATCH --x", "a'b", "a#b", "a\u{1b}", "$(x)", "a%b", "a\\b"] {
            assert!(sbatch_value(text).is_err(), "{text}");
        }
    }
}
