package bars

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"
)

// Columns names columns of the files. An empty name leaves the choice to the preset. A name may
// serve several fields, for instance open, high, low and close of data that have one price only.
type Columns struct {
	// Time, Symbol, Open, High, Low, Close and Volume are what the names say; AdjClose is the
	// adjusted close, Factor the factor of adjustment, and Suspended whether there was no trade.
	Time      string `yaml:"time"`
	Symbol    string `yaml:"symbol"`
	Open      string `yaml:"open"`
	High      string `yaml:"high"`
	Low       string `yaml:"low"`
	Close     string `yaml:"close"`
	Volume    string `yaml:"volume"`
	AdjClose  string `yaml:"adj_close"`
	Factor    string `yaml:"factor"`
	Suspended string `yaml:"suspended"`
	// PrevClose is the price that the exchange compares the day with, LimitUp and LimitDown the
	// prices beyond which it does not let trade, Amount the money that changed hands, and ST
	// whether the symbol has special treatment. All are as traded, before adjustment.
	PrevClose string `yaml:"prev_close,omitzero"`
	LimitUp   string `yaml:"limit_up,omitzero"`
	LimitDown string `yaml:"limit_down,omitzero"`
	Amount    string `yaml:"amount,omitzero"`
	ST        string `yaml:"st,omitzero"`
	// Dividend is the cash before tax, and Bonus the new shares, bonus, converted or split, that
	// the symbol gives on its ex-date for source.per_shares shares held at the close before: 0.5
	// new ones for one in a split of 3 for 2. Accounts of raw prices book them as they are.
	Dividend string `yaml:"dividend,omitzero"`
	Bonus    string `yaml:"bonus,omitzero"`
	// Spread is ask − bid, and Depth the shares offered and asked for, of bars whose book is known.
	// Bars of ticks (source.bars) that have quotes have both.
	Spread string `yaml:"spread,omitzero"`
	Depth  string `yaml:"depth,omitzero"`
	// Price is that of a tick, Bid and Ask the best of the book, and BidSize and AskSize what is
	// offered there; the further levels of numbered columns (bid_size1) follow. For source.bars.
	Price   string `yaml:"price,omitzero"`
	Bid     string `yaml:"bid,omitzero"`
	Ask     string `yaml:"ask,omitzero"`
	BidSize string `yaml:"bid_size,omitzero"`
	AskSize string `yaml:"ask_size,omitzero"`
}

// preset is how a vendor writes bars.
type preset struct {
	columns Columns
	aliases bool     // columns are found by their usual names
	header  []string // of files that have no header line
	// volume and amount are what these columns are multiplied by; an amount of 0 means 1.
	volume float64
	amount float64
	// totals says that volume and amount of ticks are the day's totals so far.
	totals bool
	// tradedFlag says that the suspended column holds 1 on days with trading.
	tradedFlag bool
	// status says that a column of texts tells of days without trading.
	status bool
	// per is the number of shares that dividends and bonus shares are for; 0 means 1.
	per float64
}

// presets are the vendors by name. The empty names of auto are found by aliases.
var presets = map[string]preset{
	"auto": {volume: 1, aliases: true},
	// AkShare's stock_zh_a_hist counts lots of 100 shares.
	"akshare": {volume: 100, aliases: true, per: 10},
	// Wind's snapshots have the day's volume and amount so far. The columns of its tables have units
	// of their own: see columnUnits.
	"wind":  {volume: 1, aliases: true, totals: true, status: true},
	"yahoo": {volume: 1, columns: Columns{Time: "Date", Symbol: wideKey, Open: "Open", High: "High", Low: "Low", Close: "Close", AdjClose: "Adj Close", Volume: "Volume"}},
	"stooq": {volume: 1, columns: Columns{
		Time: "<DATE>", Symbol: "<TICKER>", Open: "<OPEN>", High: "<HIGH>", Low: "<LOW>", Close: "<CLOSE>", Volume: "<VOL>",
	}},
	"tushare": {volume: 100, amount: 1000, columns: Columns{
		Time: "trade_date", Symbol: "ts_code", Open: "open", High: "high", Low: "low", Close: "close", Volume: "vol", Factor: "adj_factor",
		PrevClose: "pre_close", Amount: "amount",
	}},
	"baostock": {volume: 1, tradedFlag: true, columns: Columns{
		Time: "date", Symbol: "code", Open: "open", High: "high", Low: "low", Close: "close", Volume: "volume", Suspended: "tradestatus",
		PrevClose: "preclose", Amount: "amount", ST: "isST",
	}},
	"binance": {
		volume: 1,
		header: []string{
			"open_time", "open", "high", "low", "close", "volume", "close_time", "quote_volume", "trades", "taker_base_volume", "taker_quote_volume", "ignore",
		},
		columns: Columns{Time: "open_time", Open: "open", High: "high", Low: "low", Close: "close", Volume: "volume"},
	},
}

func presetNames() []string { return slices.Sorted(maps.Keys(presets)) }

// aliases are the names that auto recognises, in lower case without spaces, underscores, brackets
// and units; earlier ones win. Chinese names are those of AkShare and Wind, and those that begin with
// s are those of the tables of Wind's database, such as S_DQ_OPEN.
var aliases = map[string][]string{
	"time":      {"date", "datetime", "timestamp", "time", "tradedate", "opentime", "day", "日期", "交易日期", "时间", "交易时间", "tradedt", "tradetime"},
	"symbol":    {"symbol", "ticker", "tic", "code", "tscode", "instrument", "asset", "series", "contract", "股票代码", "证券代码", "代码", "windcode", "wind代码", "万得代码", "万得证券代码", "sinfowindcode"},
	"open":      {"open", "o", "openprice", "开盘", "开盘价", "sdqopen"},
	"high":      {"high", "h", "highprice", "最高", "最高价", "sdqhigh"},
	"low":       {"low", "l", "lowprice", "最低", "最低价", "sdqlow"},
	"close":     {"close", "c", "closeprice", "收盘", "收盘价", "sdqclose"},
	"volume":    {"volume", "vol", "v", "成交量", "sdqvolume"},
	"adj_close": {"adjclose", "adjustedclose", "closeadj"},
	"factor":    {"adjfactor", "adjustfactor", "factor", "复权因子", "sdqadjfactor"},
	// Other columns called factor may be anything, and in Qlib's form the prices have it already.
	"adj_factor": {"adjfactor", "adjustfactor", "复权因子", "sdqadjfactor"},
	"suspended":  {"suspended", "paused"},
	"status":     {"sdqtradestatus", "tradestatus", "交易状态"},
	"prev_close": {"prevclose", "preclose", "前收盘价", "前收盘", "昨收", "sdqpreclose"},
	"limit_up":   {"limitup", "uplimit", "涨停价", "sdqlimit"},
	"limit_down": {"limitdown", "downlimit", "跌停价", "sdqstopping"},
	"amount":     {"amount", "amt", "成交额", "成交金额", "sdqamount"},
	"st":         {"isst"},
}

// indexOf is the column that pandas writes for the index of a frame without a name, as those of WindPy
// are: the first of a CSV file, and one of Parquet; −1 where there is none.
func indexOf(header []string) int {
	if len(header) > 0 && header[0] == "column 1" {
		return 0
	}
	return slices.Index(header, "__index_level_0__")
}

// columnUnits are what the numbers of columns are multiplied by whose unit goes with their name: the
// tables of Wind's database have lots of 100 shares and thousands of yuan.
var columnUnits = map[string]float64{"sdqvolume": 100, "sdqamount": 1e3, "手数": 100}

func plain(name string) string {
	name, _ = unit(name)
	return strings.ToLower(strings.NewReplacer(" ", "", "_", "", "<", "", ">", "", ".", "").Replace(name))
}

// units are what Chinese headers name in parentheses, and what their numbers are multiplied by.
var units = map[string]float64{"元": 1, "股": 1, "手": 100, "千元": 1e3, "万元": 1e4, "万股": 1e4, "亿元": 1e8}

// unit takes the unit off a name such as 成交额(万元); 0 means that there is none.
func unit(name string) (bare string, scale float64) {
	text := strings.NewReplacer("（", "(", "）", ")").Replace(strings.TrimSpace(name))
	if at := strings.LastIndexByte(text, '('); at > 0 && strings.HasSuffix(text, ")") {
		if scale, ok := units[text[at+1:len(text)-1]]; ok {
			return text[:at], scale
		}
	}
	return name, 0
}

// scaleOf is what a column's numbers are multiplied by because of its name; 0 where that says nothing.
func scaleOf(name string) float64 {
	if _, scale := unit(name); scale != 0 {
		return scale
	}
	return columnUnits[plain(name)]
}

// resolved are positions of columns; -1 where there is none.
type resolved struct {
	time, symbol, open, high, low, close, volume, adjClose, factor, suspended, status int
	extra                                                                             []int
	// divided is the factor that prices have in them, as Qlib's.
	divided int
	// quotes are those of a Quote that have a column of their own.
	quotes     [QuoteColumns]int
	per        float64 // shares that dividends and bonus shares are for
	adjustment Adjustment
	names      []string
	scales     []float64 // by the units in the names; 0 where there is none
}

// resolve finds the columns in a header. The error names every column that is missing.
func (s Source) resolve(header []string) (resolved, error) {
	vendor := s.vendor(header)
	p, own := vendor.columns, s.Columns
	r := resolved{names: header, scales: make([]float64, len(header)), per: cmp.Or(s.PerShares, vendor.per, 1)}
	for i, name := range header {
		r.scales[i] = scaleOf(name)
	}
	var missing []string
	find := func(field, own, theirs string, required bool) int {
		name := cmp.Or(own, theirs)
		if name != "" {
			i := slices.Index(header, name)
			if i < 0 && (own != "" || required && !vendor.aliases) {
				missing = append(missing, fmt.Sprintf("%s (column %q)", field, name))
			}
			if i >= 0 || own != "" {
				return i
			}
		}
		if !vendor.aliases {
			return -1
		}
		for _, alias := range aliases[field] {
			for i, h := range header {
				if plain(h) == alias {
					return i
				}
			}
		}
		if at := indexOf(header); field == "time" && at >= 0 {
			return at
		}
		if required {
			missing = append(missing, fmt.Sprintf("%s (looked for %s)", field, strings.Join(aliases[field], ", ")))
		}
		return -1
	}
	r.time = find("time", own.Time, p.Time, true)
	r.open, r.high = find("open", own.Open, p.Open, true), find("high", own.High, p.High, true)
	r.low, r.close = find("low", own.Low, p.Low, true), find("close", own.Close, p.Close, true)
	r.volume = find("volume", own.Volume, p.Volume, false)
	r.suspended, r.status = find("suspended", own.Suspended, p.Suspended, false), -1
	if vendor.status && r.suspended < 0 {
		r.status = find("status", "", "", false)
	}
	for c := range r.quotes {
		r.quotes[c] = -1
	}
	for _, q := range []struct {
		column      QuoteColumn
		own, vendor string
	}{{PrevClose, own.PrevClose, p.PrevClose}, {LimitUp, own.LimitUp, p.LimitUp}, {LimitDown, own.LimitDown, p.LimitDown}, {Amount, own.Amount, p.Amount}, {ST, own.ST, p.ST}, {Dividend, own.Dividend, ""}, {Bonus, own.Bonus, ""}, {Spread, own.Spread, ""}, {Depth, own.Depth, ""}} {
		r.quotes[q.column] = find(q.column.String(), q.own, q.vendor, false)
	}
	r.symbol = -1
	if s.Symbol != "file" {
		r.symbol = find("symbol", own.Symbol, p.Symbol, s.Symbol == "column")
	}
	adjClose := find("adj_close", own.AdjClose, p.AdjClose, s.Adjust == "adj_close")
	r.adjClose, r.factor = -1, -1
	factor := -1
	if s.Adjust == "factor" {
		factor = find("factor", own.Factor, p.Factor, true)
	} else {
		factor = find("adj_factor", own.Factor, p.Factor, false)
	}
	r.divided = -1
	r.adjustment.By = "none"
	switch {
	case adjClose >= 0 && (s.Adjust == "auto" || s.Adjust == "adj_close"):
		r.adjClose, r.adjustment.By, r.adjustment.Column = adjClose, "adj_close", header[adjClose]
	case factor >= 0 && (s.Adjust == "auto" || s.Adjust == "factor"):
		r.factor, r.adjustment.By, r.adjustment.Column = factor, "factor", header[factor]
	}
	var acts []string
	for _, c := range []QuoteColumn{Dividend, Bonus} {
		if at := r.quotes[c]; at >= 0 {
			acts = append(acts, header[at])
		}
	}
	switch {
	case len(acts) == 0 && s.Adjust == ByActions:
		missing = append(missing, "dividends or bonus shares (source.columns.dividend and bonus)")
	case len(acts) > 0 && (s.Adjust == ByActions || s.Adjust == "auto" && r.adjustment.By == "none"):
		r.adjustment.By, r.adjustment.Column = ByActions, strings.Join(acts, " and ")
	case r.adjustment.By == "none":
		r.adjustment.Unused = append(r.adjustment.Unused, acts...)
	}
	for i, name := range header {
		if (i == adjClose && i != r.adjClose || i == factor || plain(name) == "factor") && i != r.factor {
			r.adjustment.Unused = append(r.adjustment.Unused, name)
		}
	}
	for _, name := range s.Extra {
		i := slices.Index(header, name)
		if i < 0 && name == "vwap" && r.quotes[Amount] >= 0 && r.volume >= 0 {
			i = averageColumn
		} else if i < 0 {
			missing = append(missing, fmt.Sprintf("extra column %q", name))
		}
		r.extra = append(r.extra, i)
	}
	if len(missing) > 0 {
		return r, fmt.Errorf("no %s; the file has the columns %s; name them in source.columns", strings.Join(missing, ", no "), strings.Join(header, ", "))
	}
	return r, nil
}

// averageColumn stands for the column vwap of files that have none: amount/volume, adjusted as
// prices are.
const averageColumn = -2

// used lists the columns to read.
func (r resolved) used() []int {
	var list []int
	for _, c := range append([]int{r.time, r.symbol, r.open, r.high, r.low, r.close, r.volume, r.adjClose, r.factor, r.suspended, r.status}, slices.Concat(r.quotes[:], r.extra)...) {
		if c >= 0 && !slices.Contains(list, c) {
			list = append(list, c)
		}
	}
	return list
}

// record reads the current row.
func (r resolved) record(t table, c *clock, p preset) (Record, error) {
	rec := Record{Factor: 1, Line: t.Line()}
	var err error
	fail := func(column int, e error) {
		if err == nil {
			err = fmt.Errorf("line %d, column %q: %w", t.Line(), r.names[column], e)
		}
	}
	number := func(column int) float64 {
		if column < 0 {
			return math.NaN()
		}
		v, e := t.Number(column)
		if e != nil {
			fail(column, e)
		}
		return v
	}
	var e error
	if rec.Time, e = t.Time(r.time, c); e != nil {
		fail(r.time, e)
	}
	rec.Open, rec.High, rec.Low, rec.Close = number(r.open), number(r.high), number(r.low), number(r.close)
	rec.Volume = number(r.volume) * r.scaleOf(r.volume, p.volume)
	switch {
	case r.adjClose >= 0:
		rec.Factor = number(r.adjClose) / rec.Close
	case r.factor >= 0:
		rec.Factor = number(r.factor)
	}
	if r.suspended >= 0 {
		v := number(r.suspended)
		if v != 0 && v != 1 && !math.IsNaN(v) {
			fail(r.suspended, fmt.Errorf("%v is neither 0 nor 1", v))
		}
		rec.Suspended = (v == 1) != p.tradedFlag
	}
	if r.status >= 0 {
		text, e := t.Text(r.status)
		if e != nil {
			fail(r.status, e)
		}
		rec.Suspended = strings.Contains(text, "停牌") // 交易, N, XD and so on are days with trading.
	}
	for q, column := range r.quotes {
		if column >= 0 {
			rec.Quote[q] = number(column)
		}
	}
	rec.Quote[Dividend], rec.Quote[Bonus] = rec.Quote[Dividend]/r.per, rec.Quote[Bonus]/r.per
	rec.Quote[Amount] *= r.scaleOf(r.quotes[Amount], max(p.amount, 1))
	if r.divided >= 0 {
		if e := rec.divide(number(r.divided)); e != nil {
			fail(r.divided, e)
		}
	}
	for _, x := range r.extra {
		if x != averageColumn {
			rec.Extra = append(rec.Extra, number(x))
			continue
		}
		average := math.NaN()
		if rec.Volume > 0 {
			average = rec.Quote[Amount] / rec.Volume
		}
		rec.Extra = append(rec.Extra, average)
		rec.average = len(rec.Extra)
	}
	return rec, err
}

// scaleOf is what a column's numbers are multiplied by: as its name says, or else as the vendor has
// them.
func (r resolved) scaleOf(column int, vendor float64) float64 {
	if column >= 0 && r.scales[column] != 0 {
		return r.scales[column]
	}
	return vendor
}

// formatTime writes a date, or date and time where it is not midnight.
func formatTime(t time.Time) string {
	if h, m, s := t.Clock(); h == 0 && m == 0 && s == 0 {
		return t.Format(time.DateOnly)
	}
	return t.Format("2006-01-02 15:04:05")
}
