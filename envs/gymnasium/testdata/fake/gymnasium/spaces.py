import math
import random
from array import array


class Space:
    def __init__(self, shape, dtype):
        self.shape, self.dtype, self.random = tuple(shape), dtype, random.Random(0)

    def seed(self, seed):
        self.random.seed(seed)


class Discrete(Space):
    def __init__(self, n, start=0):
        super().__init__((), "int64")
        self.n, self.start = n, start

    def sample(self):
        return self.start + self.random.randrange(self.n)


class MultiDiscrete(Space):
    def __init__(self, nvec, start=None):
        super().__init__((len(nvec),), "int64")
        self.nvec, self.start = nvec, start or [0] * len(nvec)

    def sample(self):
        return array("q", [s + self.random.randrange(n) for n, s in zip(self.nvec, self.start)])


class MultiBinary(Space):
    def __init__(self, shape):
        super().__init__(shape, "int8")

    def sample(self):
        return array("b", [self.random.randrange(2) for _ in range(math.prod(self.shape))])


class Box(Space):
    def __init__(self, low, high, shape, dtype="float32"):
        super().__init__(shape, dtype)
        n = math.prod(shape)
        self.low = low if isinstance(low, list) else [low] * n
        self.high = high if isinstance(high, list) else [high] * n

    def sample(self):
        return array("f", [self.random.uniform(max(a, -1), min(b, 1)) for a, b in zip(self.low, self.high)])


class Dict(Space):
    def __init__(self, spaces):
        super().__init__((), None)
        self.spaces = spaces


class Tuple(Space):
    def __init__(self, spaces):
        super().__init__((), None)
        self.spaces = spaces
