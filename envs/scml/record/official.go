package record

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"strings"

	"github.com/onnxrl/onnxrl/envs/scml/world"
	"github.com/onnxrl/onnxrl/runtime/rng"
)

// officialConfig is what is read of the configuration of one world of a tournament of scml 0.7.6:
// configs/000000.json and so on.
type officialConfig struct {
	ID     string `json:"config_id"`
	Params struct {
		Exact struct {
			Catalog   json.RawMessage `json:"catalog_prices"`
			Profiles  []officialProfile
			Exogenous []struct {
				Buyer    int
				Seller   int
				Product  int
				Quantity int
				Time     int
				Price    int `json:"unit_price"`
			} `json:"exogenous_contracts"`
			Balances []float64 `json:"initial_balance"`
		} `json:"__exact_params"`
		Types      []string `json:"agent_types"`
		Lines      int      `json:"n_lines"`
		Levels     int      `json:"n_processes"`
		Days       int      `json:"n_steps"`
		Speed      *int     `json:"negotiation_speed"`
		Rounds     int      `json:"neg_n_steps"`
		Perishable bool     `json:"perishable"`
		// Rules are in the configurations that package logs writes.
		Rules *world.Rules `json:"rules"`
	} `json:"world_params"`
}

type officialProfile struct {
	Cost          int
	Input         int     `json:"input_product"`
	ShortfallMean float64 `json:"shortfall_penalty_mean"`
	ShortfallDev  float64 `json:"shortfall_penalty_dev"`
	StorageMean   float64 `json:"storage_cost_mean"`
	StorageDev    float64 `json:"storage_cost_dev"`
	// Shortfall is in the configurations that package logs writes.
	Shortfall []float64 `json:"shortfall_penalty_per_day"`
}

// isOfficial reports whether a file is a configuration of a tournament.
func isOfficial(text []byte) bool {
	var probe struct {
		Params json.RawMessage `json:"world_params"`
	}
	return json.Unmarshal(text, &probe) == nil && probe.Params != nil
}

// readOfficial reads a configuration. The official program draws shortfall coefficients of each day
// when a world begins, and so they are in no file of its own: they are drawn from a stream that the
// configuration's id names, and are the same whenever it is read.
func readOfficial(text []byte) (*World, error) {
	var c officialConfig
	if err := json.Unmarshal(text, &c); err != nil {
		return nil, decodeError(text, err)
	}
	p, e := &c.Params, &c.Params.Exact
	if p.Perishable {
		return nil, fmt.Errorf("world_params.perishable %w", ErrPerishable)
	}
	if len(e.Profiles) != len(p.Types) || len(e.Balances) != len(p.Types) {
		return nil, fmt.Errorf("world_params: %d profiles and %d balances of %d agents", len(e.Profiles), len(e.Balances), len(p.Types))
	}
	rules := world.DefaultRules()
	if rules.PassLimit = 0; p.Speed != nil {
		rules.PassLimit = *p.Speed
	}
	rules.Rounds = p.Rounds
	if p.Rules != nil {
		rules = *p.Rules
	}
	w := &World{Note: "configuration " + c.ID, Levels: p.Levels, Days: p.Days, PassLimit: p.Speed, Lines: p.Lines, Rules: &rules, Agents: map[string]Agent{}, Exogenous: []Exogenous{}}
	var err error
	if w.Catalog, err = integers(e.Catalog); err != nil {
		return nil, fmt.Errorf("world_params.__exact_params.catalog_prices: %w", err)
	}
	s := rng.New(0).Split(c.ID).Stream()
	var ids []string
	for i, f := range e.Profiles {
		typ := p.Types[i][strings.LastIndexAny(p.Types[i], ".:")+1:]
		if f.StorageDev != 0 {
			return nil, fmt.Errorf("world_params.__exact_params.profiles[%d].storage_cost_dev is %v: storage costs that change from day to day are not supported", i, f.StorageDev)
		}
		a := Agent{Type: typ, Level: f.Input, Cost: f.Cost, Balance: e.Balances[i], StorageMean: f.StorageMean, ShortfallMean: f.ShortfallMean}
		for range w.Days {
			a.Storage = append(a.Storage, f.StorageMean)
			a.Shortfall = append(a.Shortfall, math.Abs(f.ShortfallMean+float64(f.ShortfallDev*s.Normal())))
		}
		if f.Shortfall != nil {
			a.Shortfall = f.Shortfall
		}
		ids = append(ids, world.FactoryID(i, f.Input, typ))
		w.Agents[ids[i]] = a
	}
	for i, x := range e.Exogenous {
		k := Exogenous{Day: x.Time, Product: x.Product, Seller: world.Seller, Buyer: world.Buyer, Quantity: x.Quantity, Price: x.Price}
		switch {
		case x.Seller < 0 && x.Buyer >= 0 && x.Buyer < len(ids):
			k.Buyer = ids[x.Buyer]
		case x.Buyer < 0 && x.Seller >= 0 && x.Seller < len(ids):
			k.Seller = ids[x.Seller]
		default:
			return nil, fmt.Errorf("world_params.__exact_params.exogenous_contracts[%d]: seller %d and buyer %d, expected -1 and an agent of %d", i, x.Seller, x.Buyer, len(ids))
		}
		w.Exogenous = append(w.Exogenous, k)
	}
	return w, nil
}

// integers reads a list, or what the official program writes for one: a pickled array of numpy, in
// base 64. Nothing in it is executed; its bytes are taken out.
func integers(raw json.RawMessage) ([]int, error) {
	var list []int
	if json.Unmarshal(raw, &list) == nil {
		return list, nil
	}
	var text string
	if err := json.Unmarshal(raw, &text); err != nil {
		return nil, err
	}
	text, ok := strings.CutPrefix(text, "__BYTES__:")
	data, err := base64.StdEncoding.DecodeString(text)
	data, ok2 := bytes.CutPrefix(data, []byte("__CLOUDPICKLE_START__:"))
	if !ok || !ok2 || err != nil {
		return nil, fmt.Errorf("expected a list of numbers, or a pickled one")
	}
	// An array's bytes follow the opcode of a bytearray and their length; it must be of int64.
	const opcode, size = 0x96, 8
	i := bytes.IndexByte(data, opcode)
	if i < 0 || len(data) < i+1+size || !bytes.Contains(data, []byte("i8")) {
		return nil, fmt.Errorf("expected an array of int64")
	}
	n := binary.LittleEndian.Uint64(data[i+1:])
	data = data[i+1+size:]
	if n > uint64(len(data)) || n%size != 0 {
		return nil, fmt.Errorf("an array of %d bytes in %d", n, len(data))
	}
	for ; n > 0; n -= size {
		list = append(list, int(int64(binary.LittleEndian.Uint64(data))))
		data = data[size:]
	}
	return list, nil
}
