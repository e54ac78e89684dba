#!/bin/sh
# Exports a model in every precision and runs what was written with Python: example.py in each Python folder, and onnx.checker with onnxruntime on every file.
#
#     cmd/peers/export_python.sh RUN|REF|MODEL.onnx
#
# PYTHON chooses the interpreter; it needs numpy, onnx and onnxruntime. Ends with another status than 0 when an action differs or a file is refused.
set -eu
source=$1
python=${PYTHON:-python3}
here=$(cd "$(dirname "$0")" && pwd)
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
(cd "$here/../.." && go build -o "$tmp/onnxrl" ./cmd/onnxrl)
check() {
	"$python" "$here/check_onnx.py" "$@" >"$tmp/checked" || { cat "$tmp/checked"; exit 1; }
	grep -v '  onnxrl\.' "$tmp/checked"
}
for options in "" --float16 --int8 --sample "--sample --int8"; do
	folder=$tmp/model$(echo "$options" | tr -d ' ')
	# The options are words.
	# shellcheck disable=SC2086
	"$tmp/onnxrl" export "$source" -q --format python --out "$folder" --rows 2048 --allow-ties $options
	"$python" "$folder/example.py"
	check "$folder/model.onnx"
done
"$tmp/onnxrl" export "$source" -q --out "$tmp/plain.onnx" --optimized "$tmp/optimized.onnx" --rows 2048 --allow-ties
check "$tmp/plain.onnx" "$tmp/optimized.onnx"
