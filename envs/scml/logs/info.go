package logs

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/onnxrl/onnxrl/envs/scml/world"
	"github.com/onnxrl/onnxrl/runtime/atomicfile"
)

// systemBalance is the money of the outside.
const systemBalance = 2305843009213693951

// profile is a factory's in info.json and in configurations.
type profile struct {
	Cost          int     `json:"cost"`
	DisposalDev   float64 `json:"disposal_cost_dev"`
	DisposalMean  float64 `json:"disposal_cost_mean"`
	Input         int     `json:"input_product"`
	Lines         int     `json:"n_lines"`
	ShortfallDev  float64 `json:"shortfall_penalty_dev"`
	ShortfallMean float64 `json:"shortfall_penalty_mean"`
	StorageDev    float64 `json:"storage_cost_dev"`
	StorageMean   float64 `json:"storage_cost_mean"`
}

func profileOf(c *world.Config, i int) profile {
	f := &c.Factories[i]
	return profile{Cost: f.Cost, Input: f.Level, Lines: c.Lines, ShortfallDev: f.ShortfallDev, ShortfallMean: f.ShortfallMean, StorageMean: f.StorageMean}
}

// writeJSON writes a value into the folder.
func writeJSON(dir, name string, v any) error {
	b, err := json.MarshalIndent(v, "", "  ")
	if err == nil {
		err = atomicfile.WriteBytes(filepath.Join(dir, name), append(b, '\n'))
	}
	if err != nil {
		return fmt.Errorf("%s: %w", filepath.Join(dir, name), err)
	}
	return nil
}

// begin writes what is known before the first day: agents.csv, params.json and info.json.
func (f *Folder) begin() error {
	t, err := newTable(f.partial, "agents.csv", "id", "name", "type")
	if err != nil {
		return err
	}
	t.raw("0,NoAgent,NoAgent")
	t.end()
	for i, id := range f.ids {
		t.whole(agentID(i))
		t.text(id)
		t.text(shortType(f.types[i]))
		t.end()
	}
	if err := t.close(); err != nil {
		return err
	}
	r := f.w.Config().Rules
	params := fmt.Sprintf("{'perishable': False, 'horizon': %d, 'price_range_fraction': %s, 'trading_price_discount': %s, 'catalog_quantities': %s, 'publish_exogenous_summary': True, 'publish_trading_prices': True, 'compact': False, 'n_steps': %d, 'negotiation_speed': %s, 'neg_n_steps': %d, 'force_signing': True}\n",
		r.Horizon, appendFloat(nil, r.PriceRange), appendFloat(nil, r.PriceDiscount), appendFloat(nil, r.PriceWeight), f.w.Config().Days, limit(r.PassLimit), r.Rounds)
	if err := atomicfile.WriteBytes(filepath.Join(f.partial, "params.json"), []byte(params)); err != nil {
		return err
	}
	if err := atomicfile.WriteBytes(filepath.Join(f.partial, "breaches.csv"), nil); err != nil {
		return err
	}
	return writeJSON(f.partial, "info.json", f.info())
}

// limit is the pass limit in Python.
func limit(passes int) string {
	if passes == 0 {
		return "None"
	}
	return fmt.Sprint(passes)
}

// info is info.json.
func (f *Folder) info() map[string]any {
	c := f.w.Config()
	balances, profiles, processes, inputs, outputs := map[string]any{}, map[string]profile{}, map[string][]int{}, map[string][]int{}, map[string][]int{}
	shortfall := map[string][]float64{}
	var types, params []any
	var initial []float64
	perLevel := make([]int, c.Levels())
	defaults := make([]bool, len(c.Factories))
	for i := range c.Factories {
		a := &c.Factories[i]
		balances[a.ID], profiles[a.ID], shortfall[a.ID] = a.Balance, profileOf(c, i), a.Shortfall
		processes[a.ID], inputs[a.ID], outputs[a.ID] = []int{a.Level}, []int{a.Level}, []int{a.Level + 1}
		adapter, controller, _ := strings.Cut(f.types[i], ":")
		types, params, initial = append(types, adapter), append(params, map[string]string{"controller_type": controller}), append(initial, a.Balance)
		defaults[i] = f.o.Competitors != nil
		perLevel[a.Level]++
	}
	for _, i := range f.o.Competitors {
		defaults[i] = false
	}
	for i, id := range []string{world.Seller, world.Buyer} {
		balances[id], processes[id] = systemBalance, []int{}
		inputs[id], outputs[id] = [][]int{{}, {c.Levels()}}[i], [][]int{{0}, {}}[i]
	}
	supplies, sales := f.outside(perLevel)
	var speed any
	if c.Rules.PassLimit > 0 {
		speed = c.Rules.PassLimit
	}
	var prices [][]float64
	for _, p := range c.Catalog {
		row := make([]float64, c.Days)
		for d := range row {
			row[d] = float64(p)
		}
		prices = append(prices, row)
	}
	return map[string]any{
		"agent_initial_balances": balances, "agent_inputs": inputs, "agent_outputs": outputs, "agent_processes": processes, "agent_profiles": profiles, "agent_types_final": types, "agent_params_final": params, "is_default": defaults,
		"agent_name_reveals_position": true, "agent_name_reveals_type": true, "allow_zero_quantity": false, "bankruptcy_limit": 0.0, "catalog_prices": c.Catalog, "compact": false, "exogenous_sales": sales, "exogenous_supplies": supplies,
		"financial_report_period": c.Rules.ReportPeriod, "force_signing": true, "horizon": c.Rules.Horizon, "initial_balance_final": initial, "inventory_valuation_catalog": 0, "inventory_valuation_trading": 0,
		"n_agents_per_process": perLevel, "n_lines": c.Lines, "n_processes": c.Levels(), "n_steps": c.Days, "neg_n_steps": c.Rules.Rounds, "negotiation_speed": speed, "no_logs": false, "nullify_bankrupt_contracts": false,
		"one_time_per_negotiation": false, "penalize_bankrupt_for_future_contracts": true, "penalties_scale": "trading", "perishable": false, "price_range_fraction": c.Rules.PriceRange, "product_prices": prices, "publish_exogenous_summary": true,
		"publish_trading_prices": true, "signing_delay": 0, "wide_price_range": false,
		"rules": c.Rules, "shortfall_penalty_per_day": shortfall,
	}
}

// outside has the exogenous quantities of each day, one for each agent of the first and the last
// level.
func (f *Folder) outside(perLevel []int) (supplies, sales [][]int) {
	c := f.w.Config()
	first := len(c.Factories) - perLevel[len(perLevel)-1]
	for range c.Days {
		supplies, sales = append(supplies, make([]int, perLevel[0])), append(sales, make([]int, perLevel[len(perLevel)-1]))
	}
	for _, e := range c.Exogenous {
		if e.Demand {
			sales[e.Day][e.Factory-first] += e.Quantity
		} else {
			supplies[e.Day][e.Factory] += e.Quantity
		}
	}
	return supplies, sales
}

// finish writes what is known at the end: contracts.csv, agents.json and the scores.
func (f *Folder) finish() error {
	if err := f.contracts(); err != nil {
		return err
	}
	if f.o.Tournament != "" {
		if err := writeJSON(f.partial, resultsFile, f.results()); err != nil {
			return err
		}
	}
	agents := map[string]agentRow{}
	for i, id := range f.ids {
		agents[id] = f.row(i)
	}
	if err := writeJSON(f.partial, "agents.json", agents); err != nil {
		return err
	}
	var combined []map[string]any
	ids, scores, types := "[", "[", "["
	for k, i := range f.scored() {
		if k > 0 {
			ids, scores, types = ids+", ", scores+", ", types+", "
		}
		ids, scores, types = ids+"'"+f.ids[i]+"'", scores+string(appendFloat(nil, f.w.Score(i))), types+"'"+f.types[i]+"'"
		combined = append(combined, map[string]any{"score": f.w.Score(i), "type": f.types[i]})
	}
	days := f.w.Today() + 1
	return writeJSON(f.partial, "_current_scores.json", map[string]any{
		"extra_scores_combined_scores": combined, "ids": ids + "]", "names": ids + "]", "scores": scores + "]", "types": types + "]", "world_names": "['" + f.o.World + "']",
		"n_steps": f.w.Config().Days, "step": days, "relative_time": float64(days) / float64(f.w.Config().Days), "time": 0.0, "time_limit": 900,
	})
}

// scored are the indices of the agents that count.
func (f *Folder) scored() []int {
	if f.o.Competitors != nil {
		return f.o.Competitors
	}
	list := make([]int, len(f.w.Config().Factories))
	for i := range list {
		list[i] = i
	}
	return list
}
