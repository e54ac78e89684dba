"""Reproduces the recorded outputs with numpy and onnxruntime only, and acts with the class of agent.py."""
import os
import sys

import numpy as np
import onnxruntime

from agent import Agent

folder = os.path.dirname(os.path.abspath(__file__))
session = onnxruntime.InferenceSession(os.path.join(folder, "model.onnx"), providers=["CPUExecutionProvider"])
recorded = np.load(os.path.join(folder, "recorded.npz"))
feed = {i.name: recorded["input." + i.name] for i in session.get_inputs()}
bad = 0
for port, got in zip(session.get_outputs(), session.run(None, feed)):
    want = recorded["output." + port.name]
    if got.dtype.kind == "f":
        error = np.max(np.abs(got - want) / (1 + np.abs(want)))
        same = error <= 1e-4
        print(f"{port.name} {got.dtype}{list(got.shape)}: largest error {error:.2g}")
    else:
        same = np.array_equal(got, want)
        print(f"{port.name} {got.dtype}{list(got.shape)}: {np.sum(got == want)} of {want.size} equal")
    bad += not same

agent = Agent()
observation = {name: recorded["input." + name][0] for name in agent.observations}
mask = recorded["input.mask"][0] if "mask" in agent.inputs else None
print("the first observation:", agent.predict(observation, deterministic=True, action_masks=mask)[0])
sys.exit(bad > 0)
