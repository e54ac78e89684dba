#!/bin/sh
# Carries a published version between our store, a registry and crane (go-containerregistry): crane
# must find what we push under the same digest, and we what crane pulls and pushes. (crane validate
# is not asked: it demands the configuration and the compressed layers of a container image, which
# artefacts do not have.)
#
#     cmd/peers/models_crane.sh STORE REF
#
# REF is NAME, NAME:ALIAS or NAME@sha256:… in STORE. CRANE names crane, without it v0.20.2 is
# installed into a temporary folder; ONNXRL names the program, without it, it is built. Ends with
# another status than 0 when anything differs.
set -eu
store=$1 ref=$2
here=$(cd "$(dirname "$0")" && pwd)
tmp=$(mktemp -d)
served=
trap '[ -z "$served" ] || kill "$served" 2>/dev/null; rm -rf "$tmp"' EXIT
onnxrl=${ONNXRL:-$tmp/onnxrl} crane=${CRANE:-$tmp/crane}
[ -n "${ONNXRL:-}" ] || (cd "$here/../.." && go build -o "$onnxrl" ./cmd/onnxrl)
[ -n "${CRANE:-}" ] || (cd "$tmp" && GOBIN=$tmp go install github.com/google/go-containerregistry/cmd/crane@v0.20.2)
"$crane" registry serve --address 127.0.0.1:0 >"$tmp/log" 2>&1 &
served=$!
hub=
while [ -z "$hub" ]; do
	kill -0 "$served" || { cat "$tmp/log"; exit 1; }
	hub=$(grep -oE '127\.0\.0\.1:[0-9]+|port [0-9]+' "$tmp/log" | grep -oE '[0-9]+$' | tail -1 || true)
done
hub=127.0.0.1:$hub
digest() { "$onnxrl" models show --json "$@" | grep -oE 'sha256:[0-9a-f]{64}' | head -1; }
want=$(digest "$ref" --store "$store")
same() {
	[ "$2" = "$want" ] || { echo "$1: $2, expected $want"; exit 1; }
	echo "$1: $2"
}
"$onnxrl" models push "$ref" "$hub/agents/one:v1" --store "$store" -q
same "crane digest" "$("$crane" digest "$hub/agents/one:v1")"
"$crane" manifest "$hub/agents/one:v1" | head -c 400 && echo
"$crane" ls "$hub/agents/one"
# From the registry into a layout of crane's, and from there into another repository.
"$crane" pull --format oci "$hub/agents/one:v1" "$tmp/layout"
"$crane" push "$tmp/layout" "$hub/agents/two:v2"
same "a layout that crane pulled and pushed" "$("$crane" digest "$hub/agents/two:v2")"
"$onnxrl" models pull "$hub/agents/two:v2" --store "$tmp/store" --as "${ref%%[:@]*}:back" -q
same "a store that pulled it" "$(digest "${ref%%[:@]*}:back" --store "$tmp/store")"
"$onnxrl" models verify --store "$tmp/store"
# An exported layout lists its one version twice, by digest and by name, as oras does; crane pushes
# such an index as a whole.
"$onnxrl" export "$store//$ref" -q --format oci --out "$tmp/exported" --rows 256 --allow-ties >/dev/null
"$crane" push --index "$tmp/exported" "$hub/agents/three:v3"
"$crane" manifest "$hub/agents/three:v3" | grep -q "$want" || { echo "the exported layout does not list $want"; exit 1; }
same "a version of an exported layout that crane pushed" "$("$crane" digest "$hub/agents/three@$want")"
