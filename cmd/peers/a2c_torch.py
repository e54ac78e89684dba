"""A2C on a synthetic market: training in Go, by the benchmark of agents/a2c, against a straightforward implementation in PyTorch, in turns.

    cmd/peers/a2c.sh [--envs 1] [--threads 2] [--rounds 5] [--updates 8] [--json] [--check]

Both sides train the same network (TimeCNN of three layers of 128, attention across 16 assets, 16 heads of three actions, a critic) on windows of 20 bars with 30 features, with rollouts of 50 rounds, the same loss, clipping and Adam, on as many
threads, and step the same kind of market. Env steps per second of complete training, medians over the rounds. onnxrl runs once with every window encoded alone, as PyTorch does, and once with overlapping windows encoded together.
The machine must have nothing else to do: with busy cores, threads that wait for each other come out arbitrarily bad.
Exits with 1 when --check is given and a ratio is below its target. Needs Linux or macOS, Python with torch and numpy.
"""
import argparse
import json
import os
import re
import statistics
import subprocess
import sys
import time

BARS, WINDOW, ASSETS, FEATURES, WIDTH, ROLLOUT = 2700, 20, 16, 30, 128, 50
GAMMA, ENTROPY, VALUE, LR, CLIP = 0.96, 0.05, 1.0, 1e-5, 1.0
BUY, SELL, HOLD = 0, 1, 2
TARGETS = {"off": 1.3, "on": 5.0}


def torch_side(envs, threads):
    """Answers each line of the standard input, a number of updates, with the env steps per second that they took."""
    import numpy as np
    import torch
    import torch.nn as nn
    import torch.nn.functional as F

    torch.set_num_threads(threads)
    rng = np.random.default_rng(3)
    table = rng.standard_normal((BARS, ASSETS, FEATURES), dtype=np.float32)
    close = 100 * np.cumprod(1 + 0.02 * (1 - 2 * rng.integers(0, 2, (BARS, ASSETS))), axis=0)
    opened = np.vstack([close[:1], close[:-1]])
    tradable = np.ones((BARS, ASSETS), bool)
    tradable[: BARS // 3, 1] = False

    class Market:
        """The rules of envs/market/trading, vectorised over the assets."""

        def reset(self):
            self.t, self.cash, self.value, self.pos = WINDOW - 1, 10_000.0, 10_000.0, np.zeros(ASSETS)
            return self.observe()

        def observe(self):
            ok = tradable[self.t]
            mask = np.ones((ASSETS, 3), bool)
            mask[:, BUY] = mask[:, SELL] = ok
            weights = self.pos * close[self.t] / self.value
            return table[self.t - WINDOW + 1 : self.t + 1], weights.astype(np.float32), np.float32(self.cash / self.value), mask

        def step(self, action):
            can = tradable[self.t] & tradable[self.t + 1]
            price = opened[self.t + 1]
            sell, buy = (action == SELL) & can, (action == BUY) & can
            shares = np.where(sell, 0.5 * self.pos, 0.0)
            shares = np.where(sell & ((self.pos - shares) * price < 1e-6), self.pos, shares)
            self.pos -= shares
            self.cash += (shares * price).sum() * (1 - 0.0005)
            n = buy.sum()
            if n:
                amount = min(0.2, 1 / n) * self.cash / 1.0005
                if amount >= 1e-6:
                    self.pos += np.where(buy, amount / price, 0.0)
                    self.cash = max(self.cash - n * amount * 1.0005, 0.0)
            self.t += 1
            before, self.value = self.value, self.cash + (self.pos * close[self.t]).sum()
            last = self.t == BARS - 1
            return self.observe(), self.value / before - 1, last

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.norm1, self.norm2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
            self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
            self.ff1, self.ff2 = nn.Linear(WIDTH, 2 * WIDTH), nn.Linear(2 * WIDTH, WIDTH)

        def forward(self, x, valid):
            b = x.shape[0]
            q, k, v = self.qkv(self.norm1(x)).view(b, ASSETS, 3, 4, WIDTH // 4).permute(2, 0, 3, 1, 4)
            a = F.scaled_dot_product_attention(q, k, v, attn_mask=valid[:, None, None, :])
            x = x + self.out(a.transpose(1, 2).reshape(b, ASSETS, WIDTH))
            return x + self.ff2(F.gelu(self.ff1(self.norm2(x))))

    class Policy(nn.Module):
        def __init__(self):
            super().__init__()
            self.convs = nn.ModuleList(nn.Conv1d(FEATURES if i == 0 else WIDTH, 2 * WIDTH, 3) for i in range(3))
            self.join, self.block, self.norm = nn.Linear(WIDTH + 2, WIDTH), Block(), nn.LayerNorm(WIDTH)
            self.actor, self.critic = nn.Linear(WIDTH, 3), nn.Linear(WIDTH, 1)

        def forward(self, window, position, cash, mask):
            b = window.shape[0]
            x = window.permute(0, 2, 3, 1).reshape(b * ASSETS, FEATURES, WINDOW)
            for i, conv in enumerate(self.convs):
                y = F.glu(conv(x), dim=1)
                x = y + x[:, :, 2:] if i > 0 else y
            z = x.mean(-1).view(b, ASSETS, WIDTH)
            z = torch.cat([z, position[..., None], cash[:, None, None].expand(b, ASSETS, 1)], -1)
            valid = mask.sum(-1) > 1
            x = self.norm(self.block(self.join(z), valid))
            logits = self.actor(x).masked_fill(~mask, -1e8)
            w = valid.float()
            whole = (x * w[..., None]).sum(1) / w.sum(1, keepdim=True).clamp(min=1)
            return F.log_softmax(logits, -1), self.critic(whole).squeeze(-1)

    torch.manual_seed(1)
    policy = Policy()
    # PyTorch's fused Adam is faster than its default for loops.
    adam = torch.optim.Adam(policy.parameters(), lr=LR, fused=True)
    markets = [Market() for _ in range(envs)]
    observations = [m.reset() for m in markets]

    def batch(obs):
        window, position, cash, mask = (np.stack(x) for x in zip(*obs))
        return torch.from_numpy(window), torch.from_numpy(position), torch.from_numpy(cash), torch.from_numpy(mask)

    def update():
        nonlocal observations
        stored, actions, rewards, discounts, values = [], [], np.zeros((ROLLOUT, envs)), np.zeros((ROLLOUT, envs)), np.zeros((ROLLOUT + 1, envs))
        for t in range(ROLLOUT):
            inputs = batch(observations)
            with torch.inference_mode():
                log_probs, value = policy(*inputs)
                action = torch.multinomial(log_probs.exp().view(-1, 3), 1).view(envs, ASSETS)
            stored.append(inputs)
            actions.append(action)
            values[t] = value.numpy()
            chosen = action.numpy()
            for e, market in enumerate(markets):
                observations[e], rewards[t, e], last = market.step(chosen[e])
                discounts[t, e] = GAMMA
                if last:
                    with torch.inference_mode():
                        rewards[t, e] += GAMMA * policy(*batch([observations[e]]))[1].item()
                    discounts[t, e] = 0
                    observations[e] = market.reset()
        with torch.inference_mode():
            values[ROLLOUT] = policy(*batch(observations))[1].numpy()
        returns, g = np.zeros((ROLLOUT, envs)), values[ROLLOUT]
        for t in reversed(range(ROLLOUT)):
            g = rewards[t] + discounts[t] * g
            returns[t] = g
        target = torch.from_numpy(returns.astype(np.float32).reshape(-1))
        advantage = torch.from_numpy((returns - values[:-1]).astype(np.float32).reshape(-1))
        log_probs, value = policy(*(torch.cat(x) for x in zip(*stored)))
        log_prob = log_probs.gather(-1, torch.cat(actions)[..., None]).squeeze(-1).sum(-1)
        entropy = -(log_probs.exp() * log_probs).sum((-2, -1))
        loss = -(log_prob * advantage).sum() + VALUE * (value - target).square().sum() - ENTROPY * entropy.sum()
        adam.zero_grad(set_to_none=True)
        loss.backward()
        nn.utils.clip_grad_norm_(policy.parameters(), CLIP)
        adam.step()

    for line in sys.stdin:
        n = int(line)
        begin = time.perf_counter()
        for _ in range(n):
            update()
        print(n * ROLLOUT * envs / (time.perf_counter() - begin), flush=True)


class Torch:
    """A process of this file; it sleeps while others are measured."""

    def __init__(self, envs, threads):
        env = dict(os.environ, OMP_NUM_THREADS=str(threads), KMP_BLOCKTIME="0")
        self.process = subprocess.Popen([sys.executable, os.path.abspath(__file__), "--side", "--envs", str(envs), "--threads", str(threads)],
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=env)

    def measure(self, updates):
        self.process.stdin.write(f"{updates}\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline()
        if not answer:
            raise SystemExit("the PyTorch side ended")
        return float(answer)

    def close(self):
        self.process.stdin.close()
        self.process.wait()


class Ours:
    """The benchmark of agents/a2c, one run at a time; its first two updates are not counted."""

    def __init__(self, binary, envs, share, threads):
        self.binary, self.pattern = binary, f"Training/share={share}/envs={envs}/threads={threads}$"

    def measure(self, updates):
        out = subprocess.run([self.binary, "-test.run", "^$", "-test.bench", self.pattern, "-test.benchtime", f"{updates}x"], capture_output=True, text=True, cwd=os.path.dirname(self.binary))
        found = re.search(r"([\d.]+) env-steps/s", out.stdout)
        if out.returncode or not found:
            raise SystemExit(f"{self.pattern}:\n{out.stdout}{out.stderr}")
        return float(found[1])

    def close(self):
        pass


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bench", help="test binary of agents/a2c; a2c.sh builds it")
    parser.add_argument("--envs", type=int, choices=[1, 8], default=1)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--updates", type=int, default=8, help="updates of one measurement per window; sharing takes five times as many")
    parser.add_argument("--threads", type=int, choices=[1, 2], default=2)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--side", action="store_true", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.side:
        return torch_side(args.envs, args.threads)
    if not args.bench:
        parser.error("--bench is required; use a2c.sh")
    sides = {"torch": (Torch(args.envs, args.threads), args.updates), "off": (Ours(args.bench, args.envs, "off", args.threads), args.updates), "on": (Ours(args.bench, args.envs, "on", args.threads), 5 * args.updates)}
    speeds = {name: [] for name in sides}
    sides["torch"][0].measure(2)
    for _ in range(args.rounds):
        for name, (side, updates) in sides.items():
            speeds[name].append(side.measure(updates))
    for side, _ in sides.values():
        side.close()
    median = {name: statistics.median(v) for name, v in speeds.items()}
    ratios = {name: median[name] / median["torch"] for name in TARGETS}
    if args.json:
        print(json.dumps({"envs": args.envs, "threads": args.threads, "env_steps_per_second": median, "all": speeds, "ratio": ratios, "targets": TARGETS}))
    else:
        label = {"torch": "PyTorch", "off": "onnxrl, each window alone", "on": "onnxrl, windows in common"}
        print(f"{args.envs} environment{'s' * (args.envs > 1)}, {args.threads} thread{'s' * (args.threads > 1)}, env steps per second of training, median of {args.rounds} (lowest to highest)")
        for name, v in speeds.items():
            ratio = f"   {ratios[name]:5.2f}x PyTorch, target {TARGETS[name]}x" if name in ratios else ""
            print(f"  {label[name]:28}{median[name]:9.0f}   ({min(v):.0f} to {max(v):.0f}){ratio}")
    return 1 if args.check and any(ratios[k] < t for k, t in TARGETS.items()) else 0


if __name__ == "__main__":
    sys.exit(main())
