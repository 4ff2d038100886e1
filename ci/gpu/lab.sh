# shellcheck shell=bash
# The command `lab` of gpu.sh, which describes it and has the functions that are used here.

# Seconds kept for packing what a call leaves.
LAB_END=25

# line JSON: appends a line to the results.
line() { printf '%s\n' "$1" >> "$records/lab.jsonl"; }

# part NAME LIMIT COMMAND ...: runs a part with its output in a log, and says in a line how it ended.
part() {
  local name=$1 limit=$2 status=0 start
  shift 2
  [ "$(left)" -gt 0 ] || { echo "lab: no time left for $name"; return 0; }
  start=$(date +%s)
  limited "$limit" "$logs/$name.txt" "$@" || status=$?
  line "{\"part\":$(quoted "$name"),\"exit_status\":$status,\"seconds\":$(($(date +%s) - start)),\"last_words\":$(quoted "$(tail -n 3 "$logs/$name.txt")")}"
  echo "lab: $name: exit status $status after $(($(date +%s) - start)) s"
  # Out of time is no failure.
  [ "$status" -eq 0 ] || [ "$status" -eq 124 ] || failures=$((failures + 1))
}

# archive NAME FOLDER: FOLDER as NAME.tar.xz, or as NAME.tar.gz without xz.
archive() {
  [ -d "$2" ] && [ -n "$(ls -A "$2")" ] || return 0
  if command -v xz > /dev/null; then
    tar -C "$2" -cf - . | xz -T0 -3 > "$records/$1.tar.xz"
  else
    tar -C "$2" -czf "$records/$1.tar.gz" .
  fi
}

# Prints a short line for each measurement, in case that only the output of a call comes back.
summary() {
  "$python" - "$records/lab.jsonl" <<'PYTHON' || true
import json, sys
for line in open(sys.argv[1]):
    result = json.loads(line)
    numbers = result.get("measured") or result
    names = ("exit_status", "step_seconds", "forward_seconds", "seconds", "launches", "busy_seconds", "idle_seconds", "same_bits", "message", "failed")
    parts = [f"{name} {numbers[name]:.3g}" if isinstance(numbers[name], float) else f"{name} {numbers[name]}"
             for name in names if name in numbers]
    name = result.get("name") or result.get("part") or " ".join(str(result.get(key)) for key in ("peer", "what", "encoding", "mode", "dtype", "len"))
    print(f"lab: {name}: {', '.join(parts)}"[:200])
    for kernel in numbers.get("kernels", [])[:8]:
        print(f"lab:   {kernel['launches']} x {kernel['kernel'][:60]} {kernel['seconds']:.3g} s")
PYTHON
}

# Packs logs, PTX and compiled kernels; also when the call is interrupted.
lab_end() {
  trap - EXIT
  archive logs "$logs" || true
  archive kernels "$work/kernels" || true
  summary
  echo "lab: $(grep -c '"status":"done"\|"peer"' "$records/lab.jsonl" || true) measurements in $records/lab.jsonl"
}

# in_work COMMAND ...: a command in the folder whose cubecl.toml keeps compiled kernels below it.
in_work() { cd "$work" && exec "$@"; }

lab_plan() {
  in_work "$here/$1" --plan "$2" --out "$records/lab.jsonl" --seconds "$3" --backend "$backend"
}

lab_first() { CUBECL_CUDA_DUMP_PTX="$logs/ptx" lab_plan pe-bench "$lab_files/lab.jsonl" "$1"; }

# The rest of the plan after the peers of an earlier call, which are in its order.
lab_peers() {
  local measured
  measured=$(grep -c '"mode": ' "$records/lab.jsonl" || true)
  tail -n "+$((measured + 1))" "$lab_files/peers.jsonl" > "$work/peers.jsonl"
  "$python" "$here/torch_step.py" --device "$peer_device" --plan "$work/peers.jsonl" --seconds "$1" | tee -a "$records/lab.jsonl"
}

lab_ncu() {
  echo '{"name": "attention rope bf16 under ncu", "what": "attention", "encoding": "rope", "precision": "bf16", "repeats": 1}' > "$work/ncu.jsonl"
  in_work ncu --set full --clock-control none --kernel-name-base demangled --kernel-name 'regex:(forward|backward)_kernel' \
    --launch-skip 2 --launch-count 2 --csv --page details --log-file "$logs/ncu.csv" \
    "$here/pe-bench" --plan "$work/ncu.jsonl" --out "$logs/under-ncu.jsonl" --seconds 60 --backend "$backend"
}

# One step of the other programs, named after the program.
lab_program() {
  local plan="$work/$1.jsonl"
  printf '{"name": "step rope bf16, %s", "what": "step", "precision": "bf16"}\n{"name": "kernels of a step, rope bf16, %s", "what": "kernels", "precision": "bf16", "steps": 3}\n' \
    "$1" "$1" > "$plan"
  lab_plan "$1" "$plan" "$2"
}

lab() {
  [ $# -ge 1 ] || usage
  here=$1
  shift
  local seconds=400 only=first,warm,peers,ncu,programs,rest name program before
  records=
  backend=${LAB_BACKEND:-cuda} peer_device=${LAB_PEER_DEVICE:-cuda}
  while [ $# -gt 0 ]; do
    [ $# -ge 2 ] || fail 2 "$1 needs a value"
    case "$1" in
      --seconds) seconds=$2 ;;
      --records) records=$2 ;;
      --only) only=$2 ;;
      *) fail 2 "unknown option $1; known: --seconds, --records, --only" ;;
    esac
    shift 2
  done
  [[ "$seconds" =~ ^[1-9][0-9]{1,4}$ ]] || fail 2 "--seconds is '$seconds', expected a whole number from 10 to 99999"
  for name in ${only//,/ }; do
    case "$name" in
      first | warm | peers | ncu | programs | rest) ;;
      *) fail 2 "--only names '$name'; known: first, warm, peers, ncu, programs, rest" ;;
    esac
  done
  [ -d "$here" ] || fail 2 "there is no folder $here"
  here=$(cd "$here" && pwd)
  records=${records:-$here/records/lab}
  mkdir -p "$records"
  records=$(cd "$records" && pwd)
  deadline=$(($(date +%s) + seconds - LAB_END))
  failures=0
  gpu_present
  work="$here/lab-work"
  logs="$work/logs"
  mkdir -p "$logs/ptx" "$work/kernels"
  trap lab_end EXIT
  trap stop INT TERM
  unpacked pe-bench
  before=$here/before
  for name in "$before"/kernels.tar.*; do
    [ ! -f "$name" ] || tar -C "$work/kernels" -xf "$name" || echo "lab: $name cannot be unpacked and is left out" >&2
  done
  [ ! -f "$before/lab.jsonl" ] || [ -f "$records/lab.jsonl" ] || cp "$before/lab.jsonl" "$records/"
  printf '[environment]\npath = { directory = "%s" }\n[compilation]\ncache = true\n' "$work/kernels" > "$work/cubecl.toml"
  line "{\"part\":\"machine\",\"device\":$(quoted "$device"),\"processors\":$(nproc),\"seconds\":$seconds}"
  for name in ${only//,/ }; do
    case "$name" in
      first) part first 125 lab_first 95 ;;
      warm)
        echo '{"name": "step rope bf16, second process", "what": "step", "precision": "bf16"}' > "$work/warm.jsonl"
        part warm 60 lab_plan pe-bench "$work/warm.jsonl" 60
        ;;
      peers)
        if "$python" -c 'import torch, sys; sys.exit(sys.argv[1] == "cuda" and not torch.cuda.is_available())' "$peer_device" 2> /dev/null; then
          part peers 155 lab_peers 150
        else
          line '{"part":"peers","exit_status":null,"last_words":"no PyTorch with CUDA"}'
        fi
        ;;
      ncu)
        if command -v ncu > /dev/null; then part ncu 60 lab_ncu; else line '{"part":"ncu","exit_status":null,"last_words":"no ncu"}'; fi
        ;;
      programs)
        for program in "$here"/pe-bench+*.xz; do
          [ -f "$program" ] || continue
          program=$(basename "$program" .xz)
          unpacked "$program"
          part "$program" 90 lab_program "$program" 60
        done
        ;;
      rest) part rest "$(left)" lab_plan pe-bench "$lab_files/lab.jsonl" "$(left)" ;;
    esac
  done
  lab_end
  [ "$failures" -eq 0 ] || fail 1 "$failures parts failed, see $records/lab.jsonl"
}
