"""Collects logs of tournaments of SCML's Standard league with the official packages.

Run it from the root of the repository:

    python3 cmd/peers/scml_collect.py [--agents NAME,NAME...] [--configs 5] [--days 90,100] [--out tournament_history/DIR] [--path DIR] [--env DIR] [--jobs 1]
    onnxrl scml samples tournament_history/DIR -o data/scml

Participants are given by the names of their classes: those of the packages are found by name, others as module:Class, with --path where their code is. Without --agents they are LitaAgentYR, PenguinAgent,
the entrants of 2025 (AS0, XenoSotaAgent, UltraSuperMiracleSoraFinalAgentZ, PriceTrendStdAgent, PonponAgent), RandomStdAgent, SyncRandomStdAgent, and every class of the packages' built-in agents that has
Decay in its name. One that cannot be imported is named and left out, unless it was asked for.

The folder, tournament_history/hrl_data_TIME_std unless --out names one, gets the tournament's tables and a folder for each world, with all that the switches of negotiations write (log_negotiations,
log_ufuns with --ufuns, and compact=False, fast=False, no_logs=False, without which these do nothing). Agents that a tracker of scml_analyzer wraps write beside them, into tracker_logs: its folder is in the
environment variable SCML_TRACKER_LOG_DIR.

The packages are installed by pip in an environment below the temporary folder, unless --env names one. pandas 3 breaks the tournament's tables.
"""
import argparse
import importlib
import importlib.util
import os
import pathlib
import random
import subprocess
import sys
import tempfile
import time
import types
import venv
import warnings

PACKAGES = ["scml==0.7.6", "negmas==0.11.3", "numpy==1.26.4", "pandas==2.2.3"]
AGENTS = "scml-agents==0.4.13"

# Where the classes of scml-agents are.
PUBLISHED = {
    "PenguinAgent": "scml_agents.scml2024.standard.team_penguin",
    "AS0": "scml_agents.scml2025.standard.team_atsunaga",
    "XenoSotaAgent": "scml_agents.scml2025.standard.team_253",
    "UltraSuperMiracleSoraFinalAgentZ": "scml_agents.scml2025.standard.team_254",
    "PriceTrendStdAgent": "scml_agents.scml2025.standard.team_280",
    "PonponAgent": "scml_agents.scml2025.standard.team_255",
    "KATSUDONAgent": "scml_agents.scml2025.standard.team_268",
    "LitaAgentYR": "scml_agents.scml2025.standard.team_276",
}
BUILTIN = ("scml.std.agents", "scml.oneshot.agents")
FIELD = ["LitaAgentYR", "PenguinAgent", "AS0", "XenoSotaAgent", "UltraSuperMiracleSoraFinalAgentZ", "PriceTrendStdAgent", "PonponAgent", "RandomStdAgent", "SyncRandomStdAgent"]


def enter(folder):
    """Continues in the environment of the official packages, which it makes if there is none."""
    python = os.path.join(folder, "bin", "python")
    if not os.path.exists(os.path.join(folder, "complete")):
        venv.create(folder, with_pip=True)
        pip = [python, "-m", "pip", "install", "-q"]
        subprocess.run(pip + PACKAGES, check=True)
        subprocess.run(pip + ["--no-deps", AGENTS], check=True)
        open(os.path.join(folder, "complete"), "w").close()
    if os.path.realpath(sys.prefix) != os.path.realpath(folder):
        os.execv(python, [python] + sys.argv)


parser = argparse.ArgumentParser()
parser.add_argument("--agents", help="names of classes, or module:Class, with commas")
parser.add_argument("--configs", type=int, default=5)
parser.add_argument("--runs", type=int, default=1)
parser.add_argument("--days", default="90,100")
parser.add_argument("--processes", default="2,4")
parser.add_argument("--per-world", type=int, help="participants of a world (default: all, at most 10)")
parser.add_argument("--out")
parser.add_argument("--path", action="append", default=[], help="a folder of modules")
parser.add_argument("--ufuns", action="store_true", help="log utilities, of 24 MB for 10 days of 10 agents")
parser.add_argument("--seed", type=int, default=1)
parser.add_argument("--env", default=os.path.join(tempfile.gettempdir(), "onnxrl-scml-collect"))
args = parser.parse_args()
enter(args.env)
sys.path[:0] = args.path

warnings.filterwarnings("ignore", category=FutureWarning)

import numpy  # noqa: E402
from scml.utils import anac2024_std  # noqa: E402

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


def find(name):
    """The class of a name."""
    if ":" in name:
        module, _, name = name.partition(":")
        return getattr(importlib.import_module(module), name)
    if name in PUBLISHED:
        return published(PUBLISHED[name], name)
    for module in BUILTIN:
        found = getattr(importlib.import_module(module), name, None)
        if found is not None:
            return found
    raise LookupError(f"no class is called {name}: name its module, as module:{name}")


def participants():
    """The classes that compete."""
    if args.agents:
        return [find(name) for name in args.agents.split(",")]
    decaying = sorted({name for module in BUILTIN for name in dir(importlib.import_module(module)) if "Decay" in name})
    if not decaying:
        print("the packages have no agent with Decay in its name")
    found = []
    for name in FIELD + decaying:
        try:
            found.append(find(name))
        except Exception as error:
            print(f"{name} is left out: {error!r}")
    return found


def pair(text, name):
    numbers = tuple(int(x) for x in text.split(","))
    if len(numbers) != 2 or numbers[0] > numbers[1]:
        parser.error(f"--{name} {text}: expected the least and the most")
    return numbers


def main():
    days, processes = pair(args.days, "days"), pair(args.processes, "processes")
    classes = participants()
    if len(classes) < 2:
        parser.error(f"{len(classes)} participants, expected two or more")
    folder = pathlib.Path(args.out or f"tournament_history/hrl_data_{time.strftime('%Y%m%d_%H%M%S')}_std").resolve()
    if folder.exists():
        parser.error(f"--out {folder} exists; choose another folder")
    tracker = folder / "tracker_logs"
    tracker.mkdir(parents=True)
    os.environ["SCML_TRACKER_LOG_DIR"] = str(tracker)
    print(f"{len(classes)} participants: {', '.join(c.__name__ for c in classes)}")
    random.seed(args.seed)
    numpy.random.seed(args.seed)
    results = anac2024_std(
        competitors=classes, n_configs=args.configs, n_runs_per_world=args.runs, n_steps=days, n_processes=processes, n_competitors_per_world=min(args.per_world or 10, len(classes)),
        tournament_path=str(folder), name=folder.name, parallelism="serial", verbose=False, forced_logs_fraction=1.0, fast=False, compact=False, no_logs=False, log_negotiations=True, log_ufuns=args.ufuns,
    )
    if not any(tracker.iterdir()):
        tracker.rmdir()
    worlds = sorted(folder.glob("**/negotiations.csv"))
    negotiations = sum(sum(1 for _ in open(w.parent / "negs.csv")) - 1 for w in worlds)
    print(results.total_scores.to_string(index=False))
    print(f"{len(worlds)} worlds, {negotiations} negotiations in {folder}")
    if not worlds:
        sys.exit(1)


main()
