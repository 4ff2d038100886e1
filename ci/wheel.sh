#!/usr/bin/env bash
# Builds the Python wheel of bench/python and tries it in a new virtual environment, on a PATH without Rust.
#
#   ci/wheel.sh FOLDER [--cuda] [--dev]
#
# Writes the wheel to FOLDER. --cuda builds `pe-zoo-cuda`, whose program has the backend `cuda` beside `flex`; it needs the LLVM of
# Burn's build (ci/llvm-for-cuda.sh where it cannot be fetched), and is for the glibc of this machine. --dev builds with the dev
# profile, whose artifacts CARGO_TARGET_DIR may already have, for this machine alone. Otherwise zig links the program, so that it
# runs on every Linux with glibc 2.17. Needs python3 with venv and pip.
set -euo pipefail
cd "$(dirname "$0")/.."
usage="usage: ci/wheel.sh FOLDER [--cuda] [--dev]"
folder=${1:?"$usage"}
shift
mkdir -p "$folder"
folder=$(cd "$folder" && pwd)
profile=release
name=pe-zoo
features=()
options=()
[ "$(uname)" != Linux ] || options=(--zig --compatibility manylinux2014)
for option in "$@"; do
  case $option in
    --cuda) name=pe-zoo-cuda features=(--features pe-zoo-bench/cuda) options=() ;;
    --dev) profile=dev; [ "$(uname)" != Linux ] || options=(--compatibility linux) ;;
    *) echo "wheel: unknown option $option; $usage" >&2; exit 2 ;;
  esac
done

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# The compiler and the profiles of the repository: maturin runs outside of it.
RUSTUP_TOOLCHAIN=$(sed -n 's/^channel = "\(.*\)"/\1/p' rust-toolchain.toml)
export RUSTUP_TOOLCHAIN
cp -r .cargo "$work/.cargo"
python3 -m venv "$work/build"
"$work/build/bin/pip" install --quiet 'maturin[zig]>=1.9,<2'
# A copy of the package, to which the name and the texts are written.
cp -r bench/python "$work/python"
sed -i.old -e "s/^name = .*/name = \"$name\"/" -e "s|^manifest-path = .*|manifest-path = \"$PWD/bench/cli/Cargo.toml\"|" \
  "$work/python/pyproject.toml"
# `quick` reads a text, which comes through cargo: the wheel has it.
PE_ZOO_CACHE="$work/cache" cargo run --quiet --profile "$profile" ${features[@]+"${features[@]}"} -- data fetch tinyshakespeare
mkdir -p "$work/python/data/data/share/pe-zoo"
cp -r "$work/cache/corpora" "$work/python/data/data/share/pe-zoo/"
(cd "$work/python" && "$work/build/bin/maturin" build --profile "$profile" ${features[@]+"${features[@]}"} \
  ${options[@]+"${options[@]}"} --out "$folder")

python3 -m venv "$work/new"
"$work/new/bin/pip" install --quiet numpy "$(ls -t "$folder/${name//-/_}"-*.whl | head -1)"
cd "$work"
export PATH="$work/new/bin:/usr/bin:/bin" PE_ZOO_CACHE="$work/empty"
! command -v cargo
pe-bench --version
pe-bench list backends
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
