"""Writes what sb3-contrib's QRDQN does to its parameters in 100 updates, and in 20 of other settings, given batches.

    pip install sb3-contrib==2.9.2
    python cmd/peers/qrdqn_vectors.py > agents/qrdqn/testdata/updates.json

The updates are those of the installed sb3_contrib, in float64. Every tenth is followed by the target network, as every target_update_interval env steps would be.
"""

import json
import sys

import gymnasium as gym
import numpy as np
import torch
from sb3_contrib import QRDQN
from stable_baselines3.common.type_aliases import ReplayBufferSamples
from stable_baselines3.common.utils import polyak_update

OBS, ACTIONS, ROWS, FOLLOW, GAMMA = 3, 3, 4, 10, 0.9
gen = torch.Generator().manual_seed(7)
# Stable-Baselines3 casts observations to float32.
torch.Tensor.float = torch.Tensor.double


def short(t):
    # Of three digits and of float32, so that both sides start from the same numbers.
    return torch.tensor(np.round(t.numpy(), 3).astype(np.float32)).double()


class Toy(gym.Env):
    observation_space = gym.spaces.Box(-np.inf, np.inf, (OBS,), np.float32)
    action_space = gym.spaces.Discrete(ACTIONS)

    def reset(self, *, seed=None, options=None):
        return np.zeros(OBS, np.float32), {}

    def step(self, action):
        return np.zeros(OBS, np.float32), 0.0, False, False, {}


def flat(t, digits=9):
    return {"shape": list(t.shape), "data": [float(f"{x:.{digits}g}") for x in t.detach().double().flatten().tolist()]}


def name_of(key):
    """The name in the Go agent of a parameter of quantile_net."""
    _, layer, kind = key.split(".")
    return f"q.{kind}" if int(layer) == 4 else f"hidden.fc{int(layer) // 2}.{kind}"


class Quiet:
    def record(self, key, value, exclude=None):
        if key == "train/loss":
            self.loss = float(value)


def run(name, updates, quantiles, **settings):
    model = QRDQN("MlpPolicy", Toy(), learning_rate=1e-2, gamma=GAMMA, batch_size=ROWS, buffer_size=10, seed=1, policy_kwargs={"net_arch": [5, 4], "n_quantiles": quantiles, "optimizer_class": torch.optim.Adam, "optimizer_kwargs": {"eps": 0.01 / 32}}, **settings)
    model.policy.double()
    for p in model.quantile_net.parameters():
        p.data = short(p.data + 0.2 * torch.randn(*p.shape, generator=gen))
    model.quantile_net_target.load_state_dict(model.quantile_net.state_dict())
    model._logger, model._current_progress_remaining = Quiet(), 1.0
    state = lambda digits: {name_of(k): flat(v, digits) for k, v in model.quantile_net.named_parameters()}
    result = {"name": name, "options": {"hidden": [5, 4], "actions": ACTIONS, "n_quantiles": quantiles, "tau": model.tau, "max_grad_norm": model.max_grad_norm or 0}, "initial": state(6), "updates": []}
    for k in range(1, updates + 1):
        b = ReplayBufferSamples(
            observations=short(torch.randn(ROWS, OBS, generator=gen)),
            actions=torch.randint(ACTIONS, (ROWS, 1), generator=gen),
            next_observations=short(torch.randn(ROWS, OBS, generator=gen)),
            dones=(torch.rand(ROWS, 1, generator=gen) < 0.3).double(),
            rewards=short(torch.randn(ROWS, 1, generator=gen)),
        )
        model.replay_buffer.sample = lambda n, env=None: b
        model.train(1, ROWS)
        if k % FOLLOW == 0:
            polyak_update(model.quantile_net.parameters(), model.quantile_net_target.parameters(), model.tau)
        batch = {"obs": b.observations, "next": b.next_observations, "action": b.actions, "reward": b.rewards, "discount": GAMMA * (1 - b.dones)}
        result["updates"].append({**{key: flat(x, 6) for key, x in batch.items()}, "metrics": {"train/loss": float(f"{model.logger.loss:.9g}")}})
    result["final"] = state(9)
    return result


json.dump([run("copied", 100, 5), run("moved", 20, 3, tau=0.5, max_grad_norm=0.5)], sys.stdout, separators=(",", ":"))
