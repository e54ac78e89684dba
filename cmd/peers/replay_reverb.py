#!/usr/bin/env python3
"""Compares `onnxrl replay serve` with dm-reverb: samples per second of 1, 4 and 16 clients, uniform and prioritised.

Both keep the same rows (HalfCheetah's form: 17 observations, 6 actions, reward, discount, next observations), both servers are processes of their own, and all clients of a side are connections of one process: goroutines of `onnxrl bench replay`, and threads of TensorFlow's for Reverb, each with a data set of its own that batches 256 (reverb.TrajectoryDataset, whose work is done in C++). Sides take turns; every figure is the median of the turns.

    go build ./cmd/onnxrl
    python3.11 -m venv reverb && reverb/bin/pip install 'dm-reverb[tensorflow]==0.14.0'
    reverb/bin/python cmd/peers/replay_reverb.py --onnxrl ./onnxrl
"""
import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
FEATURES, ACTIONS, BATCH = 17, 6, 256
TABLES = ("uniform", "prioritised")


def serve(size):
    """Is Reverb's server, until its input ends."""
    import reverb

    def table(name, sampler):
        return reverb.Table(name=name, sampler=sampler, remover=reverb.selectors.Fifo(), max_size=size, rate_limiter=reverb.rate_limiters.MinSize(1), signature=signature())

    server = reverb.Server([table("uniform", reverb.selectors.Uniform()), table("prioritised", reverb.selectors.Prioritized(0.6))], port=None)
    print(server.port, flush=True)
    sys.stdin.read()
    server.stop()


def signature():
    import tensorflow as tf

    def of(name, *shape):
        return tf.TensorSpec((1,) + shape, tf.float32, name=name)

    return {"obs": of("obs", FEATURES), "action": of("action", ACTIONS), "reward": of("reward"), "discount": of("discount"), "next": of("next", FEATURES)}


class Reverb:
    def __init__(self, size):
        import numpy as np
        import reverb
        self.process = subprocess.Popen([sys.executable, __file__, "--serve", str(size)], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.address = "localhost:%d" % int(self.process.stdout.readline())
        client, rng, self.pushed = reverb.Client(self.address), np.random.default_rng(0), {}
        rows = rng.standard_normal((size + 1, FEATURES)).astype(np.float32)
        action, one = np.zeros(ACTIONS, np.float32), np.float32(1)
        for table in TABLES:
            begun = time.monotonic()
            # A chunk for each transition, which is the fastest to sample: others would travel with it.
            with client.trajectory_writer(num_keep_alive_refs=1) as w:
                for i in range(size):
                    w.append({"obs": rows[i], "action": action, "reward": one, "discount": one, "next": rows[i + 1]})
                    w.create_item(table=table, priority=1.0, trajectory={k: h[-1:] for k, h in w.history.items()})
                    if i % 50 == 49:
                        w.flush()
                w.flush()
            self.pushed[table] = size / (time.monotonic() - begun)

    def samples(self, table, clients, seconds):
        """Transitions a second of so many clients."""
        import reverb
        counts, ready, stop = [0] * clients, threading.Barrier(clients + 1), threading.Event()

        def run(i):
            it = iter(self.dataset(reverb, table))
            next(it)
            ready.wait()
            while not stop.is_set():
                next(it)
                counts[i] += BATCH

        threads = [threading.Thread(target=run, args=(i,)) for i in range(clients)]
        for t in threads:
            t.start()
        ready.wait()
        before, begun = sum(counts), time.monotonic()
        time.sleep(seconds)
        n, took = sum(counts) - before, time.monotonic() - begun
        stop.set()
        for t in threads:
            t.join()
        return n / took

    def dataset(self, reverb, table):
        return reverb.TrajectoryDataset.from_table_signature(self.address, table, max_in_flight_samples_per_worker=4 * BATCH).batch(BATCH, drop_remainder=True).prefetch(4)

    def close(self):
        self.process.stdin.close()
        self.process.wait()


class Onnxrl:
    def __init__(self, program, size, dir):
        config = os.path.join(dir, "replay.yaml")
        with open(config, "w") as f:
            f.write(f"listen: 127.0.0.1:0\ntables:\n  uniform: {{capacity: {2 * size}}}\n  prioritised: {{selector: prioritised, capacity: {2 * size}}}\n")
        self.process = subprocess.Popen([program, "replay", "serve", "--json", config], stdout=subprocess.PIPE)
        self.url = "grpc://" + json.loads(self.process.stdout.readline())["listen"]
        self.program, self.size, self.pushed, self.here = program, size, {}, {}

    def samples(self, table, clients, seconds):
        out = subprocess.run([self.program, "bench", "replay", "-q", "--json", "--url", self.url, "--tables", table, "--clients", str(clients), "--transitions", str(self.size), "--rounds", "1", "--round", f"{seconds}s"], check=True, capture_output=True).stdout
        for row in json.loads(out)["rows"]:
            if row["name"].startswith("push/"):
                self.pushed[table] = row["value"]
            else:
                value = row["value"]
                self.here.setdefault((table, clients), []).append(row["reference"])
        return value

    def close(self):
        self.process.terminate()
        self.process.wait()


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--onnxrl", default="onnxrl", help="the program")
    p.add_argument("--size", type=int, default=50_000, help="transitions of a table")
    p.add_argument("--clients", type=int, nargs="+", default=[1, 4, 16])
    p.add_argument("--turns", type=int, default=5)
    p.add_argument("--seconds", type=float, default=2, help="time of one measurement")
    p.add_argument("--serve", type=int, help=argparse.SUPPRESS)
    a = p.parse_args()
    if a.serve:
        serve(a.serve)
        return
    with tempfile.TemporaryDirectory() as dir:
        ours, theirs = Onnxrl(a.onnxrl, a.size, dir), Reverb(a.size)
        rows = []
        for table in TABLES:
            for n in a.clients:
                x, y = [], []
                for _ in range(a.turns):
                    x.append(ours.samples(table, n, a.seconds))
                    y.append(theirs.samples(table, n, a.seconds))
                rows.append({
                    "table": table, "clients": n, "onnxrl": statistics.median(x), "reverb": statistics.median(y), "ratio": statistics.median(u / v for u, v in zip(x, y)),
                    "in_process": statistics.median(ours.here[table, n]),
                })
                print("%-12s %2d clients: %10.0f transitions/s, Reverb %10.0f: %.2f times; in one process %10.0f" % (table, n, *(rows[-1][k] for k in ("onnxrl", "reverb", "ratio", "in_process"))), file=sys.stderr, flush=True)
        report = {"load": os.getloadavg()[0], "push": {"onnxrl": ours.pushed, "reverb": theirs.pushed}, "samples": rows}
        ours.close()
        theirs.close()
    print(json.dumps(report, indent=2))


if __name__ == "__main__":
    main()
