package dashboard

import (
	"encoding/json"
	"fmt"
	"math"

	"github.com/onnxrl/onnxrl/runtime/sorted"
)

var nan = math.NaN()

// probabilities are those of the logarithms.
func probabilities(logs []float32) []float64 {
	list := make([]float64, len(logs))
	for i, l := range logs {
		list[i] = math.Exp(float64(l))
	}
	return list
}

// WorldData is a world of the Supply Chain Management League, by day.
type WorldData struct {
	Item
	Seed     uint64       `json:"seed"`
	Products int          `json:"products"`
	Days     int          `json:"days"`
	Agents   []WorldAgent `json:"agents"`
	// TradingPrice and UnitPrice are of each product by day, the latter 0 on days without a sale;
	// Sold is how many were sold.
	CatalogPrices []float64   `json:"catalog_prices"`
	TradingPrice  [][]float64 `json:"trading_price"`
	UnitPrice     [][]float64 `json:"unit_price"`
	Sold          [][]float64 `json:"sold"`
	// Negotiations, Concluded, Signed, Executed and Dropped count by day.
	Negotiations []int `json:"negotiations"`
	Concluded    []int `json:"concluded"`
	Signed       []int `json:"signed"`
	Executed     []int `json:"executed"`
	Dropped      []int `json:"dropped"`
	// Contracts are the newest that were signed, the newest first; ContractsOf counts all.
	Contracts   []Contract `json:"contracts"`
	ContractsOf int        `json:"contracts_of"`
}

// WorldAgent is one of the factories, and how it was at the end of every day.
type WorldAgent struct {
	Name  string   `json:"name"`
	Type  string   `json:"type"`
	Level int      `json:"level"`
	Final *float64 `json:"final"`
	// Score is relative to the initial balance; Input and Output are what is in stock.
	Balance   []float64 `json:"balance"`
	Score     []float64 `json:"score"`
	Input     []float64 `json:"input"`
	Output    []float64 `json:"output"`
	Shortfall []float64 `json:"shortfall"`
	// Penalty is for what was not delivered, Storage for what was kept.
	Penalty  []float64 `json:"penalty"`
	Storage  []float64 `json:"storage"`
	Bankrupt bool      `json:"bankrupt"`
}

// Contract is one that was signed.
type Contract struct {
	ID        string  `json:"id"`
	Day       int     `json:"day"`
	Seller    string  `json:"seller"`
	Buyer     string  `json:"buyer"`
	Quantity  int     `json:"quantity"`
	Delivery  int     `json:"delivery"`
	UnitPrice float64 `json:"unit_price"`
	// State is executed, dropped or open.
	State string `json:"state"`
}

// mostContracts is the most contracts of a table.
const mostContracts = 400

// worldFile is what onnxrl scml run writes, as far as it is shown.
type worldFile struct {
	Seed          uint64    `json:"seed"`
	Processes     int       `json:"n_processes"`
	CatalogPrices []float64 `json:"catalog_prices"`
	Agents        map[string]struct {
		Type  string `json:"type"`
		Level int    `json:"level"`
	} `json:"agents"`
	Days []struct {
		Day    int `json:"day"`
		Signed []struct {
			ID        string  `json:"id"`
			Seller    string  `json:"seller"`
			Buyer     string  `json:"buyer"`
			Quantity  int     `json:"quantity"`
			Time      int     `json:"time"`
			UnitPrice float64 `json:"unit_price"`
		} `json:"signed_today"`
		Executed []string `json:"executed_ids"`
		Dropped  []string `json:"dropped_ids"`
		End      struct {
			TradingPrice []float64 `json:"trading_price"`
			Sold         []float64 `json:"sold_quantity"`
			UnitPrice    []float64 `json:"unit_price"`
			Agents       map[string]struct {
				Balance   float64 `json:"balance"`
				Score     float64 `json:"score"`
				Bankrupt  bool    `json:"bankrupt"`
				Shortfall float64 `json:"shortfall_quantity"`
				Penalty   float64 `json:"shortfall_penalty"`
				Storage   float64 `json:"storage_cost"`
				Input     float64 `json:"inventory_input"`
				Output    float64 `json:"inventory_output"`
			} `json:"agents"`
		} `json:"end"`
		Negotiations int `json:"n_negotiations"`
		Concluded    int `json:"n_contracts_concluded"`
	} `json:"days"`
	Final map[string]float64 `json:"final_scores"`
}

// World reads a world.
func (b *Board) World(id string) (*WorldData, error) {
	it, err := b.item(World, id)
	if err != nil {
		return nil, err
	}
	text, err := readFile(it.path)
	if err != nil {
		return nil, fmt.Errorf("world %s: %w", id, err)
	}
	var w worldFile
	if err := json.Unmarshal(text, &w); err != nil {
		return nil, fmt.Errorf("world %s: %w", id, err)
	}
	if len(w.CatalogPrices) == 0 || len(w.CatalogPrices) != w.Processes+1 {
		return nil, fmt.Errorf("world %s: %d catalog_prices, expected one more than n_processes, which is %d", id, len(w.CatalogPrices), w.Processes)
	}
	d := &WorldData{Item: it, Seed: w.Seed, Products: w.Processes + 1, Days: len(w.Days), CatalogPrices: w.CatalogPrices, Agents: []WorldAgent{}, Contracts: []Contract{}}
	d.TradingPrice, d.UnitPrice, d.Sold = make([][]float64, d.Products), make([][]float64, d.Products), make([][]float64, d.Products)
	for name, a := range sorted.All(w.Agents) {
		agent := WorldAgent{Name: name, Type: a.Type, Level: a.Level}
		if f, ok := w.Final[name]; ok {
			agent.Final = &f
		}
		d.Agents = append(d.Agents, agent)
	}
	state := map[string]string{}
	for i, day := range w.Days {
		e := day.End
		if len(e.TradingPrice) != d.Products || len(e.Sold) != d.Products || len(e.UnitPrice) != d.Products {
			return nil, fmt.Errorf("world %s: days[%d].end: %d prices, expected those of %d products", id, i, len(e.TradingPrice), d.Products)
		}
		for p := range d.Products {
			d.TradingPrice[p] = append(d.TradingPrice[p], e.TradingPrice[p])
			d.UnitPrice[p] = append(d.UnitPrice[p], e.UnitPrice[p])
			d.Sold[p] = append(d.Sold[p], e.Sold[p])
		}
		for j := range d.Agents {
			a := &d.Agents[j]
			s, ok := e.Agents[a.Name]
			if !ok {
				return nil, fmt.Errorf("world %s: days[%d].end.agents: %s is missing", id, i, a.Name)
			}
			a.Balance, a.Score, a.Input, a.Output = append(a.Balance, s.Balance), append(a.Score, s.Score), append(a.Input, s.Input), append(a.Output, s.Output)
			a.Shortfall, a.Penalty, a.Storage = append(a.Shortfall, s.Shortfall), append(a.Penalty, s.Penalty), append(a.Storage, s.Storage)
			a.Bankrupt = s.Bankrupt
		}
		d.Negotiations, d.Concluded = append(d.Negotiations, day.Negotiations), append(d.Concluded, day.Concluded)
		d.Signed, d.Executed, d.Dropped = append(d.Signed, len(day.Signed)), append(d.Executed, len(day.Executed)), append(d.Dropped, len(day.Dropped))
		d.ContractsOf += len(day.Signed)
		for _, c := range day.Executed {
			state[c] = "executed"
		}
		for _, c := range day.Dropped {
			state[c] = "dropped"
		}
	}
	for i := len(w.Days) - 1; i >= 0; i-- {
		for j := len(w.Days[i].Signed) - 1; j >= 0 && len(d.Contracts) < mostContracts; j-- {
			c := w.Days[i].Signed[j]
			s := state[c.ID]
			if s == "" {
				s = "open"
			}
			d.Contracts = append(d.Contracts, Contract{ID: c.ID, Day: w.Days[i].Day, Seller: c.Seller, Buyer: c.Buyer, Quantity: c.Quantity, Delivery: c.Time, UnitPrice: c.UnitPrice, State: s})
		}
	}
	return d, nil
}
