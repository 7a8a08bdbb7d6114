"""From a run file to games with every choice made: data named by digest, defaults filled in, sizes checked."""

from __future__ import annotations

import dataclasses
import hashlib
import inspect
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from forgetgauge import plugins
from forgetgauge.attack.adversary import COLUMNS, WHITE_BOX_COLUMNS, Need
from forgetgauge.attack.parameters import completed
from forgetgauge.errors import UserError, placed_line_of, require_torch, unknown_name
from forgetgauge.game.adversary import Access
from forgetgauge.game.arrays import Bools, Ints
from forgetgauge.game.parts import CLASS, TEXT, coded
from forgetgauge.game.splits import split_sizes
from forgetgauge.npz import UNREADABLE, read_array
from forgetgauge.plan.draws import GROUP, half_sizes
from forgetgauge.plan.game import Game, Method, PlannedAdversary
from forgetgauge.plan.jobs import Named
from forgetgauge.plan.runfile import complete_params, expand_preset, sweep_games
from forgetgauge.plan.spec import PARAMETERS, DataSpec, MetricsSpec, RunSpec, SensitivitySpec, TuningSpec
from forgetgauge.plan.subjects import Confused, Shadow
from forgetgauge.probing import attribute, has
from forgetgauge.results.rivals import QUOTED
from forgetgauge.run.algorithms import make_adversary, make_learner, own_code_of
from forgetgauge.run.assignments import Resolved, Sources
from forgetgauge.run.choices import chosen_name, price_of, resolve_method, resolve_named
from forgetgauge.run.point_sets import sensitivity_weights
from forgetgauge.tasks.causal_lm import CAUSAL_LM
from forgetgauge.version import versions
from forgetgauge.wording import listed

if TYPE_CHECKING:
    from forgetgauge.data.dataset import Dataset
    from forgetgauge.tasks.task import Task


def resolve(raw: Mapping[str, Any], source: str) -> Resolved:
    """Make every choice a run file leaves open; each mistake in it is one line that begins with `source`."""
    require_torch()
    specs = sweep_games(raw, source)
    weights: dict[str, Any] = {}
    try:
        _refuse_idle([spec for _, spec in specs])
        games = [_resolve_game(value, spec, weights) for value, spec in specs]
        idle = [idle_settings(spec, game.learner, game.methods) for (_, spec), game in zip(specs, games, strict=True)]
        for line in [line for key, line in idle[0].items() if all(key in others for others in idle)][:1]:
            raise UserError(line)
    except UserError as error:
        message = str(error)
        raise UserError(message if message.startswith(source) else f"{source}: {message}") from None
    except ValueError as error:
        raise UserError(f"{source}: {error}") from None
    sweep = raw.get("sweep")
    return Resolved(
        games,
        sweep["key"] if sweep else None,
        specs[0][1].keep == "weights",
        Sources({game.data_digest: game.data for game in games}, weights, own_code_of(games)),
        environment(),
        Path(source).name,
        job_seconds=specs[0][1].limits.job_seconds,
    )


def _refuse_idle(specs: Sequence[RunSpec]) -> None:
    """UserError on what is set and changes nothing in any of the games."""
    if not any(spec.metrics.ic for spec in specs) and specs[0].metrics.ic_classes != MetricsSpec().ic_classes:
        raise UserError("metrics.ic_classes has no effect without metrics.ic = true")


def idle_settings(spec: RunSpec, learner: Named, methods: Mapping[str, Method]) -> dict[str, str]:
    """A line on each setting of a shipped learner or method that is not the default and changes nothing, by its key.

    What a preset or a published recipe brings along is nobody's mistake.
    """
    tables = [("learner", plugins.learners, learner, spec.learner)]
    for name, table in spec.unlearners.items():
        place, method = f"unlearners.{name}", methods[name]
        tables.append((place, plugins.unlearners, method.unlearner, table))
        if method.learner is not None:
            tables.append((f"{place}.learner", plugins.learners, method.learner, table.get("learner", {})))
    found = {}
    for place, catalogue, chosen, given in tables:
        thing = catalogue.load(chosen.name) if chosen.name in catalogue.entries else None
        for key, (other, values) in attribute(thing, "idle", {}).items():
            if key not in given:
                continue
            usual = complete_params(place, thing, {})
            value = chosen.params.get(other, usual[other])
            if value in values and chosen.params[key] != usual[key]:
                found[f"{place}.{key}"] = (
                    f"{place}.{key} = {given[key]} has no effect with {other} = {value!r}: leave it out, or at "
                    f"{usual[key]}"
                )
    return found


def _resolve_game(value: Any, spec: RunSpec, weights: dict[str, Any]) -> Game:
    from forgetgauge.data.loading import load_dataset

    chosen = _decided(spec)
    data, learner, methods = chosen["data"], chosen["learner"], chosen["methods"]
    dataset = load_dataset(data.name, data.params)
    if dataset.task.wants_labels_that_differ and len(np.unique(dataset.points.host_labels)) < 2:
        needed = "at least two classes" if dataset.task.has_classes else "labels that differ"
        raise UserError(f"data '{dataset.name}': all points have one label, but a game needs {needed}")
    _check_task(dataset, spec, learner, methods, chosen["adversaries"])
    _check_tokens(dataset, spec.data, learner)
    _check_gradients(learner, methods, chosen["adversaries"])
    _check_shadows(chosen["n_shadows"], chosen["adversaries"])
    n_points, n_groups = len(dataset.points), _check_draw(dataset, spec)
    _check_metrics(spec.metrics, methods, dataset.points.n_classes)
    n_classes = dataset.points.n_classes
    game = Game(
        **{**chosen, "sensitivity": _resolve_sensitivity(spec.game.sensitivity, n_classes, n_points, weights)},
        data_digest=dataset.digest,
        n_points=n_points,
        n_classes=n_classes,
        model_bytes=_model_bytes(learner, dataset),
        value=value,
        task=spec.data.task or dataset.task.name,
        utility_name=dataset.task.utility_name,
        columns=_columns(dataset),
        n_groups=n_groups,
    )
    _check_left_out(game, dataset)
    _check_mass(game, dataset, weights)
    _check_confusion(game, dataset)
    return game


def decided(raw: Mapping[str, Any], source: str) -> dict[str, Any]:
    """What a run file of one game and our defaults decide of it, by field of `Game`: all but what its data say."""
    ((_, spec),) = sweep_games(raw, source)
    return _decided(spec)


def _decided(spec: RunSpec) -> dict[str, Any]:
    from forgetgauge.data.loading import code_of_data

    if spec.tuning != TuningSpec() and not any("strength" in how for how in spec.unlearners.values()):
        raise UserError('tuning has no effect: no unlearner has a strength to choose (strength = "auto")')
    adversaries = {name: resolve_adversary(name, params) for name, params in spec.adversaries.items()}
    learner = resolve_named(plugins.learners, {"name": "minibatch", **expand_preset(spec.learner)})
    methods = {name: resolve_method(name, params, learner, spec.tuning) for name, params in spec.unlearners.items()}
    stated = {"task": spec.data.task, "groups": spec.data.groups}
    params = {**spec.data.params, **{key: value for key, value in stated.items() if value is not None}}
    plain = {one.in_game: one.value_in(spec) for one in PARAMETERS.values() if one.in_game is not None}
    return plain | {
        "data": Named(spec.data.name, params, code_of_data(spec.data.name)),  # the data's digest is in all keys
        "learner": learner,
        "methods": methods,
        "adversaries": adversaries,
        "queries": tuple(sorted(set(spec.strong.queries))),
        "sensitivity": {"kind": "uniform"},  # unless weights are given, which are the data's
        "until": dataclasses.asdict(spec.until) if spec.until else None,
        "metrics": _asked_metrics(spec.metrics),
        "price": price_of(spec.tuning, methods),
        "oracle": spec.game.oracle or spec.game.by,
    }


def _columns(dataset: Dataset) -> dict[str, str]:
    """Name -> digest, of those by whose values Q can be shown."""
    return {
        name: hashlib.sha256("\n".join(map(repr, column.tolist())).encode()).hexdigest()
        for name, column in dataset.columns.items()
        if name not in (CLASS, TEXT) and coded(column) is not None
    }


def _check_draw(dataset: Dataset, spec: RunSpec) -> int:
    """Refuse a draw that cannot be made; the number of groups where these are drawn, else 0."""
    groups, by = dataset.points.whole_groups, spec.game.by
    if spec.game.oracle == GROUP and by != GROUP:
        raise UserError('game.oracle = "group" shows whole groups, but points are drawn: say game.by = "group"')
    if by == GROUP and groups is None:
        raise UserError(
            f"game.by = \"group\": data '{dataset.name}' has no groups; name them in data.groups, as an array `groups` "
            "of an .npz file, or as groups=… in Python"
        )
    n_groups = len(np.unique(groups)) if by == GROUP and groups is not None else 0
    n_target, n_shadow = half_sizes(n_groups or len(dataset.points), spec.data.fraction)
    n_retain, n_forget = split_sizes(n_target, spec.game.alpha, by)
    if n_retain + n_forget >= n_shadow:
        raise UserError(f"the shadow half has {n_shadow} {by}s: too few to train on {n_retain + n_forget} of them")
    n_hardest = round(spec.game.hardest * n_target)
    if 2 * n_forget > n_hardest:
        most = n_hardest // 2
        raise UserError(
            f"game.hardest = {spec.game.hardest:g} of {n_target} {by}s are {n_hardest}, of which F and T are to be "
            f"{2 * n_forget}: use game.alpha of at most {math.floor(1000 * most / (n_target - most)) / 1000:g}"
        )
    return n_groups


def _own_tokens(data: DataSpec) -> str | None:
    """The tokeniser of a shipped data set of texts, where it numbers tokens by itself: `pieces`, `words`."""
    if data.name not in plugins.data.entries:
        return None
    declared = inspect.signature(plugins.data.load(data.name)).parameters.get("tokenizer")
    is_own = declared is not None and data.params.get("tokenizer", declared.default) == declared.default
    return str(declared.default) if declared is not None and is_own else None


def _check_tokens(dataset: Dataset, data: DataSpec, learner: Named) -> None:
    """Refuse tokens whose numbers a checkpoint knows as other words: it would be taught gibberish."""
    checkpoint = learner.params.get("model_params", {}).get("checkpoint", "")
    if not checkpoint:
        return
    if (tokeniser := _own_tokens(data)) is not None:
        raise UserError(
            f"data.params.tokenizer = '{tokeniser}' gives tokens other numbers than learner.model_params.checkpoint = "
            f"'{checkpoint}' knows them by: name that checkpoint as the tokenizer too"
        )
    if dataset.task.name == CAUSAL_LM.name and TEXT in dataset.columns:
        from forgetgauge.data.text_records import tokens_are_of

        if not tokens_are_of(checkpoint, dataset):
            raise UserError(
                f"data '{dataset.name}': its tokens are not those of learner.model_params.checkpoint = "
                f"'{checkpoint}', whose tokenizer reads other words in them: make the records with its tokenizer, "
                f"Encoding(tokenizer={checkpoint!r}); if its column 'text' holds something else, call that otherwise"
            )


def _check_task(
    dataset: Dataset,
    spec: RunSpec,
    learner: Named,
    methods: Mapping[str, Method],
    adversaries: Mapping[str, PlannedAdversary],
) -> None:
    """Refuse by name what cannot be played with such labels, before anything is trained."""
    task = dataset.task
    if spec.data.task is None and (task.name not in plugins.tasks or plugins.tasks.load(task.name) != task):
        raise UserError(
            f"data '{dataset.name}' is of a task of its own, '{task.name}': name it in data.task as module:OBJECT"
        )
    of_task = f"the task of data '{dataset.name}', {task.name}"
    for name, adversary in adversaries.items():
        if Need.AUGMENTED in adversary.columns and not dataset.points.are_numbers:
            raise UserError(
                f"adversaries.{name}: altered copies can be made of images and of real numbers, not of the inputs of "
                f"data '{dataset.name}'"
            )
        check_reads(f"adversaries.{name}", adversary, task, of_task, can_alter=dataset.points.are_numbers)
        if (
            "paraphrased-loss" in _reads(make_adversary(adversary.adversary))
            and len(dataset.points.whole_inputs[0]) < 3
        ):
            raise UserError(
                f"adversaries.{name}: it asks with prompts in other words, which the records of data '{dataset.name}' "
                "do not have"
            )
    if spec.metrics.language and not set(QUOTED) <= set(task.signals):
        raise UserError(f"metrics.language: it is of language models, which those of {of_task}, are not")
    learners = [
        ("learner", learner),
        *((f"unlearners.{name}", one.learner) for name, one in methods.items() if one.learner),
    ]
    things = [(place, plugins.learners.load(one.name)) for place, one in learners if one is not None]
    things += [(f"unlearners.{name}", plugins.unlearners.load(one.unlearner.name)) for name, one in methods.items()]
    for place, thing in things:
        if attribute(thing, "task", task.name) != task.name:
            raise UserError(f"{place}: it is for the task {thing.task}, but {of_task}, is another")
        if attribute(thing, "needs_classes", False) and not task.has_classes:
            raise UserError(f"{place}: it needs classes, which {of_task}, does not have")
        if attribute(thing, "needs_head", False) and not task.outputs_by_head:
            raise UserError(f"{place}: it needs outputs that a last layer gives, but those of {of_task}, are not")
    if task.has_classes:
        return
    asked = {
        "game.sensitivity.by_class": spec.game.sensitivity.by_class is not None,
        "metrics.ic": spec.metrics.ic,
        "metrics.distances": spec.metrics.distances,
    }
    for key, is_asked in asked.items():
        if is_asked:
            raise UserError(f"{key}: it needs classes, which {of_task}, does not have")


def _check_gradients(
    learner: Named, methods: Mapping[str, Method], adversaries: Mapping[str, PlannedAdversary]
) -> None:
    """Refuse by name what differentiates, where a learner's models are no functions that can be."""
    if attribute(plugins.learners.load(learner.name), "has_gradients", True):
        return
    shipped = plugins.unlearners.entries
    able = [name for name in shipped if not getattr(plugins.unlearners.load(name), "needs_gradients", True)]
    why = f"it needs gradients, which models of the learner {learner.name} do not have"
    for name, method in methods.items():
        thing = plugins.unlearners.load(method.unlearner.name)
        if attribute(thing, "needs_gradients", method.unlearner.name in shipped):
            raise UserError(f"unlearners.{name}: {why}; there are {listed(able)}, and methods of your own")
    for name, adversary in adversaries.items():
        if adversary.columns:
            raise UserError(f"adversaries.{name}: {why}")


def _check_shadows(n_shadows: int, adversaries: Mapping[str, PlannedAdversary]) -> None:
    """Refuse, before anything is trained, an adversary that compares a shadow model with the others, where none are."""
    for name, adversary in adversaries.items():
        if n_shadows < 2 and {Need.OUTSIDERS, Need.BACKGROUND} & set(adversary.needs):
            raise UserError(
                f"shadows.count = {n_shadows}: adversary '{name}' compares each shadow model with others; it needs two "
                "or more"
            )


def check_reads(place: str, adversary: PlannedAdversary, task: Task, of_task: str, *, can_alter: bool = True) -> None:
    """Refuse an adversary that reads a signal which the task does not have; `can_alter` says whether altered copies can
    be made of the inputs."""
    lacking = sorted(_reads(make_adversary(adversary.adversary)) - set(task.signals))
    if lacking:
        shipped = {one: plugins.adversaries.load(one) for one in plugins.adversaries.entries}
        able = [one for one, thing in shipped.items() if _reads(thing) <= set(task.signals)]
        able = able if can_alter else [one for one in able if Need.AUGMENTED not in shipped[one].needs]
        raise UserError(
            f"{place}: it reads the signal '{lacking[0]}', which {of_task}, does not have; "
            f"those that can be used are {listed(able)}"
        )


def _reads(adversary: Any) -> set[str]:
    return set(attribute(adversary, "reads", ()))


def _check_metrics(spec: MetricsSpec, methods: Mapping[str, Method], n_classes: int) -> None:
    """Refuse what cannot be measured of these methods or classes."""
    if spec.distances and not any(method.unlearner.name == "retrain" for method in methods.values()):
        raise UserError("metrics.distances are to Retrain, but it is not among the unlearners")
    if spec.language and not any(method.unlearner.name == "retrain" for method in methods.values()):
        raise UserError("metrics.language compares with Retrain, but it is not among the unlearners")
    if spec.ic and not all(0 <= label < n_classes for label in spec.ic_classes):
        raise UserError(f"metrics.ic_classes = {spec.ic_classes}: classes are 0 to {n_classes - 1}")


def _asked_metrics(spec: MetricsSpec) -> dict[str, Any]:
    asked: dict[str, Any] = {"ic": list(spec.ic_classes)} if spec.ic else {}
    return asked | {name: True for name in ("mia", "distances", "language") if getattr(spec, name)}


def _check_confusion(game: Game, dataset: Dataset) -> None:
    """Refuse, before anything is trained, an IC test that finds nobody to confuse."""
    if "ic" not in game.metrics:
        return
    first, second = game.metrics["ic"]
    halves = game.halves.draw(len(dataset.points), dataset.points.whole_groups)
    labels = dataset.points.host_labels
    for pair in range(game.pairs):
        confused = Confused(game.halves, sum(game.sizes), pair, (first, second))
        sets = confused.point_sets(*halves, labels, dataset.points.whole_groups)
        if not {first, second} <= set(labels[sets.forget].tolist()):
            raise UserError(f"metrics.ic_classes: too few points of class {first} or {second} to confuse half of them")


MOST_SHADOWS = 64
"""So many shadow models at most are proposed."""


def _check_left_out(game: Game, dataset: Dataset) -> None:
    """Refuse, before anything is trained, adversaries whose threshold no shadow model can show the others.

    Where F and T are of the hardest points, these are not known yet; shadow models leave out the same ones there.
    """
    least = {name: _least_left_out(one) for name, one in game.adversaries.items()}
    asking = {name: n for name, n in least.items() if n > 0}
    if game.hardest < 1 or not asking:
        return
    halves = game.halves.draw(len(dataset.points), dataset.points.whole_groups)
    n_shadow = len(halves[1])
    left_out = np.zeros((0, n_shadow), dtype=np.bool_)
    while len(left_out) < game.n_shadows:
        left_out = _one_more(left_out, game, dataset, halves)
    if not (short := [name for name, n in asking.items() if _most_in_common(left_out) < n]):
        return
    needed = max(asking[name] for name in short)
    n_left_out = int(left_out.sum(axis=1).max())
    while len(left_out) < MOST_SHADOWS and _most_in_common(left_out) < needed:
        left_out = _one_more(left_out, game, dataset, halves)
    enough = f" (shadows.count = {len(left_out)} is enough)" * (_most_in_common(left_out) >= needed)
    raise UserError(
        f"game.alpha = {game.alpha:g}: each shadow model leaves out {n_left_out} of {n_shadow} points, too few for two "
        f"to leave out the same ones, by which {listed(short)} would set a threshold: use a larger game.alpha, more "
        f"shadow models{enough}, or adversaries without {listed(short)}"
    )


def _least_left_out(adversary: PlannedAdversary) -> int:
    return int(attribute(make_adversary(adversary.adversary), "least_left_out", 0))


def _one_more(left_out: Bools, game: Game, dataset: Dataset, halves: tuple[Ints, Ints]) -> Bools:
    """(models, points of the shadow half) which points each shadow model is not trained on, with one model more."""
    subject = Shadow(game.halves, sum(game.sizes), len(left_out))
    unseen = subject.point_sets(*halves, dataset.points.host_labels, dataset.points.whole_groups).unseen
    return np.concatenate([left_out, np.isin(halves[1], unseen)[None]])


def _most_in_common(left_out: Bools) -> int:
    """Of the shadow models, the most points that one of them and any other were both not trained on."""
    shared = left_out & (left_out.sum(axis=0) > 1)
    return int(shared.sum(axis=1).max(initial=0))


def _check_mass(game: Game, dataset: Dataset, weights: Mapping[str, Any]) -> None:
    """Refuse, before anything is trained, a P_D that never shows a point of some F or T."""
    if game.sensitivity["kind"] == "uniform":
        return
    if game.hardest < 1:
        given = game.sensitivity.get("weights", {}).values() or weights[game.sensitivity["digest"]]
        if min(given) == 0:
            raise UserError("game.hardest: a point without weight may be all there is of F: use weights above 0")
        return
    target, _ = game.halves.draw(len(dataset.points), dataset.points.whole_groups)
    groups = game.halves.drawn_groups(dataset.points.subset(target).groups)
    weight = sensitivity_weights(
        game.sensitivity, dataset.points.host_labels[target], target, Sources({}, weights), groups
    )
    for pair in range(game.pairs):
        drawn = game.swap_pair(pair, groups).split
        if not (weight[drawn.forget].sum() > 0 and weight[drawn.unseen].sum() > 0):
            raise UserError(f"game.sensitivity: pair {pair} has a forget or unseen set without any weight")


def resolve_adversary(name: str, table: Mapping[str, Any]) -> PlannedAdversary:
    """An adversary by its id and table: `method` names it where the id is not its name, `references` are how many
    reference models it is shown, and the rest are its own parameters."""
    what, chosen = f"adversaries.{name}", chosen_name(f"adversaries.{name}", name, table)
    thing = plugins.adversaries.load(chosen)
    if not (has(thing, "fit") and has(thing, "load")):
        plain = inspect.isfunction(thing)
        hint = "is a plain function: write @forgetgauge.adversary above it" if plain else "has no fit and load"
        raise UserError(f"{what}: '{chosen}' {hint}")
    given = {key: value for key, value in table.items() if key not in ADVERSARY_KEYS}
    if not isinstance(thing, type):
        own = chosen not in plugins.adversaries.entries  # whose code may state a version
        stated = {"version": given.pop("version")} if own and "version" in given else {}
        given = {**completed(what, thing, given, ADVERSARY_KEYS), **stated}
    adversary = resolve_named(plugins.adversaries, {**given, "name": chosen}, what)
    thing = make_adversary(adversary)
    needs = sorted(attribute(thing, "needs", frozenset()))
    columns = [need for need in needs if need in COLUMNS]
    unknown = [str(need) for need in needs if need not in set(Need)]
    if unknown:
        raise UserError(f"{what}: " + unknown_name("need", unknown[0], [str(need) for need in Need]))
    if attribute(thing, "access") == Access.WHITE_BOX and not {*columns} & {*WHITE_BOX_COLUMNS}:
        raise UserError(f"{what}: it declares white-box access but asks for no white-box column")
    references = _resolve_references(what, table.get("references"), Need.REFERENCES in needs)
    return PlannedAdversary(adversary, tuple(map(str, needs)), tuple(map(str, columns)), references)


ADVERSARY_KEYS = ("method", "references")
"""Keys of an adversary's table that are no parameters of it."""


def _resolve_references(what: str, asked: Any, uses_them: bool) -> int | None:
    if asked is None:
        return None
    if not uses_them:
        raise UserError(f"{what}.references = {asked!r}: it uses no reference models")
    if not isinstance(asked, int) or isinstance(asked, bool):
        raise UserError(f"{what}.references = {asked!r} is not a whole number")
    if refused := PARAMETERS["shadows.references"].refusal(asked, f"{what}.references"):
        raise UserError(refused)
    return asked


def _resolve_sensitivity(
    spec: SensitivitySpec, n_classes: int, n_points: int, weights: dict[str, Any]
) -> dict[str, Any]:
    if spec.by_class is not None:
        for label, weight in spec.by_class.items():
            if not label.isdigit() or int(label) >= n_classes:
                raise UserError(f"game.sensitivity.by_class: no class '{label}'; classes are 0 to {n_classes - 1}")
            if not 0 <= weight < float("inf"):
                raise UserError(f"game.sensitivity.by_class.{label} = {weight} is not a weight of 0 or more")
        full = {str(label): float(spec.by_class.get(str(label), 1.0)) for label in range(n_classes)}
        return {"kind": "by-class", "weights": full}
    if spec.file is None:
        return {"kind": "uniform"}
    values = _read_weights(Path(spec.file))
    if values.shape != (n_points,):
        raise UserError(f"{spec.file}: {values.shape} weights, but the data set has {n_points} points")
    if not (np.isfinite(values).all() and (values >= 0).all()):
        raise UserError(f"{spec.file}: weights must be finite and not negative")
    digest = hashlib.sha256(values.tobytes()).hexdigest()
    weights[digest] = values
    return {"kind": "file", "digest": digest}


def _read_weights(path: Path) -> np.ndarray[Any, np.dtype[np.float64]]:
    try:
        return np.asarray(read_array(path), dtype=np.float64)
    except FileNotFoundError:
        raise UserError(f"{path}: no such file") from None
    except UNREADABLE as error:
        raise UserError(f"{path}: not a .npy file of numbers: {error}") from None


def _model_bytes(learner: Named, dataset: Dataset) -> int:
    import torch

    from forgetgauge.learn.learner import refuse_incomplete
    from forgetgauge.run.model_jobs import mould

    name = learner.name.partition("@")[0] if plugins.learners.is_bound(learner.name) else learner.name
    try:
        made = make_learner(learner)
        refuse_incomplete(name, made)
        model = mould(made, dataset.points)
    except (UserError, ValueError):
        raise
    except Exception as error:  # whatever a learner of the user's raises
        if learner.name in plugins.learners.entries:
            raise
        raise UserError(f"learner '{name}': {placed_line_of(error)}") from error
    state = model.state_dict()
    for place, value in state.items():
        if not isinstance(value, torch.Tensor):  # get_extra_state may return anything
            raise UserError(
                f"learner '{name}': of its models '{place}' is no tensor but a {type(value).__name__}, and of a model "
                "only tensors are kept: make it buffers"
            )
    return sum(tensor.numel() * tensor.element_size() for tensor in state.values())


def environment() -> dict[str, str]:
    """Versions that could change a bit of the result."""
    import platform

    return {**versions(), "machine": platform.machine(), "device": "cpu"}
