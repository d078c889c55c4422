"""Prints a traced program as C++ text, for CUDA (one thread a lane) or for the CPU (vectors of environments).

Statements keep their order; a pure expression is printed where it is first needed, so that values are short-lived,
however the maths was written down. Expressions nobody needs are not printed; those used once, in their own block, are
printed in place.

On the CPU one vector holds several environments, so a guarded block or a loop runs while any of them needs it, and
what it stores is masked. The masks are made here; the traced program knows nothing of them.
"""

from __future__ import annotations

from typing import Any

from .expression import BOOL, FLOAT, INT, Expr, LaneConstant
from .program import IMPURE, Array, Block, Program, Variable
from .workspace import workspace_rows

INLINE_LIMIT = 10  # operations printed as one C++ expression

CALLS = {
    "sin": "SIN", "cos": "COS", "sqrt": "SQRT", "rsqrt": "RSQRT", "reciprocal": "RCP", "atan2": "ATAN2", "pow": "POW",
    "exp": "EXP", "floor": "FLOOR",
    "abs": "ABS", "min": "MIN", "max": "MAX", "select": "SELECT", "lane_sum": "LANE_SUM", "lane_any": "LANE_ANY",
}  # fmt: skip
C_TYPES = {FLOAT: "F", BOOL: "M", INT: "int"}


class Printer:
    """Prints one program. `vector`: CPU form, with masks; else CUDA."""

    def __init__(self, program: Program, *, vector: bool, double: bool) -> None:
        self.program, self.vector, self.double = program, vector, double
        self.lines: list[str] = []
        self.text: dict[Expr, str] = {}
        self.weight: dict[Expr, int] = {}
        self.uses = _count_uses(program.root)
        self.needs: dict[Block, list[Expr]] = {}
        self.masks: list[str] = []  # of the blocks we are in, innermost last
        self.workspace, self.workspace_rows = workspace_rows(program)
        self.home: dict[Any, str] = {}  # storage -> the mask under which it was declared

    def print(self) -> tuple[str, str]:
        """The tables of constants, and the body of the kernel."""
        for table in self.program.tables:
            self._line(f"TABLE({'int' if table.kind == INT else 'T'}, {table.name}, {len(table.values)}) = {{"
                       f"{', '.join(self._number(v) for v in table.values)}}};")  # fmt: skip
        tables, self.lines = self.lines, []
        self._statements(self.program.root)
        return "\n".join(tables), "\n".join(self.lines)

    # ---- blocks ------------------------------------------------------------------------------------------------------

    def _statements(self, block: Block) -> None:
        for statement in block.statements:
            if statement[0] == "define" and not self.uses.get(statement[1]):
                continue
            for node in self._needed(statement):
                if node.block is block:
                    self._demand(node)
            if statement[0] == "define":
                continue  # printed by the demand
            getattr(self, f"_{statement[0]}")(*statement[1:])

    def _needed(self, statement: tuple[Any, ...]) -> list[Expr]:
        """Expressions of enclosing blocks (and of its own) that a statement uses, in order of use."""
        if statement[0] != "block":
            return _operands(statement)
        block = statement[1]
        return [*_header_operands(block), *self._outer_needs(block)]

    def _outer_needs(self, block: Block) -> list[Expr]:
        if block in self.needs:
            return self.needs[block]
        found: dict[Expr, None] = {}
        seen: set[Expr] = set()
        for statement in block.statements:
            if statement[0] == "define" and not self.uses.get(statement[1]):
                continue
            stack = list(reversed(self._needed(statement)))
            while stack:
                node = stack.pop()
                if node in seen:
                    continue
                seen.add(node)
                if node.block is block:
                    stack.extend(reversed([a for a in node.args if isinstance(a, Expr)]))
                else:
                    found[node] = None
        self.needs[block] = list(found)
        return self.needs[block]

    def _demand(self, node: Expr) -> None:
        """Prints `node` and what it needs, operands first."""
        stack = [node]
        while stack:
            current = stack[-1]
            if current in self.text:
                stack.pop()
                continue
            missing = [a for a in current.args if isinstance(a, Expr) and a not in self.text]
            if missing and not isinstance(current, LaneConstant):
                stack.extend(reversed(missing))
                continue
            stack.pop()
            self._define(current)

    def _define(self, node: Expr) -> None:
        text, weight = self._expression(node)
        inline = node.op not in IMPURE and not node.op.startswith("lane_") and weight < INLINE_LIMIT
        if inline and self.uses.get(node) == 1 and node.op != "/":
            self.text[node], self.weight[node] = f"({text})", weight
        elif node.op in ("count", "index", "lane_rows"):
            self.text[node], self.weight[node] = text, 0
        else:
            name = f"t{node.number}"
            self._line(f"const {C_TYPES[node.kind]} {name} = {text};")
            self.text[node], self.weight[node] = name, 0

    def _expression(self, node: Expr) -> tuple[str, int]:
        op, args = node.op, node.args
        weight = 1 + sum(self.weight[a] for a in args if isinstance(a, Expr) and a in self.weight)
        if op in ("+", "-", "*", "/", "<", "<=", "&", "|"):
            kind = INT if all(a.kind == INT if isinstance(a, Expr) else isinstance(a, int) for a in args) else FLOAT
            return f"{self._operand(args[0], kind)} {op} {self._operand(args[1], kind)}", weight
        if op == "neg":
            return f"-{self._operand(args[0])}", weight
        if op == "!":
            return f"NOT({self._operand(args[0])})", weight
        if op in CALLS:
            return (
                f"{CALLS[op]}({', '.join(self._value(a, a.kind if isinstance(a, Expr) else None) for a in args)})",
                weight,
            )
        if op == "gather":
            return f"GATHER({args[0].name}, {self._operand(args[1])})", weight
        if op == "same":
            return f"MASK({self._operand(args[0])} == {self._operand(args[1])})", weight
        if op == "any":
            return f"MASK({args[0].name}_n > 0)", weight
        if op in ("lost", "wanted"):
            return f"{args[0].name}_{op}", weight
        if op == "lane_rows":
            return f"LANE_ROWS({', '.join(self._operand(a) for a in args)})", weight
        if op == "lane_pick":
            values = [self._value(a, FLOAT) for a in args]
            return f"LANES({', '.join(f'({v})[{k}]' if self.vector else v for k, v in enumerate(values))})", weight
        if op == "load":
            return args[0].name, weight
        if op == "element":
            return f"{args[0].name}[{self._operand(args[1])}]", weight
        if op == "read":
            return f"READ({args[0].name}, {self._row(args[1])})", weight
        if op == "flag":
            return f"TEST({args[0].name}, {args[1]})", weight
        if op == "lookup":
            text = f"{args[0].name}[{self._operand(args[1])}]"
            return (text if node.kind == INT else f"SPLAT({text})"), weight
        if op == "lane_constant":
            return f"LANES({', '.join(self._number(x) for x in args)})", weight
        if op == "count":
            return args[0], weight
        if op == "rounding":
            return self._value(2.0**-53 if self.double else 2.0**-24, FLOAT), weight
        raise ValueError(f"no text for operation {op!r}")

    # ---- statements --------------------------------------------------------------------------------------------------

    def _declare(self, variable: Variable, value: Any) -> None:
        self.home[variable] = self._mask()
        self._line(f"{C_TYPES[variable.kind]} {variable.name} = {self._value(value, variable.kind)};")

    def _array(self, array: Array) -> None:
        self.home[array] = self._mask()
        self._declare_array(array)

    def _declare_array(self, array: Array) -> None:
        kind = C_TYPES[array.kind]
        if array in self.workspace:
            self._line(f"WORKSPACE({kind}, {array.name}, {self.workspace[array]});")
        else:
            self._line(f"{kind} {array.name}[{array.size}];")

    def _clear(self, records: Any) -> None:
        if records not in self.home:
            self.home[records] = self._mask()
            for field in records.fields.values():
                self._declare_array(field)
            self._line(f"int {records.name}_n = 0;")
            if records.bounded:
                self._line(f"int {records.name}_wanted = 0; M {records.name}_lost = FALSE_MASK;")
        else:
            self._line(f"{records.name}_n = 0;")
            if records.bounded:
                self._line(f"{records.name}_wanted = 0; {records.name}_lost = FALSE_MASK;")

    def _set(self, variable: Variable, value: Any) -> None:
        self._line(f"{variable.name} = {self._masked(variable, variable.name, value)};")

    def _put(self, array: Array, index: Any, value: Any) -> None:
        place = f"{array.name}[{self._operand(index)}]"
        self._line(f"{place} = {self._masked(array, place, value)};")

    def _append(self, records: Any, values: dict[str, Any]) -> None:
        mask = self._mask()
        if records.bounded:
            self._line(f"++{records.name}_wanted;")
            self._line(f"if ({records.name}_n >= {records.capacity}) {{")
            lost = mask if self.vector and mask else "TRUE_MASK"
            self._line(f"{records.name}_lost = {records.name}_lost | {lost};")
            self._line("} else {")
        for name, value in values.items():
            field = records.fields[name]
            text = self._value(value, field.kind)
            if field.kind == FLOAT and self.vector and mask != self.home[records]:
                text = f"SELECT({mask}, {text}, SPLAT(0))"
            self._line(f"{field.name}[{records.name}_n] = {text};")
        self._line(f"++{records.name}_n;")
        if records.bounded:
            self._line("}")

    def _write(self, buffer: Any, row: Any, value: Any) -> None:
        write = "WRITE_LANES" if isinstance(row, tuple) and len(set(row)) > 1 else "WRITE"
        self._line(f"{write}({buffer.name}, {self._row(row)}, {self._value(value, FLOAT)});")

    def _raise(self, flags: Any, condition: Any, value: Any, bit: int, number: int) -> None:
        raised, mask = self._value(condition, BOOL), self._mask()
        if self.vector and mask:
            raised = f"{mask} & {raised}"
        self._line(f"RAISE({flags.name}, {raised}, {bit}, {flags.alarm} + {number}, {self._operand(value)});")

    def _block(self, block: Block) -> None:
        header = block.header
        if block.kind == "when":
            condition = self._value(header["condition"], BOOL)
            if self.vector:
                outer, mask = self._mask(), f"m{len(self.lines)}"
                self._line(f"{{ const M {mask} = {f'{outer} & ' if outer else ''}({condition}); if (ANY({mask})) {{")
                self._inside(block, mask)
                self._line("} }")
            else:
                self._line(f"if ({condition}) {{")
                self._inside(block, "")
                self._line("}")
        elif block.kind in ("range", "records"):
            i = f"i{header['index'].number}"
            start, stop = (header["start"], header["stop"]) if block.kind == "range" else (0, None)
            end = self._operand(stop) if stop is not None else f"{header['records'].name}_n"
            self.text[header["index"]], self.weight[header["index"]] = i, 0
            unroll = header.get("unroll", 1)
            self._line("NO_UNROLL" if unroll == 1 else f"UNROLL({unroll})")
            self._line(f"for (int {i} = {self._operand(start)}; {i} < {end}; ++{i}) {{")
            self._inside(block, self._mask())
            self._line("}")
        else:
            running, i = header["running"].name, f"n{len(self.lines)}"
            if self.vector:
                outer, mask = self._mask(), f"m{len(self.lines)}"
                self._line(f"{{ M {mask} = {outer or 'TRUE_MASK'};")
            self._line("NO_UNROLL")
            self._line(f"for (int {i} = 0; {i} < {header['limit']}; ++{i}) {{")
            if self.vector:
                self._line(f"{mask} = {mask} & {running}; if (!ANY({mask})) break;")
                self._inside(block, mask)
                self._line("} }")
            else:
                self._line(f"if (!{running}) break;")
                self._inside(block, "")
                self._line("}")

    def _inside(self, block: Block, mask: str) -> None:
        self.masks.append(mask)
        self._statements(block)
        self.masks.pop()

    # ---- operands ----------------------------------------------------------------------------------------------------

    def _mask(self) -> str:
        return self.masks[-1] if self.masks else ""

    def _masked(self, storage: Any, place: str, value: Any) -> str:
        text = self._value(value, storage.kind)
        if not self.vector or storage.scratch or self.home[storage] == self._mask() or storage.kind == INT:
            return text
        return f"SELECT({self._mask()}, {text}, {place})"

    def _operand(self, x: Any, kind: str = INT) -> str:
        """Operand of an arithmetic operation, or an index; a constant stays a scalar."""
        if isinstance(x, Expr):
            return self.text[x]
        return self._number(float(x) if kind == FLOAT else x)

    def _value(self, x: Any, kind: str | None) -> str:
        """A full value of a kind, constants spread over the vector."""
        if isinstance(x, Expr):
            return self.text[x]
        if isinstance(x, bool):
            return "TRUE_MASK" if x else "FALSE_MASK"
        if kind == INT:
            return str(x)
        return f"SPLAT({self._number(x)})"

    def _row(self, row: Any) -> str:
        if isinstance(row, tuple):
            return str(row[0]) if len(set(row)) == 1 else f"LANE_ROWS({', '.join(map(str, row))})"
        return self._operand(row)

    def _number(self, x: Any) -> str:
        if isinstance(x, int):
            return str(x)
        if x in (float("inf"), float("-inf")):
            return "HUGE_NUMBER" if x > 0 else "-HUGE_NUMBER"
        text = repr(float(x)) if self.double else f"{x:.9g}"
        text = text if any(c in text for c in ".e") else text + "."
        text += "" if self.double else "f"
        return f"({text})" if x < 0 else text

    def _line(self, text: str) -> None:
        self.lines.append(text)


def _operands(statement: tuple[Any, ...]) -> list[Expr]:
    """Expressions that a simple statement uses itself."""
    kind = statement[0]
    if kind == "define":
        return [statement[1]]
    if kind == "append":
        return [v for v in statement[2].values() if isinstance(v, Expr)]
    return [x for x in statement[1:] if isinstance(x, Expr)]


def _header_operands(block: Block) -> list[Expr]:
    header = block.header
    return [header[k] for k in ("condition", "start", "stop") if isinstance(header.get(k), Expr)]


def _count_uses(root: Block) -> dict[Expr, int]:
    """How often each expression is used by live code; a use from another block counts twice, so that it is not
    printed in place."""
    uses: dict[Expr, int] = {}
    stack: list[Expr] = []

    def use(node: Any, block: Block | None) -> None:
        if isinstance(node, Expr):
            uses[node] = uses.get(node, 0) + (1 if node.block is block else 2)
            stack.append(node)

    def visit(block: Block) -> None:
        for statement in block.statements:
            if statement[0] == "block":
                for node in _header_operands(statement[1]):
                    use(node, block)
                visit(statement[1])
            elif statement[0] != "define":
                for node in _operands(statement):
                    use(node, block)

    visit(root)
    done: set[Expr] = set()
    while stack:
        node = stack.pop()
        if node not in done:
            done.add(node)
            if not isinstance(node, LaneConstant):
                for a in node.args:
                    use(a, node.block)
    return uses
