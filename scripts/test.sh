#!/usr/bin/env bash
# All tests but the long ones. Up to six that fail are run once more, alone: three workers on two cores leave
# a broker, a database or Spark without a processor for many seconds. What passes only then is named as unsteady.
set -uo pipefail
cd "$(dirname "$0")/.."
readonly FAILED=.pytest_cache/v/cache/lastfailed

run() {
    .venv/bin/pytest -m "not long" --ignore tests/docs "$@"
}

names() {
    .venv/bin/python -c 'import json, sys; print(*json.load(open(sys.argv[1])), sep="\n")' "$FAILED"
}

rm -f "$FAILED"
run --durations=40 -n 3 --dist loadfile --no-loadscope-reorder
code=$?
[ "$code" -eq 1 ] && [ -f "$FAILED" ] || exit "$code"
failed=$(names)
[ "$(wc -l <<<"$failed")" -le 6 ] || exit "$code"
printf '\nonce more, alone:\n%s\n' "$failed"
run --last-failed || exit
printf '\nunsteady, as they passed only alone:\n%s\n' "$failed"
