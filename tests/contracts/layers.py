"""The layers of the package, as data, and what the source files import.

A module imports from its own layer and from those above it in this table (lower numbers), never in a cycle. A module
that is in no row makes the test fail: put it where it belongs, and say so in docs/architecture.md.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

PACKAGE = Path(__file__).parents[2] / "src" / "pluriverse"

TABLE = """
0 errors not_yet logging typing status_bits
1 constants devices cuda_driver egl_devices egl_driver
1 cache_folder init_arguments runtime options morphs materials surfaces textures rotations
2 importers actuator_loads model model_options control_delays control_laws collision_pairs
3 trace
4 looped_smooth looped_step dynamics collision constraints smooth integrators step step_kernel
5 solver
6 entities
7 scene simulator speed_log checkpoint_file
8 distributed
9 __init__
10 cli __main__
"""

LAYERS: dict[str, int] = {name: int(row.split()[0]) for row in TABLE.strip().splitlines() for name in row.split()[1:]}


def source_files() -> list[Path]:
    """Every Python file of the package."""
    return sorted(PACKAGE.rglob("*.py"))


def module_name(path: Path) -> str:
    """The dotted name inside the package: `runtime`, `trace.kernel`; `__init__` is the package itself."""
    parts = path.relative_to(PACKAGE).with_suffix("").parts
    if len(parts) > 1 and parts[-1] == "__init__":
        parts = parts[:-1]
    return ".".join(parts)


def top(module: str) -> str:
    """The row entry that a dotted name belongs to."""
    return module.split(".")[0]


def layer(module: str) -> int:
    """The layer of a module. Fails with what to do where the table does not hold it."""
    if top(module) not in LAYERS:
        raise AssertionError(
            f"module {module!r} has no layer: add {top(module)!r} to TABLE in tests/contracts/layers.py"
        )
    return LAYERS[top(module)]


def imports(path: Path, annotations: bool = True) -> Iterator[tuple[str, int]]:
    """The package's modules that a file imports, anywhere in it, with the line.

    `annotations=False` leaves out what stands under `if TYPE_CHECKING`.
    """
    modules = {module_name(p) for p in source_files()}
    package = [*module_name(path).split(".")]
    if path.name != "__init__.py":
        package = package[:-1]
    elif package == ["__init__"]:
        package = []
    tree = ast.parse(path.read_text())
    skipped: set[ast.AST] = set()
    if not annotations:
        guards = [n for n in ast.walk(tree) if isinstance(n, ast.If) and ast.unparse(n.test).endswith("TYPE_CHECKING")]
        skipped = {inner for guard in guards for statement in guard.body for inner in ast.walk(statement)}
    for node in ast.walk(tree):
        if node in skipped:
            continue
        names: list[str] = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names if top(alias.name) == "pluriverse"]
        elif isinstance(node, ast.ImportFrom):
            if node.level:
                base = ".".join(["pluriverse", *package[: len(package) - node.level + 1], *filter(None, [node.module])])
            else:
                base = node.module or ""
            if top(base) == "pluriverse":
                names = [f"{base}.{alias.name}" for alias in node.names]
        for name in names:
            parts = name.split(".")[1:]
            while parts and ".".join(parts) not in modules:  # a class or a function: the module that holds it
                parts.pop()
            yield (".".join(parts) or "__init__"), node.lineno
