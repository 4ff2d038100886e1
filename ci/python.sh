#!/usr/bin/env bash
# Tests the Python package of bench/python: tasks as datasets, encodings as PyTorch modules against `pe-bench vectors`.
#
#   ci/python.sh [VENV]        PE_BENCH=path of the program; default: the debug build
#
# Installs PyTorch, NumPy and pytest (5 GB) into the virtual environment VENV, unless it has them; default: target/python.
set -euo pipefail
cd "$(dirname "$0")/.."
venv=${1:-target/python}
if [ -z "${PE_BENCH-}" ]; then
  cargo build --workspace --bin pe-bench
  PE_BENCH=${CARGO_TARGET_DIR:-target}/debug/pe-bench
fi
PE_BENCH=$(realpath "$PE_BENCH")
export PE_BENCH
[ -x "$venv/bin/python" ] || python3 -m venv "$venv"
"$venv/bin/python" -c 'import torch, numpy, pytest' 2>/dev/null || "$venv/bin/pip" install --quiet torch numpy pytest
"$venv/bin/python" -m pytest -q bench/python/tests
