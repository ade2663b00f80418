#!/usr/bin/env python3
"""Whether scripts/quickstart builds all that `cmake --install` and cpack take from the build folder, and what its
own trace runs. usage: installed.py BUILD_FOLDER. Run by ctest; builds nothing."""

import os
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def text_of(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def installed_from(build):
    """The files of the build folder that its installation script names, as paths in it."""
    named = re.findall(rf'"{re.escape(build)}/([^"$]+)"', text_of(os.path.join(build, "cmake_install.cmake")))
    return {path for path in named if not path.endswith((".cmake", "manifest.txt"))}


def made_by(build, targets):
    """What the commands that build these targets write, as paths in the build folder."""
    commands = subprocess.run(["ninja", "-C", build, "-t", "commands", *targets], capture_output=True, text=True, check=True).stdout
    return {path.removeprefix(build + "/") for path in re.findall(r"(?:-o|>) *(\S+)", commands)}


def says_what_to_build(build):
    """Where something is not built, installing says how it is, and installs nothing."""
    script = text_of(os.path.join(build, "cmake_install.cmake")).replace(f"{build}/", f"{build}/absent/")
    with tempfile.TemporaryDirectory() as folder:
        changed, into = os.path.join(folder, "cmake_install.cmake"), os.path.join(folder, "into")
        with open(changed, "w", encoding="utf-8") as file:
            file.write(script)
        done = subprocess.run(["cmake", f"-DCMAKE_INSTALL_PREFIX={into}", "-P", changed], capture_output=True, text=True, check=False)
        assert done.returncode != 0, done
        assert "is not built yet" in done.stderr and "--target installed" in done.stderr, done.stderr
        assert not os.path.exists(into), os.listdir(into)


def main():
    build = os.path.realpath(sys.argv[1])
    if not shutil.which("ninja") or not os.path.exists(os.path.join(build, "build.ninja")):
        print("SKIPPED: this build is not ninja's, which knows what a target is made of")
        return 77
    listed = re.search(r"^targets=\((.*)\)$", text_of(os.path.join(ROOT, "scripts/quickstart")), re.MULTILINE)
    wanted = installed_from(build)
    assert "cudabpf" in wanted, wanted
    made = made_by(build, listed[1].split())
    assert wanted <= made, f"scripts/quickstart does not build {sorted(wanted - made)}"
    run_there = set(re.findall(r"build/(test/\S+/\w+)", text_of(os.path.join(ROOT, "scripts/quickstart"))))
    assert run_there, "scripts/quickstart no longer runs a program on the simulated driver"
    for path in run_there:
        assert any(output.startswith(path) for output in made), f"scripts/quickstart does not build {path}"
    assert "test/unit_tests" not in made, "scripts/quickstart builds the tests"
    says_what_to_build(build)
    print(f"{len(wanted)} files are installed from the build folder, and scripts/quickstart builds them")
    return 0


sys.exit(main())
