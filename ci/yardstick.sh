#!/usr/bin/env bash
# Prints one hash for each kind of number that a redesign must not change.
#
#   ci/yardstick.sh DIR [keys|frames|tables|conform|flops|weights|smoke ...]
#                                  measures all or some of them, and writes what was hashed to DIR, one file each
#   diff -r BEFORE AFTER           shows which numbers two measurements do not share
#
#   keys      keys of the cells of every built-in suite; of texts those that `pe-bench data` has fetched
#   frames    the Parquet file that `report` writes for every packed results folder
#   tables    the CSV tables that `report` writes for every packed results folder
#   conform   what the conformance kit says of every encoding
#   flops     analytic costs
#   weights   trained weights of every encoding, on both attention engines
#   smoke     records of the suite `smoke`, without times and provenance
#
# The first five are equal on every machine; ci/yardstick.txt has their hashes. A change of weights or smoke can be a change of the
# processor: measure before and after on one machine. Needs Python 3 and the program (PE_BENCH, or cargo builds it).
# Exit status: 0, or 1 if a hash is not the one of ci/yardstick.txt.
set -euo pipefail
cd "$(dirname "$0")/.."
[ $# -ge 1 ] || { sed -n '4,6s/^# \{0,1\}//p' "$0" >&2; exit 2; }
mkdir -p "$1"
out=$(cd "$1" && pwd)
shift
selected="$*"
if [ -z "${PE_BENCH:-}" ]; then
  cargo build --workspace --bin pe-bench
  PE_BENCH=${CARGO_TARGET_DIR:-target}/debug/pe-bench
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

keys() {
  local suite
  for suite in bench/train/suites/*.toml; do
    suite=$(basename "$suite" .toml)
    "$PE_BENCH" run "$suite" --dry-run --json --out "$work/none" 2> "$work/error" > "$work/cells" ||
      echo "$suite cannot be planned here: $(tail -n 1 "$work/error")"
    python3 - "$suite" "$work/cells" << 'PYTHON'
import json, sys
for line in open(sys.argv[2]):
    cell = json.loads(line)
    if cell["event"] == "cell":
        print(sys.argv[1], cell["key"], cell["workload"], cell["encoding"], cell["seed"], cell["parameters"], cell["train_flops"])
PYTHON
  done
}

# Folders with packed records.
packed() { git ls-files 'results/*/records.parquet' | xargs -n 1 dirname; }

reports() {
  local folder
  for folder in $(packed); do
    "$PE_BENCH" report "$folder" --out "$work/reports/$folder" --formats csv,parquet > /dev/null 2>&1
  done
}

# hashes PATTERN: a line for each file of the reports whose name matches.
hashes() { (cd "$work/reports" && find . -type f -name "$1" | LC_ALL=C sort | xargs sha256sum | sed 's/  \.\//  /'); }

# train ENGINE: trains the suite `smoke` into $work/ENGINE.
train() { "$PE_BENCH" run smoke --engine "$1" --out "$work/$1" --keep-weights last --quiet > /dev/null; }

# The hash of each weights file beside its encoding and workload, because names of weights files are keys.
weights() {
  local engine
  for engine in fused reference; do
    (cd "$work/$engine/weights" && sha256sum -- *.safetensors) | sed "s/^/$engine /" | LC_ALL=C sort -k 3
  done
}

smoke() {
  python3 - "$work"/fused/cells/*.json << 'PYTHON'
import json, sys
VARYING = {"seconds", "step_seconds_median", "tokens_per_second", "machine_load",
           "peak_bytes", "host_peak_bytes", "commit", "dirty", "versions", "suite_sha256", "sha256", "step_allocations", "host", "started_utc"}
def stable(value):
    if isinstance(value, dict):
        return {key: stable(item) for key, item in value.items() if key not in VARYING}
    return [stable(item) for item in value] if isinstance(value, list) else value
for path in sorted(sys.argv[1:]):
    print(json.dumps(stable(json.load(open(path))), sort_keys=True))
PYTHON
}

# is_selected NAME: whether the command line names it, or nothing.
is_selected() { [ -z "$selected" ] || [[ " $selected " == *" $1 "* ]]; }

measure() {
  local name=$1
  shift
  is_selected "$name" || return 0
  "$@" > "$out/$name"
  printf '%-8s %s\n' "$name" "$(sha256sum < "$out/$name" | cut -c 1-16)" | tee -a "$work/hashes"
}

measure keys keys
if is_selected frames || is_selected tables; then reports; fi
measure frames hashes '*.parquet'
measure tables hashes '*.csv'
measure conform "$PE_BENCH" conform
measure flops "$PE_BENCH" flops --honest --items
if is_selected weights || is_selected smoke; then train fused; fi
if is_selected weights; then train reference; fi
measure weights weights
measure smoke smoke
# Weights and records of the smoke run depend on the processor.
portable=$(grep -vE '^(weights|smoke) ' "$work/hashes" || true)
differing=$(printf '%s\n' "$portable" | grep -vxFf ci/yardstick.txt || true)
[ -z "$differing" ] || { echo "yardstick: these hashes differ from ci/yardstick.txt:" >&2; echo "$differing" >&2; exit 1; }
