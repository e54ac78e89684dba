"""Keeps a factory from agreeing to what it cannot do: shield.go and around.go of onnxrl's package agents/scml/shield, call for call."""
from typing import NamedTuple, Optional

BUY, SELL = 0, 1

# Replies to offers, beside these: an offer (quantity, time, price), and None for no answer. As a first proposal END breaks the negotiation.
ACCEPT, END = "accept", "end"


def offered(reply):
    return type(reply) is tuple


class Contract(NamedTuple):
    """A contract of the factory's own, with a partner."""
    side: int
    partner: object
    quantity: int
    time: int
    price: int


class Hold(NamedTuple):
    """An open offer."""
    slot: int
    side: int
    offer: tuple


class Ledger:
    """What a factory has agreed, by day of delivery, and what comes to it from outside."""

    def starts(self, view):
        self.view = view
        self.paid = [0.0] * view.days
        self.earned = [0.0] * view.days
        self.outside = [0, 0]
        self.seen = 0
        self.held = []

    def day_begins(self):
        """Takes notice of today's exogenous contracts. Offers of the day before are no longer open."""
        self.outside[BUY] += self.view.supply[0]
        self.outside[SELL] += self.view.demand[0]
        self.seen += 1
        self.held = []

    def agreed(self, contract):
        """Enters a contract, and releases the open offer that it came of."""
        money = self.earned if contract.side == SELL else self.paid
        money[contract.time] += float(contract.quantity * contract.price)
        partners = self.view.partners
        self.held = [h for h in self.held if h.side != contract.side or partners[h.slot] != contract.partner]

    def release(self, slot):
        """Forgets the open offer of a slot."""
        self.held = [h for h in self.held if h.slot != slot]

    def hold(self, slot, side, offer):
        """Keeps an offer open, in the place of the one before it in its slot."""
        self.release(slot)
        self.held.append(Hold(slot, side, offer))

    def expected(self, side):
        """What comes from outside on a later day, or is owed to it: the mean of the days seen, rounded down, and at most what can be made."""
        if self.seen == 0:
            return 0
        return min(self.outside[side] // self.seen, self.view.lines)

    def most(self, slot, side, offer):
        """Returns the largest quantity, at most that of the offer, that would be safe to offer or to accept in a slot beside all that is agreed and all open offers of other slots."""
        quantity, time, price = offer
        if quantity < 1 or not self._begin(slot, time):
            return 0
        before = self._measure()
        low, high = 0, quantity
        while low < high:
            x = (low + high + 1) // 2
            self._add(side, (x, time, price), 1)
            if _worse(self._measure(), before, side):
                high = x - 1
            else:
                low = x
            self._add(side, (x, time, price), -1)
        return low

    def safe(self, slot, side, offer):
        return offer[0] > 0 and self.most(slot, side, offer) == offer[0]

    def _begin(self, slot, day):
        """Fills in the days ahead, with the offers that are open in other slots, and reports whether a day is one of them."""
        self._ahead()
        for h in self.held:
            if h.slot != slot:
                self._add(h.side, h.offer, 1)
        return 0 <= day - self.view.today < len(self._in)

    def _ahead(self):
        """Fills in the days from today on: what is agreed, and expected from outside."""
        v = self.view
        today = v.today
        n = min(v.days - today, v.horizon + 1)
        supply, demand = self.expected(BUY), self.expected(SELL)
        self._in = [q + supply for q in v.supplies]
        self._out = [q + demand for q in v.sales]
        self._in[0] += v.supply[0] - supply
        self._out[0] += v.demand[0] - demand
        self._more = [0] * n
        self._expense = self.paid[today:today + n]
        self._income = self.earned[today:today + n]
        self._expense[0] += v.supply[1]
        self._income[0] += v.demand[1]

    def _add(self, side, offer, sign):
        """Puts an offer that may be accepted into the days ahead; sign -1 takes it out again. Supplies that may come make nothing, and sales that may be made earn nothing."""
        quantity, time, price = offer
        i = time - self.view.today
        if side == BUY:
            self._more[i] += sign * quantity
            self._expense[i] += float(sign * quantity * price)
        else:
            self._out[i] += sign * quantity

    def _measure(self):
        """Goes through the days ahead by the rules of the world, and returns the units missing, the units in excess, and whether a day cannot be paid for."""
        v = self.view
        lines, shrinks, balance, cost = v.lines, v.stock_shrinks, v.balance, float(v.cost)
        stock = full = most = v.stock
        missing = excess = 0
        broke = False
        for comes, owed, more, expense, income in zip(self._in, self._out, self._more, self._expense, self._income):
            made = stock + comes
            if made > lines:
                made = lines
            if made > owed:
                made = owed
            missing += owed - made
            if shrinks or comes > made:
                stock += comes - made

            comes += more
            made = full + comes
            if made > lines:
                made = lines
            if shrinks or comes > made:
                full += comes - made
            if shrinks:
                excess += full
            elif full > lines:
                excess += full - lines

            made = most + comes
            if made > lines:
                made = lines
            if made > owed:
                made = owed
            if shrinks or comes > made:
                most += comes - made
            spent = expense + cost * float(made)
            broke = broke or spent > balance and expense > 0
            balance += income - spent
        return missing, excess, broke


def _worse(state, before, side):
    """Reports whether a state is worse than one before something was bought or sold."""
    if side == BUY:
        return state[1] > before[1] or state[2]
    return state[0] > before[0] or state[2] and not before[2]


class Guard(Ledger):
    """A ledger that takes part in decisions: whatever is decided is passed through apply."""

    def failed(self, slot: Optional[int]):
        """Releases the open offer of a negotiation that has ended; None for one of another day."""
        if slot is not None:
            self.release(slot)

    def hears(self, heard):
        """Releases the offers that partners have answered by others of their own: whoever counters has not accepted."""
        for k in heard:
            self.release(k)

    def apply(self, heard, replies):
        """Makes replies safe. Acceptances come first: an offer can be made again."""
        for k in heard:
            if replies[k] == ACCEPT:
                self._accept(k, replies)
        for k, reply in enumerate(replies):
            if offered(reply):
                self._offer(k, replies)

    def _accept(self, k, replies):
        """Accepts an offer if it is safe, and offers what is left of it otherwise."""
        offer, side = self.view.offers[k], self.view.side(k)
        q = self.most(k, side, offer)
        if q == offer[0]:
            self.hold(k, side, offer)
        elif q == 0:
            replies[k] = END
        else:
            replies[k] = (q,) + offer[1:]
            self.hold(k, side, replies[k])

    def _offer(self, k, replies):
        """Cuts an offer down to what is safe."""
        offer, side = replies[k], self.view.side(k)
        q = self.most(k, side, offer)
        if q == 0:
            replies[k] = END
            return
        if q < offer[0]:
            replies[k] = (q,) + offer[1:]
        self.hold(k, side, replies[k])
