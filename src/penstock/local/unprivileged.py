"""Running a program that refuses to be root, as root, without adding users or opening anybody's folders."""

import os
import pwd
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from penstock.errors import SetupError


@dataclass(frozen=True)
class Disguise:
    """What to put before a command, and the user who must own the files it writes."""

    prefix: tuple[str, ...] = ()
    owner: int = 0


def disguise(trial: Sequence[str], root: bool | None = None) -> Disguise | None:
    """Return how to run programs such as `trial`, or None where no disguise is needed."""
    if not (os.geteuid() == 0 if root is None else root):
        return None
    for option in (_namespace(_stand_in()), _other_user(_stand_in())):
        if _works([*option.prefix, *trial]):
            return option
    raise SetupError(
        f"{Path(trial[0]).name} refuses to run as root, and neither a user namespace (unshare) "
        "nor another user with the right to read your files (setpriv) is allowed here",
        hint="run penstock as an ordinary user",
    )


def hand_over(folder: Path, owner: int) -> None:
    """Give `folder` and what is in it to `owner`, if it isn't theirs already."""
    if folder.stat().st_uid == owner:
        return
    for path in (*folder.rglob("*"), folder):
        os.chown(path, owner, -1, follow_symlinks=False)


def _stand_in() -> pwd.struct_passwd:
    """A user that exists on every machine; the program looks its own name up."""
    return next(user for user in pwd.getpwall() if user.pw_uid != 0)


def _namespace(user: pwd.struct_passwd) -> Disguise:
    """Inside, the process is somebody else; outside, it still is root, and root's files are its own."""
    return Disguise(("unshare", "--user", f"--map-user={user.pw_uid}", f"--map-group={user.pw_gid}", "--"))


def _other_user(user: pwd.struct_passwd) -> Disguise:
    """Another user for real, who may pass closed folders: the packages may be below /root."""
    identity = (f"--reuid={user.pw_uid}", f"--regid={user.pw_gid}", "--clear-groups")
    rights = ("--inh-caps=+dac_override", "--ambient-caps=+dac_override")
    return Disguise(("setpriv", *identity, *rights, "--"), user.pw_uid)


def _works(command: Sequence[str]) -> bool:
    if shutil.which(command[0]) is None:
        return False
    answer = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, timeout=30, check=False)
    return answer.returncode == 0
