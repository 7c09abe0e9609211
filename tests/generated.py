"""Generates files from the registries: `python -m tests.generated` writes it, and a test checks that it is new.

raybo/methods/keywords.py    all options of all methods, for type checkers
docs/*.md                    the tables of methods and schedulers, between two comments
"""

from __future__ import annotations

import re
import sys
import types
import typing
from collections.abc import Sequence
from dataclasses import fields
from pathlib import Path

from raybo import methods, schedulers

ROOT = Path(__file__).resolve().parent.parent
KEYWORDS = ROOT / "raybo" / "methods" / "keywords.py"
HEAD = '''\
"""The options of all methods with their types, for type checkers: so a misspelt keyword is found before the code runs.

Generated from the methods by `python -m tests.generated`. Each method's class, and `raybo methods`, document them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, TypedDict


class MethodOptions(TypedDict, total=False):
    """Lists the options of all methods by keyword."""

'''
BLOCK = re.compile(r"(<!-- generated: (\S+?)(?: (\S+))? -->\n)(.*?)(<!-- end -->)", re.DOTALL)


def kinds(hint: typing.Any) -> list[typing.Any]:
    """Return what a value may be, in order: literals by themselves, others by type, sequences as `Sequence[...]`."""
    origin = typing.get_origin(hint)
    if origin is typing.Literal:
        return list(typing.get_args(hint))
    if origin in (typing.Union, types.UnionType):
        return [kind for each in typing.get_args(hint) for kind in kinds(each)]
    if origin in (tuple, Sequence):
        return [Sequence[typing.get_args(hint)[0]]]
    return [hint]


def as_written(found: Sequence[typing.Any]) -> str:
    """The annotation of a value of any of these kinds; `str` includes words, and `float` whole numbers."""
    words = [] if str in found else [kind for kind in dict.fromkeys(found) if isinstance(kind, str)]
    order = [bool, int, float, str, Sequence[float], types.NoneType]
    rest = [kind for kind in order if kind in found and not (kind is int and float in found)]
    unknown = [kind for kind in found if not isinstance(kind, str) and kind not in order]
    assert not unknown, f"how are these written? {unknown}"
    names = {types.NoneType: "None", Sequence[float]: "Sequence[float]"}
    literal = [f"Literal[{', '.join(f'{chr(34)}{word}{chr(34)}' for word in words)}]"] if words else []
    return " | ".join([*literal, *(names.get(kind) or kind.__name__ for kind in rest)])


def keywords() -> str:
    """The text of keywords.py."""
    found: dict[str, list[typing.Any]] = {}
    for name in methods.METHODS:
        hints = typing.get_type_hints(methods.load(name))
        for field in fields(methods.load(name)):
            found.setdefault(field.name, []).extend(kinds(hints[field.name]))
    rows = [f"    {name}: {as_written(found[name])}\n" for name in sorted(found, key=lambda name: (name.lower(), name))]
    return HEAD + "".join(rows)


def first_sentence(of: typing.Any, name: str) -> str:
    """Return what it does, as its class begins; for a table."""
    paragraph = " ".join(of.describe(name)[0].partition("\n\n")[0].split())
    return paragraph.removesuffix(".").replace("|", "\\|")


def family(name: str) -> str:
    """The page of a method's family."""
    return methods.METHODS[name].split(".")[2].replace("_", "-")


def table(what: str, of: str | None) -> str:
    """The rows of "methods", of those of one family, or of "schedulers"."""
    if what == "schedulers":
        rows = [f"| `{name}` | {first_sentence(schedulers, name)} |" for name in schedulers.SCHEDULERS]
        return "\n".join(["| scheduler | what it does |", "|---|---|", *rows]) + "\n"
    if of is not None:
        names = [name for name in methods.METHODS if family(name) == of]
        rows = [f"| `{name}` | {first_sentence(methods, name)} |" for name in names]
        return "\n".join(["| method | what it does |", "|---|---|", *rows]) + "\n"
    rows = [f"| [`{name}`]({family(name)}.md) | {first_sentence(methods, name)} |" for name in methods.METHODS]
    return "\n".join(["| method | what it does |", "|---|---|", *rows]) + "\n"


def page(text: str) -> str:
    """A page with its generated tables."""
    return BLOCK.sub(lambda m: m[1] + table(m[2], m[3]) + m[5], text)


def generated() -> dict[Path, str]:
    """Every file that is generated, or has a generated table, as it should be."""
    files = {KEYWORDS: keywords()}
    for path in sorted((ROOT / "docs").glob("*.md")):
        text = path.read_text(encoding="utf-8")
        if BLOCK.search(text):
            files[path] = page(text)
    return files


if __name__ == "__main__":
    for path, text in generated().items():
        if path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")
            sys.stdout.write(f"wrote {path.relative_to(ROOT)}\n")
