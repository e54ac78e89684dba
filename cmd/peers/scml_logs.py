"""Lets the official tools read the folders of "onnxrl scml run --logs" and "scml tournament --logs", and compares what is in them with what the official program writes.

Run it from the root of the repository:

    python3 cmd/peers/scml_logs.py [--onnxrl PROGRAM] [--env DIR]

It plays a world of 8 days in the official program with all its logs, and one of onnxrl with --log-negotiations and --log-ufuns. Names of files, columns of tables, the types of events and the keys of their data, and
the lines of log.txt without names and numbers must be the same; the file of each negotiation must be its history. Then negmas (evaluate_tournament, which ranks) and scml-vis (its compiler, whose tables its pages
show) read a tournament of onnxrl: scores must be those of its own tables, and all worlds, contracts and offers be there. The exit status is 1 if anything differs.

The packages are installed by pip in an environment below the temporary folder, unless --env names one.
"""
import argparse
import ast
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import types
import venv
import warnings

PACKAGES = ["scml==0.7.6", "negmas==0.11.3", "numpy==1.26.4", "pandas==2.3.3"]
VISUALISER = "scml-vis==0.3.2"


def enter(folder):
    """Continues in the environment of the official packages, which it makes if there is none."""
    python = os.path.join(folder, "bin", "python")
    if not os.path.exists(os.path.join(folder, "complete")):
        venv.create(folder, with_pip=True)
        pip = [python, "-m", "pip", "install", "-q"]
        subprocess.run(pip + PACKAGES, check=True)
        # Only its compiler is used, which needs none of what its pages need.
        subprocess.run(pip + ["--no-deps", VISUALISER], check=True)
        open(os.path.join(folder, "complete"), "w").close()
    if os.path.realpath(sys.prefix) != os.path.realpath(folder):
        os.execv(python, [python] + sys.argv)


parser = argparse.ArgumentParser()
parser.add_argument("--onnxrl", default="onnxrl")
parser.add_argument("--env", default=os.path.join(tempfile.gettempdir(), "onnxrl-scml-logs"))
args = parser.parse_args()
enter(args.env)

warnings.filterwarnings("ignore")

import numpy  # noqa: E402
import pandas  # noqa: E402
import random  # noqa: E402
from negmas.tournaments.tournaments import evaluate_tournament  # noqa: E402
from scml.std import SCML2024StdWorld  # noqa: E402
from scml.std.agents import GreedyStdAgent, RandomStdAgent, SyncRandomStdAgent  # noqa: E402

wrong = []


def check(ok, text):
    if not ok:
        wrong.append(text)
        print("differs:", text)


def official(folder):
    random.seed(3)
    numpy.random.seed(3)
    config = SCML2024StdWorld.generate(agent_types=[SyncRandomStdAgent, GreedyStdAgent, RandomStdAgent], n_processes=2, n_steps=8, random_agent_types=True, n_agents_per_process=3)
    world = SCML2024StdWorld(**config, negotiation_speed=21, neg_time_limit=60, fast=False, compact=False, no_logs=False, log_negotiations=True, log_ufuns=True, log_stats_every=1, log_folder=folder, name="official")
    world.run()
    # A single world's statistics have the ending twice; a tournament's have it once.
    os.rename(os.path.join(folder, "stats.csv.csv"), os.path.join(folder, "stats.csv"))


def native(*command):
    subprocess.run([args.onnxrl, "scml", *command, "-q"], check=True, stdout=subprocess.DEVNULL)


def events(folder):
    """The keys of the data of each type of event."""
    kinds = {}
    for line in open(os.path.join(folder, "events.json")):
        e = json.loads(line.rstrip().removesuffix(","))
        kinds.setdefault(e["type"], set()).add((tuple(e), tuple(e["data"]), tuple(e["data"].get("annotation") or ())))
    return kinds


def lines(folder):
    """The lines of the log without names, numbers and identifiers."""
    kinds = set()
    for line in open(os.path.join(folder, "log.txt")):
        line = re.sub(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f-]{22}", "ID", line.strip())
        line = re.sub(r"\d\d[A-Za-z]+@\d|SELLER|BUYER", "AGENT", line.replace(os.path.basename(folder), "WORLD"))
        line = re.sub(r"\(BANKRUPT\)\s*|-?\d+(\.\d+)?(e-?\d+)?", lambda m: "" if m[0][0] == "(" else "N", line)
        line = re.sub(r"^Dropped .*|(Dropped) .*", r"\1 CONTRACT", line)
        kinds.add(re.sub(r"True|False", "FLAG", re.sub(r"\s+", " ", line)))
    return kinds


def columns(path):
    """The columns of a table, without the agents in their names."""
    if os.path.getsize(path) == 0:
        return []
    names = [re.sub(r"_\d\d[A-Za-z]+@\d$", "_AGENT", name) for name in pandas.read_csv(path, nrows=0).columns]
    return list(dict.fromkeys(names))


def compare(theirs, ours):
    have, want = set(os.listdir(ours)), set(os.listdir(theirs)) - {"_agent_logs"}
    # A single official world is not saved by a tournament, which writes this one.
    check(have - {"_current_scores.json"} == want - {"_current_scores.json"}, f"files: {sorted(have ^ want)}")
    for name in sorted(n for n in want & have if n.endswith(".csv")):
        a, b = columns(os.path.join(theirs, name)), columns(os.path.join(ours, name))
        check(a == b, f"{name}: columns {sorted(set(a) ^ set(b))}, in this order: {a} and {b}")
    a, b = events(theirs), events(ours)
    for kind in sorted(set(a) & set(b)):
        check(a[kind] == b[kind], f"events.json: {kind} has {b[kind]}, expected {a[kind]}")
    # Whether anything is dropped depends on the world.
    check(set(a) ^ set(b) <= {"dropped-contract"}, f"events.json: types {sorted(set(a) ^ set(b))}")
    a, b = lines(theirs), lines(ours)
    check(all("Dropped" in x for x in a ^ b), f"log.txt: {sorted(x for x in a ^ b if 'Dropped' not in x)}")
    table = pandas.read_csv(os.path.join(ours, "negotiations.csv"), index_col=0)
    names = {name.removesuffix(".csv") for name in os.listdir(os.path.join(ours, "negotiations"))}
    check(names == set(table.id), f"negotiations: {len(names ^ set(table.id))} files without a row, or rows without a file")
    for _, row in table.iterrows():
        rounds = pandas.read_csv(os.path.join(ours, "negotiations", row.id + ".csv"), keep_default_na=False, float_precision="round_trip")
        history = ast.literal_eval(row.history)
        same = len(rounds) == len(history) and all(("" if h[k] is None else str(h[k])) == str(r[k]) for h, (_, r) in zip(history, rounds.iterrows()) for k in rounds.columns)
        check(same, f"negotiations/{row.id}.csv is not its history")
    offers = pandas.read_csv(os.path.join(ours, "ufuns.csv"))
    check(set(offers.mechanism_id) >= names, "ufuns.csv lacks negotiations")
    print(f"{len(table)} negotiations, {len(offers)} offers that could be made")


def visualiser(folder):
    """The tables that scml-vis makes of a folder; a failure of one of its worlds is only printed there, and raised here."""
    home = next(p for p in (os.path.join(x, "scml_vis") for x in sys.path) if os.path.isdir(p))
    # The package itself imports what its pages need.
    package = types.ModuleType("scml_vis")
    package.__path__ = [home]
    sys.modules["scml_vis"] = package
    from pathlib import Path

    import scml_vis.compiler as compiler

    here = os.getcwd()
    os.chdir(folder)
    try:
        compiler.main(Path("."))
    finally:
        os.chdir(here)
    read = {}
    for name in ("worlds", "agents", "contracts", "negotiations", "offers"):
        path = os.path.join(folder, "_visdata", name + ".csv")
        read[name] = len(pandas.read_csv(path)) if os.path.exists(path) else 0
    return read


def main():
    top = tempfile.mkdtemp(prefix="scml-logs-")
    try:
        theirs, ours, tournament = (os.path.join(top, x) for x in ("official", "world_3", "tournament"))
        official(theirs)
        native("run", "--levels", "2", "--days", "8", "--seed", "3", "--logs", ours, "--log-negotiations", "--log-ufuns")
        compare(theirs, ours)
        native("tournament", "penguin", "greedy", "--configs", "3", "--processes", "2,3", "--days", "8,10", "--logs", tournament)
        table = pandas.read_csv(os.path.join(tournament, "total_scores.csv"), index_col=0)
        results = evaluate_tournament(tournament, compile=False, metric="truncated_mean")
        same = dict(zip(table.agent_type, table.score))
        for _, row in results.total_scores.iterrows():
            check(abs(same[row.agent_type] - row.score) < 1e-12, f"evaluate_tournament: {row.agent_type} has {row.score}, expected {same[row.agent_type]}")
        check(len(results.total_scores) == 2 and len(results.scores) == 12, f"evaluate_tournament: {len(results.scores)} scores, expected 12")
        worlds = os.listdir(os.path.join(tournament, "logs"))
        rows = {name: sum(len(pandas.read_csv(os.path.join(tournament, "logs", w, name + ".csv"))) for w in worlds) for name in ("contracts", "negotiations")}
        read = visualiser(tournament)
        check(read["worlds"] == len(worlds) == 6, f"scml-vis: {read['worlds']} worlds of {len(worlds)}")
        check(0 < read["contracts"] <= rows["contracts"] and read["negotiations"] > 0 and read["offers"] > read["negotiations"], f"scml-vis: {read} of {rows}")
        print(f"negmas ranks {list(results.total_scores.agent_type)}; scml-vis reads {read}")
    finally:
        shutil.rmtree(top)
    print("differences:", len(wrong))
    sys.exit(1 if wrong else 0)


main()
