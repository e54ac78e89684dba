"""Trains SAC on a MuJoCo task with onnxrl, through envs/gymnasium, and with Stable-Baselines3, in turns: same hyper-parameters, same number of env steps, one thread each.

The document is configs/experiments/halfcheetah_sac.yaml with fewer env steps. Scores are mean returns of ten deterministic episodes of the policy at the end of training, on both sides; both evaluate the last policy, not the best one. Times are those of the whole training, without evaluation.
Curves of few seeds this early differ much: this shows that the same thing is learnt at the same pace, not which of them learns better.
"""
import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time

import gymnasium
import torch
from stable_baselines3 import SAC
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.evaluation import evaluate_policy


def theirs(args, seed):
    torch.set_num_threads(args.threads)
    env = make_vec_env(args.id, n_envs=1, seed=seed)
    model = SAC("MlpPolicy", env, learning_starts=args.learning_starts, seed=seed, device="cpu", verbose=0)
    start = time.perf_counter()
    model.learn(total_timesteps=args.env_steps)
    took = time.perf_counter() - start
    env.close()
    test = make_vec_env(args.id, n_envs=1, seed=1000 + seed)
    mean, spread = evaluate_policy(model, test, n_eval_episodes=args.episodes, deterministic=True)
    test.close()
    return mean, spread, took


def ours(args, seed):
    with tempfile.TemporaryDirectory() as tmp:
        out = os.path.join(tmp, "run")
        sets = [f"seed={seed}", f"env.id={args.id}", f"env.python={sys.executable}", f"agent.learning_starts={args.learning_starts}", f"train.total_env_steps={args.env_steps}", f"train.threads={args.threads}",
                "train.validation.every_steps=%d" % args.env_steps, "eval.episodes=%d" % args.episodes, "train.checkpoint.every_steps=0"]
        flags = [x for s in sets for x in ("--set", s)]
        subprocess.run([args.onnxrl, "train", "halfcheetah_sac", "--out", out, "-q", *flags], check=True, capture_output=True, text=True, cwd=tmp)
        with open(os.path.join(out, "metrics.jsonl")) as f:
            took = max(json.loads(line).get("time/time_elapsed", 0) for line in f)
        judged = subprocess.run([args.onnxrl, "evaluate", out, "--episodes", str(args.episodes), "--no-report", "--json", "-q"], check=True, capture_output=True, text=True, cwd=tmp).stdout
    row = json.loads(judged)["rows"][0]
    return row["mean_reward"], row["std_reward"], took


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--onnxrl", required=True, help="the program")
    p.add_argument("--id", default="HalfCheetah-v5")
    p.add_argument("--env-steps", type=int, default=25_000)
    p.add_argument("--learning-starts", type=int, default=10_000)
    p.add_argument("--seeds", default="1,2")
    p.add_argument("--episodes", type=int, default=10)
    p.add_argument("--threads", type=int, default=1)
    args = p.parse_args()
    args.onnxrl = os.path.abspath(args.onnxrl)
    seeds = [int(s) for s in args.seeds.split(",")]
    sides = {"onnxrl": ours, "Stable-Baselines3": theirs}
    means = {name: [] for name in sides}
    print(f"{args.id}, SAC, {args.env_steps} env steps, {args.learning_starts} of them random; gymnasium {gymnasium.__version__}, torch {torch.__version__}")
    print(f"{'side':18}  {'seed':>4}  {'mean return':>11}  {'deviation':>9}  {'seconds':>7}")
    for seed in seeds:
        for name, side in sides.items():
            mean, spread, took = side(args, seed)
            means[name].append(mean)
            print(f"{name:18}  {seed:4}  {mean:11.1f}  {spread:9.1f}  {took:7.1f}", flush=True)
    for name, m in means.items():
        print(f"{name}: mean over seeds {statistics.mean(m):.1f}")


if __name__ == "__main__":
    main()
