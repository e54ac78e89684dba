package logs

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/onnxrl/onnxrl/envs/scml/league"
	"github.com/onnxrl/onnxrl/envs/scml/world"
)

// config is a file of configs: how a world began. Record reads it, and scml run plays it.
type config struct {
	ID     string      `json:"config_id"`
	Params worldParams `json:"world_params"`
	// Defaults says which agents do not compete.
	Defaults []bool `json:"is_default"`
	// Dir is the world's folder in assigned_configs.json, relative to the tournament's.
	Dir string `json:"__dir_name,omitempty"`
}

type worldParams struct {
	Exact  exactParams `json:"__exact_params"`
	Types  []string    `json:"agent_types"`
	Lines  int         `json:"n_lines"`
	Levels int         `json:"n_processes"`
	Days   int         `json:"n_steps"`
	Speed  *int        `json:"negotiation_speed"`
	Rounds int         `json:"neg_n_steps"`
	Name   string      `json:"name"`
	Rules  world.Rules `json:"rules"`
}

type exactParams struct {
	Catalog   []int          `json:"catalog_prices"`
	Profiles  []exactProfile `json:"profiles"`
	Exogenous []exogenous    `json:"exogenous_contracts"`
	Balances  []float64      `json:"initial_balance"`
}

type exactProfile struct {
	profile
	Shortfall []float64 `json:"shortfall_penalty_per_day"`
}

// exogenous is a contract with the outside, which is −1.
type exogenous struct {
	Buyer    int `json:"buyer"`
	Seller   int `json:"seller"`
	Product  int `json:"product"`
	Quantity int `json:"quantity"`
	Time     int `json:"time"`
	Revealed int `json:"revelation_time"`
	Price    int `json:"unit_price"`
}

// configOf describes a game.
func configOf(name string, g *league.Game) config {
	c := g.Table.Config()
	k := config{ID: name, Params: worldParams{Lines: c.Lines, Levels: c.Levels(), Days: c.Days, Rounds: c.Rules.Rounds, Name: name, Rules: c.Rules, Exact: exactParams{Catalog: c.Catalog}}, Defaults: make([]bool, len(c.Factories))}
	if limit := c.Rules.PassLimit; limit > 0 {
		k.Params.Speed = &limit
	}
	module := typePrefix[strings.IndexByte(typePrefix, ':')+1:]
	for i := range c.Factories {
		f := &c.Factories[i]
		k.Params.Types, k.Params.Exact.Balances = append(k.Params.Types, module+f.Type), append(k.Params.Exact.Balances, f.Balance)
		k.Params.Exact.Profiles = append(k.Params.Exact.Profiles, exactProfile{profileOf(c, i), f.Shortfall})
		k.Defaults[i] = true
	}
	for _, place := range g.Places {
		k.Defaults[place] = false
	}
	for _, e := range c.Exogenous {
		x := exogenous{Buyer: e.Factory, Seller: -1, Quantity: e.Quantity, Time: e.Day, Revealed: e.Day, Price: e.Price}
		if e.Demand {
			x.Buyer, x.Seller, x.Product = -1, e.Factory, c.Levels()
		}
		k.Params.Exact.Exogenous = append(k.Params.Exact.Exogenous, x)
	}
	return k
}

// assigned writes the two lists of configurations by which the official tools find worlds:
// base_configs.json has the configurations that were drawn, in the order of places in which they
// were played first, and assigned_configs.json those of all worlds, each under the identifier of
// the one that was drawn.
func (t *Tournament) assigned(results []*result) error {
	var base, all [][]config
	for i, r := range results {
		path := filepath.Join(t.dir, configsDir, fmt.Sprintf("%06d.json", i))
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		var c config
		if err := json.Unmarshal(text, &c); err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		drawn, _, _ := strings.Cut(c.ID, "_")
		if n := len(base); n == 0 || !strings.HasPrefix(base[n-1][0].ID, drawn+"_") {
			base = append(base, []config{c})
		}
		c.ID, c.Dir = base[len(base)-1][0].ID, r.Paths
		all = append(all, []config{c})
	}
	if err := writeJSON(t.dir, "base_configs.json", base); err != nil {
		return err
	}
	return writeJSON(t.dir, "assigned_configs.json", all)
}
