# Sourced by ci/kill-test.sh and ci/faults.sh: the program, a folder, an undisturbed run and the comparison with it. The
# script writes $folder/suite.toml, sets claim_seconds and calls begin.
# Messages are read without the backtraces that a developer may have turned on.
export RUST_BACKTRACE=0
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
target="${CARGO_TARGET_DIR:-${XDG_CACHE_HOME:-$HOME/.cache}/pe-zoo/ci-target}"
bench="${PE_BENCH:-$target/debug/pe-bench}"
[ -x "$bench" ] || { echo "$(basename "$0"): there is no program $bench; build it, or set PE_BENCH to its path" >&2; exit 2; }

folder=$(mktemp -d)
running=()
mounted=()
clean_up() {
  for pid in "${running[@]}"; do kill -9 -- "-$pid" 2>/dev/null || true; done
  for place in "${mounted[@]}"; do umount -l "$place" 2>/dev/null || true; done
  rm -rf "$folder"
}
trap clean_up EXIT

# Everything of the command line but the folder of results.
set_command() {
  command=(run "$folder/suite.toml" --jobs 2 --checkpoint-seconds 0.2 --claim-seconds "$claim_seconds" --quiet)
}

# Seeds the random numbers and runs the suite once into $folder/undisturbed; sets cells, milliseconds and start_seconds.
begin() { # seed
  RANDOM=$1
  start_seconds=$SECONDS
  set_command
  local began
  began=$(date +%s%N)
  "$bench" "${command[@]}" --out "$folder/undisturbed" > /dev/null
  milliseconds=$((($(date +%s%N) - began) / 1000000))
  cells=$(find "$folder/undisturbed/cells" -name '*.json' | wc -l)
  echo "undisturbed: $cells cells in $milliseconds ms"
}

# Number of records.
records_of() { # folder of results
  (find "$1/cells" -name '*.json' 2>/dev/null || true) | wc -l
}

# Runs the same command without a disturbance, to its end.
again() { # folder of results; more options
  "$bench" "${command[@]}" --out "$@" > "$folder/log.last" 2>&1 || { cat "$folder/log.last"; exit 1; }
}

# Compares with the undisturbed run, and looks for files that must not be left.
check() { # folder of results
  "$bench" records diff "$folder/undisturbed" "$1" > "$folder/diff" || { cat "$folder/diff"; return 1; }
  local left
  left=$(find "$1/cells" "$1/claims" "$1/checkpoints" -type f ! -name '.lock' ! -path '*/cells/*.json' 2>/dev/null || true)
  [ -z "$left" ] || { echo "files are left over: $left"; return 1; }
  [ "$(find "$1/cells" -type f | wc -l)" -eq "$cells" ] || { echo "the folder does not have $cells records"; return 1; }
}
