import pytest

from .worlds import draw_shadows, draw_signals


@pytest.fixture(scope="session", params=[6, 0], ids=["distinct", "ties"])
def shadows(request):
    return draw_shadows(400, 0, decimals=request.param)


@pytest.fixture(scope="session", params=[6, 0], ids=["distinct", "ties"])
def seen(request):
    return draw_signals(300, 99, decimals=request.param)
