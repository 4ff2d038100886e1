#!/usr/bin/env bash
# Builds the Python wheel of bench/python and tries it in a new virtual environment, on a PATH without Rust.
#
#   ci/wheel.sh FOLDER [--dev]
#
# Writes the wheel to FOLDER. --dev builds with the dev profile, whose artifacts CARGO_TARGET_DIR may already have, for this machine
# alone; otherwise zig links the program, so that it runs on every Linux with glibc 2.17. Needs python3 with venv and pip.
set -euo pipefail
cd "$(dirname "$0")/.."
folder=${1:?"usage: ci/wheel.sh FOLDER [--dev]"}
mkdir -p "$folder"
folder=$(cd "$folder" && pwd)
profile=release
options=()
[ "$(uname)" != Linux ] || options=(--zig --compatibility manylinux2014)
if [ "${2-}" = --dev ]; then
  profile=dev
  [ "$(uname)" != Linux ] || options=(--compatibility linux)
fi

work=$(mktemp -d)
trap 'rm -rf "$work" bench/python/data' EXIT
python3 -m venv "$work/build"
"$work/build/bin/pip" install --quiet 'maturin[zig]>=1.9,<2'
# `quick` reads a text, which comes through cargo: the wheel has it.
PE_ZOO_CACHE="$work/cache" cargo run --quiet --profile "$profile" -- data fetch tinyshakespeare
mkdir -p bench/python/data/data/share/pe-zoo
cp -r "$work/cache/corpora" bench/python/data/data/share/pe-zoo/
(cd bench/python && "$work/build/bin/maturin" build --profile "$profile" "${options[@]}" --out "$folder")

python3 -m venv "$work/new"
"$work/new/bin/pip" install --quiet numpy "$(ls -t "$folder"/*.whl | head -1)"
cd "$work"
export PATH="$work/new/bin:/usr/bin:/bin" PE_ZOO_CACHE="$work/empty"
! command -v cargo
pe-bench --version
pe-bench run quick --seeds 0 --encodings rope,nope --out quick
python - <<'PY'
from pe_zoo import tasks
counting = tasks.load("counting", variables=3)
arrays = counting.arrays(len=32, count=10, seed=4)
printed = list(counting.samples(len=32, count=10, seed=4))
for row, scored, sample in zip(arrays["tokens"], arrays["scored"], printed):
    assert row[: len(sample["tokens"])].tolist() == sample["tokens"]
    assert scored[: len(sample["scored"])].tolist() == sample["scored"]
assert counting.describe()["vocab_size"] == arrays["vocab_size"]
print("samples are equal")
PY
ls -l "$folder"/*.whl
