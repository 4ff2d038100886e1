#!/usr/bin/env bash
# Kills a sweep N times (default 30) at random moments with signal 9, continues each time with the same
# command, and compares the records with those of an undisturbed run: none lost, none doubled, all equal in
# everything except timings. Every second kill hits the sweep's process only and not its workers, so that
# those must end by themselves; every third one happens while a second sweep works on the same folder.
#
#   ci/kill-test.sh [N [SEED]]        PE_BENCH=path of the program; default: the debug build
set -euo pipefail
cd "$(dirname "$0")/.."
kills=${1:-30}
seed=${2:-1}
target="${CARGO_TARGET_DIR:-${XDG_CACHE_HOME:-$HOME/.cache}/pe-zoo/ci-target}"
bench="${PE_BENCH:-$target/debug/pe-bench}"
[ -x "$bench" ] || { echo "kill-test: no program $bench; build it, or name it by PE_BENCH" >&2; exit 2; }

folder=$(mktemp -d)
running=()
clean_up() {
  for pid in "${running[@]}"; do kill -9 -- "-$pid" 2>/dev/null || true; done
  rm -rf "$folder"
}
trap clean_up EXIT

cat > "$folder/suite.toml" <<'TOML'
name = "kill"
title = "Kill test"
about = "A few cells of some seconds each."
seeds = [0]
encodings = ["rope", "cope", "randomized"]

[model]
layers = 2
width = 32
heads = 2

[train]
steps = 600
batch_size = 8
len = 32
validation = { every_steps = 150, samples = 8, solved_exact_match = 1.0, solved_checks = 99 }

[eval]
lens = [32, 64]
samples = 20

[[workload]]
name = "flip-flop"
task = "flip-flop"

[[workload]]
name = "copy-with-dropout"
task = "copy"
encodings = ["tape", "alibi"]
model = { dropout = 0.1 }
train = { steps = 400, len = 16 }
eval = { lens = [16, 32] }
TOML

sweep() { # folder of results; more options
  "$bench" run "$folder/suite.toml" --out "$1" --jobs 2 --checkpoint-seconds 0.2 --claim-seconds 5 --quiet "${@:2}"
}

# In a group of processes of its own, so that the group can be killed.
start() {
  setsid "$bench" run "$folder/suite.toml" --out "$1" --jobs 2 --checkpoint-seconds 0.2 \
    --claim-seconds 5 --quiet > "$folder/log.$2" 2>&1 &
  running+=($!)
}

RANDOM=$seed
start_seconds=$SECONDS
began=$(date +%s%N)
sweep "$folder/undisturbed" > /dev/null
cells=$(find "$folder/undisturbed/cells" -name '*.json' | wc -l)
whole_milliseconds=$((($(date +%s%N) - began) / 1000000))
echo "undisturbed: $cells cells in $whole_milliseconds ms"

# Compares with the undisturbed run, and checks that no files are left over.
check() {
  "$bench" diff-records "$folder/undisturbed" "$1" > "$folder/diff" || { cat "$folder/diff"; return 1; }
  local left
  left=$(find "$1/cells" "$1/claims" "$1/checkpoints" -type f ! -name '.lock' ! -path '*/cells/*.json' 2>/dev/null || true)
  [ -z "$left" ] || { echo "left over: $left"; return 1; }
  [ "$(find "$1/cells" -type f | wc -l)" -eq "$cells" ] || { echo "not $cells records"; return 1; }
}

killed=0 finished=0 groups=0 alone=0 pairs=0
results="$folder/killed.0"
while [ "$killed" -lt "$kills" ]; do
  running=()
  start "$results" 1
  if [ $((killed % 3)) -eq 2 ]; then
    start "$results" 2
    pairs=$((pairs + 1))
  fi
  # Anywhere from its first moment to two thirds of an undisturbed run.
  milliseconds=$((20 + (RANDOM * 32768 + RANDOM) % (whole_milliseconds * 2 / 3)))
  sleep "$((milliseconds / 1000)).$(printf %03d $((milliseconds % 1000)))"
  pid=${running[0]}
  if ! kill -0 "$pid" 2>/dev/null; then
    # The sweep finished before: its records are compared, and the kills continue in a new folder.
    wait "$pid" || { echo "a sweep failed:"; cat "$folder/log.1"; exit 1; }
    for other in "${running[@]:1}"; do wait "$other" || { cat "$folder/log.2"; exit 1; }; done
    check "$results"
    finished=$((finished + 1))
    results="$folder/killed.$finished"
    continue
  fi
  if [ $((killed % 2)) -eq 0 ]; then
    what=group; kill -9 -- "-$pid"; groups=$((groups + 1))
  else
    what=sweep; kill -9 "$pid"; alone=$((alone + 1))
  fi
  { wait "$pid" || true; } 2>/dev/null
  killed=$((killed + 1))
  echo "kill $killed: the $what after $milliseconds ms, $(find "$results/cells" -name '*.json' 2>/dev/null | wc -l) records by then"
  for other in "${running[@]:1}"; do
    # The second sweep continues alone and takes over the cells of the first one.
    wait "$other" || { echo "the second sweep failed:"; cat "$folder/log.2"; exit 1; }
  done
done
running=()
sweep "$results" > "$folder/log.last" 2>&1 || { cat "$folder/log.last"; exit 1; }
check "$results"
echo "kill test passed: $killed kills ($groups of the group, $alone of the sweep alone, $pairs during a second sweep), $((finished + 1)) folders of $cells cells equal the undisturbed one, seed $seed, $((SECONDS - start_seconds)) s"
