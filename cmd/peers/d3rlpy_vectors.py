"""Writes what d3rlpy's offline algorithms do to their parameters in some updates, given batches and noise.

    pip install d3rlpy==2.8.1
    python cmd/peers/d3rlpy_vectors.py td3_bc > agents/td3/testdata/d3rlpy.json
    python cmd/peers/d3rlpy_vectors.py cql > agents/sac/testdata/d3rlpy.json
    python cmd/peers/d3rlpy_vectors.py discrete_cql > agents/dqn/testdata/d3rlpy.json
    python cmd/peers/d3rlpy_vectors.py iql > agents/iql/testdata/d3rlpy.json
    python cmd/peers/d3rlpy_vectors.py awac > agents/iql/testdata/awac.json
    python cmd/peers/d3rlpy_vectors.py awr > agents/iql/testdata/awr.json
    python cmd/peers/d3rlpy_vectors.py fqe > agents/ope/testdata/d3rlpy.json
    python cmd/peers/d3rlpy_vectors.py bc > agents/bc/testdata/d3rlpy.json

The updates are those of the installed d3rlpy, in float64, with its random numbers replaced by recorded ones. The temperature of CQL's SAC is fixed, because d3rlpy adjusts it before the actor's loss, and Stable-Baselines3 after. d3rlpy's losses of SAC's critics are twice those of Stable-Baselines3: the metrics here are halved. AWAC's targets are the paper's: d3rlpy 2.8.1 inherits SAC's, of a squashed policy that it does not have, with an entropy of temperature 1; and its actor's loss is a sum over rows. d3rlpy 2 has no AWR: awr is written here, from the paper's formulas, with d3rlpy's policy and value function. The loss of fitted Q evaluation is squared, as Le et al. have it; d3rlpy's is Huber's where actions are discrete.
"""

import json
import math
import sys

import d3rlpy
import numpy as np
import torch
from d3rlpy.models.encoders import VectorEncoderFactory
from d3rlpy.torch_utility import TorchMiniBatch

OBS, ACT, N, ROWS, UPDATES, GAMMA, TAU, LR = 3, 2, 4, 6, 4, 0.9, 0.1, 1e-2
HIDDEN = [5, 4]
gen = torch.Generator().manual_seed(5)


def randn(*shape, scale=1.0):
    # Rounded to float32, so that both sides start from the same numbers.
    return (torch.randn(*shape, generator=gen) * scale).to(torch.float32).double()


def flat(t):
    return {"shape": list(t.shape), "data": [float(f"{x:.9g}") for x in t.detach().double().flatten().tolist()]}


def layers(scope, module, last):
    """The parameters of an encoder with layers after it, by their names in the Go agent."""
    out = {}
    linears = [(k, m) for k, m in module.named_modules() if isinstance(m, torch.nn.Linear)]
    encoder = [m for k, m in linears if "encoder" in k]
    for i, m in enumerate(encoder):
        out |= {f"{scope}.fc{i}.weight": m.weight, f"{scope}.fc{i}.bias": m.bias}
    for name, attribute in last.items():
        m = getattr(module, attribute)
        out |= {f"{scope}.{name}.weight": m.weight, f"{scope}.{name}.bias": m.bias}
    return out


def prepare(algo, discrete=False):
    algo.create_impl((OBS,), N if discrete else ACT)
    impl = algo.impl
    for m in vars(impl.modules).values():
        if isinstance(m, torch.nn.Module):
            m.double()
    for scope in vars(impl.modules):
        m = getattr(impl.modules, scope)
        if isinstance(m, torch.nn.Module) and not scope.startswith("targ") and not scope.startswith("log"):
            for p in m.parameters():
                p.data = (p.data + randn(*p.shape, scale=0.2)).to(torch.float32).double()
    for scope in vars(impl.modules):
        if scope.startswith("targ"):
            getattr(impl.modules, scope).load_state_dict(getattr(impl.modules, scope.removeprefix("targ_")).state_dict())
    return impl


def run(name, impl, named, noise_of, metrics_of, options, discrete=False):
    result = {"name": name, "options": options, "initial": {k: flat(v) for k, v in named().items()}, "updates": []}
    for step in range(UPDATES):
        action = torch.randint(N, (ROWS, 1), generator=gen) if discrete else torch.tanh(randn(ROWS, ACT)).to(torch.float32).double()
        batch = {"obs": randn(ROWS, OBS), "action": action, "next": randn(ROWS, OBS), "reward": randn(ROWS, 1), "done": (torch.rand(ROWS, 1, generator=gen) < 0.3).double()}
        noise = noise_of()
        mini = TorchMiniBatch(
            observations=batch["obs"], actions=action if not discrete else action.double(), rewards=batch["reward"], next_observations=batch["next"], next_actions=action.double(),
            returns_to_go=torch.zeros(ROWS, 1).double(), terminals=batch["done"], intervals=torch.ones(ROWS, 1).double(), device="cpu",
        )
        metrics = metrics_of(impl.inner_update(mini, step + 1))
        result["updates"].append({**{k: flat(v) for k, v in batch.items() if k != "done"}, "discount": flat(GAMMA * (1 - batch["done"])), "noise": [flat(x) for x in noise], "metrics": metrics})
    result["final"] = {k: flat(v) for k, v in named().items()}
    return result


encoder = VectorEncoderFactory(HIDDEN)


def q_names(impl):
    out = {}
    for i, (q, t) in enumerate(zip(impl.modules.q_funcs, impl.modules.targ_q_funcs)):
        for scope, m in ((f"critic.q{i + 1}", q), (f"target.critic.q{i + 1}", t)):
            out |= layers(scope, m, {f"fc{len(HIDDEN)}": "_fc"})
    return out


def td3_bc():
    algo = d3rlpy.algos.TD3PlusBCConfig(
        batch_size=ROWS, gamma=GAMMA, tau=TAU, actor_learning_rate=LR, critic_learning_rate=LR, actor_encoder_factory=encoder, critic_encoder_factory=encoder, update_actor_interval=2
    ).create()
    impl = prepare(algo)
    queue = []
    real = torch.randn
    torch.randn = lambda *a, **k: queue.pop(0) if "device" in k else real(*a, **k)

    def named():
        out = q_names(impl)
        for scope, m in (("actor", impl.modules.policy), ("target.actor", impl.modules.targ_policy)):
            out |= layers(scope, m, {"action": "_fc"})
        return out

    def noise_of():
        x = randn(ROWS, ACT)
        queue.append(x)
        return [(x * 0.2).clamp(-0.5, 0.5)]

    return [run("td3_bc", impl, named, noise_of, lambda m: {"train/critic_loss": m["critic_loss"], **({"train/actor_loss": m["actor_loss"]} if "actor_loss" in m else {})}, {"policy_delay": 2, "n_critics": 2, "hidden": HIDDEN})]


def normal_names(impl):
    return layers("actor", impl.modules.policy, {"mean": "_mu", "log_std": "_logstd"})


def cql():
    out, real = [], torch.Tensor.uniform_
    for name, kwargs in (("fixed", {"alpha_learning_rate": 0.0}), ("lagrange", {"alpha_learning_rate": LR, "alpha_threshold": 1.0}), ("soft", {"alpha_learning_rate": 0.0, "soft_q_backup": True, "conservative_weight": 2.0})):
        samples = 3
        torch.Tensor.uniform_ = real
        algo = d3rlpy.algos.CQLConfig(
            batch_size=ROWS, gamma=GAMMA, tau=TAU, actor_learning_rate=LR, critic_learning_rate=LR, temp_learning_rate=0.0, initial_temperature=0.2, n_action_samples=samples,
            # Of half the gradient Adam makes the same step with half its epsilon.
            actor_encoder_factory=encoder, critic_encoder_factory=encoder, critic_optim_factory=d3rlpy.optimizers.AdamFactory(eps=2e-8), **kwargs,
        ).create()
        impl = prepare(algo)
        # Both are parameters in float32 else.
        queue, uniform = [], []
        d3rlpy.models.torch.distributions.Normal.rsample = lambda self, shape=torch.Size(): self.loc + self.scale * queue.pop(0).reshape(*shape, *self.loc.shape)
        torch.Tensor.uniform_ = lambda self, a=0.0, b=1.0: uniform.pop(0).reshape(self.shape)
        # The multiplier follows after the critics, as in the authors' code.
        adjust, kept = impl.update_alpha, []
        impl.update_alpha = kept.append

        def noise_of():
            soft = kwargs.get("soft_q_backup", False)
            target, now, following, random, actor = randn(ROWS, ACT), randn(ROWS, samples, ACT), randn(ROWS, samples, ACT), (torch.rand(ROWS, samples, ACT, generator=gen) * 2 - 1).to(torch.float32).double(), randn(ROWS, ACT)
            # d3rlpy draws samples first.
            queue.extend(([target] if soft else []) + [now.transpose(0, 1), following.transpose(0, 1), actor])
            uniform.append(random)
            return ([target] if soft else []) + [actor, now, following, random]

        def metrics_of(m):
            alpha = m["alpha"]
            if kept:
                adjust(kept.pop())
            w, k, tau = impl._conservative_weight, len(impl.modules.q_funcs), impl._alpha_threshold
            # Without the constant, which moves nothing.
            loss = m["critic_loss"] + alpha * w * tau * k
            gap = (m["conservative_loss"] / alpha / w + tau * k) / k
            return {"train/critic_loss": loss / 2, "train/actor_loss": m["actor_loss"], "train/conservative_gap": gap, "train/conservative_alpha": alpha}

        options = {"hidden": HIDDEN, "ent_coef": "0.2", "n_action_samples": samples, "conservative_weight": impl._conservative_weight, "alpha_threshold": impl._alpha_threshold, "alpha_learning_rate": kwargs["alpha_learning_rate"], "soft_q_backup": kwargs.get("soft_q_backup", False)}
        out.append(run(name, impl, lambda: q_names(impl) | normal_names(impl), noise_of, metrics_of, options))
        if kwargs["alpha_learning_rate"]:
            out[-1]["log_ent_coef"] = impl.modules.log_alpha._parameter.item()
    return out


def iql():
    algo = d3rlpy.algos.IQLConfig(batch_size=ROWS, gamma=GAMMA, tau=TAU, actor_learning_rate=LR, critic_learning_rate=LR, actor_encoder_factory=encoder, critic_encoder_factory=encoder, value_encoder_factory=encoder).create()
    impl = prepare(algo)

    def named():
        policy = impl.modules.policy
        out = q_names(impl) | layers("actor", policy, {"mean": "_mu"}) | {"actor.log_std": policy._logstd[0]}
        return out | layers("critic.value", impl.modules.value_func, {f"fc{len(HIDDEN)}": "_fc"})

    return [run("iql", impl, named, lambda: [], lambda m: {"train/critic_loss": m["critic_loss"], "train/actor_loss": m["actor_loss"]}, {"n_critics": 2, "hidden": HIDDEN})]


def awac():
    out = []
    for samples in (1, 3):
        algo = d3rlpy.algos.AWACConfig(
            batch_size=ROWS, gamma=GAMMA, tau=TAU, lam=0.5, n_action_samples=samples, actor_learning_rate=LR, critic_learning_rate=LR, actor_encoder_factory=encoder, critic_encoder_factory=encoder,
            # Of ROWS times the gradient Adam makes the same step with ROWS times its epsilon.
            actor_optim_factory=d3rlpy.optimizers.AdamFactory(eps=ROWS * 1e-8),
        ).create()
        impl = prepare(algo)
        queue = []
        d3rlpy.models.torch.distributions.Normal.rsample = lambda self, shape=torch.Size(): self.loc + self.scale * queue.pop(0).reshape(*shape, *self.loc.shape)

        def target(batch):
            with torch.no_grad():
                dist = d3rlpy.models.torch.policies.build_gaussian_distribution(impl.modules.policy(batch.next_observations))
                return impl._targ_q_func_forwarder.compute_target(batch.next_observations, dist.sample(), reduction="min")

        impl.compute_target = target

        def named():
            policy = impl.modules.policy
            return q_names(impl) | layers("actor", policy, {"mean": "_mu"}) | {"actor.log_std": policy._logstd[0]}

        def noise_of():
            following, now = randn(ROWS, ACT), randn(ROWS, samples, ACT)
            queue.extend([following, now.transpose(0, 1)])
            return [following, now]

        metrics = lambda m: {"train/critic_loss": m["critic_loss"], "train/actor_loss": m["actor_loss"] / ROWS}
        out.append(run(f"awac, {samples} samples", impl, named, noise_of, metrics, {"n_critics": 2, "hidden": HIDDEN, "n_action_samples": samples}))
    return out


class AWR:
    """A step of v and then of the actor on each batch, of advantages that are standardised over it; returns of one step."""

    def __init__(self):
        # IQL's policy and value function are AWR's.
        self.modules = d3rlpy.algos.IQLConfig(actor_encoder_factory=encoder, value_encoder_factory=encoder).create()
        self.modules.create_impl((OBS,), ACT)
        self.modules = self.modules.impl.modules
        for m in (self.modules.policy, self.modules.value_func):
            m.double()
            for p in m.parameters():
                p.data = (p.data + randn(*p.shape, scale=0.2)).to(torch.float32).double()
        self.actor, self.critic = torch.optim.Adam(self.modules.policy.parameters(), lr=LR), torch.optim.Adam(self.modules.value_func.parameters(), lr=LR)

    def inner_update(self, batch, _):
        policy, v = self.modules.policy, self.modules.value_func
        with torch.no_grad():
            y = batch.rewards + GAMMA * (1 - batch.terminals) * v(batch.next_observations)
        critic_loss = ((v(batch.observations) - y) ** 2).mean()
        self.critic.zero_grad()
        critic_loss.backward()
        self.critic.step()
        with torch.no_grad():
            u = y - v(batch.observations)
            w = torch.exp((u - u.mean()) / (u.std(unbiased=False) + 1e-5) / 0.5).clamp(max=3)
        out = policy(batch.observations)
        log_prob = torch.distributions.Normal(out.squashed_mu, out.logstd.exp()).log_prob(batch.actions).sum(-1, keepdim=True)
        actor_loss = -(w * log_prob).mean()
        self.actor.zero_grad()
        actor_loss.backward()
        self.actor.step()
        return {"train/critic_loss": critic_loss.item(), "train/actor_loss": actor_loss.item()}


def awr():
    impl = AWR()

    def named():
        policy = impl.modules.policy
        return layers("actor", policy, {"mean": "_mu"}) | {"actor.log_std": policy._logstd[0]} | layers("critic.value", impl.modules.value_func, {f"fc{len(HIDDEN)}": "_fc"})

    return [run("awr", impl, named, lambda: [], lambda m: m, {"n_critics": 2, "hidden": HIDDEN})]


def bc():
    algo = d3rlpy.algos.BCConfig(batch_size=ROWS, learning_rate=LR, encoder_factory=encoder).create()
    box = prepare(algo)
    algo = d3rlpy.algos.DiscreteBCConfig(batch_size=ROWS, learning_rate=LR, encoder_factory=encoder).create()
    discrete = prepare(algo, discrete=True)
    options, metrics = {"hidden": HIDDEN}, lambda m: {"train/loss": m["loss"]}
    return [
        run("box", box, lambda: layers("actor", box.modules.imitator, {"action": "_fc"}), lambda: [], metrics, options),
        run("discrete", discrete, lambda: layers("actor", discrete.modules.imitator, {"logits": "_fc"}), lambda: [], metrics, options | {"actions": N, "beta": 0.5}, discrete=True),
    ]


def discrete_cql():
    algo = d3rlpy.algos.DiscreteCQLConfig(batch_size=ROWS, gamma=GAMMA, learning_rate=LR, encoder_factory=encoder, target_update_interval=2).create()
    impl = prepare(algo, discrete=True)

    def named():
        return {k.replace("x.fc", "hidden.fc"): v for k, v in layers("x", impl.modules.q_funcs[0], {"q": "_fc"}).items()}

    def renamed():
        return {k.replace("x.q", "q"): v for k, v in named().items()}

    return [run("discrete_cql", impl, renamed, lambda: [], lambda m: {"train/loss": m["loss"]}, {"hidden": HIDDEN, "actions": N, "conservative_weight": 1.0}, discrete=True)]


def fqe():
    out = []
    d3rlpy.models.torch.q_functions.mean_q_function.compute_huber_loss = lambda y, target: (y - target) ** 2
    for discrete in (False, True):
        # What is evaluated is a policy of recorded best actions.
        algo = (d3rlpy.algos.DiscreteBCConfig if discrete else d3rlpy.algos.BCConfig)(encoder_factory=encoder).create()
        algo.create_impl((OBS,), N if discrete else ACT)
        config = d3rlpy.ope.FQEConfig(batch_size=ROWS, gamma=GAMMA, learning_rate=LR, encoder_factory=encoder, target_update_interval=2)
        impl = prepare((d3rlpy.ope.DiscreteFQE if discrete else d3rlpy.ope.FQE)(algo=algo, config=config), discrete)
        queue = []
        impl._algo.predict_best_action = lambda _, queue=queue: queue.pop(0)

        def named():
            return {k.replace("q1", "q"): v for k, v in q_names(impl).items()}

        def noise_of():
            best = torch.randint(N, (ROWS,), generator=gen) if discrete else torch.tanh(randn(ROWS, ACT)).to(torch.float32).double()
            queue.append(best)
            return [best]

        options = {"hidden": HIDDEN} | ({"actions": N} if discrete else {})
        out.append(run("discrete" if discrete else "box", impl, named, noise_of, lambda m: {"train/loss": m["loss"]}, options, discrete))
    return out


if __name__ == "__main__":
    json.dump(globals()[sys.argv[1]](), sys.stdout)
