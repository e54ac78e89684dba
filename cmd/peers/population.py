"""Trains the same population with `onnxrl train population` and in Stable-Baselines3 (population_sb3.py), in turns, and prints how many times faster onnxrl is.

    cmd/peers/population.sh [--rounds 3] [--threads 2] [--set KEY=VALUE …] [--out FILE] [--check]

The document is population_speed.yaml, whose data `onnxrl data prepare` writes for both. --set edits the document on both sides, for instance experts.interval_steps=300 for a short form. PyTorch is first tried with one thread and with --threads
on a short form, and then runs with the better number; onnxrl has --threads cores by GOMAXPROCS. In each round each side runs once, in the order of the round. experts is the ratio of updates per second of wall time in which experts train
(onnxrl's includes validation, checkpoints and evolution, so theirs does as well), router that of decisions per second, and whole that of wall times, from the start of the process to its end, without what Python needs to import PyTorch.

With --check the exit status is 1 when a target is missed.
"""
import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time


HERE = os.path.dirname(os.path.abspath(__file__))
EXPERT = os.path.join(HERE, "..", "..", "configs", "experiments", "population_expert.yaml")
TARGETS = {"experts": 2.5, "whole": 4.0}


def sets(a):
    return [x for s in a.set for x in ("--set", s)]


def updates(directory):
    """The updates of all experts, of the log of the search and the results of its intervals."""
    at, total = {}, 0
    for line in open(os.path.join(directory, "members.jsonl")):
        r = json.loads(line)
        key, parent = (r["generation"], r["member"]), (r["generation"] - 1, r["parent"])
        if r.get("rolled_back"):
            raise SystemExit(f"{directory}: {r}: a member has diverged, and has fewer updates than the other side")
        at[key] = int(json.load(open(os.path.join(directory, r["dir"], "interval.json")))["train"].get("train/n_updates", 0))
        total += at[key] - (at[parent] if r["parent"] >= 0 else 0)
    return total


def ours(a, directory):
    out = os.path.join(directory, f"run-{time.monotonic_ns()}")
    env = dict(os.environ, GOMAXPROCS=str(a.threads))
    before, start = os.times(), time.perf_counter()
    run = subprocess.run([a.onnxrl, "train", "population", a.document, "--out", out, "--json", "-q", *sets(a)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=env)
    wall, after = time.perf_counter() - start, os.times()
    if run.returncode != 0:
        raise SystemExit(f"onnxrl train population failed with status {run.returncode}:\n{run.stderr}")
    r = json.loads(run.stdout)
    cpu = after.children_user + after.children_system - before.children_user - before.children_system
    s = r["seconds"]
    experts, router = sum(s["generations"]), sum(s["turns"])
    n, decisions = updates(os.path.join(out, "experts")), r["router"][-1]["decisions"]
    return {
        "env_steps": r["experts"]["env_steps"], "updates": n, "decisions": decisions, "wall_s": wall, "cpu_s": cpu, "busy": cpu / wall / a.threads, "experts_s": experts, "router_s": router, "publish_s": s["publish"],
        "updates_per_second": n / experts, "env_steps_per_second": r["experts"]["env_steps"] / experts, "decisions_per_second": decisions / router, "parameters": parameters(out), "out": out}


def parameters(out):
    """How many parameters the networks have, by the newest checkpoints."""
    count = lambda d, scope: sum(int(np_prod(v["shape"])) for k, v in header(d).items() if k.startswith(scope))
    expert, router = newest(os.path.join(out, "experts"), "generation-"), newest(os.path.join(out, "router"), "generation-")
    agent = "agent/params/trainable/"
    return {"actor": count(expert, agent + "actor."), "critic": count(expert, agent + "critic."), "discriminator": count(expert, "agent/diversity/params/trainable/"), "router": count(router, agent)}


def np_prod(shape):
    n = 1
    for x in shape:
        n *= x
    return n


def newest(directory, prefix):
    found = []
    for root, _, files in os.walk(directory):
        if "arrays.safetensors" in files and prefix in root:
            found.append(os.path.join(root, "arrays.safetensors"))
    return max(found)


def header(path):
    with open(path, "rb") as f:
        return {k: v for k, v in json.loads(f.read(int.from_bytes(f.read(8), "little"))).items() if k != "__metadata__"}


def theirs(a, data, threads, extra=()):
    env = dict(os.environ, OMP_NUM_THREADS=str(threads), KMP_BLOCKTIME="0", PYTHONDONTWRITEBYTECODE="1")
    command = [sys.executable, "-W", "ignore", os.path.join(HERE, "population_sb3.py"), a.document, EXPERT, data, "--threads", str(threads), *sets(a), *extra]
    before = os.times()
    run = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=env)
    after = os.times()
    if run.returncode != 0:
        raise SystemExit(f"population_sb3.py failed with status {run.returncode}:\n{run.stderr}")
    r = json.loads(run.stdout)
    r["cpu_s"] = after.children_user + after.children_system - before.children_user - before.children_system
    # Onnxrl's generations have them as well.
    s = r["experts_s"] + r["validation_s"] + r["evolution_s"]
    r["updates_per_second"], r["env_steps_per_second"] = r["updates"] / s, r["env_steps"] / s
    return r


def same(x, y, num_envs):
    """Both sides must have done the same; learner steps are whole."""
    if x["parameters"] != y["parameters"]:
        raise SystemExit(f"the networks differ: {x['parameters']} parameters, and {y['parameters']} in PyTorch")
    for key, slack in (("env_steps", 0.01), ("updates", 0.03), ("decisions", 0)):
        if abs(x[key] - y[key]) > slack * y[key]:
            raise SystemExit(f"these are different trainings: {x[key]} {key}, and {y[key]} in Stable-Baselines3")


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--onnxrl", required=True, help="the built program")
    p.add_argument("--rounds", type=int, default=3)
    p.add_argument("--threads", type=int, default=2)
    p.add_argument("--torch-threads", type=int, help="threads of PyTorch, instead of trying")
    p.add_argument("--document", default=os.path.join(HERE, "population_speed.yaml"), help="another population over population_expert")
    p.add_argument("--set", action="append", default=[])
    p.add_argument("--out", help="JSON file for all figures")
    p.add_argument("--check", action="store_true")
    a = p.parse_args()
    with tempfile.TemporaryDirectory() as tmp:
        data = os.path.join(tmp, "data")
        subprocess.run([a.onnxrl, "data", "prepare", EXPERT, "--out", data, "-q"], check=True, stdout=subprocess.DEVNULL)
        short = [x for s in ("experts.interval_steps=300", "experts.generations=2", "router.interval_steps=128", "router.every=2", "router.experiment.agent.n_steps=64") for x in ("--set", s)]
        tried = {a.torch_threads: 0} if a.torch_threads else {t: theirs(a, data, t, short)["wall_s"] for t in sorted({1, a.threads})}
        threads = min(tried, key=tried.get)
        print(f"{platform.machine()}, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}; PyTorch with {threads} threads, of {tried}", flush=True)
        rounds = []
        for r in range(a.rounds):
            sides = {"onnxrl": lambda: ours(a, tmp), "sb3": lambda: theirs(a, data, threads)}
            done = {name: sides[name]() for name in (sides if r % 2 == 0 else reversed(sides))}
            x, y = done["onnxrl"], done["sb3"]
            same(x, y, 2)
            done["ratios"] = {"experts": x["updates_per_second"] / y["updates_per_second"], "router": x["decisions_per_second"] / y["decisions_per_second"], "whole": y["wall_s"] / x["wall_s"], "cpu": y["cpu_s"] / x["cpu_s"]}
            rounds.append(done)
            for name in ("onnxrl", "sb3"):
                d = done[name]
                print(f"  {name:6s} {d['wall_s']:7.1f} s wall, {d['cpu_s']:7.1f} s cpu; experts {d['updates_per_second']:7.1f} updates/s, {d['env_steps_per_second']:7.1f} env steps/s; router {d['decisions_per_second']:7.1f} decisions/s", flush=True)
            print("  " + ", ".join(f"{k} {v:.2f}" for k, v in done["ratios"].items()) + f"; onnxrl kept {100 * x['busy']:.0f} % of {a.threads} cores busy; load {os.getloadavg()[0]:.1f}", flush=True)
    missed = 0
    x = rounds[0]["sb3"]
    print(f"{x['env_steps']} env steps, {x['updates']} updates, {x['decisions']} decisions, parameters {x['parameters']}")
    for key in ("experts", "router", "whole", "cpu"):
        ratio, target = statistics.median(r["ratios"][key] for r in rounds), TARGETS.get(key)
        missed += target is not None and ratio < target
        verdict = "" if target is None else f", target {target}: {'pass' if ratio >= target else 'MISS'}"
        print(f"{key:8s} {ratio:.2f} times{verdict}")
    if a.out:
        with open(a.out, "w") as f:
            json.dump({"rounds": rounds, "threads": threads, "missed": missed}, f, indent=2)
    return 1 if a.check and missed else 0


if __name__ == "__main__":
    sys.exit(main())
