"""Runs Triton's own example clients, unmodified, and NVIDIA's perf_analyzer against a server.

    pip install 'tritonclient[all]' onnx
    python cmd/peers/serve_examples.py ONNXRL EXAMPLES [PERF_ANALYZER]

ONNXRL is the program, EXAMPLES the folder src/python/examples of a checkout of triton-inference-server/client. It serves a repository that this script writes: models that compute what the examples expect of Triton's.
Examples for shared memory, decoupled models and images are left out, because the server has none of that. Ends with status 1 when one fails, or when fewer ran than there are.
"""
import json
import os
import shutil
import subprocess
import sys
import tempfile

import onnx
from onnx import TensorProto as T
from onnx import helper

NAMES = {T.FLOAT: "TYPE_FP32", T.INT32: "TYPE_INT32", T.INT8: "TYPE_INT8", T.STRING: "TYPE_STRING", T.UINT64: "TYPE_UINT64"}
CONTROLS = {"START": "CONTROL_SEQUENCE_START", "END": "CONTROL_SEQUENCE_END", "READY": "CONTROL_SEQUENCE_READY"}


def port(name, dtype, n):
    return helper.make_tensor_value_info(name, dtype, ["batch", n])


def write(repository, name, inputs, outputs, nodes, controls=(), identifier=None, state=None, strategy="direct { }"):
    """Ports are (name, type, extent); controls are int32, and the state is (input, output) of the outputs' type."""
    initial = [helper.make_tensor("zero", T.INT32, [1], [0])] if any("zero" in n.input for n in nodes) else []
    ins = [port(*p) for p in inputs] + [port(c, T.INT32, 1) for c in controls]
    outs = [port(*p) for p in outputs]
    if identifier:
        ins.append(port("CORRID", identifier, 1))
    if state:
        ins.append(port(state[0], outputs[0][1], 1)), outs.append(port(state[1], outputs[0][1], 1))
    model = helper.make_model(helper.make_graph(nodes, name, ins, outs, initial), opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.checker.check_model(model)
    folder = os.path.join(repository, name, "1")
    os.makedirs(folder)
    onnx.save(model, os.path.join(folder, "model.onnx"))
    lines = [f'name: "{name}" platform: "onnxruntime_onnx" max_batch_size: 8']
    for side, ports in (("input", inputs), ("output", outputs)):
        lines += [f'{side} {{ name: "{p}" data_type: {NAMES[d]} dims: [ {n} ] }}' for p, d, n in ports]
    if controls or state:
        lines.append(f"sequence_batching {{ max_sequence_idle_microseconds: 5000000 {strategy}")
        lines += [f'control_input {{ name: "{c}" control {{ kind: {CONTROLS[c]} int32_false_true: [ 0, 1 ] }} }}' for c in controls]
        if identifier:
            lines.append(f'control_input {{ name: "CORRID" control {{ kind: CONTROL_SEQUENCE_CORRID data_type: {NAMES[identifier]} }} }}')
        if state:
            lines.append(f'state {{ input_name: "{state[0]}" output_name: "{state[1]}" data_type: {NAMES[outputs[0][1]]} dims: [ 1 ] initial_state {{ name: "zero" data_type: {NAMES[outputs[0][1]]} dims: [ 1 ] zero_data: true }} }}')
        lines.append("}")
    with open(os.path.join(repository, name, "config.pbtxt"), "w") as f:
        f.write("\n".join(lines) + "\n")


def node(op, inputs, *outputs, **attributes):
    return helper.make_node(op, inputs, outputs, **attributes)


def models(repository):
    sums = lambda d: dict(inputs=[("INPUT0", d, 16), ("INPUT1", d, 16)], outputs=[("OUTPUT0", d, 16), ("OUTPUT1", d, 16)])
    plain = [node("Add", ["INPUT0", "INPUT1"], "OUTPUT0"), node("Sub", ["INPUT0", "INPUT1"], "OUTPUT1")]
    write(repository, "simple", **sums(T.INT32), nodes=plain)
    write(repository, "simple_int8", **sums(T.INT8), nodes=plain)
    cast = [node("Cast", [f"INPUT{i}"], f"i{i}", to=T.INT32) for i in (0, 1)]
    write(repository, "simple_string", **sums(T.STRING), nodes=cast + [node("Add", ["i0", "i1"], "a"), node("Sub", ["i0", "i1"], "s"), node("Cast", ["a"], "OUTPUT0", to=T.STRING), node("Cast", ["s"], "OUTPUT1", to=T.STRING)])
    write(repository, "simple_identity", [("INPUT0", T.STRING, 16)], [("OUTPUT0", T.STRING, 16)], [node("Identity", ["INPUT0"], "OUTPUT0")])
    one = dict(inputs=[("INPUT", T.INT32, 1)], outputs=[("OUTPUT", T.INT32, 1)])
    write(repository, "simple_sequence", **one, nodes=[node("Add", ["INPUT", "START"], "OUTPUT")], controls=["START"])
    # Of a sequence with numbers: the input, with one more at the start and the identifier at the end. With names: the sum so far, and the identifier at the end.
    told = [node("Cast", ["END"], "end", to=T.BOOL), node("Cast", ["CORRID"], "id", to=T.INT32), node("Where", ["end", "id", "zero"], "more")]
    oldest = "oldest { max_candidate_sequences: 1024 }"
    write(repository, "simple_dyna_sequence", **one, nodes=told + [node("Add", ["INPUT", "START"], "own"), node("Add", ["READY", "own"], "seen"), node("Sub", ["seen", "READY"], "x"), node("Add", ["x", "more"], "OUTPUT")], controls=list(CONTROLS), identifier=T.UINT64, strategy=oldest)
    summed = [node("Cast", ["START"], "start", to=T.BOOL), node("Where", ["start", "zero", "SUM_IN"], "before"), node("Add", ["before", "INPUT"], "SUM_OUT"), node("Add", ["SUM_OUT", "more"], "OUTPUT")]
    write(repository, "simple_string_dyna_sequence", **one, nodes=told + summed, controls=["START", "END"], identifier=T.STRING, state=("SUM_IN", "SUM_OUT"), strategy=oldest)


def counter(repository):
    write(repository, "counter", [("INPUT", T.FLOAT, 1)], [("OUTPUT", T.FLOAT, 1)], [node("Add", ["INPUT", "SUM_IN"], "SUM_OUT"), node("Identity", ["SUM_OUT"], "OUTPUT")], state=("SUM_IN", "SUM_OUT"))


FIXED = """simple_http_health_metadata simple_http_infer_client simple_http_aio_infer_client simple_http_async_infer_client simple_http_string_infer_client simple_http_sequence_sync_infer_client
simple_http_sequence_sync_infer_client:-d simple_grpc_health_metadata simple_grpc_infer_client simple_grpc_aio_infer_client simple_grpc_async_infer_client simple_grpc_string_infer_client
simple_grpc_custom_args_client simple_grpc_keepalive_client simple_grpc_sequence_sync_infer_client simple_grpc_sequence_sync_infer_client:-d simple_grpc_sequence_stream_infer_client
simple_grpc_sequence_stream_infer_client:-d simple_grpc_aio_sequence_stream_infer_client simple_grpc_aio_sequence_stream_infer_client:-d grpc_explicit_byte_content_client grpc_explicit_int8_content_client
grpc_explicit_int_content_client""".split()


class Server:
    def __init__(self, onnxrl, repository, *more):
        self.process = subprocess.Popen([onnxrl, "serve", "-q", "--json", "--repository", repository, "--http", "127.0.0.1:0", "--grpc", "127.0.0.1:0", *more], stdout=subprocess.PIPE)
        started = json.loads(self.process.stdout.readline())
        self.http, self.grpc = started["http"], started["grpc"]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait()


failed, ran = [], 0


def example(server, examples, name):
    global ran
    name, *options = name.split(":")
    address = server.http if "http" in name else server.grpc
    r = subprocess.run([sys.executable, os.path.join(examples, name + ".py"), "-u", address, *options], capture_output=True, text=True, timeout=120)
    ran += 1
    if r.returncode:
        failed.append(name)
        print(f"FAILED: {name} {options}\n{(r.stdout + r.stderr)[-600:]}")


def main(onnxrl, examples, analyzer=None):
    with tempfile.TemporaryDirectory() as where:
        seven, eight = os.path.join(where, "seven"), os.path.join(where, "eight")
        models(seven)
        shutil.copytree(seven, eight)
        counter(eight)
        with Server(onnxrl, seven) as s:
            for name in FIXED:
                example(s, examples, name)
        # These two count the models of the repository.
        for name, repository in (("simple_http_model_control", seven), ("simple_grpc_model_control", eight)):
            with Server(onnxrl, repository, "--mode", "explicit") as s:
                example(s, examples, name)
        if analyzer:
            with Server(onnxrl, eight) as s:
                for model in ("counter", "simple_sequence", "simple_dyna_sequence"):
                    # How steady the machine is does not matter here.
                    r = subprocess.run([analyzer, "-m", model, "-u", s.grpc, "-i", "grpc", "--streaming", "--sequence-length", "20", "--concurrency-range", "4", "-p", "1000", "-s", "999"], capture_output=True, text=True, timeout=300)
                    line = [text for text in r.stdout.splitlines() if text.startswith("Concurrency: 4")]
                    print(f"perf_analyzer, {model}:", *line)
                    if r.returncode or not line:
                        failed.append("perf_analyzer " + model)
                        print((r.stdout + r.stderr)[-600:])
    print(f"{ran - len([f for f in failed if not f.startswith('perf')])} of {ran} examples passed")
    return 1 if failed or ran != len(FIXED) + 2 else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
