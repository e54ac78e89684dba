#!/bin/sh
# Opens the server's page in a headless Chromium under load, checks what it draws, and takes the
# screenshot of docs/serving.md.
#
#     cmd/peers/serve_page.sh MODEL [SCREENSHOT.png]
#
# MODEL is a file or a reference of a model whose inputs the load generator can fill;
# RUN/artifacts//demo of a demo run shows recorded samples and probabilities. CHROMIUM and PYTHON
# name the programs.
set -eu
model=$1
shot=${2:-.github/serve.png}
root=$(cd "$(dirname "$0")/../.." && pwd)
work=$(mktemp -d)
server= load= crowded=
trap '[ -z "$crowded" ] || kill "$crowded" 2>/dev/null || true; [ -z "$load" ] || kill "$load" 2>/dev/null || true; [ -z "$server" ] || kill "$server" 2>/dev/null || true; rm -rf "$work"' EXIT
(cd "$root" && go build -o "$work" ./cmd/onnxrl ./cmd/onnxrl-bench)

"$work/onnxrl" serve --json --http 127.0.0.1:0 --grpc '' --model "$model" >"$work/started" &
server=$!
until [ -s "$work/started" ]; do
	kill -0 "$server"
	sleep 0.1
done
url=http://$("${PYTHON:-python3}" -c 'import json, sys; print(json.loads(sys.stdin.readline())["http"])' <"$work/started")/

# What the charts show.
"$work/onnxrl-bench" serve --url "$url" --transports http-binary --concurrency 2 --rounds 1 --round 120s --json >"$work/load" &
load=$!
"${PYTHON:-python3}" "$root/cmd/peers/serve_page.py" "${CHROMIUM:-chromium}" "$url" "$shot"

# Ten models with names as long as they may be, the first of which is damaged.
"$work/onnxrl" export "$model" -q --out "$work/model.onnx" --rows 64 --allow-ties >"$work/exported"
for i in 0 1 2 3 4 5 6 7 8 9; do
	name=$("${PYTHON:-python3}" -c 'import sys; print(("a-model-of-a-long-experiment-" * 9)[:253] + "-" + sys.argv[1])' "$i")
	mkdir -p "$work/repository/$name/1"
	cp "$work/model.onnx" "$work/repository/$name/1/model.onnx"
	[ "$i" != 0 ] || echo rubbish >"$work/repository/$name/1/model.onnx"
done
"$work/onnxrl" serve --json --http 127.0.0.1:0 --grpc '' --repository "$work/repository" --watch >"$work/crowded" &
crowded=$!
until [ -s "$work/crowded" ]; do
	kill -0 "$crowded"
	sleep 0.1
done
url=http://$("${PYTHON:-python3}" -c 'import json, sys; print(json.loads(sys.stdin.readline())["http"])' <"$work/crowded")/
"${PYTHON:-python3}" "$root/cmd/peers/serve_page.py" "${CHROMIUM:-chromium}" "$url" --crowded
