"""Acts with model.onnx. It needs numpy and onnxruntime only."""
import json
import os

import numpy as np
import onnxruntime


class Agent:
    """predict has the signature of a Stable-Baselines3 policy, and the mask of sb3-contrib's maskable ones."""

    def __init__(self, path=os.path.join(os.path.dirname(os.path.abspath(__file__)), "model.onnx"), seed=None):
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        self.session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
        self.inputs = {i.name: i for i in self.session.get_inputs()}
        self.outputs = [o.name for o in self.session.get_outputs()]
        self.states = json.loads(self.session.get_modelmeta().custom_metadata_map.get("onnxrl.state", "[]"))
        special = {"mask", "noise"} | {s["input"] for s in self.states}
        self.observations = [name for name in self.inputs if name not in special]
        self.random = np.random.default_rng(seed)

    def predict(self, observation, state=None, episode_start=None, deterministic=True, mask=None):
        """Returns actions and the state to pass with the next observation.

        observation is a dict of arrays by input, or one array where there is one input, with a batch axis in front or without;
        episode_start says of each row whether its episode begins with it; mask is True where an action is valid.
        """
        if not isinstance(observation, dict):
            observation = {self.observations[0]: observation}
        first = self.inputs[self.observations[0]]
        single = np.ndim(observation[first.name]) == len(first.shape) - 1
        feed = {name: self._array(name, observation[name], single) for name in self.observations}
        rows = len(feed[first.name])
        if "mask" in self.inputs:
            full = np.ones((rows, *self.inputs["mask"].shape[1:]), bool)
            feed["mask"] = full if mask is None else self._array("mask", mask, single)
        if "noise" in self.inputs:
            shape = (rows, *self.inputs["noise"].shape[1:])
            feed["noise"] = np.zeros(shape, np.float32) if deterministic else self.random.gumbel(size=shape).astype(np.float32)
        elif not deterministic:
            raise ValueError("the model was exported without --sample: it takes the best action only")
        for s in self.states:
            initial = np.broadcast_to(np.asarray(s["initial"], np.float32).reshape(s["shape"] if len(s["initial"]) > 1 else ()), s["shape"])
            value = np.broadcast_to(initial, (rows, *s["shape"])) if state is None else state[s["input"]]
            if state is not None and episode_start is not None:
                begins = np.reshape(episode_start, (-1,) + (1,) * len(s["shape"]))
                value = np.where(begins, initial, value)
            feed[s["input"]] = np.ascontiguousarray(value, np.float32)
        result = dict(zip(self.outputs, self.session.run(None, feed)))
        state = {s["input"]: result[s["output"]] for s in self.states} or None
        actions = result["sample"] if "sample" in result and not deterministic else result.get("action", result[self.outputs[0]])
        return (actions[0] if single else actions), state

    def _array(self, name, value, single):
        kinds = {"tensor(float)": np.float32, "tensor(double)": np.float64, "tensor(int64)": np.int64, "tensor(int32)": np.int32, "tensor(bool)": bool, "tensor(uint8)": np.uint8}
        value = np.asarray(value, kinds[self.inputs[name].type])
        return value[None] if single else value
