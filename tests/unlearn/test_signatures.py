"""Our signature or the competition's: what tells, what does not, and what of it a job's identity holds."""

import functools
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch.utils.data import DataLoader

import forgetgauge
from forgetgauge.data.dataset import Points
from forgetgauge.errors import UserError
from forgetgauge.run.resolve import resolve
from forgetgauge.testing import check_unlearner
from forgetgauge.unlearn.own import CompetitionUnlearner, as_unlearner
from forgetgauge.unlearn.signatures import settled, signature_of
from forgetgauge.unlearn.ssd import SSD
from forgetgauge.unlearn.unlearner import Context, FunctionUnlearner

from .test_competition import context_of
from .world import make_world


class Callable:
    def __call__(self, net, retain, forget, validation):
        return net


class Unlearner:
    def unlearn(self, net, retain, forget, val_loader):
        return net


class Ours:
    def unlearn(self, a, retain, forget, d):
        return a


def longer(net, retain_loader, forget_loader, val_loader, class_weights=None):
    return net


COMPETITION = [
    lambda net, retain, forget, validation: net,
    lambda net, retain, forget, val: net,
    lambda n, r, f, v: n,
    lambda net, retain, forget, val=None, epochs=3: net,
    lambda net, retain, forget, valid_set: net,
    lambda net, retain, forget, test_set: net,
    lambda net, retain, forget, _val: net,
    lambda model, train_loader, unlearn_loader, other: model,
    lambda model, retain_dl, forget_dl, other: model,
    lambda net, retain_loader, forget_loader, val_loader: net,
    lambda model, forget_loader, retain_loader, validation_loader: model,
    lambda net, epochs=3, *, retain_loader, forget_loader, val_loader: net,
    longer,
    functools.partial(longer, class_weights=1),
    functools.partial(lambda net, epochs, retain, forget, validation: net, epochs=3),
    Callable(),
    Unlearner(),
]


def annotated_ours(m: Any, r: Points, f: Points, x: Any):
    return m


def annotated_context(m: Any, r: Any, f: Any, x: "Context"):
    return m


def annotated_theirs(m: Any, r: DataLoader, f: "DataLoader[Any]", x: Any):
    return m


OURS = [
    lambda model, retain, forget, context: model,
    lambda model, retain, forget, ctx: model,
    lambda m, r, f, c: m,
    lambda model, retain, forget, _context: model,
    lambda model, retain, forget, context=None, lr=0.1: model,
    lambda model, retain, forget, *, context: model,
    lambda model, forget, retain, context: model,
    annotated_ours,
    annotated_context,
    functools.partial(lambda model, retain, forget, context, lr: model, lr=0.1),
    Ours(),
]

AMBIGUOUS = [
    lambda a, b, c, d: a,
    lambda model, retain, forget, _: model,
    lambda net, retain, forget, lr=0.1: net,
    lambda net, retain_loader, forget_loader, context: net,
    lambda *args: args[0],
    lambda net, *loaders, **settings: net,
]


@pytest.mark.parametrize("function", [*COMPETITION, annotated_theirs])
def test_the_competitions_signature_is_recognised(function):
    assert signature_of(function) == "competition"
    assert isinstance(as_unlearner(function, {}), CompetitionUnlearner)


@pytest.mark.parametrize("function", OURS)
def test_our_own_signature_is_recognised(function):
    assert signature_of(function) == "forgetgauge"
    assert isinstance(as_unlearner(function, {}), FunctionUnlearner)


@pytest.mark.parametrize("function", AMBIGUOUS)
def test_what_tells_neither_is_refused_in_one_line_that_names_the_key(function):
    with pytest.raises(UserError, match=r'say signature = "forgetgauge" or signature = "competition"$') as refusal:
        signature_of(function)
    assert "\n" not in str(refusal.value)
    for stated in ("forgetgauge", "competition"):
        assert signature_of(function, stated) == stated
    assert isinstance(as_unlearner(function, {"signature": "competition"}), CompetitionUnlearner)


def test_our_own_methods_and_what_inherits_them_are_left_as_they_are():
    class Mine(SSD):
        pass

    for thing in (SSD, Mine):
        assert type(as_unlearner(thing, {"alpha": 2.0})) is thing
    assert isinstance(as_unlearner(SimpleNamespace(unlearn=OURS[0]), {}), FunctionUnlearner)


def test_what_is_no_method_is_refused_whatever_is_stated():
    for stated in (None, "competition"):
        with pytest.raises(UserError, match=r"^'<lambda>\(net, retain\)' is no method: one takes \(model, retain"):
            signature_of(lambda net, retain: net, stated)


def test_a_signature_that_there_is_not_is_one_line_with_the_nearest():
    with pytest.raises(UserError, match="unknown signature 'competitions'; did you mean 'competition'"):
        signature_of(longer, "competitions")


@pytest.mark.parametrize(
    "function",
    [
        lambda net, retain, forget, validation: seen(retain, forget, validation),
        lambda net, forget, retain, validation: seen(retain, forget, validation),
        lambda net, validation, retain, forget: seen(retain, forget, validation),
        lambda net, forget_loader, retain_loader, val_loader, /: seen(retain_loader, forget_loader, val_loader),
        lambda net, r, f, validation: seen(r, f, validation),
        lambda net, retain, forget, *, validation: seen(retain, forget, validation),
        functools.partial(lambda net, k, retain, forget, validation: seen(retain, forget, validation), k=3),
    ],
)
def test_loaders_go_to_the_parameters_that_are_meant_for_them(function):
    world = make_world()
    context = context_of(world)
    with pytest.raises(Seen) as what:
        as_unlearner(function, {}).unlearn(world.original, world.retain, world.forget, context)
    assert what.value.args == tuple(len(part) for part in (world.retain, world.forget, context.validation))


class Seen(Exception):
    pass


def seen(*loaders):
    raise Seen(*(len(loader.dataset) for loader in loaders))


def test_sets_go_to_the_parameters_that_are_meant_for_them_in_our_signature_too():
    def swapped(model, forget, retain, *, context, note):
        raise Seen(len(retain), len(forget), note)

    world = make_world()
    with pytest.raises(Seen) as what:
        as_unlearner(swapped, {"note": "x"}).unlearn(world.original, world.retain, world.forget, world.context())
    assert what.value.args == (len(world.retain), len(world.forget), "x")


SETS = [
    "model, D_r, D_f, ctx",
    "model, D_f, D_r, ctx",
    "model, Df, Dr, ctx",
    "model, DF, DR, ctx",
    "net, df_loader, dr_loader, val_loader",
    "net, dfLoader, drLoader, valLoader",
    "net, f_loader, r_loader, val_loader",
    "net, loader_f, loader_r, val_loader",
    "model, f, r, c",
    "model, forget, r, c",
    "model, D_u, D_r, ctx",
    "net, unlearn_loader, train_loader, val_loader",
    "net, trainloader, unlearnloader, testloader",
    "model, erase, keep, ctx",
    "model, delete, rest, ctx",
    "model, removed, kept, ctx",
    "model, remove, k, ctx",
    "model, forgotten, not_forgotten, ctx",
    "model, non_retained, retained, ctx",
    "model, forget, everything_else, ctx",
    "net, forget, retain, test_retain",
    "net, val, df, dr",
    "model, forget_set, remaining_after_forget, ctx",
]


def function_with(parameters, body="seen_sets"):
    return eval(f"lambda {parameters}: {body}(locals())", {body: globals()[body]})  # noqa: S307


def seen_sets(given):
    def size(names):
        found = [value for name, value in given.items() if name in names]
        return len(getattr(found[0], "dataset", found[0]))

    raise Seen(size(RETAINED), size(FORGOTTEN))


RETAINED = (
    *("D_r", "Dr", "DR", "dr_loader", "drLoader", "r_loader", "loader_r", "r", "train_loader", "trainloader", "keep"),
    *("rest", "kept", "k", "not_forgotten", "retained", "everything_else", "retain", "dr", "remaining_after_forget"),
)
FORGOTTEN = (
    *("D_f", "Df", "DF", "df_loader", "dfLoader", "f_loader", "loader_f", "f", "forget", "D_u", "unlearn_loader"),
    *("unlearnloader", "erase", "delete", "removed", "remove", "forgotten", "non_retained", "df", "forget_set"),
)


@pytest.mark.parametrize("parameters", SETS)
def test_a_set_goes_where_its_name_says_whatever_people_call_it(parameters):
    world = make_world()
    with pytest.raises(Seen) as what:
        as_unlearner(function_with(parameters), {}).unlearn(
            world.original, world.retain, world.forget, context_of(world)
        )
    assert what.value.args == (len(world.retain), len(world.forget))


UNTOLD = [
    "model, a, b, ctx",
    "model, first, second, context",
    "net, loader_a, loader_b, val_loader",
    "model, r, k, ctx",  # removed and kept?
    "model, r, x, ctx",
    "model, retain_a, retain_b, ctx",
    "net, train_loader, retain, forget",  # all data are nothing that a method is given
    "net, retain_loader, forget_loader, train_loader",
]


@pytest.mark.parametrize("parameters", UNTOLD)
def test_where_no_name_tells_the_two_sets_apart_it_is_refused_in_one_line(parameters):
    function = function_with(parameters)
    with pytest.raises(UserError, match="does not tell which parameter is which: call the sets ") as refusal:
        as_unlearner(function, {})
    assert "\n" not in str(refusal.value)
    with pytest.raises(AssertionError, match="which parameter is which"):
        check_unlearner(function)
    with pytest.raises(UserError, match=r"^evaluate: unlearners\.mine: '<lambda>\("):
        forgetgauge.evaluate(unlearner={"mine": function}, **SMALL)


def test_a_stated_signature_tells_the_order_of_the_sets_too():
    def mine(model, a, b, ctx):
        raise Seen(len(a), len(b))

    assert settled(mine, {"signature": "forgetgauge"}) == {"signature": "forgetgauge"}
    world = make_world()
    made = as_unlearner(mine, {"signature": "forgetgauge"})
    with pytest.raises(Seen) as what:
        made.unlearn(world.original, world.retain, world.forget, world.context())
    assert what.value.args == (len(world.retain), len(world.forget))


# -- in a run file -----------------------------------------------------------------------------------------------------


def bare(a, b, c, d, lr=0.1):
    assert lr == 0.2
    for inputs, _labels in b:
        assert isinstance(inputs, torch.Tensor)
    return a


SMALL = {"pairs": 1, "fraction": 0.2, "shadows": 2, "learner": {"epochs": 1}, "adversaries": ["confidence"]}


def test_a_run_says_the_signature_and_the_function_does_not_get_it():
    how = {"method": bare, "signature": "competition", "lr": 0.2, "batch_size": 16}
    result = forgetgauge.evaluate(unlearner={"mine": how}, **SMALL)
    assert result.failures == []


@pytest.mark.parametrize(
    ("how", "line"),
    [
        ({}, r"^evaluate: unlearners.mine: 'bare\(a, b, c, d, lr\)' does not tell .* signature = "),
        ({"signature": "kaggle"}, "unlearners.mine: unknown signature 'kaggle'"),
        ({"signature": "competition", "rl": 0.2}, "unlearners.mine: unknown key 'rl'; did you mean 'lr'"),
        ({"signature": "forgetgauge", "batch_size": 2}, "unlearners.mine: unknown key 'batch_size'"),
    ],
)
def test_a_wrong_table_is_refused_before_anything_is_trained(how, line):
    with pytest.raises(UserError, match=line):
        forgetgauge.evaluate(unlearner={"mine": {"method": bare, **how}}, **SMALL)


def test_a_parameter_that_nothing_gives_is_refused():
    def wants(model, retain, forget, context, teacher):
        return model

    with pytest.raises(UserError, match=r"it needs 'teacher', which nothing gives it: set teacher beside its method"):
        forgetgauge.evaluate(unlearner=[wants], **SMALL)


def test_signature_is_no_key_of_what_we_ship():
    with pytest.raises(UserError, match=r"unlearners\.ssd: unknown key 'signature'"):
        resolve({"unlearners": {"ssd": {"signature": "competition"}}, "adversaries": ["confidence"]}, "a test")


def test_a_jobs_identity_holds_the_signature_only_where_the_parameters_do_not_tell():
    assert settled(longer, {"signature": "competition", "batch_size": 8}) == {"batch_size": 8}
    assert settled(longer, {}) == {}
    assert settled(longer, {"signature": "forgetgauge"}) == {"signature": "forgetgauge"}
    assert settled(bare, {"signature": "competition", "lr": 0.2}) == {"signature": "competition", "lr": 0.2}
    assert settled(Ours(), {"signature": "forgetgauge"}) == settled(Ours(), {}) == {}


def test_the_contract_takes_the_signature_too():
    def loops(a, b, c, d):
        for _x, _y in b:
            pass

    check_unlearner(loops, signature="competition")
    with pytest.raises(AssertionError, match="signature = "):
        check_unlearner(loops)
