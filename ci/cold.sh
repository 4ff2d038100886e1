#!/usr/bin/env bash
# Measures the build and run times of both commands of README.md with an empty target folder, separately.
#
#   ci/cold.sh [MACHINE]     default: <architecture>-<number>-cores
#
# Writes results/build/<machine>_<year>-<month>.json and prints it. Dependencies are downloaded before the clock starts.
# CPU seconds are better comparable between machines than wall seconds. Needs python3 and an idle machine, and at least
# half an hour on two cores. COLD_TARGET names an empty folder for the build products; default: a temporary one.
set -euo pipefail
cd "$(dirname "$0")/.."
machine=${1:-$(uname -m | tr _ -)-$(getconf _NPROCESSORS_ONLN)-cores}
case $machine in *[!a-z0-9-]*) echo "cold: the machine name is $machine, expected only a-z, 0-9 and -" >&2; exit 2 ;; esac
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export CARGO_TARGET_DIR=${COLD_TARGET:-$work/target}
if [ -n "$(ls -A "$CARGO_TARGET_DIR" 2>/dev/null)" ]; then
  echo "cold: $CARGO_TARGET_DIR is not empty; set COLD_TARGET to an empty folder" >&2
  exit 2
fi
unset CARGO_INCREMENTAL CARGO_BUILD_JOBS RUSTC_WRAPPER RUSTFLAGS

# Runs a command and leaves its wall, user and system seconds in $work/NAME.
measure() {
  local name=$1
  shift
  echo "== $name: $*" >&2
  local status=0
  TIMEFORMAT='%R %U %S'
  { time "$@" >"$work/$name.log" 2>&1; } 2>"$work/$name" || status=$?
  if [ "$status" -ne 0 ]; then
    tail -n 50 "$work/$name.log" >&2
    echo "cold: $name ended with status $status" >&2
    exit 1
  fi
  cat "$work/$name" >&2
}

cargo fetch --locked
measure build-run cargo build --locked --timings
cp "$CARGO_TARGET_DIR/cargo-timings/cargo-timing.html" "$work/1.html"
measure build-test cargo test --workspace --locked --no-run --timings
cp "$CARGO_TARGET_DIR/cargo-timings/cargo-timing.html" "$work/2.html"
# Only documentation tests are still to be built; they count as testing.
measure run cargo run --locked -- run quick --out "$work/quick"
measure test cargo test --workspace --locked

mkdir -p results/build
out=results/build/${machine}_$(date -u +%Y-%m).json
python3 - "$work" >"$work/result.json" <<'PY'
import json, os, platform, re, subprocess, sys
from collections import defaultdict
from pathlib import Path

work = Path(sys.argv[1])

def seconds(name):
    wall, user, system = map(float, (work / name).read_text().split())
    return wall, user + system

def output(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()

def processor():
    try:
        names = re.findall(r"^model name\s*:\s*(.*)$", Path("/proc/cpuinfo").read_text(), re.M)
    except OSError:
        names = []
    return names[0] if names else platform.processor()

crates, number = defaultdict(float), defaultdict(int)
for page in ["1.html", "2.html"]:
    found = re.search(r"const UNIT_DATA = (\[.*?\n\]);", (work / page).read_text(), re.S)
    if not found:
        sys.exit(f"cold: cargo's timings have no UNIT_DATA: {page}")
    for unit in json.loads(found[1]):
        crate = f"{unit['name']} {unit['version']}"
        crates[crate] += unit["duration"]
        number[crate] += 1
if not crates:
    sys.exit("cold: cargo's timings name no crate; was the target folder empty?")

builds = [seconds("build-run"), seconds("build-test")]
run, test = seconds("run"), seconds("test")
dearest = sorted(crates, key=crates.get, reverse=True)[:30]
json.dump({
    "processor": processor(),
    "logical_cpus": os.cpu_count(),
    "rustc": output("rustc", "--version"),
    "commit": output("git", "rev-parse", "--short=12", "HEAD"),
    "build_wall_seconds": round(sum(wall for wall, _ in builds), 1),
    "build_cpu_seconds": round(sum(cpu for _, cpu in builds), 1),
    "run_seconds": round(run[0], 1),
    "run_cpu_seconds": round(run[1], 1),
    "test_seconds": round(test[0], 1),
    "test_cpu_seconds": round(test[1], 1),
    "crates": len(crates),
    "units": sum(number.values()),
    "unit_seconds": round(sum(crates.values()), 1),
    "dearest_crates": [
        {"crate": crate, "units": number[crate], "unit_seconds": round(crates[crate], 1)} for crate in dearest
    ],
}, sys.stdout, indent=2)
print()
PY
mv "$work/result.json" "$out"
cat "$out"
