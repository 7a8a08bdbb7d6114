"""K adapters on one frozen language model: peft one after another, one adapter as a CUDA graph, and all at once.

    python benchmarks/lora.py speed      tokens a second, summed over members, three ways in one run
    python benchmarks/lora.py profile    where a step of the stack goes, kernel by kernel, and what products alone take

The three ways have the same base (random weights of SmolLM2-135M's sizes; speed does not depend on them), rank, batch
and sequence length, bfloat16 activations on a GPU and AdamW on float32 adapters:

peft   transformers' Llama with peft's adapters in the usual loop, eager, under autocast; one member after another
one    a stack of one member, its whole step captured as a CUDA graph (on a CPU, not captured)
ours   a stack of all members, likewise

Each is timed after it is warm, by the clock, the device having finished. Sequences are full: every position is a token,
and all but the first are counted. Peft and transformers are the extra [text]; without them that way is left out.
`--members 3 --layers 2 --hidden 32 --vocab 97 --length 16 --batch 2 --steps 3 --device cpu` tries it without a GPU.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import torch

from forgetgauge.data.dataset import Points
from forgetgauge.learn.descent import Steps
from forgetgauge.learn.stacked.records import LoraStack
from forgetgauge.learn.stacked.trainer import Batch, Descent, Feed
from forgetgauge.models.causal_lm import Base
from forgetgauge.models.llama import Llama, LlamaSizes
from forgetgauge.models.lora import PROJECTIONS, LoraModel
from forgetgauge.tasks.causal_lm import CAUSAL_LM

RATE = 2e-4


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


# -- the three ways ----------------------------------------------------------------------------------------------------


def descent(how: argparse.Namespace, base: Base, points: Points, n_members: int, n_steps: int) -> Descent:
    """So many steps of a stack, each member with an order of its own."""
    models = [LoraModel(base, PROJECTIONS, how.rank, 2.0 * how.rank).to(points.device) for _ in range(n_members)]
    stack = LoraStack(models, how.length - 1, "bfloat16")

    def batches(member: int) -> Iterator[Batch]:
        rng = np.random.default_rng(member)
        for _ in range(n_steps):
            index = rng.integers(0, len(points), how.batch)
            yield Batch(index, np.ones(how.batch, dtype=np.int64))

    feeds = [Feed(batches(member), n_steps) for member in range(n_members)]
    return Descent(stack, points, feeds, Steps(RATE, optimiser="adamw"), batch_size=how.batch)


def stacked_seconds(how: argparse.Namespace, base: Base, points: Points, n_members: int) -> float:
    """Seconds a step, of so many members at once: what `steps` more steps take once it is warm and captured."""
    taken = []
    for n_steps in (how.warm, how.warm + how.steps):
        work = descent(how, base, points, n_members, n_steps)
        start = synchronised(points.device)
        work.run()
        taken.append(synchronised(points.device) - start)
    return (taken[1] - taken[0]) / how.steps


def peft_step(how: argparse.Namespace, device: torch.device) -> Callable[[torch.Tensor], None] | None:
    """A step of the usual loop on (batch, length) token ids; None without peft."""
    try:
        import peft
        import transformers
    except ImportError:
        return None
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
    lora = peft.LoraConfig(r=how.rank, lora_alpha=2 * how.rank, target_modules=list(PROJECTIONS), task_type="CAUSAL_LM")
    model: Any = peft.get_peft_model(transformers.LlamaForCausalLM(config), lora).to(device).train()
    optimiser = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=RATE)

    def step(ids: torch.Tensor) -> None:
        with torch.autocast(device.type, torch.bfloat16, enabled=device.type == "cuda"):
            loss = model(input_ids=ids, labels=ids).loss
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()

    return step


def peft_seconds(how: argparse.Namespace, points: Points) -> float | None:
    """Seconds a step of one member."""
    step = peft_step(how, points.device)
    if step is None:
        return None
    ids = torch.where(points.whole_inputs[:, 0] < 0, -2 - points.whole_inputs[:, 0], points.whole_inputs[:, 0]).long()
    rng = np.random.default_rng(0)
    start = 0.0
    for number in range(how.warm + how.steps):
        if number == how.warm:
            start = synchronised(points.device)
        step(ids[torch.from_numpy(rng.integers(0, len(ids), how.batch)).to(ids.device)])
    return (synchronised(points.device) - start) / how.steps


# -- commands ----------------------------------------------------------------------------------------------------------


def speed(how: argparse.Namespace, base: Base, points: Points) -> dict[str, float]:
    """Tokens a second, summed over members, by the way."""
    tokens = how.batch * how.length
    found = {}
    peft = peft_seconds(how, points)
    if peft is not None:
        found["peft"] = tokens / peft
    found["one"] = tokens / stacked_seconds(how, base, points, 1)
    found["ours"] = how.members * tokens / stacked_seconds(how, base, points, how.members)
    print(f"{how.members} members, batch {how.batch}, {how.length} tokens, rank {how.rank}, {points.device}")
    for name, rate in found.items():
        print(f"{name:5s} {rate:12,.0f} tokens/s   ours is {found['ours'] / rate:6.2f} times as fast")
    return found


def profile(how: argparse.Namespace, base: Base, points: Points) -> None:
    """Time by kernel over some steps, and the least that the base's own products could take at the measured pace."""
    work = descent(how, base, points, how.members, how.warm)
    work.run()
    work = descent(how, base, points, how.members, how.steps)
    on_gpu = points.device.type == "cuda"
    activities = [torch.profiler.ProfilerActivity.CUDA if on_gpu else torch.profiler.ProfilerActivity.CPU]
    with torch.profiler.profile(activities=activities) as seen:
        start = synchronised(points.device)
        work.run()
        taken = synchronised(points.device) - start
    print(seen.key_averages().table(sort_by="self_cuda_time_total" if on_gpu else "self_cpu_time_total", row_limit=25))
    weights = sum(p.numel() for p in base.on(torch.device("cpu")).parameters())
    flops = 2 * 2 * weights * how.members * how.batch * how.length  # forwards, and backwards to the activations
    pace = _pace(points.device)
    print(
        f"{taken / how.steps * 1e3:.1f} ms a step; its {flops / 1e12:.2f} TFLOP of the base's products alone would take"
    )
    print(f"{flops / pace * 1e3:.1f} ms at the {pace / 1e12:.0f} TFLOP/s that a large product reaches here")


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
    for name, value in {**numbers, "steps": 50, "warm": 25}.items():
        parser.add_argument(f"--{name}", type=int, default=value)
    parser.add_argument("--device", default="cuda")
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
