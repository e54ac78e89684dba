#!/bin/sh
# Builds onnxrl and compares whole trainings with Stable-Baselines3's, and with --sbx PYTHON also
# with SBX's, all sides in turns on this machine. PYTHON chooses the interpreter; it needs
# stable-baselines3, gymnasium and torch. All arguments go to sb3.py.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
(cd "$here/../.." && go build -o "$tmp/onnxrl" ./cmd/onnxrl)
PYTHONDONTWRITEBYTECODE=1 "${PYTHON:-python3}" "$here/sb3.py" --onnxrl "$tmp/onnxrl" "$@"
