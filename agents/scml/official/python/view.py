"""What an agent may know of its world: the questions of view.go and public.go of onnxrl's package envs/scml/world that the agent asks."""


class View:
    """Has the answers as attributes, which whoever plays or replays a world keeps up to date.

    Of the world: days, level, levels, lines, cost, rounds, horizon, stock_shrinks; initial_balance; catalog, the catalog prices of input and output; penalties, the means of the coefficients of
    shortfall and storage; buys and sells, whether anybody negotiates about the input and about the output; suppliers, consumers and competitors, how many there are, itself included.

    Of the day: today; stock, balance; trading, the trading prices of input and output; supply and demand, the exogenous (quantity, money); boxes, the smallest and the largest offer (quantity, time,
    price) when buying and when selling; partners, with whom each slot negotiates, and buying, whether it is to buy there.

    Of the moment: offers, by slot, those that counter_all is about; supplies and sales, the negotiated quantities by days ahead, today first.
    """

    @property
    def slots(self):
        return len(self.partners)

    def side(self, k):
        return 0 if self.buying[k] else 1

    def box(self, k):
        return self.boxes[0 if self.buying[k] else 1]

    def round(self, k):
        """Returns the number of complete rounds of a slot's negotiation."""
        raise NotImplementedError

    def live(self, k):
        """Reports whether a slot's negotiation can still come to something."""
        raise NotImplementedError
