#!/bin/sh
# Times training steps of pe-bench and of PyTorch in turns; see ci/peers/compare.py for its options.
#
#   ci/peers.sh --out results/speed/HOST_DATE [--rounds 3] [--encodings nope,rope,cope] [--len 512] ...
#
# PyTorch is installed once into a separate virtual environment: PEERS_VENV, or target/peers-venv
# (about 7 GB, including CUDA libraries). torch.compile needs a C++ compiler.
set -eu
cd "$(dirname "$0")/.."
cargo build --release
bench="${CARGO_TARGET_DIR:-target}/release/pe-bench"
venv="${PEERS_VENV:-${CARGO_TARGET_DIR:-target}/peers-venv}"
if ! "$venv/bin/python" -c 'import torch' 2>/dev/null; then
    python3 -m venv "$venv"
    "$venv/bin/pip" install --quiet torch==2.9.0 numpy setuptools
fi
exec "$venv/bin/python" ci/peers/compare.py --bench "$bench" "$@"
