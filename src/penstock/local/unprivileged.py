"""Running a program that refuses to be root, as root, without adding users or opening anybody's folders."""

import hashlib
import os
import pwd
import shutil
import subprocess
import tempfile
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


def open_to_all(folder: Path, parts: Sequence[str], copies: Path = Path("/var/tmp")) -> Path:  # noqa: S108
    """Return a folder of programs, or a copy of its `parts`, that every user may enter.

    A right to pass closed folders is not enough: a program that asks access(2) about itself hears of what
    its user may do by nature.
    """
    if all(path.stat().st_mode & 0o005 == 0o005 for path in (folder, *folder.resolve().parents)):
        return folder
    ages = [(folder / part).stat().st_mtime_ns for part in parts]
    known = hashlib.sha256(f"{folder} {ages}".encode()).hexdigest()[:16]
    copy = copies / f"penstock-{known}"
    if not copy.exists():
        _copy_open(folder, parts, copy)
    if copy.stat().st_uid != os.geteuid() or copy.stat().st_mode & 0o022:
        raise SetupError(f"{copy} was made by somebody else", hint="remove it, then try again")
    return copy


def _copy_open(folder: Path, parts: Sequence[str], copy: Path) -> None:
    """Copy parts of a folder for all to read; the copy gets its name when it is whole."""
    draft = Path(tempfile.mkdtemp(prefix="penstock-new-", dir=copy.parent))
    for part in parts:
        shutil.copytree(folder / part, draft / part, symlinks=True)
    for path in (draft, *draft.rglob("*")):
        if not path.is_symlink():
            path.chmod(
                path.stat().st_mode & 0o700 | (0o055 if path.is_dir() or os.access(path, os.X_OK) else 0o044)
            )
    try:
        draft.rename(copy)
    except OSError:  # somebody was faster
        shutil.rmtree(draft)


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
