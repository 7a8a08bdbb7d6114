"""The suites shipped to authors: what is registered passes them, and each broken promise is found and named."""

import copy
import dataclasses
import itertools
import random
import re
import sys
import types
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

from forgetgauge import plugins
from forgetgauge.attack.adversary import COLUMNS, Need, Panel
from forgetgauge.attack.signals import Signals
from forgetgauge.attack.threshold import CONFIDENCE, ThresholdAttack
from forgetgauge.game.adversary import Access
from forgetgauge.models.small_cnn import SmallCNN
from forgetgauge.testing import MODELS, check_adversary, check_unlearner
from forgetgauge.testing.adversaries import _is_calibrated_on_noise
from forgetgauge.unlearn.neg_grad import NegGrad
from tests.methods import FOR_ALL

ONE = {"batch norm": MODELS["batch norm"]}


@pytest.fixture(autouse=True)
def _one_thread_and_a_fresh_catalogue(monkeypatch):
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    monkeypatch.setattr(plugins.models, "_bound", {})
    yield
    torch.set_num_threads(before)


def quick(name):
    """The unlearner of that name with settings that take no time."""
    unlearner = plugins.unlearners.load(name)()
    known = {field.name for field in dataclasses.fields(unlearner)}
    wanted = {"epochs": 2, "batch_size": 16}
    return dataclasses.replace(unlearner, **{key: value for key, value in wanted.items() if key in known})


@pytest.mark.parametrize("name", sorted(set(FOR_ALL) - {"certified-removal"}))  # for linear models
def test_every_registered_unlearner_passes(name):
    check_unlearner(quick(name))


@pytest.mark.parametrize("name", plugins.adversaries.entries)
def test_every_registered_adversary_passes(name):
    check_adversary(plugins.adversaries.load(name))


# -- unlearners that break a promise -------------------------------------------------------------------------------


def ascend(model, points, lr=0.01):
    loss = nn.functional.cross_entropy(model(points.x), points.y)
    gradients = torch.autograd.grad(-loss, list(model.parameters()))
    with torch.no_grad():
        for parameter, gradient in zip(model.parameters(), gradients, strict=True):
            parameter -= lr * gradient
    return model


def good(model, retain, forget, context):
    context.n_gradients += len(forget)
    return ascend(copy.deepcopy(model), forget)


def changes_its_input(model, retain, forget, context):
    return ascend(model, forget)


def changes_a_buffer(model, retain, forget, context):
    model.train()(forget.x)
    return copy.deepcopy(model.eval())


def leaves_train_mode(model, retain, forget, context):
    return copy.deepcopy(model.train())


def freezes_its_input(model, retain, forget, context):
    model.requires_grad_(False)
    return copy.deepcopy(model)


def leaves_gradients(model, retain, forget, context):
    nn.functional.cross_entropy(model(forget.x), forget.y).backward()
    return copy.deepcopy(model)


def returns_its_input(model, retain, forget, context):
    return model


def shares_memory(model, retain, forget, context):
    return copy.copy(model)


def changes_the_data(model, retain, forget, context):
    forget.whole_inputs[forget.index[0]] = 0
    return copy.deepcopy(model)


def uses_torchs_generator(model, retain, forget, context):
    model = copy.deepcopy(model)
    with torch.no_grad():
        model.head.weight += torch.randn_like(model.head.weight)
    return model


def uses_numpys_generator(model, retain, forget, context):
    return ascend(copy.deepcopy(model), forget, lr=float(np.random.rand()))  # noqa: NPY002


def uses_pythons_generator(model, retain, forget, context):
    return ascend(copy.deepcopy(model), forget, lr=random.random())


def uses_fresh_entropy(model, retain, forget, context):
    return ascend(copy.deepcopy(model), forget, lr=float(np.random.default_rng().random()))


class Remembers:
    def __init__(self):
        self.n_calls = itertools.count(1)

    def unlearn(self, model, retain, forget, context):
        return ascend(copy.deepcopy(model), forget, lr=0.1 * next(self.n_calls))


def looks_at_all_inputs(model, retain, forget, context):
    """The tensors of the whole data set are within reach; T is among them."""
    model = copy.deepcopy(model)
    with torch.no_grad():
        model.head.bias += model(retain.whole_inputs).mean(0)
    return model


def counts_labels_of_all(model, retain, forget, context):
    model = copy.deepcopy(model)
    with torch.no_grad():
        model.head.bias += torch.bincount(forget.whole_labels, minlength=4)
    return model


def diverges(model, retain, forget, context):
    return ascend(copy.deepcopy(model), forget, lr=float("inf"))


def needs_two_points(model, retain, forget, context):
    model = copy.deepcopy(model)
    with torch.no_grad():
        model.head.bias += forget.x.std(0).mean()
    return model


def drops_nothing(model, retain, forget, context):
    """Batches of 16 in train mode: the last of 65 points is a batch of one."""
    model = copy.deepcopy(model).train()
    for at in range(0, len(retain), 16):
        ascend(model, retain.subset(retain.index[at : at + 16]), lr=-0.01)
    return model.eval()


def another_architecture(model, retain, forget, context):
    return SmallCNN((1, 8, 8), 4, width=8)


def no_model(model, retain, forget, context):
    return model.state_dict()


def miscounts(model, retain, forget, context):
    context.n_gradients -= 1
    return copy.deepcopy(model)


def raises(model, retain, forget, context):
    raise KeyError("lr")


class Together:
    """A good method, but for how it answers many requests."""

    def __init__(self, many):
        self.many = many

    def unlearn(self, model, retain, forget, context):
        return copy.deepcopy(model)

    def unlearn_many(self, requests):
        return self.many([copy.deepcopy(request.model) for request in requests])


BAD_UNLEARNERS = {
    Together(lambda models: models[::-1]): "unlearn_many gives its models in another order than the requests",
    Together(lambda models: models[:1]): "asked about 2 models at once, it raised WrongOutput: .* gave back 1 models",
    Together(lambda models: models[:1] * len(models)): "was given 2 requests and gave back 1 models",
    changes_its_input: "it changed the model it was given",
    changes_a_buffer: "it changed the model it was given .*running_mean",
    leaves_train_mode: "changed the mode or frozen parameters",
    freezes_its_input: "changed the mode or frozen parameters",
    leaves_gradients: "left gradients",
    returns_its_input: "shares memory",
    shares_memory: "shares memory",
    changes_the_data: "changed the data",
    uses_torchs_generator: "depends on a global random generator",
    uses_numpys_generator: "depends on a global random generator",
    uses_pythons_generator: "depends on a global random generator",
    uses_fresh_entropy: "asked twice for the same, it answered differently",
    Remembers: "asked twice for the same, it answered differently",
    looks_at_all_inputs: "depends on points outside",
    counts_labels_of_all: "depends on points outside",
    diverges: "NaN or infinite",
    needs_two_points: "forget a single point, it returned a model whose outputs are NaN",
    drops_nothing: "batch norm over single values: with sets of 65 and 17 points.* raised ValueError",
    another_architecture: "another architecture",
    no_model: "returned a OrderedDict, not a model",
    miscounts: "no count of gradients",
    raises: "raised KeyError",
    3: "neither a function nor an object",
}


def test_a_good_function_passes_with_every_kind_of_model():
    check_unlearner(good)
    check_unlearner(Together(list))


@pytest.mark.filterwarnings("ignore:.*degrees of freedom")
@pytest.mark.parametrize(("bad", "words"), BAD_UNLEARNERS.items(), ids=lambda x: getattr(x, "__name__", None))
def test_an_unlearner_that_breaks_a_promise_is_named(bad, words):
    with pytest.raises(AssertionError, match=words) as caught:
        check_unlearner(bad, models=ONE)
    assert "\n" not in str(caught.value).split(" raised ")[0]


def test_the_identity_setting_is_checked_where_it_is_named():
    check_unlearner(NegGrad(epochs=1), models=ONE, identity=NegGrad(lr=0.0))
    with pytest.raises(AssertionError, match="at its identity setting it changed"):
        check_unlearner(NegGrad(epochs=1), models=ONE, identity=NegGrad(lr=0.1))


def test_own_models_and_own_learners_take_the_place_of_ours():
    built = []

    class Linear(nn.Module):
        def __init__(self, input_shape, n_classes):
            super().__init__()
            built.append(input_shape)
            self.head = nn.Linear(64, n_classes)

        def forward(self, x):
            return self.head(x.flatten(1))

    check_unlearner(good, models={"linear": Linear})
    assert (1, 8, 8) in built

    class Untrained:
        def build(self, points, seed):
            torch.manual_seed(seed)
            return Linear((1, 8, 8), points.n_classes)

        def fit(self, points, streams):
            return self.build(points, 0)

    with torch.random.fork_rng(devices=[]):
        check_unlearner(good, learner=Untrained())


def test_a_check_leaves_the_global_generators_as_they_were():
    before = torch.get_rng_state(), np.random.get_state()[1].copy(), random.getstate()  # noqa: NPY002
    check_unlearner(good, models=ONE)
    check_adversary(CONFIDENCE)
    assert torch.equal(torch.get_rng_state(), before[0])
    assert np.array_equal(np.random.get_state()[1], before[1])  # noqa: NPY002
    assert random.getstate() == before[2]


# -- adversaries that break a promise ------------------------------------------------------------------------------


class Attack:
    """Says yes where the true label's logit is above a threshold; the base of those that do worse."""

    def __init__(self, threshold=0.0):
        self.threshold = np.array(threshold)

    def score(self, signals):
        return signals.outputs[np.arange(len(signals)), signals.labels].astype(np.float64)

    def margin(self, signals):
        return self.score(signals) - self.threshold

    def decide(self, signals):
        return self.margin(signals) >= 0

    def arrays(self):
        return {"threshold": self.threshold}


class Good:
    access = Access.BLACK_BOX
    needs: frozenset[Need] = frozenset()
    attack = Attack

    def fit(self, shadows, target):
        signals, member = shadows.rows
        score = Attack().score(signals)
        return self.attack((score[member].mean() + score[~member].mean()) / 2)

    def load(self, arrays):
        return self.attack(arrays["threshold"])


def adversary(attack=Attack, **members):
    return type("Bad", (Good,), {"attack": attack, **members})()


class ByBatch(Attack):
    def margin(self, signals):
        score = self.score(signals)
        return score - np.median(score) if len(score) else score


class FirstHalf(Attack):
    def margin(self, signals):
        return np.where(np.arange(len(signals)) < len(signals) / 2, 1.0, -1.0)


class DropsDuplicates(Attack):
    def margin(self, signals):
        rows = [row.tobytes() for row in signals.outputs]
        return np.where([rows.count(row) > 1 for row in rows], -1.0, super().margin(signals))


class Coin(Attack):
    def margin(self, signals):
        return self.score(signals) + np.random.standard_normal(len(signals))  # noqa: NPY002


class Turns(Attack):
    """Reverses itself at every second question: another function for the other side."""

    def __init__(self, threshold=0.0):
        super().__init__(threshold)
        self.asked = itertools.count()

    def decide(self, signals):
        return super().decide(signals) ^ (next(self.asked) % 2 == 1)


class Forgets(Attack):
    def arrays(self):
        return {}


class Pickles(Attack):
    def arrays(self):
        return {"threshold": np.array([{}], dtype=object)}


class Probabilities(Attack):
    def decide(self, signals):
        return 1 / (1 + np.exp(-self.margin(signals)))


class OneForAll(Attack):
    def score(self, signals):
        return np.float64(super().score(signals).sum())

    def margin(self, signals):
        return super().score(signals)


class Undefined(Attack):
    def score(self, signals):
        return super().score(signals) * np.nan

    def margin(self, signals):
        return super().score(signals)


class OtherDecision(Attack):
    def decide(self, signals):
        return self.score(signals) >= 1


class NoMargin:
    def __init__(self, threshold=0.0):
        pass

    def score(self, signals):
        return np.zeros(len(signals))

    decide = arrays = score


class LowPlaces(Attack):
    """Takes the first half of D for F."""

    def margin(self, signals):
        return np.where(signals.points < 60, 1.0, -1.0)


def fits_by_chance(self, shadows, target):
    return self.attack(np.random.standard_normal())  # noqa: NPY002


def spoils_the_shadows(self, shadows, target):
    shadows.outputs[:] = 0
    return self.attack(0.5)


def fails(self, shadows, target):
    raise ZeroDivisionError("no members")


class Learns:
    """Keeps what it was shown, and fits on it next time."""

    access = Access.BLACK_BOX
    needs: frozenset[Need] = frozenset()

    def __init__(self):
        self.shown = []

    def fit(self, shadows, target):
        return self.load({"threshold": np.array(float(np.mean(self.shown[:1] or [0.0])))})

    def load(self, arrays):
        attack = Attack(arrays["threshold"])
        original = attack.decide
        attack.decide = lambda signals: (self.keep(signals), original(signals))[1]
        return attack

    def keep(self, signals):
        if len(signals) == 80:
            self.shown.append(float(signals.outputs.mean()))


class PlaceInReferences:
    """Fits on the references' answers at the first half of D alone, as if it knew who is there."""

    access = Access.BLACK_BOX
    needs = frozenset({Need.REFERENCES})

    def fit(self, shadows, target):
        return self.load({"threshold": np.array(target.references.outputs[:, :60].max())})

    def load(self, arrays):
        return Attack(arrays["threshold"])


BAD_ADVERSARIES = {
    "order": (adversary(FirstHalf), "order of the points"),
    "company": (adversary(ByBatch), "asked together"),
    "duplicates": (adversary(DropsDuplicates), "asked twice"),
    "coin": (adversary(Coin), "decide is not margin|differ"),
    "turns": (adversary(Turns), "decide is not margin|one function"),
    "forgets what it learned": (adversary(Forgets, load=lambda self, arrays: Attack(9.0)), "leaves out"),
    "pickles": (adversary(Pickles), "not a plain array"),
    "probabilities": (adversary(Probabilities), "gave float64, not booleans"),
    "one for all": (adversary(OneForAll), r"score gave the shape \(\)"),
    "NaN": (adversary(Undefined), "score gave NaN"),
    "margin of another threshold": (adversary(OtherDecision), "decide is not margin"),
    "no margin": (adversary(NoMargin), "without margin"),
    "fits by chance": (adversary(fit=fits_by_chance), "learned different things"),
    "spoils the shadows": (adversary(fit=spoils_the_shadows), "read-only"),
    "fails": (adversary(fit=fails), "fitting raised ZeroDivisionError"),
    "learns from targets": (Learns, "after it was shown a target model it learns something else"),
    "knows where F is": (adversary(LowPlaces), "with F and T exchanged"),
    "fits on a part of D": (PlaceInReferences, "with F and T exchanged"),
    "no access": (adversary(access="logits"), "not an Access"),
    "odd needs": (adversary(needs={"shadows"}), "not a frozenset of Need"),
    "hidden white box": (adversary(needs=frozenset({Need.LANDSCAPE})), "says that it is black-box"),
    "no adversary": (object(), "lacks one of"),
}


def test_a_good_adversary_passes():
    check_adversary(Good)


@pytest.mark.parametrize(("bad", "words"), BAD_ADVERSARIES.values(), ids=BAD_ADVERSARIES)
def test_an_adversary_that_breaks_a_promise_is_named(bad, words):
    with pytest.raises(AssertionError, match=words):
        check_adversary(bad)


def test_an_adversary_that_draws_while_it_decides_is_not_exactly_0_on_a_shared_model():
    class CoinOfItsOwn(Attack):
        def decide(self, signals):
            return np.random.standard_normal(len(signals)) > 0  # noqa: NPY002

    from forgetgauge.testing.adversaries import _cannot_tell_the_sides_of_a_shared_model, _World

    with pytest.raises(AssertionError, match="not exactly 0"):
        _cannot_tell_the_sides_of_a_shared_model(adversary(CoinOfItsOwn), _World.make(Good(), 0, 1.5))


def test_an_answer_that_depends_on_what_was_asked_before_is_not_one_function():
    from forgetgauge.testing.adversaries import _is_one_function_for_both_sides, _World

    with pytest.raises(AssertionError, match="not one function for both sides"):
        _is_one_function_for_both_sides(adversary(Turns), _World.make(Good(), 0, 1.5))


def test_an_adversary_that_wins_on_noise_is_not_calibrated():
    with pytest.raises(AssertionError, match=r"an advantage of \+1.000"):
        _is_calibrated_on_noise(adversary(FirstHalf))


def test_what_is_registered_is_tested_on_all_it_asks_for():
    asked = {need for name in plugins.adversaries.entries for need in plugins.adversaries.load(name).needs}
    given = set()

    class Watches(Good):
        needs = frozenset(Need)
        access = Access.WHITE_BOX

        def fit(self, shadows: Panel, target):
            given.update(
                need
                for need, there in {
                    Need.REFERENCES: target.references is not None,
                    Need.OUTSIDERS: target.outsiders is not None,
                    Need.UNLEARNED: (shadows.role == -1).any(),
                    **{column: column in shadows.columns for column in COLUMNS},
                }.items()
                if there
            )
            return Good.fit(self, shadows, target)

        class attack(Attack):
            def score(self, signals: Signals):
                given.update({Need.BACKGROUND} if signals.background is not None else set())
                return super().score(signals)

    check_adversary(Watches)
    assert asked <= given == set(Need)
    assert isinstance(CONFIDENCE.load({"thresholds": np.zeros(4)}), ThresholdAttack)


def test_the_documents_example_is_a_test_that_passes(monkeypatch):
    text = (Path(__file__).parents[1] / "docs/your-own-method.md").read_text()
    block = next(block for block in re.findall(r"```python\n(.*?)```", text, re.S) if "check_unlearner" in block)
    monkeypatch.setitem(sys.modules, "my_module", types.SimpleNamespace(my_method=good))
    names: dict[str, object] = {}
    exec(compile(block, "your-own-method.md", "exec"), names)
    (test,) = [thing for name, thing in names.items() if name.startswith("test_")]
    test()
