"""Plays the calls of a recording again and compares each answer:

    python -m PACKAGE.replay CALLS.jsonl...

The recordings are those of onnxrl scml run --calls: what native agents were asked, what they knew, and what they answered. The first answer that differs is named, and the exit status is then 1.
"""
import json
import os
import sys
import time

from . import hierarchy
from .networks import Networks
from .shield import Contract, offered
from .view import View


class Recorded(View):
    """Has the answers that were recorded."""

    def read(self, values):
        for key, value in values.items():
            setattr(self, key, value)

    def round(self, k):
        return self.rounds_done[k]

    def live(self, k):
        return self.running[k]


def replay(path, networks):
    """Returns how many answers there were, each about one negotiation, and how many seconds they took. A difference is a ValueError."""
    agents, answers, seconds = {}, 0, 0.0
    with open(path) as f:
        for number, line in enumerate(f, 1):
            where = f"{path}, line {number}"
            try:
                c = json.loads(line)
                call, who = c["call"], c["agent"]
            except (ValueError, TypeError, KeyError) as e:
                raise ValueError(f"{where}: expected an object with call and agent: {e!r}") from e
            if call == "starts":
                agents[who] = hierarchy.Agent(networks), Recorded()
            elif who not in agents:
                raise ValueError(f"{where}: agent {who} is asked {call} before it starts")
            agent, view = agents[who]
            view.read(c.get("view", {}))
            started = time.perf_counter()
            replies = answer(agent, view, c, where)
            seconds += time.perf_counter() - started
            recorded = c.get("replies", [])
            if len(replies) != len(recorded):
                raise ValueError(f"{where}: {len(replies)} answers, and {len(recorded)} recorded")
            for k, (mine, native) in enumerate(zip(replies, recorded)):
                if (list(mine) if offered(mine) else mine) != native:
                    raise ValueError(f"{where}: agent {who}, day {view.today}, {call}, slot {k}: the exported agent answers {mine}, the native one {native}")
                answers += native is not None
    if answers == 0:
        raise ValueError(f"{path}: there is no answer in it")
    return answers, seconds


def answer(agent, view, c, where):
    """Makes a call and returns the replies, which are none where none is asked for."""
    call = c["call"]
    if call == "starts":
        agent.starts(view)
    elif call == "day_begins":
        view.offers = [None] * view.slots
        agent.day_begins()
    elif call == "agreed":
        agent.agreed(Contract(**c["contract"]))
    elif call == "failed":
        agent.failed(c.get("slot"))
    elif call == "first_proposals":
        return agent.first_proposals()
    elif call == "counter_all":
        for k, offer in zip(c["heard"], c["offers"]):
            view.offers[k] = tuple(offer)
        return agent.counter_all(c["heard"])
    else:
        raise ValueError(f"{where}: the call is {call!r}, expected starts, day_begins, agreed, failed, first_proposals or counter_all")
    return []


def main(paths):
    if not paths:
        print(__doc__.strip(), file=sys.stderr)
        return 2
    try:
        networks = Networks(os.path.dirname(os.path.abspath(__file__)))
        for path in paths:
            answers, seconds = replay(path, networks)
            print(f"{path}: {answers} answers equal, {1000 * seconds / max(answers, 1):.3f} ms each")
    except (OSError, ValueError) as e:
        print(e, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
