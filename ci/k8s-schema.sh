#!/usr/bin/env bash
# Checks the manifests of `pe-bench cluster kubernetes` against the published schemas of Kubernetes, with the package kubernetes-validate
# of Python's registry, which contains them. Nothing runs on a cluster. First tests that the validator refuses a fault.
#
#   ci/k8s-schema.sh        PE_BENCH=path of the program; default: the debug build
set -euo pipefail
cd "$(dirname "$0")/.."
target="${CARGO_TARGET_DIR:-${XDG_CACHE_HOME:-$HOME/.cache}/pe-zoo/ci-target}"
bench="${PE_BENCH:-$target/debug/pe-bench}"
[ -x "$bench" ] || { echo "there is no program $bench; build it, or set PE_BENCH to its path" >&2; exit 2; }
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv" || { echo "python3 with venv is missing" >&2; exit 2; }
"$folder/venv/bin/pip" install --quiet kubernetes-validate ||
  { echo "the package kubernetes-validate cannot be installed; see above" >&2; exit 2; }
validate() { "$folder/venv/bin/kubernetes-validate" --strict --kubernetes-version "$1" "${@:2}"; }

cat > "$folder/mine.toml" << 'TOML'
name = "mine"
title = "Mine: \"quoted\", \u0007 and # no comment"
about = "For the check of the manifests."
seeds = [0]
encodings = ["rope"]
[model]
layers = 1
width = 16
[train]
steps = 3
batch_size = 4
len = 8
[eval]
lens = [8]
samples = 6
[[workload]]
name = "flip-flop"
task = "flip-flop"
TOML
common=(--image registry.example/pe-bench:1 --volume results)
"$bench" cluster kubernetes smoke "${common[@]}" > "$folder/smoke.yaml"
"$bench" cluster kubernetes smoke "${common[@]}" --gpus 2 --namespace lab --name gpus --shards -- --threads 2 --seed 7 > "$folder/shards.yaml"
"$bench" cluster kubernetes "$folder/mine.toml" "${common[@]}" --mount /results > "$folder/file.yaml"

sed 's/completionMode: Indexed/completionsMode: Indexed/' "$folder/smoke.yaml" > "$folder/fault.yaml"
for version in 1.29 1.31 1.34; do
  if validate "$version" "$folder/fault.yaml" > "$folder/log" 2>&1; then
    echo "the validator accepts an unknown field"
    exit 1
  fi
  grep -q completionsMode "$folder/log" || { cat "$folder/log"; exit 1; }
  validate "$version" "$folder"/{smoke,shards,file}.yaml
done
echo "manifests follow the schemas of Kubernetes 1.29, 1.31 and 1.34 ($("$folder/venv/bin/pip" list 2> /dev/null | grep -i kubernetes-validate | tr -s ' '))"
