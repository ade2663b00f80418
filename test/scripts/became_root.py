"""Whom a test that plays sudo has to name."""
import pathlib

NOBODY = 65534


def who_became_root():
    """The user and group of the nearest process above this one that is not root's: cudabpf believes no sudo that names another.
    The user nobody, where there is none."""
    pid = "self"
    while pid != "0":
        lines = pathlib.Path(f"/proc/{pid}/status").read_text(encoding="ascii", errors="replace").splitlines()
        status = dict(line.split(":\t", 1) for line in lines if ":\t" in line)
        user, group = (int(status[name].split()[0]) for name in ("Uid", "Gid"))
        if user:
            return user, group
        pid = status["PPid"]
    return NOBODY, NOBODY


def sudo_by(user, group):
    """What sudo puts into the environment for them."""
    return {"SUDO_UID": str(user), "SUDO_GID": str(group)}
