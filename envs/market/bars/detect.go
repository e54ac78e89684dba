package bars

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// vendorOf names the preset of the vendor that writes files with a header, auto where it is not
// known.
func vendorOf(header []string) string {
	has := func(names ...string) bool {
		return !slices.ContainsFunc(names, func(name string) bool { return !slices.Contains(header, name) })
	}
	switch {
	case slices.Equal(header, presets["binance"].header):
		return "binance"
	case has("ts_code", "trade_date", "vol"):
		return "tushare"
	case has("date", "code", "tradestatus"):
		return "baostock"
	case has("<TICKER>", "<DATE>", "<CLOSE>"):
		return "stooq"
	case has("Date", "Open", "Close", "Adj Close"):
		return "yahoo"
	case has("开盘", "收盘", "成交量") && (has("日期") || has("时间")), has("成交时间", "成交价格", "成交量"), has("时间", "成交价", "手数"):
		return "akshare"
	case slices.ContainsFunc(header, func(h string) bool { return slices.Contains(windNames, plain(h)) }), has("amt") && (has("asize1") || has("bsize1")):
		return "wind"
	case indexOf(header) >= 0 && (has("AMT") || has("TRADE_STATUS")):
		return "wind" // WindPy's
	}
	return "auto"
}

// windNames are what Wind alone calls the symbol, as aliases are written.
var windNames = []string{"windcode", "wind代码", "万得代码", "万得证券代码", "sinfowindcode"}

// vendor is how the files of the source are written: by its preset or, where that is auto, by the
// vendor whose header they have. What such a vendor does not name has its usual names.
func (s Source) vendor(header []string) preset {
	if s.Preset != "auto" {
		return presets[s.Preset]
	}
	p := presets[vendorOf(header)]
	p.aliases = true
	return p
}

// headless returns the names of the columns of a file whose first line is a row, nil where the line
// may be a header. Binance writes such files.
func headless(cells []string) []string {
	header := presets["binance"].header
	if len(cells) != len(header) {
		return nil
	}
	for _, cell := range cells {
		if _, err := strconv.ParseFloat(strings.TrimSpace(cell), 64); err != nil {
			return nil
		}
	}
	if n := len(strings.TrimSpace(cells[0])); n != len("1577923200000") && n != len("1577923200000000") {
		return nil
	}
	return header
}

// Detect finds out how the rows of a source can be read, by the columns of its first file: the
// preset of the vendor, which auto stands for, and whether they are ticks, of which bars of five
// minutes are made. Only Path, Instruments, Frequency and Subset are used.
func Detect(s Source) (Source, error) {
	d := DefaultSource()
	d.Path, d.Instruments, d.Frequency, d.Subset = s.Path, s.Instruments, s.Frequency, s.Subset
	at, err := d.local()
	if err != nil {
		return d, err
	}
	paths, err := at.files()
	if err != nil || isQlib(at.Path) {
		return d, err
	}
	header, err := headerOf(d, paths[0])
	if err != nil {
		return d, fmt.Errorf("read %s: %w", paths[0], err)
	}
	if _, err := d.resolve(header); err == nil {
		d.Preset = recognised(d, header)
		return d, nil
	} else if _, ticks := d.resolveTicks(header); ticks == nil {
		d.Preset, d.Bars = vendorOf(header), "5m"
		return d, nil
	} else if slices.ContainsFunc(header, func(h string) bool { return slices.Contains(tickAliases["price"], plain(h)) }) {
		return d, errors.Join(err, ticks)
	} else {
		return d, err
	}
}

func headerOf(s Source, path string) ([]string, error) {
	t, err := (&reader{source: s}).open(path, preset{})
	if err != nil {
		return nil, err
	}
	return t.Header(), t.Close()
}

// recognised is the preset to write down for a header: the vendor's where it reads the same columns as
// auto does.
func recognised(s Source, header []string) string {
	auto, err := s.resolve(header)
	s.Preset = vendorOf(header)
	if named, e := s.resolve(header); err == nil && e == nil && slices.Equal(auto.used(), named.used()) {
		return s.Preset
	}
	return "auto"
}

// LikelyExchange names the calendar that the days of the rows agree with, but for one of a hundred;
// empty where there is none, as for data that know no holidays.
func (d *Data) LikelyExchange() string {
	days := map[Date]bool{}
	chinese := false
	for _, s := range d.Series {
		upper := strings.ToUpper(s.Symbol)
		for _, mark := range []string{".SH", ".SS", ".SZ", "SH.", "SZ.", "SH6", "SZ0", "SZ3"} {
			chinese = chinese || strings.HasPrefix(upper, mark) || strings.HasSuffix(upper, mark)
		}
		for i := range s.Records {
			days[NewDate(s.Records[i].Time)] = true
		}
	}
	best, least := "", 0.01
	for _, name := range []string{"xnys", "xshg"} {
		trial := *d
		if err := trial.hours(Source{Exchange: name}); err != nil {
			continue
		}
		r := trial.Exchange()
		wrong := float64(len(r.Lacking)+len(r.Holidays)+r.Unknown) / float64(len(days))
		if chinese == (name == "xshg") && wrong < least {
			best, least = name, wrong
		}
	}
	return best
}

// Lacks says what the rows do not have, and what follows from that, one sentence each. Limits and
// special treatment are things of the exchanges of China, xshg.
func (d *Data) Lacks(exchange string) (list []string) {
	has := func(c QuoteColumn) bool {
		return slices.ContainsFunc(d.Series, func(s Series) bool { return slices.Contains(s.Quoted, c) })
	}
	if d.Adjustment.By == "none" && !d.Adjustment.Already {
		list = append(list, "factor: prices are not adjusted, and dividends and splits look like losses")
	}
	if !d.HasVolume {
		list = append(list, "volume: no feature uses it, no bar is known to be without trading, and costs know no participation")
	}
	if !has(Amount) {
		list = append(list, "amount: the money that changed hands is not known, and so no average price of a bar")
	}
	if exchange != "xshg" {
		return list
	}
	if !has(LimitUp) || !has(LimitDown) {
		list = append(list, "limits: orders are filled on days on which the exchange allowed no trade at these prices")
	}
	if !has(ST) {
		list = append(list, "ST: stocks under special treatment, whose limits are narrower, are not known")
	}
	return list
}
