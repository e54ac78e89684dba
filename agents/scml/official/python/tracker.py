"""The agent with a log of its own: the files that the tracker of scml_analyzer (github.com/Ethanlita/LitaAgent) writes, with the same names, keys and events, without that package.

A world's last day writes agent_ID_world_WORLD.json into the folder that the environment variable SCML_TRACKER_LOG_DIR names, tracker_logs where there is none. What differs from the original: a failure names the partner,
where the original names the caller, and success and failure their negotiation; first proposals that are never made, to partners who begin, are left out.
"""
import datetime
import hashlib
import json
import os

from negmas import ResponseType
from scml.oneshot.sysagents import DefaultOneShotAdapter

from .agent import LitaAgentHRL

VARIABLE = "SCML_TRACKER_LOG_DIR"
COUNTERS = ("negotiations_started", "negotiations_success", "negotiations_failed", "contracts_signed", "contracts_breached", "offers_made", "offers_accepted", "offers_rejected", "production_scheduled", "production_executed")
# How many days ahead commitments are, today included.
AHEAD = 41


def digest(text):
    return hashlib.sha1(text.encode()).hexdigest()


def forward_deliveries():
    """Lets agents hear of contracts that are executed: the league's adapter keeps this to itself."""
    original = DefaultOneShotAdapter.on_contract_executed
    if getattr(original, "tells", False):
        return

    def on_contract_executed(self, contract):
        tell = getattr(self._obj, "on_contract_executed", None)
        if tell is not None:
            tell(contract)
        return original(self, contract)

    on_contract_executed.tells = True
    DefaultOneShotAdapter.on_contract_executed = on_contract_executed


class Log:
    """What one agent has logged."""

    def __init__(self, agent, kind, world):
        self.head = {"agent_id": "%s#W%s" % (agent, digest(world)[:8]), "agent_type": kind, "world_id": world}
        self.day, self.entries = 0, []
        self.stats = dict.fromkeys(COUNTERS, 0)
        self.series = {}

    def add(self, category, event, data, counter=None):
        if counter:
            self.stats[counter] += 1
        self.entries.append({"timestamp": datetime.datetime.now().isoformat(), **self.head, "day": self.day, "category": category, "event": event, "data": data})

    def save(self, folder):
        os.makedirs(folder, exist_ok=True)
        world = self.head["world_id"]
        name = "agent_%s_world_%s_%s.json" % (self.head["agent_id"].replace("@", "_at_").replace("/", "_"), world.replace("/", "_").replace("\\", "_")[:40], digest(world)[:12])
        with open(os.path.join(folder, name), "w", encoding="utf-8") as f:
            json.dump({**self.head, "stats": self.stats, "time_series": self.series, "entries": self.entries}, f, ensure_ascii=False, default=lambda x: x.item())


def terms(offer, round=None):
    data = {"quantity": int(offer[0]), "delivery_day": int(offer[1]), "unit_price": int(offer[2])}
    if round is not None:
        data["round"] = round
    return data


class TrackedLitaAgentHRL(LitaAgentHRL):
    """Decides as LitaAgentHRL does, and logs it."""

    def init(self):
        super().init()
        forward_deliveries()
        awi, own = self.awi, LitaAgentHRL
        self._log = Log(self.id, own.__name__, str(awi._world.id))
        self._delivered, self._started = {}, set()
        tracked, module = type(self).__name__, own.__module__.rpartition(".")[0]
        self._log.add("custom", "agent_initialized", {
            "n_steps": awi.n_steps, "n_lines": awi.n_lines, "level": awi.level, "agent_display_name": self.id, "agent_type_raw": tracked, "agent_type_raw_full": "%s.%s" % (module, tracked), "agent_type_raw_qualname": tracked,
            "agent_type_base": own.__name__, "agent_type_base_full": "%s.%s" % (module, own.__name__), "agent_type_base_qualname": own.__name__,
        })

    def before_step(self):
        super().before_step()
        self._log.day = int(self.awi.current_step)

    def _about(self, partner, **more):
        """What each entry of a negotiation has. It begins with the first of them."""
        nmi = self.get_nmi(partner)
        selling = int(nmi.annotation["product"]) == int(self.awi.my_output_product)
        buyer, seller = (partner, self.id) if selling else (self.id, partner)
        data = {"partner": partner, "role": "seller" if selling else "buyer", "buyer": buyer, "seller": seller, "mechanism_id": nmi.mechanism_id, "negotiator_id": partner}
        if nmi.mechanism_id not in self._started:
            self._started.add(nmi.mechanism_id)
            low, high = float(nmi.issues[2].min_value), float(nmi.issues[2].max_value)
            issues = ["%s: (%d, %d)" % (i.name, i.min_value, i.max_value) for i in nmi.issues]
            self._log.add("negotiation", "started", {**data, "issues": str(issues), "min_price": low, "max_price": high}, "negotiations_started")
        return {**data, **more}

    def _act(self, partner, round, operation, response, reason, offer=None):
        about = self._about(partner)
        self._log.add("custom", "aop_action", {
            "sim_step": int(self.awi.current_step), "negotiator_id": partner, "mechanism_id": about["mechanism_id"], "partner": partner, "role": about["role"], "round": round, "action_op": operation, "response_type": response,
            "offer": None if offer is None else terms(offer), "reason": reason,
        })

    def _offers(self, partner, offer, round, reason, why):
        self._log.add("negotiation", "offer_made", self._about(partner, offer=terms(offer, round), reason=reason), "offers_made")
        self._act(partner, round, "REJECT", "REJECT_OFFER", why, offer)

    def first_proposals(self):
        proposals = super().first_proposals()
        for partner, offer in proposals.items():
            # Proposals to those who begin themselves are never made.
            if offer is not None and self.get_nmi(partner).annotation["caller"] == self.id:
                self._offers(partner, offer, 0, "first_proposal", "first_proposal")
        return proposals

    def counter_all(self, offers, states):
        answers = super().counter_all(offers, states)
        for partner, offer in offers.items():
            round, answer = int(states[partner].step), answers.get(partner)
            self._log.add("negotiation", "offer_received", self._about(partner, offer=terms(offer, round)))
            if answer is not None and answer.response == ResponseType.ACCEPT_OFFER:
                self._log.add("negotiation", "accept", self._about(partner, offer=terms(offer), reason="accepted_in_counter_all"), "offers_accepted")
                self._act(partner, round, "ACCEPT", "ACCEPT_OFFER", "counter_all", offer)
            elif answer is not None and answer.response == ResponseType.REJECT_OFFER and answer.outcome is not None:
                self._offers(partner, answer.outcome, round, "counter_offer", "counter_all")
            else:
                self._log.add("negotiation", "reject", self._about(partner, offer=terms(offer), reason="end_negotiation"), "offers_rejected")
                self._act(partner, round, "END", "END_NEGOTIATION", "counter_all" if answer is not None else "omit_in_counter_all")
        return answers

    def _parties(self, contract):
        """The contract's partner, and what entries say of it."""
        a, buyer, seller = contract.agreement, contract.annotation["buyer"], contract.annotation["seller"]
        partner, role = (buyer, "seller") if seller == self.id else (seller, "buyer")
        return {"partner": partner, "role": role, "buyer": buyer, "seller": seller}, int(a["quantity"]), float(a["unit_price"]), int(a["time"])

    def on_negotiation_success(self, contract, mechanism):
        super().on_negotiation_success(contract, mechanism)
        about, quantity, price, day = self._parties(contract)
        self._log.add("contract", "signed", {"contract_id": str(contract.id), **about, "quantity": quantity, "price": price, "delivery_day": day}, "contracts_signed")
        agreement = {"quantity": quantity, "price": price, "time": day, "buyer": about["buyer"], "seller": about["seller"]}
        self._log.add("negotiation", "success", {**about, "mechanism_id": mechanism.id, "negotiator_id": about["partner"], "agreement": agreement}, "negotiations_success")

    def on_negotiation_failure(self, partners, annotation, mechanism, state):
        super().on_negotiation_failure(partners, annotation, mechanism, state)
        partner = next(p for p in partners if p != self.id)
        role = "seller" if annotation["seller"] == self.id else "buyer"
        about = {"partner": partner, "role": role, "buyer": annotation["buyer"], "seller": annotation["seller"], "mechanism_id": mechanism.id, "negotiator_id": partner}
        self._log.add("negotiation", "failure", {**about, "reason": "negotiation_ended_without_agreement"}, "negotiations_failed")

    def on_contract_executed(self, contract):
        about, quantity, price, day = self._parties(contract)
        key = about["role"], int(self.awi.current_step)
        self._delivered[key] = self._delivered.get(key, 0) + quantity
        self._log.add("contract", "executed", {"contract_id": str(contract.id), **about, "quantity": quantity, "price": price, "delivery_day": day})

    def step(self):
        super().step()
        self._status()
        if self.awi.current_step >= self.awi.n_steps - 1:
            self._log.save(os.environ.get(VARIABLE) or "tracker_logs")

    def _status(self):
        """The state of the factory in the evening, before anything is made or paid."""
        awi, log = self.awi, self._log
        today, days = int(awi.current_step), int(awi.n_steps)
        stock, output, balance = int(awi.current_inventory_input), int(awi.current_inventory_output), float(awi.current_balance)
        log.add("inventory", "state", {"raw_material": stock, "product": output, "balance": balance})
        for name, x in (("raw_material", stock), ("product", output), ("balance", balance)):
            log.series.setdefault(name, []).append([today, x])

        def ahead(now, later):
            books = {today: now, **later}
            return [sum(float(x) for x in books.get(today + d, {}).values()) for d in range(min(days - today + 1, AHEAD))]

        def open_offers(offers):
            return [[int(o[1]), int(o[0]), int(o[2])] for o in offers.values() if o is not None]

        prices, level = [float(x) for x in awi.trading_prices], int(awi.level)
        log.add("custom", "daily_status", {
            "score": float(awi.current_score), "balance": balance, "initial_balance": self._view.initial_balance, "exo_input_qty": int(awi.current_exogenous_input_quantity), "exo_input_price": float(awi.current_exogenous_input_price),
            "exo_output_qty": int(awi.current_exogenous_output_quantity), "exo_output_price": float(awi.current_exogenous_output_price), "needed_supplies": max(0, int(awi.needed_supplies)), "needed_sales": max(0, int(awi.needed_sales)),
            "needed_supplies_raw": int(awi.needed_supplies), "needed_sales_raw": int(awi.needed_sales), "total_supplies": int(awi.total_supplies), "total_sales": int(awi.total_sales),
            "executed_supplies": self._delivered.get(("buyer", today), 0), "executed_sales": self._delivered.get(("seller", today), 0), "disposal_cost": float(awi.current_disposal_cost),
            "shortfall_penalty": float(awi.current_shortfall_penalty), "storage_cost": float(awi.current_storage_cost), "n_lines": int(awi.n_lines), "n_steps": days, "current_step": today,
            "spot_price_in": prices[level], "spot_price_out": prices[level + 1], "trading_prices": prices, "inventory_input": stock, "inventory_output": output, "my_input_product": level, "my_output_product": level + 1, "n_products": len(prices),
            "commitments": {
                "Q_in": ahead(awi.supplies, awi.future_supplies), "Q_out": ahead(awi.sales, awi.future_sales), "Payables": ahead(awi.supplies_cost, awi.future_supplies_cost), "Receivables": ahead(awi.sales_cost, awi.future_sales_cost),
            },
            "offers_snapshot": {"buy": open_offers(awi.current_buy_offers), "sell": open_offers(awi.current_sell_offers)},
        })
