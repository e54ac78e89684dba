"""Compares trajectories of environments stepped through envs/gymnasium with direct calls of Gymnasium, with the same seeds and actions: bit for bit.

Run it with an interpreter that has gymnasium[classic-control,mujoco], from the root of the repository:

    python cmd/peers/gymnasium_compare.py [ID ...]
"""
import base64
import json
import os
import subprocess
import sys
import tempfile

import gymnasium
import numpy as np

STEPS, ENVS = 1500, 3
TEMP = tempfile.TemporaryDirectory()
PROGRAM = os.path.join(TEMP.name, "gymnasium")


def compare(id):
    run = subprocess.run(
        [PROGRAM, "-id", id, "-envs", str(ENVS), "-workers", "2"],
        input="trace %d\n" % STEPS, stdout=subprocess.PIPE, text=True, check=True, env={**os.environ, "ONNXRL_PYTHON": sys.executable},
    )
    t = json.loads(run.stdout)
    env = gymnasium.make(id)
    space = env.action_space
    discrete = isinstance(space, gymnasium.spaces.Discrete)

    def array(name, dtype, shape):
        return np.frombuffer(base64.b64decode(t[name]), dtype).reshape((-1, ENVS) + shape)

    shape = env.observation_space.shape
    actions = array("actions", np.int64 if discrete else np.float32, space.shape)
    first, obs, final = (array(name, np.float32, shape) for name in ("first", "obs", "final"))
    compared = episodes = 0
    for i in range(ENVS):
        seeds = iter(t["seeds"][i])
        x, _ = env.reset(seed=next(seeds))
        assert (first[0, i] == x.astype(np.float32)).all()
        for k in range(STEPS):
            a = int(actions[k, i]) + int(space.start) if discrete else actions[k, i].astype(space.dtype)
            x, reward, terminated, truncated, _ = env.step(a)
            assert t["rewards"][k][i] == float(reward), (id, i, k, t["rewards"][k][i], reward)
            assert t["ends"][k][i] == (1 if terminated else 2 if truncated else 0), (id, i, k)
            if terminated or truncated:
                assert (final[k, i] == x.astype(np.float32)).all(), (id, i, k)
                x, _ = env.reset(seed=next(seeds))
                episodes += 1
            assert (obs[k, i] == x.astype(np.float32)).all(), (id, i, k)
            compared += 1
    print("%-20s %d transitions in %d episodes are equal, bit for bit" % (id, compared, episodes))


subprocess.run(["go", "build", "-o", PROGRAM, "./cmd/peers/gymnasium"], check=True)
os.chdir(TEMP.name)  # MuJoCo writes its log where it is.
for id in sys.argv[1:] or ["CartPole-v1", "Pendulum-v1", "Acrobot-v1", "MountainCarContinuous-v0", "HalfCheetah-v5", "Ant-v5"]:
    compare(id)
