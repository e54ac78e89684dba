"""Exports the encoder that comes with the project as an example of a user's own: a small temporal convolutional network of PyTorch.

    python cmd/peers/qtmrl_encoder.py [--features F] [--width D] [--seed S] [--out FILE.onnx] [--head FILE.onnx]

--out, [batch, time, F] -> [batch, D], is what agent.encoder: {kind: file, path: FILE.onnx} takes: batch and time are symbolic, weights keep their names. Each of three residual blocks is a causal convolution of kernel 3 (dilation 1, 2, 4: a field of view of 15
bars) with layer normalisation and GELU; the features of the last bar are the result. --head is the same network with a linear output "volatility" [batch, 1] behind it, for onnxrl fit, which pretrains the encoder: the output "features" is still there, and
{kind: file, output: features} takes it without the head. Both are written with the same weights from the seed, and are checked with onnx.checker and against PyTorch at two batch sizes and windows. Needs torch, onnx and onnxruntime.
"""
import argparse
import io
import sys
import warnings

import numpy as np
import onnx
import onnxruntime as ort
import torch
import torch.nn.functional as F
from torch import nn

warnings.filterwarnings("ignore")


class Block(nn.Module):
    def __init__(self, width, dilation):
        super().__init__()
        self.ahead = 2 * dilation  # Steps that padding on both sides adds at the end: they would see the future.
        self.conv = nn.Conv1d(width, width, 3, dilation=dilation, padding=2 * dilation)
        self.norm = nn.LayerNorm(width)

    def forward(self, x):  # [batch, width, time]
        y = self.conv(x)[:, :, : -self.ahead]
        y = F.gelu(self.norm(y.transpose(1, 2))).transpose(1, 2)
        return x + y


class Encoder(nn.Module):
    def __init__(self, features, width):
        super().__init__()
        self.embed = nn.Linear(features, width)
        self.block1 = Block(width, 1)
        self.block2 = Block(width, 2)
        self.block3 = Block(width, 4)

    def forward(self, window):  # [batch, time, features]
        x = self.embed(window).transpose(1, 2)
        x = self.block3(self.block2(self.block1(x)))
        return x[:, :, -1]


class Pretraining(nn.Module):
    def __init__(self, encoder, width):
        super().__init__()
        self.encoder = encoder
        self.head = nn.Linear(width, 1)

    def forward(self, window):
        z = self.encoder(window)
        return z, self.head(z)


def export(net, features, path, outputs, axes):
    """Writes the network and returns the largest difference from PyTorch."""
    net.train()  # Nothing here behaves differently, and the exporter merges parameters of equal content unless a model is in training.
    f = io.BytesIO()
    torch.onnx.export(
        net, (torch.zeros(2, 20, features),), f, input_names=["window"], output_names=outputs, dynamo=False, opset_version=17, do_constant_folding=False, training=torch.onnx.TrainingMode.PRESERVE,
        dynamic_axes={"window": {0: "batch", 1: "time"}, **{o: {0: "batch"} for o in outputs}})
    model = onnx.load_from_string(f.getvalue())
    model.doc_string = ""
    for node in model.graph.node:  # Stack traces of the exporter's machine.
        node.doc_string = ""
    onnx.checker.check_model(model, full_check=True)
    onnx.save(model, path)
    session = ort.InferenceSession(path, providers=["CPUExecutionProvider"])
    worst = 0.0
    for batch, time in axes:
        x = torch.randn(batch, time, features)
        want = net(x)
        want = want if isinstance(want, tuple) else (want,)
        for w, g in zip(want, session.run(None, {"window": x.numpy()})):
            worst = max(worst, float(np.abs(w.detach().numpy() - g).max()))
    return worst


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--features", type=int, default=29, help="features of a bar: F of onnxrl data prepare")
    p.add_argument("--width", type=int, default=32)
    p.add_argument("--seed", type=int, default=0)
    p.add_argument("--out", default="configs/experiments/encoders/torch_tcn.onnx")
    p.add_argument("--head", default="configs/experiments/encoders/torch_tcn_head.onnx")
    a = p.parse_args()
    torch.manual_seed(a.seed)
    encoder = Encoder(a.features, a.width)
    nets = [(encoder, a.out, ["features"]), (Pretraining(encoder, a.width), a.head, ["features", "volatility"])]
    bad = 0
    for net, path, outputs in nets:
        worst = export(net, a.features, path, outputs, [(1, 20), (5, 33)])
        bad += worst > 1e-5
        size = len(open(path, "rb").read())
        count = sum(v.numel() for v in net.parameters())
        print(f"{path}: [batch, time, {a.features}] -> {outputs}, {count} parameters, {size} bytes, largest difference from PyTorch {worst:.2g}")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
