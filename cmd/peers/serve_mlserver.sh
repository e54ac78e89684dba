#!/bin/sh
# Compares onnxrl serve with MLServer on the same model, machine and load generator.
#
#     cmd/peers/serve_mlserver.sh MODEL.onnx [ROUNDS]
#
# PYTHON names an interpreter that has mlserver and onnxruntime (pip install mlserver onnxruntime).
# Both servers run one model in one process with one ONNX Runtime thread, as processes of their own;
# the load generator is onnxrl-bench's. The exit status is 1 when onnxrl answers fewer than ten times as
# many requests.
set -eu
model=$(realpath "$1")
rounds=${2:-5}
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
ours= theirs=
trap '[ -z "$ours" ] || kill "$ours" 2>/dev/null || true; [ -z "$theirs" ] || kill "$theirs" 2>/dev/null || true; rm -rf "$work"' EXIT
(cd "$here/../.." && go build -o "$work" ./cmd/onnxrl ./cmd/onnxrl-bench)

mkdir "$work/repository"
cp "$here/serve_mlserver.py" "$work/repository/runtime.py"
cat >"$work/repository/model-settings.json" <<JSON
{"name": "model", "implementation": "runtime.Model", "parameters": {"uri": "$model"}}
JSON
port=${PORT:-18180}
cat >"$work/repository/settings.json" <<JSON
{"host": "127.0.0.1", "http_port": $port, "grpc_port": $((port + 1)), "metrics_port": $((port + 2)), "parallel_workers": 0, "debug": false, "use_structured_logging": true}
JSON
(cd "$work/repository" && exec "${PYTHON:-python3}" -c "from mlserver.cli import main; main()" start .) >"$work/mlserver.log" 2>&1 &
theirs=$!
"$work/onnxrl" serve --json --http 127.0.0.1:0 --grpc '' --model "model=$model" >"$work/started" 2>"$work/onnxrl.log" &
ours=$!
tries=0
until curl -sf "http://127.0.0.1:$port/v2/models/model/ready" >"$work/ready" && [ -s "$work/started" ]; do
	tries=$((tries + 1))
	if [ "$tries" -gt 300 ] || ! kill -0 "$theirs" || ! kill -0 "$ours"; then
		cat "$work/mlserver.log" "$work/onnxrl.log" >&2
		exit 2
	fi
	sleep 0.2
done
url=http://$("${PYTHON:-python3}" -c 'import json, sys; print(json.loads(sys.stdin.readline())["http"])' <"$work/started")
# Both read JSON; MLServer's answer to the binary form depends on its version.
"$work/onnxrl-bench" serve --url "$url" --against "http://127.0.0.1:$port" --model model --transports http-json --concurrency 1,8,64 --rounds "$rounds" --round 2s --at-least 10 --check
