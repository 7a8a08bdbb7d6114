"""benchmarks/lora.py, at a size for a processor: each way that the goals name, and that a step can be captured."""

from __future__ import annotations

import importlib.util
import sys
from collections import Counter
from pathlib import Path

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

SMALL = [
    "--members",
    "2",
    "--layers",
    "1",
    "--hidden",
    "32",
    "--vocab",
    "97",
    "--length",
    "8",
    "--batch",
    "2",
    "--steps",
    "2",
    "--device",
    "cpu",
]


@pytest.fixture(scope="module")
def lora():
    path = Path(__file__).parents[2] / "benchmarks/lora.py"
    spec = importlib.util.spec_from_file_location("lora_benchmark", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def test_every_way_of_the_goals_is_timed_and_float32_comes_last(lora, capsys):
    found = lora.main(["speed", *SMALL])
    ways = list(found)
    assert set(lora.GOALS) - {"peft"} < set(ways)  # which needs peft
    assert ways[0] == "ours"
    assert ways[-1] == "ours-float32"
    assert ways.index("graph") > ways.index("plain")
    assert "graph" in capsys.readouterr().out
    assert set(found) <= set(lora.WAYS)


def test_ways_that_are_named_are_timed_in_their_order_and_no_others(lora):
    assert list(lora.main(["speed", *SMALL, "--ways", "graph", "ours"])) == ["graph", "ours"]


class Seen(TorchDispatchMode):
    """Counts operations by name."""

    def __init__(self):
        super().__init__()
        self.names = Counter()

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.names[func.overloadpacket.__name__] += 1
        return func(*args, **(kwargs or {}))


@pytest.mark.parametrize("ragged", [[], ["--ragged"]])
def test_a_step_that_is_to_be_captured_asks_nothing_of_the_device(lora, monkeypatch, ragged):
    """Reading a number back, or a size that hangs on values, breaks a capture: more steps ask for no more of them."""
    monkeypatch.setattr(torch.optim.AdamW, "step", lambda self: None)  # on a processor it reads its own count
    how_of = {}
    monkeypatch.setattr(lora, "speed", lambda how, base, points: how_of.update(how=how, points=points) or {})
    asked = []
    for n_steps in (1, 3):
        lora.main(["speed", *SMALL, *ragged, "--steps", str(n_steps)])
        with Seen() as seen:
            lora.captured_seconds(how_of["how"], how_of["points"])
        asked.append({name: seen.names[name] for name in ("_local_scalar_dense", "nonzero", "masked_select", "unique")})
        assert seen.names["mm"] > 0
    assert asked[0] == asked[1]
