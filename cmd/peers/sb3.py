"""Compares the speed of whole trainings with Stable-Baselines3: same environment, network, batch and update ratio, in turns.

Each row is one of "onnxrl bench train". Both sides are first tried with one thread and with as many as there are cores, on a short run, and then measured with the better number; the table shows medians of --runs runs that alternate. Times are those of learning
alone, without making environments and networks. The exit status is 1 when a row misses its target.
"""
import argparse
import json
import os
import statistics
import subprocess
import sys
import time

import gymnasium
import stable_baselines3
import torch
from stable_baselines3 import A2C, DQN, PPO, SAC, TD3
from stable_baselines3.common.env_util import make_vec_env


def linear(initial):
    return lambda progress_remaining: progress_remaining * initial


# name: environment, number of environments, env steps here, env steps there, class and arguments, target ratio
ROWS = {
    "ppo_cartpole": ("CartPole-v1", 1, 200_000, 12_288, PPO, {}, 15),
    "a2c_cartpole": ("CartPole-v1", 1, 200_000, 10_000, A2C, {}, 15),
    "dqn_cartpole": ("CartPole-v1", 1, 200_000, 12_000, DQN, {}, 10),
    "sac_pendulum": ("Pendulum-v1", 1, 5_000, 1_200, SAC, {}, 2),
    "td3_pendulum": ("Pendulum-v1", 1, 5_000, 1_200, TD3, {"policy_kwargs": {"net_arch": [256, 256]}}, 2),
    "cartpole_ppo": ("CartPole-v1", 8, 100_000, 20_480, PPO,
                     {"n_steps": 32, "batch_size": 256, "gae_lambda": 0.8, "gamma": 0.98, "n_epochs": 20, "ent_coef": 0.0, "learning_rate": linear(1e-3), "clip_range": linear(0.2)}, 8),
    "cartpole_dqn": ("CartPole-v1", 1, 50_000, 10_000, DQN,
                     {"learning_rate": 2.3e-3, "batch_size": 64, "buffer_size": 100_000, "learning_starts": 1000, "gamma": 0.99, "target_update_interval": 10, "train_freq": 256,
                      "gradient_steps": 128, "exploration_fraction": 0.16, "exploration_final_eps": 0.04, "policy_kwargs": {"net_arch": [256, 256]}}, 4),
}


def theirs(name, threads, steps):
    env_id, n, _, _, cls, kwargs, _ = ROWS[name]
    torch.set_num_threads(threads)
    env = make_vec_env(env_id, n_envs=n, seed=1)
    model = cls("MlpPolicy", env, seed=1, device="cpu", verbose=0, **kwargs)
    start = time.perf_counter()
    model.learn(total_timesteps=steps)
    took = time.perf_counter() - start
    env.close()
    return model.num_timesteps / took


def ours(args, name, threads, steps):
    out = subprocess.run(
        [args.onnxrl, "bench", "train", name, "--threads", str(threads), "--set", f"train.total_env_steps={steps}", "--json", "-q", "--seed", "1"],
        check=True, capture_output=True, text=True).stdout
    return json.loads(out)["rows"][0]["env_steps_per_second"]


def best(measure, steps, cores):
    tried = {t: measure(t, steps) for t in sorted({1, cores})}
    return max(tried, key=tried.get)


def main():
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("rows", nargs="*", default=list(ROWS), help=", ".join(ROWS))
    p.add_argument("--onnxrl", required=True, help="the built program")
    p.add_argument("--runs", type=int, default=5)
    p.add_argument("--scale", type=float, default=1, help="factor on the env steps of both sides")
    p.add_argument("--json", action="store_true")
    args = p.parse_args()
    cores = len(os.sched_getaffinity(0))
    report, missed = [], 0
    for name in args.rows:
        _, _, here, there, _, _, target = ROWS[name]
        here, there = int(here * args.scale), int(there * args.scale)
        mine = best(lambda t, n: ours(args, name, t, n), max(1000, here // 4), cores)
        other = best(lambda t, n: theirs(name, t, n), max(600, there // 4), cores)
        a, b = [], []
        for _ in range(args.runs):
            a.append(ours(args, name, mine, here))
            b.append(theirs(name, other, there))
        ratio = statistics.median(x / y for x, y in zip(a, b))
        row = {"row": name, "onnxrl_threads": mine, "onnxrl_env_steps_per_second": statistics.median(a), "sb3_threads": other, "sb3_env_steps_per_second": statistics.median(b),
               "ratio": ratio, "target": target, "passed": ratio >= target}
        missed += not row["passed"]
        report.append(row)
        if not args.json:
            print(f"{name:16s} onnxrl {row['onnxrl_env_steps_per_second']:9.0f}/s ({mine} threads)   SB3 {row['sb3_env_steps_per_second']:7.0f}/s ({other} threads)   "
                  f"{ratio:6.1f} times, target {target}: {'pass' if row['passed'] else 'MISS'}", flush=True)
    versions = {"stable_baselines3": stable_baselines3.__version__, "torch": torch.__version__, "gymnasium": gymnasium.__version__, "cores": cores}
    if args.json:
        print(json.dumps({"rows": report, "missed": missed, **versions}, indent=1))
    else:
        print(", ".join(f"{k} {v}" for k, v in versions.items()))
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
