"""Model files are found in the working directory, then in the package, then in the menagerie."""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest

from pluriverse.errors import GenesisException
from pluriverse.importers.model_files import ASSETS, find_model_file


def test_the_working_directory_comes_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert find_model_file("xml/ant.xml") == ASSETS / "xml/ant.xml"
    (tmp_path / "xml").mkdir()
    (tmp_path / "xml/ant.xml").write_text("<mujoco/>")
    assert find_model_file("xml/ant.xml") == tmp_path / "xml/ant.xml"
    assert find_model_file(ASSETS / "xml/ant.xml") == ASSETS / "xml/ant.xml"


def test_a_missing_file_says_where_it_was_looked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(GenesisException) as caught:
        find_model_file("no/robot.xml")
    for part in ("'no/robot.xml'", str(tmp_path), str(ASSETS), "xml/franka_emika_panda/panda.xml", "menagerie:NAME"):
        assert part in str(caught.value)
    with pytest.raises(GenesisException, match="There is no file '/no/robot.xml'. Looked at /no/robot.xml\\."):
        find_model_file("/no/robot.xml")
    with pytest.raises(GenesisException, match="There is no file 'xml'"):  # a folder
        find_model_file("xml")


def test_the_menagerie_is_optional(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "mujoco_menagerie", None)
    with pytest.raises(GenesisException, match=r"'menagerie:unitree_go2' needs .*pip install 'pluriverse\[robots\]'"):
        find_model_file("menagerie:unitree_go2")


def test_robots_of_the_menagerie(monkeypatch: pytest.MonkeyPatch) -> None:
    menagerie = ModuleType("mujoco_menagerie")
    menagerie.MenagerieError = type("MenagerieError", (Exception,), {})  # type: ignore[attr-defined]

    def get(name: str) -> SimpleNamespace:
        if name != "unitree_go2":
            raise menagerie.MenagerieError(f"Unknown robot {name!r}.")
        return SimpleNamespace(default_model="go2", xml=lambda entry: f"/cache/{name}/{entry}.xml")

    menagerie.get = get  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "mujoco_menagerie", menagerie)
    assert find_model_file("menagerie:unitree_go2") == Path("/cache/unitree_go2/go2.xml")
    assert find_model_file("menagerie:unitree_go2/scene") == Path("/cache/unitree_go2/scene.xml")
    with pytest.raises(GenesisException, match="'menagerie:unitree_go9': Unknown robot 'unitree_go9'"):
        find_model_file("menagerie:unitree_go9")
