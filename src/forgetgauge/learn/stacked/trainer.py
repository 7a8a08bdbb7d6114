"""What is done to all members of a traced stack at once: descents, outputs, squares of examples' gradients.

On a GPU a whole step (fetching the batch, forwards, backwards, the optimiser) is captured once as a CUDA graph and then
only replayed. The batches of many steps are laid out on the host, sent over in one piece and read by a counter on the
device, so that the GPU never waits for Python. A step whose batch is empty changes nothing: that is how members with
fewer steps finish early, and how the step is tried out before it is captured.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pad_sequence

from forgetgauge.data.dataset import Points
from forgetgauge.learn.augment import Augment, draw_moves, moved
from forgetgauge.learn.checkpoint import State, begin
from forgetgauge.learn.descent import Positions, Steps
from forgetgauge.learn.device import capture, kernels_on
from forgetgauge.learn.stacked.members import own_labels
from forgetgauge.learn.stacked.packed import Room, roomy
from forgetgauge.learn.stacked.records import RecordStack
from forgetgauge.learn.stacked.traced import TracedStack
from forgetgauge.tasks.task import Labels

CHUNK_STEPS = 128
"""Steps laid out at a time: at batch 128 and 64 members, 8 MiB of indices."""


@dataclass(frozen=True)
class Batch:
    """One step's examples for one member."""

    index: Positions
    """Positions in the whole data set."""
    labels: Labels
    """What is to be learnt of each: the members of a stack need not have been taught the same."""


@dataclass(frozen=True)
class Feed:
    """One member's batches, in order."""

    batches: Iterator[Batch]
    n_steps: int
    moves: np.random.Generator | None = None
    """Where the augmentation draws from."""
    lr: float | None = None
    """The member's own rate, in place of the descent's."""


def batches_of(part: Points, order: Iterable[Positions], labels: Labels | None = None) -> Iterator[Batch]:
    """The points of a part in this order of their positions in it, with the part's labels or with (n,) others."""
    taught = part.y.cpu().numpy() if labels is None else labels
    return (Batch(part.index[at], taught[at]) for at in order)


Stack = TracedStack | RecordStack

AfterStep = Callable[[Tensor, Tensor], None]
"""(weights, velocity), both (K, P), to be corrected in place; also called for members that have finished, and for the
empty steps before a capture: it must leave alone what it corrected before."""

Objective = Callable[[Tensor, Tensor, Tensor], Tensor]
"""((K, B) positions, (K, B) labels, (K, B) whether there is a point) -> (K,) what each member minimises, differentiable
in the stack's weights; 0 where a member has no point."""


def _size(room: Room | None) -> tuple[int, int]:
    """The largest is captured first: what it kept in memory then serves the smaller ones."""
    return (0, 0) if room is None else (room.tokens, room.counted)


@dataclass
class Descent:
    """Minimises sign · (mean loss of a batch), each member over its own feed; `run` moves `stack.weights` in place."""

    stack: Stack
    points: Points
    """Any part of the data set that the indices refer to, for its inputs and its task: labels come with the batches."""
    feeds: Sequence[Feed]
    steps: Steps
    _: KW_ONLY
    batch_size: int
    train: bool = True
    """Whether batch norms use the statistics of the batch."""
    sign: float = 1.0
    augment: Augment = "none"
    after_step: AfterStep | None = None
    objective: Objective | None = None
    """Where something else than the loss is minimised."""

    def __post_init__(self) -> None:
        k, device, kind = len(self.feeds), self.stack.device, self.points.whole_labels.dtype
        self.host = _Chunk.empty(k, self.batch_size, kind, torch.device("cpu"), pin=device.type == "cuda")
        self.here = _Chunk.empty(k, self.batch_size, kind, device)
        self.counter = torch.zeros(1, dtype=torch.int64, device=device)
        self.velocity = torch.zeros_like(self.stack.weights)
        self.second = self.velocity if self.steps.optimiser == "sgd" else torch.zeros_like(self.stack.weights)
        self.time = torch.zeros(1, device=device)
        self.begun = False
        self.graphs: dict[Room | None, Any] = {}
        self.counted_in: dict[int, int] = {}
        """Counted tokens that a room of so many tokens has space for, so far."""
        self.sent: Any = torch.cuda.Event() if device.type == "cuda" else None  # type: ignore[no-untyped-call]

    def run(self) -> None:
        """All steps of all members, or those that are left after a checkpoint."""
        try:
            self._run()
        finally:
            if isinstance(self.stack, RecordStack):
                self.stack.room = None  # what is asked of the stack next may need a larger one

    def _run(self) -> None:
        n_steps = max((feed.n_steps for feed in self.feeds), default=0)
        checkpoint, n_done = begin(), 0
        if (kept := checkpoint.read(self._state().tensors)) is not None:
            n_done, self.begun = kept[0], True
            self._state().take(kept[1])
        for first in range(0, n_steps, CHUNK_STEPS):
            stop = min(n_steps, first + CHUNK_STEPS)
            if self.sent is not None:
                self.sent.synchronize()  # the last piece has left the host's buffer
            self._lay_out(first, stop)
            rooms = self._rooms(stop - first, n_steps)  # also of steps that are done: rooms grow with those before them
            if stop <= n_done:  # drawn as before, and not done again
                continue
            does = {room: self._step_in(room, n_steps) for room in sorted(set(rooms), key=_size, reverse=True)}
            self.here.take(self.host)
            if self.sent is not None:
                self.sent.record()
            self.counter.zero_()
            self.begun = True
            for room in rooms:
                does[room]()
            checkpoint.keep(stop, self._state)

    def _rooms(self, n: int, n_steps: int) -> list[Room | None]:
        """Of each step that is laid out, how much its batches may have, where the stack asks for it.

        Few different ones, and where there are few steps one alone: each is captured.
        """
        sizes = self.stack.sizes if isinstance(self.stack, RecordStack) else None
        if sizes is None:
            return [None] * n
        tokens, counted = sizes.needed(self.host.index[:n].numpy(), self.host.n_valid[:n].numpy())
        if n_steps <= CHUNK_STEPS:
            tokens = np.full_like(tokens, tokens.max())
        most = self.batch_size * sizes.length
        rows = [roomy(int(needed), most) for needed in tokens]
        for row in set(rows):
            largest = max(int(c) for c, other in zip(counted, rows, strict=True) if other == row)
            room = roomy(largest, len(self.feeds) * self.batch_size * (sizes.length - 1))
            self.counted_in[row] = max(room, self.counted_in.get(row, 0))
        return [Room(row, self.counted_in[row]) for row in rows]

    def _step_in(self, room: Room | None, n_steps: int) -> Callable[[], None]:
        """A step whose batches have no more than that; on a GPU captured when it is first asked for."""

        def step() -> None:
            if isinstance(self.stack, RecordStack):
                self.stack.room = room
            self._step()

        if not self._is_worth_capturing(n_steps):
            return step
        if room not in self.graphs:
            self.graphs[room] = self._captured(step)
        replay: Callable[[], None] = self.graphs[room].replay
        return replay

    def _state(self) -> State:
        """All that a step changes but the batches, which are drawn again."""
        changed = {"weights": self.stack.weights.detach(), "velocity": self.velocity, "time": self.time}
        if self.second is not self.velocity:
            changed["second"] = self.second
        for name, (mean, var) in self.stack.statistics.items():
            changed |= {f"{name} mean": mean, f"{name} variance": var}
        return State(changed)

    def _lay_out(self, first: int, stop: int) -> None:
        """Fill the host's buffer with the batches of steps [first, stop).

        By numpy, which fills rows in a fifth of torch's time: 19,200 steps of ten heads took 7.6 s to lay out, 1.5 so.
        """
        index, labels, n_valid, rate, moves = (tensor.numpy() for tensor in vars(self.host).values())
        n_valid.fill(0)
        rate.fill(0)
        for n_steps, lr in {(feed.n_steps, feed.lr) for feed in self.feeds}:
            here = [k for k, feed in enumerate(self.feeds) if (feed.n_steps, feed.lr) == (n_steps, lr)]
            steps = self.steps if lr is None else replace(self.steps, lr=lr)
            rates = [steps.rate(step, n_steps) for step in range(first, min(stop, n_steps))]
            rate[: len(rates), here] = np.array(rates)[:, None]
        for k, feed in enumerate(self.feeds):
            for place, batch in enumerate(itertools.islice(feed.batches, max(0, min(stop, feed.n_steps) - first))):
                n = len(batch.index)
                index[place, k, :n] = batch.index
                labels[place, k, :n] = batch.labels
                n_valid[place, k] = n
                if self.augment != "none":
                    assert feed.moves is not None
                    moves[place, k, :n] = draw_moves(n, feed.moves)

    def _is_worth_capturing(self, n_steps: int) -> bool:
        return self.stack.device.type == "cuda" and n_steps > 20

    def _captured(self, step: Callable[[], None]) -> Any:
        """The step as a CUDA graph; graphs share their memory, since one runs at a time and none leaves anything."""
        self.here.n_valid.zero_()  # nothing but empty batches, at a rate of 0
        self.here.rate.zero_()
        self.counter.zero_()
        moving = self.velocity, self.second, self.time
        before = [state.clone() for state in moving] if self.begun else None
        pool = next(iter(self.graphs.values())).pool() if self.graphs else None
        graph = capture(step, self.stack.device, n_trials=2, pool=pool)
        for place, state in enumerate(moving):
            state.zero_() if before is None else state.copy_(before[place])
        return graph

    @torch.no_grad()
    def _step(self) -> None:
        index, labels, n_valid, rate, moves = self.here.at(self.counter)
        own = torch.arange(index.shape[1], device=index.device) < n_valid[:, None]
        if self.objective is None:
            self._take_gradient(index, labels, n_valid, moves, own)
        else:
            with torch.enable_grad():
                total = self.objective(index, labels, own).sum()
            self.stack.gradient.copy_(torch.autograd.grad(total, self.stack.weights)[0])
        self._update(rate[:, None])
        if self.after_step is not None:
            self.after_step(self.stack.weights, self.velocity)
        self.counter += 1

    def _take_gradient(self, index: Tensor, labels: Tensor, n_valid: Tensor, moves: Tensor, own: Tensor) -> None:
        """Of sign · (mean loss of the batch)."""
        x = self.points.stored_at(index)
        if self.augment != "none":
            x = moved(x, moves)
        outputs, tape = self.stack.forward(self.points.scaled(x), n_valid, train=self.train, keep=True)
        weight = self.sign * own / n_valid.clamp(min=1)[:, None]
        stack: Any = self.stack  # each kind has a tape of its own
        stack.backward(tape, self.points.task.loss_gradient(outputs, labels) * weight[..., None])

    def _update(self, rate: Tensor) -> None:
        """The optimisers as torch.optim has them; rate is (K, 1)."""
        weights, gradient, steps = self.stack.weights, self.stack.gradient, self.steps
        if steps.optimiser == "adamw":
            self._update_by_adamw(rate)
            return
        if steps.weight_decay:
            gradient.add_(weights, alpha=steps.weight_decay)
        if steps.optimiser == "rmsprop":
            remembered = 0.99
            self.second.mul_(remembered).addcmul_(gradient, gradient, value=1 - remembered)
            gradient.div_(self.second.sqrt().add_(1e-8))
        self.velocity.mul_(steps.momentum).add_(gradient)
        weights.sub_(rate * self.velocity)

    def _update_by_adamw(self, rate: Tensor) -> None:
        """Decay is apart from the gradient."""
        weights, gradient, first, second = self.stack.weights, self.stack.gradient, 0.9, 0.999
        self.time += 1
        kernels = kernels_on(weights.device, "optimiser") if isinstance(self.stack, RecordStack) else None
        if kernels is not None:
            biases = 1 - first**self.time, 1 - second**self.time
            moments, decay = (self.velocity, self.second), self.steps.weight_decay
            kernels.adamw(weights, gradient, moments, rate, biases, decay=decay, betas=(first, second))
            return
        self.velocity.lerp_(gradient, 1 - first)
        self.second.mul_(second).addcmul_(gradient, gradient, value=1 - second)
        if self.steps.weight_decay:
            weights.sub_(rate * self.steps.weight_decay * weights)
        size = (self.second / (1 - second**self.time)).sqrt_().add_(1e-8)
        weights.sub_(rate * (self.velocity / (1 - first**self.time)) / size)


@dataclass
class _Chunk:
    """The batches of CHUNK_STEPS steps, (steps, K, batch)."""

    index: Tensor
    labels: Tensor
    n_valid: Tensor
    rate: Tensor
    moves: Tensor

    @staticmethod
    def empty(k: int, batch_size: int, labels: torch.dtype, device: torch.device, pin: bool = False) -> _Chunk:
        shape = (CHUNK_STEPS, k, batch_size)

        def zeros(shape: tuple[int, ...], dtype: torch.dtype) -> Tensor:
            return torch.zeros(shape, dtype=dtype, device=device, pin_memory=pin)

        return _Chunk(
            zeros(shape, torch.int64),
            zeros(shape, labels),
            zeros(shape[:2], torch.int32),
            zeros(shape[:2], torch.float32),
            zeros((*shape, 3), torch.int64),
        )

    def take(self, other: _Chunk) -> None:
        """Copy another's contents, without waiting."""
        for name, tensor in vars(self).items():
            tensor.copy_(getattr(other, name), non_blocking=True)

    def at(self, step: Tensor) -> tuple[Tensor, ...]:
        """One step's, by a counter that is on the device."""
        return tuple(tensor.index_select(0, step)[0] for tensor in vars(self).values())


@torch.no_grad()
def stacked_outputs(
    models: Sequence[nn.Module], points: Sequence[Points], *, batch_size: int = 512
) -> list[npt.NDArray[np.float32]]:
    """What each model says about its own points, in eval mode and float32: (n, n_outputs) each."""
    stack = TracedStack(models, "float32", looks_at=len(points[0].whole_inputs))
    index, _ = rectangle([p.index for p in points], stack.device)
    if index.numel() == 0:
        return [np.zeros((0, points[0].n_outputs), dtype=np.float32) for _ in models]
    parts = [stack.forward(points[0].inputs_at(at))[0] for at in torch.split(index, batch_size, dim=1)]
    outputs = torch.cat(parts, dim=1).cpu().numpy()
    return [np.ascontiguousarray(outputs[k, : len(p)]) for k, p in enumerate(points)]


StackedDirections = Callable[[Tensor, Tensor], Iterable[Tensor]]
"""((K, B, C) outputs, (K, B) labels) -> the ∂loss/∂outputs whose gradients are squared and added."""


def stacked_squares(
    stack: TracedStack,
    parts: Sequence[Points],
    directions: StackedDirections,
    *,
    labels: Sequence[Labels] | None = None,
    batch_size: int = 256,
) -> Tensor:
    """(K, P) float64: mean over a member's part of the squared gradient of each example alone, in eval mode."""
    total = torch.zeros_like(stack.weights, dtype=torch.float64)
    at, sizes = rectangle([part.index for part in parts], stack.device)
    y = own_labels(parts)(at) if labels is None else rectangle(labels, stack.device)[0]
    for start in range(0, at.shape[1], batch_size):
        here = slice(start, start + batch_size)
        n_valid = (sizes - start).clamp(0, at[:, here].shape[1]).int()
        own = (torch.arange(at[:, here].shape[1], device=stack.device) < n_valid[:, None])[..., None]
        outputs, tape = stack.forward(parts[0].inputs_at(at[:, here]), n_valid, keep=True, sums="squares")
        for direction in directions(outputs, y[:, here]):
            stack.backward(tape, direction * own)
            total += stack.gradient
        del tape  # or it would stand beside the next
    return total / sizes.clamp(min=1)[:, None]


def rectangle(rows: Sequence[Labels], device: torch.device) -> tuple[Tensor, Tensor]:
    """(K, longest) filled up with zeros, and (K,) how long each is."""
    filled = pad_sequence([torch.from_numpy(row) for row in rows], batch_first=True)
    return filled.to(device), torch.tensor([len(row) for row in rows], dtype=torch.int32, device=device)
