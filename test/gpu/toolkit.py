"""What both the GPU tests and the benchmarks need: the toolkit's CUPTI, PyTorch, the function table."""
import argparse
import glob
import os
import shutil
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
TABLE = os.path.join(HERE, "../../include/cudabpf/apis/cuda.tsv")
FRAMEWORKS = {  # what frameworks.py takes, and the modules that it imports then
    "cupy": "cupy",
    "jax": "jax",
    "numba": "numba.cuda",
    "triton": "triton",
    "compile": "torch",
    "compile-graphs": "torch",
    "training": "torch",
    "training-spawn": "torch",
}


def require(script, *programs):
    """Ends the script if it cannot run: without root, or without one of its own programs or CUDA's."""
    if os.geteuid() != 0:
        sys.exit(f"{script}: tracing takes root: run it with sudo")
    for tool, why in (*programs, ("nvcc", "it comes with the CUDA toolkit"), ("nvidia-smi", "it comes with the driver")):
        if not shutil.which(tool):
            print(f"SKIPPED: {tool} was not found: {why}")
            sys.exit(77)


def inside_library(cudabpf):
    return os.path.join(os.path.dirname(os.path.abspath(cudabpf)), "libcudabpf-inside.so")


def some_of(parts):
    """The argparse type of an option that takes some of these, comma-separated."""
    def chosen(text):
        if not set(text.split(",")) <= set(parts):
            raise argparse.ArgumentTypeError(f"takes of {', '.join(parts)}, comma-separated")
        return text.split(",")
    return chosen


def sees_gpu(modules):
    """Whether Python has them, and PyTorch has a GPU."""
    probe = f"import sys, {modules}; sys.exit(not torch.cuda.is_available())"
    return subprocess.run([sys.executable, "-c", probe], check=False, stderr=subprocess.DEVNULL).returncode == 0


def functions_of(profile):
    """The functions that this profile traces and smaller ones do not."""
    with open(TABLE, encoding="utf-8") as file:
        rows = [line.split("\t") for line in file if not line.startswith("#")]
    return {row[0] for row in rows if row[4] == profile}


def build_cupti_library(name, folder):
    """-> the library of NAME.cpp, for CUDA_INJECTION64_PATH; None if the toolkit has no CUPTI"""
    toolkit = os.path.dirname(os.path.dirname(os.path.realpath(shutil.which("nvcc"))))
    for root in (f"{toolkit}/extras/CUPTI", toolkit, *glob.glob(f"{toolkit}/targets/*")):
        libraries = glob.glob(f"{root}/lib*/libcupti.so")
        if os.path.exists(f"{root}/include/cupti.h") and libraries:
            built, where = f"{folder}/lib{name}.so", os.path.dirname(libraries[0])
            subprocess.run(["g++", "-std=c++20", "-O2", "-Wall", "-Wextra", "-shared", "-fPIC", f"-I{root}/include",
                            f"-I{toolkit}/include", "-o", built, f"{HERE}/{name}.cpp", f"-L{where}", f"-Wl,-rpath,{where}",
                            "-lcupti"], check=True)
            return built
    return None
