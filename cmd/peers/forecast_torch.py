"""Trains forecasters of market bars with onnxrl fit and the same networks with PyTorch, and compares the loss of every update.

    python cmd/peers/forecast_torch.py --binary ./onnxrl [--updates 256] [--case NAME…] [--engine ort] [--tolerance 1e-3]

Windows of the stocks that come with the program are written by onnxrl data windows; what is foreseen is the logarithm of the volatility and the log returns of the next five
bars. Both sides begin with onnxrl's initial weights, read from the ONNX file that a run with a learning rate of 0 writes, see the same batches in the same order and use Adam. The
networks in PyTorch are those of encoder_vectors.py: torch.nn's layers, TimesNet's periods by torch.fft with an image for each and six parallel convolutions in an inception; where
those go row by row, rows are taken together here. ProbSparse attention ranks its queries by all keys on both sides, without random numbers. Exits with 1 where a loss differs by more
than the tolerance, relatively. Needs torch, onnx, pyarrow and numpy.
"""

import argparse
import json
import math
import pathlib
import subprocess
import sys
import tempfile

import numpy as np
import onnx
import pyarrow.parquet
import torch
from onnx import numpy_helper
from torch import nn

import encoder_vectors as encoders

BATCH, LR, STEPS, FEATURES, HORIZON = 32, 1e-3, 20, 29, 5
TIMESNET = {"d_model": 8, "d_ff": 8, "n_kernels": 6, "top_k": 2, "pool": "last"}
INFORMER = {"d_model": 32, "kernels": [3, 5, 7, 9], "n_heads": 4, "d_ff": 64, "pool": "last"}
CASES = {
    "timesnet, periods of a row": (encoders.TimesNet, TIMESNET | {"period_choice": "sample", "n_kernels": 3}),
    "timesnet, periods of the batch, as published": (encoders.TimesNet, TIMESNET | {"period_choice": "batch"}),
    "informer, full attention": (encoders.Informer, INFORMER | {"attention": "full"}),
    "informer, probsparse over all keys": (encoders.Informer, INFORMER | {"attention": "probsparse", "factor": 2}),
}
OUTPUTS = {"returns": (HORIZON, "next_returns", 100.0), "volatility": (1, "next_volatility", 1.0)}


def periods_of_rows(block, x):
    """The forward of a block whose rows have periods of their own: rows with the same one share an image."""
    if block.c["period_choice"] != "sample":
        return block.published(x)
    batch, steps, width = x.shape
    amplitude = torch.fft.rfft(x, dim=1).abs().mean(-1)
    top = torch.topk(amplitude.detach()[:, 1:], block.c["top_k"], dim=1)[1] + 1
    weights, periods = amplitude.gather(1, top).softmax(1), steps // top
    y = x
    for p in periods.unique().tolist():
        rows = (periods == p).any(1).nonzero()[:, 0]
        cycles = -(-steps // p)
        image = torch.cat([x[rows], x.new_zeros(len(rows), cycles * p - steps, width)], dim=1)
        image = block.conv(image.reshape(len(rows), cycles, p, width).permute(0, 3, 1, 2))
        part = image.permute(0, 2, 3, 1).reshape(len(rows), -1, width)[:, :steps]
        y = y.index_add(0, rows, part * (weights * (periods == p))[rows].sum(1)[:, None, None])
    return y


def queries_together(attention, x):
    """The forward of ProbSparse attention, all rows, heads and queries at once."""
    batch, steps, width = x.shape
    q, k, v = (t.unflatten(2, (attention.heads, -1)).transpose(1, 2) for t in attention.qkv(x).chunk(3, dim=-1))
    scores = q @ k.transpose(2, 3) / math.sqrt(q.shape[3])
    top = (scores.max(3).values - scores.mean(3)).detach().topk(attention.queries, dim=2)[1][..., None]
    attended = scores.gather(2, top.expand(-1, -1, -1, steps)).softmax(3) @ v
    result = v.mean(2, keepdim=True).expand_as(v).scatter(2, top.expand(-1, -1, -1, v.shape[3]), attended)
    return attention.out(result.transpose(1, 2).reshape(batch, steps, width))


class Forecaster(nn.Module):
    def __init__(self, kind, c):
        super().__init__()
        self.encoder = kind(c, FEATURES, STEPS)
        self.heads = nn.ModuleDict({name: nn.Linear(c["d_model"], width) for name, (width, _, _) in OUTPUTS.items()})

    def load(self, path):
        """Takes the weights of an ONNX file, each of which is one of the network's."""
        have = {t.name: torch.from_numpy(numpy_helper.to_array(t).copy()) for t in onnx.load(path).graph.initializer if not t.name.startswith("const/")}
        want = self.encoder.named() | {f"head.{n}.{k}": (p, encoders.same) for n, head in self.heads.items() for k, p in head.named_parameters()}
        if have.keys() != want.keys():
            sys.exit(f"{path}: parameters that only one side has: {sorted(have.keys() ^ want.keys())}")
        with torch.no_grad():
            for name, (p, layout) in want.items():
                if layout(p).shape != have[name].shape:
                    sys.exit(f"{path}: {name} is {tuple(have[name].shape)}, expected {tuple(layout(p).shape)}")
                p.copy_(have[name].reshape(p.shape[0], p.shape[2], p.shape[1]).permute(0, 2, 1) if layout is encoders.taps else have[name])

    def forward(self, x):
        z = self.encoder(x)[:, -1]
        return {name: head(z) for name, head in self.heads.items()}


def run(args, *command):
    r = subprocess.run([args.binary, *map(str, command)], capture_output=True, text=True)
    if r.returncode != 0:
        sys.exit(f"{args.binary} {' '.join(map(str, command))}:\n{r.stderr}")


def document(kind, c, table):
    network = {"window": [STEPS, FEATURES], "encoder": {"kind": kind.__name__.lower(), "n_layers": 2, **c}, "outputs": {n: width for n, (width, _, _) in OUTPUTS.items()}}
    data = {"path": str(table), "inputs": {"window": ["window"]}, "targets": {n: [column] for n, (_, column, _) in OUTPUTS.items()}, "shuffle": False}
    loss = [{"output": n, "kind": "mse", "weight": w} for n, (_, _, w) in OUTPUTS.items()]
    # JSON is YAML.
    return json.dumps({"network": network, "data": data, "loss": loss, "optimizer": {"kind": "adam", "lr": LR}, "batch": BATCH, "epochs": 1, "seed": 11})


def trained(net, x, y, updates):
    optimizer, losses, rows = torch.optim.Adam(net.parameters(), lr=LR), [], len(x)
    a = 0
    for _ in range(updates):
        out = net(x[a : a + BATCH])
        loss = sum(w * nn.functional.mse_loss(out[n], y[n][a : a + BATCH]) for n, (_, _, w) in OUTPUTS.items())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
        a = a + BATCH if a + BATCH < rows else 0
    return losses


def compare(name, folder, args, table, x, y):
    kind, c = CASES[name]
    folder.mkdir()
    document_path, initial = folder / "fit.yaml", folder / "initial.onnx"
    document_path.write_text(document(kind, c, table))
    epochs = -(-args.updates // -(-len(x) // BATCH))
    run(args, "fit", document_path, "--lr", 0, "--out", initial, "--engine", args.engine, "-q")
    run(args, "fit", document_path, "--epochs", epochs, "--dir", folder / "run", "--engine", args.engine, "-q")
    lines = [json.loads(line) for line in (folder / "run" / "metrics.jsonl").read_text().splitlines()]
    got = [line["train/loss"] if "train/loss" in line else line["values"]["train/loss"] for line in lines if "train/loss" in line or "train/loss" in line.get("values", {})]
    net = Forecaster(kind, c)
    net.load(initial)
    want = trained(net, x, y, len(got))
    differences = [abs(a - b) / abs(b) for a, b in zip(got, want)]
    worst = max(differences)
    ok = len(got) >= args.updates and worst <= args.tolerance
    print(f"{name}: {len(got)} updates, loss {want[0]:.5f} -> {want[-1]:.5f}, largest relative difference {worst:.2e} (first {args.updates // 4}: "
          f"{max(differences[: args.updates // 4]):.2e}) {'' if ok else 'TOO LARGE'}", flush=True)
    return ok


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--binary", default="./onnxrl")
    p.add_argument("--engine", default="auto")
    p.add_argument("--updates", type=int, default=256)
    p.add_argument("--tolerance", type=float, default=1e-3)
    p.add_argument("--case", nargs="*", choices=CASES, metavar="NAME")
    args = p.parse_args()
    torch.set_num_threads(1)
    encoders.TimesBlock.forward, encoders.ProbSparse.forward = periods_of_rows, queries_together
    bad = 0
    with tempfile.TemporaryDirectory() as tmp:
        table = pathlib.Path(tmp) / "windows.parquet"
        run(args, "data", "windows", "demo", "--stride", 4, "--horizon", HORIZON, "--out", table)
        columns = pyarrow.parquet.read_table(table)

        def column(name, shape):
            return torch.from_numpy(np.array(columns[name].to_pylist(), dtype=np.float32).reshape(len(columns), *shape))

        x = column("window", (STEPS, FEATURES))
        y = {name: column(source, (width,)) for name, (width, source, _) in OUTPUTS.items()}
        for i, name in enumerate(args.case or CASES):
            bad += not compare(name, pathlib.Path(tmp) / str(i), args, table, x, y)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
