#!/usr/bin/env bash
# Compares the loss curves of the backends flex and tch (LibTorch on the CPU) for every encoding: installs PyTorch 2.9.0 into
# a virtual environment, builds with LibTorch and runs bench/train/tests/backends.rs. Needs Python 3, pip and about 12 GB.
#
#   ci/tch.sh        TCH_FOLDER=folder of the environment and the build; default: the cache folder
#                        TCH_INDEX_URL=package index with wheels of PyTorch for the CPU
set -euo pipefail
cd "$(dirname "$0")/.."
folder="${TCH_FOLDER:-${XDG_CACHE_HOME:-$HOME/.cache}/pe-zoo/tch}"
mkdir -p "$folder"
need_kib=$((12 * 1024 * 1024))
free_kib=$(df --output=avail "$folder" | tail -1)
if [ ! -x "$folder/venv/bin/python" ] && [ "$free_kib" -lt "$need_kib" ]; then
  echo "tch.sh: $((free_kib / 1024 / 1024)) GB are free in $folder, expected at least 12" >&2
  exit 2
fi

python3 -m venv "$folder/venv"
source "$folder/venv/bin/activate"
# An index of wheels for the CPU alone saves 6 GB; the default index has those for CUDA.
python -c 'import torch' 2>/dev/null ||
  pip install --quiet ${TCH_INDEX_URL:+--index-url "$TCH_INDEX_URL"} torch==2.9.0
python -c 'import torch; print("PyTorch", torch.__version__)'

export LIBTORCH_USE_PYTORCH=1
LD_LIBRARY_PATH="$(python -c 'import os, torch; print(os.path.join(os.path.dirname(torch.__file__), "lib"))')${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
export LD_LIBRARY_PATH
export CARGO_TARGET_DIR="${CARGO_TARGET_DIR:-$folder/target}"
start=$SECONDS
cargo test --workspace --features tch --test backends -- --ignored --nocapture
echo "tch parity passed in $((SECONDS - start)) s"
