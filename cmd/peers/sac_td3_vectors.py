"""Writes what Stable-Baselines3's SAC and TD3 do to their parameters in some updates, given batches and noise.

    python cmd/peers/sac_td3_vectors.py sac > agents/sac/testdata/updates.json
    python cmd/peers/sac_td3_vectors.py td3 > agents/td3/testdata/updates.json

The updates are those of the installed stable_baselines3, in float64, with its random numbers replaced by recorded ones and, because it adds 1e-6 inside of the logarithm of tanh's derivative, that number by 0. The discrete variant of SAC, which it does not have, is CleanRL's sac_atari.py, written out here.
"""

import json
import sys

import gymnasium as gym
import numpy as np
import torch
import torch.nn.functional as F
from stable_baselines3 import DDPG, SAC, TD3
from stable_baselines3.common.logger import Logger
from stable_baselines3.common.type_aliases import ReplayBufferSamples

OBS, ACT, ROWS, UPDATES, GAMMA = 3, 2, 6, 4, 0.9
gen = torch.Generator().manual_seed(3)
# Stable-Baselines3 casts observations to float32.
torch.Tensor.float = torch.Tensor.double
STANDARD_NORMAL = torch.distributions.normal._standard_normal


def randn(*shape, scale=1.0):
    # Rounded to float32, so that both sides start from the same numbers.
    return (torch.randn(*shape, generator=gen) * scale).to(torch.float32).double()


class Toy(gym.Env):
    observation_space = gym.spaces.Box(-np.inf, np.inf, (OBS,), np.float32)
    action_space = gym.spaces.Box(-1, 1, (ACT,), np.float32)

    def reset(self, *, seed=None, options=None):
        return np.zeros(OBS, np.float32), {}

    def step(self, action):
        return np.zeros(OBS, np.float32), 0.0, False, False, {}


def flat(t):
    return {"shape": list(t.shape), "data": [float(f"{x:.9g}") for x in t.detach().double().flatten().tolist()]}


def name_of(key):
    """The name in the Go agent of a parameter of Stable-Baselines3."""
    part, rest = key.split(".", 1)
    scope = {"actor": "actor", "critic": "critic", "critic_target": "target.critic", "actor_target": "target.actor"}[part]
    words = rest.split(".")
    if part.startswith("critic"):
        return f"{scope}.q{int(words[0][2:]) + 1}.fc{int(words[1]) // 2}.{words[2]}"
    if words[0] in ("latent_pi", "mu") and len(words) == 3 and not (words[0] == "mu" and NAMES == "sac"):
        layer = int(words[1]) // 2
        return f"{scope}.action.{words[2]}" if NAMES == "td3" and layer == LAYERS else f"{scope}.fc{layer}.{words[2]}"
    if words[0] == "mu":
        return f"{scope}.mean.{words[-1]}"
    return f"{scope}.{rest}"


NAMES, LAYERS = "sac", 2


def parameters(model):
    return {name_of(k): flat(v) for k, v in model.policy.named_parameters()}


class Quiet:
    def __init__(self):
        self.values = {}

    def record(self, key, value, exclude=None):
        if key.startswith("train/"):
            self.values[key] = float(value)


def prepare(model):
    model.policy.double()
    for p in model.policy.parameters():
        p.data = (p.data + randn(*p.shape, scale=0.2)).to(torch.float32).double()
    model.critic_target.load_state_dict(model.critic.state_dict())
    if hasattr(model, "actor_target"):
        model.actor_target.load_state_dict(model.actor.state_dict())
    model._logger = Quiet()
    model._current_progress_remaining = 1.0


def run(name, model, noise_of, options):
    prepare(model)
    result = {"name": name, "options": options, "initial": parameters(model), "updates": []}
    for _ in range(UPDATES):
        batch = {
            "obs": randn(ROWS, OBS), "action": torch.tanh(randn(ROWS, ACT)).to(torch.float32).double(), "next": randn(ROWS, OBS), "reward": randn(ROWS, 1), "done": (torch.rand(ROWS, 1, generator=gen) < 0.3).double(),
        }
        model.replay_buffer.sample = lambda n, env=None, b=batch: ReplayBufferSamples(observations=b["obs"], actions=b["action"], next_observations=b["next"], dones=b["done"], rewards=b["reward"])
        noise = noise_of()
        model.train(1, ROWS)
        result["updates"].append(
            {
                **{k: flat(v) for k, v in batch.items() if k != "done"},
                "discount": flat(GAMMA * (1 - batch["done"])),
                "noise": [flat(x) for x in noise],
                "metrics": model.logger.values.copy(),
            }
        )
    result["final"] = parameters(model)
    if getattr(model, "log_ent_coef", None) is not None:
        result["log_ent_coef"] = model.log_ent_coef.item()
    return result


def sac(name, **kwargs):
    arch = kwargs.pop("net_arch", [5, 4])
    policy = {"net_arch": arch}
    torch.distributions.normal._standard_normal = STANDARD_NORMAL
    model = SAC("MlpPolicy", Toy(), learning_rate=1e-2, gamma=GAMMA, tau=0.1, buffer_size=10, batch_size=ROWS, policy_kwargs=policy, seed=1, **kwargs)
    if model.log_ent_coef is not None:
        model.log_ent_coef = model.log_ent_coef.detach().double().requires_grad_(True)
        model.ent_coef_optimizer = torch.optim.Adam([model.log_ent_coef], lr=1e-2)
    else:
        model.ent_coef_tensor = model.ent_coef_tensor.double()
    queue = []
    torch.distributions.normal._standard_normal = lambda shape, dtype, device: queue.pop(0).reshape(shape)
    if model.use_sde:
        model.actor.action_dist.epsilon = 1e-6
        model.actor.reset_noise = lambda batch_size=1: SAC_reset(model, queue)

        def noise_of():
            x = randn(arch[-1], ACT)
            queue.extend([x, x])
            return [x, x]
    else:
        model.actor.action_dist.epsilon = 0.0

        def noise_of():
            # The actor's comes first.
            x = [randn(ROWS, ACT), randn(ROWS, ACT)]
            queue.extend(x)
            return x[::-1]

    options = {"ent_coef": str(kwargs.get("ent_coef", "auto")), "use_sde": model.use_sde, "hidden": arch}
    return run(name, model, noise_of, options)


def SAC_reset(model, queue):
    model.actor.action_dist.sample_weights(model.actor.log_std, batch_size=1)
    # Squashing has no epsilon of its own here.
    model.actor.action_dist.bijector.epsilon = 0.0


def td3(name, cls, **kwargs):
    global NAMES
    NAMES = "td3"
    model = cls("MlpPolicy", Toy(), learning_rate=1e-2, gamma=GAMMA, tau=0.1, buffer_size=10, batch_size=ROWS, policy_kwargs={"net_arch": [5, 4]}, seed=1, **kwargs)
    queue = []
    torch.Tensor.normal_ = lambda self, mean=0.0, std=1.0, generator=None: self.copy_(queue.pop(0) * std)

    def noise_of():
        x = randn(ROWS, ACT)
        queue.append(x)
        clip = model.target_noise_clip
        return [(x * model.target_policy_noise).clamp(-clip, clip)]

    return run(name, model, noise_of, {"policy_delay": model.policy_delay, "n_critics": model.policy.critic_kwargs["n_critics"], "hidden": [5, 4]})


def discrete(name, masked):
    """CleanRL's sac_atari.py, with invalid actions at logits of -1e8."""
    n, arch, lr, tau = 4, [5, 4], 1e-2, 0.1

    def net(out):
        widths = [OBS, *arch, out]
        layers = []
        for i, (a, b) in enumerate(zip(widths, widths[1:])):
            layers += [torch.nn.Linear(a, b)] + ([torch.nn.ReLU()] if i < len(arch) else [])
        return torch.nn.Sequential(*layers).double()

    torch.manual_seed(4)
    actor, q = net(n), [net(n), net(n)]
    for m in [actor, *q]:
        for p in m.parameters():
            p.data = (p.data + randn(*p.shape, scale=0.2)).to(torch.float32).double()
    target = [net(n), net(n)]
    for t, m in zip(target, q):
        t.load_state_dict(m.state_dict())

    def names(scope, m, last):
        return {f"{scope}.{last if int(k.split('.')[0]) == 2 * len(arch) and last else 'fc' + str(int(k.split('.')[0]) // 2)}.{k.split('.')[1]}": flat(v) for k, v in m.named_parameters()}

    def everything():
        out = names("actor", actor, "logits")
        for i in range(2):
            out |= names(f"critic.q{i + 1}", q[i], None) | names(f"target.critic.q{i + 1}", target[i], None)
        return out

    log_alpha = torch.zeros(1, dtype=torch.float64, requires_grad=True)
    actor_opt = torch.optim.Adam(actor.parameters(), lr=lr)
    q_opt = torch.optim.Adam([*q[0].parameters(), *q[1].parameters()], lr=lr)
    a_opt = torch.optim.Adam([log_alpha], lr=lr)

    def policy(obs, mask):
        logits = actor(obs)
        if mask is not None:
            logits = torch.where(mask.bool(), logits, torch.tensor(-1e8, dtype=torch.float64))
        log_probs = F.log_softmax(logits, dim=1)
        return log_probs.exp(), log_probs

    result = {"name": name, "options": {"hidden": arch, "masked": masked, "actions": n}, "initial": everything(), "updates": []}
    for _ in range(UPDATES):
        obs, nxt, reward = randn(ROWS, OBS), randn(ROWS, OBS), randn(ROWS, 1)
        done = (torch.rand(ROWS, 1, generator=gen) < 0.3).double()
        mask, next_mask = [(torch.rand(ROWS, n, generator=gen) < 0.5).double() for _ in range(2)]
        for m in (mask, next_mask):
            m[:, 1] = 1
        action = torch.multinomial(mask if masked else torch.ones_like(mask), 1, generator=gen)
        m0, m1 = (mask, next_mask) if masked else (None, None)
        entropy = 0.89 * (mask.sum(1).log().mean() if masked else torch.tensor(float(n)).log())
        alpha = log_alpha.exp().detach()
        with torch.no_grad():
            probs, log_probs = policy(nxt, m1)
            v = (probs * (torch.min(target[0](nxt), target[1](nxt)) - alpha * log_probs)).sum(1, keepdim=True)
            y = reward + GAMMA * (1 - done) * v
        q_loss = 0.5 * sum(F.mse_loss(m(obs).gather(1, action), y) for m in q)
        q_opt.zero_grad()
        q_loss.backward()
        q_opt.step()
        probs, log_probs = policy(obs, m0)
        with torch.no_grad():
            least = torch.min(q[0](obs), q[1](obs))
        actor_loss = (probs * (alpha * log_probs - least)).sum(1).mean()
        actor_opt.zero_grad()
        actor_loss.backward()
        actor_opt.step()
        gap = ((probs * log_probs).sum(1).mean() + entropy).detach()
        a_loss = -(log_alpha * gap).sum()
        a_opt.zero_grad()
        a_loss.backward()
        a_opt.step()
        with torch.no_grad():
            for t, m in zip(target, q):
                for a, b in zip(t.parameters(), m.parameters()):
                    a += tau * (b - a)
        update = {"obs": obs, "next": nxt, "reward": reward, "discount": GAMMA * (1 - done), "action": action, "mask": mask, "next_mask": next_mask}
        result["updates"].append({**{k: flat(v) for k, v in update.items()}, "noise": [], "metrics": {"train/critic_loss": q_loss.item(), "train/actor_loss": actor_loss.item(), "train/ent_coef": alpha.item(), "train/ent_coef_loss": a_loss.item()}})
    result["final"], result["log_ent_coef"] = everything(), log_alpha.item()
    return result


if sys.argv[1] == "sac":
    cases = [sac("auto"), sac("fixed", ent_coef=0.2), sac("gsde", ent_coef="auto_0.1", use_sde=True), discrete("discrete", False), discrete("discrete, masked", True)]
else:
    cases = [td3("td3", TD3), td3("ddpg", DDPG)]
json.dump(cases, sys.stdout)
