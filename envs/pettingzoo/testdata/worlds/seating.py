class Round:
    """Tells every third turn, as a selector of another package that remembers something."""

    def __init__(self):
        self.count = 0

    def turns(self):
        self.count += 1
        return self.count % 3 == 0
