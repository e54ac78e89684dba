#!/usr/bin/env python3
"""Compares the replays with Stable-Baselines3's ReplayBuffer: recording transitions, and sampling batches of them.

Both sides are run in turns on this machine; every figure is the median of the rounds. The program is built first:

    go build ./cmd/onnxrl
    python3 cmd/peers/replay.py --onnxrl ./onnxrl

It needs stable-baselines3 and gymnasium. Copies are made on both sides; Stable-Baselines3's sample also makes tensors of them, as its learners do.
"""
import argparse
import json
import statistics
import subprocess
import time

import numpy as np
import torch
from gymnasium import spaces
from stable_baselines3.common.buffers import ReplayBuffer

FEATURES, ACTIONS, ENVS, BATCH = 17, 6, 8, 256


def theirs(size, seconds):
    """Returns transitions per second and microseconds per sample."""
    obs_space = spaces.Box(-np.inf, np.inf, (FEATURES,), np.float32)
    act_space = spaces.Box(-1, 1, (ACTIONS,), np.float32)
    buf = ReplayBuffer(size, obs_space, act_space, device="cpu", n_envs=ENVS, handle_timeout_termination=True)
    rng = np.random.default_rng(0)
    obs = rng.standard_normal((ENVS, FEATURES)).astype(np.float32)
    act = rng.standard_normal((ENVS, ACTIONS)).astype(np.float32)
    reward, done, infos = np.zeros(ENVS, np.float32), np.zeros(ENVS, bool), [{} for _ in range(ENVS)]
    n, began = 0, time.perf_counter()
    while time.perf_counter() - began < seconds:
        for _ in range(100):
            buf.add(obs, obs, act, reward, done, infos)
        n += 100 * ENVS
    pushes = n / (time.perf_counter() - began)
    # Fill the rest without counting it.
    buf.full = True
    n, began = 0, time.perf_counter()
    while time.perf_counter() - began < seconds:
        for _ in range(20):
            buf.sample(BATCH)
        n += 20
    return pushes, (time.perf_counter() - began) / n * 1e6


def ours(program):
    """Returns the figures of `onnxrl bench replay`, by the names of its rows."""
    out = subprocess.run([program, "bench", "replay", "--json", "--rounds", "9", "--round", "2ms", "--envs", str(ENVS), "--batch", str(BATCH)], check=True, capture_output=True, text=True).stdout
    return {row["name"]: row["value"] for row in json.loads(out)["rows"]}


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--onnxrl", required=True, help="the program")
    p.add_argument("--rounds", type=int, default=5)
    p.add_argument("--seconds", type=float, default=0.3, help="time of one measurement of Stable-Baselines3")
    a = p.parse_args()
    torch.set_num_threads(1)
    sizes = {"10k": 10_000, "2M": 2_000_000}
    figures = {}
    for _ in range(a.rounds):
        for name, value in ours(a.onnxrl).items():
            figures.setdefault(name, []).append(value)
        for size, n in sizes.items():
            push, sample = theirs(n, a.seconds)
            figures.setdefault(f"push/sb3-{size}", []).append(push)
            figures.setdefault(f"sample/sb3-{size}", []).append(sample)
    median = {name: statistics.median(v) for name, v in figures.items()}
    print(f"{'row':<28}{'value':>14}  times as fast as Stable-Baselines3")
    for name, value in median.items():
        kind, rest = name.split("/")
        size = rest.rsplit("-", 1)[-1]
        peer = median.get(f"{kind}/sb3-{size}")
        ratio = "" if peer is None else f"{value / peer if kind == 'push' else peer / value:10.1f}"
        print(f"{name:<28}{value:>14.1f}  {ratio}")


if __name__ == "__main__":
    main()
