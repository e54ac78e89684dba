"""Checks ONNX files with the onnx package and runs them with onnxruntime's own Python package.

    python cmd/peers/check_onnx.py FILE.onnx…

Prints per file: opset and IR, lineage metadata, and the outputs' shapes at batch 1 and 5 on random inputs. Exits with 1 when a file fails.
"""
import sys

import numpy as np
import onnx
import onnxruntime as ort


def feed(session, batch):
    rng = np.random.default_rng(0)
    out = {}
    for i in session.get_inputs():
        shape = [d if isinstance(d, int) else batch for d in i.shape]
        if "bool" in i.type:  # An action mask: at least one action must be left.
            out[i.name] = np.ones(shape, bool)
        else:
            out[i.name] = rng.integers(0, 2, shape).astype(np.int64) if "int64" in i.type else rng.standard_normal(shape).astype(np.float32)
    return out


def check(path):
    onnx.checker.check_model(path, full_check=True)
    m = onnx.load(path, load_external_data=False)
    print(path, "opset", {o.domain or "onnx": o.version for o in m.opset_import}, "IR", m.ir_version)
    for p in m.metadata_props:
        if p.key.startswith("onnxrl."):
            print(f"  {p.key} = {p.value}")
    session = ort.InferenceSession(path, providers=["CPUExecutionProvider"])
    for batch in (1, 5):
        values = session.run(None, feed(session, batch))
        print(f"  batch {batch}:", ", ".join(f"{o.name}{list(v.shape)}" for o, v in zip(session.get_outputs(), values)))
        if not all(np.isfinite(v).all() for v in values):
            raise ValueError("an output is not finite")


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
