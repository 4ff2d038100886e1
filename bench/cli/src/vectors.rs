//! `pe-bench vectors`: test vectors of the scalar reference.

use clap::Args;
use pe_zoo::testkit::{MOST_VECTOR_TOKENS, vectors};

use super::out::say;
use super::parsers::{Suggested, number};

/// Arguments of `vectors`.
#[derive(Args, Clone)]
pub(super) struct VectorsArgs {
    /// Encoding or combination, such as 'cope{max_positions=16}+rope'.
    #[arg(value_parser = Suggested::ENCODINGS)]
    encoding: String,
    /// Number of tokens, from 1 to 64.
    #[arg(long, default_value_t = 5, value_parser = number(1..=MOST_VECTOR_TOKENS as u64))]
    tokens: usize,
    /// Seed of the inputs.
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// Print all numbers as one JSON object instead of the shapes of the parameters.
    #[arg(long)]
    json: bool,
}

pub(super) fn run(arguments: &VectorsArgs) -> anyhow::Result<()> {
    let config = train::encodings::parse(&arguments.encoding)?;
    let tokens = arguments.tokens;
    let found = vectors(&config, tokens, arguments.seed).map_err(anyhow::Error::msg)?;
    if arguments.json {
        say(&serde_json::to_string(&found)?);
        return Ok(());
    }
    let heads = found.q.len();
    say(&format!(
        "{}: {tokens} tokens, {heads} heads of {} channels, {} layers, loss {}",
        found.encoding,
        found.q[0][0].len(),
        found.layers.len(),
        found.loss
    ));
    for parameter in &found.parameters {
        say(&format!("parameter {} of shape {:?}", parameter.name, parameter.shape));
    }
    say("`--json` prints the inputs, logits, outputs and gradients");
    Ok(())
}
