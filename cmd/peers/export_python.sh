#!/bin/sh
# Exports a model in every precision and runs what was written with Python: example.py in each
# Python folder, and onnx.checker with onnxruntime on every file. With the name of a Gymnasium
# environment, the folders act in it in the place of Stable-Baselines3's models.
#
#     cmd/peers/export_python.sh RUN|REF|MODEL.onnx [ENVIRONMENT [LEAST MEAN RETURN]]
#
# PYTHON chooses the interpreter; it needs numpy, onnx and onnxruntime, for an environment also
# gymnasium and stable-baselines3. ONNXRL names the program; without it, it is built. Ends with
# another status than 0 when an action differs, a file is refused, or the mean return is less than
# demanded.
set -eu
source=$1 environment=${2:-} least=${3:--inf}
python=${PYTHON:-python3}
here=$(cd "$(dirname "$0")" && pwd)
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
onnxrl=${ONNXRL:-$tmp/onnxrl}
[ -n "${ONNXRL:-}" ] || (cd "$here/../.." && go build -o "$onnxrl" ./cmd/onnxrl)
check() {
	"$python" "$here/check_onnx.py" "$@" >"$tmp/checked" || { cat "$tmp/checked"; exit 1; }
	grep -v '  onnxrl\.' "$tmp/checked"
}
for options in "" "--precision fp16" "--precision int8" --sample "--sample --precision int8"; do
	folder=$tmp/model$(echo "$options" | tr -d ' ')
	# The options are words.
	# shellcheck disable=SC2086
	if ! "$onnxrl" export "$source" -q --format python --out "$folder" --rows 2048 --allow-ties $options 2>"$tmp/refused"; then
		# Deterministic policies draw nothing, and small ones have nothing to quantise.
		grep -Eq 'large enough to keep in lower precision|the policy is deterministic' "$tmp/refused" || { cat "$tmp/refused"; exit 1; }
		echo "$options: $(cat "$tmp/refused")"
		continue
	fi
	"$python" "$folder/example.py"
	check "$folder/model.onnx"
	[ -z "$environment" ] || "$python" "$here/export_evaluate.py" "$folder" "$environment" "$least"
done
"$onnxrl" export "$source" -q --out "$tmp/plain.onnx" --optimized "$tmp/optimized.onnx" --rows 2048 --allow-ties
"$onnxrl" export "$source" -q --out "$tmp/again.onnx" --optimized "$tmp/optimized.ort" --rows 2048 --allow-ties >/dev/null
check "$tmp/plain.onnx" "$tmp/optimized.onnx" "$tmp/optimized.ort"
