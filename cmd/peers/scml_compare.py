"""Plays worlds of SCML's Standard league with the official packages and with onnxrl, and compares them day by day.

Run it from the root of the repository:

    python3 cmd/peers/scml_compare.py [--scripted 120] [--loaded 72] [--rules 60] [--observed 40] [--jobs 2] [--env DIR] [--keep DIR] [--exported PACKAGE --native NAME --exports 30]

The official packages are installed by pip in an environment below the temporary folder, unless --env names one. Six things are compared:

1. Scripted agents decide by a hash of the situation, so both programs play the same negotiations: every contract in its order, everything delivered or dropped, every number of the end of each day (2e-12).
2. Rule agents draw random numbers of their own. What the official program let them agree on is put into onnxrl, which must come to the same numbers (2e-12).
3. With dice that always fall alike, in both programs, rule agents decide alike, and the whole worlds are compared as in 1.
4. Worlds of 2 are played by onnxrl's rule agents, and scores, agreements, prices and rounds are compared in distribution.
5. With --exported, the folder of an agent that onnxrl export --format scml has written of NAME, baseline or the directory of an agent, it plays among the scripted agents, and in onnxrl the native one does;
the whole worlds are compared as in 1.
6. Agents of which onnxrl has no rules, but what they were seen to do, play beside the others, and are compared as in 4, with intervals of 95 %.

The exit status is 1 if 1, 2, 3 or 5 differ in anything, or 4 by more than three standard errors. 6 is told, and does not count.
"""
import argparse
import ast
import collections
import collections.abc
import importlib
import importlib.machinery
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

PACKAGES = ["scml==0.7.6", "negmas==0.11.3", "numpy==1.26.4"]
AGENTS = "scml-agents==0.4.13"
TOLERANCE = 2e-12


def enter(folder):
    """Continues in the environment of the official packages, which it makes if there is none."""
    python = os.path.join(folder, "bin", "python")
    done = os.path.join(folder, "complete-league" if args.exported else "complete")
    if not os.path.exists(done):
        if not os.path.exists(python):
            venv.create(folder, with_pip=True)
        pip = [python, "-m", "pip", "install", "-q"]
        subprocess.run(pip + PACKAGES, check=True)
        subprocess.run(pip + ["--no-deps", AGENTS], check=True)
        open(done, "w").close()
    if os.path.realpath(sys.prefix) != os.path.realpath(folder):
        os.execv(python, [python] + sys.argv)


parser = argparse.ArgumentParser()
parser.add_argument("--scripted", type=int, default=120)
parser.add_argument("--loaded", type=int, default=72)
parser.add_argument("--rules", type=int, default=60)
parser.add_argument("--observed", type=int, default=40)
parser.add_argument("--days", type=int, default=40, help="of worlds with rule agents")
parser.add_argument("--jobs", type=int, default=2)
parser.add_argument("--env", default=os.path.join(tempfile.gettempdir(), "onnxrl-scml-0.7.6"))
parser.add_argument("--keep", help="keep the worlds in this folder")
parser.add_argument("--exported", help="a folder that onnxrl export --format scml has written")
parser.add_argument("--native", default="baseline", help="what it was exported of: baseline, or the directory of an agent")
parser.add_argument("--exports", type=int, default=30, help="worlds in which it plays")
args = parser.parse_args()
if args.exported:
    PACKAGES.append("onnxruntime==1.32.0")
enter(args.env)

# Where agents and their helpers live.
DRAWING = ("scml.std.agents", "scml.oneshot.agents", "scml.oneshot.common", "scml.common", "scml_agents")


class Sets(ast.NodeTransformer):
    """Writes set displays as calls of set, which a module may then replace."""

    def visit_Set(self, node):
        self.generic_visit(node)
        return ast.copy_location(ast.Call(ast.Name("set", ast.Load()), [ast.List(node.elts, ast.Load())], []), node)

    def visit_SetComp(self, node):
        self.generic_visit(node)
        return ast.copy_location(ast.Call(ast.Name("set", ast.Load()), [ast.ListComp(node.elt, node.generators)], []), node)


compiled = importlib.machinery.SourceFileLoader.get_code


def get_code(self, name):
    if not name.startswith(DRAWING):
        return compiled(self, name)
    path = self.get_filename(name)
    return compile(ast.fix_missing_locations(Sets().visit(ast.parse(self.get_data(path)))), path, "exec", dont_inherit=True)


importlib.machinery.SourceFileLoader.get_code = get_code

import numpy as np  # noqa: E402
from negmas import ResponseType  # noqa: E402
from negmas.sao import SAOResponse  # noqa: E402
from scml.std import SCML2024StdWorld, StdAgent, StdSyncAgent  # noqa: E402
from scml.std.agents import GreedyStdAgent, RandomStdAgent, SyncRandomStdAgent  # noqa: E402

MASK = (1 << 64) - 1
TO_ANSWER, TO_OFFER, FOR_QUANTITY, FOR_TIME, FOR_PRICE = range(1, 6)


class Hashed:
    """Decides as the agents hash and hashsync of onnxrl do."""

    def draw(self, purpose, partner, step, n):
        x = 0xCBF29CE484222325
        for v in (purpose, self.awi.current_step, int(self.id[:2]), int(partner[:2]), step):
            x = ((x ^ v) * 0x100000001B3) & MASK
        x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & MASK
        x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & MASK
        return (x ^ (x >> 31)) % n

    def offer(self, partner, step):
        quantity, day, price = self.get_nmi(partner).issues
        q = 1 + self.draw(FOR_QUANTITY, partner, step, 6)
        t = self.awi.current_step + self.draw(FOR_TIME, partner, step, 4) % (day.max_value - day.min_value + 1)
        p = price.min_value + self.draw(FOR_PRICE, partner, step, price.max_value - price.min_value + 1)
        if self.draw(TO_OFFER, partner, step, 60) == 0:
            q = 31
        return (q, t, p)


class HashAgent(Hashed, StdAgent):
    def propose(self, negotiator_id, state):
        return None if self.draw(TO_OFFER, negotiator_id, state.step, 100) == 1 else self.offer(negotiator_id, state.step)

    def respond(self, negotiator_id, state, source=""):
        d = self.draw(TO_ANSWER, negotiator_id, state.step, 100)
        return ResponseType.ACCEPT_OFFER if d < 8 else ResponseType.END_NEGOTIATION if d < 10 else ResponseType.REJECT_OFFER


class HashSyncAgent(Hashed, StdSyncAgent):
    def first_proposals(self):
        result = {}
        for partner in self.negotiators.keys():
            d = self.draw(TO_OFFER, partner, 0, 100)
            if d == 1:
                result[partner] = None
            elif d > 5:
                result[partner] = self.offer(partner, 0)
        return result

    def counter_all(self, offers, states):
        result = {}
        for partner in offers:
            step = states[partner].step
            d = self.draw(TO_ANSWER, partner, step, 100)
            if d < 12:
                result[partner] = SAOResponse(ResponseType.ACCEPT_OFFER, None)
            elif d < 14:
                result[partner] = SAOResponse(ResponseType.END_NEGOTIATION, None)
            elif d < 16:
                continue
            elif d < 17:
                result[partner] = SAOResponse(ResponseType.REJECT_OFFER, None)
            else:
                result[partner] = SAOResponse(ResponseType.REJECT_OFFER, self.offer(partner, step))
        return result


ROOT = pathlib.Path(importlib.util.find_spec("scml_agents").origin).parent


def published(module, name):
    """Imports an agent of scml-agents without what its parents import."""
    parts = module.split(".")
    for i in range(1, len(parts)):
        parent = ".".join(parts[:i])
        if parent not in sys.modules:
            package = types.ModuleType(parent)
            package.__path__ = [str(ROOT.joinpath(*parts[1:i]))]
            sys.modules[parent] = package
    return getattr(importlib.import_module(module), name)


def rule_agents():
    return [
        GreedyStdAgent, RandomStdAgent, SyncRandomStdAgent,
        published("scml_agents.scml2024.standard.team_penguin", "PenguinAgent"),
        published("scml_agents.scml2025.standard.team_atsunaga", "AS0"),
        published("scml_agents.scml2025.standard.team_254", "UltraSuperMiracleSoraFinalAgentZ"),
    ]


def observed_agents():
    return [
        published("scml_agents.scml2025.standard.team_253", "XenoSotaAgent"),
        published("scml_agents.scml2025.standard.team_280", "PriceTrendStdAgent"),
    ]


class Loaded:
    """Stands in for Python's and NumPy's random numbers: every uniform number is u, and order stays as it is."""

    def __init__(self, u):
        self.u = u

    def random(self, *_, **__):
        return self.u

    rand = random

    def uniform(self, a=0.0, b=1.0, size=None):
        return a + (b - a) * self.u

    def randint(self, a, b):
        return a + int(self.u * (b - a + 1))

    def randrange(self, a, b=None):
        a, b = (0, a) if b is None else (a, b)
        return a + int(self.u * (b - a))

    def choice(self, seq, *_, **__):
        return list(seq)[int(self.u * len(seq))]

    def choices(self, seq, *_, k=1, **__):
        return [self.choice(seq)] * k

    def shuffle(self, x):
        pass

    def permutation(self, x):
        return list(range(x)) if isinstance(x, int) else list(x)

    def sample(self, seq, k, **__):
        return list(seq)[:k]


class LoadedNumPy(Loaded):
    def randint(self, a, b=None, size=None):
        x = self.randrange(a, b)
        return x if size is None else np.full(size, x)

    def choice(self, seq, size=None, *_, **__):
        x = (range(seq) if isinstance(seq, (int, np.integer)) else list(seq))[int(self.u * (seq if isinstance(seq, (int, np.integer)) else len(seq)))]
        return x if size is None else np.full(size, x)

    def __getattr__(self, name):
        return getattr(np.random, name)

    def multinomial(self, n, p, size=None):
        counts = np.zeros(len(p), dtype=int)
        counts[int(self.u * len(p))] = n
        return counts


class Ordered(collections.abc.MutableSet):
    """Stands in for sets, whose order of strings changes from run to run: it is that of insertion."""

    def __init__(self, items=()):
        self.items = dict.fromkeys(items)

    def __contains__(self, x):
        return x in self.items

    def __iter__(self):
        return iter(list(self.items))

    def __len__(self):
        return len(self.items)

    def add(self, x):
        self.items[x] = None

    def discard(self, x):
        self.items.pop(x, None)

    def update(self, *others):
        for other in others:
            for x in other:
                self.add(x)

    def difference(self, *others):
        return Ordered(x for x in self if not any(x in set(other) for other in others))

    def union(self, *others):
        result = Ordered(self)
        result.update(*others)
        return result

    def intersection(self, *others):
        return Ordered(x for x in self if all(x in set(other) for other in others))

    def difference_update(self, *others):
        for other in others:
            for x in list(other):
                self.discard(x)


class Proxy:
    """A module of which some names are replaced."""

    def __init__(self, module, **names):
        self.__dict__.update(names)
        self.__dict__["_module"] = module

    def __getattr__(self, name):
        return getattr(self._module, name)


def load(u):
    """Replaces random numbers in the modules of agents, and returns what undoes it."""
    dice, arrays = Loaded(u), LoadedNumPy(u)
    undo = []
    for name, module in list(sys.modules.items()):
        if module is None or not name.startswith("scml"):
            continue
        if name.startswith(DRAWING):
            undo.append((module, "set", set))
            module.set = Ordered
        for key, value in list(vars(module).items()):
            new = None
            if value is random:
                new = dice
            elif value is np:
                new = Proxy(np, random=arrays)
            elif value is np.random:
                new = arrays
            elif getattr(random, key, None) is value and hasattr(Loaded, key):
                new = getattr(dice, key)
            elif getattr(np.random, key, None) is value and hasattr(LoadedNumPy, key):
                new = getattr(arrays, key)
            if new is not None:
                undo.append((module, key, value))
                setattr(module, key, new)
    # A helper imports this one whenever it is called.
    undo.append((np.random, "choice", np.random.choice))
    np.random.choice = arrays.choice
    return undo


def issues(world):
    """The ranges of all products, as the agents of the levels read them."""
    def read(list):
        return [[int(i.min_value), int(i.max_value)] for i in list]

    result = {}
    for id in world.non_system_agent_ids:
        awi = world.agents[id].awi
        result[awi.my_input_product] = read(awi.current_input_issues)
        result[awi.my_output_product] = read(awi.current_output_issues)
    return [result[p] for p in range(len(world.catalog_prices))]


def official(seed, levels, days, speed, classes, sizes, u=None):
    """Plays a world and returns it in the form of onnxrl's files, with the seconds that it took. u loads the agents' dice."""
    random.seed(seed)
    np.random.seed(seed)
    draw = random.Random(seed)
    agent_types = [draw.choice(classes) for _ in range(sum(sizes))]
    config = SCML2024StdWorld.generate(
        agent_types=agent_types, n_processes=levels, n_steps=days, random_agent_types=False, n_agents_per_process=np.asarray(sizes),
    )
    undo = [] if u is None else load(u)
    world = SCML2024StdWorld(**config, negotiation_speed=speed, no_logs=True, compact=True, fast=True)
    ids = list(world.non_system_agent_ids)
    out = {
        "seed": seed, "n_processes": levels, "n_steps": days, "negotiation_speed": speed, "n_lines": 10,
        "catalog_prices": [int(p) for p in world.catalog_prices],
        "agents": {
            id: {
                "type": world.agents[id].type_name.split(":")[-1].split(".")[-1], "level": int(world.agents[id].awi.level), "cost": int(world.agent_profiles[id].cost), "initial_balance": float(world.initial_balances[id]),
                "storage_cost_per_day": [float(x) for x in world.agent_storage_cost[id]], "shortfall_penalty_per_day": [float(x) for x in world.agent_shortfall_penalty[id]],
            }
            for id in ids
        },
    }
    ranges, took = [], 0.0
    for _ in range(days):
        start = time.perf_counter()
        if not world.step():
            raise SystemExit("world %d: the official program ended after %d of %d days" % (seed, len(ranges), days))
        took += time.perf_counter() - start
        ranges.append(issues(world))
    for module, key, value in undo:
        setattr(module, key, value)
    stats = world.stats
    products = range(len(world.catalog_prices))
    exogenous, signed, executed, dropped = [], collections.defaultdict(list), collections.defaultdict(list), collections.defaultdict(list)
    for c in world.saved_contracts:
        product = int(c["product_name"][1:])
        if "SELLER" in (c["seller_name"], c["buyer_name"]) or "BUYER" in (c["seller_name"], c["buyer_name"]):
            exogenous.append({"day": int(c["delivery_time"]), "product": product, "seller": c["seller_name"], "buyer": c["buyer_name"], "quantity": int(c["quantity"]), "unit_price": int(c["unit_price"])})
            continue
        signed[int(c["signed_at"])].append({"id": c["id"], "seller": c["seller_name"], "buyer": c["buyer_name"], "quantity": int(c["quantity"]), "time": int(c["delivery_time"]), "unit_price": int(c["unit_price"]), "n_neg_steps": int(c["n_neg_steps"])})
        (executed if c["executed_at"] >= 0 else dropped)[int(c["delivery_time"])].append(c["id"])
    out["exogenous"] = sorted(exogenous, key=lambda e: e["day"])

    def number(key, day):
        x = float(stats[key][day])
        return 0.0 if math.isnan(x) else x

    out["days"] = [
        {
            "day": day,
            "trading_price_in_force": [float(world.catalog_prices[p]) if day == 0 else number("trading_price_%d" % p, day - 1) for p in products],
            "issues_q_t_p_by_product": ranges[day], "signed_today": signed[day], "executed_ids": executed[day], "dropped_ids": dropped[day],
            "end": {
                "trading_price": [number("trading_price_%d" % p, day) for p in products],
                "sold_quantity": [int(number("sold_quantity_%d" % p, day)) for p in products],
                "unit_price": [number("unit_price_%d" % p, day) for p in products],
                "agents": {
                    id: {
                        "balance": number("balance_" + id, day), "score": number("score_" + id, day), "bankrupt": bool(stats["bankrupt_" + id][day]), "productivity": number("productivity_" + id, day),
                        "shortfall_quantity": int(number("shortfall_quantity_" + id, day)), "shortfall_penalty": number("shortfall_penalty_" + id, day), "storage_cost": number("storage_cost_" + id, day),
                        "inventory_penalized": int(number("inventory_penalized_" + id, day)), "inventory_input": int(number("inventory_input_" + id, day)), "inventory_output": int(number("inventory_output_" + id, day)),
                    }
                    for id in ids
                },
            },
            "n_negotiations": int(stats["n_negotiations"][day]),
        }
        for day in range(days)
    ]
    out["final_scores"] = {id: float(s) for id, s in world.scores().items()}
    for day, d in enumerate(out["days"]):
        d["n_contracts_concluded"] = int(stats["n_contracts_concluded"][day])
    for id in ids:
        for _, r in world.agents[ids[0]].awi.reports_of_agent(id).items():
            out["days"][int(r.step)].setdefault("reports", {})[id] = {"cash": float(r.cash), "breach_prob": float(r.breach_prob), "breach_level": float(r.breach_level), "is_bankrupt": bool(r.is_bankrupt)}
    return out, took


def exported():
    """Returns the class of an exported agent, which logs what it does."""
    folder = os.path.abspath(args.exported)
    if os.path.dirname(folder) not in sys.path:
        sys.path.insert(0, os.path.dirname(folder))
    return importlib.import_module(os.path.basename(folder)).TrackedLitaAgentHRL


def make(job):
    kind, index, path = job
    draw = random.Random("%s %d" % (kind, index))
    levels = 2 + index % 3
    if kind == "scripted":
        sizes = [draw.randint(2, 5) for _ in range(levels)]
        speed = 21 if levels == 4 or index % 4 else None
        out, took = official(1000 + index, levels, draw.randint(6, 12), speed, [HashAgent, HashSyncAgent], sizes)
    elif kind == "exported":
        sizes = [draw.randint(2, 5) for _ in range(levels)]
        classes = [HashAgent, HashSyncAgent] + [exported()] * draw.randint(1, 3)
        draw.shuffle(classes)
        os.environ["SCML_TRACKER_LOG_DIR"] = path + ".tracker"
        out, took = official(3000 + index, levels, draw.randint(15, 30), 21, classes, sizes)
    elif kind == "loaded":
        sizes = [draw.randint(2, 4) for _ in range(levels)]
        # RandomStdAgent draws within negmas, whose dice are not loaded.
        classes = [c for c in rule_agents() if c is not RandomStdAgent]
        if index % 7 < 5:
            classes = [classes[index % 7]]
        u = draw.choice([0.05, 0.15, 0.35, 0.55, 0.75, 0.95])
        out, took = official(9000 + index, levels, draw.randint(6, 14), 21, classes, sizes, u)
        out["note"] = str(u)
    elif kind == "observed":
        levels = 2 + index % 2
        sizes = [draw.randint(4, 6) for _ in range(levels)]
        # Those that were observed are half of all.
        out, took = official(7000 + index, levels, args.days, 21, rule_agents() + 3 * observed_agents(), sizes)
    else:
        sizes = [draw.randint(4, 6) for _ in range(levels)]
        out, took = official(5000 + index, levels, args.days, 21, rule_agents(), sizes)
    with open(path, "w") as f:
        json.dump(out, f)
    return path, len(out["days"]), took


# What the agents of worlds with an exported one are called in onnxrl.
NATIVE = {"HashAgent": "hash", "HashSyncAgent": "hashsync", "TrackedLitaAgentHRL": args.native}


def native(*command):
    run = subprocess.run([PROGRAM, "scml"] + list(command), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if run.returncode not in (0, 1) or not run.stdout:
        raise SystemExit(run.stderr)
    return run.stdout


def first_difference(a, b):
    """What differs first between two worlds, day by day, or None."""
    index = {}
    for day, (x, y) in enumerate(zip(a["days"], b["days"])):
        for k, (c, d) in enumerate(zip(x["signed_today"], y["signed_today"])):
            index[d["id"]] = c["id"]
            c, d = ({key: v for key, v in s.items() if key != "id"} for s in (c, d))
            if c != d:
                return "day %d, contract %d: official %s, onnxrl %s" % (day, k, c, d)
        if len(x["signed_today"]) != len(y["signed_today"]):
            return "day %d: official %d contracts, onnxrl %d" % (day, len(x["signed_today"]), len(y["signed_today"]))
        for key in ("executed_ids", "dropped_ids"):
            if sorted(x[key]) != sorted(index[i] for i in y[key]):
                return "day %d: %s differ" % (day, key)
        if x["n_negotiations"] != y["n_negotiations"] or x["issues_q_t_p_by_product"] != y["issues_q_t_p_by_product"]:
            return "day %d: negotiations %d and %d, issues %s and %s" % (day, x["n_negotiations"], y["n_negotiations"], x["issues_q_t_p_by_product"], y["issues_q_t_p_by_product"])
        numbers = [("product %d %s" % (p, key), u, v) for key in ("trading_price", "sold_quantity", "unit_price") for p, (u, v) in enumerate(zip(x["end"][key], y["end"][key]))]
        numbers += [("%s %s" % (id, key), v, y["end"]["agents"][id][key]) for id, agent in x["end"]["agents"].items() for key, v in agent.items()]
        # A balance near zero is the small difference of large sums: it is relative to the money before the first day, too.
        scale = {"%s balance" % id: agent["initial_balance"] for id, agent in a["agents"].items()}
        for name, u, v in numbers:
            if abs(u - v) > TOLERANCE * max(1, scale.get(name, 1), abs(u)):
                return "day %d, %s: official %r, onnxrl %r" % (day, name, u, v)
        if x["n_contracts_concluded"] != y["n_contracts_concluded"]:
            return "day %d: %d contracts concluded, and %d" % (day, x["n_contracts_concluded"], y["n_contracts_concluded"])
    if len(a["days"]) != len(b["days"]):
        return "%d days and %d" % (len(a["days"]), len(b["days"]))
    return None


def tracked(folder):
    """The logs of trackers in a folder, by agent: entries without the clock, and numbers that identify nothing else."""
    logs = {}
    for name in os.listdir(folder):
        if not name.startswith("agent_"):
            continue
        with open(os.path.join(folder, name)) as f:
            log = json.load(f)
        names, entries = {}, []
        for e in log["entries"]:
            data = dict(e["data"])
            for key in ("mechanism_id", "contract_id"):
                if key in data:
                    data[key] = names.setdefault(data[key], len(names))
            if e["event"] != "agent_initialized":
                entries.append({**data, "day": e["day"], "event": e["category"] + "." + e["event"]})
        logs[log["agent_id"].split("#")[0]] = entries, log["stats"], log["time_series"]
    return logs


def different(a, b):
    """Reports whether two values of JSON differ."""
    if isinstance(a, dict) and isinstance(b, dict):
        return set(a) != set(b) or any(different(a[k], b[k]) for k in a)
    if isinstance(a, list) and isinstance(b, list):
        return len(a) != len(b) or any(different(x, y) for x, y in zip(a, b))
    if isinstance(a, (int, float)) and isinstance(b, (int, float)):
        return abs(a - b) > TOLERANCE * max(1, abs(a))
    return a != b


def trackers_differ(theirs, ours):
    """What differs first between the logs of trackers of both programs, or None. Negotiations of a day go on beside each other: entries of one, and those of none, are compared in their order. Ends are left out: where
    an agent ends a negotiation by not naming it when it is asked about others, onnxrl tells of it and what it had been offered, and in the official program a tracker is not asked."""
    a, b = tracked(theirs), tracked(ours)
    for id in a:
        for i, what in ((1, "stats"), (2, "time series")):
            a[id][1].pop("offers_rejected", None)
            b[id][1].pop("offers_rejected", None)
            if different(a[id][i], b[id][i]):
                return "%s of %s: official %s, onnxrl %s" % (what, id, a[id][i], b[id][i])
        sides = []
        for entries in (a[id][0], b[id][0]):
            of = collections.defaultdict(list)
            for e in entries:
                if "contract_id" in e:
                    e = {**e, "contract_id": None}
                if e["event"] == "contract.executed":
                    key = e["day"], "executed", e["partner"], e["quantity"], e["price"]
                else:
                    key = e["day"], e["event"].split(".")[0] in ("inventory",), e.get("partner")
                of[key].append({**e, "mechanism_id": None} if "mechanism_id" in e else e)
            for key, all in of.items():
                ends = {i + d for i, e in enumerate(all) if e["event"] == "negotiation.reject" for d in (-1, 0, 1)}
                of[key] = [e for i, e in enumerate(all) if i not in ends]
            sides.append(of)
        if set(sides[0]) != set(sides[1]):
            return "%s: entries of %s" % (id, sorted(set(sides[0]) ^ set(sides[1]), key=str)[:3])
        for key in sides[0]:
            for x, y in itertools.zip_longest(sides[0][key], sides[1][key]):
                if different(x, y):
                    return "%s, %s: official %s, onnxrl %s" % (id, key, x, y)
    return None


def measures(world):
    """What worlds with agents of their own random numbers are compared by."""
    result = collections.defaultdict(list)
    for id, a in world["agents"].items():
        where = "4 levels" if world["n_processes"] == 4 else "2-3 levels"
        result["score of %s, %s, level %s" % (a["type"], where, "0" if a["level"] == 0 else "1+")].append(world["final_scores"][id])
    by_level, by_type = collections.defaultdict(int), {a["type"]: [0, 0, 0.0] for a in world["agents"].values()}
    for a in world["agents"].values():
        by_type[a["type"]][0] += 1
    for day in world["days"]:
        for c in day["signed_today"]:
            product = world["agents"][c["buyer"]]["level"]
            by_level[product] += 1
            for side in ("buyer", "seller"):
                t = by_type[world["agents"][c[side]]["type"]]
                t[1] += 1
                t[2] += c["quantity"]
            result["price / trading price"].append(c["unit_price"] / day["trading_price_in_force"][product])
            result["rounds to agreement"].append(c["n_neg_steps"])
            result["quantity of an agreement"].append(c["quantity"])
            result["days ahead"].append(c["time"] - day["day"])
    for typ, (agents, agreements, quantity) in by_type.items():
        result["agreements a day of %s" % typ].append(agreements / agents / len(world["days"]))
        result["quantity a day of %s" % typ].append(quantity / agents / len(world["days"]))
    for product in range(1, world["n_processes"]):
        result["agreements a day, product %d of %d levels" % (product, world["n_processes"])].append(by_level[product] / len(world["days"]))
    # One number for each world, since what happens in one world is not independent.
    return {key: sum(list) / len(list) for key, list in result.items()}


def compare_distributions(official_worlds, native_worlds):
    """Compares means over configurations, paired; native_worlds has several runs of each."""
    differences = collections.defaultdict(list)
    means = collections.defaultdict(lambda: ([], []))
    for a, runs in zip(official_worlds, native_worlds):
        mine = [measures(b) for b in runs]
        for key, value in measures(a).items():
            theirs = [m[key] for m in mine if key in m]
            if theirs:
                x = sum(theirs) / len(theirs)
                differences[key].append(x - value)
                means[key][0].append(value)
                means[key][1].append(x)
    far = 0
    print("%-60s %9s %9s %9s %6s %17s %6s" % ("", "official", "onnxrl", "± s.e.", "off", "onnxrl is more by", "worlds"))
    for key in sorted(differences):
        d = differences[key]
        if len(d) < 5:
            continue
        mean, se = sum(d) / len(d), float(np.std(d, ddof=1)) / math.sqrt(len(d))
        off = mean / se if se > 0 else 0.0
        far += abs(off) > 3
        print("%-60s %9.3f %9.3f %9.3f %5.1fσ %+7.3f … %+7.3f %6d" % (key, np.mean(means[key][0]), np.mean(means[key][1]), se, off, mean - 1.96 * se, mean + 1.96 * se, len(d)))
    return far


def main():
    global PROGRAM, LOADED
    temp = tempfile.TemporaryDirectory()
    folder = args.keep or temp.name
    os.makedirs(folder, exist_ok=True)
    PROGRAM = os.path.join(temp.name, "onnxrl")
    subprocess.run(["go", "build", "-o", PROGRAM, "./cmd/onnxrl"], check=True)
    LOADED = os.path.join(temp.name, "scml")
    subprocess.run(["go", "build", "-o", LOADED, "./cmd/peers/scml"], check=True)
    jobs = [("scripted", i, os.path.join(folder, "scripted-%03d.json" % i)) for i in range(args.scripted)]
    jobs += [("loaded", i, os.path.join(folder, "loaded-%03d.json" % i)) for i in range(args.loaded)]
    jobs += [("rules", i, os.path.join(folder, "rules-%03d.json" % i)) for i in range(args.rules)]
    jobs += [("observed", i, os.path.join(folder, "observed-%03d.json" % i)) for i in range(args.observed)]
    if args.exported:
        jobs += [("exported", i, os.path.join(folder, "exported-%03d.json" % i)) for i in range(args.exports)]
    todo = [j for j in jobs if not os.path.exists(j[2])]
    times = {"scripted": [0, 0.0], "loaded": [0, 0.0], "rules": [0, 0.0], "observed": [0, 0.0], "exported": [0, 0.0]}
    with multiprocessing.Pool(args.jobs) as pool:
        for done, (path, days, took) in enumerate(pool.imap_unordered(make, todo), 1):
            t = times[os.path.basename(path).split("-")[0]]
            t[0] += days
            t[1] += took
            print("\r%d of %d worlds played by the official program" % (done, len(todo)), end="", file=sys.stderr)
    print(file=sys.stderr)

    failed = 0
    replayed = json.loads(native("replay", "--json", "--quiet", *[j[2] for j in jobs]))
    for w in replayed["worlds"]:
        if w["difference"] or w.get("problem"):
            failed += 1
            print("replay of %s: %s" % (w["path"], w["difference"] or w["problem"]))
    print("replay: %d of %d worlds equal, %d numbers, %d contracts, %d dropped, %d bankruptcies, worst error %.1e" % (
        len(jobs) - replayed["failed"], len(jobs), *(sum(w[k] for w in replayed["worlds"]) for k in ("numbers", "contracts", "dropped", "bankrupt")), max(w["worst_error"] for w in replayed["worlds"])))

    equal, same = collections.Counter(), collections.Counter()
    seconds = {kind: [0, 0.0] for kind in times}
    theirs, ours = {"rules": [], "observed": []}, {"rules": [], "observed": []}
    for kind, index, path in jobs:
        with open(path) as f:
            a = json.load(f)
        if kind == "loaded":
            out = os.path.join(temp.name, "native.json")
            subprocess.run([LOADED, "-u", a["note"], "-o", out, path], check=True)
            with open(out) as f:
                difference = first_difference(a, json.load(f))
            key = " ".join(sorted({x["type"] for x in a["agents"].values()}))
            same[key, difference is None] += 1
            if difference:
                failed += 1
                print("%s (%s, u = %s): %s" % (os.path.basename(path), key, a["note"], difference))
            continue
        runs = []
        for seed in range(8 if kind == "rules" else 1):
            out = os.path.join(temp.name, "native.json")
            logs = os.path.join(temp.name, "logs-%03d" % index)
            who = ["--logs", logs, "--track", "--agents", ",".join(NATIVE[x["type"]] for x in a["agents"].values())] if kind == "exported" else []
            r = json.loads(native("run", path, "-o", out, "--json", "--quiet", "--seed", str(seed), *who))
            seconds[kind][0] += r["days_played"]
            seconds[kind][1] += r["seconds"]
            with open(out) as f:
                runs.append(json.load(f))
        if kind in theirs:
            theirs[kind].append(a)
            ours[kind].append(runs)
            continue
        difference = first_difference(a, runs[0])
        if kind == "exported" and difference is None:
            difference = trackers_differ(path + ".tracker", os.path.join(logs, "tracker_logs"))
        key = "%s, %d levels" % (kind, a["n_processes"])
        equal[key, difference is None] += 1
        if difference:
            failed += 1
            print("%s (%s): %s" % (os.path.basename(path), key, difference))
    for key in sorted({k for k, _ in equal}, reverse=True):
        print("%s: %d of %d worlds equal" % (key.replace("scripted", "scripted agents").replace("exported", "the exported agent"), equal[key, True], equal[key, True] + equal[key, False]))
    for key in sorted({k for k, _ in same}):
        print("loaded dice, %s: %d of %d worlds equal" % (key, same[key, True], same[key, True] + same[key, False]))
    for kind in times:
        if times[kind][0] and seconds[kind][1]:
            a, b = times[kind][1] / times[kind][0], seconds[kind][1] / seconds[kind][0]
            print("speed, %s agents: official %.4f s a day, onnxrl %.6f s, %.0f times as fast" % (kind, a, b, a / b))
    if theirs["observed"]:
        print("agents after observation:")
        compare_distributions(theirs["observed"], ours["observed"])
    far = compare_distributions(theirs["rules"], ours["rules"]) if theirs["rules"] else 0
    if far:
        print("%d means differ by more than three standard errors" % far)
    sys.exit(1 if failed or far else 0)


if __name__ == "__main__":
    main()
