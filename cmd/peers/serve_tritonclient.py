"""Talks to a running server with Triton's own clients: HTTP and gRPC, binary and JSON, synchronous and asynchronous, compressed and streamed.

    pip install 'tritonclient[all]'
    python cmd/peers/serve_tritonclient.py HTTP_HOST:PORT GRPC_HOST:PORT [--model NAME] [--version V] [--token T] [--control] [--json]

Every way of asking must give the same answer to random inputs that are built from the model's own metadata, bit for bit in binary and to 1e-6 in JSON; what does not exist must raise. Without --model, the first ready one of the index is taken.
--control also reloads and unloads the model, which needs a server that allows it. Exits with 1 when a check fails.
"""
import argparse
import asyncio
import json
import queue
import sys

import numpy as np
import tritonclient.grpc as grpcclient
import tritonclient.grpc.aio as grpcaio
import tritonclient.http as httpclient
import tritonclient.http.aio as httpaio
from tritonclient.utils import InferenceServerException, triton_to_np_dtype

checks, failures = [], []


def check(name, ok, detail=""):
    checks.append(name)
    if not ok:
        failures.append(f"{name}: {detail}")


def raises(name, f, words):
    try:
        f()
    except InferenceServerException as e:
        check(name, words in str(e), f"raised {e}, expected {words!r}")
    else:
        check(name, False, f"did not raise, expected {words!r}")


def random_inputs(metadata, rows):
    rng = np.random.default_rng(rows)
    out = {}
    for port in metadata["inputs"]:
        shape = [int(d) if int(d) >= 0 else (rows if i == 0 else 1) for i, d in enumerate(port["shape"])]
        kind = port["datatype"]
        if kind == "BOOL":  # an action mask leaves at least one action
            value = np.ones(shape, bool)
        elif kind == "BYTES":
            value = np.full(shape, b"text", object)
        elif kind in ("FP16", "FP32", "FP64"):
            value = rng.standard_normal(shape).astype(triton_to_np_dtype(kind))
        else:
            value = rng.integers(0, 2, shape).astype(triton_to_np_dtype(kind))
        out[port["name"]] = (kind, value)
    return out


def http_inputs(values, binary):
    out = []
    for name, (kind, value) in values.items():
        x = httpclient.InferInput(name, list(value.shape), kind)
        x.set_data_from_numpy(value, binary_data=binary)
        out.append(x)
    return out


def grpc_inputs(values):
    out = []
    for name, (kind, value) in values.items():
        x = grpcclient.InferInput(name, list(value.shape), kind)
        x.set_data_from_numpy(value)
        out.append(x)
    return out


def same(name, result, want, exact=True):
    for out, value in want.items():
        got = result.as_numpy(out)
        ok = got is not None and got.shape == value.shape and got.dtype == value.dtype
        if ok:
            ok = np.array_equal(got, value) if exact or value.dtype.kind not in "f" else np.allclose(got, value, rtol=1e-6, atol=1e-6)
        check(f"{name} {out}", ok, f"got {got}, expected {value}")


def http_checks(args, headers):
    c = httpclient.InferenceServerClient(args.http, concurrency=4)
    check("http live", c.is_server_live(headers=dict(headers)))
    check("http ready", c.is_server_ready(headers=dict(headers)))
    check("http server metadata", "binary_tensor_data" in c.get_server_metadata(headers=dict(headers))["extensions"])
    index = c.get_model_repository_index(headers=dict(headers))
    check("http index", any(m.get("state") == "READY" for m in index), index)
    model = args.model or next(m["name"] for m in index if m.get("state") == "READY")
    def kw():  # the clients write into the headers that they are given
        return dict(model_version=args.version, headers=dict(headers))

    check("http model ready", c.is_model_ready(model, **kw()))
    metadata = c.get_model_metadata(model, **kw())
    check("http metadata", metadata["name"] == model and metadata["inputs"] and metadata["outputs"], metadata)
    config = c.get_model_config(model, **kw())
    check("http config", config["name"] == model and len(config["input"]) == len(metadata["inputs"]), config)
    names = [o["name"] for o in metadata["outputs"]]

    values = random_inputs(metadata, 3)
    first = c.infer(model, http_inputs(values, True), request_id="first", **kw())
    want = {o: first.as_numpy(o) for o in names}
    check("http id", first.get_response()["id"] == "first", first.get_response())
    check("http outputs", all(v is not None for v in want.values()), first.get_response())
    for binary_in in (True, False):
        for binary_out in (True, False):
            outs = [httpclient.InferRequestedOutput(o, binary_data=binary_out) for o in names]
            r = c.infer(model, http_inputs(values, binary_in), outputs=outs, **kw())
            same(f"http infer in={binary_in} out={binary_out}", r, want, exact=binary_in and binary_out)
    outs = [httpclient.InferRequestedOutput(names[-1])]
    r = c.infer(model, http_inputs(values, True), outputs=outs, **kw())
    check("http one output", [o["name"] for o in r.get_response()["outputs"]] == names[-1:], r.get_response())
    for z in ("gzip", "deflate"):
        r = c.infer(model, http_inputs(values, True), request_compression_algorithm=z, response_compression_algorithm=z, **kw())
        same(f"http {z}", r, want)
    pending = [c.async_infer(model, http_inputs(values, True), **kw()) for _ in range(16)]
    for i, p in enumerate(pending):
        same(f"http async {i}", p.get_result(), want)
    if len(metadata["inputs"]) == 1 and next(iter(values.values()))[0] == "FP32":
        raw = next(iter(values.values()))[1].tobytes()
        path = f"v2/models/{model}" + (f"/versions/{args.version}" if args.version else "") + "/infer"
        r = c._post(path, raw, {**headers, "Inference-Header-Content-Length": "0"}, None)
        check("http raw", r.status_code == 200, r)
    stats = c.get_inference_statistics(model, **kw())["model_stats"]
    check("http statistics", sum(int(s["inference_count"]) for s in stats) >= 3, stats)
    raises("http unknown model", lambda: c.infer("no-such-model", http_inputs(values, True), headers=dict(headers)), "no-such-model")
    raises("http unknown version", lambda: c.get_model_metadata(model, model_version="987654321", headers=dict(headers)), "987654321")
    check("http unknown is not ready", not c.is_model_ready("no-such-model", headers=dict(headers)))
    bad = random_inputs(metadata, 3)
    name, (kind, value) = next(iter(bad.items()))
    x = httpclient.InferInput(name, [3] + list(value.shape), kind)
    x.set_data_from_numpy(np.stack([value] * 3))
    raises("http wrong shape", lambda: c.infer(model, [x], **kw()), name)
    raises("http unknown output", lambda: c.infer(model, http_inputs(values, True), outputs=[httpclient.InferRequestedOutput("no-such-output")], **kw()), "no-such-output")
    raises("http shared memory", lambda: c.get_system_shared_memory_status(headers=dict(headers)), "shared memory")
    return model, metadata, values, want


def grpc_checks(args, headers, model, metadata, values, want):
    c = grpcclient.InferenceServerClient(args.grpc)
    def kw():  # the clients write into the headers that they are given
        return dict(model_version=args.version, headers=dict(headers))

    check("grpc live", c.is_server_live(headers=dict(headers)))
    check("grpc ready", c.is_server_ready(headers=dict(headers)))
    check("grpc server metadata", "statistics" in c.get_server_metadata(headers=dict(headers)).extensions)
    check("grpc model ready", c.is_model_ready(model, **kw()))
    check("grpc unknown is not ready", not c.is_model_ready("no-such-model", headers=dict(headers)))
    m = c.get_model_metadata(model, as_json=True, **kw())
    # JSON has int64 as text.
    check("grpc metadata", [(i["name"], [int(d) for d in i.get("shape", [])]) for i in m["inputs"]] == [(i["name"], i["shape"]) for i in metadata["inputs"]], m)
    check("grpc config", c.get_model_config(model, **kw()).config.name == model)
    check("grpc index", any(x.name == model and x.state == "READY" for x in c.get_model_repository_index(headers=dict(headers)).models))
    names = list(want)
    r = c.infer(model, grpc_inputs(values), request_id="g", **kw())
    check("grpc id", r.get_response().id == "g")
    same("grpc infer", r, want)
    same("grpc outputs", c.infer(model, grpc_inputs(values), outputs=[grpcclient.InferRequestedOutput(o) for o in names], **kw()), want)
    same("grpc gzip", c.infer(model, grpc_inputs(values), compression_algorithm="gzip", **kw()), want)
    same("grpc timeout", c.infer(model, grpc_inputs(values), client_timeout=10, timeout=10_000_000, **kw()), want)
    results = queue.Queue()
    for _ in range(16):
        c.async_infer(model, grpc_inputs(values), callback=lambda result, error: results.put((result, error)), **kw())
    for i in range(16):
        result, error = results.get(timeout=30)
        check(f"grpc async {i} error", error is None, error)
        if error is None:
            same(f"grpc async {i}", result, want)
    c.start_stream(callback=lambda result, error: results.put((result, error)), headers=dict(headers))
    for i in range(8):
        c.async_stream_infer(model, grpc_inputs(values), request_id=str(i), model_version=args.version)
    c.async_stream_infer("no-such-model", grpc_inputs(values))
    for i in range(8):
        result, error = results.get(timeout=30)
        check(f"grpc stream {i} error", error is None, error)
        if error is None:
            check(f"grpc stream {i} id", result.get_response().id == str(i), result.get_response())
            same(f"grpc stream {i}", result, want)
    result, error = results.get(timeout=30)
    check("grpc stream unknown model", error is not None and "no-such-model" in str(error), error)
    c.stop_stream()
    check("grpc statistics", len(c.get_inference_statistics(model, **kw()).model_stats) > 0)
    raises("grpc unknown model", lambda: c.infer("no-such-model", grpc_inputs(values), headers=dict(headers)), "no-such-model")
    raises("grpc shared memory", lambda: c.get_system_shared_memory_status(headers=dict(headers)), "not supported")
    if args.control:
        c.load_model(model, headers=dict(headers))
        same("grpc reloaded", c.infer(model, grpc_inputs(values), headers=dict(headers)), want)
        c.unload_model(model, headers=dict(headers))
        check("grpc unloaded", not c.is_model_ready(model, headers=dict(headers)))
        h = httpclient.InferenceServerClient(args.http)
        h.load_model(model, headers=dict(headers))
        same("http reloaded", h.infer(model, http_inputs(values, True), headers=dict(headers)), want)
        h.unload_model(model, headers=dict(headers))
        check("http unloaded", not h.is_model_ready(model, headers=dict(headers)))
        h.load_model(model, headers=dict(headers))


async def async_checks(args, headers, model, values, want):
    def kw():  # the clients write into the headers that they are given
        return dict(model_version=args.version, headers=dict(headers))

    async with httpaio.InferenceServerClient(args.http) as c:
        check("http aio ready", await c.is_model_ready(model, **kw()))
        for i, r in enumerate(await asyncio.gather(*[c.infer(model, http_inputs(values, True), **kw()) for _ in range(8)])):
            same(f"http aio {i}", r, want)
    async with grpcaio.InferenceServerClient(args.grpc) as c:
        check("grpc aio ready", await c.is_model_ready(model, **kw()))
        for i, r in enumerate(await asyncio.gather(*[c.infer(model, grpc_inputs(values), **kw()) for _ in range(8)])):
            same(f"grpc aio {i}", r, want)


def main():
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("http")
    p.add_argument("grpc")
    p.add_argument("--model")
    p.add_argument("--version", default="")
    p.add_argument("--token")
    p.add_argument("--control", action="store_true")
    p.add_argument("--json", action="store_true")
    args = p.parse_args()
    headers = {"authorization": f"Bearer {args.token}"} if args.token else {}
    model, metadata, values, want = http_checks(args, headers)
    asyncio.run(async_checks(args, headers, model, values, want))
    grpc_checks(args, headers, model, metadata, values, want)
    if args.json:
        print(json.dumps({"model": model, "checks": len(checks), "failures": failures}))
    else:
        for f in failures:
            print("FAILED", f)
        print(f"{model}: {len(checks)} checks, {len(failures)} failed")
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
