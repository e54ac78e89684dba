package record

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/onnxrl/onnxrl/envs/scml/world"
)

// Open reads a world: a file, or the folder of one that the league's own program wrote.
func Open(path string) (*World, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if info.IsDir() {
		return ReadLogs(path)
	}
	return Read(path)
}

// logInfo is what is read of info.json.
type logInfo struct {
	Catalog  []float64             `json:"catalog_prices"`
	Days     int                   `json:"n_steps"`
	Levels   int                   `json:"n_processes"`
	Lines    int                   `json:"n_lines"`
	Speed    *int                  `json:"negotiation_speed"`
	Balances map[string]float64    `json:"agent_initial_balances"`
	Profiles map[string]logProfile `json:"agent_profiles"`
	// Perishable is false in worlds of the Standard league.
	Perishable bool `json:"perishable"`
	// Types are the adapters of agents in the order of their indices, Params what they were made
	// with: mostly the class that decides.
	Types  []string `json:"agent_types_final"`
	Params []struct {
		Controller string `json:"controller_type"`
	} `json:"agent_params_final"`
	// Rules and Shortfall are in the folders that package logs writes.
	Rules     *world.Rules         `json:"rules"`
	Shortfall map[string][]float64 `json:"shortfall_penalty_per_day"`
}

// logProfile is a factory's.
type logProfile struct {
	Cost          int     `json:"cost"`
	Input         int     `json:"input_product"`
	ShortfallMean float64 `json:"shortfall_penalty_mean"`
	StorageMean   float64 `json:"storage_cost_mean"`
	StorageDev    float64 `json:"storage_cost_dev"`
}

// ReadLogs reads the folder of a world as scml 0.7.6 and package logs write it: info.json,
// contracts.csv and stats.csv (or stats.csv.csv), all of which must be there. Daily shortfall
// coefficients are not part of the logs of scml; they are taken from the penalties on days with a
// shortfall, and are the mean on others, where they have no effect.
func ReadLogs(dir string) (*World, error) {
	var info logInfo
	text, err := os.ReadFile(filepath.Join(dir, "info.json"))
	if errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("%s: there is no info.json: the folder of one world was expected, written with compact=False, no_logs=False and fast=False or by a tournament", dir)
	}
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(withoutNaN(text), &info); err != nil {
		return nil, fmt.Errorf("%s: %w", filepath.Join(dir, "info.json"), err)
	}
	if info.Perishable {
		return nil, fmt.Errorf("%s: perishable %w", filepath.Join(dir, "info.json"), ErrPerishable)
	}
	w := &World{Levels: info.Levels, Days: info.Days, PassLimit: info.Speed, Lines: info.Lines, Rules: info.Rules, Agents: map[string]Agent{}, Exogenous: []Exogenous{}}
	for _, p := range info.Catalog {
		w.Catalog = append(w.Catalog, int(p))
	}
	for id, p := range info.Profiles {
		if id == world.Seller || id == world.Buyer {
			continue
		}
		if p.StorageDev != 0 {
			return nil, fmt.Errorf("%s: agent_profiles.%s.storage_cost_dev is %v: storage costs that change from day to day are not in the logs", filepath.Join(dir, "info.json"), id, p.StorageDev)
		}
		a := Agent{Level: p.Input, Cost: p.Cost, Balance: info.Balances[id], StorageMean: p.StorageMean, ShortfallMean: p.ShortfallMean}
		for range w.Days {
			a.Storage, a.Shortfall = append(a.Storage, p.StorageMean), append(a.Shortfall, p.ShortfallMean)
		}
		if daily, ok := info.Shortfall[id]; ok {
			if len(daily) != w.Days {
				return nil, fmt.Errorf("%s: shortfall_penalty_per_day.%s has %d values, expected %d, one for each day", filepath.Join(dir, "info.json"), id, len(daily), w.Days)
			}
			a.Shortfall = daily
		}
		w.Agents[id] = a
	}
	if err := w.readTypes(&info); err != nil {
		return nil, fmt.Errorf("%s: %w", filepath.Join(dir, "info.json"), err)
	}
	if err := w.readStats(dir, info.Shortfall == nil); err != nil {
		return nil, err
	}
	if err := w.readContracts(filepath.Join(dir, "contracts.csv")); err != nil {
		return nil, err
	}
	return w, nil
}

// readTypes gives agents the names of the classes that decide for them, where there are any.
func (w *World) readTypes(info *logInfo) error {
	ids := w.IDs()
	if len(info.Types) == 0 {
		return nil
	}
	if len(info.Types) != len(ids) || len(info.Params) != len(ids) {
		return fmt.Errorf("agent_types_final and agent_params_final are of %d and %d agents, and agent_profiles of %d", len(info.Types), len(info.Params), len(ids))
	}
	for i, id := range ids {
		typ := info.Params[i].Controller
		if typ == "" {
			typ = info.Types[i]
		}
		a := w.Agents[id]
		a.Type = typ[strings.LastIndexAny(typ, ".:")+1:]
		w.Agents[id] = a
	}
	return nil
}

// sheet is a CSV file with a head.
type sheet struct {
	path   string
	column map[string]int
	rows   [][]string
}

func readSheet(path string) (*sheet, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	r := csv.NewReader(bytes.NewReader(text))
	rows, err := r.ReadAll()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if len(rows) == 0 {
		return nil, fmt.Errorf("%s: no head", path)
	}
	s := &sheet{path, map[string]int{}, rows[1:]}
	for i, name := range rows[0] {
		s.column[name] = i
	}
	return s, nil
}

// text returns a cell.
func (s *sheet) text(row int, column string) (string, error) {
	i, ok := s.column[column]
	if !ok {
		return "", fmt.Errorf("%s: there is no column %s", s.path, column)
	}
	return s.rows[row][i], nil
}

// number returns a cell, NaN where it is empty.
func (s *sheet) number(row int, column string) (float64, error) {
	text, err := s.text(row, column)
	if err != nil {
		return 0, err
	}
	switch strings.ToLower(text) {
	case "":
		return math.NaN(), nil
	case "true":
		return 1, nil
	case "false":
		return 0, nil
	}
	x, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return 0, fmt.Errorf("%s: row %d, column %s: %q is no number", s.path, row+1, column, text)
	}
	return x, nil
}

// cells reads several numbers of a row, and keeps the first error.
type cells struct {
	*sheet
	row int
	err error
}

func (c *cells) number(column string) float64 {
	x, err := c.sheet.number(c.row, column)
	if c.err == nil {
		c.err = err
	}
	return x
}

func (c *cells) whole(column string) int {
	x := c.number(column)
	if c.err == nil && x != math.Trunc(x) {
		c.err = fmt.Errorf("%s: row %d, column %s: %v is no whole number", c.path, c.row+1, column, x)
	}
	return int(x)
}

func (c *cells) name(column string) string {
	text, err := c.sheet.text(c.row, column)
	if c.err == nil {
		c.err = err
	}
	return text
}

// readStats reads the ends of days and, where they are wanted, what shortfall coefficients follow.
func (w *World) readStats(dir string, shortfall bool) error {
	s, err := readSheet(filepath.Join(dir, "stats.csv"))
	if errors.Is(err, os.ErrNotExist) {
		if s, err = readSheet(filepath.Join(dir, "stats.csv.csv")); errors.Is(err, os.ErrNotExist) {
			return fmt.Errorf("%s: there is no stats.csv and no stats.csv.csv: the world must be run with log_stats_every=1, or saved", dir)
		}
	}
	if err != nil {
		return err
	}
	price := make([]float64, len(w.Catalog))
	for p, x := range w.Catalog {
		price[p] = float64(x)
	}
	for row := range s.rows {
		c := &cells{sheet: s, row: row}
		d := Day{Day: row, InForce: slices.Clone(price), Signed: []Contract{}, Executed: []string{}, Dropped: []string{}, End: End{Agents: map[string]Last{}}}
		for p := range w.Catalog {
			price[p] = c.number(fmt.Sprintf("trading_price_%d", p))
			d.End.Trading = append(d.End.Trading, price[p])
			d.End.Quantity = append(d.End.Quantity, c.whole(fmt.Sprintf("sold_quantity_%d", p)))
			unit := c.number(fmt.Sprintf("unit_price_%d", p))
			if d.End.Quantity[p] == 0 {
				unit = 0
			}
			d.End.UnitPrice = append(d.End.UnitPrice, unit)
		}
		for id, a := range w.Agents {
			e := Last{
				Balance: c.number("balance_" + id), Score: c.number("score_" + id), Bankrupt: c.number("bankrupt_"+id) != 0, Productivity: c.number("productivity_" + id), Missing: c.whole("shortfall_quantity_" + id),
				Penalty: c.number("shortfall_penalty_" + id), StorageCost: c.number("storage_cost_" + id), Left: c.whole("inventory_penalized_" + id), Stock: c.whole("inventory_input_" + id), Output: c.whole("inventory_output_" + id),
			}
			if shortfall && e.Missing > 0 && row < w.Days {
				a.Shortfall[row] = e.Penalty / float64(e.Missing) / d.InForce[a.Level+1]
			}
			d.End.Agents[id] = e
		}
		if c.err != nil {
			return c.err
		}
		w.Played = append(w.Played, d)
	}
	return nil
}

// readContracts reads what was signed, negotiated or not, and what became of it.
func (w *World) readContracts(path string) error {
	s, err := readSheet(path)
	if err != nil {
		return err
	}
	for row := range s.rows {
		c := &cells{sheet: s, row: row}
		k := Contract{ID: c.name("id"), Seller: c.name("seller"), Buyer: c.name("buyer"), Quantity: c.whole("quantity"), Time: c.whole("delivery_time"), Price: c.whole("unit_price"), Rounds: c.whole("n_neg_steps")}
		signed, executed := c.whole("signed_at"), c.whole("executed_at")
		product, err := strconv.Atoi(strings.TrimPrefix(c.name("product_name"), "p"))
		if err != nil && c.err == nil {
			c.err = fmt.Errorf("%s: row %d, column product_name: %q, expected p and a number", path, row+1, c.name("product_name"))
		}
		if c.err != nil {
			return c.err
		}
		if k.Seller == world.Seller || k.Buyer == world.Buyer {
			w.Exogenous = append(w.Exogenous, Exogenous{Day: k.Time, Product: product, Seller: k.Seller, Buyer: k.Buyer, Quantity: k.Quantity, Price: k.Price})
			continue
		}
		if signed < 0 || signed >= len(w.Played) {
			return fmt.Errorf("%s: row %d, column signed_at: day %d of %d", path, row+1, signed, len(w.Played))
		}
		w.Played[signed].Signed = append(w.Played[signed].Signed, k)
		if k.Time >= len(w.Played) {
			continue
		}
		d := &w.Played[k.Time]
		if executed >= 0 {
			d.Executed = append(d.Executed, k.ID)
		} else {
			d.Dropped = append(d.Dropped, k.ID)
		}
	}
	return nil
}
