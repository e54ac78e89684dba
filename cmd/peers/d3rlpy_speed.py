"""Updates a second of onnxrl's offline algorithms beside d3rlpy's: same networks, batch and number of updates, one thread each.

    pip install d3rlpy==2.8.1
    python cmd/peers/d3rlpy_speed.py --onnxrl ./onnxrl

Both learn from the same episodes of Pendulum, which onnxrl records at random; layers of 256 and 256, batches of 256. What a run costs beside its updates is taken away: each side's time is that of a run with --updates updates less that of one with a tenth of them, and sides take turns, --repeats times; the ratio is that of the medians. Settings that change the work are d3rlpy's defaults on both sides (10 actions and the Lagrange multiplier for CQL, two critics, policy delay 2 for TD3+BC).
"""

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import tempfile
import time

ENV = "env: {kind: pendulum}\n"
OURS = {
    "bc": "{kind: bc, hidden: [256, 256], batch_size: 256}",
    "td3_bc": "{kind: td3_bc, hidden: [256, 256], batch_size: 256}",
    "iql": "{kind: iql, hidden: [256, 256], batch_size: 256}",
    "awac": "{kind: awac, hidden: [256, 256], batch_size: 256}",
    "cql": "{kind: cql, hidden: [256, 256], batch_size: 256, conservative: {alpha_learning_rate: 1.0e-4}}",
}


def run(args, *line):
    env = os.environ | {"GOMAXPROCS": "1"}
    done = subprocess.run([args.onnxrl, *line], capture_output=True, text=True, env=env)
    if done.returncode:
        raise SystemExit(done.stderr)
    return done.stdout


def ours(args, name, dataset, folder, updates):
    document = folder / f"{name}.yaml"
    document.write_text(ENV + f"seed: 1\nagent: {args.agents.get(name, OURS[name])}\ndataset: {{path: {dataset}}}\ntrain: {{total_env_steps: {updates}, threads: 1, log_interval_steps: {updates}, checkpoint: {{every_steps: {updates}}}, validation: {{every_steps: 0}}}}\npublish: {{observations: 50}}\n")
    out = folder / f"{name}-{time.time_ns()}"
    report = json.loads(run(args, "train", str(document), "--out", str(out), "--json", "-q"))
    assert report["runs"][0]["learner_steps"] > 0, report
    return report["runs"][0]["seconds"]


def read(folder):
    """The transitions of a data set in Minari's layout."""
    import h5py
    import numpy as np

    rows = {"obs": [], "action": [], "reward": [], "timeout": []}
    with h5py.File(folder / "data" / "main_data.hdf5") as f:
        for e in f.values():
            n = len(e["rewards"])
            rows["obs"].append(np.asarray(e["observations"])[:n].astype("float32"))
            rows["action"].append(np.asarray(e["actions"]).astype("float32"))
            rows["reward"].append(np.asarray(e["rewards"]).astype("float32"))
            rows["timeout"].append(np.arange(n) == n - 1)
    return {k: np.concatenate(v) for k, v in rows.items()}


def theirs(name, rows, updates):
    import d3rlpy
    import numpy as np
    import torch

    torch.set_num_threads(1)
    # Actions are scaled to [-1, 1], as they are in onnxrl.
    data = d3rlpy.dataset.MDPDataset(rows["obs"], rows["action"] / 2, rows["reward"], np.zeros(len(rows["reward"]), bool), rows["timeout"])
    kind = {"bc": d3rlpy.algos.BCConfig, "td3_bc": d3rlpy.algos.TD3PlusBCConfig, "iql": d3rlpy.algos.IQLConfig, "awac": d3rlpy.algos.AWACConfig, "cql": d3rlpy.algos.CQLConfig}[name]
    algo = kind(batch_size=256).create(device="cpu")
    algo.build_with_dataset(data)
    began = time.perf_counter()
    for _ in range(updates):
        algo.update(data_batch(algo, data))
    return time.perf_counter() - began


def data_batch(algo, data):
    return data.sample_transition_batch(algo.config.batch_size)


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--onnxrl", required=True)
    p.add_argument("--updates", type=int, default=2000)
    p.add_argument("--repeats", type=int, default=3)
    p.add_argument("--algorithms", nargs="+", default=list(OURS))
    p.add_argument("--agent", nargs=2, action="append", default=[], metavar=("NAME", "SECTION"), help="another section agent")
    args = p.parse_args()
    args.agents = dict(args.agent)
    with tempfile.TemporaryDirectory() as temp:
        folder = pathlib.Path(temp)
        document = folder / "behaviour.yaml"
        document.write_text(ENV + "agent: {kind: sac, hidden: [8], learning_starts: 500}\ntrain: {num_envs: 1, total_env_steps: 400}\npublish: {observations: 50}\n")
        run(args, "train", str(document), "--out", str(folder / "behaviour"), "-q")
        run(args, "record", str(folder / "behaviour"), "--random-episodes", "1", "--episodes", "50", "-o", str(folder / "data"), "-q")
        run(args, "dataset", "export", str(folder / "data"), "--id", "pendulum/random-v0", "-o", str(folder / "minari"), "-q")
        rows = read(folder / "minari")
        short = args.updates // 10
        for name in args.algorithms:
            mine, other = [], []
            for _ in range(args.repeats):
                mine.append(ours(args, name, folder / "data", folder, args.updates) - ours(args, name, folder / "data", folder, short))
                other.append(theirs(name, rows, args.updates) - theirs(name, rows, short))
            a, b = ((args.updates - short) / statistics.median(x) for x in (mine, other))
            print(json.dumps({"algorithm": name, "onnxrl_updates_per_second": round(a, 1), "d3rlpy_updates_per_second": round(b, 1), "ratio": round(a / b, 2)}), flush=True)


if __name__ == "__main__":
    main()
