"""Answers a factory's negotiations so that the goals of the day are reached: executor.go and goal.go of onnxrl's package agents/scml/executor, call for call."""
import math

from .shield import ACCEPT, BUY, SELL

# The buckets of days of delivery: today, tomorrow, the two days after it, and what follows; and how many days ahead each begins.
TODAY, TOMORROW, SOON, LATER, BUCKETS = 0, 1, 2, 3, 4
FIRST_OF = (0, 1, 2, 4)

# The sizes of goals as vectors: [Q_buy, P_buy, Q_sell, P_sell] of the whole day, or of each bucket.
WHOLE, FULL = 4, 4 * BUCKETS

# How many units a goal may ask for, relative to the lines.
MOST = 1.5

# The settings of PenguinAgent: shares of the lines that are to produce, of the partners that are asked for today, and of the lines that may be agreed beyond what is needed.
TARGET, ASKED, EXCESS = 0.7, 0.7, 0.1

# The price at which a default goal buys.
BUY_AT = 0.5

# How many offers subsets are formed of.
SUBSETS = 12


class Goal:
    """The targets of a day by side and bucket, lists of [quantity, price], prices between -1 and 1. Whole goals have one target for all days of delivery, which is that of TODAY."""

    def __init__(self):
        self.targets = [[[0, 0.0] for _ in range(BUCKETS)] for _ in (BUY, SELL)]
        self.whole = False

    def bucket(self, ahead):
        """The bucket of a number of days ahead."""
        if self.whole or ahead < 1:
            return TODAY
        return TOMORROW if ahead < 2 else SOON if ahead < 4 else LATER


def default(day):
    """Returns the goal that PenguinAgent works for: seven of ten lines busy on each of the next days. Sales are at any price."""
    v, g = day.view, Goal()
    busy = int(TARGET * float(v.lines))
    for bucket in range(LATER):
        ahead = FIRST_OF[bucket]
        if v.today + ahead >= v.days:
            break
        buy = busy - v.stock - _quantity(day.supplies, ahead)
        sell = min(v.lines, busy + v.stock) - _quantity(day.sales, ahead)
        g.targets[BUY][bucket] = [max(0, buy), BUY_AT]
        g.targets[SELL][bucket] = [max(0, sell), -1.0]
    return g


def decode(vector, day):
    """Reads a vector of WHOLE or FULL numbers, relative to the default goal of a day, which zeros are."""
    g, lines = default(day), float(day.view.lines)
    g.whole = len(vector) == WHOLE
    for i in range(len(vector) // 4):
        for side in (BUY, SELL):
            t = g.targets[side][i]
            q, p = cut(vector[4 * i + 2 * side]), cut(vector[4 * i + 2 * side + 1])
            units = math.floor(float(t[0]) + q * lines + 0.5)
            t[0] = int(min(max(units, 0), MOST * lines))
            t[1] = min(max(t[1] + 2 * p, -1.0), 1.0)
    return g


def cut(x):
    """x in [-1, 1], and 0 of what is no number."""
    x = float(x)
    if x != x:
        return 0.0
    return min(max(x, -1.0), 1.0)


def price(p, box):
    """Returns what a price of a goal is in money."""
    low, high = float(box[0][2]), float(box[1][2])
    return math.floor(low + (high - low) * (1 + p) / 2 + 0.5)


def _quantity(totals, i):
    return totals[i][0] if i < len(totals) else 0


class Executor:
    """Answers the negotiations of a factory. It is told of days, goals and contracts."""

    def starts(self, view):
        self.view = view
        self.day_begins(Goal())

    def day_begins(self, goal):
        self.goal = goal
        self.agreed = [[0] * BUCKETS for _ in (BUY, SELL)]

    def concluded(self, contract):
        """Counts a contract of the factory toward the goal."""
        self.agreed[contract.side][self.goal.bucket(contract.time - self.view.today)] += contract.quantity

    def left_of(self, side):
        """Returns how many units of the goal are not agreed yet, of today and of later days."""
        left = [max(0, t[0] - n) for t, n in zip(self.goal.targets[side], self.agreed[side])]
        return left[TODAY], sum(left[TOMORROW:])

    def limit(self, side, ahead):
        """Returns the goal's price for a delivery in so many days, between -1 and 1."""
        return self.goal.targets[side][self.goal.bucket(ahead)][1]

    def answer(self, heard, first, ledger):
        """Returns what the baseline answers, by slot, and what would be offered to those that are accepted: heard are the slots with an offer, none at the first proposals. Open offers in other slots count as agreed."""
        v = self.view
        replies, counters = [None] * v.slots, [None] * v.slots
        for side in (BUY, SELL):
            self._slots = [k for k in range(v.slots) if v.side(k) == side and (first and v.live(k) or k in heard)]
            self._remaining(side, ledger)
            if not first:
                self._accept(side, replies, counters)
            self._share(side, first, replies)
        return replies, counters

    def _remaining(self, side, ledger):
        """Fills in what is left of the goal beside open offers in other slots."""
        left = [t[0] - n for t, n in zip(self.goal.targets[side], self.agreed[side])]
        for h in ledger.held:
            if h.side == side and h.slot not in self._slots:
                left[self.goal.bucket(h.offer[1] - self.view.today)] -= h.offer[0]
        self._left = [max(0, n) for n in left]

    def _accept(self, side, replies, counters):
        """Accepts what fits the goal, and leaves the other slots of the side."""
        v, left, same = self.view, self._left, []
        for k in self._slots:
            offer = v.offers[k]
            if not self._acceptable(side, k, offer):
                continue
            b = self.goal.bucket(offer[1] - v.today)
            if b == TODAY:
                same.append(k)
            elif offer[0] <= left[b]:
                left[b] -= offer[0]
                replies[k] = ACCEPT
        if left[TODAY] > 0:
            chosen = self._choose(side, same)
            for i, k in enumerate(same):
                if chosen >> i & 1:
                    left[TODAY] = max(0, left[TODAY] - v.offers[k][0])
                    replies[k] = ACCEPT
        rest = []
        for k in self._slots:
            if replies[k] is None:
                rest.append(k)
                continue
            quantity, time, _ = v.offers[k]
            counters[k] = (quantity, time, self._limit(side, k, time - v.today))
        self._slots = rest

    def _limit(self, side, k, ahead):
        """The worst price of the goal for a slot and a delivery."""
        return price(self.limit(side, ahead), self.view.box(k))

    def _acceptable(self, side, k, offer):
        limit = self._limit(side, k, offer[1] - self.view.today)
        return offer[2] <= limit if side == BUY else offer[2] >= limit

    def _choose(self, side, same):
        """Returns the subset of offers, a bit for each, whose units come closest to what is left for today, with at most a little more; of equal ones the one of the better prices, and then the first."""
        n, need = min(len(same), SUBSETS), self._left[TODAY]
        surplus = max(1, int(EXCESS * float(self.view.lines)))
        sign = -1 if side == BUY else 1
        # Units and money of each subset: that of a set is that of the set without its highest bit, and that offer.
        sums = [(0, 0)]
        for k in same[:n]:
            quantity, _, unit_price = self.view.offers[k]
            money = sign * quantity * unit_price
            sums += [(u + quantity, m + money) for u, m in sums]
        best, off, gain = 0, need, 0
        for subset, (units, money) in enumerate(sums):
            if subset == 0 or units > need + surplus:
                continue
            d = abs(need - units)
            if d < off or d == off and best and money > gain:
                best, off, gain = subset, d, money
        return best

    def _share(self, side, first, replies):
        """Shares out what is left over the slots: today's units evenly over some of the partners, or over all where nothing is left for later days, and each later bucket over its share of the others."""
        v, slots, left = self.view, self._slots, self._left
        n = len(slots)
        if n == 0:
            return
        later = [b for b in (TOMORROW, SOON, LATER) if left[b] > 0 and v.today + FIRST_OF[b] < v.days]
        now = 0
        if left[TODAY] > 0:
            now = max(1, int(ASKED * float(n))) if later else n
            now = min(now, left[TODAY])
        # Another partner is the first one on each day.
        turn = [slots[(i + v.today) % n] for i in range(n)]
        for i in range(now):
            q = left[TODAY] // now + (i < left[TODAY] % now)
            self._offer(side, turn[i], q, v.today, first, replies)
        if not later:
            return
        rest, count = n - now, len(later)
        for j in range(rest):
            which = j % count
            b = later[which]
            among = (rest - which + count - 1) // count
            q = left[b] // among + (j // count < left[b] % among)
            if q > 0:
                self._offer(side, turn[now + j], q, v.today + FIRST_OF[b], first, replies)

    def _offer(self, side, k, q, day, first, replies):
        """Writes an offer, at the best price of the range where it is the first one, and at the goal's otherwise."""
        low, high = self.view.box(k)
        if first:
            unit_price = high[2] if side == SELL else low[2]
        else:
            unit_price = self._limit(side, k, day - self.view.today)
        replies[k] = (min(q, high[0]), day, unit_price)
