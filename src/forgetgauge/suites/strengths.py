"""The settings of the paper's eight methods in every table, in one place; the paper gives none of them.

Four methods have a strength. It is chosen for each column by what it costs shadow models, never by Q: the strongest
value within a price of one point (docs/frontier.md). Beside them stand the settings that their authors published.
Retr-final and Ft-final have their published settings alone.
"""

from __future__ import annotations

from typing import Any

from forgetgauge.wording import counted

Methods = dict[str, dict[str, Any]]

METHODS = ("retrain", "none", "neg-grad", "retrain-final", "ft-final", "fisher", "salun", "ssd")
TUNED = ("neg-grad", "fisher", "salun", "ssd")
PUBLISHED = {"fisher": "fisher-published", "salun": "salun-published", "ssd": "ssd-published"}
"""Method -> its row with published settings. NegGrad's authors give none."""
METHOD_OF = {row: method for method, row in PUBLISHED.items()}
"""The other way round: the paper's row that such a row stands beside."""
PRICE = 0.01

SAMPLED: Methods = {"fisher": {"labels": "sampled"}}  # unbiased, and as many times cheaper as there are classes
"""Method -> what differs from its defaults, its strength apart."""
SHORT: Methods = {
    **SAMPLED,
    "neg-grad": {"epochs": 1},
    "retrain-final": {"epochs": 2},
    "ft-final": {"epochs": 2},
    "salun": {"epochs": 1},
}
"""The same at smoke scale, which is about the machinery."""


def unlearners(differs: Methods) -> Methods:
    """The methods as the run file's `[unlearners]`: by price, then as published."""
    chosen = {name: dict(differs.get(name, {})) for name in METHODS}
    for name in TUNED:
        chosen[name]["strength"] = "auto"
    for name, published in PUBLISHED.items():
        chosen[published] = {**differs.get(name, {}), "method": name, "strength": "published"}
    return chosen


def published_alone(chosen: Methods) -> Methods:
    """Of the methods of a table those that need no search: published settings stand in the rows of the methods, and
    NegGrad, whose authors give none, is left out."""
    kept = {name: how for name, how in chosen.items() if name not in (*TUNED, *METHOD_OF)}
    return kept | {name: {**chosen[name], "strength": "published"} for name in PUBLISHED}


PUBLISHED_REMARK = "Fisher, SalUn and SSD have the settings of their authors, whatever they cost; NegGrad’s give none."


def remark(n_shadows: int) -> str:
    """What a table must say of its strengths."""
    return (
        f"Strengths of NegGrad, Fisher, SalUn and SSD are, in each column, the strongest that cost "
        f"{counted(n_shadows, 'shadow model')} no more than a point of accuracy; “published” rows have the settings of "
        "the method’s authors."
    )


CLIP_NORMS: dict[str, dict[float, float]] = {
    "smoke": {50.0: 0.1, 150.0: 1.2, 600.0: 10.0},
    "small": {50.0: 1.0, 150.0: 1.0, 600.0: 1.2},
    "paper": {},
}
"""Scale -> ε -> the clip norm of DP-SGD with the highest accuracy on shadow points, by `benchmarks/clip_norms.py`. The
paper tunes it “individually” and gives no value."""

TUTORIAL_CLIP_NORM = 1.2
"""The clipping norm of opacus' CIFAR-10 tutorial, used where none was chosen."""


def clip_norm(scale: str, epsilon: float) -> float:
    """The clip norm of DP-SGD at a budget ε."""
    return CLIP_NORMS[scale].get(epsilon, TUTORIAL_CLIP_NORM)


def clip_remark(scale: str) -> str:
    """What a table of models of DP-SGD must say of their clip norms."""
    chosen = CLIP_NORMS[scale]
    if not chosen:
        return (
            f"The clip norm is {TUTORIAL_CLIP_NORM} at every ε, that of opacus’ tutorial; "
            "the paper tunes it for each ε and gives no value."
        )
    each = ", ".join(f"{value:g} at ε = {epsilon:g}" for epsilon, value in chosen.items())
    return f"The clip norm was chosen for each ε by accuracy on shadow points, as the paper tunes its own: {each}."
