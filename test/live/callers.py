"""Ways to call cudabpf: as root, as a user through sudo, as a user with its file capabilities."""
import os
import pwd
import shutil
import subprocess

import harness
from harness import CUDABPF, INSIDE_LIBRARY, NOBODY

CAPABILITIES = ("cap_bpf", "cap_perfmon", "cap_sys_ptrace", "cap_dac_read_search")


class CalledTest(harness.LiveTest):
    """Programs that do not belong to the test's own user: in a session where that user may call sudo for everything."""

    def program_for_all(self):
        """cudabpf where every user may run it: a checkout may be in a home that only its owner can enter."""
        folder = f"{self.folder}/for-all"
        if not os.path.exists(folder):
            os.mkdir(folder)
            os.chmod(folder, 0o755)
            shutil.copy(CUDABPF, folder)
            if os.path.exists(INSIDE_LIBRARY):
                shutil.copy(INSIDE_LIBRARY, folder)
        return f"{folder}/cudabpf"

    def by_user(self, *command, user="nobody", defaults=""):
        """The command's argument list, for subprocess."""
        if not shutil.which("sudo"):
            self.skipTest("sudo is not installed")
        rules = f"{self.folder}/sudoers"
        if not os.path.exists(rules):
            with open(rules, "w", encoding="utf-8") as file:
                file.write('Defaults secure_path="/usr/sbin:/usr/bin:/sbin:/bin"\n'
                           f"{defaults}\nALL ALL=(ALL) NOPASSWD: ALL\n")
            os.chmod(rules, 0o440)
        # Only these processes see the rules, and nothing is left of them, however the test ends.
        begin = 'mount --bind "$0" /etc/sudoers && exec setpriv --reuid "$1" --regid "$2" --clear-groups "${@:3}"'
        account = pwd.getpwnam(user)
        return ["unshare", "--mount", "bash", "-c", begin, rules, str(account.pw_uid), str(account.pw_gid),
                *map(str, command)]

    def call(self, command, env=None, **options):
        options = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "stdin": subprocess.DEVNULL,
                   "cwd": self.folder, "timeout": 60, "env": self.environment() if env is None else env, **options}
        return subprocess.run(command, check=False, **options)

    def sudo(self, *arguments, env=None, user="nobody", **options):
        """A user's `sudo cudabpf …`: that user calls sudo, which removes the environment."""
        return self.call(self.by_user("sudo", "-n", self.program_for_all(), *arguments, user=user), env, **options)

    def with_capabilities(self, *names):
        """The program with file capabilities, which every user who starts it gets."""
        for tool in ("setcap", "setpriv"):
            if not shutil.which(tool):
                self.skipTest(f"{tool} is not installed")
        if os.statvfs(self.folder).f_flag & os.ST_NOSUID:
            self.skipTest(f"{self.folder} is mounted nosuid: files there give no capabilities")
        copy = self.program_for_all()
        done = subprocess.run(["setcap", ",".join(names or CAPABILITIES) + "=ep", copy], check=False,
                              stderr=subprocess.PIPE, text=True)
        if done.returncode:
            self.skipTest(f"files have no capabilities here: {done.stderr.strip()}")
        return copy

    @staticmethod
    def plain_user(*command, user="nobody"):
        account = pwd.getpwnam(user)
        return ["setpriv", "--reuid", str(account.pw_uid), "--regid", str(account.pw_gid), "--clear-groups",
                *map(str, command)]
