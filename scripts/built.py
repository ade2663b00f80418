"""Whether a build is what is released, so that figures may be measured with it."""
import pathlib
import re
import sys

SLOWER = re.compile(r"^(CMAKE_BUILD_TYPE:STRING=Debug|CUDABPF_OPTIMIZE_LESS:BOOL=ON)$", re.MULTILINE)


def require_released(build):
    """Ends the script if the folder is a build whose program is slower than the released one."""
    cache = pathlib.Path(build) / "CMakeCache.txt"
    if cache.exists() and (found := SLOWER.search(cache.read_text(encoding="utf-8"))):
        sys.exit(f"{pathlib.Path(sys.argv[0]).name}: {build} was built with {found[1]}, and its figures would be worse than "
                 "users see; build again (cmake --preset dev && cmake --build --preset dev)")
