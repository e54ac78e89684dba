"""Compares the networks of population_nets.py with those that `onnxrl train population` has trained: the parameters of a checkpoint, loaded into the PyTorch modules, must give the target weights of the published expert.

    python cmd/peers/population_equal.py RUN DOCUMENT.yaml EXPERT.yaml DATA   (needs onnxruntime and safetensors)

RUN is the directory of a population without pretrain and agent.lora, whose encoders are trained (a base that is frozen has other weights here), the others are those of population_sb3.py. Every expert of the newest generation acts on 512 windows with random positions, and the largest difference of a weight is printed. Critics and discriminators must take every parameter
of the checkpoint. Ends with another status than 0 when one differs by more than 1e-5.
"""
import glob
import json
import os
import sys

import numpy as np
import onnxruntime
import torch
import yaml
from population_nets import Actor, Critic, Discriminator, Table, taken
from population_sb3 import SCORE, Market, Trading, assign
from safetensors.numpy import load_file


def main(run, document, expert, data):
    c, e = yaml.safe_load(open(document)), yaml.safe_load(open(expert))
    for key, value in c["experts"].get("set", {}).items():
        assign(e, key, value)
    a, market = e["agent"], Market(data)
    if "lora" in a or "pretrain" in c:
        raise SystemExit(f"{document}: it has agent.lora or pretrain; expected encoders that are trained")
    table, skill = Table(market), e["wrappers"]["skill"]["dim"]
    env = Trading(market, {"fee": 0, "cash": 1.0, "length": 1}, "train", skill)
    net = {"encoder": a["encoder"], "hidden": a["hidden"], "rank": 0}
    scales = [(f["mean"], f["std"]) if f["scaled"] else (0.0, 1.0) for f in json.load(open(os.path.join(data, "manifest.json")))["features"]]
    mean, std = (np.array(x) for x in zip(*scales))
    rng, n, worst = np.random.default_rng(1), market.x.shape[1], 0.0
    obs = np.zeros((512, env.observation_space.shape[0]), np.float32)
    first, last = market.range("test")
    obs[:, 0] = rng.integers(first, last, len(obs))
    shares = rng.dirichlet(np.ones(n + 1), len(obs))
    obs[:, 1 : n + 2], obs[:, n + 2 : 2 * n + 2] = shares, market.tradable[obs[:, 0].astype(int)]
    records = [json.loads(x) for x in open(os.path.join(run, "experts", "members.jsonl"))]
    records = [r for r in records if r["generation"] == records[-1]["generation"]]
    for r in records:
        folder = os.path.join(run, "experts", r["dir"])
        arrays = load_file(max(glob.glob(os.path.join(folder, "checkpoints", "*", "arrays.safetensors"))))
        arrays = {k.removeprefix("agent/params/trainable/"): v for k, v in arrays.items()}
        actor, critic = Actor(env.observation_space, env.action_space, net, table, skill), Critic(env.observation_space, env.action_space, net, table, skill)
        taken(actor, arrays, "actor.")
        taken(critic, arrays, "critic.")
        taken(Discriminator(env.action_space.shape[0], a["diversity"]["hidden"], skill), arrays, "agent/diversity/params/trainable/features.")
        obs[:, 2 * n + 2 :] = np.eye(skill)[r["skill"]]
        with torch.no_grad():
            weights = (actor(torch.from_numpy(obs), deterministic=True) * SCORE).softmax(1).numpy()
        model = onnxruntime.InferenceSession(os.path.join(folder, "best.onnx"))
        # What is published scales features itself.
        windows = table.windows[obs[:, 0].astype(int)].permute(0, 2, 1, 3).numpy() * std + mean
        given = {"window": windows, "position": obs[:, 1 : n + 1], "cash": obs[:, n + 1 : n + 2], "tradable": obs[:, n + 2 : 2 * n + 2]}
        inputs = {i.name: i for i in model.get_inputs()}
        if set(inputs) != set(given):
            raise SystemExit(f"{folder}: the model reads {sorted(inputs)}, expected {sorted(given)}")
        want = model.run(["action"], {k: v.astype(np.uint8 if "uint8" in inputs[k].type else np.float32) for k, v in given.items()})[0]
        worst = max(worst, float(np.abs(weights - want).max()))
    print(f"{len(records)} experts, {len(obs)} windows: the largest difference of a target weight is {worst:.2g}")
    return 0 if worst < 1e-5 else 1


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
