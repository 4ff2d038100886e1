#!/usr/bin/env python3
"""Times one training step of the same decoder in PyTorch, for comparison with `pe-bench speed`.

Same work as `pe-bench speed`: causal decoder, pre-norm, GELU MLP (4x), AdamW, cross entropy over every
token, random tokens. Prints one JSON line: median seconds per step and per forward pass, peak resident bytes.

  python torch_step.py --pe rope --mode eager --batch 16 --len 512 --dim 256 --heads 4 --layers 4

--mode eager | sdpa | flex | compile | sdpa-compile. `sdpa` is PyTorch's fused attention: nope and rope run without
a mask, alibi, t5 and fox with their bias as the mask; shaw and cope cannot use it. `compile` compiles the model with
the attention of `eager`, `sdpa-compile` with that of `sdpa`. `flex` is PyTorch's FlexAttention, compiled; all but
cope can be written as its score function (cope's gates depend on the logits of other columns).

--attention times one layer's attention alone instead of the model: forward and backward for a step, forward alone.
--dtype bf16 runs under autocast: weights and their updates stay float32; --dtype tf32 lets the GPU
round the factors of matrix products to TF32.

--plan FILE measures many settings in one process, so that PyTorch starts once. Each line of FILE is a JSON object of
options without their dashes, such as {"pe": "fox", "mode": "flex", "attention": true}; the command line has the rest.
A line of output follows each measurement at once; a failed one has its message under "failed". No measurement starts
after --seconds, and one that runs then is ended. Exit status: 0, 1 if a line failed, 2 for a plan that cannot be read.
"""
import argparse
import contextlib
import gc
import json
import math
import resource
import signal
import statistics
import sys
import time

import torch
import torch.nn as nn
import torch.nn.functional as F

parser = argparse.ArgumentParser()
for name, default in [
    ("batch", 16), ("len", 512), ("dim", 256), ("heads", 4), ("layers", 4), ("vocab", 64),
    ("npos", 64), ("steps", 7), ("threads", 2),
]:
    parser.add_argument(f"--{name}", type=int, default=default)
parser.add_argument("--pe", default="rope", choices=["nope", "rope", "alibi", "t5", "shaw", "fox", "cope"])
parser.add_argument("--mode", default="eager", choices=["eager", "sdpa", "flex", "compile", "sdpa-compile"])
parser.add_argument("--device", default="cpu")
parser.add_argument("--dtype", default="f32", choices=["f32", "tf32", "bf16"])
parser.add_argument("--attention", action="store_true")
parser.add_argument("--step-only", action="store_true", help="time only the training step, and not also the forward pass")
parser.add_argument("--plan", help="file with one object of options per line, measured in this order")
parser.add_argument("--seconds", type=int, default=10**6, help="seconds after which a plan ends")


def refusal(o):
    """Returns why settings cannot be measured; None if they can."""
    if o.mode.startswith("sdpa") and o.pe in ("shaw", "cope"):
        return f"{o.pe} cannot be expressed through scaled_dot_product_attention"
    if o.mode == "flex" and o.pe == "cope":
        return "cope cannot be expressed through flex_attention: its gates look at other columns"
    if o.dim % o.heads:
        return f"heads is {o.heads}, expected a divisor of dim, which is {o.dim}"
    return None


def planned(path, defaults):
    """Reads the settings of a plan; ends with status 2 at the first line that cannot be read."""
    plan = []
    options = {action.dest: action for action in parser._actions if action.dest not in ("help", "plan", "seconds")}
    for number, line in enumerate(open(path), start=1):
        if not line.strip():
            continue
        try:
            settings = json.loads(line)
            if not isinstance(settings, dict):
                raise ValueError(f"{settings!r}, expected an object of options")
            for name, value in settings.items():
                if name not in options:
                    raise ValueError(f"unknown option {name!r}; known: {', '.join(options)}")
                kind = options[name].type or (bool if options[name].const is True else str)
                if type(value) is not kind:
                    raise ValueError(f"{name} is {value!r}, expected a value of type {kind.__name__}")
                if options[name].choices and value not in options[name].choices:
                    raise ValueError(f"{name} is {value!r}, expected one of {', '.join(options[name].choices)}")
            plan.append(argparse.Namespace(**{**vars(defaults), **settings}))
            if reason := refusal(plan[-1]):
                raise ValueError(reason)
        except ValueError as error:
            parser.error(f"{path}:{number}: {error}")
    return plan


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        d = o.dim
        self.n1, self.n2 = nn.LayerNorm(d), nn.LayerNorm(d)
        self.qkv, self.out = nn.Linear(d, 3 * d), nn.Linear(d, d)
        self.up, self.down = nn.Linear(d, 4 * d), nn.Linear(4 * d, d)
        if o.pe in ("shaw", "cope"):
            rows = T if o.pe == "shaw" else o.npos
            self.table = nn.Parameter(torch.randn(D, rows) * 0.02)
        if o.pe == "t5":
            self.buckets = nn.Parameter(torch.randn(32, H) * 0.02)
        if o.pe == "fox":
            self.forget = nn.Linear(d, H)

    def bias(self, x, c):
        """Returns the bias added to the logits besides the causal mask; None for encodings without one."""
        if o.pe == "alibi":
            return c["alibi"]
        if o.pe == "t5":
            return self.buckets[c["bucket"]].permute(2, 0, 1)[None] + c["mask"]
        if o.pe == "fox":
            total = F.logsigmoid(self.forget(x)).transpose(1, 2).cumsum(-1)
            return total[..., :, None] - total[..., None, :] + c["mask"]
        return None

    def score(self, q, x, c):
        """Returns the score function of FlexAttention, which gets logits divided by sqrt(D); None for most encodings."""
        if o.pe == "alibi":
            return lambda s, b, h, i, j: s - c["slopes"][h] * (i - j)
        if o.pe == "t5":
            return lambda s, b, h, i, j: s + self.buckets[c["bucket"][i, j], h]
        if o.pe == "fox":
            total = F.logsigmoid(self.forget(x)).transpose(1, 2).cumsum(-1)
            return lambda s, b, h, i, j: s + total[b, h, i] - total[b, h, j]
        if o.pe == "shaw":
            products = q @ self.table / math.sqrt(D)
            return lambda s, b, h, i, j: s + products[b, h, i, (i - j).clamp(min=0)]
        return None

    def attend(self, q, k, v, x, c):
        if o.pe == "rope":
            half = D // 2
            turn = lambda u: u * c["cos"] + torch.cat([-u[..., half:], u[..., :half]], -1) * c["sin"]
            q, k = turn(q).to(v.dtype), turn(k).to(v.dtype)
        if o.mode == "flex":
            return fused(q, k, v, score_mod=self.score(q, x, c), block_mask=c["blocks"])
        bias = self.bias(x, c)
        if is_sdpa:
            bias = None if bias is None else bias.to(q.dtype)
            return F.scaled_dot_product_attention(q, k, v, attn_mask=bias, is_causal=bias is None)
        s = q @ k.transpose(-1, -2) / math.sqrt(D)
        if bias is not None:
            return (s + bias).softmax(-1).to(v.dtype) @ v
        if o.pe == "shaw":
            s = s + (q @ self.table).gather(-1, c["dist"].expand(q.shape[0], H, T, T)) / math.sqrt(D)
        if o.pe == "cope":
            gates = torch.sigmoid(s).masked_fill(c["future"], 0.0)
            p = gates.flip(-1).cumsum(-1).flip(-1).clamp(max=o.npos - 1)
            lo, hi = p.floor(), p.ceil()
            z = q @ self.table
            w = p - lo
            s = s + z.gather(-1, hi.long()) * w + z.gather(-1, lo.long()) * (1 - w)
        return s.masked_fill(c["future"], float("-inf")).softmax(-1).to(v.dtype) @ v

    def forward(self, x, c):
        B = x.shape[0]
        h = self.n1(x)
        q, k, v = self.qkv(h).view(B, T, 3, H, D).permute(2, 0, 3, 1, 4)
        x = x + self.out(self.attend(q, k, v, h, c).transpose(1, 2).reshape(B, T, o.dim))
        return x + self.down(F.gelu(self.up(self.n2(x))))


class Decoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.emb = nn.Embedding(o.vocab, o.dim)
        self.blocks = nn.ModuleList(Block() for _ in range(o.layers))
        self.norm, self.head = nn.LayerNorm(o.dim), nn.Linear(o.dim, o.vocab)

    def forward(self, ids, c):
        x = self.emb(ids)
        for block in self.blocks:
            x = block(x, c)
        return self.head(self.norm(x))


def choose(settings):
    """Sets what the functions of this file read: settings, sizes and constants."""
    global o, dev, T, H, D, is_sdpa, is_compiled, fused, consts, narrow
    o = settings
    dev, T, H, D = o.device, o.len, o.heads, o.dim // o.heads
    is_sdpa, is_compiled = o.mode.startswith("sdpa"), o.mode.endswith("compile")
    torch.set_num_threads(o.threads)
    torch.set_float32_matmul_precision("high" if o.dtype == "tf32" else "highest")
    torch.manual_seed(0)
    i = torch.arange(T, device=dev)
    future = i[None, :] > i[:, None]
    mask = torch.zeros(T, T, device=dev).masked_fill(future, float("-inf"))
    angle = i[:, None] * (10000.0 ** (-torch.arange(0, D, 2, device=dev) / D))[None, :]
    slopes = torch.tensor([2.0 ** (-8 * (h + 1) / H) for h in range(H)], device=dev)
    dist = (i[:, None] - i[None, :]).clamp(min=0)
    far = 16 + (torch.log(dist.clamp(min=16) / 16) / math.log(8) * 16).long()
    consts = {
        "future": future,
        "mask": mask,
        "cos": torch.cat([angle.cos()] * 2, -1),
        "sin": torch.cat([angle.sin()] * 2, -1),
        "alibi": (-slopes[:, None, None] * dist + mask)[None],
        "dist": dist[None, None],
        "bucket": torch.where(dist < 16, dist, far.clamp(max=31)),
        "slopes": slopes,
    }
    if o.mode == "flex":
        from torch.nn.attention.flex_attention import create_block_mask, flex_attention
        # The compiled function has no gradients on a CPU.
        fused = flex_attention if o.device == "cpu" else torch.compile(flex_attention)
        consts["blocks"] = create_block_mask(lambda b, h, i, j: j <= i, None, None, T, T, device=dev)
    narrow = torch.autocast(dev, torch.bfloat16) if o.dtype == "bf16" else contextlib.nullcontext()


def training_step():
    """Returns functions that run one training step and one forward pass in inference mode, with their own data."""
    model = Decoder().to(dev)
    step_model = torch.compile(model) if is_compiled else model
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)

    def run():
        ids = torch.randint(0, o.vocab, (o.batch, T + 1), device=dev)
        with narrow:
            logits = step_model(ids[:, :-1], consts).reshape(-1, o.vocab)
            loss = F.cross_entropy(logits, ids[:, 1:].reshape(-1))
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        return loss.item()

    @torch.inference_mode()
    def forward():
        with narrow:
            F.log_softmax(step_model(torch.randint(0, o.vocab, (o.batch, T), device=dev), consts), -1)
    return run, forward


def attention_alone():
    """Returns functions that run one attention layer: forward and backward, and forward alone."""
    block = Block().to(dev)
    attend = torch.compile(block.attend) if is_compiled else block.attend
    dtype = torch.bfloat16 if o.dtype == "bf16" else torch.float32
    x = torch.randn(o.batch, T, o.dim, device=dev)
    q, k, v = (torch.randn(o.batch, H, T, D, device=dev, dtype=dtype, requires_grad=True) for _ in range(3))

    def run():
        q.grad = k.grad = v.grad = None
        with narrow:
            output = attend(q, k, v, x, consts)
        output.float().sum().backward()

    @torch.inference_mode()
    def forward():
        with narrow:
            attend(q, k, v, x, consts)
    return run, forward


def timed(call):
    """Returns the median seconds of a call, after two that are not timed, and what the calls return."""
    times, results = [], []
    for _ in range(o.steps + 2):
        if dev != "cpu":
            torch.cuda.synchronize()
        start = time.perf_counter()
        results.append(call())
        if dev != "cpu":
            torch.cuda.synchronize()
        times.append(time.perf_counter() - start)
    return statistics.median(times[2:]), results


def measured(settings):
    """Measures one setting; returns its line of output."""
    start = time.perf_counter()
    choose(settings)
    step, forward = attention_alone() if o.attention else training_step()
    median, losses = timed(step)
    forward_times = {} if o.step_only else {"forward_seconds": round(timed(forward)[0], 6)}
    return {
        "peer": f"torch-{torch.__version__}", "encoding": o.pe, "mode": o.mode, "device": dev,
        "dtype": o.dtype, "what": "attention" if o.attention else "training step",
        "batch": o.batch, "len": T, "dim": o.dim, "heads": H, "layers": 1 if o.attention else o.layers, "threads": o.threads,
        "step_seconds": round(median, 6), **forward_times, "tokens_per_second": round(o.batch * T / median),
        # All modes compute the same function: equal up to rounding.
        **({} if o.attention else {"first_loss": losses[0]}),
        "peak_bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
        **({} if dev == "cpu" else {"device_bytes": torch.cuda.max_memory_reserved()}),
        "whole_seconds": round(time.perf_counter() - start, 3),
    }


def released(device):
    """Releases what a measurement left behind, so that the memory of the next one is its own."""
    consts.clear()
    torch._dynamo.reset()
    gc.collect()
    if device != "cpu":
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()


class OutOfTime(BaseException):
    """The plan's time is over. Not an `Exception`, which libraries catch."""


def out_of_time(*_):
    raise OutOfTime


def run_plan(plan, seconds):
    """Measures one setting after the other, for at most these seconds; returns the exit status."""
    signal.signal(signal.SIGALRM, out_of_time)
    signal.setitimer(signal.ITIMER_REAL, max(seconds, 0.001))
    failed, finished = False, 0
    try:
        for settings in plan:
            try:
                line = measured(settings)
            except Exception as error:
                failed = True
                line = {"encoding": settings.pe, "mode": settings.mode, "dtype": settings.dtype, "len": settings.len,
                        "what": "attention" if settings.attention else "training step",
                        "failed": f"{type(error).__name__}: {error}"[:600]}
            print(json.dumps(line), flush=True)
            finished += 1
            released(settings.device)
        signal.setitimer(signal.ITIMER_REAL, 0)
    except OutOfTime:
        print(f"torch_step: out of time after {finished} of {len(plan)} measurements", file=sys.stderr)
    return 1 if failed else 0


command = parser.parse_args()
if command.plan:
    sys.exit(run_plan(planned(command.plan, command), command.seconds))
if reason := refusal(command):
    parser.error(reason)
print(json.dumps(measured(command)))
