"""Compares the predict of exported Python folders with that of Stable-Baselines3's and sb3-contrib's own models.

    python cmd/peers/export_predict.py ONNXRL

Trains small policies of both for the same environments and gives them the same observations: single and vectorised, with and
without drawing, masked and recurrent. What comes back must have the same type, dtype and shape, and what is refused must be
refused by both. It needs numpy, onnxruntime, gymnasium, stable-baselines3 and sb3-contrib. Ends with status 1 on a difference.
"""
import importlib.util
import inspect
import os
import subprocess
import sys
import tempfile
import warnings

import gymnasium
import numpy as np
import sb3_contrib
import stable_baselines3
from sb3_contrib.common.envs import InvalidActionEnvDiscrete
from stable_baselines3.common.evaluation import evaluate_policy

PPO = "agent: {kind: ppo, n_steps: 50, batch_size: 50, n_epochs: 1%s}"
KINDS = {
    "discrete": ("cartpole", PPO % "", "CartPole-v1", stable_baselines3.PPO, "MlpPolicy", {"n_steps": 50, "batch_size": 50}),
    "box": ("pendulum", PPO % "", "Pendulum-v1", stable_baselines3.PPO, "MlpPolicy", {"n_steps": 50, "batch_size": 50}),
    "squashed": ("pendulum", "agent: {kind: sac, learning_starts: 50, hidden: [8]}", "Pendulum-v1", stable_baselines3.SAC, "MlpPolicy", {}),
    "deterministic": ("pendulum", "agent: {kind: td3, learning_starts: 50, hidden: [8]}", "Pendulum-v1", stable_baselines3.TD3, "MlpPolicy", {}),
    "recurrent": ("cartpole", PPO % ", recurrent: {kind: lstm, hidden: 4}", "CartPole-v1", sb3_contrib.RecurrentPPO, "MlpLstmPolicy", {"n_steps": 50}),
    "masked": ("invalid_action", PPO % "", None, sb3_contrib.MaskablePPO, "MlpPolicy", {"n_steps": 50, "batch_size": 50}),
}
failures, checks = [], 0


def check(ok, what):
    global checks
    checks += 1
    if not ok:
        failures.append(what)
        print("FAILED:", what)


def form(value):
    """What a caller may rely on: type, dtype and number of axes with the batch; the values are another network's."""
    if isinstance(value, tuple):
        return tuple, {type(v) for v in value}
    if isinstance(value, np.ndarray):
        return type(value), value.dtype, value.shape
    return type(value)


def exported(onnxrl, where, env, agent):
    config, run, folder = (os.path.join(where, name) for name in ("c.yaml", "run", "folder"))
    with open(config, "w") as f:
        f.write("seed: 5\ntrain: {num_envs: 2, total_env_steps: 200, threads: 1, validation: {every_steps: 100}}\neval: {episodes: 2}\n"
                f"publish: {{observations: 300, allow_ties: true}}\nenv: {{kind: {env}}}\n{agent}\n")
    subprocess.run([onnxrl, "train", "-q", config, "--out", run], check=True, stdout=subprocess.DEVNULL)
    subprocess.run([onnxrl, "export", "-q", run, "--format", "python", "--out", folder, "--rows", "200", "--allow-ties"], check=True, stdout=subprocess.DEVNULL)
    spec = importlib.util.spec_from_file_location("agent", os.path.join(folder, "agent.py"))
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.Agent


def raises(f):
    try:
        f()
    except ValueError as e:
        return str(e)
    return ""


def compare(name, Agent, model, env):
    agent = Agent(seed=1)
    want = inspect.signature(type(model).predict).parameters
    got = inspect.signature(Agent.predict).parameters
    check(list(got)[:len(want)] == list(want) and all(got[k].default == p.default for k, p in want.items()), f"{name}: signature {got}, expected {want}")
    masked = "action_masks" in want
    # The two worlds of masked actions show different observations; the number of actions counts.
    theirs_space = env.observation_space
    ours = agent.inputs[agent.observations[0]]
    for rows in (None, 1, 3):
        batch = () if rows is None else (rows,)
        x = np.stack([theirs_space.sample() for _ in range(rows or 1)]).astype(theirs_space.dtype)
        x = x[0] if rows is None else x
        y = x if not masked else np.zeros(batch + tuple(ours.shape[1:]), np.float32)
        for deterministic in (True, False):
            for masks in ([None, True] if masked else [None]):
                kinds = ({}, {}) if masks is None else ({"action_masks": np.ones(batch + (env.action_space.n,), bool)}, {"action_masks": np.ones(batch + tuple(agent.inputs["mask"].shape[1:]), bool)})
                a, s = model.predict(x, deterministic=deterministic, **kinds[0])
                b, t = agent.predict(y, deterministic=deterministic, **kinds[1])
                check(form(a) == form(b), f"{name}, {rows} rows: action {form(b)}, expected {form(a)}")
                check(form(s) == form(t), f"{name}, {rows} rows: state {form(t)}, expected {form(s)}")
                if s is not None:
                    starts = np.ones(rows or 1, bool)
                    a, s = model.predict(x, state=s, episode_start=starts, deterministic=deterministic)
                    b2, t2 = agent.predict(y, state=t, episode_start=starts, deterministic=deterministic)
                    check(form(a) == form(b2) and form(s) == form(t2), f"{name}, {rows} rows: second step")
                    # An episode that starts forgets, so the second step is the first again.
                    check(all(np.array_equal(u, v) for u, v in zip(t, t2)), f"{name}, {rows} rows: an episode that starts remembers")
                    check(not all(np.array_equal(u, v) for u, v in zip(t, agent.predict(y, state=t, deterministic=True)[1])), f"{name}, {rows} rows: nothing is remembered")
    if not agent.states:
        marker = (np.zeros(3),)
        check(model.predict(x, state=marker)[1] is marker and agent.predict(y, state=marker)[1] is marker, f"{name}: a state that is not used is passed on")
    check(raises(lambda: model.predict((x, {}))) and "tuple" in raises(lambda: agent.predict((y, {}))), f"{name}: a tuple is refused")
    wrong = np.zeros((2, 2, 2, 2), np.float32)
    check(raises(lambda: model.predict(wrong)) and "shape" in raises(lambda: agent.predict(wrong)), f"{name}: a wrong shape is refused")
    if ours.type == "tensor(float)":
        for value, word in ((np.nan, "nan"), (np.inf, "inf"), (-np.inf, "-inf")):
            bad = np.zeros((2, *ours.shape[1:]), np.float32)
            bad[1].flat[-1] = value
            says = raises(lambda: agent.predict(bad, deterministic=True))
            place = [1] + [n - 1 for n in ours.shape[1:]]
            check(str(place) in says and word in says, f"{name}: {value} gives {says!r}")
        check(agent.nonfinite_refused == 3, f"{name}: {agent.nonfinite_refused} refusals were counted")
        loose = Agent(allow_nonfinite=True)
        check(raises(lambda: loose.predict(bad, deterministic=True)) == "" and loose.nonfinite_refused == 0, f"{name}: allow_nonfinite")
    if not masked:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            for deterministic in (True, False):
                evaluate_policy(agent, env, n_eval_episodes=2, deterministic=deterministic, warn=False)
        check(True, name)


def main(onnxrl):
    for name, (kind, document, gym, algorithm, policy, kwargs) in KINDS.items():
        env = gymnasium.make(gym) if gym else InvalidActionEnvDiscrete(dim=4, n_invalid_actions=1)
        before = len(failures)
        with tempfile.TemporaryDirectory() as where:
            compare(name, exported(onnxrl, where, kind, document), algorithm(policy, env, seed=0, device="cpu", **kwargs), env)
        print(f"{name}: {'as' if len(failures) == before else 'not as'} {algorithm.__name__}")
    print(f"{checks - len(failures)} of {checks} checks")
    return 1 if failures or checks < 150 else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
