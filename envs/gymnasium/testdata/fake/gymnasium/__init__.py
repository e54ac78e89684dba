"""A stand-in for the package gymnasium in tests: the little of it that worker.py uses, in plain Python, and environments that do what real ones do at their worst."""
try:
    import numpy  # The worker uses it where it is loaded.
except ImportError:
    pass

from . import envs, error, spaces
from .envs.registration import EnvSpec, Wrapper, make, registry

__version__ = "fake"
