"""The agent as a competitor of the official league. Beside scml, whose tournaments it plays in, it needs numpy and onnxruntime."""
import os

from negmas import ResponseType
from negmas.sao import SAOResponse
from scml.std import StdSyncAgent

from . import hierarchy
from .networks import Networks
from .shield import ACCEPT, END, BUY, SELL, Contract
from .view import View

FOLDER = os.path.dirname(os.path.abspath(__file__))

# The networks are opened once in a process: agents use them one after another.
_networks = None


def networks():
    global _networks
    if _networks is None:
        _networks = Networks(FOLDER)
    return _networks


class Official(View):
    """Reads the official agent-world interface."""

    stock_shrinks = False

    def __init__(self, agent):
        self.agent = agent
        awi = agent.awi
        if is_perishable(awi):
            raise ValueError("the world is perishable: what a factory has at the end of a day is lost, as in the OneShot league; this agent plays in worlds that keep their stock, as those of the Standard league do")
        self.days, self.level, self.levels = int(awi.n_steps), int(awi.level), int(awi.n_processes)
        self.lines, self.cost, self.horizon = int(awi.n_lines), int(awi.profile.cost), int(awi.horizon)
        self.initial_balance = float(awi.current_balance)
        self.catalog = tuple(int(awi.catalog_prices[p]) for p in (self.level, self.level + 1))
        self.penalties = float(awi.profile.shortfall_penalty_mean), float(awi.profile.storage_cost_mean)
        first, last = self.level == 0, self.level == self.levels - 1
        # Of four levels, the two in the middle never come to negotiate with each other.
        self.buys = not first and negotiated(self.level, self.levels)
        self.sells = not last and negotiated(self.level + 1, self.levels)
        self.suppliers = 0 if first else len(awi.my_suppliers)
        self.consumers = 0 if last else len(awi.my_consumers)
        self.competitors = len(awi.my_competitors) + 1

    def day_begins(self):
        agent, awi = self.agent, self.agent.awi
        self.today = int(awi.current_step)
        self.stock, self.balance = int(awi.current_inventory_input), float(awi.current_balance)
        self.trading = tuple(float(awi.trading_prices[p]) for p in (self.level, self.level + 1))
        self.supply = int(awi.current_exogenous_input_quantity), float(awi.current_exogenous_input_price)
        self.demand = int(awi.current_exogenous_output_quantity), float(awi.current_exogenous_output_price)
        self.boxes = tuple(box(issues) for issues in (awi.current_input_issues, awi.current_output_issues))
        self.partners = list(agent.negotiators)
        suppliers = set(awi.my_suppliers)
        self.buying = [p in suppliers for p in self.partners]
        # Its negotiations of the day, and those that have not ended.
        self.nmis = [agent.get_nmi(p) for p in self.partners]
        self.running = [self.buys if b else self.sells for b in self.buying]
        self.rounds = int(self.nmis[0].n_steps) if self.nmis else 20
        self.offers = [None] * self.slots
        self.refresh()

    def refresh(self):
        """Reads the books again, which change with every contract."""
        awi = self.agent.awi
        days = range(self.today, min(self.today + self.horizon + 1, self.days))
        self.supplies = [int(awi.total_supplies_at(t)) for t in days]
        self.sales = [int(awi.total_sales_at(t)) for t in days]

    def round(self, k):
        return int(self.nmis[k].state.step)

    def live(self, k):
        return self.running[k]

    def slot(self, partner):
        return self.partners.index(partner)

    def agreed(self, contract):
        """Takes notice of a contract, which it returns as the agent reads it."""
        a, side = contract.agreement, SELL if contract.annotation["seller"] == self.agent.id else BUY
        partner = contract.annotation["buyer" if side == SELL else "seller"]
        self.running[self.slot(partner)] = False
        self.refresh()
        return Contract(side, partner, int(a["quantity"]), int(a["time"]), int(a["unit_price"]))

    def failed(self, partners, annotation):
        """Takes notice of a negotiation that has ended without a contract, and returns its slot; None if it was of the day before, where the pass limit has cut it off."""
        if annotation["sim_step"] != self.today:
            return None
        slot = self.slot(next(p for p in partners if p != self.agent.id))
        self.running[slot] = False
        return slot


def is_perishable(awi):
    """Reports whether stock is lost at the end of a day."""
    perishable = getattr(awi, "is_perishable", False)
    return bool(perishable() if callable(perishable) else perishable)


def negotiated(product, levels):
    """Reports whether negotiations about a product can begin: levels call every second one, from the last back, and those in between that call both ways have negotiators for one only."""
    seller, last = product - 1, levels - 1
    return seller == 0 or (last - seller) % 2 == 1


def box(issues):
    return tuple(int(i.min_value) for i in issues), tuple(int(i.max_value) for i in issues)


class LitaAgentHRL(StdSyncAgent):
    """Decides as the native agent does."""

    def init(self):
        self._view = Official(self)
        self._agent = hierarchy.Agent(networks())
        self._agent.starts(self._view)

    def before_step(self):
        self._view.day_begins()
        self._agent.day_begins()

    def first_proposals(self):
        replies = self._agent.first_proposals()
        return {p: r if type(r) is tuple else None for p, r in zip(self._view.partners, replies) if r is not None}

    def counter_all(self, offers, states):
        v = self._view
        heard = [v.slot(p) for p in offers]
        for k, offer in zip(heard, offers.values()):
            v.offers[k] = tuple(int(x) for x in offer)
        replies = self._agent.counter_all(heard)
        return {p: response(r, v.offers[k]) for k, (p, r) in enumerate(zip(v.partners, replies)) if r is not None}

    def on_negotiation_success(self, contract, mechanism):
        self._agent.agreed(self._view.agreed(contract))

    def on_negotiation_failure(self, partners, annotation, mechanism, state):
        self._agent.failed(self._view.failed(partners, annotation))


def response(reply, offer):
    if reply == ACCEPT:
        return SAOResponse(ResponseType.ACCEPT_OFFER, offer)
    if reply == END:
        return SAOResponse(ResponseType.END_NEGOTIATION, None)
    return SAOResponse(ResponseType.REJECT_OFFER, reply)
