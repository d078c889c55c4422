"""The folder of compiled kernels: what names it, and that one which cannot be used costs a warning, not the run."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import pluriverse as gs
from pluriverse.cache_folder import cache_folder
from pluriverse.runtime import runtime


@pytest.fixture(autouse=True)
def closed() -> Iterator[None]:
    gs.destroy()
    yield
    gs.destroy()


def test_what_names_the_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    assert cache_folder({"XDG_CACHE_HOME": "/somewhere"}).path == Path("/somewhere/pluriverse")
    assert cache_folder({"XDG_CACHE_HOME": "/x", "PLURIVERSE_CACHE_DIR": "/kernels"}).path == Path("/kernels")
    monkeypatch.setenv("HOME", "/home/someone")
    assert cache_folder({}).path == Path("/home/someone/.cache/pluriverse")
    assert cache_folder({"PLURIVERSE_CACHE_DIR": "~/kernels"}).path == Path("/home/someone/kernels")


def test_a_relative_folder_does_not_follow_the_working_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PLURIVERSE_CACHE_DIR", "kernels")
    gs.init(backend=gs.cpu, logging_level="warning")
    monkeypatch.chdir(tmp_path / "elsewhere")
    assert runtime.cache_dir() == tmp_path / "kernels"
    monkeypatch.setenv("PLURIVERSE_CACHE_DIR", str(tmp_path / "other"))
    assert runtime.cache_dir() == tmp_path / "kernels"
    assert (tmp_path / "kernels").is_dir()
    gs.destroy()
    with pytest.raises(gs.GenesisException, match="cache of kernels needs a session"):
        runtime.cache_dir()


@pytest.mark.parametrize("name", ["PLURIVERSE_CACHE_DIR", "XDG_CACHE_HOME"])
@pytest.mark.parametrize("inside", ["", "x/y"])
def test_an_unusable_folder_is_replaced_with_one_warning(
    name: str, inside: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.delenv("PLURIVERSE_CACHE_DIR", raising=False)
    monkeypatch.setenv(name, str(tmp_path / "file" / inside))
    gs.init(backend=gs.cpu, logging_level="warning")
    folder = runtime.cache_dir()
    assert runtime.cache_dir() == folder
    assert folder.is_dir()
    assert tmp_path not in folder.parents
    (warning,) = [record.getMessage() for record in caplog.records]
    assert f"{name}='{tmp_path}/file" in warning
    assert "PLURIVERSE_CACHE_DIR to a directory that you can write" in warning


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may write everywhere")
def test_read_only_folders(tmp_path: Path) -> None:
    folder = cache_folder({"PLURIVERSE_CACHE_DIR": str(tmp_path)})
    (tmp_path / "kernels").mkdir()
    assert folder.fault() is None
    (tmp_path / "kernels").chmod(0o555)
    assert folder.fault() is not None


# Another file system's word for a folder without permission, whoever runs the tests.
READ_ONLY = """
import os, sys, tempfile
import pluriverse as gs
from pluriverse.runtime import runtime

def refuse(*args, **kwargs):
    if str(kwargs.get("dir", "")).startswith(os.environ["PLURIVERSE_CACHE_DIR"]):
        raise PermissionError(13, "Permission denied")
    return real(*args, **kwargs)

real, tempfile.TemporaryFile = tempfile.TemporaryFile, refuse
gs.init(backend=gs.cpu, logging_level="error")
wp = runtime.warp()
assert wp.config.kernel_cache_dir.startswith(str(runtime.cache_dir()))
if os.fork() == 0:
    sys.exit()  # a child's exit leaves the folder
os.wait()
assert runtime.cache_dir().is_dir()
print(runtime.cache_dir())
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")
def test_the_replacement_is_warps_too_and_removed_at_exit(tmp_path: Path) -> None:
    environ = {
        **os.environ,
        "PLURIVERSE_CACHE_DIR": str(tmp_path),
        "PYTHONPATH": str(Path(gs.__file__).parents[1]),
    }
    environ.pop("WARP_CACHE_PATH", None)
    done = subprocess.run([sys.executable, "-c", READ_ONLY], env=environ, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    folder = Path(done.stdout.splitlines()[-1])
    assert folder.name.startswith("pluriverse-")
    assert not folder.exists()
