"""The loop of `onnxrl train population` in Stable-Baselines3 and PyTorch, as a user of both would write it.

    python cmd/peers/population_sb3.py DOCUMENT.yaml EXPERT.yaml DATA [--threads N] [--set KEY=VALUE …]

DOCUMENT is that of a population and EXPERT the experiment that it names as its base, DATA the folder that `onnxrl data prepare` wrote of it. Five SAC experts, each conditioned on a skill, record into one ReplayBuffer and learn from what all of
them did, with DIAYN's bonus computed when transitions are drawn; between generations the worst takes over the best's weights (MF-PBT, variant owner), and policies that lie too close together are begun anew. After every so many generations a
MaskablePPO router trains over the experts as they are, in segments, paid for choosing differently; experts beyond their limits of risk are masked. Prints one line of JSON: what was done, and how long each part took.

Networks are those of population_nets.py. What a document has and this does not read is refused where it would make another training of it.
"""
import argparse
import collections
import copy
import glob
import json
import math
import time

import gymnasium as gym
import numpy as np
import pyarrow.parquet as pq
import torch
import torch.nn.functional as F
import yaml
from population_nets import Discriminator, ExpertPolicy, RouterFeatures, Table
from sb3_contrib import MaskablePPO
from stable_baselines3 import SAC
from stable_baselines3.common.buffers import ReplayBuffer
from stable_baselines3.common.utils import polyak_update
from stable_baselines3.common.vec_env import DummyVecEnv

SCORE = 5.0  # the bound of the scores of target weights


class Market:
    """Bars of a prepared data set: x [T, N, F], opening and closing prices and what can be traded, [T, N]."""

    def __init__(self, folder):
        m = json.load(open(f"{folder}/manifest.json"))
        t, n = m["t"], m["n"]
        features = pq.read_table(glob.glob(f"{folder}/features-*.parquet")[0])
        prices = pq.read_table(glob.glob(f"{folder}/prices-*.parquet")[0])
        columns = [c for c in features.column_names if c not in ("time", "symbol")][: m["f"]]
        names = [f["name"] for f in m["features"]]
        if columns != names:
            raise SystemExit(f"{folder}: the features are {columns}, expected {names}")
        self.x = np.stack([features[c].to_numpy() for c in columns], -1).reshape(t, n, -1).astype(np.float32)
        self.open, self.close = (np.nan_to_num(prices[c].to_numpy().reshape(t, n)) for c in ("open", "close"))
        self.tradable = prices["status"].to_numpy().reshape(t, n) == 1
        self.day = prices["time"].to_numpy().astype("datetime64[D]").astype(np.int64).reshape(t, n)[:, 0]
        self.window, self.split = m["w"], m["split"]

    def range(self, split):
        r = self.split[split]
        return max(r["lo"], self.window - 1), r["hi"] - 1


class Trading(gym.Env):
    """A portfolio that trades towards target weights at the next open; the reward is its return from close to close."""

    def __init__(self, market, c, split, skill=0, fixed=None, seed=0):
        self.m, self.fee, self.skills, self.fixed = market, c["fee"], skill, fixed
        self.first, self.last = market.range(split)
        self.length = c["length"] if split == "train" else 0
        self.cash0, self.rng, n = c["cash"], np.random.default_rng(seed), market.x.shape[1]
        self.n = n
        self.action_space = gym.spaces.Box(-SCORE, SCORE, (n + 1,), np.float32)
        self.observation_space = gym.spaces.Box(-np.inf, np.inf, (2 + 2 * n + skill,), np.float32)
        self.z = np.zeros(skill, np.float32)

    def observation(self):
        obs, n = np.empty(self.observation_space.shape, np.float32), self.n
        obs[0] = self.t
        obs[1 : n + 1] = self.shares * self.m.close[self.t] / self.value
        obs[n + 1] = self.cash / self.value
        obs[n + 2 : 2 * n + 2] = self.m.tradable[self.t]
        obs[2 * n + 2 :] = self.z
        return obs

    def reset(self, seed=None, options=None):
        self.t, self.end = self.first, self.last
        if self.length:
            self.t = int(self.rng.integers(self.first, self.last - self.length + 1))
            self.end = self.t + self.length
        self.shares, self.cash, self.value = np.zeros(self.n), self.cash0, self.cash0
        if self.skills:
            self.z[:] = 0
            self.z[self.rng.integers(self.skills) if self.fixed is None else self.fixed] = 1
        return self.observation(), {}

    def step(self, action):
        m, t = self.m, self.t
        w = np.exp(action.astype(np.float64) - action.max())
        w /= w.sum()
        price, open_ = m.open[t + 1], m.tradable[t] & m.tradable[t + 1]
        worth = self.shares * price
        free = self.cash + worth[open_].sum()
        want = np.where(open_, w[:-1] * (free / (w[-1] + w[:-1][open_].sum())) - worth, 0.0)
        want[np.abs(want) < 0.01] = 0
        sold, buy = np.minimum(want, 0), np.maximum(want, 0)
        self.cash -= sold.sum() * (1 - self.fee)
        needed = buy.sum() * (1 + self.fee)
        if needed > self.cash:
            buy *= self.cash / needed
        self.cash = max(self.cash - buy.sum() * (1 + self.fee), 0.0)
        trade = sold + buy
        self.shares += np.divide(trade, price, out=np.zeros_like(trade), where=trade != 0)
        self.t = t = t + 1
        before, self.value = self.value, self.cash + float(self.shares @ m.close[t])
        return self.observation(), self.value / before - 1, False, t >= self.end, {}


class Expert(SAC):
    """SAC whose rewards have DIAYN's bonus, with a replay that it is given."""

    def __init__(self, *args, discriminator, diversity, skill, **kwargs):
        super().__init__(*args, **kwargs)
        self.discriminator, self.diversity, self.skill = discriminator, diversity, skill
        self.telling = torch.optim.Adam(discriminator.parameters(), lr=diversity["learning_rate"])
        self.square = math.log(skill) ** 2

    def bonus(self, data):
        z = data.observations[:, -self.skill :]
        told = (self.discriminator(data.actions) * z).sum(1)
        bonus = told.detach() + math.log(self.skill)
        self.square += 0.01 * (float(bonus.square().mean()) - self.square)
        self.telling.zero_grad()
        (-told.mean()).backward()
        self.telling.step()
        return bonus[:, None] * (self.diversity["beta"] / max(math.sqrt(self.square), 0.1 * math.log(self.skill)))

    def train(self, gradient_steps, batch_size=64):
        """SAC.train of Stable-Baselines3 with the bonus, and without what is only logged."""
        self.policy.set_training_mode(True)
        for _ in range(gradient_steps):
            data = self.replay_buffer.sample(batch_size)
            rewards = data.rewards + self.bonus(data)
            actions, log_prob = self.actor.action_log_prob(data.observations)
            log_prob = log_prob.reshape(-1, 1)
            ent_coef = self.log_ent_coef.detach().exp()
            ent_coef_loss = -(self.log_ent_coef * (log_prob + self.target_entropy).detach()).mean()
            self.ent_coef_optimizer.zero_grad()
            ent_coef_loss.backward()
            self.ent_coef_optimizer.step()
            with torch.no_grad():
                next_actions, next_log_prob = self.actor.action_log_prob(data.next_observations)
                next_q = torch.min(*self.critic_target(data.next_observations, next_actions)) - ent_coef * next_log_prob.reshape(-1, 1)
                target = rewards + (1 - data.dones) * self.gamma * next_q
            critic_loss = 0.5 * sum(F.mse_loss(q, target) for q in self.critic(data.observations, data.actions))
            self.critic.optimizer.zero_grad()
            critic_loss.backward()
            self.critic.optimizer.step()
            actor_loss = (ent_coef * log_prob - torch.min(*self.critic(data.observations, actions))).mean()
            self.actor.optimizer.zero_grad()
            actor_loss.backward()
            self.actor.optimizer.step()
            polyak_update(self.critic.parameters(), self.critic_target.parameters(), self.tau)
        self._n_updates += gradient_steps

    def take(self, other, rate):
        """Goes on with the weights and moments of another."""
        for name in ("policy", "discriminator"):
            getattr(self, name).load_state_dict(getattr(other, name).state_dict())
        self.log_ent_coef.data.copy_(other.log_ent_coef.data)
        for ours, theirs in zip(self.optimizers(), other.optimizers()):
            ours.load_state_dict(copy.deepcopy(theirs.state_dict()))
        self.square = other.square
        self.rate(rate)

    def optimizers(self):
        return [self.actor.optimizer, self.critic.optimizer, self.ent_coef_optimizer, self.telling]

    def rate(self, x):
        for o in self.optimizers()[:3]:
            for g in o.param_groups:
                g["lr"] = x


class Books:
    """What each expert has made of 1 while it was in charge, and which of them may be chosen."""

    def __init__(self, n, risk):
        self.n, d = n, risk["drawdown"]
        self.limit, self.resume, self.window, self.tail = d["limit"], d["resume"], d["window"], risk["cvar"]["limit"]
        self.reset()

    def reset(self):
        self.value, self.stopped = np.ones(self.n), np.zeros(self.n, bool)
        self.past = [collections.deque([(-1, 1.0)]) for _ in range(self.n)]
        self.drawdown, self.cvar = np.zeros(self.n), np.zeros(self.n)

    def book(self, day, i, r):
        self.value[i] *= 1 + r
        past = self.past[i]
        past.append((day, self.value[i]))
        while past[0][0] < day - self.window:
            past.popleft()
        values = np.fromiter((v for _, v in past), float)
        self.drawdown[i] = 1 - self.value[i] / values.max()
        self.stopped[i] = self.drawdown[i] > (self.resume if self.stopped[i] else self.limit)
        if len(values) > 20:
            losses = np.sort(1 - values[1:] / values[:-1])[::-1]
            self.cvar[i] = max(0.0, losses[: max(1, len(losses) // 20)].mean())

    def allowed(self):
        if self.stopped.all():
            return np.arange(self.n) == self.drawdown.argmin()
        return ~self.stopped


class Meta(gym.Env):
    """A decision is which expert acts for a segment."""

    def __init__(self, inside, experts, c):
        self.env, self.experts, self.c, self.n = inside, experts, c, len(experts)
        self.books, self.recent = Books(self.n, c["risk"]), collections.deque(maxlen=1000)
        self.action_space = gym.spaces.Discrete(self.n)
        self.observation_space = gym.spaces.Box(-np.inf, np.inf, (inside.observation_space.shape[0] + 4 * self.n,), np.float32)

    def observation(self):
        seen = np.stack([self.charge, self.usage(), self.books.drawdown, self.books.cvar], 1)
        return np.concatenate([self.inner, seen.ravel()]).astype(np.float32)

    def usage(self):
        return self.counts / self.counts.sum()

    def reset(self, seed=None, options=None):
        self.inner, _ = self.env.reset()
        self.books.reset()
        self.recent.clear()
        self.counts, self.charge = np.ones(self.n), np.zeros(self.n)
        return self.observation(), {}

    def action_masks(self):
        return self.books.allowed()

    @torch.no_grad()
    def ask(self, i):
        actor, z = self.experts[i]
        mean, log_std = actor.distribution(torch.from_numpy(np.concatenate([self.inner, z]))[None])
        return mean[0].numpy(), log_std[0].numpy()

    def bonus(self, i, decided):
        d, u = self.c["diversity"], self.usage()
        mean, var = (np.stack(x) for x in zip(*((m, np.exp(2 * s)) for m, s in decided)))
        m0 = mean.mean(0)
        v0 = (var + (mean - m0) ** 2).mean(0)
        kl = min(max(0.5 * float(np.mean(np.log(v0 / var[i]) + (var[i] + (mean[i] - m0) ** 2) / v0 - 1)), 0.0), 1.0)
        concentration = min(max(1 + float((u * np.log(u)).sum()) / math.log(self.n), 0.0), 1.0)
        return (d["kl_coef"] + (d["kl_coef_max"] - d["kl_coef"]) * concentration) * kl - d["usage_coef"] * math.log(u[i])

    def step(self, i):
        i = int(i)
        decided = [self.ask(k) for k in range(self.n)]
        reward, mean = self.bonus(i, decided), decided[i][0]
        for k in range(self.c["segment"]):
            if k > 0:
                mean, _ = self.ask(i)
            self.inner, r, _, ended, _ = self.env.step(SCORE * np.tanh(mean))
            reward += r
            self.books.book(int(self.env.m.day[self.env.t]), i, r)
            if ended:
                break
        if len(self.recent) == self.recent.maxlen:
            self.counts[self.recent[0]] -= 1
        self.recent.append(i)
        self.counts[i] += 1
        self.charge = (np.arange(self.n) == i).astype(float)
        return self.observation(), reward, False, ended, {}


def sharpe(returns):
    return float(np.mean(returns) / max(np.std(returns), 1e-12) * math.sqrt(252))


class Population:
    def __init__(self, document, expert, data, sets):
        self.c, e = yaml.safe_load(open(document)), yaml.safe_load(open(expert))
        for key, value in sets:
            assign(self.c, key, value)
        x = self.c["experts"]
        for key, value in x.get("set", {}).items():
            assign(e, key, value)
        self.e, self.agent, self.train, self.seconds = e, e["agent"], e["train"], collections.Counter()
        self.market = Market(data)
        self.table, self.skill = Table(self.market), e["wrappers"]["skill"]["dim"]
        self.trading = {"fee": e["env"].get("fee_rate", 0.0005), "cash": 10_000.0, "length": e["env"]["episode"]["length"]}
        # Its weights are not pretrained here: they do not matter to how long things take.
        lora = self.agent.get("lora") or {}
        self.net = {"encoder": self.c["pretrain"]["fit"]["network"]["encoder"] if lora else self.agent["encoder"], "hidden": self.agent["hidden"], "rank": lora.get("rank", 0)}
        if lora and lora["target"] != ["*project*"]:
            raise SystemExit(f"agent.lora.target: {lora['target']}, expected the last layer of the encoder")
        known = {"kind", "encoder", "hidden", "learning_rate", "buffer_size", "learning_starts", "batch_size", "diversity", "lora", "gamma", "tau"}
        if self.agent["kind"] != "sac" or set(self.agent) - known:
            raise SystemExit(f"{expert}: agent: expected sac with the keys {sorted(known)}, found {sorted(self.agent)}")
        self.rng = np.random.default_rng(e["seed"])
        space = x["space"]["agent.learning_rate"]
        self.low, self.high = space["low"], space["high"]
        self.replay, self.experts, self.rates, self.scores, self.router = None, [], [], [], None
        self.skills = [i % self.skill for i in range(x["population"])]
        self.wait = 0
        for _ in range(x["population"]):
            self.rates.append(float(np.exp(self.rng.uniform(math.log(self.low), math.log(self.high)))))
            self.experts.append(self.expert(self.rates[-1]))
        self.valid = Trading(self.market, self.trading, "valid", self.skill, fixed=0)
        self.probe = self.probes(x["probe"])

    def expert(self, rate):
        a, d = self.agent, self.agent["diversity"]
        if d["kind"] != "diayn" or d["features"] != ["action"]:
            raise SystemExit(f"agent.diversity: {d}, expected diayn of the action")
        env = DummyVecEnv([lambda: Trading(self.market, self.trading, "train", self.skill, seed=int(self.rng.integers(2**31))) for _ in range(self.train["num_envs"])])
        capacity = self.c["experts"]["replay"]["capacity"]
        shared = self.replay is not None
        m = Expert(
            ExpertPolicy, env, learning_rate=rate, buffer_size=self.train["num_envs"] if shared else capacity, learning_starts=a["learning_starts"], batch_size=a["batch_size"],
            tau=a.get("tau", 0.005), gamma=a.get("gamma", 0.99), train_freq=1, gradient_steps=1, device="cpu", seed=int(self.rng.integers(2**31)),
            policy_kwargs={"net": self.net, "table": self.table, "skill": self.skill},
            discriminator=Discriminator(env.action_space.shape[0], d.get("hidden", [256, 256]), self.skill),
            diversity={"beta": d.get("beta", 0.5), "learning_rate": d.get("learning_rate", 3e-4)}, skill=self.skill)
        if shared:
            m.replay_buffer = self.replay
        self.replay = m.replay_buffer
        return m

    def probes(self, n):
        env, out = Trading(self.market, self.trading, "valid", self.skill, fixed=0), []
        obs, _ = env.reset()
        for _ in range(n):
            out.append(obs)
            obs, *_ = env.step(self.rng.uniform(-SCORE, SCORE, env.n + 1).astype(np.float32))
        return np.stack(out)

    def evaluate(self, k):
        """The Sharpe ratio of an expert over the validation range."""
        env, m, returns = self.valid, self.experts[k], []
        env.fixed = self.skills[k]
        obs, _ = env.reset()
        ended = False
        while not ended:
            action, _ = m.predict(obs, deterministic=True)
            obs, r, _, ended, _ = env.step(action)
            returns.append(r)
        return sharpe(returns)

    def mapd(self):
        weights, n = [], self.market.x.shape[1]
        for k, m in enumerate(self.experts):
            obs = self.probe.copy()
            obs[:, 2 * n + 2 :] = np.eye(self.skill)[self.skills[k]]
            a, _ = m.predict(obs, deterministic=True)
            w = np.exp(a - a.max(1, keepdims=True))
            weights.append(w / w.sum(1, keepdims=True))
        d = [np.abs(a - b).sum(1).mean() / 2 for i, a in enumerate(weights) for b in weights[:i]]
        return float(np.mean(d))

    def evolve(self, generation):
        """MF-PBT, variant owner, and a restart where the experts lie too close together."""
        x, order = self.c["experts"], np.argsort(self.scores)[::-1]
        worst, best = int(order[-1]), int(order[0])
        if generation % x.get("every", 1) == 0:
            rate = self.rates[best]
            if self.rng.random() < 0.1:
                rate = min(max(rate * self.rng.choice([0.8, 1.25]), self.low), self.high)
            self.rates[worst] = rate
            self.experts[worst].take(self.experts[best], rate)
        d = x.get("diversity", {})
        if self.wait > 0:
            self.wait -= 1
        elif self.mapd() < d.get("threshold", 0):
            self.wait = max(d.get("patience", 1), 1) - 1
            free = [z for z in range(self.skill) if z not in self.skills]
            self.skills[worst] = free[0] if free else self.skills[worst]
            done = self.experts[worst]
            self.experts[worst] = self.expert(self.rates[worst])
            # What it has done counts on, and it begins with random actions again.
            self.experts[worst].num_timesteps, self.experts[worst]._n_updates = done.num_timesteps, done._n_updates
            self.experts[worst].learning_starts = done.num_timesteps + self.agent["learning_starts"]

    def generation(self, g):
        steps = self.c["experts"]["interval_steps"]
        start = time.perf_counter()
        for m in self.experts:
            m.learn(steps, reset_num_timesteps=False)
        self.seconds["experts"] += time.perf_counter() - start
        start = time.perf_counter()
        self.scores = [self.evaluate(k) for k in range(len(self.experts))]
        self.seconds["validation"] += time.perf_counter() - start
        if g + 1 < self.c["experts"]["generations"]:
            start = time.perf_counter()
            self.evolve(g + 1)
            self.seconds["evolution"] += time.perf_counter() - start

    def turn(self):
        start = time.perf_counter()
        x = self.c["router"]["experiment"]
        a, n = x["agent"], x["train"]["num_envs"]
        # A skill is part of an expert that a router sees.
        frozen = [(m.actor, np.eye(self.skill, dtype=np.float32)[z]) for m, z in zip(self.experts, self.skills)]
        for m in self.experts:
            m.policy.set_training_mode(False)
        env = DummyVecEnv([lambda: Meta(Trading(self.market, self.trading, "train", seed=int(self.rng.integers(2**31))), frozen, x["env"]) for _ in range(n)])
        if self.router is None:
            self.router = MaskablePPO(
                "MlpPolicy", env, learning_rate=a.get("learning_rate", 3e-4), n_steps=a["n_steps"], batch_size=a["batch_size"], n_epochs=a.get("n_epochs", 10), gamma=a["gamma"], gae_lambda=a["gae_lambda"],
                ent_coef=a["ent_coef"], device="cpu", seed=int(x["seed"]),
                policy_kwargs={"net_arch": a["hidden"], "features_extractor_class": RouterFeatures, "features_extractor_kwargs": {"c": a["encoder"], "table": self.table}, "share_features_extractor": False})
        else:
            self.router.set_env(env)
        self.router.learn(self.c["router"]["interval_steps"], reset_num_timesteps=False)
        self.seconds["router"] += time.perf_counter() - start
        start = time.perf_counter()
        self.score = self.judge(frozen, x["env"])
        self.seconds["validation"] += time.perf_counter() - start

    def judge(self, frozen, c):
        """The Sharpe ratio of the router over the validation range."""
        env, values, ended = Meta(Trading(self.market, self.trading, "valid"), frozen, c), [], False
        obs, _ = env.reset()
        while not ended:
            i, _ = self.router.predict(obs, action_masks=env.action_masks(), deterministic=True)
            obs, _, _, ended, _ = env.step(i)
            values.append(env.env.value)
        return sharpe(np.diff(np.log(values)))

    def run(self):
        x, every = self.c["experts"], self.c["router"]["every"]
        start = time.perf_counter()
        for g in range(x["generations"]):
            self.generation(g)
            if (g + 1) % every == 0:
                self.turn()
        wall = time.perf_counter() - start
        steps, updates, s = sum(m.num_timesteps for m in self.experts), sum(m._n_updates for m in self.experts), self.seconds
        return {
            "env_steps": steps, "updates": updates, "decisions": self.router.num_timesteps, "wall_s": wall, "experts_s": s["experts"], "router_s": s["router"], "validation_s": s["validation"], "evolution_s": s["evolution"],
            "updates_per_second": updates / s["experts"], "env_steps_per_second": steps / s["experts"], "decisions_per_second": self.router.num_timesteps / s["router"],
            "parameters": self.parameters(), "sharpe": max(self.scores), "router_sharpe": self.score}

    def parameters(self):
        m = self.experts[0]
        count = lambda net: sum(p.numel() for p in net.parameters() if p.requires_grad)
        return {"actor": count(m.actor), "critic": count(m.critic), "discriminator": count(m.discriminator), "router": count(self.router.policy)}


def assign(tree, path, value):
    *keys, last = path.split(".")
    for k in keys:
        tree = tree.setdefault(k, {})
    tree[last] = value


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("document")
    p.add_argument("expert")
    p.add_argument("data")
    p.add_argument("--threads", type=int, default=1)
    p.add_argument("--set", action="append", default=[])
    a = p.parse_args()
    torch.set_num_threads(a.threads)
    sets = [(k, yaml.safe_load(v)) for k, v in (s.split("=", 1) for s in a.set)]
    print(json.dumps(Population(a.document, a.expert, a.data, sets).run()), flush=True)


if __name__ == "__main__":
    main()
