"""DP-SGD: every example's gradient clipped, noise on their sum, ε told by opacus' RDP accountant.

A step draws each point with probability q = 1 / ⌈n / batch_size⌉ (Poisson; the batch may be empty), and moves along

    (Σ_i g_i min(1, C / ‖g_i‖) + N(0, σ² C² I)) / ⌊q n⌋,

σ such that ⌈n / batch_size⌉ · epochs steps spend the target ε at δ. That is opacus' recipe, and `fit` is its loop;
`fit_many` trains models as a stack with the same batches and the same noise (`stacked/ghost.py`). Noise is drawn where
the model is: 11 million normal numbers a step take longer on a CPU than the step on a GPU.

**For whom ε holds.** n is public: q, the number of steps, σ and ⌊q n⌋ are computed from it. So the adjacency is
*zero-out*: data sets of the same n are neighbours where one point of one of them is replaced by a point without a
gradient. A step then differs by at most C / ⌊q n⌋ under noise of σ C / ⌊q n⌋, which is what the accountant counts. It
does not hold for adding or removing a point: ⌊q n⌋ scales the noise of every weight, so 11 million of them tell n from
n − 1 where it changes. Replacing a point by another is two such changes: (2ε, (1 + e^ε) δ). The reasons are in
docs/decisions/0026-epsilon-at-a-public-n.md.
"""

from __future__ import annotations

import importlib
import importlib.util
import math
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, ClassVar, Literal

import torch
from torch import Tensor, nn

from forgetgauge.data.dataset import Points
from forgetgauge.errors import UserError
from forgetgauge.learn.checkpoint import Moved, Resumed
from forgetgauge.learn.descent import Idle, Positions, Steps, batches_per_epoch, own_randomness
from forgetgauge.learn.device import products_in
from forgetgauge.learn.stacked.engines import Engine
from forgetgauge.learn.stacked.ghost import ClippedSums, GhostStack, Noise, check_ghost, divide, in_parts
from forgetgauge.learn.stacked.members import check_points, fit_alike, reason_against
from forgetgauge.models.building import build_for
from forgetgauge.streams import Streams

FACTS = ("target_epsilon", "spent_epsilon", "noise_multiplier")
"""What the model's buffer `privacy` holds, in this order; −1 stands for what was not promised (ε = ∞)."""


@dataclass(frozen=True)
class Budget:
    """What one training may spend, and how."""

    sample_rate: float
    """q: the chance of each point to be in a batch."""
    n_steps: int
    expected_batch_size: int
    """⌊q n⌋, what sums are divided by, public as n is: the size of the batch itself would tell who is in it."""
    noise_multiplier: float
    """σ."""


@dataclass(frozen=True)
class DpSgd:
    """A recipe; the defaults are the paper's, the clip norm and what it leaves open opacus' own CIFAR-10 tutorial's."""

    idle: ClassVar[Idle] = dict.fromkeys(("clip_norm", "delta"), ("target_epsilon", ("inf",)))
    model: str = "resnet18"
    model_params: Mapping[str, Any] = field(default_factory=lambda: {"norm": "group", "stem": "imagenet"})
    optimiser: Literal["rmsprop", "sgd"] = "rmsprop"
    lr: float = 0.01
    epochs: int = 20
    batch_size: int = 512
    """The logical one, expected: Poisson batches vary."""
    physical_batch_size: int = 128
    """Most examples of one model at a time; it bounds memory and changes nothing else."""
    clip_norm: float = 1.2
    """C; `forgetgauge.learn.dp_tuning.tune_clip_norm` chooses it."""
    target_epsilon: float | Literal["inf"] = 50.0
    """`"inf"`: the same batches, network and optimiser, no clipping, no noise, no promise."""
    delta: float = 1e-5
    accountant: Literal["rdp"] = "rdp"
    """opacus' PRV accountant is tighter, but takes minutes or fails at the paper's ε of 150 and 600."""
    precision: Literal["float32", "tf32"] = "float32"
    """Of products on a GPU."""

    def __post_init__(self) -> None:
        if self.target_epsilon == math.inf:
            object.__setattr__(self, "target_epsilon", "inf")  # as run files have it: JSON knows no infinity
        if min(self.epochs, self.batch_size, self.physical_batch_size) < 1:
            raise ValueError("epochs, batch_size and physical_batch_size must be at least 1")
        if not self.lr > 0 or not self.clip_norm > 0:
            raise ValueError("lr and clip_norm must be greater than 0")
        if self.target_epsilon != "inf" and not self.target_epsilon > 0:
            raise ValueError('target_epsilon must be greater than 0, or "inf"')
        if not 0 < self.delta < 1:
            raise ValueError("delta must be between 0 and 1")

    @property
    def is_private(self) -> bool:
        """Whether anything is promised."""
        return self.target_epsilon != "inf"

    def build(self, points: Points, seed: int) -> nn.Module:
        """An untrained model for such points, where the points are, with a buffer for what its training will spend."""
        if importlib.util.find_spec("opacus") is None:
            raise UserError("learner 'dp-sgd' needs opacus: pip install 'forgetgauge[dp]'")
        model = build_for(points, self.model, self.model_params, seed)
        for module in model.modules():
            if isinstance(module, nn.modules.batchnorm._BatchNorm):
                hint = 'model_params = { norm = "group" }'
                raise UserError(f"model '{self.model}' has batch norm, which mixes examples: DP-SGD wants {hint}")
        model.register_buffer("privacy", torch.full((len(FACTS),), -1.0, dtype=torch.float64))
        return model.to(points.device)

    def n_gradients(self, n_points: int) -> int:
        """Per-example gradients of one fit, expected."""
        return self.epochs * n_points

    def facts_of(self, model: nn.Module) -> dict[str, float]:
        """ε and σ of the training that made a model; an unlearner's own steps are in no accountant's book."""
        told = dict(zip(FACTS, model.privacy.tolist(), strict=True))  # type: ignore[operator]
        return {name: value for name, value in told.items() if value >= 0}

    def budget(self, n_points: int) -> Budget:
        """σ for a training on so many points, by the accountant."""
        per_epoch = batches_per_epoch(n_points, self.batch_size)
        rate, n_steps, sigma = 1 / per_epoch, self.epochs * per_epoch, 0.0
        if self.target_epsilon != "inf":
            sigma = noise_multiplier(float(self.target_epsilon), self.delta, rate, n_steps)
        return Budget(rate, n_steps, max(1, int(n_points * rate)), sigma)

    def fit(self, points: Points, streams: Streams) -> nn.Module:
        """One model by opacus' own loop: hooks that keep every example's gradient, its DPOptimizer."""
        budget, model = self.budget(len(points)), self.build(points, streams.seed("init")).train()
        with own_randomness(streams), products_in(tf32=self.precision == "tf32"), _quiet():
            loop = _OpacusLoop(self, model, budget, _noise_source(points, streams))
            for batch in poisson_batches(points, budget, streams):
                loop.step(points, batch)
        return self._signed(loop.model(), budget, budget.n_steps)

    def fit_many(self, points: Sequence[Points], streams: Sequence[Streams]) -> list[nn.Module]:
        """Members with equally many steps as one stack, where the architecture is known to `GhostStack`.

        Steps per epoch decide q, their number and σ; of members with nearly as many points only ⌊q n⌋ differs.
        """

        def fit(points: Sequence[Points], streams: Sequence[Streams]) -> list[nn.Module]:
            if self.engine(points).name == "ghost":
                return self._fit_stacked(points, streams)
            return [self.fit(p, s) for p, s in zip(points, streams, strict=True)]

        return fit_alike([batches_per_epoch(len(p), self.batch_size) for p in points], points, streams, fit)

    def engine(self, points: Sequence[Points]) -> Engine:
        """What `fit_many` would train models on these points with, and why not as a stack."""
        one = points[0].inputs_at(torch.from_numpy(points[0].index[:1]))
        reason = reason_against(check_points, points) or reason_against(
            check_ghost, self.build(points[0], 0).train(), one
        )
        return Engine("ghost") if reason is None else Engine("opacus", reason)

    def _fit_stacked(self, points: Sequence[Points], streams: Sequence[Streams]) -> list[nn.Module]:
        budgets = [self.budget(len(p)) for p in points]  # alike but for ⌊q n⌋
        models = [self.build(p, s.seed("init")).train() for p, s in zip(points, streams, strict=True)]
        stack = GhostStack(models, points[0].task)
        optimiser = self.optimiser_of(list(stack.parameters.values()))
        sources = [_noise_source(p, s) for p, s in zip(points, streams, strict=True)]
        noise = Noise(budgets[0].noise_multiplier * self.clip_norm, stack.parameters.values(), sources)
        feeds = [poisson_batches(p, b, s) for p, b, s in zip(points, budgets, streams, strict=True)]
        sums = ClippedSums(stack, points, self.clip_norm if self.is_private else None, self.physical_batch_size)
        sizes, n_steps = [budget.expected_batch_size for budget in budgets], 0
        going_on = Resumed(Moved(stack.parameters, sources=sources), optimiser)
        for name, parameter in stack.parameters.items():
            parameter.grad = sums.total[name]
        with products_in(tf32=self.precision == "tf32"):
            for n_steps, batches in enumerate(zip(*feeds, strict=True), 1):
                if n_steps <= going_on.n_done:
                    continue
                totals = sums.of(batches)
                noise.add_to(totals)
                divide(totals, sizes)
                optimiser.step()
                going_on.keep(n_steps)
        return [self._signed(model, b, n_steps) for model, b in zip(stack.members(), budgets, strict=True)]

    def optimiser_of(self, parameters: Sequence[Tensor]) -> torch.optim.Optimizer:
        """torch's own; both move every weight for itself, so that a stack of models is one optimiser's."""
        return Steps(self.lr, optimiser=self.optimiser).optimiser_of(parameters)

    def _signed(self, model: nn.Module, budget: Budget, n_steps: int) -> nn.Module:
        """The model with what its training spent."""
        told = [-1.0, -1.0, 0.0]
        if self.target_epsilon != "inf":
            spent = spent_epsilon(budget.noise_multiplier, budget.sample_rate, n_steps, self.delta)
            told = [float(self.target_epsilon), spent, budget.noise_multiplier]
        model.privacy.copy_(torch.tensor(told, dtype=torch.float64))  # type: ignore[operator]
        return model.eval()


def poisson_batches(points: Points, budget: Budget, streams: Streams) -> Iterator[Positions]:
    """For each step the points drawn, by their position in the whole data set; there may be none."""
    rng = streams.generator("order")
    for _ in range(budget.n_steps):
        yield points.index[rng.random(len(points)) < budget.sample_rate]


# -- opacus ------------------------------------------------------------------------------------------------------------


class _OpacusLoop:
    """GradSampleModule and DPOptimizer; without a promise, plain sums of gradients."""

    def __init__(self, recipe: DpSgd, model: nn.Module, budget: Budget, noise: torch.Generator) -> None:
        self.recipe, self.budget, self._model = recipe, budget, model
        self.optimiser: Any = recipe.optimiser_of(list(model.parameters()))
        if not recipe.is_private:
            return
        wrapped = _opacus("opacus.grad_sample").GradSampleModule(model, loss_reduction="sum")
        self._wrapped = wrapped
        self.optimiser = _opacus("opacus.optimizers").DPOptimizer(
            self.optimiser,
            noise_multiplier=budget.noise_multiplier,
            max_grad_norm=recipe.clip_norm,
            expected_batch_size=budget.expected_batch_size,
            generator=noise,
        )

    def step(self, points: Points, batch: Positions) -> None:
        """One logical batch, in physical ones."""
        self.optimiser.zero_grad()
        parts = in_parts(batch, self.recipe.physical_batch_size)
        for place, part in enumerate(parts):
            at = torch.from_numpy(part)
            if self.recipe.is_private:
                self._private(points, at, is_last=place == len(parts) - 1)
            else:
                self._sum(self._model, points, at)
        if not self.recipe.is_private:
            for parameter in self._model.parameters():
                parameter.grad = torch.zeros_like(parameter) if parameter.grad is None else parameter.grad
                parameter.grad /= self.budget.expected_batch_size
            self.optimiser.step()

    def _private(self, points: Points, at: Tensor, *, is_last: bool) -> None:
        if len(at):
            self._sum(self._wrapped, points, at)
        else:  # nobody was drawn: noise alone
            for parameter in self._model.parameters():
                parameter.grad_sample = parameter.new_zeros((0, *parameter.shape))  # type: ignore[attr-defined]
        self.optimiser.signal_skip_step(do_skip=not is_last)
        self.optimiser.step()
        if not is_last:
            self.optimiser.zero_grad()

    @staticmethod
    def _sum(model: nn.Module, points: Points, at: Tensor) -> None:
        if len(at):
            points.task.loss(model(points.inputs_at(at)), points.whole_labels[at], reduction="sum").backward()  # type: ignore[no-untyped-call]

    def model(self) -> nn.Module:
        """The trained model, opacus' hooks and attributes taken off."""
        if self.recipe.is_private:
            self._wrapped.to_standard_module()
            for parameter in self._model.parameters():
                parameter.summed_grad = None  # type: ignore[attr-defined]
        for parameter in self._model.parameters():
            parameter.grad = None
        return self._model


@lru_cache(maxsize=256)
def noise_multiplier(epsilon: float, delta: float, sample_rate: float, n_steps: int) -> float:
    """The least σ (ε within 0.01 of the target, never above) by opacus' search."""
    search = _opacus("opacus.accountants.utils").get_noise_multiplier
    wanted = {"target_epsilon": epsilon, "target_delta": delta, "sample_rate": sample_rate, "steps": n_steps}
    with _quiet():
        try:
            return float(search(**wanted, accountant="rdp", epsilon_tolerance=min(0.01, epsilon / 100)))
        except ValueError:  # orders end at 63, so that no noise whatever brings ε below ln(1/δ) / 62 or so
            raise UserError(
                f"target_epsilon = {epsilon:g} at delta = {delta:g} is too small for RDP's orders"
            ) from None


@lru_cache(maxsize=256)
def spent_epsilon(sigma: float, sample_rate: float, n_steps: int, delta: float) -> float:
    """What so many steps cost, by opacus' RDP accountant; for one point that has a gradient or none, at a public n."""
    accountant = _opacus("opacus.accountants").RDPAccountant()
    accountant.history = [(sigma, sample_rate, n_steps)]
    with _quiet():
        return float(accountant.get_epsilon(delta=delta))


def _opacus(module: str) -> Any:
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise UserError(f"learner 'dp-sgd' needs opacus: pip install 'forgetgauge[dp]' ({error})") from None


@contextmanager
def _quiet() -> Iterator[None]:
    """Without what opacus warns of on every use, whoever uses it."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Optimal order is the (largest|smallest) alpha")  # while it searches
        warnings.filterwarnings("ignore", message="Full backward hook is firing")  # images ask for no gradient
        yield


# -- details -----------------------------------------------------------------------------------------------------------


def _noise_source(points: Points, streams: Streams) -> torch.Generator:
    return torch.Generator(points.device).manual_seed(streams.seed("noise"))
