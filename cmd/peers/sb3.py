"""Compares the speed of whole trainings with Stable-Baselines3's and, with --sbx PYTHON, with SBX's, which is the same on JAX: same environment, network, batch and update ratio, in turns.

Each row is one of "onnxrl bench train". Every side is first tried with one thread and with as many as there are cores, on short runs, and then measured with the better number; the table shows medians of --runs runs that alternate, and ratios are medians of the ratios within a round. Times are those of learning alone, without making environments
and networks, and without JAX's compilation (sb3_sbx.py says how). Rows that learn only after some random env steps take equally many env steps on all sides; the others take more of them here, because there they would be over in a moment.

SBX gets every hyper-parameter of Stable-Baselines3's class that it knows, not its own defaults, and Stable-Baselines3's network shapes; it has no A2C. It remains different in what its code does: PPO clips the gradients of actor and critic apart, DQN does not clip them, the critics' losses of TD3 and DDPG have a factor of one half, TD3 moves its targets at every
update and its actor follows the smaller of the two critics. None of these is a large part of the work.

SBX is best installed apart from Stable-Baselines3: python -m venv sbx && sbx/bin/pip install sbx-rl==0.28.0 jax==0.10.2 stable-baselines3==2.9.2 gymnasium==1.4.0

With --check the exit status is 1 when a row misses a target: the one against Stable-Baselines3, or being faster than SBX.
"""
import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time

import gymnasium
import stable_baselines3
import torch
from sb3_rows import ROWS
from stable_baselines3.common.env_util import make_vec_env


def theirs(name, threads, steps):
    row = ROWS[name]
    torch.set_num_threads(threads)
    env = make_vec_env(row.env, n_envs=row.num_envs, seed=1)
    model = getattr(stable_baselines3, row.algorithm)("MlpPolicy", env, seed=1, device="cpu", verbose=0, **row.kwargs)
    start = time.perf_counter()
    model.learn(total_timesteps=steps)
    took = time.perf_counter() - start
    env.close()
    return {"env_steps_per_second": model.num_timesteps / took, "env_steps": model.num_timesteps, "updates": model._n_updates}


def ours(program, name, threads, steps):
    row = ROWS[name]
    sets = [x for s in [*row.sets, f"train.total_env_steps={steps}"] for x in ("--set", s)]
    run = subprocess.run([program, "bench", "train", row.document or name, "--threads", str(threads), *sets, "--json", "-q", "--seed", "1"], capture_output=True, text=True)
    if run.returncode != 0:
        raise SystemExit(f"onnxrl bench train {name} failed with status {run.returncode}:\n{run.stderr}")
    return json.loads(run.stdout)["rows"][0]


class SBX:
    """Processes of sb3_sbx.py, one for each number of threads, which stay for all rows."""

    def __init__(self, python):
        self.python, self.processes, self.versions = python, {}, {}
        # What one process has compiled, the next ones need not compile again.
        self.cache = tempfile.TemporaryDirectory()

    def process(self, threads):
        if threads not in self.processes:
            env = {"JAX_COMPILATION_CACHE_DIR": self.cache.name, "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0", **os.environ, "JAX_PLATFORMS": "cpu", "PJRT_NPROC": str(threads), "NPROC": str(threads), "PYTHONDONTWRITEBYTECODE": "1"}
            if threads == 1:
                env["XLA_FLAGS"] = (env.get("XLA_FLAGS", "") + " --xla_cpu_multi_thread_eigen=false").strip()
            script = os.path.join(os.path.dirname(os.path.abspath(__file__)), "sb3_sbx.py")
            self.processes[threads] = subprocess.Popen([self.python, "-W", "ignore", script, str(threads)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=env)
            self.versions = self.answer(threads)
        return self.processes[threads]

    def answer(self, threads):
        line = self.processes[threads].stdout.readline()
        if not line:
            raise SystemExit(f"{self.python} sb3_sbx.py ended with status {self.processes[threads].wait()}")
        return json.loads(line)

    def train(self, name, threads, steps):
        p = self.process(threads)
        p.stdin.write(json.dumps({"row": name, "steps": steps}) + "\n")
        p.stdin.flush()
        return self.answer(threads)

    def has(self, algorithm, threads):
        self.process(threads)
        return algorithm in self.versions["algorithms"]

    def close(self):
        for p in self.processes.values():
            p.stdin.close()
            p.wait()
        self.cache.cleanup()


def best(train, steps, cores, trials):
    counts = sorted({1, cores})
    tried = [(train(t, steps)["env_steps_per_second"], t) for _ in range(trials) for t in counts]
    return max(tried)[1]


def measure(name, sides, runs, trials, cores, scale):
    """The runs of each side: sides are functions of threads and env steps, with their env steps."""
    # A trial must be long enough to learn after the random steps.
    least = 200 + 2 * ROWS[name].kwargs.get("learning_starts", 100)
    chosen = {side: best(train, max(least, int(steps * scale) // 4), cores, trials) for side, (train, steps) in sides.items()}
    done = {side: [] for side in sides}
    for _ in range(runs):
        for side, (train, steps) in sides.items():
            done[side].append(train(chosen[side], int(steps * scale)))
    return chosen, done


def report(name, chosen, done):
    row = ROWS[name]
    rates = {side: [r["env_steps_per_second"] for r in runs] for side, runs in done.items()}
    out = {"row": name, "target": row.target}
    for side in ("onnxrl", "sb3", "sbx"):
        out[side + "_threads"] = chosen.get(side)
        out[side + "_env_steps"] = done[side][0]["env_steps"] if side in done else None
        out[side + "_env_steps_per_second"] = statistics.median(rates[side]) if side in rates else None
    out["ratio"] = statistics.median(a / b for a, b in zip(rates["onnxrl"], rates["sb3"]))
    out["passed"] = out["ratio"] >= row.target
    out["sb3_updates"] = done["sb3"][0]["updates"]
    out["sbx_updates"] = out["sbx_ratio"] = out["sbx_passed"] = out["sbx_compilations"] = None
    if "sbx" in done:
        out["sbx_updates"], out["sbx_compilations"] = done["sbx"][0]["updates"], max(r["compilations"] for r in done["sbx"])
        if out["sbx_updates"] != out["sb3_updates"]:
            raise SystemExit(f"{name}: SBX made {out['sbx_updates']} updates and Stable-Baselines3 {out['sb3_updates']}: these are different trainings")
        out["sbx_ratio"] = statistics.median(a / b for a, b in zip(rates["onnxrl"], rates["sbx"]))
        out["sbx_passed"] = out["sbx_ratio"] > 1
    return out


def show(r, sbx):
    line = (f"{r['row']:14s} onnxrl {r['onnxrl_env_steps_per_second']:8.0f}/s ({r['onnxrl_threads']} threads)   SB3 {r['sb3_env_steps_per_second']:6.0f}/s ({r['sb3_threads']})   "
            f"{r['ratio']:6.1f} times, target {r['target']}: {'pass' if r['passed'] else 'MISS'}")
    if r["sbx_ratio"] is not None:
        line += f"   SBX {r['sbx_env_steps_per_second']:6.0f}/s ({r['sbx_threads']})   {r['sbx_ratio']:6.1f} times, target > 1: {'pass' if r['sbx_passed'] else 'MISS'}"
        if r["sbx_compilations"]:
            line += f"   ({r['sbx_compilations']} compilations were timed)"
    elif sbx:
        line += f"   SBX has no {ROWS[r['row']].algorithm}"
    print(line, flush=True)


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("rows", nargs="*", help="of " + ", ".join(ROWS))
    p.add_argument("--onnxrl", required=True, help="the built program")
    p.add_argument("--sbx", metavar="PYTHON", help="an interpreter that has sbx-rl: also compare with SBX")
    p.add_argument("--runs", type=int, default=5)
    p.add_argument("--trials", type=int, default=2, help="short runs of each side with each number of threads, before the number that was in the fastest of them is taken")
    p.add_argument("--scale", type=float, default=1, help="factor on the env steps of all sides")
    p.add_argument("--check", action="store_true", help="end with status 1 when a row misses a target")
    p.add_argument("--json", action="store_true")
    args = p.parse_args()
    if unknown := set(args.rows) - set(ROWS):
        p.error(f"no row {', '.join(sorted(unknown))}: expected {', '.join(ROWS)}")
    cores = len(os.sched_getaffinity(0))
    sbx = SBX(args.sbx) if args.sbx else None
    reports = []
    try:
        for name in args.rows or ROWS:
            row = ROWS[name]
            sides = {"onnxrl": (lambda t, n: ours(args.onnxrl, name, t, n), row.here), "sb3": (lambda t, n: theirs(name, t, n), row.there)}
            if sbx and sbx.has(row.algorithm, cores):
                sides["sbx"] = (lambda t, n: sbx.train(name, t, n), row.there)
            reports.append(report(name, *measure(name, sides, args.runs, args.trials, cores, args.scale)))
            if not args.json:
                show(reports[-1], sbx)
    finally:
        if sbx:
            sbx.close()
    missed = sum(not r["passed"] or r["sbx_passed"] is False for r in reports)
    versions = {"stable_baselines3": stable_baselines3.__version__, "torch": torch.__version__, "gymnasium": gymnasium.__version__, "cores": cores, "sbx": sbx and sbx.versions.get("sbx"), "jax": sbx and sbx.versions.get("jax")}
    if args.json:
        print(json.dumps({"rows": reports, "missed": missed, **versions}, indent=1))
    else:
        print(", ".join(f"{k} {v}" for k, v in versions.items() if v is not None))
    return 1 if args.check and missed else 0


if __name__ == "__main__":
    sys.exit(main())
