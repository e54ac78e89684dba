"""The agent of four layers: agent.go and residual.go of onnxrl's package agents/scml/hierarchy, call for call."""
import math

from . import executor, observe
from .executor import Executor, cut
from .shield import ACCEPT, BUY, END, SELL, Guard, offered


class Agent(Guard):
    """Decides by a view. networks has the layers that there are; None is the first layer alone."""

    def __init__(self, networks=None):
        self.networks = networks
        self.manages = networks is not None and networks.manages
        self.executes = networks is not None and networks.executes
        self.direct = networks is not None and networks.direct

    def starts(self, view):
        super().starts(view)
        self.executor = Executor()
        self.executor.starts(view)
        # Negotiations with each partner, contracts, and today's offers by slot.
        self.met, self.contracts, self.moves = {}, {}, []

    def day_begins(self):
        super().day_begins()
        v = self.view
        day = observe.Day(v, self)
        self.moves = [[] for _ in range(v.slots)]
        for partner in v.partners:
            self.met[partner] = self.met.get(partner, 0) + 1
        if self.manages:
            goal = executor.decode(self.networks.goal(day), day)
        else:
            goal = executor.default(day)
        self.executor.day_begins(goal)

    def agreed(self, contract):
        super().agreed(contract)
        self.executor.concluded(contract)
        self.contracts[contract.partner] = self.contracts.get(contract.partner, 0) + 1

    def first_proposals(self):
        """Returns a reply for each slot."""
        return self._answer([], True)

    def counter_all(self, heard):
        """Returns a reply for each slot: heard are those with an offer, in the order in which they came."""
        return self._answer(heard, False)

    def _answer(self, heard, first):
        threads = self._prepare(heard, first)
        if self.executes and threads:
            self.networks.change(threads, self.executor.goal)
        return self._finish(heard, threads)

    def _prepare(self, heard, first):
        """Computes what the baseline answers, and returns the negotiations that are to be answered."""
        v, e = self.view, self.executor
        self.hears(heard)
        for k in heard:
            self.moves[k].append((False, v.round(k), v.offers[k]))
        base, counters = e.answer(heard, first, self)
        partners = [0, 0]
        for k in range(v.slots):
            if v.live(k):
                partners[v.side(k)] += 1
        threads = []
        for k in range(v.slots):
            hears = k in heard
            if not hears and not (first and v.live(k)):
                continue
            side, box, reply, partner = v.side(k), v.box(k), base[k], v.partners[k]
            if offered(reply):
                counters[k] = reply
            offer, safe, ahead = None, 0, 0
            if hears:
                offer = v.offers[k]
                ahead = offer[1] - v.today
                # Only networks read it.
                safe = self.most(k, side, offer) if self.executes else 0
            if counters[k] is None:
                counters[k] = self._token(k, hears)
            still, later = e.left_of(side)
            threads.append(observe.Thread(
                k, side == BUY, v.round(k), v.rounds, v.today, v.lines, box, offer, reply, counters[k], safe, still, later, e.limit(side, ahead),
                partners[side], self.contracts.get(partner, 0), self.met.get(partner, 0), self.moves[k]))
        return threads

    def _token(self, k, heard):
        """The offer of one unit that keeps a negotiation going: for the day that the partner asks for, or for tomorrow, at the price of the goal, or the best one where nobody has offered."""
        v = self.view
        (low, high), side = v.box(k), v.side(k)
        if heard:
            time = v.offers[k][1]
            return (1, time, executor.price(self.executor.limit(side, time - v.today), (low, high)))
        return (1, min(v.today + 1, high[1]), low[2] if side == BUY else high[2])

    def _finish(self, heard, threads):
        """Returns the replies: those of the baseline, changed by the networks, and cut to what is safe."""
        v = self.view
        replies = [None] * v.slots
        for t in threads:
            replies[t.slot] = direct(t, v.box(t.slot)) if self.direct else residual(t, v.box(t.slot))
        self.apply(heard, replies)
        for t in threads:
            if offered(replies[t.slot]):
                self.moves[t.slot].append((True, v.round(t.slot), replies[t.slot]))
        return replies


def residual(t, box):
    """The baseline's answer to a thread, changed by the residual."""
    accepts = t.base == ACCEPT
    if t.offer is not None and _sign(accepts) + 2 * t.change[2] > 0:
        return ACCEPT
    if _sign(not accepts and not offered(t.base)) + 2 * t.change[3] > 0:
        return END
    quantity, time, unit_price = t.counter
    low, high = box
    quantity = _within(float(quantity) + t.change[0] * float(t.lines) / 2, low[0], high[0])
    unit_price = _within(float(unit_price) + t.change[1] * float(high[2] - low[2]) / 2, low[2], high[2])
    return (quantity, time, unit_price)


def direct(t, box):
    """The answer that the residual says."""
    if t.offer is not None and t.change[2] > 0:
        return ACCEPT
    low, high = box
    quantity = _within(t.change[0] * executor.MOST * float(t.lines), 0, high[0])
    if t.change[3] > 0 or quantity == 0:
        return END
    bottom, top = float(low[2]), float(high[2])
    return (quantity, _within(float(t.today) + 5 * (1 + t.change[4]), low[1], high[1]), _within(bottom + (top - bottom) * (1 + t.change[1]) / 2, low[2], high[2]))


def _within(x, low, high):
    """Rounds x, halves up, and cuts it to a range."""
    return min(max(math.floor(x + 0.5), low), high)


def _sign(b):
    return 1.0 if b else -1.0
