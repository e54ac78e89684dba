import importlib

from .. import error

registry = {}


class EnvSpec:
    def __init__(self, id, entry_point, max_episode_steps):
        self.id, self.entry_point, self.max_episode_steps = id, entry_point, max_episode_steps


class Wrapper:
    def __init__(self, env):
        self.env = env

    def __getattr__(self, name):
        if name == "env" or name.startswith("__"):
            raise AttributeError(name)
        return getattr(self.env, name)

    def reset(self, seed=None):
        return self.env.reset(seed=seed)

    def close(self):
        self.env.close()


class TimeLimit(Wrapper):
    def __init__(self, env, limit):
        super().__init__(env)
        self.limit, self.steps = limit, 0

    def reset(self, seed=None):
        self.steps = 0
        return self.env.reset(seed=seed)

    def step(self, action):
        obs, reward, terminated, truncated, info = self.env.step(action)
        self.steps += 1
        return obs, reward, terminated, truncated or self.steps >= self.limit, info


def register(id, entry_point, max_episode_steps=None):
    registry[id] = EnvSpec(id, entry_point, max_episode_steps)


def make(id, **kwargs):
    if ":" in id:
        package, id = id.split(":")
        importlib.import_module(package)
    if id not in registry:
        raise error.NameNotFound("Environment `%s` doesn't exist." % id)
    spec = registry[id]
    module, name = spec.entry_point.split(":")
    env = getattr(importlib.import_module(module), name)(**kwargs)
    env.spec = spec
    return TimeLimit(env, spec.max_episode_steps) if spec.max_episode_steps else env


for name, limit in {"Walk": 20, "Masked": 20, "Costly": None, "Endless": None, "EndlessMasked": None, "Alone": 20, "Veiled": None, "Spaces": 15, "Rude": None}.items():
    register(name + "-v0", "gymnasium.envs.toys:" + name, limit)
