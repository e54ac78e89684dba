#!/bin/sh
# Builds the benchmark of agents/a2c and compares its training with PyTorch's, both sides in turns.
# PYTHON chooses the interpreter; it needs torch and numpy. All arguments go to a2c_torch.py.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
(cd "$here/../.." && go test -c -o "$tmp/a2c.test" ./agents/a2c)
"${PYTHON:-python3}" "$here/a2c_torch.py" --bench "$tmp/a2c.test" "$@"
