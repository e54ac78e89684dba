"""Acts with model.onnx. It needs numpy and onnxruntime only."""
import json
import os
import warnings

import numpy as np
import onnxruntime

TYPES = {
    "tensor(float)": np.float32, "tensor(double)": np.float64, "tensor(float16)": np.float16, "tensor(bool)": np.bool_,
    "tensor(int8)": np.int8, "tensor(int16)": np.int16, "tensor(int32)": np.int32, "tensor(int64)": np.int64,
    "tensor(uint8)": np.uint8, "tensor(uint16)": np.uint16, "tensor(uint32)": np.uint32, "tensor(uint64)": np.uint64,
}


class Agent:
    """predict is that of a Stable-Baselines3 model, so an Agent can be given to evaluate_policy and to whatever else calls it."""

    def __init__(self, path=os.path.join(os.path.dirname(os.path.abspath(__file__)), "model.onnx"), seed=None, allow_nonfinite=False):
        """seed is that of drawn actions. allow_nonfinite takes NaN, infinities, and choices that there are not in observations, which are refused otherwise."""
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
        self.allow_nonfinite = allow_nonfinite
        # Whether it was said that actions are drawn where nobody asked for either.
        self.told = False
        # In these the model itself replaces what is not known.
        self.missing = set(meta.get("onnxrl.scales", "").split(","))
        # What there is to choose from in inputs of choices.
        self.spaces = json.loads(meta.get("onnxrl.spaces", "{}")).get("inputs", {})
        # How many observations were refused for NaN, an infinity, or a choice that there is not.
        self.nonfinite_refused = 0

    def predict(self, observation, state=None, episode_start=None, deterministic=None, action_masks=None):
        """Returns actions as an array, and the state to pass with the next observation.

        observation is an array, or a dict of arrays by input, of one environment or with a batch axis in front of several;
        actions have that axis where observations have it. The state is a tuple of arrays where the model remembers, else
        what was passed; episode_start says of each row whether its episode begins with it. action_masks, as MaskablePPO
        takes them, are True where an action is valid. With deterministic=False actions are drawn as the policy does in
        training, with the best action where there is nothing to draw; the generator is that of the constructor's seed.
        Without deterministic they are drawn too, as of a Stable-Baselines3 model, which is said once.
        """
        if deterministic is None and "noise" in self.inputs and not self.told:
            self.told = True
            warnings.warn("actions are drawn: predict(..., deterministic=True) takes the best one, deterministic=False draws without this warning", stacklevel=2)
        feed, single = self._observe(observation)
        rows = len(next(iter(feed.values())))
        if "mask" in self.inputs:
            feed["mask"] = self._mask(action_masks, feed.get("mask"), rows)
        elif action_masks is not None:
            raise ValueError("the model takes no action masks")
        if "noise" in self.inputs:
            shape = (rows, *self.inputs["noise"].shape[1:])
            draw = self.random.standard_normal if self.normal else self.random.gumbel
            feed["noise"] = np.zeros(shape, np.float32) if deterministic else draw(size=shape).astype(np.float32)
        elif not deterministic and {"log_probs", "action_mean"} & set(self.outputs):
            warnings.warn("the model cannot draw actions: it takes the best one (predict(..., deterministic=True) says so)", stacklevel=2)
        for s, value in zip(self.states, self._state(rows, state, episode_start)):
            feed[s["input"]] = value
        result = dict(zip(self.outputs, self.session.run(None, feed)))
        if self.states:
            state = tuple(result[s["output"]] for s in self.states)
        actions = result["sample"] if "sample" in result and not deterministic else result.get("action", result[self.outputs[0]])
        return (actions.squeeze(axis=0) if single else actions), state

    def _observe(self, observation):
        """The observation by input, with a batch axis in front, and whether that was added."""
        if isinstance(observation, tuple):
            raise ValueError("observation is a tuple: reset() and step() of a Gymnasium environment return the observation first, pass only that")
        if not isinstance(observation, dict):
            if len(self.observations) != 1:
                raise ValueError(f"observation is no dict: expected one with {self.observations}")
            observation = {self.observations[0]: observation}
        given = {name for name in observation if name != "mask" or "mask" not in self.inputs}
        if given != set(self.observations):
            raise ValueError(f"observation has {sorted(given)}, expected {sorted(self.observations)}")
        feed, single = {}, None
        for name, value in observation.items():
            port = self.inputs[name]
            value, shape = np.asarray(value, TYPES[port.type]), port.shape
            fixed = [(have, want) for have, want in zip(reversed(value.shape), reversed(shape[1:])) if isinstance(want, int)]
            if value.ndim not in (len(shape) - 1, len(shape)) or any(have != want for have, want in fixed):
                raise ValueError(f"observation {name!r} has the shape {value.shape}, expected {tuple(shape[1:])} or (n, *{tuple(shape[1:])})")
            if name == "mask":
                feed[name] = value
                continue
            if single is None:
                single = value.ndim < len(shape)
            if single != (value.ndim < len(shape)):
                raise ValueError(f"observation {name!r} has the shape {value.shape}: some observations have a batch axis and others do not")
            feed[name] = value[None] if single else value
            self._finite(name, value)
            self._choices(name, feed[name])
        if len({len(v) for name, v in feed.items() if name != "mask"}) != 1:
            raise ValueError(f"observations of different numbers of rows: { {name: len(v) for name, v in feed.items()} }")
        return feed, single

    def _finite(self, name, value):
        if self.allow_nonfinite or name in self.missing or value.dtype.kind != "f" or np.isfinite(value).all():
            return
        self.nonfinite_refused += 1
        at = tuple(int(i) for i in np.argwhere(~np.isfinite(value))[0])
        raise ValueError(f"observation {name!r}: element {list(at)} is {value[at]}, expected finite numbers (Agent(allow_nonfinite=True) takes others)")

    def _choices(self, name, value):
        space = self.spaces.get(name, {})
        if self.allow_nonfinite or space.get("type") not in ("discrete", "multi_discrete"):
            return
        low = np.asarray(space.get("start", [0] * len(space["n"])), np.int64)
        high = low + np.asarray(space["n"], np.int64) - 1
        rows = value.reshape(len(value), -1)
        bad = np.argwhere((rows < low) | (rows > high))
        if len(bad):
            self.nonfinite_refused += 1
            row, k = (int(i) for i in bad[0])
            raise ValueError(f"observation {name!r}: element {k} of row {row} is {rows[row, k]}, expected {low[k]} to {high[k]} (Agent(allow_nonfinite=True) takes others)")

    def _mask(self, masks, observed, rows):
        shape = (rows, *self.inputs["mask"].shape[1:])
        masks = observed if masks is None else masks
        if masks is None:
            return np.ones(shape, np.bool_)
        masks = np.asarray(masks, np.bool_)
        if masks.size != np.prod(shape):
            raise ValueError(f"action_masks have the shape {masks.shape}, expected {shape}")
        return masks.reshape(shape)

    def _state(self, rows, state, episode_start):
        if state is not None and self.states and len(state) != len(self.states):
            raise ValueError(f"state has {len(state)} arrays, expected {len(self.states)}")
        for i, s in enumerate(self.states):
            initial = np.asarray(s["initial"], np.float32)
            initial = np.broadcast_to(initial.reshape(s["shape"] if initial.size > 1 else ()), s["shape"])
            value = np.broadcast_to(initial, (rows, *s["shape"]))
            if state is not None:
                if np.shape(state[i]) != value.shape:
                    raise ValueError(f"state {i} has the shape {np.shape(state[i])}, expected {value.shape}")
                starts = np.zeros(rows, np.bool_) if episode_start is None else np.asarray(episode_start, np.bool_)
                value = np.where(starts.reshape(-1, *(1 for _ in s["shape"])), value, state[i])
            yield np.ascontiguousarray(value, np.float32)
