"""The layers that are networks: open.go of onnxrl's package agents/scml/hierarchy. The decision of a day is one graph, that of a round another one."""
import json
import os

import numpy as np

from . import executor, observe
from .shield import BUY, SELL

# How many negotiations a graph is given at once; rows that are not used are zeros.
THREADS = 16

# The numbers of a residual, and those of an answer in its place.
RESIDUAL, DIRECT = 4, 5

DESCRIPTION = "agent.json"

# What graphs decide.
OUTPUT = "action"


class Networks:
    """The graphs that agent.json of a folder names. Every fault of the files is a ValueError that names file and key, input or output."""

    def __init__(self, folder):
        path = os.path.join(folder, DESCRIPTION)
        try:
            with open(path) as f:
                d = json.load(f)
        except ValueError as e:
            raise ValueError(f"{path}: {e}") from e
        if not isinstance(d, dict):
            raise ValueError(f"{path}: expected an object")
        known = {"layout": int, "goal": int, "horizon": int, "direct": bool, "day": str, "round": str}
        for key, value in d.items():
            if key not in known:
                raise ValueError(f"{path}: {key} is not known; expected {', '.join(known)}")
            if type(value) is not known[key]:
                raise ValueError(f"{path}: {key} is {value!r}, expected {known[key].__name__}")
        if d.get("layout") != observe.VERSION:
            raise ValueError(f"{path}: layout is {d.get('layout')}; these modules write observations of layout {observe.VERSION}")
        if d.get("goal") not in (executor.WHOLE, executor.FULL):
            raise ValueError(f"{path}: goal is {d.get('goal')}, expected {executor.WHOLE} or {executor.FULL}")
        if not 0 <= d.get("horizon", -1) <= 1000:
            raise ValueError(f"{path}: horizon is {d.get('horizon')}, expected a number of days from 0 to 1000")
        self.direct = d.get("direct", False)
        self.manages, self.executes = "day" in d, "round" in d
        if self.direct and not self.executes:
            raise ValueError(f"{path}: direct is true, and there is no round that answers")
        if self.manages:
            days = (d["horizon"] + 1) * observe.TEMPORAL
            self._day = Graph(os.path.join(folder, d["day"]), 1, {"static": observe.STATIC, "temporal": days, "role": observe.ROLE}, d["goal"])
        if self.executes:
            self._size = DIRECT if self.direct else RESIDUAL
            self._round = Graph(os.path.join(folder, d["round"]), THREADS, {
                "thread": observe.FEATURES, "history": observe.MOVES * observe.MOVE_FEATURES, "goal": executor.FULL,
                "threads": THREADS * observe.FEATURES, "present": THREADS, "oneself": THREADS}, self._size)

    def goal(self, day):
        """Returns the goal of a day as a vector."""
        f = self._day.flat
        day.write(f["static"][0], f["temporal"][0], f["role"][0])
        return self._day.run()[0].tolist()

    def change(self, threads, goal):
        """Writes into threads how the answers of the baseline change."""
        n = len(threads)
        if n > THREADS:
            raise ValueError(f"{n} negotiations at once, at most {THREADS} are possible")
        f = self._round.flat
        for a in f.values():
            a.fill(0)
        histories = f["history"].reshape(THREADS, observe.MOVES, observe.MOVE_FEATURES)
        for i, t in enumerate(threads):
            t.write(f["thread"][i], histories[i])
        f["goal"][:n] = write_goal(goal, threads[0].lines)
        f["threads"][:n] = f["thread"].reshape(-1)
        f["present"][:n, :n] = 1
        for i in range(n):
            f["oneself"][i, i] = 1
        for t, change in zip(threads, self._round.run()[:n].tolist()):
            t.change = change


def write_goal(goal, lines):
    """Returns a goal for the layers below the manager: of each bucket [Q_buy, P_buy, Q_sell, P_sell], quantities relative to the lines."""
    return [x for b in range(executor.BUCKETS) for side in (BUY, SELL) for x in (float(goal.targets[side][b][0]) / float(lines), goal.targets[side][b][1])]


class Graph:
    """One ONNX file with a number of rows. flat has a float32 array [rows, n] for each input that may be read."""

    def __init__(self, path, rows, inputs, size):
        import onnxruntime
        if not os.path.exists(path):
            raise ValueError(f"{path}: there is no such file")
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        try:
            self._session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
        except Exception as e:
            raise ValueError(f"{path}: {e}") from e
        self.flat = {name: np.zeros((rows, n), np.float32) for name, n in inputs.items()}
        self._feed = {}
        for i in self._session.get_inputs():
            if i.name not in inputs:
                raise ValueError(f"{path}: it reads {i.name!r}; a graph of its kind is given {', '.join(sorted(inputs))}")
            shape = [d if isinstance(d, int) else rows if k == 0 else -1 for k, d in enumerate(i.shape)]
            numbers = int(np.prod([d for d in shape if d >= 0]))
            if i.type != "tensor(float)" or shape.count(-1) > 1 or -1 not in shape and numbers != rows * inputs[i.name] or not shape or shape[0] != rows or numbers == 0 or rows * inputs[i.name] % numbers:
                raise ValueError(f"{path}: its input {i.name!r} is {i.type} {i.shape}, expected {inputs[i.name]} float32 for each of {rows} rows")
            # Arrays share their numbers with those of flat.
            self._feed[i.name] = self.flat[i.name].reshape(shape)
        outputs = sorted(o.name for o in self._session.get_outputs())
        if OUTPUT not in outputs:
            raise ValueError(f"{path}: it has no output {OUTPUT!r}, only {', '.join(outputs)}")
        result = self.run()
        if result.shape != (rows, size):
            raise ValueError(f"{path}: its output {OUTPUT!r} has shape {result.shape}, expected {(rows, size)}")

    def run(self):
        """Returns the output for what flat holds."""
        return self._session.run([OUTPUT], self._feed)[0]
