package record

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"

	"github.com/onnxrl/onnxrl/envs/scml/world"
	"github.com/onnxrl/onnxrl/runtime/atomicfile"
	"github.com/onnxrl/onnxrl/runtime/sorted"
)

// World is a run. The keys are those of files; days, agents and products count from 0.
type World struct {
	Note string `json:"note,omitempty"`
	Seed int64  `json:"seed"`
	// Levels is the number of levels, Days that of days.
	Levels int `json:"n_processes"`
	Days   int `json:"n_steps"`
	// PassLimit is null where there is none.
	PassLimit *int  `json:"negotiation_speed"`
	Catalog   []int `json:"catalog_prices"`
	Lines     int   `json:"n_lines"`
	// Rules are those of the league where they are absent.
	Rules *world.Rules `json:"rules,omitempty"`
	// Perishable is refused where it is true, see [ErrPerishable].
	Perishable bool             `json:"perishable,omitempty"`
	Agents     map[string]Agent `json:"agents"`
	// Exogenous contracts have SELLER or BUYER on one side.
	Exogenous []Exogenous        `json:"exogenous"`
	Played    []Day              `json:"days,omitempty"`
	Scores    map[string]float64 `json:"final_scores,omitempty"`
	// Generation is kept as it is.
	Generation json.RawMessage `json:"generation_info,omitempty"`
}

// ErrPerishable says that a file is of a world in which stock perishes.
var ErrPerishable = errors.New("is true: in a perishable world what a factory has at the end of a day is lost, as in the OneShot league; only worlds that keep their stock are supported, as those of the Standard league do")

// Agent is a factory, and what acts for it.
type Agent struct {
	Type      string    `json:"type"`
	Level     int       `json:"level"`
	Cost      int       `json:"cost"`
	Balance   float64   `json:"initial_balance"`
	Storage   []float64 `json:"storage_cost_per_day"`
	Shortfall []float64 `json:"shortfall_penalty_per_day"`
	// StorageMean and ShortfallMean are the coefficients that the agent knows of other days; where
	// they are absent it knows the means of the days.
	StorageMean   float64 `json:"storage_cost_mean,omitempty"`
	ShortfallMean float64 `json:"shortfall_penalty_mean,omitempty"`
}

// Exogenous is a contract with the outside.
type Exogenous struct {
	Day      int    `json:"day"`
	Product  int    `json:"product"`
	Seller   string `json:"seller"`
	Buyer    string `json:"buyer"`
	Quantity int    `json:"quantity"`
	Price    int    `json:"unit_price"`
}

// Contract is one that was negotiated.
type Contract struct {
	ID       string `json:"id,omitempty"`
	Seller   string `json:"seller"`
	Buyer    string `json:"buyer"`
	Quantity int    `json:"quantity"`
	Time     int    `json:"time"`
	Price    int    `json:"unit_price"`
	Rounds   int    `json:"n_neg_steps"`
}

// Day is a day: what was in force, what was signed, what was delivered or dropped, and the end.
type Day struct {
	Day     int       `json:"day"`
	InForce []float64 `json:"trading_price_in_force"`
	// Issues has, for each product, the least and largest quantity, time and unit price.
	Issues [][3][2]int `json:"issues_q_t_p_by_product"`
	Signed []Contract  `json:"signed_today"`
	// Executed and Dropped are ids of contracts that were due.
	Executed     []string `json:"executed_ids"`
	Dropped      []string `json:"dropped_ids"`
	End          End      `json:"end"`
	Negotiations int      `json:"n_negotiations"`
	// Concluded counts contracts as the league does; Reports has what was published on the day.
	// Files may lack both.
	Concluded int               `json:"n_contracts_concluded,omitempty"`
	Reports   map[string]Report `json:"reports,omitempty"`
}

// Report is the financial report of an agent.
type Report struct {
	Cash        float64 `json:"cash"`
	BreachProb  float64 `json:"breach_prob"`
	BreachLevel float64 `json:"breach_level"`
	Bankrupt    bool    `json:"is_bankrupt"`
}

// End is what there is after a day.
type End struct {
	Trading  []float64 `json:"trading_price"`
	Quantity []int     `json:"sold_quantity"`
	// UnitPrice is the mean of what was delivered, 0 where there was nothing.
	UnitPrice []float64       `json:"unit_price"`
	Agents    map[string]Last `json:"agents"`
}

// Last is what an agent has after a day.
type Last struct {
	Balance      float64 `json:"balance"`
	Score        float64 `json:"score"`
	Bankrupt     bool    `json:"bankrupt"`
	Productivity float64 `json:"productivity"`
	Missing      int     `json:"shortfall_quantity"`
	Penalty      float64 `json:"shortfall_penalty"`
	StorageCost  float64 `json:"storage_cost"`
	Left         int     `json:"inventory_penalized"`
	Stock        int     `json:"inventory_input"`
	Output       int     `json:"inventory_output"`
}

// Read reads a file: one that this package wrote, or the configuration of a world of an official
// tournament. NaN, which Python's encoder writes, is read as 0.
func Read(path string) (*World, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	text = withoutNaN(text)
	if isOfficial(text) {
		w, err := readOfficial(text)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		return w, nil
	}
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.DisallowUnknownFields()
	var w World
	if err := dec.Decode(&w); err != nil {
		return nil, fmt.Errorf("%s: %w", path, decodeError(text, err))
	}
	if _, err := dec.Token(); err != io.EOF {
		return nil, fmt.Errorf("%s: something follows the world", path)
	}
	if w.Perishable {
		return nil, fmt.Errorf("%s: perishable %w", path, ErrPerishable)
	}
	return &w, nil
}

// withoutNaN returns a text in which NaN outside strings is null.
func withoutNaN(text []byte) []byte {
	if !bytes.Contains(text, []byte("NaN")) {
		return text
	}
	out, quoted := make([]byte, 0, len(text)+1024), false
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case quoted && c == '\\' && i+1 < len(text):
			out = append(out, c)
			i++
		case c == '"':
			quoted = !quoted
		case !quoted && c == 'N' && bytes.HasPrefix(text[i:], []byte("NaN")):
			out = append(out, "null"...)
			i += 2
			continue
		}
		out = append(out, text[i])
	}
	return out
}

// Write writes a file, or leaves what is there as it is.
func (w *World) Write(path string) error {
	return atomicfile.WriteFile(path, func(out io.Writer) error {
		return json.NewEncoder(out).Encode(w)
	})
}

// IDs returns the ids of the agents in the order of their indices.
func (w *World) IDs() []string {
	var ids []string
	for id := range sorted.All(w.Agents) {
		ids = append(ids, id)
	}
	slices.SortStableFunc(ids, func(a, b string) int { return w.Agents[a].Level - w.Agents[b].Level })
	return ids
}

// Config returns how the world began.
func (w *World) Config() (*world.Config, error) {
	c := &world.Config{Days: w.Days, Lines: w.Lines, Catalog: w.Catalog, Rules: world.DefaultRules()}
	if w.Rules != nil {
		c.Rules = *w.Rules
	}
	if c.Rules.PassLimit = 0; w.PassLimit != nil {
		c.Rules.PassLimit = *w.PassLimit
	}
	if w.Levels != c.Levels() {
		return nil, fmt.Errorf("n_processes is %d, but there are %d catalog_prices, expected one more", w.Levels, len(w.Catalog))
	}
	index := map[string]int{}
	for i, id := range w.IDs() {
		a := w.Agents[id]
		index[id] = i
		c.Factories = append(c.Factories, world.Factory{
			ID: id, Type: a.Type, Level: a.Level, Cost: a.Cost, Balance: a.Balance, Storage: a.Storage, Shortfall: a.Shortfall, StorageMean: cmp.Or(a.StorageMean, mean(a.Storage)), ShortfallMean: cmp.Or(a.ShortfallMean, mean(a.Shortfall)),
		})
	}
	for i, e := range w.Exogenous {
		x := world.Exogenous{Day: e.Day, Quantity: e.Quantity, Price: e.Price, Demand: e.Buyer == world.Buyer}
		id, product := e.Buyer, 0
		if x.Demand {
			id, product = e.Seller, c.Levels()
		}
		k, ok := index[id]
		if !ok || e.Product != product || !x.Demand && e.Seller != world.Seller {
			return nil, fmt.Errorf("exogenous[%d]: product %d of %q for %q: expected product 0 of %s for an agent, or product %d of one for %s", i, e.Product, e.Seller, e.Buyer, world.Seller, c.Levels(), world.Buyer)
		}
		x.Factory = k
		c.Exogenous = append(c.Exogenous, x)
	}
	slices.SortStableFunc(c.Exogenous, func(a, b world.Exogenous) int { return a.Day - b.Day })
	if err := c.Validate(); err != nil {
		return nil, err
	}
	return c, nil
}

func mean(list []float64) float64 {
	sum := 0.0
	for _, x := range list {
		sum += x
	}
	return sum / float64(max(len(list), 1))
}
