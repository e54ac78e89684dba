"""Acts with model.onnx. It needs numpy and onnxruntime only."""
import json
import os

import numpy as np
import onnxruntime


class Agent:
    """predict is that of a Stable-Baselines3 model, so an Agent can be given to evaluate_policy and to whatever else calls it."""

    def __init__(self, path=os.path.join(os.path.dirname(os.path.abspath(__file__)), "model.onnx"), seed=None):
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        self.session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
        self.inputs = {i.name: i for i in self.session.get_inputs()}
        self.outputs = [o.name for o in self.session.get_outputs()]
        meta = self.session.get_modelmeta().custom_metadata_map
        self.states = json.loads(meta.get("onnxrl.state", "[]"))
        self.normal = meta.get("onnxrl.noise") == "normal"
        special = {"mask", "noise"} | {s["input"] for s in self.states}
        self.observations = [name for name in self.inputs if name not in special]
        self.random = np.random.default_rng(seed)

    def predict(self, observation, state=None, episode_start=None, deterministic=True, action_masks=None):
        """Returns actions, and the state to pass with the next observation, None where the model remembers nothing.

        observation is a dict of arrays by input, or one array where there is one input, with a batch axis in front or without;
        episode_start says of each row whether its episode begins with it; action_masks is True where an action is valid.
        With deterministic=False actions are drawn, which the model must have been exported for (--sample).
        """
        if not isinstance(observation, dict):
            observation = {self.observations[0]: observation}
        first = self.inputs[self.observations[0]]
        single = np.ndim(observation[first.name]) == len(first.shape) - 1
        feed = {name: self._array(name, observation[name], single) for name in self.observations}
        rows = len(feed[first.name])
        if "mask" in self.inputs:
            shape = (rows, *self.inputs["mask"].shape[1:])
            feed["mask"] = np.ones(shape, bool) if action_masks is None else self._array("mask", action_masks, False).reshape(shape)
        if "noise" in self.inputs:
            shape = (rows, *self.inputs["noise"].shape[1:])
            draw = self.random.standard_normal if self.normal else self.random.gumbel
            feed["noise"] = np.zeros(shape, np.float32) if deterministic else draw(size=shape).astype(np.float32)
        elif not deterministic:
            raise ValueError("the model was exported without --sample: it takes the best action only")
        for s in self.states:
            feed[s["input"]] = self._state(s, rows, state, episode_start)
        result = dict(zip(self.outputs, self.session.run(None, feed)))
        state = {s["input"]: result[s["output"]] for s in self.states} or None
        actions = result["sample"] if "sample" in result and not deterministic else result.get("action", result[self.outputs[0]])
        return (actions[0] if single else actions), state

    def _state(self, s, rows, state, episode_start):
        initial = np.asarray(s["initial"], np.float32)
        initial = np.broadcast_to(initial.reshape(s["shape"] if initial.size > 1 else ()), s["shape"])
        value = np.broadcast_to(initial, (rows, *s["shape"])) if state is None else state[s["input"]]
        if state is not None and episode_start is not None:
            value = np.where(np.reshape(episode_start, (-1,) + (1,) * len(s["shape"])), initial, value)
        return np.ascontiguousarray(value, np.float32)

    def _array(self, name, value, single):
        kinds = {"tensor(float)": np.float32, "tensor(double)": np.float64, "tensor(int64)": np.int64, "tensor(int32)": np.int32, "tensor(bool)": bool, "tensor(uint8)": np.uint8}
        value = np.asarray(value, kinds[self.inputs[name].type])
        return value[None] if single else value
