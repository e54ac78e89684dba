"""Writes features and gradients of encoders as PyTorch computes them.

    python cmd/peers/encoder_vectors.py informer > models/encoder/testdata/informer.json
    python cmd/peers/encoder_vectors.py timesnet > models/encoder/testdata/timesnet.json
    python cmd/peers/encoder_vectors.py timeformer > models/encoder/testdata/timeformer.json

Everything is computed in float64 from values rounded to float32. A case has the encoder's configuration, all parameters by the names and in the shapes of the Go encoder, the observation, the
features, a cotangent, and the gradients of the sum of their products. Layers are those of torch.nn; what it has not is written from the papers' definitions: the choice of queries of
ProbSparse attention query by query, TimesNet's periods by torch.fft, with an image for each row, and TimeFormer's
product of attention and decay head by head. Needs torch.
"""

import json
import math
import sys

import torch
import torch.nn.functional as F
from torch import nn


def positions(steps, width):
    angle = torch.arange(steps)[:, None] / 10000 ** (torch.arange(0, width, 2) / width)
    return torch.stack([angle.sin(), angle.cos()], dim=-1).reshape(steps, width)


def same(p):
    return p


def taps(p):
    """A convolution along time, [out, in, kernel], as the Go one: [out, kernel·in]."""
    return p.permute(0, 2, 1).reshape(p.shape[0], -1)


class Encoder(nn.Module):
    """Has named(): the Go name of each parameter -> (parameter, how its layout changes)."""

    def names(self, prefix, module, layout=same):
        return {f"{prefix}.{n}": (p, layout if n == "weight" else same) for n, p in module.named_parameters()}


class ProbSparse(nn.Module):
    """Attention whose queries beyond the first few by max − mean of their scores give the mean of the values."""

    def __init__(self, width, heads, queries):
        super().__init__()
        self.qkv, self.out, self.heads, self.queries = nn.Linear(width, 3 * width), nn.Linear(width, width), heads, queries

    def forward(self, x):
        rows = []
        for row in x:
            q, k, v = self.qkv(row).chunk(3, dim=-1)
            size, parts = q.shape[1] // self.heads, []
            for h in range(self.heads):
                at = slice(h * size, (h + 1) * size)
                scores = q[:, at] @ k[:, at].T / math.sqrt(size)
                order = sorted(range(len(row)), key=lambda i: -(scores[i].max() - scores[i].mean()).item())
                result = [v[:, at].mean(0)] * len(row)
                for i in order[: self.queries]:
                    result[i] = scores[i].softmax(0) @ v[:, at]
                parts.append(torch.stack(result))
            rows.append(self.out(torch.cat(parts, dim=1)))
        return torch.stack(rows)


class SparseBlock(nn.Module):
    def __init__(self, width, heads, hidden, queries):
        super().__init__()
        self.attention, self.ff1, self.ff2 = ProbSparse(width, heads, queries), nn.Linear(width, hidden), nn.Linear(hidden, width)
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)

    def forward(self, x):
        x = self.norm1(x + self.attention(x))
        return self.norm2(x + self.ff2(F.gelu(self.ff1(x))))


class Informer(Encoder):
    def __init__(self, c, features, steps):
        super().__init__()
        self.c, width = c, c["d_model"]
        values = features - c.get("timestamps", 0)
        self.convs = nn.ModuleList(nn.Conv1d(values, width // len(c["kernels"]), k, padding=k // 2) for k in c["kernels"])
        self.times = nn.Linear(c["timestamps"], width, bias=False) if c.get("timestamps") else None
        self.sparse = c.get("attention") == "probsparse"
        if self.sparse:
            queries = min(c["factor"] * math.ceil(math.log(steps)), steps)
            blocks = [SparseBlock(width, c["n_heads"], c["d_ff"], queries) for _ in range(2)]
        else:
            blocks = [nn.TransformerEncoderLayer(width, c["n_heads"], c["d_ff"], dropout=0, activation="gelu", batch_first=True, norm_first=False) for _ in range(2)]
        self.blocks = nn.ModuleList(blocks)

    def named(self):
        out = {}
        for k, conv in zip(self.c["kernels"], self.convs):
            out |= self.names(f"conv{k}", conv, taps)
        if self.times:
            out |= self.names("timestamps", self.times)
        for i, b in enumerate(self.blocks):
            for n, p in b.named_parameters():
                for old, new in [("self_attn.in_proj_", "attention.qkv."), ("self_attn.out_proj.", "attention.out."), ("linear", "ff")]:
                    n = n.replace(old, new)
                out[f"block{i}.{n}"] = (p, same)
        return out

    def forward(self, x):
        values, times = x, None
        if self.times:
            values, times = x[..., : -self.c["timestamps"]], x[..., -self.c["timestamps"] :]
        x = torch.cat([conv(values.transpose(1, 2)) for conv in self.convs], dim=1).transpose(1, 2)
        x = x + positions(x.shape[1], x.shape[2])
        if times is not None:
            x = x + self.times(times)
        for b in self.blocks:
            x = b(x)
        return x


class Inception(nn.Module):
    """The mean of parallel square convolutions that keep the extents."""

    def __init__(self, inputs, outputs, kernels):
        super().__init__()
        self.convs = nn.ModuleList(nn.Conv2d(inputs, outputs, 2 * i + 1, padding=i) for i in range(kernels))

    def forward(self, x):
        return torch.stack([conv(x) for conv in self.convs], dim=-1).mean(-1)


class TimesBlock(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.c = c
        self.conv = nn.Sequential(Inception(c["d_model"], c["d_ff"], c["n_kernels"]), nn.GELU(), Inception(c["d_ff"], c["d_model"], c["n_kernels"]))

    def forward(self, x):
        if self.c["period_choice"] == "batch":
            return self.published(x)
        return torch.cat([self.published(row[None]) for row in x])

    def published(self, x):
        batch, steps, width = x.shape
        if self.c["period_choice"] == "frozen":
            periods = self.c["periods"]
            weights = torch.stack([self.amplitude(x, p) for p in periods], dim=1)
        else:
            spectrum = torch.fft.rfft(x, dim=1).abs()
            strength = spectrum.mean(0).mean(-1).detach()
            strength[0] = 0
            top = torch.topk(strength, self.c["top_k"])[1]
            periods = [steps // i for i in top.tolist()]
            weights = spectrum.mean(-1)[:, top]
        parts = []
        for p in periods:
            cycles = -(-steps // p)
            image = torch.cat([x, torch.zeros(batch, cycles * p - steps, width)], dim=1)
            image = self.conv(image.reshape(batch, cycles, p, width).permute(0, 3, 1, 2))
            parts.append(image.permute(0, 2, 3, 1).reshape(batch, -1, width)[:, :steps])
        return (torch.stack(parts, dim=-1) * weights.softmax(1)[:, None, None, :]).sum(-1) + x

    def amplitude(self, x, period):
        angle = 2 * math.pi * torch.arange(x.shape[1]) / period
        re, im = torch.einsum("bsc,s->bc", x, angle.cos()), torch.einsum("bsc,s->bc", x, angle.sin())
        return (re * re + im * im).sqrt().mean(-1)


class TimesNet(Encoder):
    def __init__(self, c, features, steps):
        super().__init__()
        self.c, width = c, c["d_model"]
        times = c.get("timestamps", 0)
        self.embed = nn.Conv1d(features - times, width, 3, padding=1, padding_mode="circular", bias=False)
        self.times = nn.Linear(times, width, bias=False) if times else None
        self.blocks = nn.ModuleList(TimesBlock(c) for _ in range(2))
        self.norm = nn.LayerNorm(width)

    def named(self):
        out = self.names("embed", self.embed, taps) | self.names("norm", self.norm)
        if self.times:
            out |= self.names("timestamps", self.times)
        for i, b in enumerate(self.blocks):
            for j, inception in enumerate([b.conv[0], b.conv[2]]):
                for k, conv in enumerate(inception.convs):
                    out |= self.names(f"block{i}.inception{j}.conv{2 * k + 1}", conv)
        return out

    def forward(self, x):
        values, times = x, None
        if self.times:
            values, times = x[..., : -self.c["timestamps"]], x[..., -self.c["timestamps"] :]
        x = self.embed(values.transpose(1, 2)).transpose(1, 2)
        x = x + positions(x.shape[1], x.shape[2])
        if times is not None:
            x = x + self.times(times)
        for b in self.blocks:
            x = self.norm(b(x))
        return x


class DecayBlock(nn.Module):
    def __init__(self, width, heads, hidden):
        super().__init__()
        self.attention = nn.ModuleDict({"qkv": nn.Linear(width, 3 * width), "out": nn.Linear(width, width)})
        self.ff1, self.ff2, self.norm1, self.norm2 = nn.Linear(width, hidden), nn.Linear(hidden, width), nn.LayerNorm(width), nn.LayerNorm(width)
        self.decay, self.heads = nn.Parameter(torch.zeros(heads)), heads

    def attend(self, x):
        steps, size = x.shape[1], x.shape[2] // self.heads
        distance = torch.arange(steps)[:, None] - torch.arange(steps)
        parts = []
        for h, (q, k, v) in enumerate(zip(*[p.split(size, dim=-1) for p in self.attention["qkv"](x).chunk(3, dim=-1)])):
            gamma = 2 ** (-8 * (h + 1) / self.heads) * self.decay[h].exp()
            weights = (q @ k.transpose(1, 2) / math.sqrt(size)).softmax(-1) * torch.where(distance >= 0, (-gamma * distance).exp(), 0)
            parts.append(weights / weights.sum(-1, keepdim=True) @ v)
        return self.attention["out"](torch.cat(parts, dim=-1))

    def forward(self, x):
        x = x + self.attend(self.norm1(x))
        return x + self.ff2(F.gelu(self.ff1(self.norm2(x))))


class TimeFormer(Encoder):
    def __init__(self, c, features, steps):
        super().__init__()
        self.c, width = c, c["d_model"]
        times = c.get("timestamps", 0)
        self.embed = nn.Linear(features - times, width)
        self.times = nn.Linear(times, width, bias=False) if times else None
        self.blocks = nn.ModuleList(DecayBlock(width, c["n_heads"], c["ff_mult"] * width) for _ in range(2))
        self.norm = nn.LayerNorm(width)

    def named(self):
        out = self.names("embed", self.embed) | self.names("norm", self.norm)
        if self.times:
            out |= self.names("timestamps", self.times)
        for i, b in enumerate(self.blocks):
            out |= self.names(f"block{i}", b)
        return out

    def forward(self, x):
        values, times = x, None
        if self.times:
            values, times = x[..., : -self.c["timestamps"]], x[..., -self.c["timestamps"] :]
        x = self.embed(values)
        if times is not None:
            x = x + self.times(times)
        for b in self.blocks:
            x = b(x)
        return self.norm(x)


def array(t):
    return {"shape": list(t.shape), "data": [float(f"{v:.7g}") for v in t.flatten().tolist()]}


def case(name, kind, c, shape):
    """shape is [batch, steps, features] or [batch, steps, assets, features]."""
    net = kind(c, shape[-1], shape[1])
    with torch.no_grad():
        for p in net.parameters():
            # Normalisations begin as the identity and biases at 0, which would hide mistakes.
            p.add_(0.2 * torch.randn_like(p))
            p.copy_(p.float())
    x = torch.randn(*shape).float().double()
    t = torch.arange(shape[1]).view(1, -1, *[1] * (len(shape) - 2))
    x = (x + 2 * torch.sin(2 * math.pi * t * torch.rand(shape[0], *[1] * (len(shape) - 1)) / 3)).float().double()
    rows = x if len(shape) == 3 else x.transpose(1, 2).flatten(0, 1)
    z = net(rows)
    z = {"last": lambda: z[:, -1], "mean": lambda: z.mean(1), "max": lambda: z.max(1).values}[c["pool"]]()
    if len(shape) == 4:
        z = z.unflatten(0, (shape[0], shape[2]))
    cotangent = torch.randn_like(z).float().double()
    named = net.named()
    grads = torch.autograd.grad((z * cotangent).sum(), [p for p, _ in named.values()])
    return {
        "name": name,
        "encoder": {"kind": kind.__name__.lower(), **c},
        "observation": array(x),
        "params": {n: array(layout(p)) for n, (p, layout) in named.items()},
        "features": array(z),
        "cotangent": array(cotangent),
        "grads": {n: array(layout(g))["data"] for (n, (_, layout)), g in zip(named.items(), grads)},
    }


def informer():
    base = {"d_model": 8, "kernels": [3, 5, 7, 9], "n_heads": 2, "d_ff": 12, "pool": "last"}
    yield case("full", Informer, base, (3, 7, 5))
    yield case("full, timestamps, assets", Informer, base | {"timestamps": 2, "pool": "mean"}, (2, 6, 2, 5))
    yield case("probsparse", Informer, base | {"attention": "probsparse", "factor": 1, "kernels": [1, 3]}, (3, 12, 4))


def timesnet():
    base = {"d_model": 4, "d_ff": 5, "n_kernels": 3, "top_k": 2, "pool": "last", "period_choice": "sample"}
    yield case("sample", TimesNet, base, (4, 14, 3))
    yield case("sample, timestamps, assets", TimesNet, base | {"timestamps": 1, "pool": "mean", "top_k": 3}, (2, 12, 2, 3))
    yield case("batch", TimesNet, base | {"period_choice": "batch"}, (4, 13, 3))
    yield case("frozen", TimesNet, base | {"period_choice": "frozen", "periods": [5, 3, 12]}, (3, 12, 3))
    yield case("six kernels, same period twice", TimesNet, base | {"n_kernels": 6, "top_k": 5, "d_model": 2, "d_ff": 2}, (2, 20, 2))


def timeformer():
    base = {"d_model": 8, "n_heads": 2, "ff_mult": 2, "pool": "last"}
    yield case("decay", TimeFormer, base, (3, 7, 5))
    yield case("timestamps, assets", TimeFormer, base | {"timestamps": 2, "pool": "mean", "n_heads": 4}, (2, 6, 2, 5))


if __name__ == "__main__":
    torch.set_default_dtype(torch.float64)
    torch.manual_seed(17)
    json.dump(list({"informer": informer, "timesnet": timesnet, "timeformer": timeformer}[sys.argv[1]]()), sys.stdout)
