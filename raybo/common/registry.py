"""Methods and schedulers by name: raybo's own by a short one, everybody's as "package.module:Class"."""

from __future__ import annotations

import dataclasses
import importlib
import importlib.util
import inspect
import json
import re
import sys
import typing
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Generic, NoReturn, TypeVar

from raybo.common.arguments import plain_text
from raybo.common.errors import MethodError
from raybo.common.messages import first_line, in_words, near, nearest, shown
from raybo.common.options import Options, read

T = TypeVar("T", bound=Options)
MISSPELT = 0.85  # likeness, from 0 to 1, from which an unknown attribute is taken for a misspelt one


def discover(directory: Path, package: str) -> dict[str, str]:
    """Return the home, "module:Class", of everything in a package's directory, by name; nothing is imported.

    A module whose docstring begins with the module's own name, with hyphens ("gp-ucb: ..."), is one of them; its class
    is called as the module is ("GpUcb"). Other modules hold what several share. The folder `default` comes first.
    """
    files = [file for file in directory.rglob("*.py") if file.parent != directory or file.name != "__init__.py"]
    homes = {}
    for file in sorted(files, key=lambda file: (file.parent.name != "default", file)):
        path = file.parent if file.name == "__init__.py" else file.with_suffix("")
        text, stem = file.read_text(encoding="utf-8"), path.name
        if re.match(rf'(?:#.*\n)*"""{stem.replace("_", "-")}: ', text):  # after a licence, say
            classes = re.findall(r"^(?:class |from \S+ import )(\w+)", text, re.MULTILINE)
            (cls,) = (name for name in classes if name.lower() == stem.replace("_", ""))
            homes[stem.replace("_", "-")] = f"{'.'.join([package, *path.relative_to(directory).parts])}:{cls}"
    return homes


@dataclass(frozen=True)
class Registry(Generic[T]):
    """All methods, or all schedulers.

    Attributes:
        kind: what they are, in messages: "method".
        base: the class from which each is derived.
        homes: raybo's own, "module:Class" by name.
        retired: those that are no longer offered, by name: the home, and why, with what to use instead. Journals name
            them, and whoever writes the home still gets one.
    """

    kind: str
    base: type[T]
    homes: Mapping[str, str]
    retired: Mapping[str, tuple[str, str]] = field(default_factory=dict)

    def load(self, given: object) -> type[T]:
        """Return the class of a name, of "package.module:Class", of an instance, or a class itself.

        Raises:
            MethodError: there is no such name, module or class (with the nearest name), it is none of this kind, or no
                longer offered.
        """
        if isinstance(given, self.base):
            given = type(given)
        if isinstance(given, str):
            given = plain_text(given)
        if isinstance(given, str) and given in self.homes:
            module, _, name = self.homes[given].partition(":")
            return typing.cast("type[T]", getattr(importlib.import_module(module), name))
        if isinstance(given, str) and given in self.retired:
            raise MethodError(f"the {self.kind} {given} is no longer offered: {self.retired[given][1]}")
        if isinstance(given, str) and ":" in given:
            given = self._imported(given)
        if not isinstance(given, type):
            known = list(self.homes)
            remedy = nearest(given, known) if isinstance(given, str) else f"; derive its class from {self._base}"
            raise MethodError(f"there is no {self.kind} {shown(given)}{remedy}")
        if not self._own_name(given):
            _check(self, given)
        return typing.cast("type[T]", given)

    def kept(self, name: str) -> str:
        """Return what `load` takes for a name in a journal: of a retired one the home, otherwise the name."""
        return self.retired[name][0] if name in self.retired else name

    def make(self, given: object, options: Mapping[str, Any]) -> T:
        """Return one with its options; one that is made already is returned as it is.

        Raises:
            MethodError: as `load`; an option or a value is wrong; or options are given beside a made one.
        """
        if isinstance(given, self.base):
            self.load(given)
            if options:
                raise MethodError(
                    f"{self.label(given)} is made already, with its options; leave out {', '.join(options)}"
                )
            return given
        cls, label = self.load(given), self.label(given)
        values = read(label, cls, options)
        try:
            return cls(**values)
        except MethodError as error:  # it does not know its name
            raise MethodError(f"{label}: {error}") from None
        except TypeError as error:
            needed = (f.name for f in dataclasses.fields(cls) if f.init and _is_required(f))
            if missing := next((name for name in needed if name not in values), ""):
                raise MethodError(f"{label} needs the option {missing}") from None
            raise MethodError(f"{label}: {in_words(error)}") from error

    def label(self, given: object) -> str:
        """Return the name of anything that `load` takes, for messages."""
        if isinstance(given, str):
            return given
        cls = given if isinstance(given, type) else type(given)
        return self._own_name(cls) or f"{cls.__module__}:{cls.__qualname__}"

    def name_of(self, given: object) -> str:
        """Return the name by which a journal keeps it, and by which another process finds it.

        Raises:
            MethodError: as `load`; or no other process could find its class.
        """
        if isinstance(given, str) and {plain_text(given)} & {*self.homes, *self.retired}:
            return plain_text(given)
        cls = self.load(given)
        if own := self._own_name(cls):
            return own
        if cls.__module__ == "__main__":
            self._refuse(
                cls, "is defined in the script that runs, which no other process imports; put it into a module"
            )
        if "<locals>" in cls.__qualname__:
            self._refuse(cls, "is defined in a function, where nobody finds it again; define it at the top of a module")
        name = f"{cls.__module__}:{cls.__qualname__}"
        try:
            found = _found(importlib.import_module(cls.__module__), cls.__qualname__)
            is_importable = found is cls and importlib.util.find_spec(cls.__module__) is not None
        except (ImportError, ValueError):
            is_importable = False
        if not is_importable:
            self._refuse(cls, f"is not found again under its name, {name}; put it into a module that can be imported")
        return name

    def options_of(self, given: object, made: T, options: Mapping[str, Any]) -> dict[str, Any]:
        """Return the options that a journal keeps: those that were given or, of an instance, that are not defaults.

        Raises:
            MethodError: one is not a JSON value.
        """
        names = set(options)
        if isinstance(given, self.base):
            names = {f.name for f in dataclasses.fields(made) if not _is_default(f, getattr(made, f.name))}
        values = read(self.label(made), type(made), {name: getattr(made, name) for name in sorted(names)})
        for name, value in values.items():
            try:
                json.dumps(value, allow_nan=False)
            except (TypeError, ValueError):
                raise MethodError(
                    f"{self.label(given)}: a journal keeps numbers, text and lists of them, got {name}={shown(value)}"
                ) from None
        return values

    def describe(self, given: object) -> tuple[str, list[tuple[str, Any, str]]]:
        """Return its docstring, and its options as (name, default, meaning)."""
        cls = self.load(given)
        fields = [(f.name, _default(f), f.metadata.get("meaning", "")) for f in dataclasses.fields(cls)]
        return inspect.cleandoc(cls.__doc__ or ""), fields

    @property
    def _base(self) -> str:
        return f"{self.base.__module__.rpartition('.')[0]}.{self.base.__name__}"

    def _own_name(self, cls: type) -> str:
        """Return the short name of a class of raybo's own; empty if it is not."""
        if not cls.__module__.startswith("raybo."):
            return ""
        place = f"{cls.__module__}:{cls.__qualname__}"
        if name := next((name for name, (home, _) in self.retired.items() if home == place), ""):
            return name
        known = (name for name, home in self.homes.items() if home.endswith(f":{cls.__name__}"))
        return next((name for name in known if self.load(name) is cls), "")

    def _imported(self, text: str) -> object:
        """Import and return the object at "package.module:Class"."""
        module, _, name = text.partition(":")
        whose = f"the {self.kind} {text}"
        if not all(part.isidentifier() for part in [*module.split("."), *name.split(".")]):
            raise MethodError(f"there is no {self.kind} {text!r}; write its module and class, as package.module:Class")
        if not {"", str(Path.cwd())} & set(sys.path):
            sys.path.append(str(Path.cwd()))  # as `python -m`
        try:
            return _found(importlib.import_module(module), name)
        except ModuleNotFoundError as error:
            if error.name and f"{module}.".startswith(f"{error.name}."):
                raise MethodError(
                    f"{whose} cannot be imported: there is no module {error.name} here; install its package, or add "
                    "its directory to PYTHONPATH"
                ) from None
            raise MethodError(f"{whose} cannot be imported: {first_line(error)}") from error
        except AttributeError:
            classes = [key for key, value in vars(sys.modules[module]).items() if isinstance(value, type)]
            meant = f"; did you mean {near(name, classes)!r}?" if near(name, classes) else ""
            raise MethodError(f"{whose} cannot be imported: {module} has no class {name}{meant}") from None
        except (Exception, SystemExit) as error:  # whatever the user's module raises
            raise MethodError(f"{whose} cannot be imported: {in_words(error)}") from error

    def _refuse(self, cls: type, why: str) -> NoReturn:
        raise MethodError(f"the {self.kind} {cls.__qualname__} {why}")


def _found(module: Any, qualified: str) -> Any:
    found = module
    for name in qualified.split("."):
        found = getattr(found, name)
    return found


def _is_required(field: dataclasses.Field[Any]) -> bool:
    return field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING


def _default(field: dataclasses.Field[Any]) -> Any:
    if field.default_factory is not dataclasses.MISSING:
        return field.default_factory()
    return None if field.default is dataclasses.MISSING else field.default


def _is_default(field: dataclasses.Field[Any], value: Any) -> bool:
    return not _is_required(field) and bool(value == _default(field)) and type(value) is type(_default(field))


def _check(registry: Registry[Any], cls: type) -> None:
    """Refuse a class that is not of this kind, or would not do what its author means."""
    base, refuse = registry.base, registry._refuse
    if not issubclass(cls, base):
        refuse(cls, f"is not a {registry.kind}: derive it from {registry._base}")
    annotations = inspect.get_annotations(cls).items()
    if "__dataclass_params__" not in vars(cls) and any("ClassVar" not in str(hint) for _, hint in annotations):
        refuse(cls, "has options; decorate it with @dataclass(frozen=True, kw_only=True)")
    expected = {name: each for name, each in inspect.getmembers_static(base) if not name.startswith("_")}
    options = {f.name for f in dataclasses.fields(cls)}
    expected = {name: each for name, each in expected.items() if name not in {f.name for f in dataclasses.fields(base)}}
    for name in sorted({name for kind in cls.__mro__ if kind not in base.__mro__ for name in vars(kind)} | options):
        if name in expected:
            _check_part(registry, cls, name, expected[name], name in options)
        elif not name.startswith("_") and not hasattr(base, name) and (meant := near(name, list(expected), MISSPELT)):
            refuse(cls, f"has {name!r}, which no {registry.kind} has; did you mean {meant!r}? Else begin it with _")
    if missing := sorted(getattr(cls, "__abstractmethods__", ())):
        refuse(cls, f"has no function {missing[0]}({_parameters(expected[missing[0]])})")
    try:
        typing.get_type_hints(cls)
    except Exception as error:  # noqa: BLE001  # whatever an annotation evaluates to
        refuse(cls, f"has options whose types cannot be read: {in_words(error)}")


def _check_part(registry: Registry[Any], cls: type, name: str, expected: Any, is_option: bool) -> None:
    """Refuse an attribute of another kind than the base's, or a function of other parameters."""
    part = inspect.getattr_static(cls, name)
    if isinstance(expected, bool):
        if is_option or not isinstance(part, bool):
            registry._refuse(cls, f"must declare {name}: ClassVar[bool] = True or False; it is not an option")
        return
    try:
        inspect.signature(part).bind(*inspect.signature(expected).parameters)
    except (TypeError, ValueError):
        registry._refuse(cls, f"must have a function {name}({_parameters(expected)})")


def _parameters(function: Any) -> str:
    """Return the parameters of a method of a class, as its user writes them."""
    return ", ".join([*inspect.signature(function).parameters][1:])
