"""Writes what the authors' code of MAPPO does to its parameters in some updates, given rollouts.

    git clone https://github.com/marlbenchmark/on-policy && git -C on-policy checkout de66d7a4b23fac2513f56f96f73b3f5cb96695ac
    python cmd/peers/mappo_vectors.py on-policy > agents/ppo/testdata/mappo.json

needs torch and numpy. The updates are those of R_MAPPO.train on its own buffer and networks, in float64; rollouts are random, with probabilities and values of the networks as they are. Gradients are not limited, which is done apart for actor and critic there.
"""

import argparse
import json
import os
import sys
import types

import numpy as np
import torch

# Its own __init__ imports every environment that it has.
package = types.ModuleType("onpolicy")
package.__path__ = [os.path.join(sys.argv[1], "onpolicy")]
sys.modules["onpolicy"] = package
from onpolicy.algorithms.r_mappo.algorithm.rMAPPOPolicy import R_MAPPOPolicy  # noqa: E402
from onpolicy.algorithms.r_mappo.r_mappo import R_MAPPO  # noqa: E402
from onpolicy.utils.shared_buffer import SharedReplayBuffer  # noqa: E402

ROUNDS, THREADS, AGENTS, OBS, CENTRAL, ACTIONS, UPDATES = 6, 2, 2, 3, 4, 3, 3


class Box:
    def __init__(self, n):
        self.shape = (n,)


class Discrete:
    def __init__(self, n):
        self.n = n


def numbers(x):
    return [float(f"{v:.9g}") for v in np.asarray(x, np.float64).reshape(-1)]


def named(policy):
    parts = {"base.feature_norm": "hidden.norm", "base.mlp.fc1.0": "hidden.fc0", "base.mlp.fc1.2": "hidden.norm0", "base.mlp.fc2.0.0": "hidden.fc1", "base.mlp.fc2.0.2": "hidden.norm1", "act.action_out.linear": "logits", "v_out": "value"}
    out = {}
    for scope, net in (("actor", policy.actor), ("critic", policy.critic)):
        for key, p in net.named_parameters():
            layer, kind = key.rsplit(".", 1)
            out[f"{scope}.{parts[layer]}.{kind}"] = numbers(p.detach())
    return out


def case(name, **changes):
    args = argparse.Namespace(
        algorithm_name="mappo", episode_length=ROUNDS, n_rollout_threads=THREADS, hidden_size=5, recurrent_N=1, layer_N=1, gamma=0.9, gae_lambda=0.8, gain=0.01, lr=5e-3, critic_lr=5e-3, opti_eps=1e-5, weight_decay=0, stacked_frames=1,
        clip_param=0.05, ppo_epoch=4, num_mini_batch=1, data_chunk_length=10, value_loss_coef=1, entropy_coef=0.01, max_grad_norm=1e9, huber_delta=0.5,
        use_gae=True, use_popart=False, use_valuenorm=True, use_proper_time_limits=False, use_recurrent_policy=False, use_naive_recurrent_policy=False, use_max_grad_norm=True, use_clipped_value_loss=True, use_huber_loss=True,
        use_value_active_masks=True, use_policy_active_masks=True, use_feature_normalization=True, use_orthogonal=True, use_ReLU=True,
    )
    dies = changes.pop("dies", False)
    vars(args).update(changes)
    torch.set_default_dtype(torch.float64)
    torch.manual_seed(5)
    rng = np.random.default_rng(7)
    policy = R_MAPPOPolicy(args, Box(OBS), Box(OBS + CENTRAL), Discrete(ACTIONS))
    with torch.no_grad():
        for net in (policy.actor, policy.critic):
            for p in net.parameters():
                # Rounded to float32, so that both sides start from the same numbers.
                p.copy_((p + 0.2 * torch.randn_like(p)).float())
    trainer = R_MAPPO(args, policy)
    double = dict(dtype=torch.float64, device=torch.device("cpu"))
    for part in (policy.actor, policy.critic, trainer, trainer.value_normalizer):
        if part is not None:
            part.tpdv = double
    result = {"name": name, "initial": named(policy), "updates": []}
    for key in ("clip_param", "gamma", "gae_lambda", "lr", "ppo_epoch", "value_loss_coef", "entropy_coef", "huber_delta", "use_huber_loss", "use_clipped_value_loss", "use_valuenorm"):
        result[key] = getattr(args, key)
    shape = (ROUNDS + 1, THREADS, AGENTS)
    for _ in range(UPDATES):
        b = SharedReplayBuffer(args, AGENTS, Box(OBS), Box(OBS + CENTRAL), Discrete(ACTIONS))
        b.share_obs[:] = rng.normal(size=(*shape, OBS + CENTRAL))
        b.obs[:] = b.share_obs[..., :OBS]
        b.available_actions[:] = rng.random((*shape, ACTIONS)) < 0.7
        b.available_actions[..., 0] = 1
        b.rewards[:] = 3 + 2 * rng.normal(size=b.rewards.shape)
        b.masks[:] = rng.random(b.masks.shape) < 0.8
        if dies:
            # An agent that is not active is gone until its episode ends.
            b.active_masks[2:4, 0, 1] = 0
            b.masks[2, 0, 1], b.masks[4, 0, 1] = 0, 0
        flat = lambda x: x.reshape(-1, *x.shape[3:])  # noqa: E731
        with torch.no_grad():
            values, actions, log_probs, _, _ = policy.get_actions(flat(b.share_obs), flat(b.obs), flat(b.rnn_states), flat(b.rnn_states_critic), flat(b.masks), flat(b.available_actions))
        b.value_preds[:] = values.numpy().reshape(b.value_preds.shape)
        b.actions[:] = actions.numpy().reshape(*shape, 1)[:-1]
        b.action_log_probs[:] = log_probs.numpy().reshape(*shape, 1)[:-1]
        b.compute_returns(b.value_preds[-1], trainer.value_normalizer)
        before = {"share_obs": b.share_obs[:-1], "available": b.available_actions[:-1], "rewards": b.rewards, "masks": b.masks[1:], "active": b.active_masks[:-1], "values": b.value_preds[:-1], "bootstrap": b.value_preds[-1], "actions": b.actions, "log_probs": b.action_log_probs, "returns": b.returns[:-1]}
        update = {k: numbers(v) for k, v in before.items()}
        info = trainer.train(b)
        update["metrics"] = {k: float(info[k]) for k in ("value_loss", "policy_loss", "dist_entropy")}
        update["after"] = named(policy)
        if trainer.value_normalizer is not None:
            mean, var = trainer.value_normalizer.running_mean_var()
            update["moments"] = [float(mean), float(torch.sqrt(var))]
        result["updates"].append(update)
    return result


json.dump(
    [
        case("value normalisation, Huber's loss, the larger of both"),
        case("agents that die, squares", dies=True, use_valuenorm=False, use_huber_loss=False),
        case("no limit of the value", use_clipped_value_loss=False, huber_delta=10.0),
    ],
    sys.stdout,
)
