"""Writes gradient fixtures of a TimesNet (Wu et al. 2023) whose shapes depend on the data: periods are chosen by the spectrum of the batch.

    python timesnet_fixtures.py OUT

makes OUT/timesnet_exported, traced by PyTorch's exporter with DFT of opset 17, and OUT/timesnet_written, the same network written node by node in opset 20 with
Pad, Gelu and DFT whose axis is an input. Each has the layout that `onnxrl grad check` reads, with several sets of data: data, data_2, data_3. The periods differ between
sets, divide the length in some and not in others, so that one compiled program must serve several shapes. Gradients are PyTorch's. Needs torch and onnx.
"""

import argparse
import pathlib
import shutil
import sys
import warnings

import numpy as np
import onnx
import torch
from onnx import TensorProto, helper, numpy_helper
from torch import nn

warnings.filterwarnings("ignore")

BATCH, LENGTH, CHANNELS, WIDTH, HIDDEN, TOP, LAYERS = 3, 20, 3, 4, 6, 2, 2
KERNELS = (1, 3, 5)
# Frequencies that dominate each set: 20/3 and 20/6 leave a rest, 20/2, 20/4 and 20/5 do not.
SETS = [(3, 2), (5, 6), (4, 1)]


class Inception(nn.Module):
    """The mean of square convolutions that keep the extents."""

    def __init__(self, inputs, outputs):
        super().__init__()
        self.convs = nn.ModuleList(nn.Conv2d(inputs, outputs, k, padding=k // 2) for k in KERNELS)

    def forward(self, x):
        return torch.stack([c(x) for c in self.convs], dim=-1).mean(-1)


class TimesBlock(nn.Module):
    """Folds the series to period × cycles for each of the strongest frequencies; the results are weighted by the softmax of the amplitudes."""

    def __init__(self):
        super().__init__()
        self.inner = nn.Sequential(Inception(WIDTH, HIDDEN), nn.GELU(), Inception(HIDDEN, WIDTH))
        self.seen = []

    def forward(self, x):
        batch, length, width = x.shape
        spectrum = torch.view_as_real(torch.fft.rfft(x, dim=1))
        amplitude = (spectrum * spectrum).sum(-1).sqrt()
        strength = amplitude.mean(0).mean(-1)
        # The mean of the series is no period.
        strength = torch.cat([torch.zeros(1), strength[1:]])
        top = torch.topk(strength.detach(), TOP)[1]
        weights = amplitude.mean(-1)[:, top]
        parts, self.seen = [], []
        for i in range(TOP):
            period = length // top[i]
            cycles = (length + period - 1) // period
            total = cycles * period
            self.seen.append(int(period))
            padded = torch.cat([x, torch.zeros([batch, total - length, width])], dim=1)
            image = padded.reshape(batch, cycles, period, width).permute(0, 3, 1, 2)
            image = self.inner(image)
            parts.append(image.permute(0, 2, 3, 1).reshape(batch, -1, width)[:, :length, :])
        weights = torch.softmax(weights, 1).unsqueeze(1).unsqueeze(1)
        return (torch.stack(parts, dim=-1) * weights).sum(-1) + x


class TimesNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Linear(CHANNELS, WIDTH)
        self.blocks = nn.ModuleList(TimesBlock() for _ in range(LAYERS))
        self.norm = nn.LayerNorm(WIDTH)
        self.head = nn.Linear(WIDTH, CHANNELS)

    def forward(self, x):
        x = self.embed(x)
        for b in self.blocks:
            x = self.norm(b(x))
        return self.head(x)


def series(frequencies, seed):
    """A batch that the given frequencies dominate, the first most, with noise."""
    rng = np.random.default_rng(seed)
    t = np.arange(LENGTH)[None, :, None]
    x = 0.1 * rng.standard_normal((BATCH, LENGTH, CHANNELS))
    for k, f in enumerate(frequencies):
        phase = rng.uniform(0, 2 * np.pi, (BATCH, 1, CHANNELS))
        x = x + (1.6 - 0.6 * k) * np.sin(2 * np.pi * f * t / LENGTH + phase)
    return torch.tensor(x, dtype=torch.float32)


def fourier_symbolic(g, x, n, dim, norm):
    last = g.op("Constant", value_t=torch.tensor([-1]))
    return g.op("DFT", g.op("Unsqueeze", x, last), axis_i=1, onesided_i=1)


def export(net, x, path):
    """Traces a network. The exporter has no symbol for the Fourier transform; the operator DFT holds real and imaginary parts in the last axis, as view_as_real does."""
    torch.onnx.register_custom_op_symbolic("aten::fft_rfft", fourier_symbolic, 17)
    torch.onnx.register_custom_op_symbolic("aten::view_as_real", lambda g, v: v, 17)
    axes = {"x": {0: "batch"}, "y": {0: "batch"}}
    training = torch.onnx.TrainingMode.PRESERVE
    torch.onnx.export(net, (x,), str(path), input_names=["x"], output_names=["y"], opset_version=17, dynamo=False, training=training, do_constant_folding=False, dynamic_axes=axes)
    model = onnx.load(path)
    for n in [model, model.graph, *model.graph.node]:
        n.ClearField("doc_string")
        n.ClearField("metadata_props")
    del model.graph.value_info[:]
    onnx.save(model, path)


class Writer:
    """Appends nodes to a graph; every method returns the name of the value it makes."""

    def __init__(self):
        self.nodes, self.values = [], {}

    def op(self, kind, *inputs, **attributes):
        out = f"{kind.lower()}_{len(self.nodes)}"
        self.nodes.append(helper.make_node(kind, list(inputs), [out], name=out, **attributes))
        return out

    def ints(self, *v):
        name = "i_" + "_".join(map(str, v)).replace("-", "m")
        self.values[name] = numpy_helper.from_array(np.array(v, dtype=np.int64), name)
        return name

    def parameter(self, name, p):
        self.values[name] = numpy_helper.from_array(p.detach().numpy(), name)
        return name


def written(net, path):
    w = Writer()
    for name, p in net.named_parameters():
        w.parameter(name, p.T if p.ndim == 2 else p)

    def linear(x, layer):
        return w.op("Add", w.op("MatMul", x, layer + ".weight"), layer + ".bias")

    def inception(x, name):
        parts = [w.op("Conv", x, f"{name}.convs.{i}.weight", f"{name}.convs.{i}.bias", pads=[k // 2] * 4) for i, k in enumerate(KERNELS)]
        return w.op("Mean", *parts)

    def block(x, name):
        batch = w.op("Shape", x, start=0, end=1)
        spectrum = w.op("DFT", w.op("Unsqueeze", x, w.ints(-1)), "", w.ints_scalar(1), onesided=1)
        amplitude = w.op("ReduceL2", spectrum, w.ints(-1), keepdims=0)
        strength = w.op("ReduceMean", amplitude, w.ints(0, 2), keepdims=0)
        waves = w.op("Slice", strength, w.ints(1), w.ints(1 << 31), w.ints(0))
        out = f"top_{len(w.nodes)}"
        w.nodes.append(helper.make_node("TopK", [waves, w.ints(TOP)], [out + "_values", out], name=out))
        top = w.op("Add", out, w.ints(1))
        weights = w.op("Gather", w.op("ReduceMean", amplitude, w.ints(2), keepdims=0), top, axis=1)
        weights = w.op("Softmax", weights, axis=1)
        weights = w.op("Split", weights, axis=1, num_outputs=TOP) if TOP == 1 else weights
        total = None
        for i in range(TOP):
            period = w.op("Div", w.ints(LENGTH), w.op("Gather", top, w.ints(i)))
            cycles = w.op("Div", w.op("Sub", w.op("Add", w.ints(LENGTH), period), w.ints(1)), period)
            rest = w.op("Sub", w.op("Mul", cycles, period), w.ints(LENGTH))
            padded = w.op("Pad", x, w.op("Concat", w.ints(0), rest, axis=0), "", w.ints(1))
            image = w.op("Reshape", padded, w.op("Concat", batch, cycles, period, w.ints(WIDTH), axis=0))
            image = w.op("Transpose", image, perm=[0, 3, 1, 2])
            image = inception(w.op("Gelu", inception(image, name + ".inner.0")), name + ".inner.2")
            image = w.op("Reshape", w.op("Transpose", image, perm=[0, 2, 3, 1]), w.ints(0, -1, WIDTH))
            image = w.op("Slice", image, w.ints(0), w.ints(LENGTH), w.ints(1))
            weight = w.op("Unsqueeze", w.op("Gather", weights, w.ints(i), axis=1), w.ints(2))
            part = w.op("Mul", image, weight)
            total = part if total is None else w.op("Add", total, part)
        return w.op("Add", total, x)

    w.ints_scalar = lambda v: w.values.setdefault(f"s_{v}", numpy_helper.from_array(np.array(v, dtype=np.int64), f"s_{v}")).name
    x = linear("x", "embed")
    for i in range(LAYERS):
        x = w.op("LayerNormalization", block(x, f"blocks.{i}"), "norm.weight", "norm.bias", axis=-1, epsilon=1e-5)
    y = linear(x, "head")
    w.nodes.append(helper.make_node("Identity", [y], ["y"], name="y"))
    value = lambda n: helper.make_tensor_value_info(n, TensorProto.FLOAT, ["batch", LENGTH, CHANNELS])
    graph = helper.make_graph(w.nodes, "timesnet", [value("x")], [value("y")], initializer=list(w.values.values()))
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)
    onnx.checker.check_model(model, full_check=True)
    onnx.save(model, path)


def save(path, name, t):
    path.write_bytes(numpy_helper.from_array(t.detach().contiguous().numpy(), name).SerializeToString())


def write(d, net, make, turned):
    """Makes one fixture. turned says that matrices are stored transposed, as MatMul wants them."""
    shutil.rmtree(d, ignore_errors=True)
    d.mkdir(parents=True)
    make(d / "model.onnx")
    model = onnx.load(d / "model.onnx")
    have = {t.name for t in model.graph.initializer}
    shapes = set()
    for s, frequencies in enumerate(SETS):
        data = d / ("data" if s == 0 else f"data_{s + 1}")
        data.mkdir()
        net.zero_grad()
        x = series(frequencies, seed=s).requires_grad_()
        y = net(x)
        periods = tuple(p for b in net.blocks for p in b.seen)
        shapes.add(periods)
        print(f"{d.name}/{data.name}: periods {periods}, of which {sum(LENGTH % p != 0 for p in periods)} do not divide {LENGTH}")
        c = torch.tensor(np.random.default_rng(100 + s).standard_normal(tuple(y.shape)), dtype=torch.float32)
        (y * c).sum().backward()
        save(data / "input_0.pb", "x", x)
        save(data / "output_0.pb", "y", y)
        save(data / "cotangent_0.pb", "y", c)
        save(data / "grad_input_0.pb", "x", x.grad)
        count = 0
        for name, p in net.named_parameters():
            if name in have:
                save(data / f"grad_param_{count:02d}.pb", name, p.grad.T if turned and p.ndim == 2 else p.grad)
                count += 1
        if count != len(list(net.parameters())):
            sys.exit(f"{d.name}: {count} of {len(list(net.parameters()))} parameters are initializers of the model")
    if len(shapes) != len(SETS):
        sys.exit(f"{d.name}: the sets must have different periods, got {shapes}")


def main():
    a = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    a.add_argument("out", type=pathlib.Path)
    out = a.parse_args().out
    torch.set_num_threads(1)
    torch.manual_seed(7)
    net = TimesNet()
    with torch.no_grad():
        for p in net.parameters():
            p.add_(0.1 * torch.randn_like(p))
    write(out / "timesnet_exported", net, lambda path: export(net, series(SETS[0], 0), path), turned=False)
    write(out / "timesnet_written", net, lambda path: written(net, path), turned=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
