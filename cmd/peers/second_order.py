"""Writes second-order gradients of PyTorch for the network of runtime/autodiff/testdata/torch/mlp_tanh.

    python second_order.py runtime/autodiff/testdata

fills testdata/second/mlp_tanh/data: the model that belongs to it is what `onnxrl grad build` makes of the network, whose outputs are y and the gradients of its sum. The
loss is the sum of one gradient times a direction, so what is compared are Hessian-vector products. Needs torch, onnx and numpy.
"""
import pathlib
import sys

import numpy as np
import onnx
import torch
from onnx import numpy_helper

NAMES = ["a.weight", "a.bias", "b.weight", "b.bias", "c.weight", "c.bias"]


def main():
    root = pathlib.Path(sys.argv[1])
    fixture = root / "torch" / "mlp_tanh"
    model = onnx.load(fixture / "model.onnx")
    p = {t.name: torch.tensor(numpy_helper.to_array(t), requires_grad=True) for t in model.graph.initializer}
    x = onnx.TensorProto()
    x.ParseFromString((fixture / "data" / "input_0.pb").read_bytes())
    x = torch.tensor(numpy_helper.to_array(x), requires_grad=True)
    h = x
    for layer in "abc":
        h = h @ p[layer + ".weight"].T + p[layer + ".bias"]
        h = torch.tanh(h) if layer != "c" else h
    first = dict(zip(NAMES, torch.autograd.grad(h.sum(), [p[n] for n in NAMES], create_graph=True)))
    v = torch.tensor(np.random.default_rng(5).standard_normal(first["a.weight"].shape), dtype=torch.float32)
    second = torch.autograd.grad((first["a.weight"] * v).sum(), [*(p[n] for n in NAMES), x], allow_unused=True)
    out = root / "second" / "mlp_tanh" / "data"
    out.mkdir(parents=True, exist_ok=True)

    def save(file, name, t):
        (out / file).write_bytes(numpy_helper.from_array(t.detach().numpy().copy(), name).SerializeToString())

    save("input_0.pb", "x0", x)
    save("output_0.pb", "grad/a.weight", first["a.weight"])
    save("cotangent_0.pb", "grad/a.weight", v)
    for i, (name, g) in enumerate(zip(NAMES, second)):
        save(f"grad_param_{i}.pb", name, torch.zeros_like(p[name]) if g is None else g)
    save("grad_input_0.pb", "x0", second[-1])


if __name__ == "__main__":
    main()
