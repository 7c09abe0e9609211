"""The remedy for a missing optional package works as it is printed."""

from __future__ import annotations

import json
from importlib import metadata

import pytest

import raybo
from raybo.common.errors import install_command
from raybo.methods.explaining import reading_tags


@pytest.mark.parametrize(
    ("origin", "remedy"),
    [
        ({"url": "file:///elsewhere/a%20clone", "dir_info": {"editable": True}}, "-e '/elsewhere/a clone[plot]'"),
        ({"url": "file:///elsewhere/raybo", "dir_info": {}}, "'raybo[plot] @ file:///elsewhere/raybo'"),
        ({"url": "file:///x/raybo-1.whl", "archive_info": {}}, "'raybo[plot] @ file:///x/raybo-1.whl'"),
        (
            {"url": "https://host/raybo.git", "vcs_info": {"vcs": "git", "commit_id": "0"}},
            "'raybo[plot] @ git+https://host/raybo.git'",
        ),
        (None, "'raybo[plot]'"),
    ],
)
def test_the_command_is_that_of_this_installation(origin, remedy, monkeypatch):
    class Installed:
        def read_text(self, name):
            return json.dumps(origin) if origin and name == "direct_url.json" else None

    monkeypatch.setattr(metadata, "distribution", lambda name: Installed())
    assert install_command("plot") == f"pip install {remedy}"


def test_install_command_in_a_clone_is_the_readmes(monkeypatch, tmp_path):
    class Installed:
        def read_text(self, name):
            return json.dumps({"url": tmp_path.as_uri(), "dir_info": {"editable": True}})

    monkeypatch.setattr(metadata, "distribution", lambda name: Installed())
    monkeypatch.chdir(tmp_path)
    assert install_command("plot") == "pip install -e '.[plot]'"


def test_install_command_defaults_to_the_package_index(monkeypatch):
    def absent(name):
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(metadata, "distribution", absent)
    assert install_command("plot") == "pip install 'raybo[plot]'"


@pytest.mark.parametrize(
    ("wrong", "kind"),
    [
        (lambda: raybo.Space({"x": 1}), ValueError),
        (lambda: raybo.Searcher({"x": raybo.Float(0, 1)}, "gp-ubc"), ValueError),
        (lambda: raybo.Searcher({"x": raybo.Float(0, 1)}).tell(3, 1.0), ValueError),
        (lambda: raybo.objective(space={"x": raybo.Float(0, 1)}, metric="y", mode="up"), ValueError),
    ],
)
def test_wrong_arguments_raise_pythons_errors_too(wrong, kind):
    with pytest.raises(kind) as caught:
        wrong()
    assert isinstance(caught.value, raybo.RayboError)


def test_a_missing_package_is_an_import_error():
    assert issubclass(raybo.MissingExtra, ImportError)


def test_a_methods_refusal_is_not_blamed_on_tags():
    with pytest.raises(raybo.MethodError, match="no"), reading_tags("trial 0"):
        raise raybo.MethodError("no")
