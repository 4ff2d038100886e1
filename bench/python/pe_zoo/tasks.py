"""The tasks of pe-bench as datasets of PyTorch and arrays of NumPy.

A seed gives the samples that `pe-bench run` trains on or evaluates with that seed, on every machine.
"""

from __future__ import annotations

import json
import sys
import tempfile
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, Iterator, Mapping

from . import program

IGNORED = -100
"""Label of a token that is not scored: the one that `torch.nn.functional.cross_entropy` ignores."""


def load(task: str, **settings: Any) -> Task:
    """A task by its id, with settings that differ from its defaults: `load("counting", variables=3)`.

    `pe-bench list tasks` prints the ids and `pe-bench explain TASK` the settings.
    """
    return Task(task, settings)


@dataclass(frozen=True)
class Task:
    """A task with settings."""

    id: str
    settings: Mapping[str, Any]

    def describe(self, split: str = "train", len: int = 64, count: int = 1000, seed: int = 0) -> dict:
        """Vocabulary, splits, metric, and the chance of guessing among `count` samples of a split."""
        return json.loads(program.run(*self._arguments(split, len, count, seed), "--describe"))

    def samples(
        self, split: str = "train", len: int = 64, count: int | None = None, seed: int = 0
    ) -> Iterator[dict]:
        """Yields samples: `tokens`, `scored`, `properties` and `token_properties`.

        The split `train` has no end without a `count`; other splits need one. `seed` is that of a run for `train`, and
        `eval.seed` of a suite for other splits.
        """
        return map(json.loads, self._lines(split, len, count, seed))

    def arrays(self, split: str = "train", len: int = 64, count: int = 1000, seed: int = 0) -> dict:
        """NumPy arrays: `tokens` and `scored` `[count, longest]`, `lengths` `[count]`, one array a property,
        `vocab_size` and `chance`. Tokens after the end of a sample are 0 and not scored.
        """
        import numpy

        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "samples.npz"
            program.run(*self._arguments(split, len, count, seed), "--out", str(file))
            with numpy.load(file) as arrays:
                return dict(arrays)

    def dataset(self, len: int = 64, split: str = "train", count: int | None = None, seed: int = 0):
        """An `IterableDataset` of PyTorch: `input_ids` and `labels`, each `[tokens - 1]`, for the next token.

        Labels of tokens that are not scored are -100. With several workers of a `DataLoader`, each yields its share.
        """
        import torch
        from torch.utils.data import IterableDataset, get_worker_info

        task = self

        class Samples(IterableDataset):
            def __iter__(self):
                worker = get_worker_info()
                first, step = (0, 1) if worker is None else (worker.id, worker.num_workers)
                for line in islice(task._lines(split, len, count, seed), first, None, step):
                    sample = json.loads(line)
                    tokens = torch.tensor(sample["tokens"])
                    scored = torch.tensor(sample["scored"])[1:]
                    labels = torch.where(scored, tokens[1:], IGNORED)
                    yield {"input_ids": tokens[:-1], "labels": labels}

        return Samples()

    def _lines(self, split: str, len: int, count: int | None, seed: int) -> Iterator[str]:
        if count is None:
            if split != "train":
                raise ValueError(f"the split `{split}` needs `count`, the number of samples")
            count = sys.maxsize
        return program.lines(*self._arguments(split, len, count, seed))

    def _arguments(self, split: str, len: int, count: int, seed: int) -> list[str]:
        options = {"split": split, "len": len, "count": count, "seed": seed}
        arguments = ["samples", self.id]
        for key, value in self.settings.items():
            arguments += ["--set", f"{key}={json.dumps(value)}"]
        for key, value in options.items():
            arguments += [f"--{key}", str(value)]
        return arguments


def collate(samples: list[dict]) -> dict:
    """A batch of samples of a dataset, padded at the right to the longest: `[batch, tokens]`."""
    from torch.nn.utils.rnn import pad_sequence

    return {
        key: pad_sequence([sample[key] for sample in samples], batch_first=True, padding_value=padding)
        for key, padding in (("input_ids", 0), ("labels", IGNORED))
    }
