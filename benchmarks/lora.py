"""K adapters on one frozen language model: eager loops one after another, one adapter as a CUDA graph, and all at once.

    python benchmarks/lora.py speed      tokens a second, summed over members, by each way in one run
    python benchmarks/lora.py profile    where a step of the stack goes, kernel by kernel, and what products alone take

All ways have the same base (random weights of SmolLM2-135M's sizes; speed does not depend on them), rank, batch and
sequence length, bfloat16 activations on a GPU and AdamW on float32 adapters:

ours   a stack of all members, its whole step captured as a CUDA graph (on a CPU, not captured)
one    a stack of one member, likewise
plain  the usual loop, eager, under autocast, one member after another: each linear layer W x + (α/r) B A x, written out
       as peft has it but without peft's code; on transformers' Llama, or on our own where that is not installed
peft   the same loop with peft's adapters on transformers' Llama; left out where they are not installed

Each is timed after it is warm, by the clock, the device having finished. Sequences are full: every position is a token,
and all but the first are counted. Numbers are written to --json as they are found; what has not begun when --budget
seconds are over is left out. Without a GPU it is tried by
`--members 3 --layers 2 --hidden 32 --vocab 97 --length 16 --batch 2 --steps 3 --device cpu`.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from forgetgauge.data.dataset import Points
from forgetgauge.learn.descent import Steps
from forgetgauge.learn.device import describe
from forgetgauge.learn.stacked.records import LoraStack
from forgetgauge.learn.stacked.trainer import Batch, Descent, Feed
from forgetgauge.models.causal_lm import Base
from forgetgauge.models.llama import Llama, LlamaSizes
from forgetgauge.models.lora import PROJECTIONS, LoraModel
from forgetgauge.tasks.causal_lm import CAUSAL_LM

RATE = 2e-4
GOALS = {"one": 3.0, "plain": 8.0, "peft": 8.0}
"""How many times as fast all at once should be."""


def sizes_of(how: argparse.Namespace) -> LlamaSizes:
    """SmolLM2-135M's with the default arguments."""
    heads = max(1, how.hidden // 64) if how.hidden >= 64 else 2
    key_heads = heads // 3 if heads % 3 == 0 else heads
    return LlamaSizes(how.vocab, how.hidden, how.layers, heads, key_heads, how.hidden // heads, how.hidden * 8 // 3)


def records(how: argparse.Namespace, device: torch.device) -> Points:
    """Random tokens, all counted but the first, as one version of each record."""
    codes = torch.randint(0, how.vocab, (1024, 1, how.length), generator=torch.Generator().manual_seed(0)).int()
    codes[..., 0] = -2 - codes[..., 0]
    return Points.of(codes, torch.ones(len(codes), dtype=torch.int64), task=CAUSAL_LM).on(device)


def synchronised(device: torch.device) -> float:
    """The clock once the device has finished."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    return time.perf_counter()


# -- stacks ------------------------------------------------------------------------------------------------------------


def feeds_of(how: argparse.Namespace, points: Points, n_members: int, n_steps: int) -> list[Feed]:
    """So many steps for each member, which has an order of its own."""

    def batches(member: int) -> Iterator[Batch]:
        rng = np.random.default_rng(member)
        for _ in range(n_steps):
            index = rng.integers(0, len(points), how.batch)
            yield Batch(index, np.ones(how.batch, dtype=np.int64))

    return [Feed(batches(member), n_steps) for member in range(n_members)]


def warm_descent(how: argparse.Namespace, base: Base, points: Points, n_members: int) -> Descent:
    """A stack that has made all its steps once, its graph captured, and is about to make as many again."""
    models = [LoraModel(base, PROJECTIONS, how.rank, 2.0 * how.rank).to(points.device) for _ in range(n_members)]
    stack = LoraStack(models, points, "bfloat16")
    feeds = feeds_of(how, points, n_members, how.steps)
    work = Descent(stack, points, feeds, Steps(RATE, optimiser="adamw"), batch_size=how.batch)
    work.run()
    work.feeds = feeds_of(how, points, n_members, how.steps)
    return work


def stacked_seconds(how: argparse.Namespace, base: Base, points: Points, n_members: int) -> float:
    """Seconds a step, of so many members at once."""
    work = warm_descent(how, base, points, n_members)
    start = synchronised(points.device)
    work.run()
    return (synchronised(points.device) - start) / how.steps


# -- the usual loop ----------------------------------------------------------------------------------------------------


class _WrittenOut(nn.Module):
    """A frozen linear layer with an adapter beside it, as peft's `Linear` has it."""

    def __init__(self, inner: nn.Linear, rank: int) -> None:
        super().__init__()
        self.inner, self.scale = inner, 2.0
        self.down = nn.Linear(inner.in_features, rank, bias=False)
        self.up = nn.Linear(rank, inner.out_features, bias=False)
        nn.init.zeros_(self.up.weight)

    def forward(self, x: Tensor) -> Tensor:
        made: Tensor = self.inner(x)
        return made + self.up(self.down(x.to(self.down.weight.dtype))) * self.scale


def transformers_llama(how: argparse.Namespace) -> Any:
    """Of the same sizes; ImportError without transformers."""
    import transformers

    sizes = sizes_of(how)
    config = transformers.LlamaConfig(
        vocab_size=sizes.vocab,
        hidden_size=sizes.hidden,
        intermediate_size=sizes.inner,
        num_hidden_layers=sizes.layers,
        num_attention_heads=sizes.heads,
        num_key_value_heads=sizes.key_heads,
        tie_word_embeddings=True,
    )
    return transformers.LlamaForCausalLM(config)


def plain_model(how: argparse.Namespace) -> tuple[nn.Module, Callable[[nn.Module, Tensor], Tensor]]:
    """The model with adapters written out, and its loss of (batch, length) token ids."""
    try:
        body, loss = transformers_llama(how), lambda model, ids: model(input_ids=ids, labels=ids).loss
    except ImportError:
        body, loss = Llama(sizes_of(how)), _own_loss
    body.requires_grad_(False)
    for name, layer in list(body.named_modules()):
        if isinstance(layer, nn.Linear) and name.rpartition(".")[2] in PROJECTIONS:
            body.set_submodule(name, _WrittenOut(layer, how.rank))
    return body, loss


def _own_loss(model: nn.Module, ids: Tensor) -> Tensor:
    at = torch.arange(ids.shape[1] - 1, device=ids.device).expand(len(ids), -1)
    return F.cross_entropy(model(ids, at).float().flatten(0, 1), ids[:, 1:].flatten())


def peft_model(how: argparse.Namespace) -> tuple[nn.Module, Callable[[nn.Module, Tensor], Tensor]]:
    """The same by peft; ImportError without it."""
    import peft

    lora = peft.LoraConfig(r=how.rank, lora_alpha=2 * how.rank, target_modules=list(PROJECTIONS), task_type="CAUSAL_LM")
    model = peft.get_peft_model(transformers_llama(how), lora)
    return model, lambda model, ids: model(input_ids=ids, labels=ids).loss


def loop_seconds(how: argparse.Namespace, points: Points, make: Callable[[argparse.Namespace], Any]) -> float:
    """Seconds a step of one member in the usual loop."""
    device = points.device
    model, loss_of = make(how)
    model = model.to(device).train()
    optimiser = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=RATE)
    codes = points.whole_inputs[:, 0]
    ids, rng, start = torch.where(codes < 0, -2 - codes, codes).long(), np.random.default_rng(0), 0.0
    for number in range(how.warm + how.steps):
        if number == how.warm:
            start = synchronised(device)
        some = ids[torch.from_numpy(rng.integers(0, len(ids), how.batch)).to(device)]
        with torch.autocast(device.type, torch.bfloat16, enabled=device.type == "cuda"):
            loss = loss_of(model, some)
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    return (synchronised(device) - start) / how.steps


# -- commands ----------------------------------------------------------------------------------------------------------


def speed(how: argparse.Namespace, base: Base, points: Points) -> dict[str, float]:
    """Tokens a second, summed over members, by the way."""
    tokens, begun, found = how.batch * how.length, time.perf_counter(), dict[str, float]()
    ways: dict[str, Callable[[], float]] = {
        "ours": lambda: how.members * tokens / stacked_seconds(how, base, points, how.members),
        "one": lambda: tokens / stacked_seconds(how, base, points, 1),
        "plain": lambda: tokens / loop_seconds(how, points, plain_model),
        "peft": lambda: tokens / loop_seconds(how, points, peft_model),
    }
    for name, rate in ways.items():
        if time.perf_counter() - begun > how.budget:
            print(f"{name}: left out, {how.budget} s are over")
            continue
        try:
            found[name] = rate()
        except ImportError as error:
            print(f"{name}: left out, {error}")
            continue
        print(
            f"{name}: {found[name]:,.0f} tokens/s, {time.perf_counter() - begun:.0f} s since the beginning", flush=True
        )
        write(how, points, {"tokens/s": found})
    show(how, points, found)
    return found


def show(how: argparse.Namespace, points: Points, found: dict[str, float]) -> None:
    """The table, with what was hoped for."""
    device = describe(points.device)
    print(f"\n{how.members} members, batch {how.batch}, {how.length} tokens, rank {how.rank}, {device}")
    for name, rate in found.items():
        goal = f"   wanted: {GOALS[name]:.0f}" if name in GOALS else ""
        print(f"{name:5s} {rate:12,.0f} tokens/s   ours is {found['ours'] / rate:6.2f} times as fast{goal}")


def write(how: argparse.Namespace, points: Points, numbers: dict[str, Any]) -> None:
    """What is known so far, where a file was named."""
    if how.json is None:
        return
    on_gpu = points.device.type == "cuda"
    settings = {name: value for name, value in vars(how).items() if isinstance(value, int)}
    facts = {"device": describe(points.device), "torch": torch.__version__, "settings": settings}
    peak = torch.cuda.max_memory_allocated(points.device) if on_gpu else None
    how.json.write_text(json.dumps({**facts, "peak bytes": peak, **numbers}, indent=1) + "\n", "utf-8")


def profile(how: argparse.Namespace, base: Base, points: Points) -> None:
    """Time by kernel over some steps, and the least that the base's own products could take at the measured pace."""
    work = warm_descent(how, base, points, how.members)
    on_gpu = points.device.type == "cuda"
    activities = [torch.profiler.ProfilerActivity.CUDA if on_gpu else torch.profiler.ProfilerActivity.CPU]
    with torch.profiler.profile(activities=activities) as seen:
        start = synchronised(points.device)
        work.run()
        taken = (synchronised(points.device) - start) / how.steps
    order = "self_cuda_time_total" if on_gpu else "self_cpu_time_total"
    print(seen.key_averages().table(sort_by=order, row_limit=40, max_name_column_width=60))
    weights = sum(p.numel() for p in base.on(torch.device("cpu")).parameters())
    flops = 2 * 2 * weights * how.members * how.batch * how.length  # forwards, and backwards to the activations
    pace = _pace(points.device)
    print(f"{taken * 1e3:.1f} ms a step; its {flops / 1e12:.2f} TFLOP of the base's products alone would take")
    print(f"{flops / pace * 1e3:.1f} ms at the {pace / 1e12:.0f} TFLOP/s that a large product reaches here")
    write(how, points, {"ms a step": taken * 1e3, "TFLOP of products": flops / 1e12, "TFLOP/s": pace / 1e12})


def _pace(device: torch.device) -> float:
    """FLOP a second of one large product."""
    n = 8192 if device.type == "cuda" else 512
    a = torch.randn(n, n, device=device, dtype=torch.bfloat16 if device.type == "cuda" else torch.float32)
    for _ in range(3):
        a @ a
    start = synchronised(device)
    for _ in range(10):
        a @ a
    return 10 * 2 * n**3 / (synchronised(device) - start)


def main(given: list[str] | None = None) -> dict[str, float] | None:
    """Read the arguments, do it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["speed", "profile"])
    numbers = {"members": 16, "batch": 16, "length": 128, "rank": 16, "layers": 30, "hidden": 576, "vocab": 49_152}
    for name, value in {**numbers, "steps": 50, "warm": 10}.items():
        parser.add_argument(f"--{name}", type=int, default=value)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--json", type=Path, help="a file for the numbers, written anew whenever one is known")
    parser.add_argument("--budget", type=int, default=600, help="seconds after which no further way is begun")
    how = parser.parse_args(given)
    device = torch.device(how.device)
    if device.type == "cuda" and device.index is None:
        device = torch.device("cuda", 0)
    points = records(how, device)
    base = Base("random", Llama(sizes_of(how)))
    if how.what == "profile":
        profile(how, base, points)
        return None
    return speed(how, base, points)


if __name__ == "__main__":
    main()
