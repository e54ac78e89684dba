"""Checks ONNX files with the onnx package and runs them with onnxruntime's own Python package.

    python cmd/peers/check_onnx.py FILE.onnx…

Prints per file: opset and IR, lineage metadata, and the outputs' shapes at batch 1, 7 and 1024 on random inputs; states are given as an episode begins. The first row must not depend on the others. A file in ORT format is run only, for the onnx package does not read it. Exits with 1 when a file fails.
"""
import json
import sys

import numpy as np
import onnx
import onnxruntime as ort

TYPES = {"tensor(float)": np.float32, "tensor(double)": np.float64, "tensor(int64)": np.int64, "tensor(int32)": np.int32, "tensor(uint8)": np.uint8}
BATCHES = (1, 7, 1024)


def feed(session, batch):
    rng = np.random.default_rng(0)
    states = {s["input"]: s["initial"] for s in json.loads(session.get_modelmeta().custom_metadata_map.get("onnxrl.state", "[]"))}
    out = {}
    for i in session.get_inputs():
        shape = [d if isinstance(d, int) else batch for d in i.shape]
        if i.name in states:
            initial = np.asarray(states[i.name], np.float32)
            out[i.name] = np.ascontiguousarray(np.broadcast_to(initial.reshape(shape[1:] if initial.size > 1 else ()), shape))
        elif "bool" in i.type:  # An action mask: at least one action must be left.
            out[i.name] = np.ones(shape, bool)
        elif "int" in i.type:
            out[i.name] = rng.integers(0, 2, shape).astype(TYPES[i.type])
        else:
            out[i.name] = rng.standard_normal(shape).astype(TYPES[i.type])
    return out


def check(path):
    if not path.endswith(".ort"):
        onnx.checker.check_model(path, full_check=True)
        m = onnx.load(path, load_external_data=False)
        print(path, "opset", {o.domain or "onnx": o.version for o in m.opset_import}, "IR", m.ir_version)
        for p in m.metadata_props:
            if p.key.startswith("onnxrl."):
                print(f"  {p.key} = {p.value}")
    session = ort.InferenceSession(path, providers=["CPUExecutionProvider"])
    names = [o.name for o in session.get_outputs()]
    for batch in BATCHES:
        given = feed(session, batch)
        values = session.run(None, given)
        print(f"  batch {batch}:", ", ".join(f"{name}{list(v.shape)}" for name, v in zip(names, values)))
        if not all(np.isfinite(v).all() for v in values):
            raise ValueError("an output is not finite")
        alone = session.run(None, {name: v[:1] for name, v in given.items()})
        for name, a, b in zip(names, alone, values):
            if a.dtype.kind == "f" and np.max(np.abs(a - b[:1]) / (1 + np.abs(a)), initial=0) > 1e-5:
                raise ValueError(f"output {name}: the first of {batch} rows is not what it is alone")


def main(paths):
    bad = 0
    for path in paths:
        try:
            check(path)
        except Exception as e:  # Every kind of failure is reported the same way.
            print(f"{path}: FAILED: {e}")
            bad += 1
    print(f"{len(paths)} files, {bad} failed")
    return 1 if bad or not paths else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
