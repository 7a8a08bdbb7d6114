"""What every adversary of the catalogue promises."""

import dataclasses
import io
import math
from itertools import combinations

import numpy as np
import pytest

from forgetgauge import plugins
from forgetgauge.attack.adversary import WHITE_BOX_COLUMNS, Adversary, Need, Role, TargetContext
from forgetgauge.attack.signals import Signals
from forgetgauge.attack.threshold import CONFIDENCE
from forgetgauge.game.adversary import Access
from forgetgauge.tasks.causal_lm import CAUSAL_LM
from forgetgauge.tasks.classification import CLASSIFICATION

from .worlds import EVERY, World, auc, draw_world, permuted, rows, task_of


def same_arrays(one, other) -> bool:
    a, b = one.arrays(), other.arrays()
    return a.keys() == b.keys() and all(np.array_equal(a[name], b[name]) for name in a)


# -- the promise ----------------------------------------------------------------------------------------------------


def test_it_keeps_the_promise_of_an_adversary(adversary):
    assert isinstance(adversary, Adversary)


def test_it_sees_the_weights_only_if_it_says_so(adversary):
    assert (adversary.access is Access.WHITE_BOX) == any(need in WHITE_BOX_COLUMNS for need in adversary.needs)


def test_it_says_yes_or_no_and_gives_a_finite_score_for_each_point(attack, seen):
    assert attack.decide(seen).shape == attack.score(seen).shape == attack.margin(seen).shape == (len(seen),)
    assert attack.decide(seen).dtype == np.bool_
    assert np.isfinite(attack.score(seen)).all()
    assert np.isfinite(attack.margin(seen)).all()


def test_it_says_yes_where_the_margin_is_not_negative(attack, seen):
    assert np.array_equal(attack.decide(seen), attack.margin(seen) >= 0)


def test_in_a_class_a_higher_score_is_never_a_no_after_a_yes(attack, seen):
    for label in range(seen.n_classes):
        of_class = seen.classes == label
        score, says = attack.score(seen)[of_class], attack.decide(seen)[of_class]
        assert not says.any() or says.all() or score[says].min() > score[~says].max()


def test_what_it_learned_survives_the_disk(adversary, attack, seen):
    file = io.BytesIO()
    np.savez(file, **attack.arrays())
    file.seek(0)
    with np.load(file, allow_pickle=False) as stored:
        again = adversary.load(dict(stored))
    assert np.array_equal(again.decide(seen), attack.decide(seen))
    assert np.array_equal(again.score(seen), attack.score(seen))
    assert np.array_equal(again.margin(seen), attack.margin(seen))
    assert same_arrays(again, attack)


# -- one function of a model and a point -----------------------------------------------------------------------------


def test_the_order_of_the_points_does_not_matter(attack, seen):
    order = np.random.default_rng(0).permutation(len(seen))
    assert np.array_equal(attack.decide(rows(seen, order)), attack.decide(seen)[order])
    assert np.array_equal(attack.score(rows(seen, order)), attack.score(seen)[order])


def test_points_asked_twice_are_answered_twice_alike(attack, seen):
    twice = np.repeat(np.arange(len(seen)), 2)
    assert np.array_equal(attack.margin(rows(seen, twice)), attack.margin(seen)[twice])


@pytest.mark.parametrize("cut", [0, 1, 120])
def test_batches_are_answered_like_the_whole(attack, seen, cut):
    all_rows = np.arange(len(seen))
    parts = [attack.margin(rows(seen, part)) for part in (all_rows[:cut], all_rows[cut:])]
    assert np.array_equal(np.concatenate(parts), attack.margin(seen))


def test_one_point_alone_is_answered_as_in_company(attack, seen):
    alone = [float(attack.margin(rows(seen, np.array([i])))[0]) for i in range(0, len(seen), 10)]
    assert alone == attack.margin(seen)[::10].tolist()


def test_no_points_get_no_answers(attack, seen):
    assert attack.decide(rows(seen, np.arange(0))).shape == (0,)


def test_nan_logits_reach_no_adversary(attack, seen):
    with pytest.raises(ValueError, match="NaN"):
        attack.decide(dataclasses.replace(seen, outputs=np.full_like(seen.outputs, np.nan)))


def test_what_it_did_not_ask_for_changes_nothing(adversary, attack, seen, world):
    assert np.array_equal(attack.margin(world.target), attack.margin(seen))


# -- fitting ---------------------------------------------------------------------------------------------------------


def test_fitting_twice_gives_the_same_and_leaves_what_it_was_given(adversary, world):
    shadows, context = world.given(adversary)
    panels = [panel for panel in (shadows, context.references, context.outsiders) if panel is not None]
    before = [(panel.outputs.copy(), panel.role.copy()) for panel in panels]
    assert same_arrays(adversary.fit(shadows, context), adversary.fit(shadows, context))
    for panel, (logits, role) in zip(panels, before, strict=True):
        assert np.array_equal(panel.outputs, logits)
        assert np.array_equal(panel.role, role)


def test_the_order_of_the_models_and_of_the_shadow_points_does_not_matter(adversary, plain_world):
    rng = np.random.default_rng(1)
    shadows, context = plain_world.given(adversary)
    seen = plain_world.seen(adversary)
    order, here = rng.permutation(shadows.role.shape[1]), np.arange(len(seen))
    shuffled = dataclasses.replace(
        context,
        references=context.references and permuted(context.references, rng.permutation(8), here),
        outsiders=context.outsiders and permuted(context.outsiders, rng.permutation(8), here),
    )
    one = adversary.fit(shadows, context)
    other = adversary.fit(permuted(shadows, rng.permutation(8), order), shuffled)
    seen_otherwise = dataclasses.replace(seen, background=seen.background and rows(seen.background, order))
    np.testing.assert_allclose(other.score(seen_otherwise), one.score(seen), rtol=1e-6, atol=1e-6)
    assert np.array_equal(other.decide(seen_otherwise), one.decide(seen))


def test_the_order_of_the_points_of_d_does_not_matter(adversary, plain_world):
    shadows, context = plain_world.given(adversary)
    seen = plain_world.seen(adversary)
    order, models = np.random.default_rng(2).permutation(len(seen)), np.arange(8)
    renamed = dataclasses.replace(
        context,
        references=context.references and permuted(context.references, models, order),
        outsiders=context.outsiders and permuted(context.outsiders, models, order),
    )
    other = adversary.fit(shadows, renamed)
    seen_otherwise = dataclasses.replace(rows(seen, order), points=np.arange(len(seen)))
    expected = adversary.fit(shadows, context).score(seen)[order]
    np.testing.assert_allclose(other.score(seen_otherwise), expected, rtol=1e-9, atol=1e-9)


def test_a_class_that_no_shadow_shows_is_decided_all_the_same(adversary, plain_world):
    shadows, context = plain_world.given(adversary)
    some = np.flatnonzero(shadows.labels != 2)
    attack = adversary.fit(permuted(shadows, np.arange(8), some), context)
    seen = plain_world.seen(adversary)
    seen = dataclasses.replace(seen, background=seen.background and rows(seen.background, some))
    assert np.isfinite(attack.margin(rows(seen, np.flatnonzero(seen.labels == 2)))).all()


@pytest.mark.parametrize(("n_models", "seen_share"), [(2, 0.67), (8, 0.91)])
def test_few_models_that_saw_nearly_everything_are_enough_to_fit(adversary, n_models, seen_share):
    world = draw_world(3, n_models=n_models, seen_share=seen_share, task=task_of(adversary))
    assert np.isfinite(world.fit(adversary).margin(world.seen(adversary))).all()


# -- nothing that tells F from T -------------------------------------------------------------------------------------


def answers_change_when_f_and_t_are_exchanged(adversary, world, context_of=None) -> bool:
    """Fit and play once as (R, F, T) and once as (R, T, F), the signals F first and T second as they are stored.

    `context_of(forget, test)` is what fitting is given of the target half; it should not depend on its arguments.
    """
    shadows, context = world.given(adversary)
    n = len(world.target)
    order = np.random.default_rng(7).permutation(n)
    forget, test = order[: n // 4], order[n // 4 : n // 2]
    answers = []
    for first, second in ((forget, test), (test, forget)):
        attack = adversary.fit(shadows, context_of(first, second) if context_of else context)
        asked = np.concatenate([first, second])
        margin = np.empty(n)
        margin[asked] = attack.margin(rows(world.seen(adversary), asked))
        answers.append((margin[order[: n // 2]], attack))
    return not (np.array_equal(answers[0][0], answers[1][0]) and same_arrays(answers[0][1], answers[1][1]))


def test_exchanging_f_and_t_changes_neither_what_it_learns_nor_what_it_says(adversary, world):
    assert not answers_change_when_f_and_t_are_exchanged(adversary, world)


@dataclasses.dataclass(frozen=True)
class FirstHalf:
    """A leak: F is stored before T."""

    access = Access.BLACK_BOX
    needs: frozenset = frozenset()

    def fit(self, shadows, target):
        return self

    def load(self, arrays):
        return self

    def score(self, signals):
        return np.where(np.arange(len(signals)) < len(signals) / 2, 1.0, -1.0)

    def decide(self, signals):
        return self.score(signals) >= 0

    margin = score

    def arrays(self):
        return {}


def test_an_adversary_that_knows_f_by_its_place_is_caught():
    assert answers_change_when_f_and_t_are_exchanged(FirstHalf(), draw_world(0))


@pytest.mark.parametrize("name", [name for name in EVERY if Need.REFERENCES in plugins.adversaries.load(name).needs])
def test_references_that_were_trained_on_r_and_f_are_caught(name):
    adversary, plain_world = plugins.adversaries.load(name), draw_world(0)
    _, honest = plain_world.given(adversary)

    def leak(forget, test):
        role = honest.references.role.copy()
        role[:, forget], role[:, test] = Role.IN, Role.OUT
        return dataclasses.replace(honest, references=dataclasses.replace(honest.references, role=role))

    assert answers_change_when_f_and_t_are_exchanged(adversary, plain_world, leak)


def test_nothing_an_adversary_is_given_has_room_for_f_and_t():
    fields = {field.name for given in (Signals, TargetContext) for field in dataclasses.fields(given)}
    assert fields == {
        "outputs", "labels", "points", "background", "columns", "task", "_read", "n_classes", "references", "outsiders",
    }  # fmt: skip


# -- how well it does -----------------------------------------------------------------------------------------------


def test_where_there_is_nothing_to_see_the_advantage_is_nothing(adversary):
    """Fitted on noise, played on noise: the mean over 20 games of 200 points lies within 4 standard errors of 0."""
    advantages = []
    for game in range(20):
        world = draw_world(100 + game, boost=0.0, task=task_of(adversary))
        says = world.fit(adversary).decide(world.seen(adversary))
        advantages.append(says[world.member].mean() - says[~world.member].mean())
    worst_sd = math.sqrt(2 * 0.25 / 90)  # fewer than 90 points on a side are improbable
    assert abs(np.mean(advantages)) <= 4 * worst_sd / math.sqrt(20)


def overfit(task) -> list[World]:
    return [draw_world(200 + which, boost=3.0, task=task) for which in range(4)]


def mean_auc(adversary, worlds) -> float:
    return float(np.mean([auc(w.fit(adversary).score(w.seen(adversary)), w.member) for w in worlds]))


def test_where_there_is_much_to_see_it_sees_it(adversary):
    worlds = overfit(task_of(adversary))
    assert mean_auc(adversary, worlds) > 0.6
    says = [world.fit(adversary).decide(world.seen(adversary)) for world in worlds]
    gaps = [s[world.member].mean() - s[~world.member].mean() for s, world in zip(says, worlds, strict=True)]
    assert np.mean(gaps) > 0.1


@pytest.mark.parametrize("name", ["lira-online", "lira-offline", "rmia-online", "rmia-offline", "quantile", "u-lira"])
@pytest.mark.parametrize("task", [CLASSIFICATION, CAUSAL_LM], ids=lambda task: task.name)
def test_knowing_how_hard_each_point_is_beats_confidence(name, task):
    worlds = overfit(task)
    assert mean_auc(plugins.adversaries.load(name), worlds) >= mean_auc(CONFIDENCE, worlds)


@pytest.mark.parametrize("task", [CLASSIFICATION, CAUSAL_LM], ids=lambda task: task.name)
def test_no_two_adversaries_decide_alike(task):
    world, says = draw_world(0, task=task), {}
    for name in EVERY:
        adversary = plugins.adversaries.load(name)
        if getattr(adversary, "reads", set()) <= set(task.signals) and adversary.access is Access.BLACK_BOX:
            says[name] = world.fit(adversary).decide(world.seen(adversary))
    assert len(says) >= 13
    assert [pair for pair in combinations(says, 2) if np.array_equal(says[pair[0]], says[pair[1]])] == []


@pytest.mark.parametrize("name", ["loss", "confidence", "lira-online", "lira-offline", "rmia-online", "rmia-offline"])
def test_attacks_that_need_nothing_of_a_classifier_are_played_on_language_models_too(name):
    assert mean_auc(plugins.adversaries.load(name), overfit(CAUSAL_LM)) > 0.6
