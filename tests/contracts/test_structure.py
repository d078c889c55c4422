"""Contracts on the sources: layers, cycles, names, sizes, docstrings, and no reach into another module's privates."""

from __future__ import annotations

import ast
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest
from layers import LAYERS, PACKAGE, imports, layer, module_name, source_files, top

MAX_LINES = 400
FORBIDDEN_NAMES = {"utils", "util", "common", "misc", "helpers"}
# Names of torch without a public one: a tensor's count of in-place changes, the current stream's handle.
ALLOWED_PRIVATES = ("_version", "_C", "_cuda_getCurrentRawStream")

each_file = pytest.mark.parametrize("path", source_files(), ids=lambda path: str(path.relative_to(PACKAGE)))


@each_file
def test_imports_only_from_layers_above(path: Path) -> None:
    own = module_name(path)
    upward = [f"line {line}: {other}" for other, line in imports(path) if layer(other) > layer(own)]
    assert not upward, f"{own} (layer {layer(own)}) imports from a lower row of the layer table: {upward}"


def test_the_layer_table_names_what_there_is() -> None:
    assert set(LAYERS) == {top(module_name(path)) for path in source_files()}


def test_no_import_cycle() -> None:
    graph: dict[str, set[str]] = {}
    for path in source_files():
        own = module_name(path)
        graph[own] = {other for other, _ in imports(path, annotations=False) if other != own}
    try:
        list(TopologicalSorter(graph).static_order())
    except CycleError as error:
        pytest.fail(f"import cycle: {' -> '.join(error.args[1])}")


@each_file
def test_file_has_one_job(path: Path) -> None:
    tree = ast.parse(path.read_text())
    assert ast.get_docstring(tree), "the file does not say what it is: start it with a docstring"
    lines = len(path.read_text().splitlines())
    assert lines <= MAX_LINES, f"{lines} lines, at most {MAX_LINES}: split the file by what it does"
    assert not FORBIDDEN_NAMES & set(module_name(path).split(".")), "name the module for what is in it"


@each_file
def test_reads_no_private_names_of_others(path: Path) -> None:
    tree = ast.parse(path.read_text())
    own = _defined_privates(tree)
    reads = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and _private(node.attr) and node.attr not in own:
            if not _is_self(node.value):
                reads.append(f"line {node.lineno}: {ast.unparse(node)}")
        elif isinstance(node, ast.ImportFrom):
            inside = node.level > 0 or (node.module or "").startswith("pluriverse")
            reads += [f"line {node.lineno}: {a.name}" for a in node.names if inside and _private(a.name)]
    assert not reads, f"private names of another module: {reads}. Make them public there, or ask for what they do."


def _is_self(node: ast.expr) -> bool:
    return isinstance(node, ast.Name) and node.id in ("self", "cls")


def _private(name: str) -> bool:
    return name.startswith("_") and not name.startswith("__") and name not in ("_", *ALLOWED_PRIVATES)


def _defined_privates(tree: ast.Module) -> set[str]:
    """Private names that this file defines: functions, classes, variables, and attributes it sets on self."""
    names: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            names.add(node.name)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names.add(node.id)
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store) and _is_self(node.value):
            names.add(node.attr)
    return {name for name in names if _private(name)}
