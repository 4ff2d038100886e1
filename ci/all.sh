#!/usr/bin/env bash
# Runs every script of ci/ that tests something on this machine, and prints a line for each: its time and `passed`, `FAILED` or
# `skipped` with the reason. A script that lacks a tool says so and ends with status 2; it is skipped, not passed.
#
#   ci/all.sh [NAME ...]     default: all of them; names are those of the scripts without .sh, `outside` and `release`
#
# Exit status 0: none failed. Output of each script: all-NAME.log in the target folder. Takes one to two hours on two cores.
set -uo pipefail
cd "$(dirname "$0")/.."
export CARGO_TARGET_DIR="${CARGO_TARGET_DIR:-${XDG_CACHE_HOME:-$HOME/.cache}/pe-zoo/ci-target}"

# Scripts that test nothing here, and why.
declare -A others=(
  [all]="this script"
  [check]="runs in CI, and its parts here would run twice: bash ci/check.sh"
  [cold]="measures an idle machine"
  [disturbed]="part of faults and kill-test"
  [gpu]="needs an NVIDIA GPU"
  [gpu-budgets]="builds with CUDA, after ci/llvm-for-cuda.sh"
  [gpu-sim]="builds with wgpu, which takes an hour"
  [house]="counts"
  [llvm-for-cuda]="installs a compiler"
  [nightly]="runs a night; nightly-test tests it"
  [peers]="measures PyTorch, 7 GB"
  [python]="installs PyTorch, 5 GB"
  [repository]="writes the address of the repository"
  [slurm-test]="installs Slurm"
  [tch]="builds with LibTorch, 12 GB"
)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# The crate in examples/outside: its tests and one check of an encoding of its own.
outside() {
  cp Cargo.lock examples/outside/Cargo.lock
  cargo test --manifest-path examples/outside/Cargo.toml &&
    cargo run --manifest-path examples/outside/Cargo.toml -- conform cable
}

# What new encodings and tasks need before a release: workloads of suites, entries of papers, records.
release() { cargo test --workspace --lib --test zoo_suite before_a_release -- --ignored; }

declare -A scripts=(
  [language]="bash ci/language.sh"
  [no-machine-names]="bash ci/no-machine-names.sh"
  [type-names]="bash ci/type-names.sh"
  [yardstick]="bash ci/yardstick.sh $work/yardstick keys conform flops"
  [site]="bash ci/site.sh $work/site"
  [nightly-test]="bash ci/nightly-test.sh"
  [k8s-schema]="bash ci/k8s-schema.sh"
  [kill-test]="bash ci/kill-test.sh 8"
  [faults]="bash ci/faults.sh"
  [browser-test]="bash ci/browser-test.sh"
  [outside]="outside"
  [release]="release"
  [image]="bash ci/image.sh $work/image --dev"
  [wheel]="bash ci/wheel.sh $work/wheel --dev"
  [instruction-sets]="bash ci/instruction-sets.sh math:: kernels:: ops::"
)
# The short ones first. The image builds another copy of the tree, whose artifacts replace those of this one, so it is last.
order=(language no-machine-names type-names yardstick site nightly-test k8s-schema kill-test faults browser-test outside release wheel instruction-sets image)

for path in ci/*.sh; do
  name=$(basename "$path" .sh)
  [ -n "${scripts[$name]:-}${others[$name]:-}" ] || { echo "ci/all.sh does not list $path; add it to scripts or others in this file" >&2; exit 1; }
done
chosen=("$@")
[ $# -gt 0 ] || chosen=("${order[@]}")
for name in "${chosen[@]}"; do
  [ -n "${scripts[$name]:-}" ] || { echo "no script \`$name\`, expected one of ${order[*]}" >&2; exit 1; }
done

cargo build --workspace --bin pe-bench || exit 1
export PE_BENCH="$CARGO_TARGET_DIR/debug/pe-bench"
failed=0
for name in "${chosen[@]}"; do
  log="$CARGO_TARGET_DIR/all-$name.log"
  start=$SECONDS
  ${scripts[$name]} > "$log" 2>&1 < /dev/null
  status=$?
  seconds=$((SECONDS - start))
  case $status in
    0) printf '%-18s %5d s  passed\n' "$name" "$seconds" ;;
    2) printf '%-18s %5d s  skipped: %s\n' "$name" "$seconds" "$(tail -n 1 "$log")" ;;
    *)
      printf '%-18s %5d s  FAILED with status %d, see %s\n' "$name" "$seconds" "$status" "$log"
      failed=$((failed + 1))
      ;;
  esac
done
if [ $# -eq 0 ]; then
  for name in $(printf '%s\n' "${!others[@]}" | sort); do
    printf '%-18s %7s  not run: %s\n' "$name" "" "${others[$name]}"
  done
fi
[ "$failed" -eq 0 ] || { echo "$failed of ${#chosen[@]} scripts failed"; exit 1; }
