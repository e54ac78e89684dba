package samples

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/onnxrl/onnxrl/envs/scml/market"
	"github.com/onnxrl/onnxrl/envs/scml/negotiation"
	"github.com/onnxrl/onnxrl/envs/scml/record"
)

// talk is a negotiation of a log.
type talk struct {
	index  int
	box    negotiation.Box
	offers []negotiation.Offer
	agreed bool
	// decided says that a side ended it; it was not left over, nor out of rounds.
	decided bool
}

// pair is a day's negotiation of two agents.
type pair struct{ day, caller, partner int }

// missing says which switches make a log.
const missing = "run the world with log_negotiations=True, no_logs=False, compact=False and fast=False, or with log_stats_every=1, or by a tournament"

// readTalks reads the negotiations of a world whose agents have these indices.
func readTalks(dir string, index map[string]int) (map[pair]*talk, error) {
	path := filepath.Join(dir, "negotiations.csv")
	if _, err := os.Stat(path); errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("%s: there is no negotiations.csv: %s", dir, missing)
	}
	talks, row := map[pair]*talk{}, 0
	err := record.EachNegotiation(path, func(n *record.Negotiation) error {
		caller, ok := index[n.Caller]
		partner, ok2 := index[n.Partner(n.Caller)]
		if !ok || !ok2 {
			return fmt.Errorf("%s: negotiation %s of %s and %s: expected agents of info.json", path, n.ID, n.Buyer, n.Seller)
		}
		t := &talk{
			index: row, agreed: n.Agreement != nil, decided: n.Broken && n.Ended == n.Day,
			box: negotiation.Box{Low: negotiation.Offer{Quantity: n.Quantity[0], Time: n.Time[0], Price: n.Price[0]}, High: negotiation.Offer{Quantity: n.Quantity[1], Time: n.Time[1], Price: n.Price[1]}},
		}
		for i, o := range n.Offers {
			side := n.Caller
			if i%2 == 1 {
				side = n.Partner(n.Caller)
			}
			if o.By != side {
				return fmt.Errorf("%s: negotiation %s: offer %d is of %s, expected %s", path, n.ID, i, o.By, side)
			}
			t.offers = append(t.offers, negotiation.Offer(o.Offer))
		}
		key := pair{n.Day, caller, partner}
		if talks[key] != nil {
			return fmt.Errorf("%s: negotiation %s: %s and %s negotiate twice on day %d", path, n.ID, n.Buyer, n.Seller, n.Day)
		}
		talks[key] = t
		row++
		return nil
	})
	return talks, err
}

// indices numbers the agents of a world.
func indices(c *market.Config) map[string]int {
	m := map[string]int{}
	for i := range c.Factories {
		m[c.Factories[i].ID] = i
	}
	return m
}
