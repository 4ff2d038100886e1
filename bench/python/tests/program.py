"""Output of pe-bench, which the environment variable PE_BENCH names."""

import functools
import json
import os
import subprocess

PROGRAM = os.environ.get("PE_BENCH")
if not PROGRAM:
    raise RuntimeError("PE_BENCH is not set; set it to the path of pe-bench")


def run(*arguments):
    return subprocess.run([PROGRAM, *arguments], capture_output=True, text=True)


def read(*arguments):
    """The JSON that a command prints."""
    result = run(*arguments, "--json")
    assert result.returncode == 0, result.stderr
    return json.loads(result.stdout)


@functools.cache
def vectors(text, tokens=7):
    return read("vectors", text, "--tokens", str(tokens))


def ids():
    return [item["id"] for item in read("list", "encodings")]
