"""Samples as arrays, as objects and as a dataset are the same."""

import pytest
import torch
from torch.utils.data import DataLoader

from pe_zoo import program, tasks

SIZE = {"len": 32, "count": 12, "seed": 4}


@pytest.fixture(scope="module")
def counting():
    return tasks.load("counting", variables=3)


@pytest.mark.parametrize("split", ["train", "in-distribution"])
def test_arrays_are_the_samples(counting, split):
    arrays = counting.arrays(split, **SIZE)
    samples = list(counting.samples(split, **SIZE))
    assert len(samples) == SIZE["count"]
    for row, sample in enumerate(samples):
        length = arrays["lengths"][row]
        assert arrays["tokens"][row, :length].tolist() == sample["tokens"]
        assert arrays["scored"][row, :length].tolist() == sample["scored"]
        assert not arrays["scored"][row, length:].any()
        for name, value in sample["properties"].items():
            assert arrays[name][row] == value
    assert arrays["tokens"].max() < arrays["vocab_size"] == counting.describe()["vocab_size"]


@pytest.mark.parametrize("workers", [0, 2])
def test_a_dataset_has_each_sample_once(counting, workers):
    loader = DataLoader(
        counting.dataset(**SIZE), batch_size=4, num_workers=workers, collate_fn=tasks.collate
    )
    found = []
    for batch in loader:
        assert batch["input_ids"].shape == batch["labels"].shape
        for row, labels in zip(batch["input_ids"], batch["labels"]):
            found.append((row.tolist(), labels[labels != tasks.IGNORED].tolist()))
    expected = []
    for sample in counting.samples(**SIZE):
        answers = [token for token, scored in zip(sample["tokens"], sample["scored"]) if scored]
        expected.append((sample["tokens"][:-1], answers))
    strip = lambda pairs: sorted((answers, row[: min(len(row), 8)]) for row, answers in pairs)
    assert strip(found) == strip(expected)


def test_the_training_stream_has_no_end(counting):
    samples = counting.samples(len=32)
    assert sum(1 for _, _ in zip(range(5000), samples)) == 5000
    with pytest.raises(ValueError):
        next(iter(counting.samples("in-distribution", len=32)))


def test_wrong_names_are_refused():
    with pytest.raises(program.ProgramError, match="did you mean `counting`"):
        tasks.load("countin").describe()
    with pytest.raises(program.ProgramError, match="did you mean `variables`"):
        tasks.load("counting", variable=3).arrays(len=32)
    assert torch.is_tensor(next(iter(tasks.load("copy").dataset(len=16)))["labels"])
