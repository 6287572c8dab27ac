#!/usr/bin/env bash
# Sets everything up: virtual environment, packages, Java, jars. Run it as often as you like.
# The stamp is written last, so an interrupted run is taken up again by the next one.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

VENV=${VENV:-.venv}
STAMP=$VENV/penstock-setup
UNFINISHED=$VENV/penstock-unfinished
LOCKS=(requirements/build.txt requirements/dev.txt pyproject.toml scripts/setup.sh)

say() { printf 'setup: %s\n' "$*" >&2; }
fail() { printf 'setup: error: %s\n' "$1" >&2; exit "${2:-78}"; }
is_root() { [[ $(id -u) == 0 ]]; }
has() { command -v "$1" >/dev/null 2>&1; }
can_install() { is_root && has apt-get; }

install_debian() {
    say "installing $1 with apt-get"
    export DEBIAN_FRONTEND=noninteractive
    { apt-get install -y -q --no-install-recommends "$1" ||
        { apt-get update -q && apt-get install -y -q --no-install-recommends "$1"; }; } >&2
}

is_recent() { "$1" -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1; }

find_python() {
    local candidate seen=""
    for candidate in ${PYTHON:-python3.13 python3.12 python3.11 python3.14 python3}; do
        if has "$candidate"; then
            is_recent "$candidate" && { command -v "$candidate"; return; }
            seen="$candidate is $("$candidate" --version 2>&1 | head -n 1)"
        fi
    done
    fail "Python 3.11 or newer is needed, ${seen:-none was found}; install one (Debian 12: apt-get install python3 python3-venv) or name it: PYTHON=/path/to/python3.11 make setup"
}

# A killed pip may leave half a package that looks installed: such an environment is made again.
venv_works() {
    [[ -x $VENV/bin/python && ! -e $UNFINISHED ]] && is_recent "$VENV/bin/python" &&
        "$VENV/bin/python" -m pip --version >/dev/null 2>&1
}

# Debian splits ensurepip off into python3-venv; a venv made without it has no pip.
need_ensurepip() {
    local python=$1 version
    "$python" -c 'import ensurepip, venv' >/dev/null 2>&1 && return
    version=$("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])')
    can_install || fail "$python can't make virtual environments; install its package as root: apt-get install python$version-venv"
    install_debian "python$version-venv" || fail "apt-get could not install python$version-venv; see its message above" 75
}

need_venv() {
    venv_works && return
    local python
    python=$(find_python)
    need_ensurepip "$python"
    say "making $VENV with $("$python" --version)"
    rm -rf "$VENV"
    "$python" -m venv "$VENV"
}

stamp() { { pwd; "$VENV/bin/python" --version; cat "${LOCKS[@]}"; } | sha256sum; }

set_up_already() { [[ -f $STAMP && ! -e $UNFINISHED && $(<"$STAMP") == "$(stamp)" ]]; }

pip_install() { "$VENV/bin/python" -m pip install --quiet --disable-pip-version-check --no-input "$@"; }

# uv takes half of pip's time, but knows nothing of pip's own settings (an index, a proxy): where it can't, pip does.
install_locked() {
    local python=$1 lock=$2
    "$VENV/bin/uv" pip install --quiet --no-config --system-certs --python "$python" \
        --require-hashes --no-build-isolation -r "$lock" 2>/dev/null ||
        "$python" -m pip install --quiet --disable-pip-version-check --no-input \
            --require-hashes --no-build-isolation --use-pep517 -r "$lock"
}

# PySpark comes as a source archive: setuptools is installed first, pinned, and no build fetches its own.
need_packages() {
    set_up_already && return
    say "installing Python packages (a minute or two the first time)"
    rm -f "$STAMP"
    touch "$UNFINISHED"
    pip_install --require-hashes -r requirements/build.txt &&
        install_locked "$VENV/bin/python" requirements/dev.txt &&
        pip_install --no-deps --no-build-isolation --editable . || {
        (($? > 128)) || rm -f "$UNFINISHED"
        fail "pip could not install the packages; see its message above, then run this again" 75
    }
    rm -f "$UNFINISHED"
    stamp >"$STAMP"
}

find_java() { "$VENV/bin/python" -m penstock.local java; }

need_java() {
    find_java >/dev/null 2>&1 && return
    can_install || { find_java >/dev/null || exit 78; }
    install_debian openjdk-17-jre-headless || install_debian default-jre-headless ||
        fail "apt-get could not install Java; install Java 17 or newer yourself, then run this again"
    find_java >/dev/null || exit 78
}

need_jars() { "$VENV/bin/python" -m penstock.local jars; }

need_archive() { "$VENV/bin/python" -m penstock.process.spark.make_archive; }

# Servers that only tests need: `scripts/setup.sh servers`. Installed, they are not started; where they can't
# be installed, those tests say what they lack.
need_servers() {
    need_s3_server
    local policy=/usr/sbin/policy-rc.d name ours=""
    has redis-server && has mariadbd && has chromium && has prometheus && return
    can_install || { say "redis-server, mariadb-server, chromium or prometheus is missing, and apt-get can't be used here"; return 0; }
    [[ -e $policy ]] || { printf '#!/bin/sh\nexit 101\n' >"$policy"; chmod +x "$policy"; ours=yes; }
    for name in redis-server mariadb-server chromium prometheus; do
        install_debian "$name" || say "apt-get could not install $name: its tests will say so"
    done
    [[ -z $ours ]] || rm -f "$policy"
}

# A server with S3's interface, which only tests start.
need_s3_server() { need_beside s3-server || say "pip could not install the S3 server: its tests will say so"; }

# What makes the docs a site: `scripts/setup.sh docs`.
need_docs() { need_beside docs || fail "pip could not install what makes the docs; see its message above, then run this again" 75; }

# Packages that don't go together with ours, or that few need, have an environment of their own within ours.
need_beside() {
    local home=$VENV/$1 lock=requirements/$1.txt
    [[ -f $home/stamp && $(<"$home/stamp") == "$(sha256sum <"$lock")" ]] && return
    say "installing the packages of $lock"
    rm -rf "$home"
    "$VENV/bin/python" -m venv "$home" &&
        install_locked "$home/bin/python" "$lock" || { rm -rf "$home"; return 1; }
    sha256sum <"$lock" >"$home/stamp"
}

# Two set-ups at once would write into the same environment: the second one waits for the first.
take_turns() {
    has flock || return 0
    exec 9<"$PWD"
    flock --nonblock 9 || { say "waiting for another set-up of this folder"; flock 9; }
}

main() {
    take_turns
    set_up_already 2>/dev/null || need_venv
    need_packages
    need_java
    need_jars
    need_archive
    case ${1:-} in
        servers) need_servers ;;
        docs) need_docs ;;
    esac
}

if [[ ${BASH_SOURCE[0]} == "$0" ]]; then
    main "$@"
fi
