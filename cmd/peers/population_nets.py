"""The networks of `onnxrl train population` in PyTorch, layer by layer under the same names, as feature extractors and policies of Stable-Baselines3.

An observation is a vector: the bar's row in the table of features, position [N], cash [1], tradable [N] and what comes behind (the skill, or what a router sees of its experts). Windows lie in the table ready to be read: one row of
memory for each bar, so that neither the replay nor the environment carries them. What comes before the adapters of a pretrained encoder is run once over all bars, for everybody.
"""
import math

import torch
import torch.nn as nn
import torch.nn.functional as F
from core_torch import Inception
from stable_baselines3.common.policies import BaseModel
from stable_baselines3.common.torch_layers import BaseFeaturesExtractor
from stable_baselines3.sac.policies import SACPolicy

LOG_STD = (-20.0, 2.0)
ACTIVATIONS = {"relu": F.relu, "tanh": torch.tanh, "gelu": F.gelu}


class MLP(nn.Module):
    """Layers fc0, fc1, …, each with its activation."""

    def __init__(self, width, hidden, activation):
        super().__init__()
        self.activation, self.n = ACTIVATIONS[activation], len(hidden)
        for i, h in enumerate(hidden):
            setattr(self, f"fc{i}", nn.Linear(width, h))
            width = h
        self.width = width

    def forward(self, x):
        for i in range(self.n):
            x = self.activation(getattr(self, f"fc{i}")(x))
        return x


class MLPEncoder(MLP):
    """A window [B, W, F], flattened, through layers of tanh."""

    def __init__(self, steps, features, hidden):
        super().__init__(steps * features, hidden, "tanh")

    def forward(self, x):
        return super().forward(x.flatten(1))


class TimeCNN(nn.Module):
    """Gated convolutions along time without padding, and the mean over time."""

    def __init__(self, steps, features, d_model, n_layers, kernel=3):
        super().__init__()
        self.n, self.kernel, self.width = n_layers, kernel, d_model
        for i in range(n_layers):
            setattr(self, f"conv{i}", nn.Conv1d(features if i == 0 else d_model, 2 * d_model, kernel))

    def forward(self, x):
        x = x.transpose(1, 2)
        for i in range(self.n):
            y = F.glu(getattr(self, f"conv{i}")(x), dim=1)
            x = y + x[:, :, self.kernel - 1 :] if x.shape[1] == self.width else y
        return x.mean(-1)


class TimesNet(nn.Module):
    """TimesNet with periods of the configuration, read out at the last step. It is only run, and its inceptions are one convolution each."""

    def __init__(self, steps, features, d_model, d_ff, n_layers, periods):
        super().__init__()
        self.width, self.periods = d_model, periods
        self.embed = nn.Conv1d(features, d_model, 3, padding=1, padding_mode="circular", bias=False)
        self.inner = nn.ModuleList(nn.Sequential(Inception(d_model, d_ff, True), nn.GELU(), Inception(d_ff, d_model, True)) for _ in range(n_layers))
        self.norm = nn.LayerNorm(d_model)
        angle = torch.arange(steps)[:, None] / 10000 ** (torch.arange(0, d_model, 2) / d_model)
        self.register_buffer("positions", torch.stack([angle.sin(), angle.cos()], dim=-1).reshape(steps, d_model))
        turns = 2 * math.pi * torch.arange(steps)[:, None] / torch.tensor(periods)
        self.register_buffer("waves", torch.stack([turns.cos(), turns.sin()]))

    def forward(self, x):
        x = self.embed(x.transpose(1, 2)).transpose(1, 2) + self.positions
        for inner in self.inner:
            batch, steps, width = x.shape
            weights = (torch.einsum("bsc,ksp->kbpc", x, self.waves).square().sum(0) + 1e-12).sqrt().mean(-1).softmax(1)
            y = x
            for i, p in enumerate(self.periods):
                cycles = -(-steps // p)
                image = F.pad(x, [0, 0, 0, cycles * p - steps]).reshape(batch, cycles, p, width).permute(0, 3, 1, 2)
                y = y + inner(image).permute(0, 2, 3, 1).reshape(batch, -1, width)[:, :steps] * weights[:, i, None, None]
            x = self.norm(y)
        return x[:, -1]


def encoder(c, steps, features):
    kind = c["kind"]
    if kind == "mlp":
        return MLPEncoder(steps, features, c.get("hidden", [64, 64]))
    if kind == "timecnn":
        return TimeCNN(steps, features, c.get("d_model", 128), c.get("n_layers", 3))
    if kind == "timesnet" and c.get("period_choice") == "frozen":
        return TimesNet(steps, features, c.get("d_model", 64), c.get("d_ff", 64), c.get("n_layers", 2), c["periods"])
    raise SystemExit(f"population_nets.py: no encoder {c}")


class Attention(nn.Module):
    def __init__(self, width, heads=4):
        super().__init__()
        self.qkv, self.out, self.heads = nn.Linear(width, 3 * width), nn.Linear(width, width), heads

    def forward(self, x, mask):
        b, n, w = x.shape
        q, k, v = self.qkv(x).view(b, n, 3, self.heads, w // self.heads).permute(2, 0, 3, 1, 4)
        return self.out(F.scaled_dot_product_attention(q, k, v, mask).transpose(1, 2).reshape(b, n, w))


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm1, self.attention = nn.LayerNorm(width), Attention(width)
        self.norm2, self.ff1, self.ff2 = nn.LayerNorm(width), nn.Linear(width, 2 * width), nn.Linear(2 * width, width)

    def forward(self, x, mask):
        x = x + self.attention(self.norm1(x), mask)
        return x + self.ff2(F.gelu(self.ff1(self.norm2(x))))


class Cross(nn.Module):
    """Joins each asset's features with its position and the cash, and lets tradable assets see each other."""

    def __init__(self, width):
        super().__init__()
        self.join, self.block0, self.norm = nn.Linear(width + 2, width), Block(width), nn.LayerNorm(width)

    def forward(self, z, position, cash, tradable):
        x = self.join(torch.cat([z, position[:, :, None], cash[:, None, :].expand(-1, z.shape[1], -1)], -1))
        x = self.norm(self.block0(x, (tradable > 0)[:, None, None, :]))
        weights = tradable / tradable.sum(1, keepdim=True).clamp(min=1)
        return x, (weights[:, None] @ x).squeeze(1)


class Table:
    """What there is of each bar: windows [T, N, W, F], or the features [T, N, D] that a frozen encoder makes of them."""

    def __init__(self, market):
        windows = torch.from_numpy(market.x).unfold(0, market.window, 1).permute(0, 1, 3, 2).contiguous()
        self.windows = torch.cat([torch.zeros(market.window - 1, *windows.shape[1:]), windows])
        self.assets, self.steps, self.features = self.windows.shape[1:]
        self.features_of = None

    @torch.no_grad()
    def encoded(self, c):
        """The features of an encoder that is never trained: computed once, for all who ask."""
        if self.features_of is None:
            net = encoder(c, self.steps, self.features)
            self.features_of = torch.cat([net(x.flatten(0, 1)).unflatten(0, (-1, self.assets)) for x in self.windows.split(64)])
        return self.features_of


class Adapted(nn.Module):
    """A linear layer whose weights are not trained, and an adapter of low rank, which is."""

    def __init__(self, width, out, rank):
        super().__init__()
        self.base = nn.Linear(width, out).requires_grad_(False)
        self.a, self.b = nn.Parameter(torch.randn(width, rank) / rank), nn.Parameter(torch.zeros(rank, out))

    def forward(self, x):
        return self.base(x) + x @ self.a @ self.b


class Torso(nn.Module):
    """Encoder and crossasset over observations [B, 2 + 2N + rest]; of one that is not trained, all but an adapted last layer is in the table."""

    def __init__(self, c, table, rank):
        super().__init__()
        self.assets = table.assets
        if rank:
            self.rows = table.encoded(c)
            self.encoder = Adapted(self.rows.shape[-1], c["project"], rank)
            width = c["project"]
        else:
            self.encoder, self.rows = encoder(c, table.steps, table.features), table.windows
            width = self.encoder.width
        self.width, self.adapted = width, bool(rank)
        self.cross = Cross(width)

    def forward(self, obs):
        n = self.assets
        z = self.rows[obs[:, 0].long()]
        z = self.encoder(z) if self.adapted else self.encoder(z.flatten(0, 1)).unflatten(0, (-1, n))
        assets, portfolio = self.cross(z, obs[:, 1 : n + 1], obs[:, n + 1 : n + 2], obs[:, n + 2 : 2 * n + 2])
        return assets, portfolio, obs[:, 2 * n + 2 :]


class Portfolio(nn.Module):
    """The layers of the component of the action that is the cash's."""

    def __init__(self, width, hidden):
        super().__init__()
        self.layers = MLP(width, hidden, "relu")
        self.mean, self.log_std = nn.Linear(self.layers.width, 1), nn.Linear(self.layers.width, 1)


class Actor(BaseModel):
    """SAC's actor: a component of the action from each asset's features, and one from the portfolio's."""

    def __init__(self, observation_space, action_space, c, table, skill):
        super().__init__(observation_space, action_space)
        self.torso = Torso(c["encoder"], table, c["rank"])
        width = self.torso.width + skill
        self.layers, self.portfolio = MLP(width, c["hidden"], "relu"), Portfolio(width, c["hidden"])
        self.mean, self.log_std = nn.Linear(self.layers.width, 1), nn.Linear(self.layers.width, 1)

    def distribution(self, obs):
        assets, portfolio, z = self.torso(obs)
        h = self.layers(torch.cat([assets, z[:, None].expand(-1, assets.shape[1], -1)], -1))
        g = self.portfolio.layers(torch.cat([portfolio, z], -1))
        mean = torch.cat([self.mean(h).squeeze(2), self.portfolio.mean(g)], 1)
        log_std = torch.cat([self.log_std(h).squeeze(2), self.portfolio.log_std(g)], 1)
        return mean, log_std.clamp(*LOG_STD)

    def action_log_prob(self, obs):
        mean, log_std = self.distribution(obs)
        u = mean + torch.randn_like(mean) * log_std.exp()
        log_prob = -0.5 * ((u - mean) * (-log_std).exp()).square() - log_std - 0.5 * math.log(2 * math.pi)
        # The logarithm of 1 − tanh², as 2·(log 2 − u − softplus(−2u)).
        return torch.tanh(u), (log_prob - 2 * (math.log(2) - u - F.softplus(-2 * u))).sum(1)

    def forward(self, obs, deterministic=False):
        mean, log_std = self.distribution(obs)
        return torch.tanh(mean if deterministic else mean + torch.randn_like(mean) * log_std.exp())

    _predict = forward


class Critic(BaseModel):
    """Two critics over one torso."""

    def __init__(self, observation_space, action_space, c, table, skill):
        super().__init__(observation_space, action_space)
        self.torso = Torso(c["encoder"], table, c["rank"])
        width = self.torso.width + skill + action_space.shape[0]
        for name in ("q1", "q2"):
            q = MLP(width, c["hidden"], "relu")
            setattr(self, name, q)
            setattr(self, name + "_out", nn.Linear(q.width, 1))

    def forward(self, obs, actions):
        _, portfolio, z = self.torso(obs)
        x = torch.cat([portfolio, z, actions], 1)
        return self.q1_out(self.q1(x)), self.q2_out(self.q2(x))


class ExpertPolicy(SACPolicy):
    def __init__(self, observation_space, action_space, lr_schedule, net, table, skill, **kwargs):
        self.parts = (net, table, skill)
        super().__init__(observation_space, action_space, lr_schedule, **kwargs)

    def make_actor(self, features_extractor=None):
        return Actor(self.observation_space, self.action_space, *self.parts)

    def make_critic(self, features_extractor=None):
        return Critic(self.observation_space, self.action_space, *self.parts)


class RouterFeatures(BaseFeaturesExtractor):
    """What a router's hidden layers read: the portfolio's features, and what is known of the experts."""

    def __init__(self, observation_space, c, table):
        torso = Torso(c, table, 0)
        super().__init__(observation_space, torso.width + observation_space.shape[0] - 2 - 2 * table.assets)
        self.torso = torso

    def forward(self, obs):
        _, portfolio, rest = self.torso(obs)
        return torch.cat([portfolio, rest], 1)


class Discriminator(nn.Module):
    """DIAYN's: log q(z|action)."""

    def __init__(self, width, hidden, skill):
        super().__init__()
        self.layers = MLP(width, hidden, "relu")
        self.out = nn.Linear(self.layers.width, skill)

    def forward(self, x):
        return F.log_softmax(self.out(self.layers(x)), 1)


def taken(module, arrays, scope):
    """Loads parameters of a checkpoint of onnxrl's below a scope into a module; every parameter of both must have its counterpart."""
    names = {"torso.": "", "portfolio.layers.": "portfolio.", "q1_out.": "q1.fcN.", "q2_out.": "q2.fcN."}
    state, unused = {}, {k for k in arrays if k.startswith(scope)}
    for name, p in module.named_parameters():
        key = name
        for ours, theirs in names.items():
            if key.startswith(ours):
                key = theirs + key[len(ours) :]
        if key.startswith("layers."):
            key = key[len("layers.") :]
        if "fcN" in key:
            q = getattr(module, key[:2])
            key = key.replace("fcN", f"fc{q.n}")
        value = arrays[scope + key]
        unused.discard(scope + key)
        if p.dim() == 3:
            value = value.reshape(p.shape[0], p.shape[2], p.shape[1]).transpose(0, 2, 1)
        state[name] = torch.from_numpy(value.copy())
    if unused:
        raise SystemExit(f"{scope}: the module lacks {sorted(unused)}")
    module.load_state_dict(state, strict=False)
