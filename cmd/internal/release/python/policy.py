"""A policy that onnxrl has trained, with numpy and onnxruntime only."""
import os

from .agent import Agent


class Policy(Agent):
    """Agent, whose predict is that of a Stable-Baselines3 model, of any policy on disk."""

    @classmethod
    def load(cls, path, seed=None, allow_nonfinite=False):
        """path is an ONNX file, a run of onnxrl train, whose published policy is taken, or a folder of onnxrl export --format python."""
        path = os.fspath(path)
        tried = [path] if not os.path.isdir(path) else [os.path.join(path, name) for name in ("best.onnx", "model.onnx")]
        for file in tried:
            if os.path.isfile(file):
                return cls(file, seed, allow_nonfinite)
        raise FileNotFoundError(f"{path}: expected an ONNX file, or a folder with best.onnx (a run) or model.onnx (an export)")
