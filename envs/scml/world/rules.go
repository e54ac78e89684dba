package world

import "github.com/onnxrl/onnxrl/configs"

// Rules are the numbers of the league and its defects. [DefaultRules] are those of the tournament of
// 2025. The switches are false where the world is the official one; each repairs one defect.
type Rules struct {
	// Horizon is how many days ahead a delivery may be agreed; the last one counts.
	Horizon int `json:"horizon"`
	// MaxQuantity is the largest quantity of an offer; the smallest is 1.
	MaxQuantity int `json:"max_quantity"`
	// PriceRange is the half width of the range of unit prices, relative to the trading price.
	PriceRange float64 `json:"price_range"`
	// Rounds is how many rounds a negotiation has.
	Rounds int `json:"rounds"`
	// PassLimit is how often a day goes over all negotiations; those that still run afterwards are
	// left behind. 0 is no limit.
	PassLimit int `json:"pass_limit"`
	// PriceDiscount is what the weight of a trading price keeps of itself on a day with trade, and
	// PriceWeight the weight of the catalog price.
	PriceDiscount float64 `json:"price_discount"`
	PriceWeight   float64 `json:"price_weight"`
	// ReportPeriod is the number of days between two financial reports.
	ReportPeriod int `json:"report_period"`

	// StockShrinks: inputs that were used leave the stock. Officially stock only grows, and is free
	// input again on each day.
	StockShrinks bool `json:"stock_shrinks"`
	// MiddleEdge: in worlds of four levels, levels 1 and 2 negotiate. Officially these negotiations
	// never start, and keep the day from ending before its pass limit.
	MiddleEdge bool `json:"middle_edge"`
	// RefreshRaw: the ranges of product 0 that agents read follow the day. Officially they are
	// those of day 0 for ever.
	RefreshRaw bool `json:"refresh_raw"`
	// DeliverMade: a buyer receives, and pays, what its sellers could make. Officially it receives
	// and pays all that was agreed, while they are paid for what they made.
	DeliverMade bool `json:"deliver_made"`
	// FinishAll: negotiations that the pass limit cuts off end on that day. Officially they
	// fail on the next one.
	FinishAll bool `json:"finish_all"`
	// ForgetBankrupt: what a bankrupt agent had promised leaves its partners' books.
	ForgetBankrupt bool `json:"forget_bankrupt"`
	// CountOnce: exogenous contracts of day 0 count once among those that were concluded.
	CountOnce bool `json:"count_once"`
	// BreachOnce: exogenous quantities count once in the breach levels of financial reports.
	BreachOnce bool `json:"breach_once"`
}

// DefaultRules are the rules of the Standard league of 2025.
func DefaultRules() Rules {
	return Rules{Horizon: 10, MaxQuantity: 30, PriceRange: 0.1, Rounds: 20, PassLimit: 21, PriceDiscount: 0.9, PriceWeight: 50, ReportPeriod: 5}
}

// maxRounds bounds how long a day can take.
const maxRounds = 10_000

// Validate reports all that a world could not be played by.
func (r *Rules) Validate() error {
	var p configs.Problems
	p.AtLeast("horizon", r.Horizon, 0)
	p.AtLeast("max_quantity", r.MaxQuantity, 1)
	p.InRange("rounds", r.Rounds, 1, maxRounds)
	p.InRange("pass_limit", r.PassLimit, 0, 2*maxRounds)
	p.AtLeast("report_period", r.ReportPeriod, 1)
	p.Check(r.PriceRange >= 0 && r.PriceRange < 1, "price_range", "must be at least 0 and less than 1, is %v", r.PriceRange)
	p.Check(r.PriceDiscount > 0 && r.PriceDiscount <= 1, "price_discount", "must be more than 0 and at most 1, is %v", r.PriceDiscount)
	p.Positive("price_weight", r.PriceWeight)
	return p.Err()
}

// Prices returns the lowest and highest unit price that may be offered at a trading price.
func (r *Rules) Prices(trading float64) (low, high int) {
	low = max(1, int(trading*float64(1-r.PriceRange)))
	high = int(float64(1+r.PriceRange) * trading)
	return min(low, high), max(low, high)
}

// Times returns the first and last day on which a delivery may be agreed on a day.
func (r *Rules) Times(day, days int) (first, last int) {
	return day, min(day+r.Horizon, days-1)
}
