"""Records transitions of Gymnasium's classic control problems and compares envs/classic with them.

    python cmd/peers/gymnasium_transitions.py
    python cmd/peers/gymnasium_transitions.py --select envs/classic/testdata/gymnasium.json.gz

The first form records 12 000 transitions of every environment, and whole
episodes, and runs envs/classic's test on all of them. The second form writes a
selection for the repository: of every special case (a limit, a wall, a wrap,
an end) as many as are asked for, ordinary ones, and the episodes.

A third of the transitions follow random actions, a third actions that push to
the limits, and a third begin at random states, which reach what episodes
rarely do. States are Gymnasium's own, before and after the step, with all
their digits.
"""

import argparse
import gzip
import json
import math
import os
import subprocess
import tempfile

import gymnasium
import numpy as np

THIRD = 4000
SPECIAL, ORDINARY = 25, 60


def numbers(values):
    return [float(v) for v in values]


def short(values):
    """Float32 numbers in as few digits as bring them back."""
    return [float(str(np.float32(v))) for v in values]


class Task:
    """One environment: how to push it, where else it may be, and what is special about a transition."""

    def __init__(self, kind, env_id, push, state, tags, episodes):
        self.kind, self.id, self.push, self.state, self.tags, self.episodes = kind, env_id, push, state, tags, episodes


def cartpole_tags(s, a, n, done):
    return [name for name, hit in (("position", abs(n[0]) > 2.4), ("angle", abs(n[2]) > 12 * math.pi / 180)) if hit]


def pendulum_tags(s, a, n, done):
    return [name for name, hit in (("speed", abs(n[1]) == 8), ("wrap", abs(s[0]) > math.pi), ("torque", abs(a) == 2)) if hit]


def car_tags(s, a, n, done):
    wall = n[0] == np.float32(-1.2) or n[0] == -1.2
    fast = abs(n[1]) == 0.07 or abs(n[1]) == np.float32(0.07)
    end = n[0] == 0.6 or n[0] == np.float32(0.6)
    return [name for name, hit in (("wall", wall), ("speed", fast), ("goal", done), ("right", end)) if hit]


def acrobot_tags(s, a, n, done):
    wraps = [abs(n[i] - s[i]) > math.pi for i in (0, 1)]
    fast = abs(n[2]) == 4 * math.pi, abs(n[3]) == 9 * math.pi
    return [name for name, hit in (("wrap1", wraps[0]), ("wrap2", wraps[1]), ("speed1", fast[0]), ("speed2", fast[1]), ("goal", done)) if hit]


def balance(env, s, t):
    return int(s[2] + 0.4 * s[3] + 0.05 * s[0] + 0.1 * s[1] > 0)


def swing(env, s, t):
    return np.array([2.0 if s[1] >= 0 else -2.0], np.float32)


def pump(env, s, t):
    return 2 if s[1] >= 0 else 0


def pump_continuous(env, s, t):
    return np.array([1.0 if s[1] >= 0 else -1.0], np.float32)


def drive(env, s, t):
    """Into one wall, then into the other."""
    return 0 if t % 100 < 50 else 2


def drive_continuous(env, s, t):
    return np.array([-1.0 if t % 100 < 50 else 1.0], np.float32)


def spin(env, s, t):
    return 2 if s[3] >= 0 else 0


def one_side(env, s, t):
    """To the right for one episode and to the left for the next, so that positions end episodes too."""
    return int(s[2] + 0.3 * s[3] + (0.04 if env.episode % 2 else -0.04) > 0)


def anything(env, s, t):
    return env.action_space.sample()


TASKS = [
    Task("cartpole", "CartPole-v1", [one_side, balance],
         lambda r: r.uniform([-2.4, -3, -0.2095, -3.5], [2.4, 3, 0.2095, 3.5]), cartpole_tags, [anything, balance]),
    Task("pendulum", "Pendulum-v1", [swing],
         lambda r: r.uniform([-20, -8], [20, 8]), pendulum_tags, [anything, swing]),
    Task("mountaincar", "MountainCar-v0", [pump, drive],
         lambda r: r.uniform([-1.2, -0.07], [0.6, 0.07]), car_tags, [anything, pump]),
    Task("mountaincar_continuous", "MountainCarContinuous-v0", [pump_continuous, drive_continuous],
         lambda r: r.uniform([-1.2, -0.07], [0.6, 0.07]).astype(np.float32), car_tags, [anything, pump_continuous]),
    Task("acrobot", "Acrobot-v1", [spin],
         lambda r: r.uniform([-math.pi, -math.pi, -4 * math.pi, -9 * math.pi], [math.pi, math.pi, 4 * math.pi, 9 * math.pi]), acrobot_tags, []),
]


def step(task, env, action, rows):
    """Takes a step and appends it to the columns."""
    inner = env.unwrapped
    before = np.array(inner.state)
    obs, reward, terminated, truncated, _ = env.step(action)
    after = np.array(inner.state)
    number = float(np.asarray(action).reshape(-1)[0])
    rows["state"].append(numbers(before))
    rows["action"].append(number)
    rows["next"].append(numbers(after))
    rows["obs"].append(short(obs))
    rows["reward"].append(float(reward))
    rows["terminated"].append(bool(terminated))
    rows["tags"].append(task.tags(before, number, after, terminated))
    return terminated, truncated


def columns():
    return {k: [] for k in ("state", "action", "next", "obs", "reward", "terminated", "tags")}


def play(task, env, policies, count, rows, seed):
    env.reset(seed=seed)
    env.episode = 0
    t = 0
    for _ in range(count):
        policy = policies[env.episode % len(policies)]
        ended = step(task, env, policy(env, env.unwrapped.state, t), rows)
        t += 1
        if any(ended):
            env.reset()
            env.episode += 1
            t = 0


def jump(task, env, count, rows, seed):
    r = np.random.default_rng(seed)
    for _ in range(count):
        # The step after an end would be of an episode that does not go on.
        env.reset()
        env.unwrapped.state = task.state(r)
        step(task, env, env.action_space.sample(), rows)


def episode(task, env, policy, seed):
    env.reset(seed=seed)
    env.action_space.seed(seed)
    env.episode = 0
    start = numbers(env.unwrapped.state)
    rows = columns()
    t, ended, resume = 0, (False, False), {}
    while not any(ended):
        # A pole that is held upright is unstable: differences in the last bit grow by e every 12 steps.
        if policy is balance and t and t % 250 == 0:
            resume[t] = numbers(env.unwrapped.state)
        ended = step(task, env, policy(env, env.unwrapped.state, t), rows)
        t += 1
    return {"policy": policy.__name__, "start": start, "action": rows["action"], "obs": rows["obs"], "reward": rows["reward"], "resume": resume,
            "terminated": bool(ended[0]), "truncated": bool(ended[1])}


def record(task):
    env = gymnasium.make(task.id)
    env.action_space.seed(1)
    rows = columns()
    play(task, env, [anything], THIRD, rows, 2)
    play(task, env, task.push, THIRD, rows, 3)
    jump(task, env, THIRD, rows, 4)
    return {"id": task.id, "kind": task.kind, "transitions": rows, "episodes": [episode(task, env, p, 5 + i) for i, p in enumerate(task.episodes)]}


def select(rows):
    """The indices of the transitions that the repository keeps."""
    r = np.random.default_rng(6)
    order = r.permutation(len(rows["state"]))
    left = {}
    kept = []
    for i in order:
        tags = rows["tags"][i] or ["ordinary"]
        for t in tags:
            left.setdefault(t, ORDINARY if t == "ordinary" else SPECIAL)
        if any(left[t] > 0 for t in tags):
            for t in tags:
                left[t] -= 1
            kept.append(int(i))
    return sorted(kept)


def write(path, recording):
    with open(path, "wb") as f, gzip.GzipFile(fileobj=f, mode="wb", compresslevel=9, mtime=0) as z:
        z.write(json.dumps(recording, separators=(",", ":")).encode())


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--select", help="write a selection to this file")
    args = parser.parse_args()
    recording = {"gymnasium": gymnasium.__version__, "numpy": np.__version__, "tasks": [record(t) for t in TASKS]}
    for task in recording["tasks"]:
        counts = {}
        for tags in task["transitions"]["tags"]:
            for tag in tags or ["ordinary"]:
                counts[tag] = counts.get(tag, 0) + 1
        print(task["id"], len(task["transitions"]["state"]), counts, [(e["policy"], len(e["action"]), e["terminated"], e["truncated"]) for e in task["episodes"]])
    if args.select:
        for task in recording["tasks"]:
            kept = select(task["transitions"])
            task["transitions"] = {k: [v[i] for i in kept] for k, v in task["transitions"].items()}
        write(args.select, recording)
        print(f"{args.select}: {os.path.getsize(args.select)} bytes")
        return
    root = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
    with tempfile.TemporaryDirectory() as tmp:
        path = os.path.join(tmp, "recording.json.gz")
        write(path, recording)
        subprocess.run(["go", "test", "./envs/classic", "-count=1", "-v", "-run", "TestRecorded", "-args", "-recording", path], cwd=root, check=True)


if __name__ == "__main__":
    main()
