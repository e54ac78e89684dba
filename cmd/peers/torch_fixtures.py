"""Writes gradient fixtures from PyTorch: one directory per layer and exporter, as `onnxrl grad check` reads them.

    python torch_fixtures.py OUT [--only NAME ...] [--exporter torchscript|dynamo|both] [--list]

A directory holds model.onnx and data/{input,output,cotangent,grad_param,grad_input}_<i>.pb; the loss is the sum of all outputs times their cotangents. Models are
exported in training mode and without constant folding, so that parameters keep their names. Needs torch, onnx, onnxruntime and, for the dynamo exporter, onnxscript.
"""

import argparse
import pathlib
import shutil
import sys
import warnings

import numpy as np
import onnx
import torch
import torch.nn.functional as F
from onnx import numpy_helper
from torch import nn

warnings.filterwarnings("ignore")


class Fn(nn.Module):
    """A function of the inputs behind a linear layer, so that every fixture has parameters."""

    def __init__(self, f, features=None):
        super().__init__()
        self.f = f
        self.lin = nn.Linear(features, features) if features else None

    def forward(self, x, *rest):
        return self.f(self.lin(x) if self.lin else x, *rest)


class Take(nn.Module):
    """A module whose output is a tuple; f picks what enters the loss."""

    def __init__(self, m, f):
        super().__init__()
        self.m = m
        self.f = f

    def forward(self, *x):
        return self.f(self.m(*x))


def rand(*shape):
    return torch.randn(*shape)


def ints(hi, *shape):
    return torch.randint(0, hi, shape)


class SelfAttention(nn.Module):
    def __init__(self):
        super().__init__()
        self.mha = nn.MultiheadAttention(8, 2, batch_first=True)

    def forward(self, x):
        return self.mha(x, x, x, need_weights=False)[0]


class Head(nn.Module):
    def __init__(self, loss):
        super().__init__()
        self.lin = nn.Linear(6, 5)
        self.loss = loss

    def forward(self, x, t):
        return self.loss(self.lin(x), t)


class Decoder(nn.Module):
    """Embedding, positions, causal mask, output layer."""

    def __init__(self):
        super().__init__()
        self.emb = nn.Embedding(11, 8)
        self.pos = nn.Parameter(torch.randn(6, 8))
        self.layer = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True)
        self.out = nn.Linear(8, 11, bias=False)

    def forward(self, i):
        x = self.emb(i) + self.pos
        mask = torch.triu(torch.full((6, 6), float("-inf")), 1)
        return self.out(self.layer(x, src_mask=mask))


class ResNetBlock(nn.Module):
    def __init__(self, norm):
        super().__init__()
        self.c1 = nn.Conv2d(3, 4, 3, stride=2, padding=1, bias=False)
        self.n1 = norm(4)
        self.c2 = nn.Conv2d(4, 4, 3, padding=1)
        self.down = nn.Conv2d(3, 4, 1, stride=2)

    def forward(self, x):
        return F.relu(self.c2(F.relu(self.n1(self.c1(x)))) + self.down(x)).mean((2, 3))


class Gaussian(nn.Module):
    """The squashed Gaussian policy of SAC with its log-probability; the noise is an input."""

    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(5, 8), nn.ReLU())
        self.mean, self.std = nn.Linear(8, 3), nn.Linear(8, 3)

    def forward(self, x, noise):
        h = self.body(x)
        mean, std = self.mean(h), self.std(h).clamp(-5, 2).exp()
        u = mean + std * noise
        log = torch.distributions.Normal(mean, std).log_prob(u) - 2 * (np.log(2) - u - F.softplus(-2 * u))
        return torch.tanh(u), log.sum(-1)


def act(f):
    return lambda: (Fn(f, 5), [rand(4, 5)])


LAYERS = {
    # Attention and transformers.
    "multihead_attention": lambda: (SelfAttention(), [rand(2, 5, 8)]),
    "transformer_encoder_layer": lambda: (nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True), [rand(2, 5, 8)]),
    "transformer_encoder_gelu_norm_first": lambda: (nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, activation="gelu", batch_first=True, norm_first=True), [rand(2, 5, 8)]),
    "transformer_decoder_layer": lambda: (nn.TransformerDecoderLayer(8, 2, 16, dropout=0.0, batch_first=True), [rand(2, 4, 8), rand(2, 5, 8)]),
    "causal_decoder": lambda: (Decoder(), [ints(11, 2, 6)]),
    "scaled_dot_product_attention": lambda: (Fn(lambda q, k, v: F.scaled_dot_product_attention(q, k, v), 4), [rand(2, 2, 5, 4), rand(2, 2, 6, 4), rand(2, 2, 6, 4)]),
    "scaled_dot_product_attention_causal": lambda: (Fn(lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=True), 4), [rand(2, 2, 5, 4), rand(2, 2, 5, 4), rand(2, 2, 5, 4)]),
    # Recurrent.
    "lstm_two_layers_bidirectional": lambda: (Take(nn.LSTM(4, 5, num_layers=2, bidirectional=True), lambda y: y[0]), [rand(6, 2, 4)]),
    "lstm_batch_first_last_state": lambda: (Take(nn.LSTM(4, 5, batch_first=True), lambda y: y[1][0] + y[1][1]), [rand(2, 6, 4)]),
    "gru": lambda: (Take(nn.GRU(4, 5, batch_first=True), lambda y: y[0]), [rand(2, 6, 4)]),
    "gru_bidirectional": lambda: (Take(nn.GRU(4, 5, bidirectional=True), lambda y: torch.cat([y[0].flatten(), y[1].flatten()])), [rand(6, 2, 4)]),
    "rnn_tanh": lambda: (Take(nn.RNN(4, 5), lambda y: y[0]), [rand(6, 2, 4)]),
    "rnn_relu": lambda: (Take(nn.RNN(4, 5, nonlinearity="relu"), lambda y: y[1]), [rand(6, 2, 4)]),
    "lstm_cell": lambda: (Take(nn.LSTMCell(4, 5), lambda y: y[0] + y[1]), [rand(3, 4)]),
    # Embedding.
    "embedding": lambda: (nn.Embedding(7, 4), [ints(7, 3, 5)]),
    # Normalisation.
    "layer_norm": lambda: (nn.LayerNorm(6), [rand(3, 4, 6)]),
    "layer_norm_two_axes": lambda: (nn.LayerNorm([4, 6]), [rand(3, 4, 6)]),
    "group_norm": lambda: (nn.GroupNorm(2, 6), [rand(2, 6, 4, 3)]),
    "instance_norm_1d": lambda: (nn.InstanceNorm1d(3, affine=True), [rand(2, 3, 6)]),
    "instance_norm_2d": lambda: (nn.InstanceNorm2d(3, affine=True), [rand(2, 3, 4, 5)]),
    "rms_norm": lambda: (nn.RMSNorm(6), [rand(3, 4, 6)]),
    "batch_norm_1d_train": lambda: (nn.BatchNorm1d(4), [rand(6, 4)]),
    "batch_norm_1d_sequence_train": lambda: (nn.BatchNorm1d(4), [rand(3, 4, 5)]),
    "batch_norm_2d_train": lambda: (nn.BatchNorm2d(3), [rand(2, 3, 4, 4)]),
    "batch_norm_2d_eval": lambda: (nn.Sequential(nn.Conv2d(2, 3, 3), nn.BatchNorm2d(3)).eval(), [rand(2, 2, 5, 5)]),
    "batch_norm_1d_eval": lambda: (nn.BatchNorm1d(4).eval(), [rand(6, 4)]),
    "local_response_norm": lambda: (nn.LocalResponseNorm(3), [rand(2, 6, 3, 3)]),
    "normalize": act(lambda x: F.normalize(x, dim=1)),
    "weight_norm_by_hand": lambda: (Fn(lambda x, v: x @ (v / v.norm(dim=0)), 5), [rand(4, 5), rand(5, 3)]),
    # Convolution.
    "conv1d": lambda: (nn.Conv1d(3, 4, 3, padding=1), [rand(2, 3, 8)]),
    "conv1d_dilated_causal": lambda: (nn.Sequential(nn.ConstantPad1d((4, 0), 0.0), nn.Conv1d(3, 4, 3, dilation=2)), [rand(2, 3, 8)]),
    "conv1d_same": lambda: (nn.Conv1d(3, 4, 4, padding="same"), [rand(2, 3, 8)]),
    "conv1d_circular": lambda: (nn.Conv1d(3, 4, 3, padding=1, padding_mode="circular"), [rand(2, 3, 8)]),
    "conv1d_reflect": lambda: (nn.Conv1d(3, 4, 3, padding=1, padding_mode="reflect"), [rand(2, 3, 8)]),
    "conv2d_stride": lambda: (nn.Conv2d(3, 4, 3, stride=2, padding=1), [rand(2, 3, 7, 6)]),
    "conv2d_depthwise": lambda: (nn.Conv2d(4, 8, 3, groups=4), [rand(2, 4, 5, 5)]),
    "conv2d_groups_dilated": lambda: (nn.Conv2d(4, 6, 3, groups=2, dilation=2, padding=2), [rand(2, 4, 6, 6)]),
    "conv2d_replicate": lambda: (nn.Conv2d(2, 3, 3, padding=(1, 2), padding_mode="replicate"), [rand(2, 2, 5, 4)]),
    "conv3d": lambda: (nn.Conv3d(2, 3, (2, 3, 3), stride=(1, 2, 1)), [rand(1, 2, 4, 5, 5)]),
    "conv_transpose1d": lambda: (nn.ConvTranspose1d(3, 4, 4, stride=2, padding=1), [rand(2, 3, 5)]),
    "conv_transpose2d": lambda: (nn.ConvTranspose2d(4, 6, 3, stride=2, padding=1, output_padding=1, groups=2), [rand(2, 4, 4, 4)]),
    "conv_transpose2d_dilated": lambda: (nn.ConvTranspose2d(3, 2, 3, dilation=2), [rand(2, 3, 4, 4)]),
    "resnet_block": lambda: (ResNetBlock(nn.BatchNorm2d), [rand(4, 3, 8, 8)]),
    # Pooling and sampling.
    "max_pool1d": lambda: (Fn(nn.MaxPool1d(2), 6), [rand(2, 3, 6)]),
    "max_pool2d_overlap": lambda: (Fn(nn.MaxPool2d(3, stride=2, padding=1), 6), [rand(2, 2, 7, 6)]),
    "max_pool3d": lambda: (Fn(nn.MaxPool3d(2), 4), [rand(1, 2, 4, 4, 4)]),
    "avg_pool1d": lambda: (Fn(nn.AvgPool1d(3, stride=1, padding=1), 6), [rand(2, 3, 6)]),
    "avg_pool2d_uncounted": lambda: (Fn(nn.AvgPool2d(3, stride=2, padding=1, count_include_pad=False), 6), [rand(2, 2, 7, 6)]),
    "adaptive_avg_pool2d": lambda: (Fn(nn.AdaptiveAvgPool2d((2, 3)), 6), [rand(2, 2, 4, 6)]),
    "adaptive_avg_pool1d_global": lambda: (Fn(nn.AdaptiveAvgPool1d(1), 6), [rand(2, 2, 6)]),
    "adaptive_max_pool2d": lambda: (Fn(nn.AdaptiveMaxPool2d(2), 4), [rand(2, 2, 4, 4)]),
    "adaptive_max_pool1d_global": lambda: (Fn(nn.AdaptiveMaxPool1d(1), 6), [rand(2, 2, 6)]),
    "lp_pool2d": lambda: (Fn(nn.LPPool2d(2, 2), 6), [rand(2, 2, 4, 6)]),
    "pixel_shuffle": lambda: (Fn(nn.PixelShuffle(2), 3), [rand(1, 8, 2, 3)]),
    "pixel_unshuffle": lambda: (Fn(nn.PixelUnshuffle(2), 4), [rand(1, 2, 4, 4)]),
    "upsample_nearest": lambda: (Fn(nn.Upsample(scale_factor=2), 3), [rand(1, 2, 3, 3)]),
    "upsample_bilinear": lambda: (Fn(nn.Upsample(scale_factor=2, mode="bilinear"), 3), [rand(1, 2, 3, 3)]),
    "upsample_bilinear_corners": lambda: (Fn(nn.Upsample(size=(5, 7), mode="bilinear", align_corners=True), 3), [rand(1, 2, 3, 3)]),
    "upsample_linear": lambda: (Fn(nn.Upsample(scale_factor=2, mode="linear"), 4), [rand(1, 2, 4)]),
    "upsample_bicubic": lambda: (Fn(nn.Upsample(scale_factor=2, mode="bicubic"), 4), [rand(1, 2, 4, 4)]),
    "grid_sample": lambda: (Fn(lambda x, g: F.grid_sample(x, torch.tanh(g), align_corners=False), 4), [rand(1, 2, 4, 4), rand(1, 3, 3, 2)]),
    "unfold": lambda: (Fn(nn.Unfold(2, stride=2), 4), [rand(1, 2, 4, 4)]),
    "fold": lambda: (Fn(nn.Fold((4, 4), 2, stride=1), 9), [rand(1, 8, 9)]),
    # Activations.
    "glu": lambda: (Fn(nn.GLU(), 6), [rand(4, 6)]),
    "gelu": act(nn.GELU()),
    "gelu_tanh": act(nn.GELU(approximate="tanh")),
    "silu": act(nn.SiLU()),
    "mish": act(nn.Mish()),
    "hardtanh": act(nn.Hardtanh()),
    "relu6": act(nn.ReLU6()),
    "elu": act(nn.ELU(0.7)),
    "celu": act(nn.CELU(0.7)),
    "selu": act(nn.SELU()),
    "prelu": lambda: (nn.Sequential(nn.Linear(5, 5), nn.PReLU(5)), [rand(4, 5)]),
    "leaky_relu": act(nn.LeakyReLU(0.2)),
    "softplus": act(nn.Softplus()),
    "softplus_beta": act(nn.Softplus(beta=2.0, threshold=3.0)),
    "softsign": act(nn.Softsign()),
    "log_sigmoid": act(nn.LogSigmoid()),
    "hardsigmoid": act(nn.Hardsigmoid()),
    "hardswish": act(nn.Hardswish()),
    "hardshrink": act(nn.Hardshrink(0.3)),
    "softshrink": act(nn.Softshrink(0.3)),
    "tanhshrink": act(nn.Tanhshrink()),
    "threshold": act(nn.Threshold(0.1, 20)),
    "softmax": act(nn.Softmax(-1)),
    "log_softmax": act(nn.LogSoftmax(0)),
    "softmin": act(nn.Softmin(-1)),
    # Losses.
    "cross_entropy": lambda: (Head(F.cross_entropy), [rand(4, 6), ints(5, 4)]),
    "cross_entropy_smooth": lambda: (Head(lambda y, t: F.cross_entropy(y, t, label_smoothing=0.1)), [rand(4, 6), ints(5, 4)]),
    "nll_sum": lambda: (Head(lambda y, t: F.nll_loss(F.log_softmax(y, -1), t, reduction="sum")), [rand(4, 6), ints(5, 4)]),
    "mse": lambda: (Head(F.mse_loss), [rand(4, 6), rand(4, 5)]),
    "l1": lambda: (Head(F.l1_loss), [rand(4, 6), rand(4, 5)]),
    "smooth_l1": lambda: (Head(F.smooth_l1_loss), [rand(4, 6), rand(4, 5)]),
    "huber": lambda: (Head(lambda y, t: F.huber_loss(y, t, delta=0.5)), [rand(4, 6), rand(4, 5)]),
    "bce_with_logits": lambda: (Head(lambda y, t: F.binary_cross_entropy_with_logits(y, torch.sigmoid(t))), [rand(4, 6), rand(4, 5)]),
    "kl_div": lambda: (Head(lambda y, t: F.kl_div(F.log_softmax(y, -1), F.softmax(t, -1), reduction="batchmean")), [rand(4, 6), rand(4, 5)]),
    "cosine_similarity": lambda: (Fn(lambda x, y: F.cosine_similarity(x, y, dim=-1), 5), [rand(4, 5), rand(4, 5)]),
    "pairwise_distance": lambda: (Fn(lambda x, y: F.pairwise_distance(x, y), 5), [rand(4, 5), rand(4, 5)]),
    "cdist": lambda: (Fn(lambda x, y: torch.cdist(x, y), 3), [rand(4, 3), rand(5, 3)]),
    # Algebra.
    "einsum": lambda: (Fn(lambda x, y: torch.einsum("bij,bkj->bik", x, y), 4), [rand(2, 3, 4), rand(2, 5, 4)]),
    "bmm": lambda: (Fn(torch.bmm, 4), [rand(2, 3, 4), rand(2, 4, 5)]),
    "baddbmm": lambda: (Fn(lambda x, y, z: torch.baddbmm(z, x, y, beta=0.5, alpha=2.0), 4), [rand(2, 3, 4), rand(2, 4, 5), rand(3, 5)]),
    "bilinear": lambda: (nn.Bilinear(3, 4, 5), [rand(2, 3), rand(2, 4)]),
    "matmul_broadcast": lambda: (Fn(torch.matmul, 4), [rand(2, 1, 3, 4), rand(5, 4, 2)]),
    "outer": lambda: (Fn(lambda x, y: torch.outer(x, y), 4), [rand(4), rand(3)]),
    "dot": lambda: (Fn(torch.dot, 4), [rand(4), rand(4)]),
    # Reductions.
    "cumsum": act(lambda x: torch.cumsum(x, 1)),
    "logsumexp": act(lambda x: torch.logsumexp(x, 1)),
    "var": act(lambda x: torch.var(x, 1)),
    "std": act(lambda x: torch.std(x, 0, keepdim=True)),
    "var_mean": act(lambda x: torch.cat(torch.var_mean(x, 1, unbiased=False))),
    "norm": act(lambda x: torch.linalg.vector_norm(x, dim=1)),
    "norm_l1": act(lambda x: torch.norm(x, p=1, dim=1)),
    "norm_l3": act(lambda x: torch.norm(x, p=3, dim=1)),
    "prod": act(lambda x: torch.prod(x, 1)),
    "amax_amin": act(lambda x: torch.amax(x, 1) - torch.amin(x, 0).sum()),
    "max_with_index": act(lambda x: x.max(1).values),
    "min_all": act(lambda x: x.min()),
    "median_of_sort": act(lambda x: torch.sort(x, 1).values[:, 2]),
    "topk": act(lambda x: torch.topk(x, 2, 1).values),
    "mean_axes": lambda: (Fn(lambda x: x.mean((0, 2)), 4), [rand(2, 3, 4)]),
    # Choosing and moving.
    "clamp": act(lambda x: x.clamp(-0.4, 0.6)),
    "clamp_min": act(lambda x: x.clamp_min(0.1)),
    "minimum_maximum": lambda: (Fn(lambda x, y: torch.minimum(x, y) + 2 * torch.maximum(x, y.mean(0)), 5), [rand(4, 5), rand(4, 5)]),
    "where": lambda: (Fn(lambda x, y: torch.where(y > 0, x, y * x), 5), [rand(4, 5), rand(4, 5)]),
    "masked_fill": lambda: (Fn(lambda x, m: F.softmax(x.masked_fill(m == 0, -1e9), -1), 5), [rand(4, 5), ints(2, 4, 5)]),
    "index_select": lambda: (Fn(lambda x, i: torch.index_select(x, 1, i), 5), [rand(4, 5), ints(5, 3)]),
    "advanced_index": lambda: (Fn(lambda x, i, j: x[i, j], 5), [rand(4, 5), ints(4, 6), ints(5, 6)]),
    "gather": lambda: (Fn(lambda x, i: torch.gather(x, 1, i), 5), [rand(4, 5), ints(5, 4, 3)]),
    "gather_action": lambda: (Fn(lambda x, i: torch.gather(F.log_softmax(x, -1), 1, i[:, None]).squeeze(1), 5), [rand(4, 5), ints(5, 4)]),
    "scatter_add": lambda: (Fn(lambda x, i, y: x.scatter_add(1, i, y), 5), [rand(4, 5), ints(5, 4, 3), rand(4, 3)]),
    "index_put": lambda: (Fn(lambda x, y: torch.index_put(x, (torch.tensor([0, 2]),), y), 5), [rand(4, 5), rand(2, 5)]),
    "one_hot": lambda: (Fn(lambda x, i: (x * F.one_hot(i, 5)).sum(1), 5), [rand(4, 5), ints(5, 4)]),
    "tril": act(lambda x: torch.tril(x) + torch.triu(x, 1) * 2),
    "roll": act(lambda x: torch.roll(x, 2, 1)),
    "flip": act(lambda x: torch.flip(x, (0, 1))),
    "pad_constant": act(lambda x: F.pad(x, (1, 2, 0, 1), value=0.5)),
    "pad_negative": act(lambda x: F.pad(x, (-1, 2))),
    "pad_reflect": lambda: (Fn(lambda x: F.pad(x, (2, 1), mode="reflect"), 5), [rand(2, 3, 5)]),
    "pad_replicate": lambda: (Fn(lambda x: F.pad(x, (2, 1, 1, 0), mode="replicate"), 5), [rand(1, 2, 3, 5)]),
    "pad_circular": lambda: (Fn(lambda x: F.pad(x, (2, 1), mode="circular"), 5), [rand(2, 3, 5)]),
    "chunk_stack": act(lambda x: torch.stack(x.chunk(2, 0), 1)),
    "split_cat": act(lambda x: torch.cat(x.split([2, 3], 1)[::-1], 1)),
    "split_part": act(lambda x: x.split([2, 3], 1)[0]),
    "strided_slice": act(lambda x: x[1:, ::2]),
    "unbind": act(lambda x: x.unbind(0)[1] * x.unbind(0)[2]),
    "repeat_expand": act(lambda x: x.repeat(2, 1) + x.mean(0, keepdim=True).expand(8, 5)),
    "permute_view": lambda: (Fn(lambda x: x.permute(0, 2, 1).reshape(2, -1), 4), [rand(2, 3, 4)]),
    "meshgrid": lambda: (Fn(lambda x, y: torch.meshgrid(x, y, indexing="ij")[0] * y, 4), [rand(4), rand(3)]),
    "repeat_interleave": act(lambda x: x.repeat_interleave(2, 1)),
    "diagonal": lambda: (Fn(lambda x: torch.diagonal(x, dim1=-2, dim2=-1), 4), [rand(2, 4, 4)]),
    # Functions.
    "pow": act(lambda x: x.pow(2) + (x.abs() + 0.1).pow(1.7) + torch.pow(2.0, x)),
    "pow_tensor": lambda: (Fn(lambda x, p: torch.pow(x.abs() + 0.5, p), 5), [rand(4, 5), rand(5)]),
    "exp_log": act(lambda x: torch.log(1 + x.exp()) + torch.log1p(x.abs()) + torch.expm1(x)),
    "rsqrt": act(lambda x: torch.rsqrt(x * x + 0.1) + torch.sqrt(x * x + 0.2)),
    "trigonometric": act(lambda x: x.sin() + x.cos() * x.tanh().atan() + (x / 4).tan()),
    "hyperbolic": act(lambda x: x.sinh() + x.cosh() + x.asinh() + (x * x + 1.5).acosh() + (x.tanh() * 0.9).atanh()),
    "inverse_trigonometric": act(lambda x: (x.tanh() * 0.9).asin() + (x.tanh() * 0.9).acos()),
    "erf": act(lambda x: x.erf()),
    "abs_sign": act(lambda x: x.abs() * x.sign() + x.reciprocal().clamp(-2, 2)),
    "fmod": lambda: (Fn(lambda x, y: torch.fmod(x * 4, y.abs() + 1), 5), [rand(4, 5), rand(5)]),
    "floor_round": act(lambda x: x * x.floor() + x.round() * 2),
    "lerp_addcmul": lambda: (Fn(lambda x, y: torch.lerp(x, y, 0.3) + torch.addcmul(x, x, y, value=0.5), 5), [rand(4, 5), rand(4, 5)]),
    "squashed_gaussian": lambda: (Gaussian(), [rand(4, 5), rand(4, 3)]),
}


# The dynamo exporter writes batch normalisation in evaluation form whatever the mode of the module.
TORCHSCRIPT_ONLY = {"batch_norm_1d_train", "batch_norm_1d_sequence_train", "batch_norm_2d_train", "resnet_block"}


def save(path, name, t):
    path.write_bytes(numpy_helper.from_array(t.detach().contiguous().cpu().numpy(), name).SerializeToString())


def export(module, inputs, path, exporter):
    names = [f"x{i}" for i in range(len(inputs))]
    mode = torch.onnx.TrainingMode.PRESERVE
    if exporter == "dynamo":
        # The exporter's optimiser folds transposed and tied parameters into new constants that no longer have their names.
        torch.onnx.export(module, tuple(inputs), str(path), input_names=names, opset_version=18, dynamo=True, optimize=False, external_data=False, verbose=False)
    else:
        torch.onnx.export(module, tuple(inputs), str(path), input_names=names, opset_version=17, dynamo=False, training=mode, do_constant_folding=False)


def strip(path):
    """Removes what exporters note about the machine and the sources: stack traces, documentation, metadata."""
    model = onnx.load(path)
    graph = model.graph
    for part in [model, graph, *model.functions, *graph.node, *graph.input, *graph.output, *graph.value_info, *(n for f in model.functions for n in f.node)]:
        part.ClearField("doc_string")
        part.ClearField("metadata_props")
    del graph.value_info[:]
    onnx.save(model, path)
    return model


def verify(d, inputs, outputs):
    """Fails when the exported model computes something else, as some exports do: then no gradient can be compared."""
    import onnxruntime

    s = onnxruntime.InferenceSession(str(d / "model.onnx"), providers=["CPUExecutionProvider"])
    got = s.run(None, {v.name: x.detach().numpy() for v, x in zip(s.get_inputs(), inputs)})
    for y, g in zip(outputs, got):
        if not np.allclose(y.detach().numpy(), g, rtol=1e-3, atol=1e-4):
            raise ValueError("the exported model computes something else than the module")


def write(out, name, exporter):
    torch.manual_seed(sum(map(ord, name)))
    module, inputs = LAYERS[name]()
    for p in module.parameters():
        # Default initialisation leaves zeros and ones, which hide mistakes.
        with torch.no_grad():
            p.add_(0.1 * torch.randn_like(p))
    d = out / f"{name}_{exporter}"
    shutil.rmtree(d, ignore_errors=True)
    (d / "data").mkdir(parents=True)
    state = {k: v.clone() for k, v in module.state_dict().items()}
    export(module, [x.clone() for x in inputs], d / "model.onnx", exporter)
    module.load_state_dict(state)
    inputs = [x.requires_grad_() if x.is_floating_point() else x for x in inputs]
    outputs = module(*inputs)
    outputs = list(outputs) if isinstance(outputs, (tuple, list)) else [outputs]
    model = strip(d / "model.onnx")
    data, loss = d / "data", 0
    for i, x in enumerate(inputs):
        save(data / f"input_{i}.pb", f"x{i}", x)
    names = [v.name for v in model.graph.output][: len(outputs)]
    for i, (n, y) in enumerate(zip(names, outputs)):
        c = torch.randn_like(y)
        loss = loss + (y * c).sum()
        save(data / f"output_{i}.pb", n, y)
        save(data / f"cotangent_{i}.pb", n, c)
    loss.backward()
    verify(d, inputs, outputs)
    have = {t.name: t for t in model.graph.initializer}
    k = 0
    for n, p in module.named_parameters():
        if p.grad is None:
            continue
        if n not in have or not np.array_equal(numpy_helper.to_array(have[n]), state[n].numpy()):
            # Exporters fold parameters away, or keep the name for something computed from them.
            print(f"{d.name}: parameter {n} is no initializer", file=sys.stderr)
            continue
        save(data / f"grad_param_{k:02d}.pb", n, p.grad)
        k += 1
    declared = {v.name for v in model.graph.input}
    for i, x in enumerate(inputs):
        if x.is_floating_point() and x.grad is not None and f"x{i}" in declared:
            save(data / f"grad_input_{i}.pb", f"x{i}", x.grad)


def main():
    a = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    a.add_argument("out", type=pathlib.Path, nargs="?")
    a.add_argument("--only", nargs="*", help="names of layers")
    a.add_argument("--exporter", choices=["torchscript", "dynamo", "both"], default="both")
    a.add_argument("--list", action="store_true", help="print the names of all layers")
    o = a.parse_args()
    if o.list:
        print("\n".join(LAYERS))
        return 0
    if o.out is None:
        a.error("OUT is missing")
    torch.set_num_threads(1)
    failed = 0
    for name in o.only or LAYERS:
        for e in ["torchscript", "dynamo"] if o.exporter == "both" else [o.exporter]:
            if e == "dynamo" and name in TORCHSCRIPT_ONLY:
                continue
            try:
                write(o.out, name, e)
            except Exception as err:  # An exporter that lacks an operator must not end the run.
                failed += 1
                shutil.rmtree(o.out / f"{name}_{e}", ignore_errors=True)
                print(f"{name}_{e}: not exported: {str(err).strip().splitlines()[0][:200]}", file=sys.stderr)
    return 1 if failed and o.only else 0


if __name__ == "__main__":
    sys.exit(main())
