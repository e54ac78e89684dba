package app

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/onnxrl/onnxrl/agents/trader"
	"github.com/onnxrl/onnxrl/envs/market/trading"
)

// holdings are what an agent begins with.
type holdings struct {
	positions []float64 // shares, in the order of the agent's assets
	cash      float64
	// time and orders are those of a line of onnxrl data live, after which the agent goes on; time
	// is empty where there is none.
	time   string
	orders []int64
	// targets [N+1] are in the place of orders where actions are target weights.
	targets []float64
	// risk is what the limits on risk remember at that time, nil where it is not told.
	risk *trading.RiskMemory
	// gains are the values that gains are counted from, nil where they are not told.
	gains *liveGains
}

// cashSymbol stands for the cash among symbols.
const cashSymbol = "cash"

// resumes says whether the holdings are those at the close of a bar, with orders that are not
// filled yet.
func (h *holdings) resumes() bool { return h != nil && h.time != "" }

// readHoldings reads --positions, nil where it is not given.
func readHoldings(path string, t *trader.Trader) (*holdings, error) {
	if path == "" {
		return nil, nil
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("--positions: %w", err)
	}
	h, err := parseHoldings(text, t.Feed.Pipeline().Assets, t.Weighs())
	if err == nil && h.resumes() && t.Remembers() {
		err = errors.New("the agent remembers what it has seen: it cannot go on after a line of its output; begin with the same --from as before instead")
	}
	if err != nil {
		return nil, fmt.Errorf("--positions %s: %w", path, err)
	}
	return h, nil
}

// parseHoldings reads JSON or CSV. Assets that are not named have no shares.
func parseHoldings(text []byte, assets []string, weighs bool) (*holdings, error) {
	var line struct {
		Time      string             `json:"time"`
		Cash      *float64           `json:"cash"`
		Positions map[string]float64 `json:"positions"`
		Orders    map[string]string  `json:"orders"`
		Targets   map[string]float64 `json:"targets"`
		Risk      *liveRisk          `json:"risk"`
		PnLFrom   *liveGains         `json:"pnl_from"`
	}
	if trimmed := bytes.TrimSpace(text); len(trimmed) > 0 && trimmed[0] == '{' {
		if err := json.Unmarshal(trimmed, &line); err != nil {
			return nil, fmt.Errorf("it is no line of JSON: %w", err)
		}
	} else {
		var err error
		if line.Positions, line.Cash, err = parseHoldingsCSV(text); err != nil {
			return nil, err
		}
	}
	if line.Cash == nil {
		return nil, errors.New("cash is missing")
	}
	h := &holdings{cash: *line.Cash, time: line.Time, positions: make([]float64, len(assets))}
	if !(h.cash >= 0) || math.IsInf(h.cash, 0) {
		return nil, fmt.Errorf("cash is %g, expected a number that is not negative", h.cash)
	}
	for symbol, q := range line.Positions {
		i := slices.Index(assets, symbol)
		if i < 0 {
			return nil, fmt.Errorf("%s is none of the agent's assets, %s", symbol, strings.Join(assets, ", "))
		}
		if !(q >= 0) || math.IsInf(q, 0) {
			return nil, fmt.Errorf("%g shares of %s, expected a number that is not negative", q, symbol)
		}
		h.positions[i] = q
	}
	if h.time == "" {
		return h, nil
	}
	h.gains = line.PnLFrom
	if line.Risk != nil {
		h.risk = line.Risk.Memory
	}
	if weighs {
		for i := range len(assets) + 1 {
			w, ok := line.Targets[targetName(assets, i)]
			if !ok {
				return nil, fmt.Errorf("targets: there is no weight of %s", targetName(assets, i))
			}
			h.targets = append(h.targets, w)
		}
		if err := trading.CheckWeights(assets, h.targets); err != nil {
			return nil, fmt.Errorf("targets: %w", err)
		}
		return h, nil
	}
	for _, symbol := range assets {
		order := slices.Index(orderNames[:], line.Orders[symbol])
		if order < 0 {
			return nil, fmt.Errorf("orders: %s is to %q, expected %s", symbol, line.Orders[symbol], strings.Join(orderNames[:], ", "))
		}
		h.orders = append(h.orders, int64(order))
	}
	return h, nil
}

// parseHoldingsCSV reads the columns symbol and shares; the symbol cash is the cash.
func parseHoldingsCSV(text []byte) (positions map[string]float64, cash *float64, err error) {
	rows, err := csv.NewReader(bytes.NewReader(text)).ReadAll()
	if err != nil {
		return nil, nil, err
	}
	if len(rows) == 0 || len(rows[0]) != 2 || rows[0][0] != "symbol" || rows[0][1] != "shares" {
		return nil, nil, errors.New("expected JSON, or CSV with the columns symbol,shares")
	}
	positions = map[string]float64{}
	for i, row := range rows[1:] {
		q, err := strconv.ParseFloat(strings.TrimSpace(row[1]), 64)
		if err != nil {
			return nil, nil, fmt.Errorf("line %d: %q is not a number of shares", i+2, row[1])
		}
		_, twice := positions[row[0]]
		switch {
		case row[0] == cashSymbol && cash == nil:
			cash = &q
		case row[0] == cashSymbol || twice:
			return nil, nil, fmt.Errorf("line %d: %s is there twice", i+2, row[0])
		default:
			positions[row[0]] = q
		}
	}
	return positions, cash, nil
}
