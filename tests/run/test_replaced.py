"""What a method changes of torch and numpy is put back, and the method is refused; what torch changes itself is not."""

from __future__ import annotations

import copy
import subprocess
import sys
import types
import warnings

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn

import forgetgauge
from forgetgauge.errors import UserError, WrongOutput
from forgetgauge.run.side_effects import functions_kept, replaced_at_import

TINY = {"data": "digits", "pairs": 2, "alpha": 0.5, "adversaries": ["loss"], "shadows": 4, "progress": False}


def forget_what_is_mine():
    for where in (torch, F, nn.Linear):
        if "of_mine" in vars(where):
            delattr(where, "of_mine")


@pytest.fixture(autouse=True)
def cleared():
    yield
    forget_what_is_mine()


def nothing(*_, **__):
    return None


REPLACED = [
    (torch.nn.functional, "cross_entropy", nothing),
    (torch.nn.functional, "relu", torch.nn.functional.gelu),
    (torch, "matmul", nothing),
    (torch, "randperm", nothing),
    (torch.Tensor, "backward", nothing),
    (torch.Tensor, "add", nothing),  # inherited
    (torch.Tensor, "__mul__", nothing),
    (nn.Module, "__call__", nothing),
    (nn.Linear, "forward", nothing),
    (nn.Linear, "__call__", nothing),  # inherited
    (nn.ReLU, "forward", nn.GELU.forward),
    (nn.CrossEntropyLoss, "forward", nothing),
    (nn.init, "kaiming_uniform_", nothing),
    (torch.optim.SGD, "step", nothing),
    (torch.optim.Adam, "zero_grad", nothing),  # inherited
    (torch.optim.AdamW, "step", torch.optim.SGD.step),
    (sys.modules["torch.optim.sgd"], "sgd", nothing),
    (torch.utils.data.DataLoader, "__iter__", nothing),
    (torch._C._nn, "cross_entropy_loss", nothing),
    (np, "argsort", nothing),
    (np.random, "permutation", nothing),
    (np.random, "default_rng", nothing),
]


@pytest.mark.parametrize(("where", "name", "by"), REPLACED, ids=lambda part: getattr(part, "__name__", str(part)))
def test_what_was_replaced_is_put_back_and_named(where, name, by):
    def replace() -> None:
        with functions_kept():
            setattr(where, name, by)

    before = dict(vars(where))
    whole = f"{where.__module__}.{where.__qualname__}" if isinstance(where, type) else where.__name__
    with pytest.raises(WrongOutput, match=rf"it replaced {whole}\.{name}, by which every method is trained"):
        replace()
    now = dict(vars(where))
    assert now.keys() == before.keys()
    assert all(now[one] is before[one] for one in before)


@pytest.mark.parametrize(
    "register",
    [
        nn.modules.module.register_module_forward_hook,
        nn.modules.module.register_module_forward_pre_hook,
        sys.modules["torch.optim.optimizer"].register_optimizer_step_pre_hook,
    ],
)
def test_a_hook_that_is_left_for_all_models_is_removed_and_named(register):
    def leave() -> None:
        with functions_kept():
            register(nothing)

    with functions_kept():
        register(nothing).remove()
    with pytest.raises(WrongOutput, match="left a hook that is registered for all models"):
        leave()
    assert not nn.modules.module._global_forward_hooks


def trained(model, retain, forget, context):
    model = copy.deepcopy(model)
    optimiser = torch.optim.NAdam(model.parameters())
    F.cross_entropy(model(retain.x), retain.y).backward()
    optimiser.step()
    return model


def by_other_optimisers():
    weight = nn.Parameter(torch.ones(2))
    for kind in (torch.optim.Rprop, torch.optim.Adamax, torch.optim.AdamW, torch.optim.LBFGS):
        optimiser = kind([weight])
        optimiser.step(lambda: (weight**2).sum())


def by_hooks():
    model = nn.Sequential(nn.Linear(2, 2), nn.ReLU())
    handle = model[0].register_forward_hook(nothing)
    model[0].weight.register_hook(lambda gradient: gradient * 2)
    model(torch.ones(1, 2)).sum().backward()
    handle.remove()


def by_func():
    model = nn.Linear(2, 2)
    weights = dict(model.named_parameters())
    torch.func.vmap(torch.func.grad(lambda w, x: torch.func.functional_call(model, w, (x,)).sum()), (None, 0))(
        weights, torch.ones(3, 2)
    )


def by_parametrisation():
    model = nn.Linear(2, 2)
    nn.utils.parametrizations.weight_norm(model)
    nn.utils.parametrize.register_parametrization(model, "bias", nn.Identity())
    copy.deepcopy(model)(torch.ones(1, 2))


def by_compiling():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        torch.compile(nn.Linear(2, 2), backend="eager")(torch.ones(1, 2))


def by_scripts():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        torch.jit.script(nn.Linear(2, 2))(torch.ones(1, 2))
    torch.fx.symbolic_trace(nn.Linear(2, 2))(torch.ones(1, 2))


def by_a_name_of_ones_own():
    torch.of_mine = F.of_mine = nn.Linear.of_mine = nothing


def by_putting_back():
    before, F.cross_entropy = F.cross_entropy, nothing
    F.cross_entropy = before


HARMLESS = [by_other_optimisers, by_hooks, by_func, by_parametrisation, by_compiling, by_scripts]
HARMLESS += [by_a_name_of_ones_own, by_putting_back]


@pytest.mark.parametrize("does", HARMLESS)
def test_what_a_method_may_do_is_not_refused(does):
    with functions_kept():
        does()


def test_what_torch_does_when_it_is_first_used_is_not_refused():
    """In a process where no optimiser was made, and nothing compiled, before."""
    program = (
        "from tests.run.test_replaced import HARMLESS\nfrom forgetgauge.run.side_effects import functions_kept\n"
        "for does in HARMLESS:\n    with functions_kept():\n        does()\nprint('all')"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "all\n"), done.stderr


def with_another_loss(model, retain, forget, context):
    before = F.cross_entropy
    F.cross_entropy = lambda a, b, **more: before(a, b, label_smoothing=0.8)
    return copy.deepcopy(model)


def test_a_method_that_changes_the_loss_of_all_is_refused_before_anything_is_trained():
    before = F.cross_entropy
    words = r"unlearners.mine: it replaced torch.nn.functional.cross_entropy.*nothing was trained"
    with pytest.raises(UserError, match=words) as refused:
        forgetgauge.evaluate(unlearner={"retrain": {}, "mine": {"method": with_another_loss}}, **TINY)
    assert "\n" not in str(refused.value)
    assert F.cross_entropy is before


def test_its_jobs_fail_where_nothing_was_tried_and_the_others_are_as_without_it():
    alone = forgetgauge.evaluate(unlearner=["none"], **TINY).methods["none"]
    methods = {"mine": {"method": with_another_loss}, "none": {}}
    result = forgetgauge.evaluate(unlearner=methods, on_failure="record", **TINY)
    assert result.methods["mine"].quality is None
    assert "torch.nn.functional.cross_entropy" in result.failures[0].error
    assert result.methods["none"].utility == alone.utility


def test_without_torch_nothing_of_it_is_watched(monkeypatch):
    for name in [name for name in sys.modules if name.partition(".")[0] == "torch"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "one_more", types.ModuleType("one_more"))
    with functions_kept():
        pass
    assert "torch" not in sys.modules


def test_what_was_replaced_before_anything_ran_is_named(monkeypatch, recwarn):
    def plain(model, retain, forget, context):
        return copy.deepcopy(model)

    before = F.cross_entropy
    monkeypatch.setattr(F, "cross_entropy", lambda *given, **more: before(*given, **more))
    forgetgauge.evaluate(unlearner={"mine": {"method": plain}}, **TINY)
    said = [str(one.message) for one in recwarn if "is code of" in str(one.message)]
    assert len(said) == 1, said
    assert said[0].startswith("torch.nn.functional.cross_entropy is code of")
    assert __file__ in said[0]


def test_nothing_of_torchs_own_is_taken_for_the_users():
    for does in HARMLESS:
        does()
    forget_what_is_mine()
    assert replaced_at_import() == []
