"""Jobs of a cluster send what they should, refuse what they must, and run whole studies on a local head."""

from __future__ import annotations

import base64
import contextlib
import http.server
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
import tracemalloc
import zipfile
import zlib
from functools import partial
from pathlib import Path

import pytest

import raybo
from raybo import cli
from raybo.cli import cluster as cluster_commands
from raybo.common.errors import (
    JournalError,
    JournalInUse,
    MethodError,
    MissingExtra,
    ObjectiveError,
    RayError,
    install_command,
)
from raybo.engine import follow
from raybo.integrations import jobs, package, ray_dashboard, transfer
from raybo.journal import Journal, read
from raybo.record.description import Description
from raybo.record.events import Asked, Kind, Planned, Told
from raybo.record.goals import Goals
from raybo.record.states import State
from raybo.searcher.priors import journals_named
from tests.engine.hosts import LocalHead
from tests.journals import finished
from tests.renewed import Renewed

SPACE = raybo.Space({"x": raybo.Float(0, 1)})
DESCRIPTION = Description("job", Goals(("score",), ("max",)), SPACE, "random", 0)
ROOT = Path(raybo.__file__).parents[1]

# ---- journals that travel


def events(*values):
    """A trial for each value, one after the other."""
    listed = [Planned(trials=9, number=1)]
    for trial, value in enumerate(values):
        asked = {"x": [0.1], "values": [0.1], "tags": {"µ": 1e-17}, "seen": 0}
        listed.append(Asked.of(trial, asked, number=len(listed) + 1))
        listed.append(Told(trial, value=value, seconds=0.1, number=len(listed) + 1))
    return listed


def write(path, listed, description=DESCRIPTION):
    with contextlib.closing(Journal(path, description)) as journal:
        journal.append(listed)
    return path


def grow(path, *values):
    """Continue a journal by a trial for each value."""
    there = read(path)[1]
    new = events(*[0.0] * (sum(e.kind is Kind.TOLD for e in there)), *values)[len(there) :]
    return write(path, new, read(path)[0])


def test_a_journal_arrives_as_it_was(tmp_path):
    here = write(tmp_path / "here.db", events(1.0, 5e-324, 0.1 + 0.2))
    arrival = transfer.unpack(transfer.pack(here), tmp_path / "there.db")
    assert (arrival.events, arrival.added, arrival.ahead) == (7, 7, 0)
    assert read(tmp_path / "there.db") == read(here)  # the times at which things happened too
    again = transfer.unpack(transfer.pack(here), tmp_path / "there.db")
    assert (again.added, again.ahead) == (0, 0)


def test_journal_travels_while_it_is_written(tmp_path):
    path = tmp_path / "here.db"
    with contextlib.closing(Journal(path, DESCRIPTION)) as journal:
        journal.append(events(1.0))
        assert Path(f"{path}-wal").stat().st_size > 0
        text = transfer.pack(path)
        journal.append([Planned(trials=10, number=4)])
    transfer.unpack(text, tmp_path / "there.db")
    assert read(tmp_path / "there.db")[1] == read(path)[1][:3]


def test_unpacking_only_appends_to_the_journal_it_continues(tmp_path):
    here = write(tmp_path / "here.db", events(1.0))
    there = tmp_path / "there.db"
    transfer.unpack(transfer.pack(here), there)

    grow(there, 2.0)  # the cluster's copy grows
    arrival = transfer.unpack(transfer.pack(there), here)
    assert (arrival.added, arrival.ahead) == (2, 0)
    assert read(here) == read(there)

    grow(here, 3.0, 4.0)  # the copy here grows
    arrival = transfer.unpack(transfer.pack(there), here)
    assert (arrival.added, arrival.ahead, arrival.events) == (0, 4, 9)

    grow(there, 5.0)  # and so does the cluster
    before = here.read_bytes(), there.read_bytes()
    for source, target in ((there, here), (here, there)):
        with pytest.raises(JournalError, match="differ after event 5; keep the copy in another file"):
            transfer.unpack(transfer.pack(source), target)
    assert (here.read_bytes(), there.read_bytes()) == before


def test_unpacking_refuses_foreign_and_busy_journals(tmp_path):
    here = write(tmp_path / "here.db", events(1.0))
    other = write(
        tmp_path / "other.db", events(1.0), Description("job", Goals(("score",), ("min",)), SPACE, "random", 0)
    )
    with pytest.raises(JournalError, match="journal of another study: mode is 'max' in the journal and 'min' now"):
        transfer.unpack(transfer.pack(other), here)
    with (
        contextlib.closing(Journal(tmp_path / "used.db", DESCRIPTION)),
        pytest.raises(JournalInUse, match="another study is writing it"),
    ):
        transfer.unpack(transfer.pack(here), tmp_path / "used.db")
    for text in ("", "bm9uc2Vuc2U=", "§", transfer.pack(here)[:-20]):
        with pytest.raises(JournalError, match="what arrived for it is damaged"):
            transfer.unpack(text, tmp_path / "new.db")
    assert not (tmp_path / "new.db").exists()


@pytest.mark.parametrize("where", [("description", "space", {"x": 3}), ("events", 1, [2, "asked", 7, "", {}])])
def test_what_arrives_is_checked_like_a_journal(tmp_path, where):
    packed = transfer.pack(write(tmp_path / "here.db", events(1.0)))
    content = json.loads(zlib.decompress(base64.b64decode(packed)))
    part, key, forged = where
    content[part][key] = forged
    text = base64.b64encode(zlib.compress(json.dumps(content).encode())).decode()
    with pytest.raises(JournalError, match="what arrived for it is damaged") as raised:
        transfer.unpack(text, tmp_path / "new.db")
    assert "\n" not in str(raised.value)
    assert not (tmp_path / "new.db").exists()


@pytest.mark.timeout(30)
def test_unpacking_follows_links_to_regular_files_only(tmp_path):
    text = transfer.pack(write(tmp_path / "here.db", events(1.0)))
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", Path("/dev/null"), tmp_path):
        before = os.stat(path)
        with pytest.raises(JournalError, match=r"it is (not a regular file|a directory); give a file"):
            transfer.unpack(text, path)
        assert (os.stat(path).st_ino, os.stat(path).st_mode) == (before.st_ino, before.st_mode)
    (tmp_path / "link.db").symlink_to(tmp_path / "there.db")
    transfer.unpack(text, tmp_path / "link.db")
    assert (tmp_path / "link.db").is_symlink()
    assert read(tmp_path / "there.db") == read(tmp_path / "here.db")


def test_only_whole_journals_are_read_from_logs(monkeypatch):
    monkeypatch.setattr(transfer, "LINE", 10)
    text = "x" * 25
    lines = list(transfer.lines_of(text))
    assert len(lines) == 4
    assert transfer.text_of(["INFO Ray says something", *lines, "and more"]) == text
    for cut in ([], lines[:-1], ["noise"]):
        assert transfer.text_of(cut) is None


def test_files_for_a_job_are_unloaded_there(tmp_path, monkeypatch):
    study = write(tmp_path / "study.db", events(1.0))
    other = write(tmp_path / "other.db", events(2.0))
    (tmp_path / "list.json").write_text('[{"x": 0.5}]')
    assert transfer.load_up(tmp_path, None, None, None) is None
    assert transfer.unload(tmp_path / "deep" / "head.db", tmp_path) == (None, [])
    assert (tmp_path / "deep").is_dir()  # the place is made in any case

    (tmp_path / "sent").mkdir()
    shutil.copy(other, tmp_path / "third.db")
    (tmp_path / "no.db").write_text("no journal")
    (tmp_path / "old").mkdir()
    shutil.copy(other, tmp_path / "old" / "third.db")
    many = [tmp_path / "third.db", tmp_path / "no.db", tmp_path / "old" / "third.db"]
    priors = [([shutil.copy(other, tmp_path / "second.journal")], False), (many, True), ([], True)]
    transfer.load_up(tmp_path / "sent", study, other, tmp_path / "list.json", priors)
    monkeypatch.syspath_prepend(tmp_path / "sent")
    (tmp_path / "scratch").mkdir()
    arrival, arguments = transfer.unload(tmp_path / "deep" / "head.db", tmp_path / "scratch")
    assert arrival is not None
    assert arrival.added == 3
    assert read(tmp_path / "deep" / "head.db") == read(study)
    assert arguments[::2] == ["--from", "--prior", "--prior", "--enqueue"]
    assert read(arguments[1]) == read(other)
    assert Path(arguments[1]).name == "other.db"  # its results bear the name of where they are from
    assert read(arguments[3]) == read(other)
    assert Path(arguments[3]).name == "second.journal"
    found, are_many = journals_named(arguments[5], tmp_path / "deep" / "head.db")
    assert ([path.name for path in found], are_many) == (["third.db", "third.db"], True)
    assert json.loads(Path(arguments[7]).read_text()) == [{"x": 0.5}]


# ---- the package


@pytest.fixture
def project(tmp_path):
    """A project with what should travel and what should not."""
    for name in (
        "job.py", "lib/helper.py", "lib/secret.txt", "lib/deep/kept.csv", "data/big.csv", "notes/a.md", "job.db",
        "job.db-wal", ".git/config", ".venv/bin/python", "lib/__pycache__/helper.pyc", ".env", "out/x.log", "odd/one",
    ):  # fmt: skip
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(name)
    (tmp_path / ".gitignore").write_text("out/\n*.tmp\n")
    (tmp_path / "lib" / ".gitignore").write_text("/secret.txt\n")
    (tmp_path / ".rayignore").write_text("/data/\n")
    (tmp_path / "lib" / "again").symlink_to(tmp_path, target_is_directory=True)
    (tmp_path / "odd" / "nowhere").symlink_to(tmp_path / "missing")
    return tmp_path


def test_a_project_travels_without_what_no_job_needs(project, monkeypatch):
    files = {path.as_posix() for path in package.choose(project, ["notes/"]).files}
    ours = {"job.py", "lib/helper.py", "lib/deep/kept.csv", "odd/one"}
    assert files == ours | {".gitignore", ".rayignore", "lib/.gitignore"}
    monkeypatch.setenv("RAY_RUNTIME_ENV_IGNORE_GITIGNORE", "1")
    assert {"out/x.log", "lib/secret.txt"} <= {path.as_posix() for path in package.choose(project).files}


def files_sent(directory, exclude=()):
    return {path.as_posix() for path in package.choose(directory, exclude).files}


def test_what_is_beside_journals_is_not_sent(project):
    for name in ("job.trials/0/output.txt", "job.requests/1", "job.notes.jsonl", "job.db-ack"):
        (project / name).parent.mkdir(parents=True, exist_ok=True)
        (project / name).write_text("")
    assert not {name for name in files_sent(project) if name.startswith("job.")} - {"job.py"}


def test_ignore_files_count_as_in_git(project):
    (project / ".gitignore").write_text("*.csv\n/other/\n!\nexp/data/*\n")
    exp = project / "exp"
    for name in ("job.py", "a.csv", "kept.csv", "data/x.csv", "data/y.csv", "sub/z.csv"):
        (exp / name).parent.mkdir(parents=True, exist_ok=True)
        (exp / name).write_text("")
    (exp / ".gitignore").write_text("!kept.csv\n")
    (exp / "data" / ".gitignore").write_text("!x.csv\n")
    (exp / "latin").mkdir()
    (exp / "latin" / ".gitignore").write_bytes(b"caf\xe9\n")
    theirs = {".gitignore", "latin/.gitignore"}
    assert files_sent(exp) == {"job.py", "kept.csv", "data/x.csv"} | theirs
    (project / ".gitignore").write_text("/exp/\n")  # who works there knows it
    assert (
        files_sent(exp)
        == {"job.py", "a.csv", "kept.csv", "data/x.csv", "data/y.csv", "sub/z.csv", "data/.gitignore"} | theirs
    )
    shutil.rmtree(project / ".git")
    (project / ".gitignore").write_text("*.csv\n")  # of no repository
    assert "a.csv" in files_sent(exp)


@pytest.mark.parametrize(
    "lines",
    [
        {"": "*.log\n!keep.log\nbuild/\ndata/*\n!data/ok/\n", "data": "!x.csv\n", "lib": "*\n!*.py\n"},
        {"": "*\n!*/\n!*.py\n!.gitignore\n"},
        {"": "*\n!lib\n!data/\n!data/ok\n"},
        {"": "data/**\n!data/ok\n/lib/b\n[z-a]\n!\\\n"},
        {"": "**/ok/\nlib/*\n!lib/a.py\n"},
    ],
)
def test_what_git_says_of_a_project_is_what_travels(tmp_path, lines, monkeypatch):
    for place, text in lines.items():
        (tmp_path / place).mkdir(exist_ok=True)
        (tmp_path / place / ".gitignore").write_text(text)
    for name in ("a.log", "keep.log", "build/x", "data/x.csv", "data/y.csv", "data/ok/z", "lib/a.py", "lib/b", "b.txt"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("")
    run = partial(subprocess.run, cwd=tmp_path, check=True, capture_output=True, text=True)
    run(["git", "init", "-q"])
    listed = run(["git", "ls-files", "--others", "--exclude-standard"]).stdout.split()
    assert files_sent(tmp_path) == set(listed)
    monkeypatch.chdir(tmp_path.parent)
    assert files_sent(Path(tmp_path.name)) == set(listed)


def test_a_job_that_would_not_be_sent_is_refused(cluster, project):
    (project / "out" / "job.py").write_text("")
    for file, exclude in (("out/job.py", ()), ("job.py", ("*.py",))):
        with pytest.raises(RayError, match=rf"^{file}: it would not be sent, as .gitignore, .rayignore or --exclude"):
            cluster.submit(file, [], directory=project, exclude=exclude)


def test_files_that_cannot_be_sent_are_named(project, monkeypatch):
    read = Path.read_bytes

    def read_bytes(path):
        if path.name == "helper.py":
            raise PermissionError(13, "Permission denied", str(path))
        return read(path)

    monkeypatch.setattr(Path, "read_bytes", read_bytes)
    with pytest.raises(RayError, match=r"lib/helper.py: it cannot be sent \(Permission denied\); make it readable"):
        package.zipped(project, [], project.parent / "unreadable.zip")


def test_patterns_that_are_none_exclude_nothing(project):
    assert files_sent(project, ["!", "\\"]) == files_sent(project)


def test_a_user_without_a_name_has_a_place_on_the_head(monkeypatch, project):
    monkeypatch.setattr(jobs.getpass, "getuser", lambda: {}["uid not found"])
    assert jobs.storage_on_head(project, "job.py") == f"~/raybo/{os.getuid()}/{project.name}/job.db"


def test_secrets_and_outward_links_are_not_sent(project, tmp_path_factory, caplog):
    outside = tmp_path_factory.mktemp("outside")
    (outside / "passwd").write_text("x")
    (project / "passwd").symlink_to(outside / "passwd")
    (project / "all").symlink_to(outside, target_is_directory=True)
    (project / "inside").symlink_to(project / "job.py")
    (project / "settings").symlink_to(project / ".env")
    for name in ("lib/server.pem", "id_ed25519", ".env.local", ".env.example", ".ssh/config", "id_map.csv"):
        (project / name).parent.mkdir(exist_ok=True)
        (project / name).write_text(name)
    (project / "lib" / "deploy").write_text("-----BEGIN OPENSSH PRIVATE KEY-----\nAAAA\n")
    target = project.parent / "chosen.zip"
    with zipfile.ZipFile(package.zipped(project, [], target)) as archive:
        names = set(archive.namelist())
    assert {"inside", ".env.example", "id_map.csv", "job.py"} <= names
    secrets = {".env", ".env.local", ".ssh", "id_ed25519", "lib/deploy", "lib/server.pem", "settings"}
    assert not names & {*secrets, "passwd", "all/passwd", ".ssh/config"}
    messages = [record.getMessage() for record in caplog.records]
    assert messages[0].startswith(
        f"not sent, as they look like secrets: {', '.join(sorted(secrets))}; --exclude '!.env' s"
    )
    assert messages[1:] == [f"not sent, as these links point outside {project}: all, passwd"]
    sent = {path.as_posix() for path in package.choose(project, ["!.env", "!*.pem", "!deploy"]).files}
    assert {".env", "settings", "lib/server.pem", "lib/deploy"} <= sent


def test_what_arrives_is_unpacked_to_a_limit(tmp_path, monkeypatch):
    here = write(tmp_path / "here.db", events(1.0, 2.0))
    text = transfer.pack(here)
    bomb = base64.b64encode(zlib.compress(b" " * 2**24)).decode()
    monkeypatch.setattr(transfer, "UNPACKED_BYTES", 2**20)
    tracemalloc.start()
    with pytest.raises(JournalError, match=r"more than 1 MiB have arrived for it; copy it with `sqlite3 FILE.db"):
        transfer.unpack(bomb, tmp_path / "there.db")
    assert tracemalloc.get_traced_memory()[1] < 2**22
    tracemalloc.stop()
    assert transfer.unpack(text, tmp_path / "there.db").added == len(read(here)[1])
    monkeypatch.setattr(transfer, "UNPACKED_BYTES", 100)
    with pytest.raises(JournalError, match="too large to be sent"):
        transfer.pack(here)
    nested = base64.b64encode(zlib.compress(b"[" * 100_000)).decode()
    monkeypatch.setattr(transfer, "UNPACKED_BYTES", 2**20)
    with pytest.raises(JournalError, match="damaged"):
        transfer.unpack(nested, tmp_path / "new.db")


def test_the_same_files_make_the_same_zip(project):
    first = package.zipped(project, [], project.parent / "first.zip").read_bytes()
    os.utime(project / "job.py", (1, 1))
    assert package.zipped(project, [], project.parent / "second.zip").read_bytes() == first
    (project / "job.py").chmod(0o755)
    with zipfile.ZipFile(package.zipped(project, [], project.parent / "third.zip")) as archive:
        assert archive.read("lib/helper.py") == b"lib/helper.py"
        assert archive.getinfo("job.py").external_attr >> 16 & 0o777 == 0o755


def test_a_project_too_large_names_its_largest_file(project):
    with (project / "lib" / "weights.bin").open("wb") as file:
        file.truncate(101 * 2**20)  # a file with a hole takes no room
    with pytest.raises(
        RayError, match=r"101 MiB would be sent, and at most 100 MiB can be; the largest: lib/weights.bin"
    ):
        package.zipped(project, [], project.parent / "p.zip")
    assert not (project.parent / "p.zip").exists()
    package.zipped(project, ["*.bin"], project.parent / "p.zip")


# ---- clusters that cannot be used


@contextlib.contextmanager
def answering(status, body):
    """A server that answers everything with this; yields its address and the requests that came."""
    seen = []

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            seen.append((self.path, self.headers.get("Authorization")))
            self.send_response(status)
            self.end_headers()
            self.wfile.write(body.encode())

        def log_message(self, *_):
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}", seen
        finally:
            server.shutdown()
            thread.join()


@pytest.fixture
def token(monkeypatch, tmp_path):
    """Sets what Ray's loader finds, which it remembers, as the user's token; None for none."""
    import ray

    loader = ray._raylet.AuthenticationTokenLoader.instance()

    def set_token(value):
        monkeypatch.setenv("HOME", str(tmp_path))
        monkeypatch.delenv("RAY_AUTH_TOKEN_PATH", raising=False)
        if value is None:
            monkeypatch.delenv("RAY_AUTH_TOKEN", raising=False)
        else:
            monkeypatch.setenv("RAY_AUTH_TOKEN", value)
        loader.reset_cache()

    yield set_token
    monkeypatch.undo()
    loader.reset_cache()


REFUSALS = [
    (200, '{"ray_version": "1.2.3"}', r"runs Ray 1.2.3, and this machine .* here: pip install 'ray\[default\]==1.2.3'"),
    (200, "<html>a wiki</html>", "what answers at .* is not a Ray dashboard"),
    (404, "{}", "what answers at .* is not a Ray dashboard"),
    (401, "Unauthorized", "refuses the token; put the cluster's token into ~/.ray/auth_token or RAY_AUTH_TOKEN"),
    (403, "Forbidden", "refuses the token"),
]  # fmt: skip


@pytest.mark.parametrize(("status", "body", "words"), REFUSALS)
def test_an_unusable_cluster_is_refused_with_the_reason(token, status, body, words):
    token("ab" * 32)
    with answering(status, body) as (address, seen), pytest.raises(RayError, match=words):
        jobs.Cluster(address + "/")
    assert seen == [("/api/version", f"Bearer {'ab' * 32}")]


def test_a_missing_token_is_told_as_such(token):
    token(None)
    with (
        answering(401, "Unauthorized") as (address, seen),
        pytest.raises(RayError, match="wants a token, and there is"),
    ):
        jobs.Cluster(address)
    assert seen == [("/api/version", None)]


def test_where_nobody_answers_is_told_within_seconds():
    for address in ("127.0.0.1:8265", "auto", "ray://x:1"):  # first, as what is imported for it takes its time, too
        with pytest.raises(RayError, match="a cluster takes jobs at its dashboard's address"):
            jobs.Cluster(address)
    begun = time.monotonic()
    with pytest.raises(RayError, match=r"nothing answers at http://127.0.0.1:1 \(.*refused\); is the cluster up"):
        jobs.Cluster("http://127.0.0.1:1")
    with pytest.raises(RayError, match="nothing answers"):
        jobs.Cluster("http://no such host:8265")
    assert time.monotonic() - begun < ray_dashboard.ANSWER_SECONDS[1]


def test_a_missing_job_client_names_its_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "aiohttp", None)
    with pytest.raises(MissingExtra, match=re.escape(f"{install_command('cluster')}, which brings ray[default]")):
        jobs.Cluster("http://127.0.0.1:8265")


# ---- what is asked of Ray


class Client:
    """Stands for Ray's client, and keeps the last request."""

    def __init__(self):
        self.request = {}

    def submit_job(self, **request):
        self.request = request
        self.zip = zipfile.ZipFile(request["runtime_env"]["working_dir"]).namelist()
        self.luggage = [path for path in request["runtime_env"]["py_modules"] if Path(path).name == transfer.LUGGAGE]
        return request["submission_id"]

    def list_jobs(self):
        from ray.dashboard.modules.job.pydantic_models import JobDetails

        common = {"type": "SUBMISSION", "status": "RUNNING", "entrypoint": ""}
        of_another = JobDetails(submission_id="another", **common)
        ours = {key: self.request[key] for key in ("submission_id", "metadata") if key in self.request}
        return [of_another, *([JobDetails(**ours, **common)] if ours else [])]


@pytest.fixture
def cluster():
    made = jobs.Cluster.__new__(jobs.Cluster)
    made.address, made._client = "http://head:8265", Client()
    return made


def test_a_job_sends_this_raybo_and_the_project(cluster, project):
    job = cluster.submit("lib/helper.py:it", ["--trials", "7", "--set", "a=b c"], directory=project)
    assert (job.state, job.target, job.exit_code, job.has_ended) == ("RUNNING", "lib/helper.py:it", None, False)
    assert re.fullmatch(r"helper-it-[0-9a-f]{6}", job.name)
    assert job.storage.startswith("~/raybo/")
    assert job.storage.endswith(f"/{project.name}/helper-it.db")
    request = cluster._client.request
    assert request["entrypoint"] == (
        f"exec python3 -m raybo.cli job-run '{job.storage}' lib/helper.py:it --trials 7 --set 'a=b c'"
    )
    assert request["runtime_env"]["py_modules"] == [str(ROOT / "raybo")]
    assert request["runtime_env"]["env_vars"]["RAY_JOB_STOP_SIGNAL"] == "SIGINT"  # `raybo stop` is like Ctrl-C
    assert "lib/helper.py" in cluster._client.zip
    assert cluster.jobs() == [job]  # and not that of another program
    with pytest.raises(RayError, match=f"no job x at http://head:8265; available: {job.name}"):
        cluster.job("x")


@pytest.mark.parametrize(
    ("pieces", "shown"),
    [
        (
            ["Preparing\nRunning entrypoint for job ", "it-1: exec", " python3\ntrial 0\n", "trial 1\n"],
            "trial 0\ntrial 1\n",
        ),
        (["Preparing\n", "no such wheel\n"], "Preparing\nno such wheel\n"),  # all that there is
    ],
)
def test_following_starts_at_the_first_own_line(cluster, pieces, shown):
    from ray.dashboard.modules.job.pydantic_models import JobDetails

    async def tail_job_logs(name):
        for piece in pieces:
            yield piece

    cluster._client.tail_job_logs = tail_job_logs
    cluster._client.get_job_info = lambda name: JobDetails(
        type="SUBMISSION", submission_id=name, status="SUCCEEDED", entrypoint="", driver_exit_code=0
    )
    pieces_shown = []
    job = cluster.follow("it-1", pieces_shown.append)
    assert "".join(pieces_shown) == shown
    assert (job.name, job.state, job.exit_code, job.has_ended) == ("it-1", "SUCCEEDED", 0, True)


def test_following_goes_on_where_a_connection_ended(cluster, monkeypatch):
    from ray.dashboard.modules.job.pydantic_models import JobDetails

    monkeypatch.setattr(jobs, "SETTLE_SECONDS", 0.0)
    log = "Preparing\nRunning entrypoint for job it-1: exec python3\ntrial 0\ntrial 1\ntrial 2\n"
    lengths = iter([20, 70, len(log)])

    async def tail_job_logs(name):
        whole = log[: next(lengths)]
        for begin in range(0, len(whole), 9):
            yield whole[begin : begin + 9]

    statuses = iter(["RUNNING", "RUNNING", "SUCCEEDED"])
    cluster._client.tail_job_logs = tail_job_logs
    cluster._client.get_job_info = lambda name: JobDetails(
        type="SUBMISSION", submission_id=name, status=next(statuses), entrypoint="", driver_exit_code=0
    )
    shown = []
    assert cluster.follow("it-1", shown.append).state == "SUCCEEDED"
    assert "".join(shown).endswith("trial 0\ntrial 1\ntrial 2\n")
    assert "".join(shown).count("trial") == 3


@pytest.mark.parametrize(
    ("log", "words"),
    [
        ("Error: /data/s.db: no such file\n", "cannot be fetched: /data/s.db: no such file"),
        (f"{transfer.MARK}AAAA\n", "cannot be fetched: exit code 1"),  # cut short: a part of it is none
    ],
)
def test_fetching_an_incomplete_journal_is_refused(cluster, project, tmp_path, log, words):
    from ray.dashboard.modules.job.pydantic_models import JobDetails

    job, client = cluster.submit("job.py", [], directory=project), cluster._client
    client.submit_job = lambda **request: request["submission_id"]
    client.get_job_info = lambda name: JobDetails(
        type="SUBMISSION", submission_id=name, status="FAILED", entrypoint="", driver_exit_code=1
    )
    client.get_job_logs, deleted = lambda name: log, []
    client.delete_job = deleted.append
    with pytest.raises(JournalError, match=words):
        cluster.fetch(job.name, tmp_path / "here.db")
    assert not (tmp_path / "here.db").exists()
    assert [name.rpartition("-")[0] for name in deleted] == [f"{job.name}-fetch"]


def test_submit_waits_for_an_unready_head(cluster, project, monkeypatch):
    refusal = "Request failed with status code 500: No available agent to submit job, please try again later.."
    submit, refusals = cluster._client.submit_job, [RuntimeError(refusal)] * 3

    def reluctant(**request):
        if refusals:
            raise refusals.pop()
        return submit(**request)

    monkeypatch.setattr(jobs.time, "sleep", lambda seconds: None)
    cluster._client.submit_job = reluctant
    assert cluster.submit("job.py", [], directory=project).target == "job.py"
    assert not refusals
    refusals[:] = [RuntimeError(refusal)] * 3
    monkeypatch.setattr(jobs, "AGENT_SECONDS", -1.0)
    with pytest.raises(RayError, match=r"takes no jobs: .* is another Ray running on that machine\? .* port 52365"):
        cluster.submit("job.py", [], directory=project)
    refusals[:] = [RuntimeError("Request failed with status code 500: otherwise")]
    with pytest.raises(RayError, match=r"refused or failed the request: .*otherwise"):
        cluster.submit("job.py", [], directory=project)


def test_what_cannot_be_submitted_is_refused(cluster, project):
    (project.parent / "outside.py").write_text("")
    with pytest.raises(ObjectiveError, match=r"nowhere.py: no such file"):
        cluster.submit("nowhere.py", [], directory=project)
    with pytest.raises(ObjectiveError, match=r"it is outside .*, which is what is sent"):
        cluster.submit("../outside.py", [], directory=project)
    with pytest.raises(MethodError, match=r"must be absolute or start with ~/, got 'data/s.db'"):
        cluster.submit("job.py", [], directory=project, storage="data/s.db")
    with (
        contextlib.closing(Journal(project / "used.db", DESCRIPTION)),
        pytest.raises(JournalInUse, match="another process is writing it"),
    ):
        cluster.submit("job.py", [], directory=project, study=project / "used.db")
    assert cluster._client.request == {}
    (project / "job.db").unlink()
    cluster.submit("job.py", [], directory=project, study=project / "job.db")  # one that is not there is none
    assert cluster._client.luggage == []
    cluster.submit("job.py", [], directory=project, study=write(project / "job.db", events(1.0)))
    assert len(cluster._client.luggage) == 1


def test_every_option_of_tune_reaches_the_job(monkeypatch, project):
    asked = {}

    class Cluster:
        def __init__(self, address):
            asked["address"] = address

        def submit(self, target, arguments, **named):
            asked.update(named, target=target, arguments=arguments)
            return jobs.Job("job-1", "PENDING", target, "/data/s.db", "", None, "")

    monkeypatch.setattr(jobs, "Cluster", Cluster)
    monkeypatch.chdir(project)
    (project / "known.json").write_text("[]")
    search = (
        "--trials 7 --method gp-ucb --seed 3 --workers 2 --max-minutes 1.5 --trial-seconds 9.0 --retries 1 --set a=1 "
        "--set b=x=y --option solver=cg --log mlflow=http://h:5000 --log csv=/out/s.csv --quiet"
    ).split()
    places = "--address http://h:1 --storage /data/s.db -o mine.db --exclude *.csv --from o.db --enqueue known.json"
    places += " --prior p.db"
    monkeypatch.setattr(sys, "argv", ["raybo", "submit", "job.py", *search, *places.split(), "--no-follow"])
    cli.main()
    assert asked == {
        "address": "http://h:1",
        "target": "job.py",
        "arguments": [*search, "--keep-checkpoints", "last"],
        "directory": project,
        "exclude": ("*.csv",),
        "storage": "/data/s.db",
        "study": Path("mine.db"),
        "known_from": Path("o.db"),
        "priors": [([Path("p.db")], False)],
        "enqueue": Path("known.json"),
    }
    tune, submit = (
        {name for p in cli.cli.get_command(None, command).params for name in p.opts} for command in ("tune", "submit")
    )
    # a job is detached by itself, runs on the cluster's Ray, and is sent as a file with what lies beside it
    assert tune - submit == {"--detach", "--in-process", "--module", "-m"}


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--log", "csv=out.csv"], "files in a job's own directory are lost"),
        (["--enqueue", "nowhere.json"], "nowhere.json: cannot be read"),
        (["--set", "x"], "--set takes KEY=VALUE, got 'x'"),
        (["-o", "nowhere/x.db"], "-o nowhere/x.db: the directory nowhere does not exist; make it first"),
    ],
)
def test_wrong_use_is_told_before_anything_is_sent(capsys, monkeypatch, arguments, words):
    monkeypatch.setattr(sys, "argv", ["raybo", "submit", "job.py", *arguments])
    with pytest.raises(SystemExit) as leaving:
        cli.main()
    assert leaving.value.code == 2
    assert words in capsys.readouterr().err


@pytest.mark.parametrize(
    ("state", "exit_code", "left_with", "fetched", "words"),
    [
        ("SUCCEEDED", 0, 0, True, ""),
        ("FAILED", 1, 1, True, "Error: job-1 failed: exit code 1, see its output"),
        ("FAILED", 2, 2, False, "Error: job-1 failed: exit code 2"),
        ("FAILED", None, 1, False, "Error: job-1 failed: no head"),  # it never began, and has no journal
        ("FAILED", -9, -9, True, "Error: job-1 failed: exit code -9"),  # the machine's memory was full
        ("STOPPED", None, 130, True, "job-1 was stopped"),
    ],
)
def test_submit_returns_exit_code_and_journal(
    state, exit_code, left_with, fetched, words, monkeypatch, capsys, project
):
    printed, brought = [], []

    class Cluster:
        def __init__(self, address):
            self.address = address

        def submit(self, target, arguments, **named):
            return jobs.Job("job-1", "PENDING", target, "/data/s.db", "", None, "")

        def follow(self, name, show):
            printed.append(show("trial 0 of 50\n"))
            return jobs.Job(name, state, "job.py", "/data/s.db", "", exit_code, "no head")

        def fetch(self, name, path):
            if exit_code is None and state != "STOPPED":
                raise JournalError("the journal of job-1 cannot be fetched: no such file")
            brought.append(path)
            return transfer.Arrival(path, 7, 3, 0)

    monkeypatch.setattr(jobs, "Cluster", Cluster)
    monkeypatch.chdir(project)
    monkeypatch.setattr(sys, "argv", ["raybo", "submit", "job.py", "-o", "mine.db"])
    code = 0
    try:
        cli.main()
    except SystemExit as leaving:
        code = leaving.code
    out, err = capsys.readouterr()
    assert code == left_with
    assert brought == ([Path("mine.db")] if fetched else [])
    assert "trial 0 of 50\n" in out
    assert ("mine.db is up to date with job-1: 3 new events" in out) == fetched
    assert words in err
    assert "cannot be fetched" not in err


def test_priors_that_are_not_there_are_not_submitted(monkeypatch, capsys, project):
    monkeypatch.chdir(project)
    (project / "old").mkdir()
    for where in ("old", "old/*.db"):
        monkeypatch.setattr(sys, "argv", ["raybo", "submit", "job.py", "--prior", where])
        with pytest.raises(SystemExit):
            cli.main()
        assert f"Error: --prior {where}: no journal there" in capsys.readouterr().err


def test_a_job_that_waits_is_the_newest(cluster):
    from ray.dashboard.modules.job.pydantic_models import JobDetails

    common = {"type": "SUBMISSION", "status": "RUNNING", "entrypoint": "", "metadata": {"raybo_storage": "~/s.db"}}
    began = {"a-1": 2_000, "b-1": None, "c-1": 1_000}
    listed = [JobDetails(submission_id=name, start_time=at, **common) for name, at in began.items()]
    cluster._client.list_jobs = lambda: listed
    assert [job.name for job in cluster.jobs()] == ["c-1", "a-1", "b-1"]


@pytest.mark.parametrize(
    ("words", "exported", "reached"),
    [
        (["attach", "x"], "http://there:8265", ("job", "http://there:8265")),
        (["stop", "x"], "http://there:8265", ("job", "http://there:8265")),
        (["fetch", "x"], "http://there:8265", ("job", "http://there:8265")),
        (["jobs"], "http://there:8265", ("job", "http://there:8265")),
        (["stop", "x"], "there:8265", ("job", "there:8265")),  # whose cluster says what is wrong with it
        (["attach", "x", "--address", "auto"], "http://there:8265", ("study", "auto")),
        (["stop", "x", "--address", "http://here:1"], "http://there:8265", ("job", "http://here:1")),
        (["attach", "x"], "", ("study", "auto")),
        (["stop", "x"], "", ("study", "auto")),
        (["stop", "x.db"], "http://there:8265", ("journal", "x.db")),
    ],
)
def test_commands_take_the_address_of_rays_variable(words, exported, reached, monkeypatch, tmp_path, capsys):
    found = []

    class Cluster:
        def __init__(self, address):
            found.append(("job", address))
            raise RayError("far enough")

    def study(name, address, *_):
        found.append(("study", address))
        raise RayError("far enough")

    monkeypatch.setattr(jobs, "Cluster", Cluster)
    monkeypatch.setattr(follow, "attach", study)
    monkeypatch.setattr(follow, "stop", study)
    monkeypatch.setattr(cluster_commands, "_stop_here", lambda path: found.append(("journal", str(path))) or True)
    monkeypatch.setenv("RAY_API_SERVER_ADDRESS", exported)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["raybo", *words])
    with contextlib.suppress(SystemExit):
        cli.main()
    assert found == [reached], capsys.readouterr()


# ---- whole studies, on a head of this machine

JOB = """
import os
import time
import tracemalloc
import raybo

@raybo.objective(space={"x": raybo.Float(0, 1)}, metric="score", mode="max")
def job(config, *, seconds=0.05, held=""):
    time.sleep(seconds)
    while held and os.path.exists(held):
        open(f"{held}-by", "w").close()
        time.sleep(0.05)
    return {"score": -((config["x"] - 0.3) ** 2)}
"""
HURRY = 300.0  # seconds after which something that should have happened has not


@pytest.fixture(scope="module")
def heads():
    with Renewed(lambda: LocalHead(cpus=2)) as renewed:
        yield renewed


@pytest.fixture
def head(heads, request):
    yield from heads.lend(request.node)


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "job.py").write_text(JOB)
    return tmp_path


def start(head, folder, *arguments, **keywords):
    command = [sys.executable, "-m", "raybo.cli", *map(str, arguments)]
    # a suite that runs in the background ignores Ctrl-C, and so would its children: a terminal's do not
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "preexec_fn": _as_in_a_shell}
    return head.run(*command, cwd=folder, **{**pipes, **keywords})


def _as_in_a_shell():
    signal.signal(signal.SIGINT, signal.default_int_handler)


def end(process, code=0):
    out, err = process.communicate(timeout=HURRY)
    assert process.returncode == code, out + err
    assert "Traceback" not in err
    return out, err


def run(head, folder, *arguments, code=0, **keywords):
    return end(start(head, folder, *arguments, "--address", head.dashboard, **keywords), code)


def until(condition):
    give_up = time.monotonic() + HURRY
    while not condition():
        assert time.monotonic() < give_up
        time.sleep(0.1)


@pytest.mark.slow
@pytest.mark.ray
@pytest.mark.timeout(600)
def test_a_real_model_is_tuned_by_submitting_it(head, tmp_path):
    path = tmp_path / "gb.db"
    out, err = run(head, ROOT, "submit", "trials/gradient_boosting.py", "--trials", 3, "--seed", 0, "-o", path)
    assert err == ""
    assert ", accuracy 0.9" in out
    assert "max_leaf_nodes" in out
    assert f"{path} is up to date with gradient_boosting-" in out
    study = raybo.load(path)
    assert study.count(State.FINISHED) == 3
    assert f"recommended: {study.recommendation}" in " ".join(out.split())
    (sent,) = Path(head.directory, "raybo").rglob("*.db")  # in the home of the head's user
    assert sent.name == "gradient_boosting.db"
    assert read(sent) == read(path)


@pytest.mark.slow
@pytest.mark.ray
@pytest.mark.timeout(600)
def test_a_study_continues_here_and_on_the_cluster(head, folder):
    path, there = folder / "job.db", head.directory / "there" / "job.db"
    tune = ["tune", "job.py", "--workers", 1, "--quiet"]
    submit = ["submit", "job.py", "--storage", there]
    end(start(head, folder, *tune, "--trials", 3, "--seed", 4))
    began = read(path)[1]

    out, _ = run(head, folder, *submit, "--trials", 5)
    assert "5/5 trials" in out
    assert "job.db is up to date with job-" in out
    assert read(path)[1][: len(began)] == began
    assert read(there) == read(path)
    assert finished(path) == 5

    end(start(head, folder, *tune, "--trials", 7))  # here again
    run(head, folder, *submit, "--trials", 8)  # and there again
    assert read(there) == read(path)
    study = raybo.load(path)
    assert [trial.state for trial in study.trials] == [State.FINISHED] * 8
    assert study.description.seed == 4

    write(there, [Planned(trials=8, number=len(read(there)[1]) + 1)], read(there)[0])
    end(start(head, folder, *tune, "--trials", 9))  # both have grown apart: neither is lost
    before = read(path), read(there)
    out, _ = run(head, folder, *submit, "--trials", 9, code=1)
    assert "differ after event" in out
    assert (read(path), read(there)) == before


@pytest.mark.slow
@pytest.mark.ray
@pytest.mark.timeout(600)
def test_a_running_job_is_listed_fetched_and_stopped(head, folder):
    held = folder / "held"
    out, _ = run(
        head, folder, "submit", "job.py", "--trials", 5_000, "--no-follow", "--storage", "~/long.db", "--method",
        "random", "--set", "seconds=0.2", "--set", f"held={held}",
    )  # fmt: skip
    name = re.match(r"(long-\w+) submitted; its journal is ~/long.db on the head node", out)[1]
    path = head.directory / "long.db"
    until(lambda: finished(path) >= 2)

    out, _ = run(head, folder, "fetch", name, "-o", "copy.db")
    assert re.match(rf"copy.db is up to date with {name}: \d+ new events?", out)
    copy = read(folder / "copy.db")
    assert finished(folder / "copy.db") >= 2
    assert read(path)[1][: len(copy[1])] == copy[1]
    out, _ = run(head, folder, "jobs")
    assert re.search(rf"{name} +running +20\S+ +job.py +~/long.db", out)
    assert "fetch" not in out  # how a journal is fetched is nobody's business

    follower = start(head, folder, "attach", name, "--address", head.dashboard)
    assert "trials, best" in next(line for line in follower.stdout if "trials, best" in line)
    os.killpg(follower.pid, signal.SIGINT)
    assert f"{name} keeps running; raybo stop {name} --address {head.dashboard} stops it" in end(follower, 130)[1]

    held.touch()
    until((folder / "held-by").exists)
    out, _ = run(head, folder, "stop", name)
    assert out == (
        f"Stopped; the study is in ~/long.db on the head node; raybo fetch {name} --address {head.dashboard} copies it "
        "here\n"
    )
    states = {trial.state for trial in raybo.load(path).trials}
    assert states == {State.FINISHED, State.STOPPED}  # what ran is recorded as stopped, as after Ctrl-C
    assert f"{name} has ended already (stopped)" in run(head, folder, "stop", name, code=1)[1]
    run(head, folder, "fetch", name)
    assert read(folder / "long.db") == read(path)
    out, err = run(head, folder, "attach", name, code=130)
    assert (
        f"its journal is ~/long.db on the head node; raybo fetch {name} --address {head.dashboard} copies it here"
        in out
    )
    assert "was stopped" in err


@pytest.mark.slow
@pytest.mark.ray
@pytest.mark.timeout(600)
def test_a_failed_job_shows_exit_code_and_cause(head, folder):
    out, err = run(head, folder, "submit", "job.py", "--trials", 0, code=2)
    assert "Error: trials must be a whole number from 1, got 0" in out
    assert re.fullmatch(r"Error: job-\w+ failed: exit code 2, see its output\n", err)
    assert not (folder / "job.db").exists()

    (folder / "bad.py").write_text(JOB.replace("time.sleep(seconds)", "raise ValueError('no such rate')"))
    out, err = run(head, folder, "submit", "bad.py", "--trials", 2, code=1)
    assert "the last one: ValueError: no such rate" in out
    assert raybo.load(folder / "bad.db").count(State.FAILED) == 2  # and the journal is here all the same

    (folder / "needs.py").write_text("import no_such_thing\n" + JOB)
    assert "No module named 'no_such_thing'" in run(head, folder, "submit", "needs.py", code=2)[0]
    _, err = run(head, folder, "fetch", "job-000000", code=1)
    assert "no job job-000000 at http://127.0.0.1:" in err


@pytest.mark.slow
@pytest.mark.ray
@pytest.mark.timeout(600)
def test_results_and_lists_from_here_enter_there(head, folder):
    end(start(head, folder, "tune", "job.py", "--trials", 2, "--quiet", "--workers", 1, "--storage", "other.db"))
    (folder / "list.json").write_text('[{"x": 0.25}]')
    run(
        head, folder, "submit", "job.py", "--trials", 2, "--from", "other.db", "--enqueue", "list.json", "--storage",
        "~/entered.db",
    )  # fmt: skip
    study = raybo.load(folder / "job.db")
    assert [trial.tags.get("origin") for trial in study.trials] == ["added", "added", "enqueued", None]
    assert {trial.tags.get("from") for trial in study.trials[:2]} == {"other.db"}
    assert study.trials[2].config == {"x": 0.25}
    assert study.count(State.FINISHED) == 4


@pytest.mark.slow
@pytest.mark.ray
@pytest.mark.timeout(600)
def test_a_real_head_refuses_wrong_or_missing_tokens(head, folder):
    for token, words in (("0" * 64, "refuses the token"), (None, "wants a token, and there is none here")):
        environment = {key: value for key, value in head.environment.items() if key != "RAY_AUTH_TOKEN"}
        if token:
            environment["RAY_AUTH_TOKEN"] = token
        for command in (["submit", "job.py"], ["stop", "x"]):
            _, err = run(head, folder, *command, code=1, env=environment)
            assert words in err
            assert err.count("\n") == 1
    environment = {**head.environment, "RAY_ADDRESS": "127.0.0.1:1", "RAY_API_SERVER_ADDRESS": "http://127.0.0.1:1"}
    run(head, folder, "jobs", env=environment)  # what is typed wins over what is exported
