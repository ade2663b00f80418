#!/usr/bin/env python3
"""Writes the exported functions of the simulated driver.

    generate.py [--old] OUTPUT.cpp BEHAVIOUR.hpp TABLE.tsv...

Every symbol of the tables becomes one exported function that counts, logs and can be made slow, fail or
hang (observe.hpp). With --old they begin as those of drivers 470 to 555 do. What it does comes from BEHAVIOUR.hpp if a function is declared there with the
symbol's API name and the same argument types; otherwise it succeeds and writes plausible outputs.
"""
import re
import sys

HANDLES = {"stream", "context", "module", "library", "function", "kernel", "event", "graph",
           "graph_exec", "node", "array", "pool", "mem_handle", "comm", "window", "blas", "handle"}
SCALARS = {"u8": "uint8_t", "u16": "uint16_t", "u32": "uint32_t", "u64": "uint64_t",
           "i32": "int32_t", "device": "int32_t", "f32": "float", "location": "uint64_t", "nccl_type": "uint32_t", "nccl_op": "uint32_t",
           "blas_op": "uint32_t", "cuda_type": "uint32_t", "compute_type": "uint32_t",
           "count": "uint64_t", "rank": "int32_t", "ranks": "int32_t", "root": "int32_t", "peer": "int32_t", "color": "int32_t", "key": "int32_t",
           "ptr": "DevicePtr", "ptr32": "uint32_t", "hptr": "void*", "str": "const char*", "path": "const char*",
           "addr": "void*", "outbuf": "void*"}
STRUCT_BYTES = {"memcpy2d": 128, "memcpy3d": 200, "memcpy3d_peer": 200, "launch_config": 56,
                "alloc_prop": 32, "pool_props": 88, "kernel_node": 72, "launch_params": 56,
                "kernel_node_v1": 56, "memset_node": 40, "alloc_node": 112, "graph_node": 232}
WIDTH = {"uint8_t": 1, "uint16_t": 2, "uint32_t": 4, "int32_t": 4, "float": 4}

# The CUDA version that brought a revised function; those not named here came with 3.2's 64-bit addresses.
SINCE_DEFAULT = 3020
SINCE = {
    "cuCtxCreate_v3": 11040, "cuCtxCreate_v4": 12050, "cuCtxDestroy_v2": 4000,
    "cuCtxPopCurrent_v2": 4000, "cuCtxPushCurrent_v2": 4000, "cuCtxGetDevice_v2": 13000,
    "cuCtxSynchronize_v2": 13000, "cuDeviceGetUuid_v2": 11040, "cuDevicePrimaryCtxRelease_v2": 11000,
    "cuDevicePrimaryCtxReset_v2": 11000, "cuDevicePrimaryCtxSetFlags_v2": 11000,
    "cuEventDestroy_v2": 4000, "cuEventElapsedTime_v2": 12080, "cuGLGetDevices_v2": 6050,
    "cuGetProcAddress_v2": 12000, "cuGraphAddDependencies_v2": 12030,
    "cuGraphAddKernelNode_v2": 12000, "cuGraphAddNode_v2": 12030,
    "cuGraphExecKernelNodeSetParams_v2": 12000, "cuGraphExecUpdate_v2": 12000,
    "cuGraphGetEdges_v2": 12030, "cuGraphInstantiate_v2": 11000,
    "cuGraphKernelNodeGetParams_v2": 12000, "cuGraphKernelNodeSetParams_v2": 12000,
    "cuGraphNodeGetDependencies_v2": 12030, "cuGraphNodeGetDependentNodes_v2": 12030,
    "cuGraphRemoveDependencies_v2": 12030, "cuGraphicsResourceSetMapFlags_v2": 6050,
    "cuIpcOpenMemHandle_v2": 11000, "cuLinkAddData_v2": 6050, "cuLinkAddFile_v2": 6050,
    "cuLinkCreate_v2": 6050, "cuMemAdvise_v2": 12020, "cuMemHostRegister_v2": 6050,
    "cuMemPrefetchAsync_v2": 12020, "cuMemcpy3DBatchAsync_v2": 13000,
    "cuMemcpyBatchAsync_v2": 13000, "cuStreamBatchMemOp_v2": 11070, "cuStreamBeginCapture_v2": 10010,
    "cuStreamDestroy_v2": 4000, "cuStreamGetCaptureInfo_v2": 11030,
    "cuStreamGetCaptureInfo_v3": 12030, "cuStreamGetCtx_v2": 12050,
    "cuStreamUpdateCaptureDependencies_v2": 12030, "cuStreamWaitValue32_v2": 11070,
    "cuStreamWaitValue64_v2": 11070, "cuStreamWriteValue32_v2": 11070,
    "cuStreamWriteValue64_v2": 11070, "cuTexRefSetAddress2D_v3": 4010,
}


# How nearly all functions of drivers 470 to 555 begin: they return CUDA_ERROR_DEINITIALIZED, 4, if a word
# says that the driver has been taken down, and jump to what does the work. Some narrow an argument, here
# by an instruction that changes nothing; from one function to the next they differ, as there.
OLD = "cmpl $0x321cba00, fake_odd_word(%rip); je 1f; {narrowed}jmp *slot_{symbol}(%rip); 1: mov $4, %eax; ret"
NARROWED = ("", "nopl (%rax); ", "nopl 8(%rax); ")

# How none of driver 580's functions begins, so that a tracer that changes entries must refuse them or do more: a
# jump; a branch, not taken, in the first bytes; an instruction with an address relative to RIP, as the
# first one or behind the push; endbr64. All keep every argument, and go on to what the function does.
ODD = {
    "cuFlushGPUDirectRDMAWrites": "jmp {to}",
    "cuCtxRecordEvent": "test %rsp, %rsp; jz 1f; 1: jmp {to}",
    "cuTexRefCreate": "mov fake_odd_word(%rip), %rax; jmp {to}",
    "cuTexRefDestroy": "push %rbp; mov fake_odd_word(%rip), %rax; pop %rbp; jmp {to}",
    "cuCtxResetPersistingL2Cache": "endbr64; push %rbp; mov %rsp, %rbp; pop %rbp; jmp {to}",
}


def c_type(role):
    if role.startswith("out."):
        return c_type(role[4:]) + "*"
    if role.startswith("in."):
        return "void*"
    if role == "mem.comm_id":
        return "Bytes<128>"
    if role.startswith("mem") and role[3:].isdigit():
        return f"Bytes<{role[3:]}>"
    return "Handle" if role in HANDLES else SCALARS[role]


def read_table(path):
    """Rows as (symbol, api name, [(argument, role)]); a role's [OTHER] is left out."""
    rows = []
    with open(path, encoding="utf-8") as table:
        lines = [line.rstrip("\n") for line in table if not line.startswith("#") and line.strip()]
    for line in lines[1:]:
        columns = line.split("\t")
        arguments = re.sub(r"\[\w+\]", "", columns[5]) if len(columns) > 5 else ""
        pairs = [tuple(part.strip().split(":")) for part in arguments.split(",")
                 if part.strip() and "@" not in part]  # a struct that another points to is no argument
        rows.append((columns[0], columns[1], pairs))
    return rows


def read_behaviours(path):
    """The declarations of behaviour.hpp: {(api name, types)}."""
    text = open(path, encoding="utf-8").read()
    found = set()
    for name, parameters in re.findall(r"^Status (cu\w+)\(([^)]*)\);", text, re.M):
        types = [re.sub(r"\s+", " ", p.strip()).rpartition(" ")[0] for p in parameters.split(",")]
        found.add((name, tuple(t for t in types if t)))
    return found


def argument_info(pairs):
    """What observe.cpp needs to know of each word that it gets: the integer and pointer arguments."""
    infos = []
    for _, role in pairs:
        if role == "f32" or role.startswith("mem") and role[3:].isdigit():
            continue
        if role.startswith("out."):
            infos.append(("out", WIDTH.get(c_type(role[4:]), 8)))
        elif role == "in.sizes":
            infos.append(("sizes", 0))
        elif role.startswith("in."):
            infos.append(("structure", STRUCT_BYTES[role[3:]]))
        elif role in ("str", "path"):
            infos.append(("string", 0))
        elif role in ("function", "kernel"):
            infos.append(("function", 0))
        else:
            infos.append(("plain", 0))
    return infos


def default_body(pairs):
    writes = [f"write_plausible{'_address' if role == 'out.ptr' else ''}({name});"
              for name, role in pairs if role.startswith("out.")]
    return " ".join(writes + ["return kSuccess;"])


def emit(out, index, row, behaviours, used, old):
    symbol, api, pairs = row
    pairs = [(name + "_", role) for name, role in pairs]
    types = tuple(c_type(role) for _, role in pairs)
    parameters = ", ".join(f"[[maybe_unused]] {t} {n}" for t, (n, _) in zip(types, pairs))
    names = ", ".join(n for n, _ in pairs)
    if (api, types) in behaviours:
        used.add((api, types))
        body = f"fake::{api}({names})"
    else:
        out.append(f"static inline Status plain_{symbol}({parameters}) {{ {default_body(pairs)} }}")
        body = f"plain_{symbol}({names})"
    infos = argument_info(pairs)
    words = [n for n, role in pairs if c_type(role) != "float" and not c_type(role).startswith("Bytes")]
    if infos:
        table = ", ".join(f"{{Role::{kind}, {width}}}" for kind, width in infos)
        out.append(f"static constexpr Argument {symbol}_arguments[] = {{{table}}};")
    if old:
        code = OLD.format(symbol=symbol, narrowed=NARROWED[index % len(NARROWED)])
        emit_entry(out, symbol, parameters, code, slot=True)
    elif symbol in ODD:
        emit_entry(out, symbol, parameters, ODD[symbol].format(to="odd_" + symbol), slot=False)
    else:
        out.append(f'extern "C" EXPORTED Status {symbol}({parameters}) {{')
    out.append(f"  if (!watching) [[likely]] return {body};")
    if words:
        out.append(f"  const uint64_t words[] = {{{', '.join(f'word({w})' for w in words)}}};")
    by_value = [n for n, _ in pairs if n not in words]
    if by_value:
        passed = ", ".join(f"{{&{n}, sizeof {n}}}" for n in by_value)
        out.append(f"  const Passed passed[] = {{{passed}}};")
    extra = f", passed, {len(by_value)}" if by_value else ""
    out.append(f"  Observed call({index}, {'words' if words else 'nullptr'}{extra});")
    out.append(f"  if (call.proceeds()) call.set_status({body});")
    out.append("  return call.finish();")
    out.append("}")


def emit_entry(out, symbol, parameters, code, slot):
    """The beginning of the function itself; on other machines it is as all are. `slot`: where it goes on is
    in memory."""
    out += ["#ifdef __x86_64__"]
    if slot:
        out += [f'asm(".data; .p2align 3; slot_{symbol}: .quad odd_{symbol}");']
    out += [
            f'asm(".text; .p2align 4; .globl {symbol}; .type {symbol}, @function; {symbol}: {code}; "',
            f'    ".size {symbol}, . - {symbol}; .p2align 4");',
            f'extern "C" EXPORTED Status {symbol}({parameters});',
            f'extern "C" __attribute__((visibility("hidden"), noinline, used)) Status odd_{symbol}({parameters}) {{',
            "#else", f'extern "C" EXPORTED Status {symbol}({parameters}) {{', "#endif"]


def table_entry(row):
    symbol, api, pairs = row
    infos = argument_info(pairs)
    mode = symbol[-5:] if symbol.endswith(("_ptsz", "_ptds")) else ""
    revised = symbol[: len(symbol) - len(mode)]
    since = 0 if revised == api else SINCE.get(revised, SINCE_DEFAULT)
    per_thread = "true" if mode else "false"
    arguments = f"{symbol}_arguments" if infos else "nullptr"
    return (f'    {{"{symbol}", "{api}", {since}, {per_thread}, reinterpret_cast<void*>(&::{symbol}), '
            f"{arguments}, {len(infos)}}},")


def main():
    old = sys.argv[1] == "--old"
    output, behaviour_header, *tables = sys.argv[1 + old:]
    rows = [row for table in tables for row in read_table(table)]
    behaviours = read_behaviours(behaviour_header)
    used = set()
    out = ["// Generated by generate.py; do not edit.", '#include "behaviour.hpp"',
           '#include "observe.hpp"', '#include "plausible.hpp"', "",
           "using namespace fake;",
           '#define EXPORTED __attribute__((visibility("default"), noinline))', ""]
    out += ["#ifdef __x86_64__", 'extern "C" {',
            '__attribute__((visibility("hidden"), used)) uint64_t fake_odd_word = 1;', "}", "#endif", ""]
    for index, row in enumerate(rows):
        emit(out, index, row, behaviours, used, old)
    out += ["", "namespace fake {", "const Symbol kSymbols[] = {"]
    out += [table_entry(row) for row in rows]
    out += ["};", f"const int kSymbolCount = {len(rows)};", "}  // namespace fake", ""]
    unused = behaviours - used
    if unused:
        sys.exit("no symbol of the table has these names and types: " +
                 "; ".join(f"{name}({', '.join(types)})" for name, types in sorted(unused)))
    with open(output, "w", encoding="utf-8") as file:
        file.write("\n".join(out))


if __name__ == "__main__":
    main()
