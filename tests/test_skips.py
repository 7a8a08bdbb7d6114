"""CI does not pass over a test for want of something that it could have installed."""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
TESTS = """
import pytest
def test_runs(): pass
@pytest.mark.skipif(True, reason="GPU: torch sees none")
def test_gpu(): pass
def test_data(): pytest.skip("data: not here")
@pytest.mark.skip(reason="platform: Windows")
def test_platform(): pass
@pytest.mark.xfail(reason="known")
def test_known(): assert False
"""
UNWANTED = """
@pytest.mark.skipif(True, reason="the extra is not installed")
def test_extra(): pass
def test_inside(): pytest.skip("no GPU: said too late")
@pytest.mark.skip
def test_no_reason(): pass
@pytest.mark.parametrize("nothing", [])
def test_of_nothing(nothing): pass
"""
WHOLE = "import pytest\npytest.importorskip('no_such_module_of_ours', reason='the extra is not installed')\n"


def closing_line(folder: Path, ci: str) -> str:
    command = [sys.executable, "-m", "pytest", "-q", "-p", "tests.skips", "-p", "no:cacheprovider", str(folder)]
    env = {**os.environ, "CI": ci, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    command.append("--continue-on-collection-errors")
    done = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, check=False)
    return done.stdout.splitlines()[-1].rpartition(" in ")[0]


def test_a_skip_that_is_not_about_a_gpu_data_or_a_platform_fails_in_ci_and_there_alone(tmp_path):
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    (tmp_path / "test_it.py").write_text(TESTS + UNWANTED)
    (tmp_path / "test_whole.py").write_text(WHOLE)
    assert closing_line(tmp_path, "true") == "1 failed, 1 passed, 3 skipped, 1 xfailed, 4 errors"
    assert closing_line(tmp_path, "") == "1 passed, 8 skipped, 1 xfailed"
