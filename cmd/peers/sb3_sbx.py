"""SBX's side of sb3.py, a process of its own because JAX is told its number of threads by the environment: reads {"row": …, "steps": …} per line, trains, and answers with a line each.

Compilation is not timed. A model first learns for a few updates with the shapes of the measured training, so that everything is traced and compiled, and then starts again with learn(): step count, schedules and random steps begin anew, so it makes as many env steps and updates as a new model would.
Compilations during the timed part are counted by JAX's own events and reported; there should be none. Networks are as Stable-Baselines3's in shape and activation, without layer normalisation and dropout.
"""
import inspect
import json
import sys
import time

import flax.linen
import jax
import sb3_rows
import sbx
import stable_baselines3
import torch
from stable_baselines3.common.env_util import make_vec_env

COMPILED = []


def warm_up_steps(model):
    """Enough for two rollouts, or for several updates after the random steps."""
    if hasattr(model, "rollout_buffer"):
        return 2 * model.n_steps * model.n_envs
    return model.learning_starts + 4 * model.train_freq.frequency * model.n_envs


def arguments(row):
    """All hyper-parameters of Stable-Baselines3's class for this row, defaults included, that SBX's class knows, and the network said outright: defaults differ (DQN has 2 x 256 units here, learning rates of TD3 and DDPG are 3e-4)."""
    known = inspect.signature(getattr(sbx, row.algorithm).__init__).parameters
    given = {name: p.default for name, p in inspect.signature(getattr(stable_baselines3, row.algorithm).__init__).parameters.items() if p.default is not inspect.Parameter.empty}
    given.update(row.kwargs)
    skipped = {"policy_kwargs", "device", "seed", "verbose", "tensorboard_log", "_init_setup_model", "replay_buffer_class", "replay_buffer_kwargs", "rollout_buffer_class", "rollout_buffer_kwargs"}
    out = {name: value for name, value in given.items() if name in known and name not in skipped}
    if "qf_learning_rate" in known:
        out["qf_learning_rate"] = out["learning_rate"]
    shape = row.kwargs.get("policy_kwargs", {}).get("net_arch") or {"PPO": [64, 64], "DQN": [64, 64], "SAC": [256, 256]}[row.algorithm]
    out["policy_kwargs"] = {"net_arch": shape, "activation_fn": flax.linen.tanh if row.algorithm == "PPO" else flax.linen.relu}
    if row.algorithm not in ("PPO", "DQN"):
        out["policy_kwargs"].update(layer_norm=False, dropout_rate=0.0)
    return out


def train(name, steps):
    row = sb3_rows.ROWS[name]
    env = make_vec_env(row.env, n_envs=row.num_envs, seed=1)
    model = getattr(sbx, row.algorithm)("MlpPolicy", env, seed=1, verbose=0, **arguments(row))
    model.learn(total_timesteps=warm_up_steps(model))
    if row.algorithm == "DQN":
        # The target network is copied too seldom to be met by the warm-up.
        model.policy.qf_state = model.soft_update(model.tau, model.policy.qf_state)
    if row.algorithm == "PPO":
        # Values of single observations are asked for when a time limit cuts an episode off.
        model.vf.apply(model.policy.vf_state.params, env.observation_space.sample()[None]).flatten()
    updates = model._n_updates
    COMPILED.clear()
    start = time.perf_counter()
    model.learn(total_timesteps=steps)
    took = time.perf_counter() - start
    env.close()
    return {"env_steps_per_second": model.num_timesteps / took, "env_steps": model.num_timesteps, "updates": model._n_updates - updates, "compilations": len(COMPILED), "compile_seconds": sum(COMPILED)}


def main():
    threads = int(sys.argv[1])
    torch.set_num_threads(threads)
    jax.monitoring.register_event_duration_secs_listener(lambda event, seconds, **_: COMPILED.append(seconds) if event == "/jax/core/compile/backend_compile_duration" else None)
    versions = {"sbx": sbx.__version__, "jax": jax.__version__, "devices": str(jax.devices()), "algorithms": [a for a in ("PPO", "A2C", "DQN", "SAC", "TD3", "DDPG") if inspect.isclass(getattr(sbx, a, None))]}
    print(json.dumps(versions), flush=True)
    for line in sys.stdin:
        ask = json.loads(line)
        print(json.dumps(train(ask["row"], ask["steps"])), flush=True)


if __name__ == "__main__":
    main()
