"""Trains SAC on a MuJoCo task with onnxrl, through envs/gymnasium, and with Stable-Baselines3: same hyper-parameters, same number of env steps, same threads.

The document is configs/experiments/halfcheetah_sac.yaml with fewer env steps, and random actions only for the first thousand of them, so that learning shows early. Both sides are evaluated before learning and every --every env steps, in --episodes deterministic episodes of an environment of their own; the score
is the last of these, that of the policy at the end. Seconds are those of learning, without evaluations; CPU seconds are those of the whole run with its processes, and are what can be compared when other work runs beside.

Each finished pair of side and seed is appended to --results, and is not run again; so the comparison can be interrupted at any time, goes on with the same command, and several calls may share one file if they take different sides or seeds:

    python halfcheetah.py --onnxrl ./onnxrl --sides onnxrl --seeds 1,2,3
    python halfcheetah.py --onnxrl ./onnxrl --sides sb3 --seeds 1,2,3
    python halfcheetah.py --summary

Curves of few seeds this early differ much: this shows that the same thing is learnt at the same pace, not which of them learns better.
"""
import argparse
import hashlib
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time

NAMES = {"onnxrl": "onnxrl", "sb3": "Stable-Baselines3"}


def theirs(args, seed):
    import gymnasium
    import stable_baselines3
    import torch
    from stable_baselines3 import SAC
    from stable_baselines3.common.callbacks import BaseCallback
    from stable_baselines3.common.env_util import make_vec_env
    from stable_baselines3.common.evaluation import evaluate_policy

    torch.set_num_threads(args.threads)
    env, test = make_vec_env(args.id, n_envs=1, seed=seed), make_vec_env(args.id, n_envs=1, seed=1000 + seed)
    model = SAC("MlpPolicy", env, learning_starts=args.learning_starts, seed=seed, device="cpu", verbose=0)
    curve, spent = [], 0.0

    def evaluate():
        nonlocal spent
        start = time.perf_counter()
        mean, spread = evaluate_policy(model, test, n_eval_episodes=args.episodes, deterministic=True)
        spent += time.perf_counter() - start
        curve.append([model.num_timesteps, float(mean), float(spread)])

    class Evaluations(BaseCallback):
        def _on_step(self):
            if self.num_timesteps % args.every == 0 and self.num_timesteps < args.env_steps:
                evaluate()
            return True

    start, cpu = time.perf_counter(), time.process_time()
    evaluate()
    model.learn(total_timesteps=args.env_steps, callback=Evaluations())
    evaluate()
    took, cpu = time.perf_counter() - start - spent, time.process_time() - cpu
    env.close()
    test.close()
    return curve, took, cpu, {"stable_baselines3": stable_baselines3.__version__, "torch": torch.__version__, "gymnasium": gymnasium.__version__}


def ours(args, seed):
    with tempfile.TemporaryDirectory() as tmp:
        out = os.path.join(tmp, "run")
        # On a machine that is busy with other work a process may wait for minutes.
        sets = [f"seed={seed}", f"env.id={args.id}", f"env.python={sys.executable}", "env.timeout=2h", "env.start_timeout=2h", f"agent.learning_starts={args.learning_starts}", f"train.total_env_steps={args.env_steps}", f"train.threads={args.threads}",
                f"train.validation.every_steps={args.every}", f"eval.episodes={args.episodes}", "train.checkpoint.every_steps=0"]
        flags = [x for s in sets for x in ("--set", s)]
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        run = subprocess.run([args.onnxrl, "train", "halfcheetah_sac", "--out", out, "-q", *flags], capture_output=True, text=True, cwd=tmp, env={**os.environ, "OMP_NUM_THREADS": str(args.threads)})
        if run.returncode != 0:
            raise SystemExit(f"onnxrl train failed with status {run.returncode}:\n{run.stderr}")
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        curve, took, evaluating = [], 0, 0
        with open(os.path.join(out, "metrics.jsonl")) as f:
            for line in map(json.loads, f):
                if "eval/mean_reward" in line:
                    curve.append([line["step"], line["eval/mean_reward"], line["eval/std_reward"]])
                    evaluating += line["time/eval_seconds"] if 0 < line["step"] < args.env_steps else 0
                took = max(took, line.get("time/time_elapsed", 0))
    with open(args.onnxrl, "rb") as f:
        program = hashlib.file_digest(f, "sha256").hexdigest()
    return curve, took - evaluating, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, {"program_sha256": program}


SIDES = {"onnxrl": ours, "sb3": theirs}


def settings(args):
    """What two results must have in common to be compared."""
    return {k: getattr(args, k) for k in ("id", "env_steps", "learning_starts", "episodes", "every", "threads")}


def read(path, want):
    """The finished results with these settings, by side and seed."""
    found = {}
    if os.path.exists(path):
        with open(path) as f:
            for number, line in enumerate(f, 1):
                try:
                    row = json.loads(line)
                except json.JSONDecodeError as err:
                    raise SystemExit(f"{path}:{number}: {err}") from err
                if all(row[k] == v for k, v in want.items()):
                    found[row["side"], row["seed"]] = row
    return found


def iqm(scores):
    """Interquartile mean: each score four times, so that half of them is a whole number."""
    s = sorted(x for x in scores for _ in range(4))
    return statistics.mean(s[len(scores):-len(scores)])


def summarize(args, found):
    sides = {}
    for side in SIDES:
        rows = [found[k] for k in sorted(found) if k[0] == side]
        if rows:
            scores = [r["return"] for r in rows]
            steps = sorted(set.intersection(*({p[0] for p in r["curve"]} for r in rows)))
            sides[side] = {
                "seeds": [r["seed"] for r in rows], "returns": scores, "mean": statistics.mean(scores), "iqm": iqm(scores), "min": min(scores), "max": max(scores),
                "seconds": statistics.mean(r["seconds"] for r in rows), "cpu_seconds": statistics.mean(r["cpu_seconds"] for r in rows),
                "curve": [[s, statistics.mean(p[1] for r in rows for p in r["curve"] if p[0] == s)] for s in steps],
            }
    ratio = sides["sb3"]["cpu_seconds"] / sides["onnxrl"]["cpu_seconds"] if len(sides) == 2 else None
    if args.json:
        print(json.dumps({**settings(args), "sides": sides, "cpu_ratio": ratio}, indent=1))
        return
    print(f"{args.id}, SAC, {args.env_steps} env steps, {args.learning_starts} of them random, {args.threads} thread(s); returns are means of {args.episodes} deterministic episodes at the end")
    print(f"{'side':18}{'seeds':>7}{'mean':>9}{'IQM':>9}{'lowest':>9}{'highest':>9}{'seconds':>9}{'CPU s':>9}")
    for side, r in sides.items():
        print(f"{NAMES[side]:18}{len(r['seeds']):7}{r['mean']:9.0f}{r['iqm']:9.0f}{r['min']:9.0f}{r['max']:9.0f}{r['seconds']:9.0f}{r['cpu_seconds']:9.0f}")
    for side, r in sides.items():
        print(f"{NAMES[side]:18}mean return by env steps: " + ", ".join(f"{s}: {m:.0f}" for s, m in r["curve"]))
    if ratio:
        print(f"Stable-Baselines3 took {ratio:.1f} times the CPU seconds")


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--onnxrl", help="the program")
    p.add_argument("--results", default="halfcheetah.jsonl", help="where finished results are kept")
    p.add_argument("--id", default="HalfCheetah-v5")
    p.add_argument("--env-steps", type=int, default=20_000)
    p.add_argument("--learning-starts", type=int, default=1000)
    p.add_argument("--sides", default=",".join(SIDES), help="which sides to run, in this order, separated by commas")
    p.add_argument("--seeds", default="1,2,3")
    p.add_argument("--episodes", type=int, default=5)
    p.add_argument("--every", type=int, default=2500, help="env steps from one evaluation to the next")
    p.add_argument("--threads", type=int, default=1)
    p.add_argument("--summary", action="store_true", help="only show what is finished")
    p.add_argument("--json", action="store_true", help="the summary as JSON")
    args = p.parse_args()
    sides = args.sides.split(",")
    if unknown := set(sides) - set(SIDES):
        p.error(f"--sides: {', '.join(sorted(unknown))}: expected {' or '.join(SIDES)}")
    want = settings(args)
    if not args.summary:
        if "onnxrl" in sides:
            if not args.onnxrl:
                p.error("--onnxrl: where the program is")
            args.onnxrl = os.path.abspath(args.onnxrl)
        for seed in map(int, args.seeds.split(",")):
            for side in sides:
                if (side, seed) in read(args.results, want):
                    continue
                curve, took, cpu, versions = SIDES[side](args, seed)
                row = {"side": side, "seed": seed, **want, "return": curve[-1][1], "deviation": curve[-1][2], "seconds": took, "cpu_seconds": cpu, "curve": curve, "versions": versions}
                with open(args.results, "a") as f:
                    f.write(json.dumps(row) + "\n")
                print(f"{NAMES[side]}, seed {seed}: {row['return']:.1f} in {took:.0f} s", file=sys.stderr, flush=True)
    summarize(args, read(args.results, want))


if __name__ == "__main__":
    main()
