//! `pe-bench new`: files to start from.

use anyhow::ensure;

/// Annotated suite with every section.
pub(super) fn suite(name: &str) -> anyhow::Result<String> {
    train::suite::check_name(name).map_err(|reason| anyhow::anyhow!("suite name {reason}"))?;
    ensure!(
        train::suite::BUILT_IN.iter().all(|(built_in, _)| *built_in != name),
        "suite name `{name}` is taken by a built-in suite, which writes to the same results folder; choose another \
         name, and write `extends = \"{name}\"` in the file to start from the built-in suite"
    );
    Ok(train::suite::example(name))
}

/// Source of an encoding that passes the conformance kit, for `pe-zoo/src/zoo`.
pub(super) fn encoding(id: &str) -> anyhow::Result<String> {
    train::encodings::registry().check_new_id(id)?;
    let capitalised = |word: &str| word[..1].to_uppercase() + &word[1..];
    let words = id.split('-').filter(|word| !word.is_empty());
    let name = words.map(capitalised).collect::<String>();
    let text = pe_zoo::zoo::NEW_ENCODING.trim_end();
    Ok(text.replace("NewEncoding", &name).replace("new-encoding", id))
}

#[cfg(test)]
mod tests {
    use super::encoding;

    #[test]
    fn an_encoding_has_its_name_everywhere() {
        let text = encoding("my-bias-2").unwrap();
        for line in [
            "//! # MyBias2: a penalty on the logits that grows with distance",
            "    pub struct MyBias2Config {",
            "impl PositionEncoding for MyBias2 {",
            "        id: \"my-bias-2\",",
            "        texts: &[\"my-bias-2\", \"my-bias-2{slope=2.0}\"],",
        ] {
            assert!(text.lines().any(|other| other == line), "{line}");
        }
        assert!(!text.to_lowercase().replace(['-', '_'], "").contains("newencoding"), "{text}");
    }

    #[test]
    fn an_id_that_no_encoding_can_have_is_refused_with_the_reason() {
        for (id, reason) in
            [("rope", "choose another"), ("My_Bias", "lower-case"), ("", "lower-case")]
        {
            let error = format!("{:#}", encoding(id).unwrap_err());
            assert!(error.contains(reason), "{id}: {error}");
        }
    }
}
