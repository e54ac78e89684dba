"""Plays official tournaments of SCML's Standard league with exported agents, and compares their scores with those of the league's winners.

Run it from anywhere, with the folders that onnxrl export --format scml has written:

    python3 cmd/peers/scml_league.py exported/first exported/baseline --out league.jsonl [--configs 60] [--days 60] [--jobs 2] [--rivals PenguinAgent,AS0] [--json league.json]

The official packages are installed by pip in an environment below the temporary folder, unless --env names one. Configurations are drawn by the official generator, in turn of 2, 3 and 4 levels. In each
meet all exported agents and rivals in turn, --per-world of them, and each has every place once, as the official assigner has it; the numbers of a configuration are the same in all of its worlds.

Each world is appended to --out when it is over: what was interrupted goes on with the same command, and --report only reads the file. The tables have truncated means as the league computes them, and the
differences of the first exported agent to all others, with 95 % intervals of the bootstrap over configurations, as many of each length of chains as there are, in which truncated means are computed anew;
who has played a single configuration of some length has no interval.
Unsafe are offers and acceptances that a careful agent would not take, by the shield of the first exported package. Milliseconds are those of the processor for a callback of the agent's: of a morning, or of all negotiations
that are answered together. Exceptions of agents end a world; it is then counted, and not scored. With three and more levels the official program does not
always repeat a world of equal seeds.
"""
import argparse
import collections
import hashlib
import importlib
import importlib.util
import itertools
import json
import math
import multiprocessing
import os
import pathlib
import random
import subprocess
import sys
import tempfile
import time
import types
import venv

PACKAGES = ["scml==0.7.6", "negmas==0.11.3", "numpy==1.26.4", "onnxruntime==1.32.0"]
AGENTS = "scml-agents==0.4.13"

RIVALS = {
    "PenguinAgent": "scml_agents.scml2024.standard.team_penguin",
    "AS0": "scml_agents.scml2025.standard.team_atsunaga",
    "PriceTrendStdAgent": "scml_agents.scml2025.standard.team_280",
    "UltraSuperMiracleSoraFinalAgentZ": "scml_agents.scml2025.standard.team_254",
    "XenoSotaAgent": "scml_agents.scml2025.standard.team_253",
    "LitaAgentYR": "scml_agents.scml2025.standard.team_276",
    "SyncRandomStdAgent": "scml.std.agents",
    "GreedyStdAgent": "scml.std.agents",
    "RandomStdAgent": "scml.std.agents",
}
USUAL = ["PenguinAgent", "AS0", "PriceTrendStdAgent", "UltraSuperMiracleSoraFinalAgentZ", "XenoSotaAgent", "SyncRandomStdAgent", "GreedyStdAgent"]

RESAMPLES = 2000


def enter(folder):
    """Continues in the environment of the official packages, which it makes if there is none."""
    python = os.path.join(folder, "bin", "python")
    done = os.path.join(folder, "complete-league")
    if not os.path.exists(done):
        if not os.path.exists(python):
            venv.create(folder, with_pip=True)
        pip = [python, "-m", "pip", "install", "-q"]
        subprocess.run(pip + PACKAGES, check=True)
        subprocess.run(pip + ["--no-deps", AGENTS], check=True)
        open(done, "w").close()
    # The order of sets of names is part of what some agents decide by.
    if os.path.realpath(sys.prefix) != os.path.realpath(folder) or os.environ.get("PYTHONHASHSEED") != "0":
        os.execve(python, [python] + sys.argv, {**os.environ, "PYTHONHASHSEED": "0"})


def arguments():
    parser = argparse.ArgumentParser()
    parser.add_argument("exported", nargs="*", help="folders of exported agents; differences are those of the first")
    parser.add_argument("--rivals", default=",".join(USUAL), help="classes, of " + ", ".join(RIVALS))
    parser.add_argument("--per-world", type=int, default=4, help="how many of exported agents and rivals meet in a world")
    parser.add_argument("--levels", default="2,3,4")
    parser.add_argument("--days", default="60", help="a number, or the least and the most, 50,200")
    parser.add_argument("--configs", type=int, default=30, help="configurations, each of which is --per-world worlds")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--out", required=True, help="file to which worlds are appended")
    parser.add_argument("--json", help="also write the report to this file")
    parser.add_argument("--report", action="store_true", help="play nothing, and report what there is")
    parser.add_argument("--env", default=os.path.join(tempfile.gettempdir(), "onnxrl-scml-0.7.6"))
    return parser.parse_args()


class Plan:
    """What is played: everything follows from it."""

    def __init__(self, args):
        self.exported = [pathlib.Path(f).resolve() for f in args.exported]
        self.names = [f.name for f in self.exported]
        self.rivals = [r for r in args.rivals.split(",") if r]
        unknown = [r for r in self.rivals if r not in RIVALS]
        if unknown:
            raise SystemExit("--rivals: %s is not known; there are %s" % (unknown[0], ", ".join(RIVALS)))
        if len(set(self.names + self.rivals)) < len(self.names + self.rivals):
            raise SystemExit("two competitors have one name: %s" % ", ".join(self.names + self.rivals))
        self.levels = [int(x) for x in args.levels.split(",")]
        days = [int(x) for x in args.days.split(",")]
        self.days = days[0] if len(days) == 1 else tuple(days)
        if min(days) <= max(self.levels):
            raise SystemExit("--days %s: the official generator needs more days than levels" % args.days)
        self.configs, self.seed, self.per_world = args.configs, args.seed, args.per_world
        others = self.per_world - len(self.names)
        if not self.names or others < 1 or others > len(self.rivals):
            raise SystemExit("--per-world %d: there are %d exported agents and %d rivals, and at least one of each meet" % (self.per_world, len(self.names), len(self.rivals)))
        # Choices of rivals come in turn, for chains of each length.
        self.choices = list(itertools.combinations(self.rivals, others))
        random.Random(self.seed).shuffle(self.choices)

    def header(self):
        return {"exported": {f.name: digest(f) for f in self.exported}, "rivals": self.rivals, "per_world": self.per_world, "levels": self.levels, "days": self.days, "seed": self.seed}

    def choice(self, config):
        return self.names + list(self.choices[config // len(self.levels) % len(self.choices)])

    def jobs(self):
        return [(config, rotation) for config in range(self.configs) for rotation in range(self.per_world)]


def digest(folder):
    """What a package decides by, as far as the same scores can be expected of it."""
    h = hashlib.sha256()
    for f in sorted(folder.iterdir()):
        if f.suffix in (".py", ".onnx", ".json"):
            h.update(f.name.encode() + b"\0" + f.read_bytes())
    return h.hexdigest()[:16]


# The folder of the package scml_agents.
ROOT = None


def published(module, name):
    """Imports an agent of scml-agents without what its parents import."""
    parts = module.split(".")
    if parts[0] == "scml_agents":
        global ROOT
        if ROOT is None:
            ROOT = pathlib.Path(importlib.util.find_spec("scml_agents").origin).parent
        for i in range(1, len(parts)):
            parent = ".".join(parts[:i])
            if parent not in sys.modules:
                package = types.ModuleType(parent)
                package.__path__ = [str(ROOT.joinpath(*parts[1:i]))]
                sys.modules[parent] = package
    return getattr(importlib.import_module(module), name)


# The agents of the world that is being played, in the order of init.
SEATED = []

# Classes by the competitor's name, and the module in which the official program finds them by theirs.
CLASSES = {}
WATCHED = "watched_competitors"


def watched(name, cls, package):
    """Makes a class that decides as another one does, and whose actions are judged as onnxrl's shield.Watch does: an offer or an acceptance is unsafe if it is outside of what may be offered, or
    the ledger would not have it."""
    from negmas import ResponseType
    from scml.std import StdAgent, StdSyncAgent
    agent, shield = (importlib.import_module(package + "." + module) for module in ("agent", "shield"))
    # One that answers by itself is never asked for all answers together.
    alone = not issubclass(cls, StdSyncAgent) or cls.respond is not StdSyncAgent.respond

    class Watched(cls):
        def init(self):
            self.w_name, self.w_all, self.w_unsafe, self.w_calls = name, 0, 0, []
            self.w_view, self.w_ledger = agent.Official(self), shield.Ledger()
            self.w_ledger.starts(self.w_view)
            SEATED.append(self)
            super().init()

        def w_timed(self, f, *args):
            # Of the processor: what others do on the machine does not count.
            start = time.thread_time()
            result = f(*args)
            self.w_calls.append(round(1e6 * (time.thread_time() - start)))
            return result

        def w_slot(self, partner):
            """The slot of a partner; None of those that nobody negotiates with, such as SELLER, to whom some agents write offers that reach nobody."""
            return self.w_view.slot(partner) if partner in self.w_view.partners else None

        def w_release(self, partner):
            slot = self.w_slot(partner)
            if slot is not None:
                self.w_ledger.release(slot)

        def w_judge(self, partner, offer):
            v, slot = self.w_view, self.w_slot(partner)
            if slot is None:
                return
            low, high = v.box(slot)
            self.w_all += 1
            self.w_ledger.release(slot)
            if len(offer) != 3 or not all(isinstance(x, (int, float)) or hasattr(x, "__int__") for x in offer) or not all(a <= x <= b for a, x, b in zip(low, offer, high)):
                self.w_unsafe += 1
                return
            # The league casts numbers that are not whole.
            offer = tuple(int(x) for x in offer)
            side = v.side(slot)
            if not self.w_ledger.safe(slot, side, offer):
                self.w_unsafe += 1
            self.w_ledger.hold(slot, side, offer)

        def before_step(self):
            self.w_view.day_begins()
            self.w_ledger.day_begins()
            self.w_timed(super().before_step)

        def on_negotiation_success(self, contract, mechanism):
            self.w_ledger.agreed(self.w_view.agreed(contract))
            super().on_negotiation_success(contract, mechanism)

        def on_negotiation_failure(self, partners, annotation, mechanism, state):
            slot = self.w_view.failed(partners, annotation)
            if slot is not None:
                self.w_ledger.release(slot)
            super().on_negotiation_failure(partners, annotation, mechanism, state)

    if alone:
        def propose(self, negotiator_id, state, *args, **kwargs):
            offer = super(Watched, self).propose(negotiator_id, state, *args, **kwargs)
            if offer is not None:
                self.w_judge(negotiator_id, offer)
            return offer

        def respond(self, negotiator_id, state, *args, **kwargs):
            self.w_release(negotiator_id)
            response = super(Watched, self).respond(negotiator_id, state, *args, **kwargs)
            if response == ResponseType.ACCEPT_OFFER:
                self.w_judge(negotiator_id, state.current_offer)
            return response

        Watched.propose, Watched.respond = propose, respond
    else:
        def first_proposals(self):
            replies = self.w_timed(super(Watched, self).first_proposals)
            for partner, offer in (replies or {}).items():
                if offer is not None:
                    self.w_judge(partner, offer)
            return replies

        def counter_all(self, offers, states):
            for partner in offers:
                self.w_release(partner)
            replies = self.w_timed(super(Watched, self).counter_all, offers, states)
            for partner, offer in offers.items():
                if partner in replies and replies[partner].response == ResponseType.ACCEPT_OFFER:
                    self.w_judge(partner, offer)
            for partner, reply in replies.items():
                if reply.response == ResponseType.REJECT_OFFER and reply.outcome is not None:
                    self.w_judge(partner, reply.outcome)
            return replies

        Watched.first_proposals, Watched.counter_all = first_proposals, counter_all
    # The official program changes names of classes that are not written as usual.
    Watched.__name__ = Watched.__qualname__ = "Competitor%d" % len(CLASSES)
    Watched.__module__ = WATCHED
    setattr(sys.modules[WATCHED], Watched.__name__, Watched)
    CLASSES[name] = Watched


def seat(plan):
    """Makes the classes of all competitors."""
    sys.modules[WATCHED] = types.ModuleType(WATCHED)
    for f in plan.exported:
        if str(f.parent) not in sys.path:
            sys.path.insert(0, str(f.parent))
    package = plan.names[0]
    for name in plan.names:
        watched(name, importlib.import_module(name).LitaAgentHRL, package)
    for name in plan.rivals:
        watched(name, published(RIVALS[name], name), package)


def play(job):
    """Plays a world and returns its row."""
    import numpy as np
    import scml.utils as league
    config, rotation = job
    levels = PLAN.levels[config % len(PLAN.levels)]
    names = PLAN.choice(config)
    classes = [CLASSES[n] for n in names]

    def seed(*key):
        s = int.from_bytes(hashlib.sha256(repr((PLAN.seed, *key)).encode()).digest()[:4], "little")
        random.seed(s)
        np.random.seed(s)

    seed("config", config)
    configs = league.anac2024_config_generator_std(n_competitors=len(names), n_agents_per_competitor=1, n_steps=PLAN.days, n_processes=(levels, levels))
    worlds = league.anac_assigner_std(configs, None, 1, True, classes, [{}] * len(classes), exclude_competitors_from_reassignment=False)
    if len(worlds) != len(names):
        raise SystemExit("the official assigner made %d worlds of %d competitors" % (len(worlds), len(names)))
    arguments = worlds[rotation][0]
    arguments["world_params"].update(no_logs=True, compact=True, fast=True)
    # Numbers of a configuration are drawn when a world is made of it.
    seed("world", config)
    world = league.anac2024_std_world_generator(**arguments)
    numbers = [[p.cost, p.shortfall_penalty_mean, p.storage_cost_mean] for p in world.agent_profiles.values()]
    numbers += [sorted((k, int(x)) for k, x in c.agreement.items()) for _, day in sorted(world.exogenous_contracts.items()) for c in day]
    seed("run", config, rotation)
    SEATED.clear()
    row = {"config": config, "rotation": rotation, "levels": levels, "days": int(world.n_steps), "numbers": hashlib.sha256(repr(numbers).encode()).hexdigest()[:16], "scores": []}
    start = time.process_time()
    try:
        world.run()
    except Exception as e:
        row["exception"] = repr(e)
    row["seconds"] = round(time.process_time() - start, 3)
    row["days_played"] = int(world.current_step)
    scores = world.scores()
    for a in SEATED:
        score = {"competitor": a.w_name, "agent": a.id, "level": int(a.awi.level), "score": float(scores[a.id]), "bankrupt": bool(a.awi.is_bankrupt()), "actions": a.w_all, "unsafe": a.w_unsafe}
        if a.w_name in PLAN.names:
            score["calls_us"] = a.w_calls
        row["scores"].append(score)
    row["exceptions"] = {str(k): int(n) for k, n in world.n_total_agent_exceptions.items() if n}
    return row


def load(path, header):
    """Reads the worlds that were played. A line that an interruption has left half written is dropped."""
    rows = []
    if not os.path.exists(path):
        return rows
    with open(path, "rb+") as f:
        lines = f.read().split(b"\n")
        end = 0
        for i, line in enumerate(lines[:-1]):
            try:
                row = json.loads(line)
            except ValueError:
                raise SystemExit("%s, line %d: it is no JSON" % (path, i + 1))
            if i == 0 and row != json.loads(json.dumps(header)):
                raise SystemExit("%s is of another tournament or other agents: name another file.\nthere: %s\nhere:  %s" % (path, json.dumps(row), json.dumps(header)))
            if i > 0:
                rows.append(row)
            end += len(line) + 1
        f.truncate(end)
    return rows


def truncated_mean(scores):
    """The mean without scores that are more than twice the distance of the quartiles above the upper one."""
    import numpy as np
    q1, q3 = np.quantile(scores, [0.25, 0.75])
    return float(scores[scores <= q3 + 2 * (q3 - q1)].mean())


class Scores:
    """The scores of a competitor in a group of worlds."""

    def __init__(self, rows, name, levels, times):
        import numpy as np
        list_ = [(s["score"], r["config"]) for r in rows for s in r["scores"] if s["competitor"] == name and (levels == 0 or r["levels"] == levels)]
        self.scores = np.array([s for s, _ in list_])
        self.configs = np.array([c for _, c in list_], dtype=int)
        self.mean = truncated_mean(self.scores) if len(self.scores) else math.nan
        # A single configuration of a length is the same in every resample, as if its scores were known.
        of = {r["config"]: r["levels"] for r in rows}
        self.single = 1 in collections.Counter(of[int(c)] for c in set(self.configs)).values()
        self.resampled = [math.nan] * RESAMPLES
        if len(self.scores):
            drawn = (np.repeat(self.scores, t[self.configs]) for t in times)
            self.resampled = [truncated_mean(d) if len(d) else math.nan for d in drawn]

    def minus(self, other):
        import numpy as np
        both = len(set(self.configs) & set(other.configs))
        list_ = np.array(self.resampled) - np.array(other.resampled)
        list_ = list_[~np.isnan(list_)]
        if not both:
            return None
        d = self.mean - other.mean
        if both < 2 or self.single or other.single or len(list_) < 0.9 * RESAMPLES:
            return {"difference": d, "low": None, "high": None, "ahead": None, "configs": both, "configs_needed": None}
        low, high = np.quantile(list_, [0.025, 0.975])
        needed = min(math.ceil(both * ((high - low) / 2) ** 2 / d ** 2), 10 ** 9) if d else 0
        return {"difference": d, "low": float(low), "high": float(high), "ahead": float((list_ > 0).mean()), "configs": both, "configs_needed": needed}


def report(plan, rows):
    """Returns the report, whose keys are stable."""
    import numpy as np
    whole = [r for r in rows if r["days_played"] == r["days"] and "exception" not in r]
    by_config = collections.defaultdict(set)
    for r in whole:
        by_config[r["config"]].add(r["numbers"])
    if any(len(n) > 1 for n in by_config.values()):
        raise SystemExit("worlds of one configuration have different numbers")
    # Configurations count that were played in all orders.
    counts = collections.Counter(r["config"] for r in whole)
    whole = [r for r in whole if counts[r["config"]] == plan.per_world]
    draws = np.random.default_rng(plan.seed)
    strata = [sorted({r["config"] for r in whole if r["levels"] == n}) for n in plan.levels]
    times = np.zeros((RESAMPLES, max(by_config, default=0) + 1), dtype=int)
    for list_ in strata:
        for t in times:
            np.add.at(t, draws.choice(list_, len(list_)) if list_ else [], 1)
    names = plan.names + plan.rivals
    groups = {n: {name: Scores(whole, name, n, times) for name in names} for n in [0] + plan.levels}
    result = {"worlds": len(whole), "configs": len(set(r["config"] for r in whole)), "failed": sum("exception" in r or r["days_played"] < r["days"] for r in rows), "cpu_seconds": sum(r["seconds"] for r in rows),
              "exceptions": sum("exception" in r or bool(r["exceptions"]) for r in rows), "exception": next((r["exception"] for r in rows if "exception" in r), None), "competitors": [], "differences": []}
    for name in names:
        mine = [s for r in whole for s in r["scores"] if s["competitor"] == name]
        if not mine:
            continue
        c = {"competitor": name, "score": groups[0][name].mean, "mean": float(np.mean([s["score"] for s in mine])), "worlds": len(mine), "bankrupt": sum(s["bankrupt"] for s in mine),
             "actions": sum(s["actions"] for s in mine), "unsafe": sum(s["unsafe"] for s in mine), "by_levels": {str(n): groups[n][name].mean for n in plan.levels}}
        c["by_place"] = {"%d of %d" % (level + 1, n): truncated_mean(np.array(s)) for n in plan.levels for level in range(n)
                         if (s := [x["score"] for r in whole if r["levels"] == n for x in r["scores"] if x["competitor"] == name and x["level"] == level])}
        calls = np.array([u for s in mine for u in s.get("calls_us", [])]) / 1000
        if len(calls):
            c["ms"] = {"mean": float(calls.mean()), "p99": float(np.quantile(calls, 0.99)), "calls": len(calls)}
        result["competitors"].append(c)
    result["competitors"].sort(key=lambda c: -c["score"])
    for n in [0] + plan.levels:
        for name in names[1:]:
            d = groups[n][plan.names[0]].minus(groups[n][name])
            if d:
                result["differences"].append({"competitor": plan.names[0], "against": name, "levels": n, **d})
    return result


def show(plan, r):
    print("%d worlds of %d configurations, %d failed, %d with exceptions, %.0f s of CPU" % (r["worlds"], r["configs"], r["failed"], r["exceptions"], r["cpu_seconds"]))
    if r["exception"]:
        print("the first exception: %s" % r["exception"])
    print("\n%-34s %7s %7s %7s %9s %9s %7s  %s" % ("", "score", "mean", "worlds", "bankrupt", "actions", "unsafe", "  ".join("of %d " % n for n in plan.levels)))
    for c in r["competitors"]:
        print("%-34s %7.3f %7.3f %7d %9d %9d %7d  %s" % (c["competitor"], c["score"], c["mean"], c["worlds"], c["bankrupt"], c["actions"], c["unsafe"], "  ".join("%5.3f" % c["by_levels"][str(n)] for n in plan.levels)))
    for c in r["competitors"]:
        if "ms" in c:
            print("%s: %.3f ms a call, 99 %% within %.3f ms, of %d" % (c["competitor"], c["ms"]["mean"], c["ms"]["p99"], c["ms"]["calls"]))
    for n in [0] + plan.levels:
        list_ = [d for d in r["differences"] if d["levels"] == n]
        if list_:
            print("\n%s is ahead%s of" % (plan.names[0], "" if n == 0 else ", with %d levels," % n))
            for d in list_:
                if d["low"] is None:
                    print("  %-32s %+.3f  (no interval)  of %d configurations" % (d["against"], d["difference"], d["configs"]))
                    continue
                print("  %-32s %+.3f  (%+.3f to %+.3f)  %3.0f %%  of %d configurations; %d needed" % (d["against"], d["difference"], d["low"], d["high"], 100 * d["ahead"], d["configs"], d["configs_needed"]))


def main():
    global PLAN
    args = arguments()
    enter(args.env)
    PLAN = Plan(args)
    header = PLAN.header()
    rows = load(args.out, header)
    if not args.report:
        seat(PLAN)
        done = {(r["config"], r["rotation"]) for r in rows}
        todo = [j for j in PLAN.jobs() if j not in done]
        with open(args.out, "a") as f, multiprocessing.get_context("fork").Pool(args.jobs) as pool:
            def keep(line):
                f.write(json.dumps(line) + "\n")
                f.flush()
                os.fsync(f.fileno())

            if f.tell() == 0:
                keep(header)
            for row in pool.imap_unordered(play, todo):
                keep(row)
                rows.append(row)
                print("\r%d of %d worlds" % (len(rows), len(PLAN.jobs())), end="", file=sys.stderr)
        print(file=sys.stderr)
    rows.sort(key=lambda r: (r["config"], r["rotation"]))
    r = report(PLAN, rows)
    show(PLAN, r)
    if args.json:
        with open(args.json, "w") as f:
            json.dump(r, f, indent=1)


if __name__ == "__main__":
    main()
