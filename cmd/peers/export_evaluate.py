"""Plays a Gymnasium environment with an exported Python folder in the place of a Stable-Baselines3 model.

    python cmd/peers/export_evaluate.py FOLDER ENVIRONMENT [LEAST MEAN RETURN]

evaluate_policy of Stable-Baselines3 calls the folder's class as it does its own models: with the best actions, and with drawn ones where the model was exported with --sample. It needs gymnasium and stable-baselines3. Ends with another status than 0 when the mean return of the best actions is less than demanded.
"""
import importlib.util
import os
import sys

import gymnasium
from stable_baselines3.common.evaluation import evaluate_policy
from stable_baselines3.common.vec_env import DummyVecEnv

EPISODES = 20


def main(folder, environment, least="-inf"):
    spec = importlib.util.spec_from_file_location("agent", os.path.join(folder, "agent.py"))
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    agent = module.Agent(seed=1)
    env = DummyVecEnv([lambda: gymnasium.make(environment)] * 4)
    env.seed(1)
    mean, std = evaluate_policy(agent, env, n_eval_episodes=EPISODES, deterministic=True, warn=False)
    print(f"{environment}: mean return {mean:.1f} ± {std:.1f} over {EPISODES} episodes, states {[s['input'] for s in agent.states]}")
    if "noise" in agent.inputs:
        drawn, spread = evaluate_policy(agent, env, n_eval_episodes=EPISODES, deterministic=False, warn=False)
        print(f"{environment}: mean return {drawn:.1f} ± {spread:.1f} with drawn actions")
    return 0 if mean >= float(least) else 1


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
