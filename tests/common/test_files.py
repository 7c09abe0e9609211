"""Files that a user names are written, and nothing that is there comes to harm."""

from __future__ import annotations

import csv
import os
import stat
import subprocess
import sys
import threading

import pytest

import raybo
from raybo.cli import cli
from raybo.common.errors import MethodError, RayboError
from raybo.common.files import is_stream, write_file
from raybo.integrations.export import exporter
from raybo.journal import Journal
from raybo.reporting import draw
from raybo.study.columns import as_cell
from tests.reporting.studies import failed_study, run

FORMS = ("csv", "json", "optuna")


@pytest.fixture(scope="module")
def study():
    return run("sobol", 4)


def writers(study):
    """All that writes one file for a user, with the end of its name."""
    yield ".txt", lambda path: write_file(path, "new")
    for form in FORMS:
        yield f".{form}", lambda path, form=form: exporter(form, str(path))(study)
    for end in (".html", ".png"):
        yield end, lambda path: draw(study, path)


def test_links_are_followed_and_modes_kept(study, tmp_path):
    for end, write in writers(study):
        target, link, loose = tmp_path / f"target{end}", tmp_path / f"link{end}", tmp_path / f"loose{end}"
        target.touch()
        target.chmod(0o640)
        link.symlink_to(target)
        write(link)
        assert link.is_symlink()
        assert target.stat().st_size > 0
        assert stat.S_IMODE(target.stat().st_mode) == 0o640
        loose.symlink_to(f"made{end}")
        write(loose)
        assert (tmp_path / f"made{end}").read_bytes() == target.read_bytes() or end in (".html", ".png")
    assert not [path for path in tmp_path.iterdir() if path.name.startswith(".")]


def test_new_files_follow_the_umask(tmp_path):
    before = os.umask(0o027)
    try:
        write_file(tmp_path / "new", "x")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "new").stat().st_mode) == 0o640


def test_a_pipe_is_written_to_and_stays(study, tmp_path):
    for end, write in writers(study):
        pipe = tmp_path / f"pipe{end}"
        os.mkfifo(pipe)
        assert is_stream(pipe)
        read: list[bytes] = []
        reader = threading.Thread(target=lambda pipe=pipe, read=read: read.append(pipe.read_bytes()))
        reader.start()
        write(pipe)
        reader.join()
        assert read[0]
        assert stat.S_ISFIFO(pipe.stat().st_mode)


def test_optunas_journal_appends_to_a_pipe(study, tmp_path):
    from raybo.study.study import Study

    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    export = exporter("optuna", str(pipe))
    found = []
    for events in (3, 6, 6):
        reader = threading.Thread(target=lambda: found.append(pipe.read_bytes()))
        reader.start()
        export(Study(study.description, study.events[:events]))
        reader.join()
    exporter("optuna", str(tmp_path / "whole"))(Study(study.description, study.events[:6]))
    assert b"".join(found) == (tmp_path / "whole").read_bytes()
    assert found[2] == b""


def test_a_failed_write_leaves_the_old_file(tmp_path, monkeypatch):
    (tmp_path / "kept").write_text("old")
    monkeypatch.setattr(os, "replace", lambda *_: (_ for _ in ()).throw(OSError(28, "No space left on device")))
    with pytest.raises(RayboError, match=r"kept: it cannot be written \(No space left on device\); give another file"):
        write_file(tmp_path / "kept", "new")
    assert [path.read_text() for path in tmp_path.iterdir()] == ["old"]


JOB = """
import raybo

@raybo.objective(space={"x": raybo.Float(0, 1)})
def job(config):
    return config["x"]
"""


def test_directories_of_comparisons_are_refused_in_a_line(tmp_path, monkeypatch):
    """A file stands where a directory would; a read-only place is refused alike, but not to root."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "job.py").write_text(JOB)
    (tmp_path / "file").touch()
    command = [
        "compare",
        "job.py",
        "--methods",
        "random,sobol",
        "--trials",
        "2",
        "--repeats",
        "1",
        "--in-process",
        "--out",
    ]
    with pytest.raises(
        RayboError, match=r"^file/out\S*: no directory can be made there \(Not a directory\); give anoth"
    ):
        cli.main([*command, "file/out"], standalone_mode=False)


@pytest.fixture
def journal(study, tmp_path):
    written = Journal(tmp_path / "study.db", study.description)
    written.append(study.events)
    written.close()
    return tmp_path / "study.db"


FORKING = """
import os, sys
from raybo.cli import main
import raybo.cli.inspecting, raybo.integrations.text_files, raybo.study.study, raybo.surrogate.noisy_trials

for i, form, where, is_appended in CASES:  # a process each, which has imported nearly all already
    read, write = os.pipe()
    if os.fork() == 0:
        os.dup2(os.open(f"{i}.err", os.O_CREAT | os.O_WRONLY), 2)
        os.dup2(os.open(f"{i}.out", os.O_APPEND | os.O_WRONLY) if is_appended else write, 1)
        os.close(write)
        sys.argv = ["raybo", "export", "study.db", "--to", form, "-o", where]
        sys.exit(main())
    os.close(write)
    piped = open(read, "rb").read()
    assert os.wait()[1] == 0
    if not is_appended:
        open(f"{i}.out", "wb").write(piped)
"""
PIPED = [(form, where, False) for form in FORMS for where in ("-", "/dev/stdout")]
APPENDED = [("csv", where, True) for where in ("/dev/stdout", "/dev/fd/1", "/proc/self/fd/1")]


@pytest.mark.slow
def test_exports_to_standard_output_print_nothing_else(journal, tmp_path):
    """Through a pipe, as a user has it: what `/dev/stdout` leads to is there afterwards, and the message is not.

    `raybo export -o /dev/stdout >> all.csv` neither replaces the file nor begins it anew.
    """
    cases = [(i, *case) for i, case in enumerate([*PIPED, *APPENDED])]
    for i, _, _, is_appended in cases:
        if is_appended:
            (tmp_path / f"{i}.out").write_text("before\n")
    program = FORKING.replace("CASES", repr(cases))
    subprocess.run([sys.executable, "-c", program], cwd=journal.parent, check=True, stdout=subprocess.PIPE)
    for i, form, where, is_appended in cases:
        told = "standard output" if where == "-" else where
        assert (tmp_path / f"{i}.err").read_text() == f"Wrote 4 trials to {told}\n", (form, where)
        alone = tmp_path / f"{i}.alone"
        exporter(form, str(alone))(raybo.load(journal))
        expected = b"before\n" * is_appended + alone.read_bytes()
        assert (tmp_path / f"{i}.out").read_bytes() == expected, (form, where)


@pytest.mark.slow
def test_a_page_goes_to_standard_output_too(journal):
    arguments = [sys.executable, "-m", "raybo.cli", "plot", str(journal), "-o", "-"]
    done = subprocess.run(arguments, capture_output=True, text=True, check=True)
    assert done.stdout.startswith("<!DOCTYPE html>")
    assert done.stderr == "Wrote the page to standard output\n"


def test_what_is_no_file_has_no_standard_output():
    for form in ("tensorboard", "mlflow"):
        with pytest.raises(MethodError, match="cannot go to standard output"):
            exporter(form, "-")


# ---- what a spreadsheet would compute


@pytest.mark.parametrize("text", ["=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1", "\n=1", '=HYPERLINK("http://x")'])
def test_formulas_in_csv_are_escaped(text):
    assert as_cell(text) == f"'{text}"


@pytest.mark.parametrize("value", [-1, -1.5, float("-inf"), "-inf", None, True, "", "a=b", "1-2", "'=1"])
def test_numbers_and_other_texts_stay(value):
    assert as_cell(value) is value


def test_csv_has_no_formulas_by_default(tmp_path):
    study = failed_study({"=cmd|'/c calc'!A0": raybo.Categorical(["=1+1", "-2", -3])}, "@reason")
    exporter("csv", str(tmp_path / "safe.csv"))(study)
    exporter("csv", str(tmp_path / "raw.csv"), raw=True)(study)
    with open(tmp_path / "safe.csv", newline="", encoding="utf-8") as file:
        safe = list(csv.reader(file))
    with open(tmp_path / "raw.csv", newline="", encoding="utf-8") as file:
        raw = list(csv.reader(file))
    assert safe != raw
    for row in safe:
        assert not [cell for cell in row if cell.startswith(("=", "+", "@")) or (cell[:1] == "-" and cell != "-3")]
    assert {cell.removeprefix("'") for row in safe for cell in row} == {cell for row in raw for cell in row}
    with pytest.raises(MethodError, match="raw applies to csv and reports only"):
        exporter("json", "x", raw=True)
