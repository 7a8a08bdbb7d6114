"""Every choice of a run as rows of a table; in a sweep, what differs between games has several values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from forgetgauge.plan.draws import GROUP, POINT
from forgetgauge.plan.spec import PARAMETERS
from forgetgauge.results.made import StackResult
from forgetgauge.results.record import Result
from forgetgauge.wording import INTERVALS, listed, seconds, setting

ACCURACIES = {
    "retain": "retain R",
    "forget": "forget F",
    "unseen": "unseen T",
    "test": "test set",
    "outside": "text outside",
}
"""The sets of points that utility is measured on, as heads of columns."""
GIVEN = {
    "references": "reference models trained on random parts of the data",
    "outsiders": "the shadow models’ outputs on the attacked half, which they never saw",
    "background": "the attacked model’s outputs on the shadow half, which it never saw",
    "unlearned": "shadow or reference models that were unlearned by the same method",
    "gradient-norm": "gradients of the attacked model",
    "landscape": "the loss of the attacked model when noise is added to its weights",
    "augmented": "the labels that the attacked model gives altered copies of a point",
    "relearned": "the loss of the attacked model after some training on the adversary’s own data",
}
"""What an adversary may ask for (`attack.adversary.Need`), in words."""


@dataclass(frozen=True)
class Setting:
    """One line of the settings; several values where the games of a sweep differ."""

    name: str
    values: list[str]


def settings_of(result: Result) -> dict[str, list[Setting]]:
    """Every choice of a run, as heading -> lines."""
    groups = {"Game": _game_settings, "Unlearners": _unlearner_settings, "Adversaries": _adversary_settings}
    merged = {heading: _merged([choose(game.spec) for game in result.games]) for heading, choose in groups.items()}
    run = {
        **result.environment,
        "models made": _made(result.stacks),
        "work": f"{seconds(result.total_seconds)}, summed over processes",
        "digest of all decisions": result.digests.get("decisions", ""),
        "digest of the file": "" if result.stacks else result.digests.get("data", ""),
        "result schema": str(result.schema),
    }
    return {**merged, "Environment": _merged([{name: text for name, text in run.items() if text}])}


def _made(stacks: Sequence[StackResult]) -> str:
    """`train: 40 (vmap, 16 wide); unlearn: 16 (vmap, 16 wide), 112 (solo)`."""
    kinds = {
        kind: ", ".join(
            f"{s.models} ({s.engine}" + (f", {s.width} wide)" if s.width > 1 else ")") for s in stacks if s.kind == kind
        )
        for kind in dict.fromkeys(stack.kind for stack in stacks)
    }
    return "; ".join(f"{kind}: {text}" for kind, text in kinds.items())


def _merged(games: Sequence[Mapping[str, str]]) -> list[Setting]:
    names = dict.fromkeys(name for game in games for name in game)
    columns = {name: [game.get(name, "–") for game in games] for name in names}
    return [Setting(name, column if len(set(column)) > 1 else column[:1]) for name, column in columns.items()]


USUAL = (("by", POINT), ("hardest", 1))
"""What is not worth a line."""


def _game_settings(spec: Mapping[str, Any]) -> dict[str, str]:
    lines = {
        "data set": _named(spec.get("data", {})),
        "digest of the data": spec.get("data_digest", ""),
        "points, classes": _joined(spec, "n_points", "n_classes"),
        "|R|": _joined(spec, "n_retain"),
        "|F| = |T|": _joined(spec, "n_forget"),
        **{one.label: _shown(one.in_game, spec) for one in PARAMETERS.values() if one.in_game is not None},
        "shown to the adversary at once": spec.get("oracle", "") if spec.get("by") == GROUP else "",
        "groups": _joined(spec, "n_groups") if spec.get("by") == GROUP else "",
        "number of pairs chosen after a pilot": setting(spec["until"]) if spec.get("until") else "",
        "other metrics": setting(spec["metrics"]) if spec.get("metrics") else "",
        "learner": _named(spec.get("learner", {})),
    }
    return {name: text for name, text in lines.items() if text}


def _shown(name: str, spec: Mapping[str, Any]) -> str:
    """A parameter's value for people; nothing where the game has none."""
    if name == "interval":
        return INTERVALS.get(spec.get(name, "student"), "")
    if name == "sensitivity":
        return _sensitivity(spec.get(name, {}))
    if name not in spec or (name == "oracle_draws" and not spec.get("queries")):
        return ""
    if (name, spec[name]) in USUAL or (name == "n_scorers" and spec.get("hardest", 1) == 1):
        return ""
    value = spec[name]
    if isinstance(value, bool):
        return "yes" if value else "no"
    return ", ".join(map(setting, value)) if isinstance(value, list | tuple) else setting(value)


def _unlearner_settings(spec: Mapping[str, Any]) -> dict[str, str]:
    return {name: _unlearner(method, name) for name, method in spec.get("methods", {}).items()}


def _unlearner(method: Mapping[str, Any], name: str) -> str:
    """With the learner it brings along, where it does."""
    learner = method.get("learner")
    own = [f"learner {_named(learner)}"] if learner else []
    return "; ".join([_named(method.get("unlearner", {}), name), *own])


def _adversary_settings(spec: Mapping[str, Any]) -> dict[str, str]:
    return {name: _adversary(adversary, name) for name, adversary in spec.get("adversaries", {}).items()}


def _adversary(adversary: Mapping[str, Any], name: str) -> str:
    """With what it was given beyond the outputs that it attacks and the shadow models."""
    needs = [GIVEN.get(need, need) for need in adversary.get("needs", ())]
    given = [f"was given {listed(needs)}"] if needs else []
    return "; ".join([_named(adversary.get("adversary", {}), name), *given])


def _joined(spec: Mapping[str, Any], *keys: str) -> str:
    return ", ".join(setting(spec[key]) for key in keys if key in spec)


def _named(choice: Mapping[str, Any], known_as: str = "") -> str:
    """Name unless it is known already, parameters, and the digest of the code where it is the user's own."""
    name, params, code = choice.get("name", known_as), choice.get("params", {}), choice.get("code", "")
    parts = [
        "" if name == known_as else name,
        setting(params) if params else "",
        f"code {_short(code)}" if code else "",
    ]
    return "; ".join(part for part in parts if part) or ("no parameters" if known_as else "")


def _sensitivity(choice: Mapping[str, Any]) -> str:
    if choice.get("kind") == "by-class":
        return f"by class; {setting(choice.get('weights', {}))}"
    return (
        f"file; digest {_short(choice.get('digest', ''))}" if choice.get("kind") == "file" else choice.get("kind", "")
    )


def _short(digest: str) -> str:
    return f"{digest[:12]}…" if len(digest) > 12 else digest
