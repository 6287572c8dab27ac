"""Programs that only tests need: without one its tests are left out, but never unnoticed."""

import os
import shutil
from typing import NoReturn

import pytest


def lacking(message: str) -> NoReturn:
    """Leave the test out for want of something; on a build machine (CI=true) that is a failure."""
    if os.environ.get("CI") == "true":
        pytest.fail(message)
    pytest.skip(message)


def required(program: str) -> str:
    """Return the path of a program that `make servers` installs."""
    found = shutil.which(program)
    if found is None:
        lacking(f"{program} is not installed: run `make servers`")
    return found
