"""Finding the topics and pipelines that a project declares."""

import importlib
import importlib.util
import sys
import traceback
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, TypeVar

from penstock.errors import PenstockError, SettingsError

if TYPE_CHECKING:
    from penstock.log import Topic
    from penstock.pipeline import Pipeline

T = TypeVar("T")


def declared_topics(modules: tuple[str, ...]) -> "list[Topic[Any]]":
    """Return every topic that stands in the modules, by name; a module is `shop.topics` or `shop.py`."""
    from penstock.log import Topic

    found = _declared(modules, Topic)
    return [found[name] for name in sorted(found)]


def declared_pipeline(name: str, modules: tuple[str, ...]) -> "Pipeline":
    """Return the pipeline of this name, or say which ones the modules declare."""
    from penstock.pipeline import Pipeline

    found = _declared(modules, Pipeline)
    if name not in found:
        raise SettingsError(
            f"the modules {', '.join(modules)} declare no pipeline {name!r}",
            hint=f"they declare {', '.join(found) or 'none'}",
        )
    return found[name]


def declared_pipelines(modules: tuple[str, ...]) -> "dict[tuple[str, str], Pipeline]":
    """Return every pipeline that the modules declare, by its module and the variable that it is in."""
    from penstock.pipeline import Pipeline

    return {
        (module.__name__, variable): value
        for module in loaded_modules(modules)
        for variable, value in vars(module).items()
        if isinstance(value, Pipeline)
    }


def loaded_modules(modules: tuple[str, ...]) -> list[ModuleType]:
    """Import modules by their names or files; at least one has to be named."""
    if not modules:
        raise SettingsError(
            "no module is named",
            hint='name one (`shop.flows` or `shop.py`), or set modules = ["shop.flows"] in penstock.toml',
        )
    return [_load(module) for module in modules]


def _declared(modules: tuple[str, ...], kind: type[T]) -> dict[str, T]:
    return {
        value.name: value  # type: ignore[attr-defined]
        for module in loaded_modules(modules)
        for value in vars(module).values()
        if isinstance(value, kind)
    }


def declared_topic(name: str, modules: tuple[str, ...]) -> "Topic[Any] | None":
    """Return the topic of this name if the modules declare it."""
    if not modules:
        return None
    return next((topic for topic in declared_topics(modules) if topic.name == name), None)


def _load(name: str) -> ModuleType:
    if name.endswith(".py"):
        return _load_file(Path(name))
    if str(Path.cwd()) not in sys.path:
        sys.path.insert(0, str(Path.cwd()))
    try:
        return importlib.import_module(name)
    except PenstockError:
        raise
    except Exception as error:
        raise _not_importable(name, error) from error


def _load_file(path: Path) -> ModuleType:
    if not path.is_file():
        raise SettingsError(f"there is no file {str(path)!r}")
    spec = importlib.util.spec_from_file_location(path.stem, path)
    if spec is None or spec.loader is None:
        raise SettingsError(f"{str(path)!r} is not a Python file")
    folder = str(path.resolve().parent)
    if folder not in sys.path:
        sys.path.append(folder)  # Spark's workers import it by its name, and it may import its neighbours
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module  # dataclasses look their module up by name
    try:
        spec.loader.exec_module(module)
    except PenstockError:
        raise
    except Exception as error:
        sys.modules.pop(path.stem, None)
        raise _not_importable(str(path), error) from error
    return module


def _not_importable(name: str, error: Exception) -> PenstockError:
    """Return the error of a module's own code, with its place."""
    frames = traceback.extract_tb(error.__traceback__)
    place = f"{error.filename}:{error.lineno}" if isinstance(error, SyntaxError) else _place(frames)
    return SettingsError(
        f"module {name!r} can't be imported: {type(error).__name__}: {error}", hint=f"see {place}"
    )


def _place(frames: traceback.StackSummary) -> str:
    return f"{frames[-1].filename}:{frames[-1].lineno}"
