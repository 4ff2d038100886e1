//! Words of a POSIX shell and of bash.

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
pub fn line<W: AsRef<str>>(words: &[W]) -> String {
    words.iter().map(|word| quoted(word.as_ref())).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

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
        let script = format!("printf '%s\\0' {}", line(&words));
        assert!(!script.contains('\n'), "{script}");
        let output = Command::new("bash").args(["-c", &script]).env("LC_ALL", "C.UTF-8").output();
        let output = String::from_utf8(output.unwrap().stdout).unwrap();
        assert_eq!(output.split_terminator('\0').collect::<Vec<_>>(), words);
    }
}
