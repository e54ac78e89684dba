"""What the networks read: day.go and thread.go of onnxrl's package agents/scml/observe. Everything is computed in float64, in the order of the code, and cast to float32 at the end."""
from .shield import ACCEPT, BUY, SELL, offered

VERSION = 1

# The lengths of the vectors of a day; TEMPORAL is that of each day ahead.
STATIC, TEMPORAL, ROLE = 16, 10, 2
# The lengths of the vectors of a negotiation.
FEATURES, MOVES, MOVE_FEATURES = 18, 20, 6
# What days ahead are relative to.
AHEAD = 10


class Day:
    """What a factory knows in the morning, read of a view; totals are (quantity, money)."""

    def __init__(self, view, ledger):
        v = self.view = view
        self.outside, self.seen = list(ledger.outside), ledger.seen
        days = range(v.today, min(v.today + v.horizon + 1, v.days))
        self.supplies = [(q, ledger.paid[day]) for q, day in zip(v.supplies, days)]
        self.sales = [(q, ledger.earned[day]) for q, day in zip(v.sales, days)]

    def _expected(self, side):
        """What comes from outside, or is owed to it, on later days."""
        if self.seen == 0:
            return 0
        return min(self.outside[side] // self.seen, self.view.lines)

    def write(self, static, temporal, role):
        """Writes the vectors of the day: static [STATIC], temporal [(horizon + 1) * TEMPORAL], of which the horizon follows, and role [ROLE]."""
        v = self.view
        lines = float(v.lines)
        catalog_in, catalog_out = v.catalog
        trading_in, trading_out = v.trading
        shortfall, storage = v.penalties
        static[:] = [
            v.balance / v.initial_balance,
            float(v.stock) / lines,
            float(v.cost) / trading_out,
            storage * 10,
            shortfall,
            float(v.today) / float(v.days),
            float(v.days - v.today) / 200,
            trading_in / float(catalog_in),
            trading_out / float(catalog_out),
            float(v.supply[0]) / lines,
            float(v.demand[0]) / lines,
            (trading_out - trading_in - float(v.cost)) / trading_out,
            float(v.suppliers) / 6,
            float(v.consumers) / 6,
            float(v.competitors) / 6,
            float(v.level) / float(v.levels - 1),
        ]
        role[:] = [float(v.buys), float(v.sells)]
        for i, (supply, demand, stock, missing) in enumerate(self._ahead(len(temporal) // TEMPORAL)):
            comes, goes = _at(self.supplies, i), _at(self.sales, i)
            exists = v.today + i < v.days
            temporal[i * TEMPORAL:(i + 1) * TEMPORAL] = [
                float(comes[0]) / lines,
                float(goes[0]) / lines,
                _relative(comes, trading_in),
                _relative(goes, trading_out),
                float(supply) / lines,
                float(demand) / lines,
                float(stock) / lines,
                float(missing) / lines,
                float(exists),
                float(exists and i <= v.horizon),
            ]

    def _ahead(self, days):
        """Goes through so many days, today first, as if nothing else were agreed: supply and demand from outside, stock, and units missing."""
        v = self.view
        stock = v.stock
        expected = self._expected(BUY), self._expected(SELL)
        for i in range(days):
            supply, demand = expected
            if i == 0:
                supply, demand = v.supply[0], v.demand[0]
            elif v.today + i >= v.days:
                supply = demand = 0
            comes, owed = _at(self.supplies, i)[0] + supply, _at(self.sales, i)[0] + demand
            made = min(stock + comes, v.lines, owed)
            yield supply, demand, stock, owed - made
            if v.stock_shrinks:
                stock += comes - made
            else:
                stock += max(0, comes - made)


def _at(totals, i):
    return totals[i] if i < len(totals) else (0, 0.0)


def _relative(total, trading):
    """The mean price of a total relative to a trading price, less 1; 0 of nothing."""
    quantity, money = total
    return money / float(quantity) / trading - 1 if quantity else 0.0


class Thread:
    """A negotiation in which an answer is due. offer is None where nothing was offered; moves are (own, round, offer)."""

    def __init__(self, slot, buying, round, rounds, today, lines, box, offer, base, counter, safe, open, later, limit, partners, agreed, met, history):
        self.slot, self.buying, self.round, self.rounds, self.today, self.lines = slot, buying, round, rounds, today, lines
        self.low, self.high = box[0][2], box[1][2]
        self.offer, self.base, self.counter, self.safe = offer, base, counter, safe
        self.open, self.later, self.limit = open, later, limit
        self.partners, self.agreed, self.met, self.history = partners, agreed, met, history
        # What the networks change in the answer.
        self.change = (0.0,) * 5

    def _offer(self, offer):
        if offer is None:
            return [0.0, 0.0, 0.0]
        quantity, time, unit_price = offer
        return [float(quantity) / float(self.lines), float(time - self.today) / AHEAD, price(float(unit_price), self.low, self.high)]

    def write(self, thread, history):
        """Writes the vectors of the negotiation: thread [FEATURES] and history [MOVES, MOVE_FEATURES], which is zeroed."""
        lines = float(self.lines)
        accepts = self.base == ACCEPT
        thread[:] = [
            float(self.buying),
            float(self.round + 1) / float(self.rounds + 1),
            float(self.offer is not None), *self._offer(self.offer),
            float(accepts), float(not accepts and not offered(self.base)), 1.0, *self._offer(self.counter),
            float(self.open) / lines, float(self.later) / lines, float(self.safe) / lines, self.limit,
            float(self.partners) / 6,
            (float(self.agreed) + 1) / (float(self.met) + 2),
        ]
        moves = self.history[-MOVES:]
        for row, (own, round, offer) in zip(history[MOVES - len(moves):], moves):
            row[:] = [1.0, float(own), *self._offer(offer), float(round + 1) / float(self.rounds + 1)]


def price(unit_price, low, high):
    """Where a price lies in the range from low to high, between -1 and 1; 0 where the range is a single price."""
    if high <= low:
        return 0.0
    return (2 * unit_price - float(low) - float(high)) / float(high - low)
