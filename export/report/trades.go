package report

import (
	"math"

	"github.com/onnxrl/onnxrl/export/report/performance"
)

// TradeSummary adds up the trades of a strategy. Money is in that of the document.
type TradeSummary struct {
	Count    int          `json:"count"`
	Buys     int          `json:"buys"`
	Sells    int          `json:"sells"`
	Bought   float64      `json:"bought"` // money
	Sold     float64      `json:"sold"`
	Fees     float64      `json:"fees"`
	Realised float64      `json:"realised"` // gains of sales over the average cost of what was sold, fees of both sides included
	ByAsset  []AssetTrade `json:"by_asset"` // of those that were traded, in the order of the assets
}

// AssetTrade adds up the trades of one asset.
type AssetTrade struct {
	Asset    string             `json:"asset"`
	Buys     int                `json:"buys"`
	Sells    int                `json:"sells"`
	Bought   float64            `json:"bought"`
	Sold     float64            `json:"sold"`
	Fees     float64            `json:"fees"`
	Realised float64            `json:"realised"`
	WinRate  performance.Number `json:"win_rate"` // share of sales with a gain
	// Gain is what the asset has earned, fees taken off, realised or not, and Contribution its part
	// of the total return: a share of the first value. Both are NaN where weights are unknown.
	Gain         performance.Number `json:"gain"`
	Contribution performance.Number `json:"contribution"`
}

// trades adds up what a strategy did. The cost of a sale is the average of what the position has
// cost, fees included; shares that were there at the start have no known cost and their sale is no
// gain or loss.
func (d *Document) trades(s *Strategy) *TradeSummary {
	if s.Trades == nil {
		return nil
	}
	total := &TradeSummary{Count: len(s.Trades), ByAsset: []AssetTrade{}}
	rows := make([]AssetTrade, len(d.Assets))
	shares, cost, wins := make([]float64, len(d.Assets)), make([]float64, len(d.Assets)), make([]int, len(d.Assets))
	for _, t := range s.Trades {
		row, money, units := &rows[t.Asset], t.Shares*t.Price, t.Shares
		if t.Factor > 0 {
			units /= t.Factor
		}
		row.Fees += t.Fee
		if t.Side == Buy {
			row.Buys++
			row.Bought += money
			shares[t.Asset] += units
			cost[t.Asset] += money + t.Fee
			continue
		}
		row.Sells++
		row.Sold += money
		if known := math.Min(units, shares[t.Asset]); known > 0 {
			part := known / shares[t.Asset]
			gain := (money-t.Fee)*known/units - cost[t.Asset]*part
			row.Realised += gain
			if gain > 0 {
				wins[t.Asset]++
			}
			shares[t.Asset] -= known
			cost[t.Asset] -= cost[t.Asset] * part
		}
	}
	gains := d.gains(s)
	for i := range rows {
		r := &rows[i]
		if r.Buys+r.Sells == 0 {
			continue
		}
		nan := performance.Number(math.NaN())
		r.Asset, r.WinRate, r.Gain, r.Contribution = d.Assets[i], nan, nan, nan
		if gains != nil {
			r.Gain, r.Contribution = performance.Number(gains[i]), performance.Number(gains[i]/s.Value[0])
		}
		if r.Sells > 0 {
			r.WinRate = performance.Number(float64(wins[i]) / float64(r.Sells))
		}
		total.Buys, total.Sells = total.Buys+r.Buys, total.Sells+r.Sells
		total.Bought, total.Sold, total.Fees, total.Realised = total.Bought+r.Bought, total.Sold+r.Sold, total.Fees+r.Fees, total.Realised+r.Realised
		total.ByAsset = append(total.ByAsset, *r)
	}
	return total
}
