#!/usr/bin/env python3
"""Turns include/cudabpf/apis/*.tsv, results/*.tsv and meanings.tsv into C++: the tables that src/tables/cuda_api.cpp
includes, and the enums of calls' types and ops that include/cudabpf/cuda_api.hpp includes.

usage: gen-cuda-api.py MEANINGS_TSV TABLES_OUT WORDS_OUT RESULTS_FOLDER API_TSV...    each is named as its row of
libraries.def, and so is the list in the folder of what its functions return

A mistake in the table is an error here, with its line, and not a wrong trace later."""
import pathlib
import re
import sys

from tables import TableError, read_rows

SCALARS = {"u8", "u16", "u32", "u64", "i32", "f32", "location", "nccl_type", "nccl_op", "blas_op", "cuda_type", "compute_type",
           "count", "rank", "ranks", "root", "peer", "color", "key"}
ADDRESSES = {"ptr", "ptr32", "hptr"}
HANDLES = {"stream", "context", "module", "library", "function", "kernel", "event", "graph", "graph_exec",
           "node", "array", "pool", "mem_handle", "comm", "window", "blas", "handle", "device"}
STRUCTS = {"memcpy2d", "memcpy3d", "memcpy3d_peer", "launch_config", "launch_params", "alloc_prop",
           "pool_props", "kernel_node", "kernel_node_v1", "memset_node", "alloc_node", "graph_node", "sizes", "comm_id", "devices",
           "lt_product", "lt_matrix"}
VALUES = SCALARS | ADDRESSES | HANDLES
COUNTED = {"in.devices"}  # arrays that need a count
PROFILES = {"light": "light", "default": "default_", "full": "full"}
NAMES_EFFECTS = {"none", "learn", "forget"}
# Words that no row has: for functions not in the table, and for copies that only arguments
# distinguish.
MORE_TYPES, MORE_OPS = {"other"}, {"other", "HtoH"}
# Structs that may be passed by value, with their words of 8 bytes.
BY_VALUE = {"comm_id": 16}
# Words of the table that are C++ keywords.
KEYWORDS = {"register", "struct"}
REGISTER_WORDS = 6  # on x86-64; other arguments lie on the stack
CONTEXT_EFFECTS = {"none", "create", "create_green", "of_green", "attach", "detach", "destroy", "set_current", "push", "pop",
                   "retain_primary", "release_primary", "reset_primary", "green_stream"}
GRAPH_ACTIONS = {"create", "clone", "destroy", "add_node", "remove_node", "set_node", "find_in_clone", "get_child", "instantiate",
                 "update", "set_exec_node", "enable_exec_node", "destroy_exec", "launch", "begin_capture", "end_capture"}
NODE_ACTIONS = {"add_node", "set_node", "set_exec_node"}
KINDS = {"device", "async", "managed", "host", "vmm"}
COLUMNS = ["symbol", "name", "type", "op", "profile", "args", "attrs"]
# The types of a product's elements and sums, where no argument says them.
ELEMENTS = {"R_16F", "R_16BF", "R_32F", "R_64F", "C_32F", "C_64F"}
SUMS = {"16F", "32F", "64F"}
# What a row of meanings.tsv may say, and of which enum it is a value in include/cudabpf/meaning.hpp.
WORK = {"launch", "set", "to_device", "to_host", "copy", "wait", "memory", "module", "setup", "other"}
FACTS = {
    "counted": ("CountedAs", {"launches", "copies", "waits", "allocations", "frees"}),
    "node": ("NodeWork", {"kernel", "copy", "set", "alloc", "free", "host", "graph", "other"}),
    "memory": ("MemoryEffect", {"alloc", "free", "map", "unmap", "register", "unregister"}),
    "event": ("EventEffect", {"record", "wait", "destroy", "query"}),
    "stream": ("StreamEffect", {"create", "destroy", "query"}),
    "entry": ("EntryIsEnough", {"async", "always"}),
}
YES_OR_NO = ("measured", "one_device", "pairwise", "tally")
MEANING_COLUMNS = ["type", "op", "work", "facts"]
# Effects that only a function's own row has.
MEMORY_EFFECTS = FACTS["memory"][1] | {"import", "retain"}


def identifier(word):
    return word + "_" if word in KEYWORDS else word


def enum(name, words):
    """An enum of these words, with `none` before them, and the array of their spellings."""
    lines = [f"enum class {name} : std::uint8_t {{", "  none,"]
    lines += [f"  {identifier(word)}," for word in words]
    lines += ["};", f"constexpr std::string_view {name.upper()}_NAMES[] = {{", '    "",']
    lines += [f'    "{word}",' for word in words]
    return "\n".join(lines + ["};", ""])


def parse_role(role):
    """-> (C++ role, is an out-pointer, struct, integer words on x86-64, integer words on arm64)"""
    if role == "f32":
        return "f32", False, "none", 0, 0  # floats travel in vector registers
    if re.fullmatch(r"mem\d+", role):
        return "hidden", False, "none", 0, 1  # x86-64: on the stack; arm64: a pointer to a copy
    if role.startswith("mem.") and role[4:] in BY_VALUE:
        return "in_struct", False, role[4:], 0, 1
    if role in ("addr", "outbuf"):
        return "hidden", False, "none", 1, 1
    if role in ("str", "path"):
        return role, False, "none", 1, 1
    if role.startswith("out.") and role[4:] in VALUES:
        return role[4:], True, "none", 1, 1
    if role.startswith("in.") and role[3:] in STRUCTS:
        return "in_struct", False, role[3:], 1, 1
    if inner := re.fullmatch(r"in\.(\w+)@\w+\+\d+", role):
        if inner[1] in STRUCTS:
            return "in_struct", False, inner[1], 0, 0  # the pointer to it is in another struct
    if role in VALUES:
        return role, False, "none", 1, 1
    raise TableError(f"unknown role '{role}'")


def parse_holder(role, names, structs):
    """The place of a struct behind a pointer in another argument's: which argument, and where the pointer is in its struct"""
    _, at, place = role.partition("@")
    if not at:
        return ""
    holder, _, offset = place.partition("+")
    if holder not in names[:-1] or not structs[names.index(holder)]:
        raise TableError(f"'{role}': no struct of an earlier argument '{holder}'")
    if int(offset) % 8:
        raise TableError(f"'{role}': a pointer is at a multiple of 8")
    return f", {names.index(holder)}, {offset}"


def parse_count(role, names):
    """`ROLE[OTHER]`, an array -> ROLE, and the place of the argument OTHER, which says how many elements it has; -1: no array"""
    element, bracket, other = role.partition("[")
    may_be_array = element in COUNTED or (element.startswith("out.") and element[4:] in HANDLES - {"device"})
    if (element in COUNTED and not bracket) or (bracket and not may_be_array):
        raise TableError(f"'{role}': in brackets is what counts an array's elements: that of a device list or of returned handles")
    if bracket and other.removesuffix("]") not in names:
        raise TableError(f"'{role}': no such argument")
    return element, names.index(other.removesuffix("]")) if bracket else -1


def parse_size(expression, names):
    """`N`, `N*2`, `Width*Height`, `Width*Height*4`, `sum(sizes,count)` -> a C++ SizeRule"""
    def index(name):
        if name not in names:
            raise TableError(f"size: no argument '{name}'")
        return names.index(name)

    total = re.fullmatch(r"sum\((\w+),(\w+)\)", expression)
    if total:
        return f"{{SizeRule::Kind::sum_of_array, {index(total[1])}, {index(total[2])}, 1}}"
    factors = expression.split("*")
    unit = int(factors.pop()) if factors[-1].isdigit() else 1
    if not 1 <= len(factors) <= 2 or not 1 <= unit <= 255:
        raise TableError(f"size: cannot read '{expression}'")
    second = index(factors[1]) if len(factors) == 2 else -1
    return f"{{SizeRule::Kind::product, {index(factors[0])}, {second}, {unit}}}"


class Meanings:
    """The rows of meanings.tsv, in order; what a call means whose type and op have no row comes before them."""

    def __init__(self, source):
        self.rows, self.used, self.source = {}, set(), source
        for key, cpp in read_rows(source, MEANING_COLUMNS, self.parse):
            self.rows[key] = cpp

    def parse(self, cells, _):
        if not 3 <= len(cells) <= len(MEANING_COLUMNS) or not all(cells[:3]):
            raise TableError("a row has type, op and work, and maybe facts")
        key, work = (cells[0], cells[1]), cells[2]
        if key in self.used:
            raise TableError(f"'{cells[0]} {cells[1]}' stands twice")
        self.used.add(key)
        facts = dict(part.partition("=")[::2] for part in "".join(cells[3:]).split())
        if work not in WORK:
            raise TableError(f"unknown work '{work}'")
        for fact, value in facts.items():
            if value not in FACTS[fact][1] if fact in FACTS else fact not in YES_OR_NO or value:
                raise TableError(f"unknown fact '{fact}={value}'")
        cpp = [f".work = Work::{work}"]
        cpp += [f".{fact} = {enum}::{identifier(facts[fact])}" for fact, (enum, _) in FACTS.items() if fact in facts]
        cpp += [f".{fact} = true" for fact in YES_OR_NO if fact in facts]
        return key, "{" + ", ".join(cpp) + "}"

    def index(self, call_type, op):
        """The number of its row among those that are written; 0: it has none."""
        for key in ((call_type, op), (call_type, "*")):
            if key in self.rows:
                return 1 + list(self.rows).index(key)
        return 0

    def check(self, pairs):
        """Each type and op of a function has a row, and each row a function."""
        for call_type, op in pairs:
            if not self.index(call_type, op):
                sys.exit(f"{self.source}: no row for {call_type} {op}")
        for call_type, op in self.rows:
            if (call_type, op) not in pairs and not (op == "*" and any(call_type == one for one, _ in pairs)):
                sys.exit(f"{self.source}: no function is of {call_type} {op}")

    def write(self, out, types, ops):
        out.write("constexpr Meaning MEANINGS[] = {\n    {},\n")
        out.writelines(f"    {cpp},\n" for cpp in self.rows.values())
        out.write(f"}};\n\n// By type and op.\nconstexpr std::uint8_t MEANING_AT[{1 + len(types)}][{1 + len(ops)}] = {{\n    {{}},\n")
        for call_type in types:
            out.write("    {0, " + ", ".join(str(self.index(call_type, op)) for op in ops) + "},\n")
        out.write("};\n\n")


def element_types(attrs):
    """What a product's name says of its elements, as a C++ ElementTypes"""
    elements, sums = attrs.get("elements", "unknown"), attrs.get("compute", "unknown")
    sums = re.sub(r"(\d+)F", r"F\1", sums)
    if elements == sums == "unknown":
        return "{}"
    return f'{{CudaType::{elements}, CudaType::{attrs.get("result", elements)}, ComputeType::{sums}}}'


def parse_row(row):
    attrs = dict(part.partition("=")[::2] for part in row["attrs"].split())
    unknown = set(attrs) - {"kind", "async", "size", "names", "ctx", "graph", "node", "memory", "no_result", "elements", "result", "compute"}
    if unknown:
        raise TableError(f"unknown attribute '{sorted(unknown)[0]}'")
    for attr, known in (("kind", KINDS), ("graph", GRAPH_ACTIONS), ("node", FACTS["node"][1]), ("memory", MEMORY_EFFECTS),
                        ("elements", ELEMENTS), ("result", ELEMENTS), ("compute", SUMS)):
        if attr in attrs and attrs[attr] not in known:
            raise TableError(f"unknown {attr} '{attrs[attr]}'")
    if "node" in attrs and "graph" not in attrs:
        raise TableError("node: the function does nothing with graphs")
    kind = f"MemoryKind::{attrs['kind']}" if "kind" in attrs else "std::nullopt"
    if row["profile"] not in PROFILES:
        raise TableError(f"unknown profile '{row['profile']}'")
    if attrs.get("names", "none") not in NAMES_EFFECTS:
        raise TableError(f"unknown names '{attrs['names']}'")
    if attrs.get("ctx", "none") not in CONTEXT_EFFECTS:
        raise TableError(f"unknown ctx '{attrs['ctx']}'")
    arguments, names, structs, by_value = [], [], [], 0
    all_names = re.findall(r"(\w+):", row["args"])
    words = {"x86": 0, "arm64": 0}
    for part in filter(None, (p.strip() for p in row["args"].split(","))):
        name, _, role = part.partition(":")
        role, count = parse_count(role, all_names)
        cpp_role, out, struct, x86, arm64 = parse_role(role)
        place = {arch: words[arch] if used else -1 for arch, used in (("x86", x86), ("arm64", arm64))}
        if name in names:
            raise TableError(f"two arguments '{name}'")
        words["x86"] += x86
        words["arm64"] += arm64
        names.append(name)
        structs.append(cpp_role == "in_struct")
        holder = parse_holder(role, names, structs)
        if structure := re.fullmatch(r"mem(\d+)", role):
            by_value += -(-int(structure[1]) // 8)
        if role.startswith("mem."):  # x86-64: words on the stack; arm64: a pointer to a copy
            place["x86"] = REGISTER_WORDS + by_value
            by_value += BY_VALUE[struct]
            holder = ", -1, 0, BY_VALUE"
        if count >= 0:
            holder = f", -1, 0, false, {count}"
        arguments.append(f'{{"{name}", Role::{cpp_role}, {str(out).lower()}, Struct::{struct}, '
                         f'WORD({place["x86"]}, {place["arm64"]}){holder}}}')
    if by_value and words["x86"] > REGISTER_WORDS:
        raise TableError("where words and structs share the stack, it is not known in what order")
    size = parse_size(attrs["size"], names) if "size" in attrs else "{}"
    stack_words = max(0, words["x86"] - REGISTER_WORDS) + by_value
    node = attrs.get("node", "other" if attrs.get("graph") in NODE_ACTIONS else "none")
    return arguments, (
        f'"{row["symbol"]}", "{row["name"]}", Type::{identifier(row["type"])}, Op::{identifier(row["op"])}, {kind}, '
        f'Profile::{PROFILES[row["profile"]]}, {str("async" in attrs).lower()}, '
        f'NamesEffect::{attrs.get("names", "none")}, ContextEffect::{attrs.get("ctx", "none")}, '
        f'GraphAction::{attrs.get("graph", "none")}, NodeWork::{node}, '
        f'MemoryEffect::{identifier(attrs.get("memory", "none"))}, {size}, {element_types(attrs)}'), stack_words, str("no_result" not in attrs).lower()


def parse_cells(cells, seen, spelling):
    """-> (symbol, type, op, the C++ of its arguments, that of the rest, its words on the stack, whether it returns a result); `seen`: earlier
    symbols; `spelling`: of earlier arguments, by their names in lower case"""
    if len(cells) > len(COLUMNS):
        raise TableError("too many columns")
    if len(cells) < 5 or not all(cells[:5]):
        raise TableError("too few columns: symbol, name, type, op and profile are needed")
    row = dict(zip(COLUMNS, cells + [""] * (len(COLUMNS) - len(cells))))
    if row["symbol"] in seen:
        raise TableError(f"'{row['symbol']}' stands twice")
    seen.add(row["symbol"])
    # What a product multiplies are fields of its line.
    for name in re.findall(r"(\w+):", row["args"] if row["type"] != "product" else ""):
        if spelling.setdefault(name.lower(), name) != name:
            raise TableError(f"argument '{name}' is '{spelling[name.lower()]}' elsewhere: not all that reads a trace distinguishes these")
    return row["symbol"], row["type"], row["op"], *parse_row(row)


def results_of(source):
    """What a library's functions return: (number, name), sorted by number."""
    seen = set()

    def parse(cells, _):
        if len(cells) != 2 or not re.fullmatch(r"-?\d+", cells[0]) or not re.fullmatch(r"\w+", cells[1]):
            raise TableError("a row has a number and a name")
        if cells[0] in seen:
            raise TableError(f"'{cells[0]}' stands twice")
        seen.add(cells[0])
        return int(cells[0]), cells[1]

    return sorted(read_rows(source, ["number", "name"], parse))


def write_results(out, folder, sources):
    """By the api's key, since libraries.def alone knows their order."""
    for source in sources:
        if not (folder / source.name).exists():  # its functions return nothing
            out.write(f"constexpr std::span<const NamedResult> RESULTS_{source.stem};\n\n")
            continue
        out.write(f"constexpr NamedResult RESULTS_{source.stem}[] = {{\n")
        out.writelines(f'    {{{number}, "{name}"}},\n' for number, name in results_of(folder / source.name))
        out.write("};\n\n")


def main():
    meanings_source, table, words, results, *sources = sys.argv[1:]
    meanings = Meanings(meanings_source)
    arguments, functions, seen, spelling, pairs = [], [], set(), {}, {("other", "other")}
    for source in sources:
        api = pathlib.Path(source).stem
        for symbol, call_type, op, own, rest, on_stack, has_result in read_rows(source, COLUMNS, lambda cells, _: parse_cells(cells, seen, spelling)):
            span = f"{{ARGUMENTS + {len(arguments)}, {len(own)}}}" if own else "{}"
            functions.append((symbol, f"    {{{rest}, ApiId::{api}, {on_stack}, {has_result}, MEANINGS[{meanings.index(call_type, op)}], {span}}},"))
            arguments += own
            pairs.add((call_type, op))
    meanings.check(pairs)
    types = sorted({call_type for call_type, _ in pairs} | MORE_TYPES)
    ops = sorted({op for _, op in pairs} | MORE_OPS)
    functions.sort()  # find_function() searches by bisection
    generated = "// Generated by scripts/gen-cuda-api.py from include/cudabpf/apis/*.tsv and meanings.tsv.\n"
    with open(words, "w", encoding="utf-8") as out:
        out.write(generated + enum("Type", types) + "\n" + enum("Op", ops))
    with open(table, "w", encoding="utf-8") as out:
        out.write(generated)
        meanings.write(out, types, ops)
        out.write("constexpr Argument ARGUMENTS[] = {\n")
        out.writelines(f"    {argument},\n" for argument in arguments)
        out.write("};\n\n")
        write_results(out, pathlib.Path(results), [pathlib.Path(source) for source in sources])
        out.write("constexpr Function FUNCTIONS[] = {\n")
        out.writelines(line + "\n" for _, line in functions)
        out.write("};\n")


if __name__ == "__main__":
    main()
