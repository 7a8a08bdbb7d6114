import pytest

from forgetgauge import plugins
from forgetgauge.attack.adversary import Adversary, Attack
from forgetgauge.attack.signals import Signals

from .worlds import EVERY, World, draw_world, saturate, task_of


@pytest.fixture(scope="session", params=["distinct", "ties", "saturated"])
def world(request, adversary) -> World:
    drawn = draw_world(0, decimals=0 if request.param == "ties" else 6, task=task_of(adversary))
    return saturate(drawn) if request.param == "saturated" else drawn


@pytest.fixture(scope="session")
def plain_world(adversary) -> World:
    return draw_world(0, task=task_of(adversary))


@pytest.fixture(scope="session", params=EVERY)
def adversary(request) -> Adversary:
    return plugins.adversaries.load(request.param)


@pytest.fixture(scope="session")
def attack(adversary, world) -> Attack:
    return world.fit(adversary)


@pytest.fixture(scope="session")
def seen(adversary, world) -> Signals:
    return world.seen(adversary)
