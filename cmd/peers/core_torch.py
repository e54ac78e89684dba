"""The work of `onnxrl-bench core` in PyTorch: the same networks, batches, loss, clipping and Adam, in float32 on the CPU.

    python cmd/peers/core_torch.py eager|compiled THREADS

Reads lines from the standard input and answers each with one line of JSON:

    prepare ROW            builds every variant of the row, and keeps the fastest
    measure ROW SECONDS    times it; {"us": median microseconds per call, "variant": ...}

Variants are what PyTorch users choose between: inference_mode or no_grad, Adam fused or foreach, attention fused or written out, TimesNet's kernels in parallel or as one; compiled, the network alone with the optimiser outside, or the
whole step as one graph. core.py runs this beside onnxrl; it is of little use alone.
"""
import contextlib
import itertools
import json
import math
import statistics
import sys
import time

import torch
import torch.nn as nn
import torch.nn.functional as F

LR, MAX_NORM, BETA1, BETA2, EPS = 1e-4, 10.0, 0.9, 0.999, 1e-8


class MLP(nn.Module):
    def __init__(self, sizes, activation):
        super().__init__()
        layers = []
        for i, (a, b) in enumerate(zip(sizes, sizes[1:])):
            layers.append(nn.Linear(a, b))
            if i < len(sizes) - 2:
                layers.append(activation())
        self.net = nn.Sequential(*layers)

    def forward(self, x):
        return self.net(x)


class TimeCNN(nn.Module):
    """Two gated convolutions, a dilated one, pooling over time; pool gives the features read out."""

    def __init__(self, features, channels, outputs, split_pool):
        super().__init__()
        self.c1 = nn.Conv1d(features, 2 * channels, 3, padding=1)
        self.c2 = nn.Conv1d(channels, 2 * channels, 5, padding=2)
        self.c3 = nn.Conv1d(channels, 2 * channels, 3, padding=2, dilation=2)
        self.half = channels if split_pool else None
        self.o = nn.Linear(2 * channels if split_pool else 4 * channels, outputs)

    def forward(self, x):
        h = F.glu(self.c1(x), dim=1)
        h = F.glu(self.c2(h), dim=1)
        h = F.relu(self.c3(h))
        mean, peak = h.mean(-1), h.amax(-1)
        if self.half is not None:
            mean, peak = mean[:, : self.half], peak[:, self.half :]
        return self.o(torch.cat([mean, peak], 1))


class Encoder(nn.Module):
    """One pre-norm transformer block, read out at the last position."""

    def __init__(self, features, width, heads, hidden, outputs, fused):
        super().__init__()
        self.emb = nn.Linear(features, width)
        self.q, self.k, self.v, self.o = (nn.Linear(width, width) for _ in range(4))
        self.n1, self.n2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.f1, self.f2 = nn.Linear(width, hidden), nn.Linear(hidden, width)
        self.head = nn.Linear(width, outputs)
        self.heads, self.fused = heads, fused

    def forward(self, x):
        h = self.emb(x)
        a = self.n1(h)
        n, t, w = a.shape
        q, k, v = (p(a).view(n, t, self.heads, w // self.heads).transpose(1, 2) for p in (self.q, self.k, self.v))
        if self.fused:
            m = F.scaled_dot_product_attention(q, k, v)
        else:
            m = torch.softmax(q @ k.transpose(-1, -2) / math.sqrt(w // self.heads), -1) @ v
        h = h + self.o(m.transpose(1, 2).reshape(n, t, w))
        h = h + self.f2(F.gelu(self.f1(self.n2(h))))
        return self.head(h[:, -1])


class Inception(nn.Module):
    """The mean of convolutions of kernels 1, 3, …, 11, side by side as published or as the one convolution of the largest kernel that they are."""

    def __init__(self, inputs, outputs, one):
        super().__init__()
        self.convs = nn.ModuleList(nn.Conv2d(inputs, outputs, 2 * i + 1, padding=i) for i in range(6))
        self.one = one

    def forward(self, x):
        if not self.one:
            return torch.stack([conv(x) for conv in self.convs], dim=-1).mean(-1)
        weight = sum(F.pad(conv.weight, [5 - i] * 4) for i, conv in enumerate(self.convs)) / 6
        return F.conv2d(x, weight, sum(conv.bias for conv in self.convs) / 6, padding=5)


class TimesNet(nn.Module):
    """A block over windows of 20 steps with given periods, read out at the last step."""

    def __init__(self, features, width, outputs, one, steps=20, periods=(20, 10, 6, 5, 4)):
        super().__init__()
        self.embed = nn.Conv1d(features, width, 3, padding=1, padding_mode="circular", bias=False)
        self.inner = nn.Sequential(Inception(width, width, one), nn.GELU(), Inception(width, width, one))
        self.norm, self.head, self.periods = nn.LayerNorm(width), nn.Linear(width, outputs), periods
        angle = torch.arange(steps)[:, None] / 10000 ** (torch.arange(0, width, 2) / width)
        self.register_buffer("positions", torch.stack([angle.sin(), angle.cos()], dim=-1).reshape(steps, width))
        turns = 2 * math.pi * torch.arange(steps)[:, None] / torch.tensor(periods)
        self.register_buffer("waves", torch.stack([turns.cos(), turns.sin()]))

    def block(self, x):
        batch, steps, width = x.shape
        parts = torch.einsum("bsc,ksp->kbpc", x, self.waves)
        weights = (parts.square().sum(0) + 1e-12).sqrt().mean(-1).softmax(1)
        y = x
        for i, p in enumerate(self.periods):
            cycles = -(-steps // p)
            image = F.pad(x, [0, 0, 0, cycles * p - steps]).reshape(batch, cycles, p, width).permute(0, 3, 1, 2)
            y = y + self.inner(image).permute(0, 2, 3, 1).reshape(batch, -1, width)[:, :steps] * weights[:, i, None, None]
        return y

    def forward(self, x):
        x = self.embed(x.transpose(1, 2)).transpose(1, 2) + self.positions
        return self.head(self.norm(self.block(x))[:, -1])


ATTENTION = ("attention fused, ", "attention written out, ")
# name -> (is a training step, makes the network for a form, shape of the batch, labels of the two forms, if there are two)
ROWS = {
    "policy/2x64": (False, lambda _: MLP([17, 64, 64, 6], nn.Tanh), [1, 17], ()),
    "policy/2x256": (False, lambda _: MLP([17, 256, 256, 6], nn.Tanh), [1, 17], ()),
    "step/critic-2x256-b256": (True, lambda _: MLP([23, 256, 256, 1], nn.ReLU), [256, 23], ()),
    "step/critic-2x64-b64": (True, lambda _: MLP([23, 64, 64, 1], nn.ReLU), [64, 23], ()),
    "step/timecnn-b64": (True, lambda _: TimeCNN(8, 32, 3, False), [64, 8, 60], ()),
    "step/timecnn-fixture": (True, lambda _: TimeCNN(5, 8, 3, True), [4, 5, 20], ()),
    "step/encoder-b32": (True, lambda fused: Encoder(16, 64, 4, 128, 4, fused), [32, 32, 16], ATTENTION),
    "step/encoder-fixture": (True, lambda fused: Encoder(6, 16, 4, 32, 4, fused), [3, 9, 6], ATTENTION),
    "step/timesnet-b32": (True, lambda one: TimesNet(30, 32, 4, one), [32, 20, 30], ("one kernel, ", "parallel kernels, ")),
}


def policy(net, x, compiled, context):
    net.eval()
    run = torch.compile(net, fullgraph=True) if compiled else net

    def call():
        run(x)

    return call, context


def outside(net, x, y, compiled, fused):
    """Forward and backward by autograd, clipping and torch.optim.Adam outside the compiled part."""
    loss = lambda x, y: F.mse_loss(net(x), y)
    if compiled:
        loss = torch.compile(loss, fullgraph=True)
    params = list(net.parameters())
    opt = torch.optim.Adam(params, lr=LR, betas=(BETA1, BETA2), eps=EPS, fused=fused, foreach=not fused)

    def call():
        opt.zero_grad(set_to_none=True)
        loss(x, y).backward()
        torch.nn.utils.clip_grad_norm_(params, MAX_NORM, foreach=True)
        opt.step()

    return call, contextlib.nullcontext


def whole(net, x, y):
    """The whole step as one compiled graph over plain tensors."""
    params = {k: p.detach().clone() for k, p in net.named_parameters()}
    m, v = ({k: torch.zeros_like(p) for k, p in params.items()} for _ in range(2))
    t = torch.zeros(())

    def loss(params, x, y):
        return F.mse_loss(torch.func.functional_call(net, params, (x,)), y)

    @torch.compile(fullgraph=True)
    def step(params, m, v, t, x, y):
        grads = torch.func.grad(loss)(params, x, y)
        norm = torch.sqrt(sum((g * g).sum() for g in grads.values()))
        scale = torch.clamp(MAX_NORM / (norm + 1e-6), max=1.0)
        t.add_(1)
        c1, c2 = 1 - BETA1**t, torch.sqrt(1 - BETA2**t)
        for k, g in grads.items():
            g = g * scale
            m[k].mul_(BETA1).add_(g, alpha=1 - BETA1)
            v[k].mul_(BETA2).addcmul_(g, g, value=1 - BETA2)
            params[k].sub_(LR / c1 * m[k] / (v[k].sqrt() / c2 + EPS))

    def call():
        step(params, m, v, t, x, y)

    return call, torch.no_grad


def variants(name, compiled):
    """Yields (label, call, context) for a row."""
    trains, make, shape, forms = ROWS[name]
    for label, first in zip(forms or [""], [True, False]):
        torch.manual_seed(1)
        if not trains:
            for context in (torch.inference_mode, torch.no_grad):
                yield (context.__name__, *policy(make(first), torch.randn(shape), compiled, context))
            continue
        x = torch.randn(shape)
        for fused in [True, False]:
            net = make(first)
            y = torch.randn_like(net(x))
            yield (label + ("Adam fused" if fused else "Adam foreach"), *outside(net, x, y, compiled, fused))
        if compiled:
            net = make(first)
            y = torch.randn_like(net(x))
            yield (label + "whole step", *whole(net, x, y))


def seconds_per_call(call, seconds):
    """The median over slices of about 20 ms of the mean time of a call."""
    n, took = 1, 0.0
    while took < 0.01:
        start = time.perf_counter()
        for _ in range(n):
            call()
        took = time.perf_counter() - start
        if took < 0.01:
            n *= 2
    n = max(1, int(n * 0.02 / took))
    out = []
    end = time.perf_counter() + seconds
    while time.perf_counter() < end or len(out) < 3:
        start = time.perf_counter()
        for _ in range(n):
            call()
        out.append((time.perf_counter() - start) / n)
    return statistics.median(out)


def prepare(name, compiled):
    best = None
    for label, call, context in variants(name, compiled):
        with context():
            for _ in range(3):
                call()
            took = seconds_per_call(call, 0.2)
        if best is None or took < best[0]:
            best = (took, label, call, context)
    return best


def main(mode, threads):
    torch.set_num_threads(threads)
    compiled = mode == "compiled"
    if compiled:
        # Without this each call pays for a wrapper in Python.
        torch._inductor.config.cpp_wrapper = True
        torch._inductor.config.freezing = False
        torch._dynamo.config.recompile_limit = 64
    chosen = {}
    for line in sys.stdin:
        command, name, *rest = line.split()
        if command == "prepare":
            chosen[name] = prepare(name, compiled)
            answer = {"variant": chosen[name][1]}
        else:
            _, label, call, context = chosen[name]
            with context():
                answer = {"us": seconds_per_call(call, float(rest[0])) * 1e6, "variant": label}
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
