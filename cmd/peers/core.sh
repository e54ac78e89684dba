#!/bin/sh
# Builds onnxrl-bench and compares it with PyTorch on the work of `onnxrl-bench core`, both sides in
# turns. PYTHON chooses the interpreter; it needs torch. All arguments go to core.py.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
(cd "$here/../.." && go build -o "$tmp/onnxrl-bench" ./cmd/onnxrl-bench)
"${PYTHON:-python3}" "$here/core.py" --onnxrl-bench "$tmp/onnxrl-bench" "$@"
