"""Trains exported networks with onnxrl fit and the same networks with PyTorch, and compares the loss of every step.

    python cmd/peers/fit_torch.py --binary ./onnxrl [--engine ort] [--steps 50] [--case NAME…]
    python cmd/peers/fit_torch.py --write models/fit/testdata/torch [--case NAME…]

Both sides begin with the same weights, see the same batches in the same order and use Adam. With --write the small cases are written as fixtures: the exported model, the data, the
configuration and PyTorch's losses; nothing is trained with onnxrl then. Needs torch, onnx, onnxscript, onnxruntime and numpy.
"""
import argparse
import copy
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import warnings

import numpy as np
import onnx
import timesnet_fixtures as timesnet
import torch
from torch import nn

warnings.filterwarnings("ignore")


class MLP(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(6, 16), nn.Tanh(), nn.Linear(16, 16), nn.GELU(), nn.LayerNorm(16), nn.Linear(16, 2))

    def forward(self, x):
        return self.net(x)


class Plain(nn.Module):
    """Nothing whose constants half precision would round."""

    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(6, 16), nn.Tanh(), nn.LayerNorm(16), nn.Linear(16, 2))
        self.scale = nn.Parameter(torch.tensor(1.5))

    def forward(self, x):
        return self.net(x) * self.scale


class CNN(nn.Module):
    """Convolution, batch normalisation, dropout, pooling."""

    def __init__(self, drop=0.3, width=4):
        super().__init__()
        self.c1, self.b1 = nn.Conv2d(1, width, 3, padding=1), nn.BatchNorm2d(width)
        self.c2, self.b2 = nn.Conv2d(width, 2 * width, 3, stride=2, padding=1), nn.BatchNorm2d(2 * width)
        self.drop, self.fc = nn.Dropout(drop), nn.Linear(2 * width, 3)
        for b in (self.b1, self.b2):
            nn.init.uniform_(b.running_mean, -0.2, 0.2)
            nn.init.uniform_(b.running_var, 0.5, 1.5)
            nn.init.uniform_(b.weight, 0.5, 1.5)

    def forward(self, x):
        x = torch.relu(self.b1(self.c1(x)))
        x = torch.max_pool2d(torch.relu(self.b2(self.c2(x))), 2)
        return self.fc(self.drop(x.flatten(1)))


class Residual(nn.Module):
    """A block as in ResNet: two convolutions with a skip connection, a projection and global pooling."""

    def __init__(self):
        super().__init__()
        self.stem = nn.Conv2d(2, 4, 3, padding=1)
        self.c1, self.b1 = nn.Conv2d(4, 8, 3, stride=2, padding=1, bias=False), nn.BatchNorm2d(8)
        self.c2, self.b2 = nn.Conv2d(8, 8, 3, padding=1, bias=False), nn.BatchNorm2d(8)
        self.skip, self.bs = nn.Conv2d(4, 8, 1, stride=2, bias=False), nn.BatchNorm2d(8)
        self.fc = nn.Linear(8, 1)

    def forward(self, x):
        x = self.stem(x)
        y = self.b2(self.c2(torch.relu(self.b1(self.c1(x)))))
        y = torch.relu(y + self.bs(self.skip(x)))
        return self.fc(y.mean((2, 3)))


class Encoder(nn.Module):
    """A transformer encoder with learned positions and mean pooling."""

    def __init__(self, norm_first=False):
        super().__init__()
        self.proj, self.pos = nn.Linear(3, 8), nn.Parameter(0.1 * torch.randn(1, 5, 8))
        layer = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.1, batch_first=True, norm_first=norm_first, activation="gelu" if norm_first else "relu")
        self.enc, self.fc = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False), nn.Linear(8, 2)

    def forward(self, x):
        return self.fc(self.enc(self.proj(x) + self.pos).mean(1))


class Recurrent(nn.Module):
    def __init__(self, kind):
        super().__init__()
        self.rnn = {"lstm": nn.LSTM, "gru": nn.GRU}[kind](3, 6, num_layers=2, batch_first=True, bidirectional=kind == "gru")
        self.fc = nn.Linear(12 if kind == "gru" else 6, 1)

    def forward(self, x):
        y, _ = self.rnn(x)
        return self.fc(y[:, -1])


class Tokens(nn.Module):
    """Integer tokens and floats in, a class and a value out."""

    def __init__(self):
        super().__init__()
        self.emb, self.side = nn.Embedding(11, 6), nn.Linear(4, 6)
        self.cls, self.val = nn.Linear(6, 3), nn.Linear(6, 1)

    def forward(self, tokens, side):
        h = torch.relu(self.emb(tokens).mean(1) + self.side(side))
        return self.cls(h), self.val(h)


class Fresh(nn.Module):
    """A network as it comes from its constructors: layers copied from one, fresh norms, a layer that is called twice, an output projection tied to the embedding, positions in a
    buffer, and scalar parameters. Exporters merge what is equal in it. (The TorchScript exporter writes the tied projection as a transposed copy of the embedding.)"""

    def __init__(self, tied=True):
        super().__init__()
        self.tied = tied
        self.emb = nn.Embedding(11, 8)
        angle = torch.arange(4)[:, None] / 100 ** (torch.arange(0, 8, 2) / 8)
        self.register_buffer("pos", torch.stack((angle.sin(), angle.cos()), -1).flatten(1))
        block = nn.Sequential(nn.Linear(8, 8), nn.LayerNorm(8), nn.GELU())
        self.blocks = nn.ModuleList([copy.deepcopy(block) for _ in range(3)])
        self.norms = nn.ModuleList([nn.LayerNorm(8) for _ in range(2)])
        self.twice = nn.Linear(8, 8)
        self.gates = nn.ParameterList([nn.Parameter(torch.tensor(0.5)) for _ in range(3)])
        self.temperature = nn.Parameter(torch.tensor(1.25))

    def forward(self, tokens):
        h = self.emb(tokens) + self.pos
        for block, gate in zip(self.blocks, self.gates):
            h = h + gate * block(h)
        h = self.norms[0](h).mean(1)
        h = self.norms[1](torch.tanh(self.twice(torch.tanh(self.twice(h)))))
        return (nn.functional.linear(h, self.emb.weight)[:, :3] if self.tied else h[:, :3]) * self.temperature


def cases():
    """name -> (model, inputs {name: shape}, outputs {name: (loss, shape)}, options). A shape leaves the batch out."""
    image, seq = {"x": (1, 6, 6)}, {"x": (5, 3)}
    one, classes = {"y": ("mse", (1,))}, {"y": ("cross_entropy", ())}
    return {
        "mlp": (MLP, {"x": (6,)}, {"y": ("mse", (2,))}, {}),
        # float64 is trained in float64 by PyTorch; of half precision the weights are rounded before export, and PyTorch trains float32 copies of them.
        "plain_float64": (Plain, {"x": (6,)}, {"y": ("mse", (2,))}, {"dtype": torch.float64}),
        "plain_float16": (Plain, {"x": (6,)}, {"y": ("mse", (2,))}, {"dtype": torch.float16}),
        "plain_bfloat16": (Plain, {"x": (6,)}, {"y": ("mse", (2,))}, {"dtype": torch.bfloat16}),
        "encoder_float16_script": (Encoder, seq, {"y": ("mse", (2,))}, {"dtype": torch.float16, "exporter": "script"}),
        "cnn_train_float64": (lambda: CNN(drop=0.0), image, classes, {"optimize": False, "train_mode": True, "dtype": torch.float64}),
        "mlp_script": (MLP, {"x": (6,)}, {"y": ("huber", (2,))}, {"exporter": "script"}),
        "cnn_eval": (CNN, image, classes, {"optimize": False}),
        "cnn_train": (lambda: CNN(drop=0.0), image, classes, {"optimize": False, "train_mode": True}),
        "cnn_train_script": (lambda: CNN(drop=0.0), image, classes, {"exporter": "script", "train_mode": True}),
        "cnn_train_form": (lambda: CNN(drop=0.0), image, classes, {"exporter": "script", "train_mode": True, "form": "TRAINING"}),
        "residual_eval": (Residual, {"x": (2, 6, 6)}, one, {"optimize": False}),
        "residual_train": (Residual, {"x": (2, 6, 6)}, one, {"optimize": False, "train_mode": True}),
        "encoder": (Encoder, seq, {"y": ("mse", (2,))}, {}),
        "encoder_script": (Encoder, seq, {"y": ("mse", (2,))}, {"exporter": "script"}),
        "encoder_prenorm": (lambda: Encoder(True), seq, {"y": ("mse", (2,))}, {}),
        "lstm": (lambda: Recurrent("lstm"), seq, one, {}),
        "lstm_script": (lambda: Recurrent("lstm"), seq, one, {"exporter": "script"}),
        "gru": (lambda: Recurrent("gru"), seq, one, {}),
        "gru_script": (lambda: Recurrent("gru"), seq, one, {"exporter": "script"}),
        "tokens": (Tokens, {"tokens": (4,), "side": (4,)}, {"cls": ("cross_entropy", ()), "val": ("mse", (1,))}, {}),
        "fresh": (Fresh, {"tokens": (4,)}, classes, {"fresh": True}),
        "fresh_script": (lambda: Fresh(tied=False), {"tokens": (4,)}, classes, {"fresh": True, "exporter": "script"}),
        "transformer_fresh_script": (Encoder, seq, {"y": ("mse", (2,))}, {"fresh": True, "exporter": "script"}),
        "timesnet": (timesnet.TimesNet, {"x": (timesnet.LENGTH, 3)}, {"y": ("mse", (timesnet.LENGTH, 3))}, {"exporter": "timesnet"}),
        "tokens_script": (Tokens, {"tokens": (4,), "side": (4,)}, {"cls": ("cross_entropy", ()), "val": ("mse", (1,))}, {"exporter": "script"}),
    }


FIXTURES = ["mlp", "cnn_eval", "cnn_train", "encoder", "lstm_script", "timesnet", "tokens", "fresh", "fresh_script", "plain_float64", "plain_float16", "plain_bfloat16"]
LOSSES = {"mse": nn.functional.mse_loss, "huber": nn.functional.huber_loss, "cross_entropy": nn.functional.cross_entropy}
BATCH, LR = 8, 3e-3


def make(inputs, outputs, rows):
    rng = np.random.default_rng(7)
    cols, x, y = {}, {}, {}
    waves = None
    if inputs.get("x") == (timesnet.LENGTH, 3):
        # Each batch has frequencies of its own, so that the shapes differ; what is learnt is the series without its noise.
        t = np.arange(timesnet.LENGTH)[None, :, None]
        f = np.repeat(rng.integers(1, 8, (rows // BATCH, 1, 1)), BATCH, axis=0)
        waves = np.sin(2 * np.pi * f * t / timesnet.LENGTH + rng.uniform(0, 2 * np.pi, (rows, 1, 3)))
    for name, shape in inputs.items():
        v = rng.integers(0, 11, (rows, *shape)) if name == "tokens" else rng.standard_normal((rows, *shape)).astype(np.float32).round(2)
        if waves is not None:
            v = (waves + 0.2 * v).astype(np.float32).round(2)
        x[name] = torch.tensor(v)
        cols.update({f"{name}_{i:03d}": c for i, c in enumerate(v.reshape(rows, -1).T)})
    for name, (loss, shape) in outputs.items():
        v = rng.integers(0, 3, (rows,)) if loss == "cross_entropy" else rng.standard_normal((rows, *shape)).astype(np.float32).round(2)
        if waves is not None:
            v = waves.astype(np.float32).round(2)
        y[name] = torch.tensor(v)
        cols.update({f"to_{name}_{i:03d}": c for i, c in enumerate(v.reshape(rows, -1).T)})
    lines = [",".join(cols)] + [",".join(repr(v.item()) if v.dtype.kind == "i" else f"{v:.9g}" for v in row) for row in zip(*cols.values())]
    return x, y, "\n".join(lines) + "\n"


def export(model, x, outputs, path, exporter="dynamo", optimize=True, train_mode=False, form="PRESERVE", fresh=False, dtype=torch.float32):
    args, names = tuple(v[:2].to(dtype) if v.is_floating_point() else v[:2] for v in x.values()), list(x)
    if exporter == "timesnet":
        timesnet.export(model, args[0], path)
    elif exporter == "script":
        mode = getattr(torch.onnx.TrainingMode, form) if train_mode else torch.onnx.TrainingMode.EVAL
        torch.onnx.export(model.eval(), args, path, dynamo=False, opset_version=17, input_names=names, output_names=list(outputs), training=mode,
                          do_constant_folding=not train_mode, dynamic_axes={n: {0: "N"} for n in [*names, *outputs]})
    else:
        batch = torch.export.Dim("N", min=1, max=4096)
        torch.onnx.export(model.eval(), args, path, dynamo=True, opset_version=18, input_names=names, output_names=list(outputs), external_data=False,
                          dynamic_shapes=tuple({0: batch} for _ in names), optimize=optimize, verbose=False)
    # Names of source files of the exporting machine have no place in a fixture.
    m = onnx.load(path)
    for v in [*m.graph.node, *m.graph.value_info, *m.graph.input, *m.graph.output, *m.graph.initializer]:
        keep = [p for p in v.metadata_props if fresh and p.key in ("pkg.torch.onnx.name_scopes", "pkg.torch.export.graph_signature.InputSpec.kind")]
        del v.metadata_props[:]
        v.metadata_props.extend(keep)
        v.doc_string = ""
    del m.graph.metadata_props[:]
    onnx.save(m, path)


def config(model, data, inputs, outputs, steps, train_mode):
    terms = "".join(f"  - {{output: {n}, kind: {loss}}}\n" for n, (loss, _) in outputs.items())
    return (f"model: {model}\ndata:\n  path: {data}\n  inputs: {{{', '.join(f'{n}: [{n}_*]' for n in inputs)}}}\n"
            f"  targets: {{{', '.join(f'{n}: [to_{n}_*]' for n in outputs)}}}\n  shuffle: false\nloss:\n{terms}"
            f"optimizer: {{kind: adam, lr: {LR}}}\nbatch: {BATCH}\nepochs: 2\ntrain_mode: {str(train_mode).lower()}\n")


def train(model, x, y, outputs, steps, train_mode):
    model.train(train_mode)
    opt = torch.optim.Adam(model.parameters(), lr=LR)
    rows, losses = next(iter(x.values())).shape[0], []
    for step in range(steps):
        a = step * BATCH % rows
        out = model(*(v[a:a + BATCH] for v in x.values()))
        out = out if isinstance(out, tuple) else (out,)
        loss = sum(LOSSES[kind](o, y[n][a:a + BATCH]) for o, (n, (kind, _)) in zip(out, outputs.items()))
        opt.zero_grad()
        loss.backward()
        opt.step()
        losses.append(loss.item())
    return losses


def build(name, folder, steps):
    make_model, inputs, outputs, o = cases()[name]
    torch.manual_seed(3)
    model = make_model()
    if not o.get("fresh"):
        # Exporters merge tensors of equal content, such as all fresh norm weights, into one; these cases are about other things.
        with torch.no_grad():
            for q in model.parameters():
                q.add_(0.01 * torch.randn_like(q))
    x, y, csv = make(inputs, outputs, steps // 2 * BATCH)
    dtype = o.get("dtype", torch.float32)
    model.to(dtype)
    folder.mkdir(parents=True, exist_ok=True)
    export(model, x, outputs, str(folder / "model.onnx"), **o)
    (folder / "data.csv").write_text(csv)
    train_type = torch.float64 if dtype == torch.float64 else torch.float32
    model.to(train_type)
    x, y = ({n: v.to(train_type) if v.is_floating_point() else v for n, v in d.items()} for d in (x, y))
    losses = train(model, x, y, outputs, steps, o.get("train_mode", False))
    (folder / "losses.json").write_text(json.dumps(losses) + "\n")
    return inputs, outputs, o.get("train_mode", False), losses


def compare(name, folder, args):
    inputs, outputs, train_mode, want = build(name, folder, args.steps)
    (folder / "fit.yaml").write_text(config(folder / "model.onnx", folder / "data.csv", inputs, outputs, args.steps, train_mode))
    run = subprocess.run([args.binary, "fit", str(folder / "fit.yaml"), "--dir", str(folder / "run"), "--out", str(folder / "trained.onnx"), "--engine", args.engine, "-q"],
                         capture_output=True, text=True)
    if run.returncode != 0:
        return f"{name:20s} FAILED: {run.stderr.strip().splitlines()[-1]}", False
    got = [json.loads(line) for line in (folder / "run" / "metrics.jsonl").read_text().splitlines()]
    got = [v for line in got for k, v in line.items() if k == "train/loss"] or [line["values"]["train/loss"] for line in got if "train/loss" in line.get("values", {})]
    err = max(abs(a - b) / max(abs(b), 1e-3) for a, b in zip(got, want))
    onnx.checker.check_model(str(folder / "trained.onnx"), full_check=True)
    ok = len(got) == len(want) and err <= 1e-4
    return f"{name:20s} {len(got)} steps, loss {want[0]:.5f} -> {want[-1]:.5f}, largest relative difference {err:.2e} {'' if ok else 'TOO LARGE'}", ok


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--binary", default="./onnxrl")
    p.add_argument("--engine", default="auto")
    p.add_argument("--steps", type=int, default=50)
    p.add_argument("--case", nargs="*")
    p.add_argument("--write")
    args = p.parse_args()
    torch.set_num_threads(1)
    torch.backends.mha.set_fastpath_enabled(False)
    if args.write:
        for name in args.case or FIXTURES:
            folder = pathlib.Path(args.write) / name
            inputs, outputs, train_mode, _ = build(name, folder, 20)
            (folder / "fit.yaml").write_text(config("model.onnx", "data.csv", inputs, outputs, 20, train_mode))
        return 0
    bad = 0
    with tempfile.TemporaryDirectory() as tmp:
        for name in args.case or cases():
            line, ok = compare(name, pathlib.Path(os.environ.get("FIT_TORCH_KEEP", tmp)) / name, args)
            print(line, flush=True)
            bad += not ok
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
