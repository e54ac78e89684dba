"""Trains BenchMARL's MAPPO on simple_spread with the settings of configs/experiments/simple_spread_mappo.yaml, and shows returns and speed.

    pip install benchmarl==1.5.2 pettingzoo==1.27.0 mpe2==1.1.1
    python cmd/peers/benchmarl_mappo.py --agent-steps 900000 --seeds 1 2 3 4 5

Counts are agent steps, as train.num_envs and train.total_env_steps count them: three for each step of the world. The other side is "onnxrl bench learn simple_spread_mappo", or "onnxrl train simple_spread_mappo"; run both one after the other on the same cores, with one thread each (OMP_NUM_THREADS=1). Returns are means over 100 deterministic episodes of the policy at the end.
"""

import argparse
import functools
import json
import time
import warnings

import mpe2.simple_spread_v3 as spread
import numpy as np
import torch
from benchmarl.algorithms import MappoConfig
from benchmarl.environments import PettingZooTask
from benchmarl.experiment import Experiment, ExperimentConfig
from benchmarl.models.mlp import MlpConfig
from torchrl.envs.libs.pettingzoo import PettingZooWrapper
from torchrl.envs.utils import ExplorationType, set_exploration_type

warnings.filterwarnings("ignore")
AGENTS, WORLDS, ROUNDS = 3, 16, 25


def world(seed):
    return PettingZooWrapper(spread.parallel_env(), categorical_actions=True, return_state=True, seed=seed)


def experiment(agent_steps, seed):
    c = ExperimentConfig.get_from_yaml()
    c.sampling_device = c.train_device = c.buffer_device = "cpu"
    c.share_policy_params, c.gamma, c.lr, c.adam_eps = True, 0.99, 7e-4, 1e-5
    c.clip_grad_norm, c.clip_grad_val = True, 10.0
    c.max_n_frames, c.max_n_iters = agent_steps // AGENTS, None
    c.on_policy_collected_frames_per_batch, c.on_policy_n_envs_per_worker = WORLDS * ROUNDS, WORLDS
    # One minibatch of the whole rollout, ten times.
    c.on_policy_n_minibatch_iters, c.on_policy_minibatch_size = 10, WORLDS * ROUNDS
    c.evaluation, c.render, c.loggers, c.create_json, c.checkpoint_interval, c.checkpoint_at_end = False, False, [], False, 0, False
    task = PettingZooTask.SIMPLE_SPREAD.get_from_yaml()
    # PettingZoo's own particle worlds have become mpe2.
    type(task).get_env_fun = lambda self, num_envs, continuous_actions, seed, device: functools.partial(world, seed)
    algorithm = MappoConfig.get_from_yaml()
    algorithm.share_param_critic, algorithm.clip_epsilon, algorithm.entropy_coef, algorithm.critic_coef, algorithm.loss_critic_type, algorithm.lmbda = True, 0.2, 0.01, 1.0, "smooth_l1", 0.95
    model, critic = MlpConfig.get_from_yaml(), MlpConfig.get_from_yaml()
    for m in (model, critic):
        m.num_cells, m.activation_class = [64, 64], torch.nn.ReLU
    return Experiment(task=task, algorithm_config=algorithm, model_config=model, critic_model_config=critic, seed=seed, config=c)


def returns(policy, episodes):
    out = []
    with torch.no_grad(), set_exploration_type(ExplorationType.DETERMINISTIC):
        for e in range(episodes):
            env = world(100_000 + e)
            steps = env.rollout(ROUNDS, policy)
            out.append(float(steps["next", "agent", "reward"].mean(-2).sum()))
            env.close()
    return out


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--agent-steps", type=int, default=900_000)
    p.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3, 4, 5])
    p.add_argument("--episodes", type=int, default=100)
    p.add_argument("--json", action="store_true")
    args = p.parse_args()
    torch.set_num_threads(1)
    rows = []
    for seed in args.seeds:
        x = experiment(args.agent_steps, seed)
        start = time.perf_counter()
        x.run()
        took = time.perf_counter() - start
        rows.append({"seed": seed, "agent_steps": x.total_frames * AGENTS, "seconds": took, "agent_steps_per_second": x.total_frames * AGENTS / took, "return": float(np.mean(returns(x.policy, args.episodes)))})
        if not args.json:
            print("seed %(seed)d: %(agent_steps)d agent steps in %(seconds).1f s, %(agent_steps_per_second).0f/s, return %(return).2f" % rows[-1], flush=True)
    if args.json:
        print(json.dumps(rows))


if __name__ == "__main__":
    main()
