"""K adapters on one frozen language model: eager loops one after another, one adapter as a CUDA graph, and all at once.

    python benchmarks/lora.py speed      tokens a second, summed over members, by each way in one run
    python benchmarks/lora.py profile    where a step of the stack goes, kernel by kernel, and what products alone take

All ways have the same base (random weights of SmolLM2-135M's sizes; speed does not depend on them), rank, batch and
records, the base and the activations in bfloat16 where the device multiplies it, and AdamW on float32 adapters:

ours   a stack of all members, its whole step captured as a CUDA graph (on a CPU, not captured);
       the same in float32 comes last
one    a stack of one member, likewise: the stricter of the two measures of one adapter
plain  the usual loop, eager, neither compiled nor captured, under autocast, one member after another, by torch's fused
       AdamW, its batches drawn before the clock starts: each linear layer W x + (α/r) B A x, written out as peft has it
       but without peft's code; on transformers' Llama, or on our own where that is not installed
peft   the same loop with peft's adapters on transformers' Llama; left out where they are not installed
graph  one adapter captured: plain's step on our own Llama, forwards, backwards and AdamW, as one CUDA graph (on a CPU,
       not captured); every batch is as long as the longest record, since a graph has one shape

Each is timed three times after it is warm, by the clock, the device having finished, and the middle one counts. Records
are full: every place is a token, and all but the first are counted. With --ragged they have the lengths of LUME's
people: of six records one is three quarters as long as the longest to as long, five are a fifth of it or less; the
usual loops pad a batch to its longest record, and tokens are counted without padding. Numbers are written to --json as
they are found; a way that fails is told of, and the others go on; what has not begun when --budget seconds are over is
left out. --ways plays some of them. Without a GPU it is tried by
`--members 3 --layers 2 --hidden 32 --vocab 97 --length 16 --batch 2 --steps 3 --device cpu`.
"""

from __future__ import annotations

import argparse
import json
import time
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from forgetgauge.data.dataset import Points
from forgetgauge.learn.descent import Steps
from forgetgauge.learn.device import capture, describe, multiplies_bfloat16
from forgetgauge.learn.stacked.records import LoraStack
from forgetgauge.learn.stacked.traced import Precision
from forgetgauge.learn.stacked.trainer import Batch, Descent, Feed
from forgetgauge.models.causal_lm import Base
from forgetgauge.models.condensed import PADDING, ids_of
from forgetgauge.models.llama import Llama, LlamaSizes
from forgetgauge.models.lora import PROJECTIONS, LoraModel
from forgetgauge.tasks.causal_lm import CAUSAL_LM

RATE = 2e-4
GOALS = {"one": 3.0, "graph": 3.0, "plain": 8.0, "peft": 8.0}
"""How many times as fast all at once should be."""


WAYS = ("ours", "one", "plain", "peft", "graph", "ours-float32")


def sizes_of(how: argparse.Namespace) -> LlamaSizes:
    """SmolLM2-135M's with the default arguments."""
    heads = max(1, how.hidden // 64) if how.hidden >= 64 else 2
    key_heads = heads // 3 if heads % 3 == 0 else heads
    return LlamaSizes(how.vocab, how.hidden, how.layers, heads, key_heads, how.hidden // heads, how.hidden * 8 // 3)


def records(how: argparse.Namespace, device: torch.device) -> Points:
    """Random tokens, all counted but the first, as one version of each record."""
    draw = torch.Generator().manual_seed(0)
    codes = torch.randint(0, how.vocab, (1026, 1, how.length), generator=draw).int()
    codes[..., 0] = -2 - codes[..., 0]
    if how.ragged:
        low, high = torch.tensor([0.75] + [0.1] * 5).repeat(171), torch.tensor([1.0] + [0.2] * 5).repeat(171)
        share = low + (high - low) * torch.rand(len(codes), generator=draw)
        lengths = (share * how.length).long().clamp(2, how.length)
        codes[torch.arange(how.length) >= lengths[:, None, None]] = PADDING
    return Points.of(codes, torch.ones(len(codes), dtype=torch.int64), task=CAUSAL_LM).on(device)


def drawn(how: argparse.Namespace, n_records: int, member: int, n_steps: int) -> Iterator[np.ndarray]:
    """The records of each step of a member."""
    rng = np.random.default_rng(member)
    return (rng.integers(0, n_records, how.batch) for _ in range(n_steps))


def tokens_of(how: argparse.Namespace, points: Points, members: range) -> float:
    """In a step of these members on average, without padding."""
    lengths = (points.whole_inputs[:, 0] != PADDING).sum(1).cpu().numpy()
    each = [lengths[index].sum() for member in members for index in drawn(how, len(points), member, how.steps)]
    return float(np.sum(each)) / how.steps


def middle_of(times: Iterator[float]) -> float:
    """The median of three."""
    return sorted(next(times) for _ in range(3))[1]


def synchronised(device: torch.device) -> float:
    """The clock once the device has finished."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    return time.perf_counter()


# -- stacks ------------------------------------------------------------------------------------------------------------


def feeds_of(how: argparse.Namespace, points: Points, n_members: int, n_steps: int) -> list[Feed]:
    """So many steps for each member, which has an order of its own."""

    def batches(member: int) -> Iterator[Batch]:
        labels = np.ones(how.batch, dtype=np.int64)
        return (Batch(index, labels) for index in drawn(how, len(points), member, n_steps))

    return [Feed(batches(member), n_steps) for member in range(n_members)]


def warm_descent(
    how: argparse.Namespace, base: Base, points: Points, n_members: int, precision: Precision = "bfloat16"
) -> Descent:
    """A stack that has made all its steps once, its graph captured, and is about to make as many again."""
    models = [LoraModel(base, PROJECTIONS, how.rank, 2.0 * how.rank).to(points.device) for _ in range(n_members)]
    stack = LoraStack(models, points, precision)
    feeds = feeds_of(how, points, n_members, how.steps)
    work = Descent(stack, points, feeds, Steps(RATE, optimiser="adamw"), batch_size=how.batch)
    work.run()
    work.feeds = feeds_of(how, points, n_members, how.steps)
    return work


def stacked_seconds(
    how: argparse.Namespace, base: Base, points: Points, n_members: int, precision: Precision = "bfloat16"
) -> float:
    """Seconds a step, of so many members at once."""
    work = warm_descent(how, base, points, n_members, precision)

    def times() -> Iterator[float]:
        while True:
            start = synchronised(points.device)
            work.run()
            yield (synchronised(points.device) - start) / how.steps
            work.feeds = feeds_of(how, points, n_members, how.steps)

    return middle_of(times())


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
        use_cache=False,
    )
    return transformers.LlamaForCausalLM(config)


def plain_model(how: argparse.Namespace) -> tuple[nn.Module, Callable[[nn.Module, Tensor, Tensor], Tensor]]:
    """The model with adapters written out, and its loss of (batch, length) token ids."""
    try:
        body, loss = transformers_llama(how), _usual_loss
    except ImportError:
        body, loss = Llama(sizes_of(how)), _own_loss
    return written_out(body, how), loss


def written_out(body: nn.Module, how: argparse.Namespace) -> nn.Module:
    """With adapters beside its projections."""
    body.requires_grad_(False).to(low(how))
    for name, layer in list(body.named_modules()):
        if isinstance(layer, nn.Linear) and name.rpartition(".")[2] in PROJECTIONS:
            body.set_submodule(name, _WrittenOut(layer, how.rank))
    return body


def low(how: argparse.Namespace) -> torch.dtype:
    """Of the frozen base."""
    return torch.bfloat16 if multiplies_bfloat16(torch.device(how.device)) else torch.float32


def _own_loss(model: nn.Module, ids: Tensor, labels: Tensor) -> Tensor:
    at = torch.arange(ids.shape[1] - 1, device=ids.device).expand(len(ids), -1)
    return F.cross_entropy(model(ids, at).float().flatten(0, 1), labels[:, 1:].flatten())


def _usual_loss(model: nn.Module, ids: Tensor, labels: Tensor) -> Tensor:
    loss: Tensor = model(input_ids=ids, labels=labels).loss
    return loss


def peft_model(how: argparse.Namespace) -> tuple[nn.Module, Callable[[nn.Module, Tensor, Tensor], Tensor]]:
    """The same by peft; ImportError without it."""
    import peft

    lora = peft.LoraConfig(r=how.rank, lora_alpha=2 * how.rank, target_modules=list(PROJECTIONS), task_type="CAUSAL_LM")
    model = peft.get_peft_model(transformers_llama(how).to(low(how)), lora)
    return model, _usual_loss


def loop_seconds(how: argparse.Namespace, points: Points, make: Callable[[argparse.Namespace], Any]) -> float:
    """Seconds a step of one member in the usual loop."""
    device = points.device
    model, loss_of = make(how)
    model = model.to(device).train()
    trained = [p for p in model.parameters() if p.requires_grad]
    if any(p.dtype != torch.float32 for p in trained):
        raise TypeError("the adapters are not float32, as those of the other ways are")
    optimiser = torch.optim.AdamW(trained, lr=RATE, fused=device.type == "cuda")
    batches = [_padded(points, index) for index in drawn(how, len(points), 0, how.steps)]

    def times() -> Iterator[float]:
        while True:
            start = synchronised(device)
            for ids, labels in batches:
                with torch.autocast(device.type, torch.bfloat16, enabled=multiplies_bfloat16(device)):
                    loss = loss_of(model, ids, labels)
                optimiser.zero_grad()
                loss.backward()
                optimiser.step()
            yield (synchronised(device) - start) / how.steps

    timed = times()
    next(timed)  # until it is warm
    return middle_of(timed)


def captured_seconds(how: argparse.Namespace, points: Points) -> float:
    """Seconds a step of one member, written out, the usual step as one CUDA graph."""
    device, on_gpu = points.device, points.device.type == "cuda"
    model = written_out(Llama(sizes_of(how)), how).to(device).train()
    trained = [p for p in model.parameters() if p.requires_grad]
    optimiser = torch.optim.AdamW(trained, lr=RATE, fused=on_gpu, capturable=on_gpu)
    batches = [_padded(points, index, how.length) for index in drawn(how, len(points), 0, how.steps)]
    ids, labels = (tensor.clone() for tensor in batches[0])

    def step() -> None:
        enabled = multiplies_bfloat16(device)
        with torch.autocast(device.type, torch.bfloat16, enabled=enabled, cache_enabled=False):  # as graphs want
            loss = _own_loss(model, ids, labels)
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()

    do = capture(step, device, n_trials=3).replay if on_gpu else step  # trials train it, which the clock does not mind

    def times() -> Iterator[float]:
        while True:
            start = synchronised(device)
            for own in batches:
                ids.copy_(own[0])
                labels.copy_(own[1])
                do()
            yield (synchronised(device) - start) / how.steps

    timed = times()
    next(timed)  # until it is warm
    return middle_of(timed)


def _padded(points: Points, index: np.ndarray, length: int | None = None) -> tuple[Tensor, Tensor]:
    """(batch, longest or `length`) token ids and labels, −100 where nothing is learnt, on the device."""
    codes = points.whole_inputs[torch.from_numpy(index).to(points.device), 0]
    codes = codes[:, : length or int((codes != PADDING).sum(1).max())]
    return ids_of(codes), torch.where(codes >= 0, codes, -100).long()


# -- commands ----------------------------------------------------------------------------------------------------------


def speed(how: argparse.Namespace, base: Base, points: Points) -> dict[str, float]:
    """Tokens a second, summed over members, by the way."""
    begun, found, peaks = time.perf_counter(), dict[str, float](), dict[str, int]()
    all_of_them, tokens = (tokens_of(how, points, range(n)) for n in (how.members, 1))
    ways: dict[str, Callable[[], float]] = {
        "ours": lambda: all_of_them / stacked_seconds(how, base, points, how.members),
        "one": lambda: tokens / stacked_seconds(how, base, points, 1),
        "plain": lambda: tokens / loop_seconds(how, points, plain_model),
        "peft": lambda: tokens / loop_seconds(how, points, peft_model),
        "graph": lambda: tokens / captured_seconds(how, points),
        "ours-float32": lambda: all_of_them / stacked_seconds(how, base, points, how.members, "float32"),
    }
    for name in how.ways or ways:
        rate = ways[name]
        if time.perf_counter() - begun > how.budget:
            print(f"{name}: left out, {how.budget} s are over")
            continue
        if points.device.type == "cuda":
            torch.cuda.reset_peak_memory_stats(points.device)
        try:
            found[name] = rate()
        except ImportError as error:
            print(f"{name}: left out, {error}")
            continue
        except Exception as error:  # the others are worth their time all the same
            traceback.print_exc()
            print(f"{name}: failed, {error}", flush=True)
            how.failed = True
            continue
        print(
            f"{name}: {found[name]:,.0f} tokens/s, {time.perf_counter() - begun:.0f} s since the beginning", flush=True
        )
        if points.device.type == "cuda":
            peaks[name] = torch.cuda.max_memory_allocated(points.device)
        write(how, points, {"tokens/s": found, "peak bytes": peaks})
    show(how, points, found)
    return found


def show(how: argparse.Namespace, points: Points, found: dict[str, float]) -> None:
    """The table, with what was hoped for."""
    device = describe(points.device)
    lengths = f"{how.length} tokens" if not how.ragged else f"up to {how.length} tokens, ragged"
    print(f"\n{how.members} members, batch {how.batch}, {lengths}, rank {how.rank}, {device}")
    for name, rate in found.items():
        goal = f" (wanted: {GOALS[name]:.0f})" if name in GOALS else ""
        ratio = f"   ours is {found['ours'] / rate:6.2f} times as fast{goal}" if "ours" in found else ""
        print(f"{name:13s} {rate:12,.0f} tokens/s{ratio}")


def write(how: argparse.Namespace, points: Points, numbers: dict[str, Any]) -> None:
    """What is known so far, where a file was named."""
    if how.json is None:
        return
    settings = {name: value for name, value in vars(how).items() if isinstance(value, int)}
    facts = {"device": describe(points.device), "torch": torch.__version__, "settings": settings}
    how.json.write_text(json.dumps({**facts, **numbers}, indent=1) + "\n", "utf-8")


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
    tokens = tokens_of(how, points, range(how.members))
    flops = 2 * 2 * weights * tokens  # forwards, and backwards to the activations
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
    for name, value in {**numbers, "steps": 50}.items():
        parser.add_argument(f"--{name}", type=int, default=value)
    parser.add_argument("--ragged", action="store_true", help="records of LUME's lengths in place of full ones")
    parser.add_argument("--ways", nargs="+", choices=WAYS, help="some of the ways, in this order; all where left out")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--json", type=Path, help="a file for the numbers, written anew whenever one is known")
    parser.add_argument("--budget", type=int, default=600, help="seconds after which no further way is begun")
    how = parser.parse_args(given)
    device = torch.device(how.device)
    if device.type == "cuda" and device.index is None:
        device = torch.device("cuda", 0)
    if device.type == "cuda":
        torch.cuda.set_device(device)
        if how.steps <= 20:
            parser.error("--steps must be above 20: so few are not captured")
    how.failed = False
    points = records(how, device)
    base = Base("random", Llama(sizes_of(how)))
    if how.what == "profile":
        profile(how, base, points)
        return None
    found = speed(how, base, points)
    if how.failed:
        raise SystemExit(1)
    return found


if __name__ == "__main__":
    main()
