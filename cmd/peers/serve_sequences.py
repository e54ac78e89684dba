"""A recurrent model through Triton's own clients: sequences over HTTP and gRPC, with numbers and with names, over a swap of the version, beyond the bound and after the idle time; every step must equal onnxruntime with the state carried by hand.

    pip install 'tritonclient[all]' onnx onnxruntime
    python cmd/peers/serve_sequences.py ONNXRL

ONNXRL is the program. It serves a repository that this script writes: an LSTM whose states begin at zero and at what a file says.
"""
import json
import os
import subprocess
import sys
import tempfile
import time

import numpy as np
import onnx
import onnxruntime
import tritonclient.grpc as grpcclient
import tritonclient.http as httpclient
from onnx import TensorProto, helper, numpy_helper
from tritonclient.utils import InferenceServerException

HIDDEN, INPUTS, STEPS = 5, 3, 6
rng = np.random.default_rng(1)
WEIGHTS = {
    "W": rng.uniform(-1, 1, (1, 4 * HIDDEN, INPUTS)),
    "R": rng.uniform(-1, 1, (1, 4 * HIDDEN, HIDDEN)),
    "B": rng.uniform(-1, 1, (1, 8 * HIDDEN)),
}
START = np.linspace(-0.5, 0.5, HIDDEN).astype("f4")
CONFIG = """max_batch_size: 8
sequence_batching {
  max_sequence_idle_microseconds: 2000000
  oldest { max_candidate_sequences: 3 }
  state [
    { input_name: "h" output_name: "h_next" data_type: TYPE_FP32 dims: [ 5 ] initial_state { name: "h" zero_data: true data_type: TYPE_FP32 dims: [ 5 ] } },
    { input_name: "c" output_name: "c_next" data_type: TYPE_FP32 dims: [ 5 ] initial_state { name: "c" data_file: "c" data_type: TYPE_FP32 dims: [ 5 ] } }
  ]
}
"""


def save(folder, version, scale):
    port = lambda name, n: helper.make_tensor_value_info(name, TensorProto.FLOAT, ["batch", n])
    nodes = [helper.make_node("Unsqueeze", [v, "axis"], [v + "3"]) for v in "xhc"]
    nodes += [
        helper.make_node("LSTM", ["x3", "W", "R", "B", "", "h3", "c3"], ["", "hn", "cn"], hidden_size=HIDDEN),
        helper.make_node("Squeeze", ["hn", "axis"], ["h_next"]),
        helper.make_node("Squeeze", ["cn", "axis"], ["c_next"]),
        helper.make_node("Mul", ["h_next", "scale"], ["y"]),
    ]
    constants = [numpy_helper.from_array(w.astype("f4"), name) for name, w in WEIGHTS.items()]
    constants += [numpy_helper.from_array(np.array([0]), "axis"), numpy_helper.from_array(np.float32(scale), "scale")]
    graph = helper.make_graph(nodes, "recurrent", [port("x", INPUTS), port("h", HIDDEN), port("c", HIDDEN)], [port("y", HIDDEN), port("h_next", HIDDEN), port("c_next", HIDDEN)], constants)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.checker.check_model(model)
    # Complete when it appears: the server watches.
    os.makedirs(f"{folder}/new")
    onnx.save(model, f"{folder}/new/model.onnx")
    os.rename(f"{folder}/new", f"{folder}/{version}")
    return model.SerializeToString()


def by_hand(model, xs):
    session = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"])
    h, c, out = np.zeros((1, HIDDEN), "f4"), START[None].copy(), []
    for x in xs:
        y, h, c = session.run(None, {"x": x, "h": h, "c": c})
        out.append(y)
    return out


def main():
    passed = 0

    def check(ok, what):
        nonlocal passed
        if not ok:
            raise SystemExit("FAILED: " + what)
        passed += 1

    with tempfile.TemporaryDirectory() as repository:
        folder = repository + "/rec"
        os.makedirs(folder + "/initial_state")
        START.tofile(folder + "/initial_state/c")
        with open(folder + "/config.pbtxt", "w") as f:
            f.write(CONFIG)
        first = save(folder, 1, 1)
        server = subprocess.Popen([sys.argv[1], "serve", "-q", "--json", "--repository", repository, "--watch", "--watch-interval", "100ms", "--http", "127.0.0.1:0", "--grpc", "127.0.0.1:0"], stdout=subprocess.PIPE)
        try:
            at = json.loads(server.stdout.readline())
            http, grpc = httpclient.InferenceServerClient(at["http"]), grpcclient.InferenceServerClient(at["grpc"])

            def step(module, client, x, **sequence):
                value = module.InferInput("x", x.shape, "FP32")
                value.set_data_from_numpy(x)
                return client.infer("rec", [value], **sequence)

            def refused(words, module, client, x, **sequence):
                try:
                    step(module, client, x, **sequence)
                except InferenceServerException as e:
                    return words in str(e)
                return False

            xs = [rng.standard_normal((1, INPUTS)).astype("f4") for _ in range(STEPS)]
            want = by_hand(first, xs)
            ways = [(httpclient, http, 7), (grpcclient, grpc, "over grpc"), (httpclient, http, "over http")]
            for i, x in enumerate(xs):
                if i == STEPS // 2:
                    second = save(folder, 2, 10)
                    until = time.monotonic() + 30
                    while not any(m["version"] == "2" and m["state"] == "READY" for m in http.get_model_repository_index()):
                        if time.monotonic() > until:
                            raise SystemExit("FAILED: the second version is not served")
                        time.sleep(0.05)
                for module, client, name in ways:
                    answer = step(module, client, x, sequence_id=name, sequence_start=i == 0, sequence_end=i == STEPS - 1)
                    check(np.allclose(answer.as_numpy("y"), want[i], atol=1e-6), f"step {i} of sequence {name}")
            answer = step(httpclient, http, xs[0], sequence_id=7, sequence_start=True)
            check(np.allclose(answer.as_numpy("y"), by_hand(second, xs)[0], atol=1e-5), "a new sequence is on the new version")
            for name in (8, 9):
                step(httpclient, http, xs[0], sequence_id=name, sequence_start=True)
            check(refused("the limit of 3 open sequences is reached", httpclient, http, xs[0], sequence_id=10, sequence_start=True), "no fourth sequence")
            time.sleep(2.5)
            check(refused("idle for too long", grpcclient, grpc, xs[1], sequence_id=8), "an idle sequence is dropped")
            step(grpcclient, grpc, xs[0], sequence_id=11, sequence_start=True, sequence_end=True)
        finally:
            server.terminate()
        check(server.wait() == 0, "the server ends well")
    print(f"{passed} checks of sequences passed")


main()
