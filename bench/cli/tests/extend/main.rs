//! Fine-tuning starts from the base model, and `pe-bench extend` leaves records that it finds again.
#![allow(clippy::unwrap_used, reason = "tests panic on failure")]

#[path = "../../../llm/tests/tiny/mod.rs"]
mod tiny;
mod tuned;

use std::fs;
use std::path::Path;
use std::process::Command;

use burn::module::Module;
use burn::tensor::{Device, GradientCheckpointingStrategy, Int, Tensor, TensorData};
use llm::extend::Tuning;
use llm::pretrained::Pretrained;
use pe_zoo::attention::Weights;
use pe_zoo::model::LoraConfig;
use pe_zoo::model::{Decoder, Dropout};
use pe_zoo::testkit::close::{self, F32_REORDERED, numbers};
use pe_zoo::{Combination, Positions};
use records::{RunRecord, SliceUnit, Status};
use serde_json::json;
use train::experiment::OptimizerConfig;
use train::run::optimizer::Optimizer;
use train::streams::{Stream, stream};

type Model = Decoder;

/// The fixture, each letter a word: those of English that fit, and digits.
fn copy_to(folder: &Path) {
    let words = "? a e i o t n s r l k 0 1 2 3 4 5 6 7 8 9 . h".split(' ').collect::<Vec<_>>();
    let letters = json!({
        "type": "Split", "pattern": { "Regex": "" }, "behavior": "Isolated", "invert": false,
    });
    tiny::copy_to(folder, &tiny::tokenizer(&words, &letters));
}

fn pretrained() -> Pretrained {
    let folder = tempfile::tempdir().unwrap();
    copy_to(folder.path());
    tiny::open(folder.path()).unwrap()
}

const IDS: [i32; 12] = [1, 5, 9, 22, 3, 3, 17, 0, 12, 8, 4, 19];

fn forward(model: &Model, device: &Device) -> Tensor<2> {
    let tokens = Tensor::<2, Int>::from_data(TensorData::new(IDS.to_vec(), [1, IDS.len()]), device);
    let at = Positions::contiguous(0, IDS.len());
    let hidden = model.forward(tokens, &at, None, Dropout::off(), Weights::Drop).hidden;
    model.logits(hidden.squeeze_dim::<2>(0))
}

fn trainable(pretrained: &Pretrained, encoding: &Combination) -> Model {
    let checkpointing = GradientCheckpointingStrategy::Disabled;
    let rng = &mut stream(1, Stream::Encoding);
    pretrained.decoder_with(encoding, 0, rng, Some(checkpointing)).unwrap()
}

/// The base model's rotation in a form that `yarn` of TAPE and RoPE beside CoPE share.
fn rope(pretrained: &Pretrained) -> Combination {
    pretrained.own_encoding()
}

#[test]
fn adapters_tapes_updates_and_copes_table_change_nothing_at_step_0() {
    let pretrained = pretrained();
    let device = Device::flex().autodiff();
    let own = rope(&pretrained);
    let base = numbers(forward(&trainable(&pretrained, &own), &device));
    let same = |name: &str, model: &Model| {
        close::compare(&numbers(forward(model, &device)), &base, F32_REORDERED)
            .unwrap_or_else(|e| panic!("{name}: {e}"));
    };
    let mut rng = stream(2, Stream::Model);
    let tunings = [Tuning::All {}, Tuning::Lora(LoraConfig::default()), Tuning::Encoding {}];
    for tuning in tunings {
        same(tuning.id(), &tuning.prepare(trainable(&pretrained, &own), &mut rng));
    }
    let tape = "tape{base=500.0,training_shift={type=none}}(yarn{factor=4.0,original_max_position_embeddings=8})";
    let cope = format!("cope{{max_positions=16}}+{own}");
    for text in [tape, &cope] {
        let encoding = Combination::parse(text).unwrap();
        let params = encoding.param_count(&pretrained.model.dims(64, 64));
        assert!(params > Some(0), "{text} has nothing to learn");
        for tuning in tunings {
            same(text, &tuning.prepare(trainable(&pretrained, &encoding), &mut rng));
        }
    }
}

/// One step of a fine-tuning: what moved by name of its part, and the model after it.
fn step(tuning: Tuning, encoding: &Combination, pretrained: &Pretrained) -> (Model, Model) {
    let device = Device::flex().autodiff();
    let before = tuning.prepare(trainable(pretrained, encoding), &mut stream(2, Stream::Model));
    let mut after = before.clone();
    let mut optimizer = Optimizer::default();
    let config = OptimizerConfig { weight_decay: 0.0, ..OptimizerConfig::default() };
    for _ in 0..2 {
        let loss = forward(&after, &device).powi_scalar(2).mean();
        let grads = burn::optim::GradientsParams::from_grads(loss.backward(), &after);
        let biases = after.encoding.bias_ids();
        after = optimizer.step(after, grads, &config, 1e-2, &biases);
    }
    (before.valid(), after.valid())
}

/// Parameters that differ between two states of one model.
fn moved(before: &Model, after: &Model) -> usize {
    use burn::module::{ModuleVisitor, Param};
    struct Values(Vec<Vec<f64>>);
    impl ModuleVisitor for Values {
        fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
            self.0.push(numbers(param.val()));
        }
    }
    let values = |model: &Model| {
        let mut values = Values(Vec::new());
        model.visit(&mut values);
        values.0
    };
    let (before, after) = (values(before), values(after));
    assert_eq!(before.len(), after.len());
    before.iter().zip(&after).filter(|(a, b)| a != b).count()
}

#[test]
fn only_what_is_to_learn_moves_and_merging_changes_no_logit() {
    let pretrained = pretrained();
    let own = rope(&pretrained);
    let layers = pretrained.model.layers;
    let (before, after) = step(Tuning::All {}, &own, &pretrained);
    // Embedding, head, last norm; two norms and four maps a layer.
    assert_eq!(moved(&before, &after), 3 + 6 * layers);
    let (before, after) = step(Tuning::Lora(LoraConfig::default()), &own, &pretrained);
    // Four adapters a layer, of two maps each: after one step at zero, the lower ones move too.
    assert_eq!(moved(&before, &after), 8 * layers);
    let device = Device::flex();
    let logits = numbers(forward(&after, &device));
    assert!(close::compare(&logits, &numbers(forward(&before, &device)), F32_REORDERED).is_err());
    let long = LoraConfig { embedding_and_norms: true, ..LoraConfig::default() };
    let (before, long) = step(Tuning::Lora(long), &own, &pretrained);
    // The embedding, the last norm and two norms a layer as well.
    assert_eq!(moved(&before, &long), 2 + 10 * layers);
    let params = after.num_params();
    let merged = after.merged();
    close::compare(&numbers(forward(&merged, &device)), &logits, F32_REORDERED).unwrap();
    assert!(merged.num_params() < params);

    let cope = Combination::parse(&format!("cope{{max_positions=16}}+{own}")).unwrap();
    let (before, after) = step(Tuning::Encoding {}, &cope, &pretrained);
    assert_eq!(moved(&before, &after), layers);
    let (before, after) = step(Tuning::Lora(LoraConfig::default()), &cope, &pretrained);
    assert_eq!(moved(&before, &after), 9 * layers);
}

fn extend(folder: &Path, out: &Path, arguments: &[&str]) -> (bool, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_pe-bench"))
        .arg("extend")
        .arg(folder)
        .args(["--lens", "64,128", "--threads", "1", "--out"])
        .arg(out)
        .args(arguments)
        .output()
        .unwrap();
    let said = [output.stdout, output.stderr].concat();
    (output.status.success(), String::from_utf8_lossy(&said).into_owned())
}

fn records(out: &Path) -> Vec<RunRecord> {
    analysis::folder::read_dir(out).unwrap()
}

#[test]
fn extend_leaves_records_by_length_and_position_and_keeps_them() {
    let folder = tempfile::tempdir().unwrap();
    let model = folder.path().join("model");
    fs::create_dir(&model).unwrap();
    copy_to(&model);
    let text = folder.path().join("text.txt");
    fs::write(&text, "the tale is told in the rain. ".repeat(200)).unwrap();
    let data = text.to_str().unwrap();
    let out = folder.path().join("out");
    let encodings = "rope{base=500.0},rope{base=50000.0}";
    let arguments =
        ["--data", data, "--tasks", "text", "--methods", "as-trained", "--encodings", encodings];
    let (done, said) = extend(&model, &out, &arguments);
    assert!(done, "{said}");
    let first = records(&out);
    assert_eq!(first.len(), 3);
    for record in &first {
        assert_eq!((record.status.clone(), record.train.steps), (Status::Done, 0));
        assert_eq!(record.task.id, "text");
        assert_eq!(record.evals.iter().map(|p| p.len).collect::<Vec<_>>(), [64, 128]);
        let [slices] = &record.evals[1].slices[..] else { panic!("{:?}", record.evals[1].slices) };
        assert_eq!((slices.name.as_str(), slices.unit), ("position", SliceUnit::Tokens));
        assert_eq!(slices.values, (0..128).step_by(8).collect::<Vec<_>>());
        assert_eq!(slices.counts.iter().sum::<u64>(), record.evals[1].scored_tokens);
        assert!(record.evals.iter().all(|p| p.nll.is_finite() && p.bits_per_byte.is_some()));
        assert_eq!(record.config["weights_sha256"].as_str().unwrap().len(), 64);
    }
    assert!(out.join("index.html").exists());
    let (done, said) = extend(&model, &out, &arguments);
    assert!(done && said.matches("a record from an earlier run").count() == 3, "{said}");

    // Other weights are other cells.
    let tensors = model.join("model.safetensors");
    let mut bytes = fs::read(&tensors).unwrap();
    let end = bytes.len() - 1;
    bytes[end - 2] ^= 1;
    fs::write(&tensors, bytes).unwrap();
    let (done, said) = extend(&model, &out, &[&arguments[..], &["--dry-run"]].concat());
    assert!(done && !said.contains("a record from an earlier run"), "{said}");
}

#[test]
fn extend_tunes_before_it_evaluates() {
    let folder = tempfile::tempdir().unwrap();
    let model = folder.path().join("model");
    fs::create_dir(&model).unwrap();
    copy_to(&model);
    let text = folder.path().join("text.txt");
    fs::write(&text, "the tale is told in the rain. ".repeat(200)).unwrap();
    let data = text.to_str().unwrap();
    let out = folder.path().join("out");
    let evaluate = ["--data", data, "--tasks", "text", "--methods", "as-trained"];
    for tune in [&["all"][..], &["lora"], &["lora", "--groups", "4"]] {
        let steps = ["--tune"].into_iter().chain(tune.iter().copied());
        let steps = steps.collect::<Vec<_>>();
        let steps = [
            &steps[..],
            &["--steps", "30", "--train-len", "32", "--batch", "4", "--learning-rate", "1e-2"],
        ]
        .concat();
        let (done, said) = extend(&model, &out, &[&evaluate[..], &steps].concat());
        assert!(done, "{said}");
    }
    let (done, said) = extend(&model, &out, &evaluate);
    assert!(done, "{said}");
    let all = records(&out);
    let nll = |tune: &str| {
        let record = all.iter().find(|r| r.encoding.name.ends_with(tune)).unwrap();
        (record.train.steps, record.evals[0].nll)
    };
    let (untuned, tuned) =
        (nll("as trained"), [nll("(all)"), nll("(lora)"), nll("(lora, 4 shifted groups)")]);
    assert_eq!(untuned.0, 0);
    assert!(
        tuned.iter().all(|(steps, loss)| *steps == 30 && *loss < untuned.1 - 0.1),
        "{untuned:?} {tuned:?}"
    );
    let (done, said) =
        extend(&model, &out, &[&evaluate[..], &["--tune", "encoding", "--steps", "2"]].concat());
    assert!(!done && said.contains("no weights of its own"), "{said}");
    for (groups, encoding, expected) in
        [("5", "rope", "divides 32, the number of tokens"), ("4", "alibi", "`alibi`")]
    {
        let (done, said) = extend(
            &model,
            &out,
            &[
                "--data",
                data,
                "--tasks",
                "text",
                "--encodings",
                encoding,
                "--tune",
                "lora",
                "--steps",
                "2",
                "--train-len",
                "32",
                "--groups",
                groups,
            ],
        );
        assert!(!done && said.contains(expected), "{said}");
    }
}

#[test]
fn windows_begin_with_the_token_that_the_tokenizer_puts_before_a_text() {
    let folder = tempfile::tempdir().unwrap();
    let model = folder.path().join("model");
    fs::create_dir(&model).unwrap();
    copy_to(&model);
    tiny::set_version(&model, Some("4.57.1"));
    let class = json!({ "tokenizer_class": "LlamaTokenizer", "bos_token": "k" });
    fs::write(model.join("tokenizer_config.json"), class.to_string()).unwrap();
    let text = folder.path().join("text.txt");
    fs::write(&text, "aeiotnsrl.".repeat(40)).unwrap();
    let loaded = tiny::open(&model).unwrap();
    let validation = loaded.tokenizer().encode(&"aeiotnsrl.".repeat(4)).unwrap();
    let before = loaded.tokenizer().around().before;
    assert_eq!(before, [10]);
    // Two windows fit, from the beginning and from the middle of the part; the same 32 tokens are scored in both.
    let expected = |before: &[u32]| {
        let mut losses = Vec::new();
        for start in [0, validation.len() / 2] {
            let window = [before, &validation[start..start + 17]].concat();
            let rows = tiny::logits(&loaded, &loaded.own_encoding(), &window);
            for (row, next) in rows.iter().zip(&window[1..]).skip(before.len()) {
                let total = row.iter().map(|logit| logit.exp()).sum::<f64>();
                losses.push(total.ln() - row[*next as usize]);
            }
        }
        assert_eq!(losses.len(), 32);
        (losses.iter().sum::<f64>() / losses.len() as f64).exp()
    };
    let arguments = ["--data", text.to_str().unwrap(), "--methods", "as-trained"];
    for (more, name, expected) in [
        (&[][..], "model text after k", expected(&before)),
        (&["--no-begin-token"], "model text without k", expected(&[])),
    ] {
        let out = folder.path().join(name);
        let output = Command::new(env!("CARGO_BIN_EXE_pe-bench"))
            .arg("extend")
            .arg(&model)
            .args(["--lens", "16", "--tasks", "text", "--threads", "1", "--out"])
            .arg(&out)
            .args(arguments)
            .args(more)
            .output()
            .unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let [record] = records(&out).try_into().unwrap();
        assert_eq!(record.workload, name);
        let [point] = &record.evals[..] else { panic!("{:?}", record.evals) };
        let off = (point.perplexity / expected - 1.0).abs();
        assert!(off < 1e-5, "{name}: {} {expected}", point.perplexity);
        let report = fs::read_to_string(out.join("report.md")).unwrap();
        assert!(report.contains(name), "{report}");
    }
    let arguments = ["--no-begin-token", "--tasks", "passkey", "--methods", "as-trained"];
    let (done, said) = extend(&model, folder.path(), &arguments);
    assert!(!done && said.contains("--no-begin-token applies to windows of a text"), "{said}");
}

#[test]
fn pass_keys_are_asked_by_depth() {
    let folder = tempfile::tempdir().unwrap();
    let model = folder.path().join("model");
    fs::create_dir(&model).unwrap();
    copy_to(&model);
    let out = folder.path().join("out");
    let arguments =
        ["--tasks", "passkey", "--methods", "as-trained", "--depths", "3", "--repeats", "2"];
    let (done, said) = extend(&model, &out, &[&arguments[..], &["--lens", "600"]].concat());
    assert!(!done && said.contains("without filler"), "{said}");
    let (done, said) = extend(&model, &out, &[&arguments[..], &["--lens", "64"]].concat());
    assert!(!done && said.contains("--lens lists 64 twice, expected each value once"), "{said}");
    let output = Command::new(env!("CARGO_BIN_EXE_pe-bench"))
        .arg("extend")
        .arg(&model)
        .args(["--lens", "600", "--threads", "1", "--out"])
        .arg(&out)
        .args(arguments)
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let [record] = records(&out).try_into().unwrap();
    let [point] = &record.evals[..] else { panic!("{:?}", record.evals) };
    assert_eq!(point.samples, 6);
    let slices = point.slices.iter().find(|slices| slices.name == "depth").unwrap();
    assert_eq!(
        (slices.values.as_slice(), slices.counts.as_slice()),
        (&[0, 50, 100][..], &[2; 3][..])
    );
}

#[test]
#[cfg(unix)]
fn an_interrupted_tuning_goes_on_from_its_checkpoint_to_the_same_numbers() {
    let folder = tempfile::tempdir().unwrap();
    let model = folder.path().join("model");
    fs::create_dir(&model).unwrap();
    copy_to(&model);
    let text = folder.path().join("text.txt");
    fs::write(&text, "the tale is told in the rain. ".repeat(200)).unwrap();
    for tuned in ["lora", "all"] {
        let [out, undisturbed] =
            ["out", "undisturbed"].map(|name| folder.path().join(format!("{name}-{tuned}")));
        interrupt_and_resume(&model, text.to_str().unwrap(), tuned, [&out, &undisturbed]);
    }
}

#[cfg(unix)]
fn interrupt_and_resume(model: &Path, text: &str, tuned: &str, [out, undisturbed]: [&Path; 2]) {
    let arguments = [
        "--data",
        text,
        "--tasks",
        "text",
        "--methods",
        "as-trained",
        "--tune",
        tuned,
        "--steps",
        "1000",
        "--train-len",
        "32",
        "--checkpoint-seconds",
        "0.05",
    ];
    let mut sweep = Command::new(env!("CARGO_BIN_EXE_pe-bench"))
        .arg("extend")
        .arg(model)
        .args(["--lens", "64,128", "--threads", "1", "--out"])
        .arg(out)
        .args(arguments)
        .stdout(std::process::Stdio::null())
        .spawn()
        .unwrap();
    let kept = || {
        let cells = fs::read_dir(out.join("checkpoints")).into_iter().flatten().flatten();
        let mut files = cells.flat_map(|cell| fs::read_dir(cell.path()).into_iter().flatten());
        files.any(|file| file.unwrap().path().extension().is_some_and(|e| e == "ckpt"))
    };
    for _ in 0..2400 {
        if kept() {
            break;
        }
        std::thread::sleep(std::time::Duration::from_millis(25));
    }
    assert!(kept(), "no checkpoint in a minute");
    let terminate = format!("kill -TERM {}", sweep.id());
    assert!(Command::new("sh").args(["-c", &terminate]).status().unwrap().success());
    assert_eq!(sweep.wait().unwrap().code(), Some(143));
    assert!(records(out).is_empty());

    let (done, said) = extend(model, out, &arguments);
    assert!(done && said.contains("resumes after step"), "{said}");
    assert!(!out.join("checkpoints").exists());
    let (done, said) = extend(model, undisturbed, &arguments);
    assert!(done && !said.contains("resumes after step"), "{said}");
    let compared = Command::new(env!("CARGO_BIN_EXE_pe-bench"))
        .args(["records", "diff"])
        .args([out, undisturbed])
        .output()
        .unwrap();
    assert!(compared.status.success(), "{}", String::from_utf8_lossy(&compared.stdout));
}
