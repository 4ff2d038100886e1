"""Runs pe-bench."""

from __future__ import annotations

import os
import shutil
import subprocess
import sysconfig
from pathlib import Path
from typing import Iterator


class ProgramError(RuntimeError):
    """pe-bench refused its arguments or failed; the text is its message."""


def path() -> str:
    """Path of the program: `PE_BENCH`, the one installed with this package, or the one on `PATH`."""
    if "PE_BENCH" in os.environ:
        return os.environ["PE_BENCH"]
    installed = Path(sysconfig.get_path("scripts")) / ("pe-bench.exe" if os.name == "nt" else "pe-bench")
    found = str(installed) if installed.exists() else shutil.which("pe-bench")
    if found is None:
        raise ProgramError("pe-bench is not installed: `pip install pe-zoo`, or set PE_BENCH to its path")
    return found


def run(*arguments: str) -> str:
    """Runs the program to its end and returns what it printed."""
    done = subprocess.run([path(), *arguments], capture_output=True, text=True, encoding="utf-8")
    if done.returncode != 0:
        raise ProgramError(done.stderr.strip())
    return done.stdout


def lines(*arguments: str) -> Iterator[str]:
    """Yields the lines that the program prints, while it runs; it ends with the iterator."""
    with subprocess.Popen(
        [path(), *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, encoding="utf-8"
    ) as process:
        try:
            yield from process.stdout
            if process.wait() != 0:
                raise ProgramError(process.stderr.read().strip())
        finally:
            process.kill()
