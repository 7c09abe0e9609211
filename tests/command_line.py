"""The command line in the test's own process."""

from __future__ import annotations

import sys

from raybo import cli


def raybo_command(capsys, monkeypatch):
    """Return a function that runs `raybo` with its arguments, and returns exit code, stdout and stderr."""

    def run(*arguments):
        monkeypatch.setattr(sys, "argv", ["raybo", *map(str, arguments)])
        monkeypatch.setattr(sys, "path", list(sys.path))
        capsys.readouterr()
        try:
            cli.main()
            code = 0
        except SystemExit as leaving:
            code = leaving.code
        return code, *capsys.readouterr()

    return run
