package samples

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/onnxrl/onnxrl/envs/scml/negotiation"
	"github.com/onnxrl/onnxrl/envs/scml/record"
	"github.com/onnxrl/onnxrl/envs/scml/world"
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

// switches make a log.
const switches = "run the world with log_negotiations=True, no_logs=False, compact=False and fast=False, or with log_stats_every=1, or by a tournament"

// needed are the files that a world is followed by, with what is read of each.
var needed = []struct{ name, says string }{
	{"negotiations.csv", "what was offered and agreed: the columns id, ended_at, issues, agreement, caller, product, buyer, seller, sim_step, broken, timedout and history"},
	{"info.json", "the factories: agent_profiles (costs, penalties, storage), agent_initial_balances, catalog_prices, n_lines, n_steps and n_processes"},
	{"contracts.csv", "what comes from outside and goes there (rows of SELLER and BUYER), and what was delivered: the columns id, seller, buyer, product_name, quantity, delivery_time, unit_price, n_neg_steps, signed_at and executed_at"},
	{"stats.csv", "the end of each day: the columns trading_price_P, sold_quantity_P and unit_price_P of each product P, and balance_A, score_A, bankrupt_A, productivity_A, shortfall_quantity_A, shortfall_penalty_A, storage_cost_A, inventory_penalized_A, inventory_input_A and inventory_output_A of each agent A"},
}

// complete names the files that a folder lacks, and what each of them says. Of negotiations.csv alone
// nobody can tell what a factory knew when it answered, and so neither what the manager saw nor what
// the first layer would have done.
func complete(dir string) error {
	var lacks []string
	for _, f := range needed {
		_, err := os.Stat(filepath.Join(dir, f.name))
		if errors.Is(err, os.ErrNotExist) && f.name == "stats.csv" {
			// A world that no tournament runs has its statistics under this name.
			_, err = os.Stat(filepath.Join(dir, "stats.csv.csv"))
		}
		switch {
		case errors.Is(err, os.ErrNotExist):
			lacks = append(lacks, f.name+", for "+f.says)
		case err != nil:
			return err
		}
	}
	if len(lacks) == 0 {
		return nil
	}
	return fmt.Errorf("%s: there is no %s; samples are of what a factory knew when it decided, for which its world is played again: %s", dir, strings.Join(lacks, "; there is no "), switches)
}

// readTalks reads the negotiations of a world whose agents have these indices.
func readTalks(dir string, index map[string]int) (map[pair]*talk, error) {
	path := filepath.Join(dir, "negotiations.csv")
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
func indices(c *world.Config) map[string]int {
	m := map[string]int{}
	for i := range c.Factories {
		m[c.Factories[i].ID] = i
	}
	return m
}
