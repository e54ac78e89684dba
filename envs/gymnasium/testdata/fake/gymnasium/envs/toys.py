"""Environments for tests. All of their randomness comes from the seed given to reset."""
import os
import random
import signal
import sys
import time
from array import array

from .. import error, spaces


class Env:
    def reset(self, seed=None):
        if seed is not None:
            self.random = random.Random(seed)
        return self.begin(), {}

    def close(self):
        pass


class Walk(Env):
    """A walk on numbers that ends at `end`; action 1 is left and 2 right, and the wind blows. Left of 0 only right is valid."""

    observation_space = spaces.Box(-100.0, 100.0, (2,))

    def __init__(self, end=5, start=1):
        self.action_space = spaces.Discrete(2, start=start)
        self.end, self.start = end, start

    def begin(self):
        self.at, self.wind = self.random.uniform(-1, 1), 0.0
        return self.seen()

    def seen(self):
        return array("f", [self.at, self.wind])

    def step(self, action):
        assert type(action) is int and self.start <= action <= self.start + 1, action
        self.wind = self.random.gauss(0, 0.1)
        self.at += (1 if action > self.start else -1) + self.wind
        return self.seen(), 1 - abs(self.at) / 10, self.at >= self.end, False, {"wind": self.wind, "calm": abs(self.wind) < 0.05}


class Masked(Walk):
    def action_masks(self):
        return [self.at >= 0, True]


class Costly(Walk):
    """Has the wind's strength as its cost, as steps of Safety-Gymnasium do."""

    def step(self, action):
        seen, reward, terminated, truncated, info = super().step(action)
        return seen, reward, abs(self.wind), terminated, truncated, info


class Endless(Walk):
    """A walk without end or limit."""

    def __init__(self, **kwargs):
        super().__init__(end=float("inf"), **kwargs)


class EndlessMasked(Endless, Masked):
    pass


class Spaces(Env):
    """Has every space there is; the observations repeat the actions."""

    def __init__(self, action="box", observation="dict"):
        inf = float("inf")
        self.action_space = {
            "discrete": spaces.Discrete(3, start=-1),
            "multidiscrete": spaces.MultiDiscrete([2, 3], start=[5, 0]),
            "multibinary": spaces.MultiBinary((3,)),
            "box": spaces.Box([-1.0, -2.0], [1.0, 2.0], (2,)),
            "box64": spaces.Box(-0.4, 0.4, (2,), "float64"),
            "int box": spaces.Box(0, 5, (2,), "int32"),
            "tuple": spaces.Tuple([spaces.Discrete(2)]),
            "dict": spaces.Dict({"a": spaces.Discrete(2)}),
        }[action]
        self.kind = action
        inner = {
            "bits": spaces.MultiBinary((2, 2)),
            "choice": spaces.Discrete(4, start=2),
            "image": spaces.Box(0, 255, (2, 3), "uint8"),
            "inner": spaces.Dict({"choices": spaces.MultiDiscrete([2, 2], start=[1, 0]), "exact": spaces.Box(-inf, inf, (2,), "float64"), "numbers": spaces.Box(-9, 9, (2,), "int32")}),
            "single": spaces.Box(-3.4028235e38, 3.4028235e38, (1,)),
        }
        self.observation_space = {
            "dict": spaces.Dict(inner),
            "tuple": spaces.Tuple([spaces.Discrete(2)]),
            "deep tuple": spaces.Dict({"a": spaces.Dict({"b": spaces.Tuple([])})}),
        }[observation]

    def begin(self):
        self.steps = 0
        return self.seen([0.0, 0.0])

    def seen(self, numbers):
        k = self.steps
        return {
            "bits": [[k & 1, k >> 1 & 1], [k >> 2 & 1, 1]],
            "choice": 2 + k % 4,
            "image": [[k, 1, 2], [3, 4, 255]],
            "inner": {"choices": [1 + k % 2, 0], "exact": array("d", [0.1 * k, 1 / 3]), "numbers": [k % 9, -9]},
            "single": [float(sum(numbers))],
        }

    def step(self, action):
        self.steps += 1
        numbers = [float(x) for x in ([action] if self.kind == "discrete" else action)]
        assert type(action) is int if self.kind == "discrete" else hasattr(action, "tolist"), action
        if self.kind == "box64":
            assert max(numbers) <= 0.4, action
        return self.seen(numbers), sum(numbers), False, False, {}


class Rude(Env):
    """Misbehaves in the given way after a number of steps, in the first `times` processes that come to it; `marks` is a folder that counts them. `tell` is a file descriptor that is told before."""

    observation_space = spaces.Box(-100.0, 100.0, (1,))
    action_space = spaces.Discrete(2)

    def __init__(self, how="", after=3, times=10**9, marks=None, at="step", tell=None):
        self.how, self.after, self.times, self.marks, self.where, self.tell = how, after, times, marks, at, tell
        self.count = 0
        if how == "handle":
            self.lock = open(os.devnull)
            self.secret = Secret()
        if how == "bare":
            raise error.DependencyNotInstalled("the wheel is not installed")
        if how == "unmade":
            raise RuntimeError("cannot be made\nfor two reasons")
        if how == "loud":
            print("hello from Python")
            os.system("echo hello from a shell")

    def due(self):
        if self.marks is None:
            return True
        for k in range(self.times):
            try:
                open(os.path.join(self.marks, str(k)), "x").close()
                return True
            except FileExistsError:
                pass
        return False

    def begin(self):
        self.count = 0
        if self.where == "reset" and self.due():
            return self.misbehave()[0]
        return [self.random.random()]

    def step(self, action):
        self.count += 1
        if self.where == "step" and self.count == self.after and self.due():
            return self.misbehave()
        obs = [float(self.count)]
        if self.how == "handle":
            obs = [float(self.secret.next())]
        return obs, 1.0, self.how == "short" and self.count == 5, False, {}

    def misbehave(self):
        how, obs = self.how, [float(self.count)]
        if self.tell is not None:
            os.write(self.tell, b"here\n")
        if how == "exit":
            sys.stderr.write("last words of %d\n" % self.count)
            os._exit(7)
        if how == "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        if how == "sys.exit":
            sys.exit("I give up")
        if how == "hang":
            self.hang_here()
        if how == "raise":
            self.deeper(3)
        if how == "loud":
            print("x" * 100000)
            os.write(1, b"straight to the descriptor\n")
            input_is_empty(sys.stdin.read())
        return {
            "nan reward": (obs, float("nan"), False, False, {}),
            "an array": (obs, array("d", [2.5]), False, False, {"extra": array("d", [0.5])}),
            "two rewards": (obs, array("d", [1.0, 2.0]), False, False, {}),
            "no reward": (obs, None, False, False, {}),
            "nan observation": ([float("nan")], 1.0, False, False, {}),
            "nan at the end": ([float("inf")], 1.0, True, False, {}),
            "shape": ([1.0, 2.0], 1.0, False, False, {}),
            "words": (["one"], 1.0, False, False, {}),
            "old": (obs, 1.0, False, {}),
            "no observation": (None, 1.0, False, False, {}),
            "a dict": ({"a": 1}, 1.0, False, False, {}),
            "no answer": None,
            "no end": (obs, 1.0, None, False, {}),
            "two ends": (obs, 1.0, False, Ends(), {}),
            "nan info": (obs, 1.0, False, False, {"extra": float("nan")}),
        }.get(how, (obs, 1.0, False, False, {}))

    def hang_here(self):
        while True:
            time.sleep(0.01)

    def deeper(self, n):
        if n == 0:
            raise ValueError("the wheel has come off")
        self.deeper(n - 1)


def input_is_empty(text):
    assert text == "", text


class Ends:
    """What NumPy does with the truth of several values."""

    def __bool__(self):
        raise ValueError("The truth value of an array with more than one element is ambiguous.")

    def __repr__(self):
        return "array([True, False])"


class Alone(Walk):
    """The reset of old Gym."""

    def reset(self, seed=None):
        return super().reset(seed)[0]


class Veiled(Endless):
    """Has wrong masks after a number of steps."""

    def __init__(self, how, after=3):
        super().__init__()
        self.how, self.after, self.steps = how, after, 0

    def step(self, action):
        self.steps += 1
        return super().step(action)

    def action_masks(self):
        if self.steps < self.after:
            return [True, 1.0]
        if self.how == "raises":
            return {}["mask"]
        return {"none": [False, False], "long": [True] * 3, "nan": [float("nan"), 1], "words": ["a", "b"], "one": True}[self.how]


class Secret:
    """Counts where pickle does not look."""

    counts = {}

    def next(self):
        self.counts[id(self)] = self.counts.get(id(self), 0) + 1
        return self.counts[id(self)]
