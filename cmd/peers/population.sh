#!/bin/sh
# Builds onnxrl and compares `train population` with the same loop in Stable-Baselines3, both sides
# in turns on this machine. PYTHON chooses the interpreter; without it a virtual environment is made
# in VENV, or in a temporary folder. All arguments go to population.py.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
if [ -z "${PYTHON:-}" ]; then
	venv=${VENV:-$tmp/venv}
	if [ ! -x "$venv/bin/python" ]; then
		python3.11 -m venv "$venv"
		"$venv/bin/pip" install -q torch==2.15.0 stable-baselines3==2.9.2 sb3-contrib==2.9.2 gymnasium==1.2.3 pyarrow pyyaml
	fi
	PYTHON=$venv/bin/python
fi
(cd "$here/../.." && go build -o "$tmp/onnxrl" ./cmd/onnxrl)
PYTHONDONTWRITEBYTECODE=1 "$PYTHON" "$here/population.py" --onnxrl "$tmp/onnxrl" "$@"
