"""Images of code that the simulated GPU can run: see kernels.hpp."""
import struct

SECTION_TYPE = 0x7000FA4E
EM_CUDA = 190


def text_of(kernels, variables):
    """-> the lines that say what is in the image. `kernels`: names; "scale fault": one named scale that does what fault does.
    `variables`: bytes by name"""
    return "".join([*(f"kernel {name}\n" for name in kernels),
                    *(f"variable {name} {content.hex()}\n" for name, content in variables.items())])


def cubin(kernels, variables=None):
    """An ELF file with one section, whose headers are at its end."""
    content = text_of(kernels, variables or {}).encode()
    content += b"\n" * (-len(content) % 8)
    header = struct.pack("<16sHHIQQQIHHHHHH", b"\x7fELF\2\1\1" + bytes(9), 2, EM_CUDA, 1, 0, 0, 64 + len(content), 0, 64, 0, 0, 64, 2, 0)
    section = struct.pack("<IIQQQQIIQQ", 0, SECTION_TYPE, 0, 0, 64, len(content), 0, 0, 1, 0)
    return header + content + bytes(64) + section


def fat_binary(*images):
    """Each entry: kind, version, size of its header, size of its payload, and more that is not read."""
    payload = b""
    for image in images:
        image += bytes(-len(image) % 8)
        payload += struct.pack("<HHIQ", 2, 0x101, 64, len(image)) + bytes(48) + image
    return struct.pack("<IHHQ", 0xBA55ED50, 1, 16, len(payload)) + payload


def ptx(kernels, variables=None):
    lines = text_of(kernels, variables or {}).splitlines()
    return (".version 8.0\n.target sm_90\n" + "".join(f"//fake {line}\n" for line in lines)).encode() + b"\0"
