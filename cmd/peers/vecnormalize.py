"""Records what Stable-Baselines3's VecNormalize makes of a scripted vector of environments, for envs/vector.

python cmd/peers/vecnormalize.py > envs/vector/testdata/vecnormalize.json

Observations are float32 values in float64 arrays, so that NumPy's means are of float64 as ours are. Environment 0 ends by termination, environment 1 by truncation, environment 2 by both in turn.
"""

import json
import sys

import numpy as np
import stable_baselines3
from gymnasium import spaces
from stable_baselines3.common.vec_env import VecNormalize
from stable_baselines3.common.vec_env.base_vec_env import VecEnv

ENVS, DIM, STEPS = 3, 2, 60


class Scripted(VecEnv):
    def __init__(self):
        super().__init__(ENVS, spaces.Box(-np.inf, np.inf, (DIM,), np.float64), spaces.Discrete(2))
        r = np.random.default_rng(7)
        # Two dimensions of very different scale and place, and rewards with a mean.
        draw = lambda *s: np.float32(r.normal(size=(*s, DIM)) * [0.01, 50.0] + [3.0, -200.0]).astype(np.float64)
        self.obs, self.final = draw(STEPS + 1, ENVS), draw(STEPS, ENVS)
        self.rewards = r.normal(size=(STEPS, ENVS)) * 5 + 2
        self.terminated = np.zeros((STEPS, ENVS), bool)
        self.truncated = np.zeros((STEPS, ENVS), bool)
        self.terminated[9::10, 0] = True
        self.truncated[6::7, 1] = True
        self.terminated[4::10, 2] = True
        self.truncated[9::10, 2] = True
        self.t = 0

    def reset(self):
        self.t = 0
        return self.obs[0].copy()

    def step_async(self, actions):
        pass

    def step_wait(self):
        t, self.t = self.t, self.t + 1
        dones = self.terminated[t] | self.truncated[t]
        infos = [{"terminal_observation": self.final[t, i].copy()} if d else {} for i, d in enumerate(dones)]
        return self.obs[self.t].copy(), self.rewards[t].copy(), dones, infos

    def close(self):
        pass

    def get_attr(self, name, indices=None):
        return [None] * ENVS

    def set_attr(self, name, value, indices=None):
        pass

    def env_method(self, name, *args, indices=None, **kwargs):
        return [None] * ENVS

    def env_is_wrapped(self, wrapper_class, indices=None):
        return [False] * ENVS


def main():
    inner = Scripted()
    env = VecNormalize(inner, gamma=0.9, clip_obs=2.0, clip_reward=1.5, epsilon=1e-8)
    shown, rewards, final = [env.reset().tolist()], [], []
    for t in range(STEPS):
        obs, r, dones, infos = env.step(np.zeros(ENVS))
        shown.append(obs.tolist())
        rewards.append(r.tolist())
        final.append([info["terminal_observation"].tolist() if d else None for d, info in zip(dones, infos)])
    json.dump(
        {
            "source": f"stable_baselines3 {stable_baselines3.__version__} VecNormalize, cmd/peers/vecnormalize.py",
            "gamma": 0.9, "clip_obs": 2.0, "clip_reward": 1.5, "epsilon": 1e-8,
            "obs": inner.obs.tolist(), "final": inner.final.tolist(), "rewards": inner.rewards.tolist(),
            "terminated": inner.terminated.tolist(), "truncated": inner.truncated.tolist(),
            "shown": shown, "scaled": rewards, "shown_final": final,
            "mean": env.obs_rms.mean.tolist(), "var": env.obs_rms.var.tolist(), "return_var": float(env.ret_rms.var),
        },
        sys.stdout,
    )
    print()


main()
