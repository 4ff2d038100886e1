#!/usr/bin/env bash
# Holds the budgets of the GPU kernels without a GPU: compiles every form with Burn's CUDA compiler to PTX for sm_90a,
# assembles it with NVIDIA's ptxas, disassembles it with nvdisasm, and compares counts of ci/gpu/budgets.json: tensor
# instructions exactly; instructions, registers, spilled bytes and barriers at most.
#
#   ci/gpu-budgets.sh [--write]
#
#   --write   write the counts as the new budgets
#
# The assembler, the disassembler and libdevice come as Python packages (nvidia-cuda-nvcc, nvidia-cuda-nvdisasm) into
# target/budgets. Needs Python 3 with venv, and LLVM for Burn's `cuda` (ci/llvm-for-cuda.sh where it cannot be fetched).
set -euo pipefail
cd "$(dirname "$0")/.."
case "${1:-}" in
  '' | --write) ;;
  *) echo "gpu-budgets: unknown option $1; usage: ci/gpu-budgets.sh [--write]" >&2; exit 2 ;;
esac
folder="${CARGO_TARGET_DIR:-target}/budgets"
venv="$folder/venv"
[ -x "$venv/bin/python" ] || python3 -m venv "$venv"
tools=$(find "$venv" -path '*/bin/ptxas' -print -quit)
if [ -z "$tools" ]; then
  "$venv/bin/pip" install --quiet nvidia-cuda-nvcc nvidia-cuda-nvdisasm
  tools=$(find "$venv" -path '*/bin/ptxas' -print -quit)
fi
tools=$(cd "$(dirname "$tools")/.." && pwd)
[ -f "$tools/nvvm/libdevice/libdevice.10.bc" ] ||
  { echo "gpu-budgets: there is no libdevice.10.bc under $tools, expected the file of the package nvidia-nvvm" >&2; exit 1; }
rm -rf "$folder/ptx"
mkdir -p "$folder/ptx"
# Optimised like the build of gpu.sh, with which it shares artifacts.
PE_ZOO_PTX=$(cd "$folder/ptx" && pwd) CUDA_PATH="$tools" \
  cargo test --release --workspace --features pe-zoo-bench/ptx --lib testing::ptx ||
  { echo "gpu-budgets: the build or a test failed, see above; if the build could not fetch LLVM, run ci/llvm-for-cuda.sh once" >&2; exit 1; }
"$venv/bin/python" ci/gpu/budgets.py "$tools/bin" "$folder/ptx" ci/gpu/budgets.json "$@"
