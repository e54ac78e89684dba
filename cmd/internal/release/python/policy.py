"""A policy that onnxrl has trained, with numpy and onnxruntime only."""
import os
import sys

from .agent import Agent


class Policy(Agent):
    """Agent, whose predict is that of a Stable-Baselines3 model, of any policy on disk."""

    def __init__(self, path=None, seed=None, allow_nonfinite=False):
        """path is an ONNX file, a run of onnxrl train, whose published policy is taken, or a folder of onnxrl export --format python; without one it is the folder in which the program lies that runs, and the current one where Python runs none."""
        super().__init__(found(folder() if path is None else os.fspath(path)), seed, allow_nonfinite)

    @classmethod
    def load(cls, path, seed=None, allow_nonfinite=False):
        """The policy of a path, as the constructor takes it."""
        return cls(path, seed, allow_nonfinite)


def folder():
    """Where the program lies that runs."""
    program = getattr(sys.modules.get("__main__"), "__file__", None)
    return os.path.dirname(os.path.abspath(program)) if program else os.getcwd()


def found(path):
    """The ONNX file of a path."""
    tried = [path] if not os.path.isdir(path) else [os.path.join(path, name) for name in ("best.onnx", "model.onnx")]
    for file in tried:
        if os.path.isfile(file):
            return file
    raise FileNotFoundError(f"{path}: expected an ONNX file, or a folder with best.onnx (a run) or model.onnx (an export)")
