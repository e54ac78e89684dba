package bars

import (
	"errors"
	"fmt"
	"io"
	"math"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/onnxrl/onnxrl/envs/market/exchange"
)

// BookColumns are the further columns of bars that were made of quotes: the middle between the best
// bid and ask, ask − bid, and the shares offered and asked for on all levels there are, as they
// were last within the bar.
var BookColumns = []string{"mid", "spread", "depth"}

// barSize says when a bar of ticks is complete.
type barSize struct {
	by    string        // time, day, volume, dollar or ticks
	every time.Duration // of time
	least float64       // of the others: a bar ends once it has as much
}

// parseBarSize reads 5m, 1d, volume=100000, dollar=1e6 or ticks=500.
func parseBarSize(text string) (b barSize, err error) {
	by, amount, ok := strings.Cut(text, "=")
	if !ok {
		if text == "1d" {
			return barSize{by: "day"}, nil
		}
		if b.every, err = time.ParseDuration(text); err == nil && b.every > 0 && b.every <= 12*time.Hour {
			return barSize{by: "time", every: b.every}, nil
		}
	} else if b.least, err = strconv.ParseFloat(amount, 64); err == nil && b.least > 0 && !math.IsInf(b.least, 0) && slices.Contains([]string{"volume", "dollar", "ticks"}, by) {
		b.by = by
		return b, nil
	}
	return b, fmt.Errorf("%q is no size of bars: expected a time up to 12h such as 5m, 1d, volume=100000, dollar=1e6 or ticks=500", text)
}

// tickColumns are the positions of a file of ticks; -1 where there is none.
type tickColumns struct {
	time, symbol, price, volume, amount int
	// clock has the time of the day where time has the date, and else is -1.
	clock    int
	bid, ask int
	// totals says that volume and amount are the day's so far.
	totals             bool
	sizes              []int // of bids, then of asks
	bids               int   // how many of them are of bids
	extra              []int
	scale, amountScale float64 // what volumes and amounts are multiplied by
}

// tickAliases are the names that are recognised, as those of bars.
var tickAliases = map[string][]string{
	"price":    {"price", "last", "lastprice", "tradeprice", "midpoint", "成交价", "成交价格", "最新价", "现价"},
	"volume":   {"volume", "vol", "size", "qty", "quantity", "volumelots", "lots", "成交量", "手数"},
	"bid":      {"bid", "bid1", "bidprice", "bidprice1", "bidpx1", "买一价", "买1价", "买价1", "申买价1", "申买价一", "委买价1", "委买一价", "叫买价1"},
	"ask":      {"ask", "ask1", "askprice", "askprice1", "askpx1", "卖一价", "卖1价", "卖价1", "申卖价1", "申卖价一", "委卖价1", "委卖一价", "叫卖价1"},
	"bid_size": {"bidsize", "bidsize1", "bsize1", "bidvol", "bidvol1", "bidvolume", "bidvolume1", "bidqty1", "买一量", "买1量", "买量1", "申买量1", "申买量一", "委买量1", "委买一量", "叫买量1"},
	"ask_size": {"asksize", "asksize1", "asize1", "askvol", "askvol1", "askvolume", "askvolume1", "askqty1", "卖一量", "卖1量", "卖量1", "申卖量1", "申卖量一", "委卖量1", "委卖一量", "叫卖量1"},
}

// totalAliases are names of columns that have the day's totals so far.
var totalAliases = map[string][]string{
	"volume": {"当日累计成交量", "累计成交量", "accvolume", "cumvolume", "totalvolume"},
	"amount": {"当日累计成交额", "当日成交额", "累计成交额", "accturnover", "cumamount", "totalamount"},
}

// clockAliases are names of columns with the time of the day, beside one with the date.
var clockAliases = []string{"时间", "time", "成交时间", "tradetime", "ticktime"}

// dateAliases are names of columns that have the date alone, where there is one of clockAliases.
var dateAliases = []string{"自然日", "日期", "date", "交易日期", "tradedate"}

// resolveTicks finds the columns of a file of ticks. The error names every one that is missing.
func (s Source) resolveTicks(header []string) (c tickColumns, err error) {
	p := s.vendor(header)
	var missing []string
	find := func(field, own string, names []string, required bool) int {
		if own != "" {
			i := slices.Index(header, own)
			if i < 0 {
				missing = append(missing, fmt.Sprintf("%s (column %q)", field, own))
			}
			return i
		}
		for _, alias := range names {
			if i := slices.IndexFunc(header, func(h string) bool { return plain(h) == alias }); i >= 0 {
				return i
			}
		}
		if required {
			missing = append(missing, fmt.Sprintf("%s (looked for %s)", field, strings.Join(names, ", ")))
		}
		return -1
	}
	own := s.Columns
	c.clock, c.time = -1, -1
	if own.Time == "" {
		if c.time, c.clock = find("time", "", dateAliases, false), find("time", "", clockAliases, false); c.time < 0 || c.clock < 0 {
			c.time, c.clock = -1, -1
		}
	}
	if c.time < 0 {
		index := indexOf(header)
		c.time = find("time", own.Time, slices.Concat(aliases["time"], clockAliases), own.Time != "" || index < 0)
		if c.time < 0 && own.Time == "" {
			c.time = index
		}
	}
	c.symbol = -1
	if s.Symbol != "file" {
		c.symbol = find("symbol", own.Symbol, aliases["symbol"], s.Symbol == "column")
	}
	c.bid, c.ask = find("bid", own.Bid, tickAliases["bid"], false), find("ask", own.Ask, tickAliases["ask"], false)
	book := c.bid >= 0 && c.ask >= 0
	c.price = find("price", own.Price, tickAliases["price"], !book)
	volumes, amounts := tickAliases["volume"], aliases["amount"]
	if c.totals = s.Cumulative; own.Volume == "" && own.Amount == "" {
		if find("volume", "", totalAliases["volume"], false) >= 0 && (p.totals || find("volume", "", volumes, false) < 0) {
			volumes, amounts, c.totals = totalAliases["volume"], totalAliases["amount"], true
		}
		c.totals = c.totals || p.totals
	}
	c.volume, c.amount = find("volume", own.Volume, volumes, false), find("amount", own.Amount, amounts, false)
	for _, side := range []struct {
		field, own string
	}{{"bid_size", own.BidSize}, {"ask_size", own.AskSize}} {
		first := find(side.field, side.own, tickAliases[side.field], false)
		for first >= 0 {
			c.sizes = append(c.sizes, first)
			first = nextLevel(header, first)
		}
		if side.field == "bid_size" {
			c.bids = len(c.sizes)
		}
	}
	for _, name := range s.Extra {
		i := slices.Index(header, name)
		if i < 0 {
			missing = append(missing, fmt.Sprintf("extra column %q", name))
		}
		c.extra = append(c.extra, i)
	}
	if len(missing) > 0 {
		return c, fmt.Errorf("no %s; the file has the columns %s; name them in source.columns", strings.Join(missing, ", no "), strings.Join(header, ", "))
	}
	c.scale, c.amountScale = p.volume, max(p.amount, 1)
	if c.volume >= 0 {
		if scale := scaleOf(header[c.volume]); scale != 0 {
			c.scale = scale
		} else if strings.HasSuffix(plain(header[c.volume]), "lots") {
			c.scale = 100
		}
	}
	if c.amount >= 0 {
		if scale := scaleOf(header[c.amount]); scale != 0 {
			c.amountScale = scale
		}
	}
	return c, nil
}

// numerals are the levels of a book in Chinese names.
const numerals = "一二三四五六七八九十"

// nextLevel is the column of the next level of the book, bid_size2 after bid_size1 or 买二量 after
// 买一量, or -1.
func nextLevel(header []string, column int) int {
	name := header[column]
	if at := strings.IndexAny(name, numerals); at >= 0 {
		now, size := utf8.DecodeRuneInString(name[at:])
		next := strings.Index(numerals, string(now)) + size
		if next >= len(numerals) {
			return -1
		}
		r, _ := utf8.DecodeRuneInString(numerals[next:])
		return slices.Index(header, name[:at]+string(r)+name[at+size:])
	}
	const digits = "0123456789"
	end := strings.LastIndexAny(name, digits) + 1
	begin := len(strings.TrimRight(name[:end], digits))
	level, err := strconv.Atoi(name[begin:end])
	if err != nil {
		return -1
	}
	return slices.Index(header, name[:begin]+strconv.Itoa(level+1)+name[end:])
}

func (c tickColumns) used() []int {
	var list []int
	for _, i := range slices.Concat([]int{c.time, c.clock, c.symbol, c.price, c.volume, c.amount, c.bid, c.ask}, c.sizes, c.extra) {
		if i >= 0 && !slices.Contains(list, i) {
			list = append(list, i)
		}
	}
	return list
}

// tick is one row.
type tick struct {
	at                    time.Time
	price, volume, amount float64
	line                  int
}

// Tick is a row of a file of ticks as bars are made of it: a trade, or a snapshot of a book with
// its middle as price.
type Tick struct {
	Time  time.Time
	Price float64
	// Volume is in shares and Amount in money, of this tick alone; both are 0 where nothing was
	// traded.
	Volume, Amount float64
	// Extra are the columns that [Data.Extra] names, those of BookColumns first where there are
	// quotes, and NaN where they are blank.
	Extra []float64
	// Bid and Ask are the best of the book, NaN where there is none. Sizes are the shares offered on
	// the levels that there are, of the bids and then of the asks.
	Bid, Ask float64
	Sizes    []float64
}

// eachTick takes a tick of a file with such columns.
type eachTick func(symbol string, t *Tick, c *tickColumns) error

// ImpossiblePrice reports whether a price cannot be one on the day of a price before: it has a
// wrong decimal point.
func ImpossiblePrice(before, now float64) bool {
	return before > 0 && (now > before*impossible || now < before/impossible)
}

// ReadTicks calls to with the ticks of a source whose rows are ticks, file after file in the order
// of their rows, with those of the symbols asked for alone, or of all. Prices are as in the source.
// The tick's memory is used again. names are the columns of Extra. Errors name file, line and
// column.
func ReadTicks(s Source, symbols []string, to func(symbol string, t *Tick)) (names []string, err error) {
	if s.Bars == "" {
		return nil, errors.New("read ticks: source.bars is missing: the rows are bars")
	}
	d, err := read(s, symbols, func(symbol string, t *Tick, _ *tickColumns) error { to(symbol, t); return nil }, 0)
	if err != nil {
		return nil, err
	}
	return d.Extra, nil
}

// ticker makes bars of the ticks of one symbol, file after file. It keeps the bar that is being
// made and nothing else.
type ticker struct {
	last  tick // the tick before; its time is zero before the first
	open  bool // there is a bar
	begun time.Time
	end   time.Time // the time of a bar of time, or the end of the session
	bar   Record
	count float64
	// volume and offset are those of the tick before as the file has them.
	volume float64
	offset int
	book   []float64 // the last of BookColumns, then of the extra columns
	total  [2]float64
}

// tickReader makes bars of files of ticks.
type tickReader struct {
	size     barSize
	sessions func(time.Time) []exchange.Session
	columns  *tickColumns // of the file that is being read
	symbols  map[string]*ticker
	outside  int // ticks that belong to no session
	first    string
	// Of volumes that are not taken for the day's so far: how often one is above, and below, that of
	// the tick before on the same day.
	rises, falls int
	// each, unless nil, takes the ticks, of which then no bars are made.
	each eachTick
	tick Tick
	// day is the one of the file's name; zero where that has none.
	day time.Time
}

// impossible is how many times a price can be that of the tick before: beyond is a wrong decimal
// point.
const impossible = 10

// ticks reads a file of ticks into bars.
func (r *reader) readTicks(t table, clock *clock, f *File, path string) error {
	stem := f.Name[:len(f.Name)-len(extensionOf(f.Name))]
	k := r.ticks
	cols, err := r.source.resolveTicks(t.Header())
	if err != nil {
		return err
	}
	if len(k.symbols) > 0 && cols.book() != k.columns.book() {
		return errors.New("only some of the files have quotes, which make mid, spread and depth")
	}
	if k.columns = &cols; cols.book() {
		r.quoted = append(r.quoted, Spread, Depth)
	}
	t.Select(cols.used())
	r.volume = cols.volume >= 0
	known := ""
	var of *ticker
	k.day = time.Time{}
	day, bare, dated := dayOf(path)
	if dated {
		k.day = clock.wall(day)
	}
	for {
		if err := t.Next(); errors.Is(err, io.EOF) {
			r.clock = clock.seen
			return nil
		} else if err != nil {
			return err
		}
		f.Rows++
		if f.Rows == 1 && dated && bare != "" && k.dateless(t) {
			stem = bare
		}
		symbol := stem
		if cols.symbol >= 0 {
			if symbol, err = t.Text(cols.symbol); err != nil || symbol == "" {
				return fmt.Errorf("line %d, column %q: expected a symbol: %w", t.Line(), t.Header()[cols.symbol], orBlank(err))
			}
		}
		if symbol != known || of == nil {
			known = strings.Clone(symbol)
			if of = k.symbols[known]; of == nil {
				r.seen = append(r.seen, known)
				of = &ticker{book: make([]float64, len(BookColumns)+len(cols.extra))}
				for i := range of.book {
					of.book[i] = math.NaN()
				}
				k.symbols[known] = of
			}
		}
		if len(r.wanted) > 0 && !r.wanted[known] {
			continue
		}
		if err := k.next(of, known, t, clock, func(rec Record) {
			rec.File = f.Name
			r.rows.add(known, rec)
		}); err != nil {
			return fmt.Errorf("line %d: %s%w", t.Line(), known, err)
		}
	}
}

// next takes a row and gives the bar that it completes.
func (k *tickReader) next(of *ticker, symbol string, t table, clock *clock, give func(Record)) error {
	c := k.columns
	at, err := k.timeOf(t, clock)
	if err != nil {
		return fmt.Errorf(", column %q: %w", t.Header()[c.time], err)
	}
	if c.clock >= 0 {
		text, err := t.Text(c.clock)
		if err == nil {
			at, err = onClock(at, text)
		}
		if err != nil {
			return fmt.Errorf(", column %q: %w", t.Header()[c.clock], err)
		}
	}
	fail := func(format string, args ...any) error {
		return fmt.Errorf(" at %s: %s", formatTick(at), fmt.Sprintf(format, args...))
	}
	var bad error
	number := func(column int) float64 {
		if column < 0 {
			return math.NaN()
		}
		v, err := t.Number(column)
		if err != nil && bad == nil {
			bad = fail("column %q: %v", t.Header()[column], err)
		}
		return v
	}
	now := tick{at: at, price: number(c.price), volume: number(c.volume) * c.scale, amount: number(c.amount) * c.amountScale, line: t.Line()}
	bid, ask := number(c.bid), number(c.ask)
	if bad != nil {
		return bad
	}
	if at.Before(of.last.at) {
		if clock.offset != of.offset {
			return fail("it is earlier than the row before, %s, by a clock that is at %s instead of %s from UTC: set source.timezone to the zone of the exchange", formatTick(of.last.at), utcOffset(clock.offset), utcOffset(of.offset))
		}
		return fail("it is earlier than the row before, %s: ticks must be in the order of time", formatTick(of.last.at))
	}
	of.offset = clock.offset
	if bid > 0 && ask > 0 && bid > ask {
		return fail("the bid, %v, is above the ask, %v", bid, ask)
	}
	if c.price < 0 { // a quote without trades
		now.price = (bid + ask) / 2
	}
	sameDay := NewDate(at) == NewDate(of.last.at)
	if !c.totals && sameDay && now.volume > of.volume {
		k.rises++
	} else if !c.totals && sameDay && now.volume < of.volume {
		k.falls++
	}
	of.volume = now.volume
	if now.volume, now.amount, err = of.traded(now, sameDay, c); err != nil {
		return fail("%v", err)
	}
	if p := now.price; math.IsNaN(p) && c.volume >= 0 && now.volume == 0 || c.price < 0 && !(bid > 0 && ask > 0) {
		now.price = of.last.price // a snapshot before the first trade, or of one side
		if !(now.price > 0) {
			return nil
		}
	} else if !(p > 0) || math.IsInf(p, 0) {
		return fail("the price is %v", p)
	} else if was := of.last.price; sameDay && ImpossiblePrice(was, p) {
		return fail("the price is %v, and that of the tick before %v", p, was)
	}
	if k.each != nil {
		for i := range BookColumns {
			of.book[i] = math.NaN()
		}
		of.last = now
	} else if !k.into(of, now, give) {
		return nil
	}
	if bid > 0 && ask > 0 {
		of.book[0], of.book[1] = (bid+ask)/2, ask-bid
	}
	if len(c.sizes) > 0 {
		of.book[2] = 0
		k.tick.Sizes = k.tick.Sizes[:0]
		for _, column := range c.sizes {
			size := max(0, number(column)) * c.scale
			of.book[2] += size
			k.tick.Sizes = append(k.tick.Sizes, size)
		}
	}
	for i, column := range c.extra {
		of.book[len(BookColumns)+i] = number(column)
	}
	if k.each != nil && bad == nil {
		extra := of.book
		if !c.book() {
			extra = extra[len(BookColumns):]
		}
		k.tick = Tick{Time: at, Price: now.price, Volume: now.volume, Amount: now.amount, Extra: extra, Bid: bid, Ask: ask, Sizes: k.tick.Sizes}
		return k.each(symbol, &k.tick, c)
	}
	return bad
}

// clockText is a time of the day alone, as AkShare's files have it.
var clockText = regexp.MustCompile(`^\d{1,2}:\d{2}(:\d{2}(\.\d+)?)?$`)

// timeOf reads the time of a row, which may be one of the day that the name of the file tells.
func (k *tickReader) timeOf(t table, clock *clock) (time.Time, error) {
	if k.dateless(t) {
		if text, err := t.Text(k.columns.time); err == nil {
			if k.day.IsZero() {
				return k.day, fmt.Errorf("%q is a time of the day without a date: name the date in the file's name, such as sz000001_20240102.csv, in that of its folder, or in a column 日期", text)
			}
			return onClock(k.day, text)
		}
	}
	return t.Time(k.columns.time, clock)
}

// dateless says that the row has a time of the day and no date.
func (k *tickReader) dateless(t table) bool {
	if k.columns.clock >= 0 {
		return false
	}
	text, err := t.Text(k.columns.time)
	return err == nil && clockText.MatchString(text)
}

// dayName is a date in the name of a file or folder.
var dayName = regexp.MustCompile(`(^|[^0-9])((?:19|20)\d{2})[-_.]?(\d{2})[-_.]?(\d{2})($|[^0-9])`)

// dayOf finds the date that the name of a file tells, or else that of its folder. bare is the name
// without it and without extensions, empty where it has nothing else.
func dayOf(path string) (day time.Time, bare string, ok bool) {
	stem := filepath.Base(path)
	stem = stem[:len(stem)-len(extensionOf(stem))]
	for _, name := range []string{stem, filepath.Base(filepath.Dir(path))} {
		m := dayName.FindStringSubmatchIndex(name)
		if m == nil {
			continue
		}
		day, err := time.Parse("20060102", name[m[4]:m[5]]+name[m[6]:m[7]]+name[m[8]:m[9]])
		if err != nil {
			continue
		}
		if name != stem {
			return day, stem, true
		}
		return day, strings.Trim(name[:m[4]], "_-. ") + strings.Trim(name[m[9]:], "_-. "), true
	}
	return day, "", false
}

// into adds a tick to its bar, and gives the bar before where that is complete. It reports whether
// the tick belongs to one.
func (k *tickReader) into(of *ticker, now tick, give func(Record)) bool {
	slot, ok := k.place(now.at)
	if !ok {
		if k.outside++; k.outside == 1 {
			k.first = fmt.Sprintf("line %d, %s", now.line, formatTick(now.at))
		}
		of.last = now
		return false
	}
	if of.open && (!of.begun.Equal(slot.Begin) || k.full(of) && now.at.After(of.last.at)) {
		give(of.close(k))
	}
	of.add(now, slot.Begin, slot.End)
	return true
}

// traded is what the tick adds: of the day's totals that which is new.
func (of *ticker) traded(now tick, sameDay bool, c *tickColumns) (volume, amount float64, err error) {
	volume, amount = now.volume, now.amount
	if volume < 0 {
		return 0, 0, fmt.Errorf("the volume, %v, is negative", volume)
	}
	if amount < 0 {
		return 0, 0, fmt.Errorf("the amount, %v, is negative", amount)
	}
	if c.totals {
		if !sameDay {
			of.total = [2]float64{}
		}
		for i, v := range []*float64{&volume, &amount} {
			if math.IsNaN(*v) {
				continue
			}
			total := *v
			if *v = total - of.total[i]; *v < 0 {
				return 0, 0, fmt.Errorf("the day's total falls from %v to %v (volume and amount are taken for the day's so far: source.cumulative, or the header of Wind; see source.columns.volume)", of.total[i], total)
			}
			of.total[i] = total
		}
	}
	if math.IsNaN(volume) {
		volume = 0
	}
	if c.amount < 0 {
		amount = volume * now.price
	}
	if math.IsNaN(amount) {
		amount = 0
	}
	return volume, amount, nil
}

// onClock is a day at a time of the day: 09:30:00, 09:30:00.5, 93000 or, with milliseconds, 93000500.
func onClock(day time.Time, text string) (time.Time, error) {
	at := func(hour, minute, second, nano int) (time.Time, error) {
		if hour > 23 || minute > 59 || second > 59 {
			return day, fmt.Errorf("%q is no time of the day", text)
		}
		return time.Date(day.Year(), day.Month(), day.Day(), hour, minute, second, nano, day.Location()), nil
	}
	if n, err := strconv.Atoi(text); err == nil && n >= 0 {
		milli := 0
		if len(text) > 6 {
			n, milli = n/1000, n%1000
		}
		return at(n/10_000, n/100%100, n%100, milli*1e6)
	}
	for _, layout := range []string{"15:04:05", "15:04"} { // Seconds may have a fraction.
		if t, err := time.Parse(layout, text); err == nil {
			return at(t.Hour(), t.Minute(), t.Second(), t.Nanosecond())
		}
	}
	return day, fmt.Errorf("%q is no time of the day such as 09:30:00 or 93000000", text)
}

// totals tells volumes that look like the day's so far and are not taken for them; empty where there
// are none.
func (k *tickReader) totals() string {
	const least = 20
	if k.rises < least || k.falls > 0 {
		return ""
	}
	return fmt.Sprintf("the volume of ticks rises %d times within a day and never falls: it looks like the day's volume so far; set source.cumulative: true if it is", k.rises)
}

// Slot is where in time a bar of ticks lies, within the session that it does not leave.
type Slot struct {
	// Begin and End are what the bar is named by: a bar of time by its end, one of a day by its
	// date, which is both.
	Begin, End time.Time
	// Until is from when on no tick belongs to the bar: the last of a session has what is reported
	// after it.
	Until time.Time
}

// place finds the stretch of time that a tick at t belongs to. Bars of time are such stretches;
// others do not leave theirs.
func (k *tickReader) place(t time.Time) (slot Slot, ok bool) {
	midnight := time.Date(t.Year(), t.Month(), t.Day(), 0, 0, 0, 0, t.Location())
	sessions := k.sessions(t)
	if len(sessions) == 0 {
		sessions = wholeDay
	}
	for back := range 2 { // a session of the night goes on through midnight
		day := midnight.AddDate(0, 0, -back)
		at := t.Sub(day)
		for _, s := range sessions {
			if at < s.From || at >= s.Until {
				continue
			}
			switch k.size.by {
			case "day":
				until := s.Until
				for _, other := range sessions {
					until = max(until, other.Until)
				}
				return Slot{day, day, day.Add(until)}, true
			case "time":
				n := max(0, (min(at, s.Close-1)-s.Open)/k.size.every)
				begin, end := s.Open+n*k.size.every, s.Open+(n+1)*k.size.every
				if end < s.Close {
					return Slot{day.Add(begin), day.Add(end), day.Add(end)}, true
				}
				return Slot{day.Add(begin), day.Add(s.Close), day.Add(s.Until)}, true
			}
			return Slot{day.Add(s.Open), day.Add(s.Close), day.Add(s.Until)}, true
		}
	}
	return Slot{}, false
}

// wholeDay are the hours where none are known.
var wholeDay = []exchange.Session{{Close: 24 * time.Hour, Until: 24 * time.Hour}}

// Grid tells of ticks of which bar they are, for bars of a time or of a day. It is not safe for
// concurrent use.
type Grid struct {
	k    tickReader
	last Slot
}

// NewGrid returns the grid of a source, whose bars are of a time or a day.
func NewGrid(s Source) (*Grid, error) {
	size, err := parseBarSize(s.Bars)
	if err != nil {
		return nil, fmt.Errorf("source.bars: %w", err)
	}
	if size.by != "time" && size.by != "day" {
		return nil, fmt.Errorf("source.bars: %s: bars of ticks that come one by one are of a time, such as 5m, or of a day", s.Bars)
	}
	var d Data
	if err := d.hours(s); err != nil {
		return nil, fmt.Errorf("source.exchange: %w", err)
	}
	return &Grid{k: tickReader{size: size, sessions: d.sessions}}, nil
}

// At finds the bar of a tick; ok is false where it belongs to no session.
func (g *Grid) At(t time.Time) (slot Slot, ok bool) {
	// Nearly always it is that of the tick before.
	if g.k.size.by == "time" && !t.Before(g.last.Begin) && t.Before(g.last.End) && t.Location() == g.last.End.Location() {
		return g.last, true
	}
	if slot, ok = g.k.place(t); ok {
		g.last = slot
	}
	return slot, ok
}

// full says that the bar has enough.
func (k *tickReader) full(of *ticker) bool {
	switch k.size.by {
	case "volume":
		return of.bar.Volume >= k.size.least
	case "dollar":
		return of.bar.Quote[Amount] >= k.size.least
	case "ticks":
		return of.count >= k.size.least
	}
	return false
}

func (of *ticker) add(now tick, begin, end time.Time) {
	b := &of.bar
	if !of.open {
		*b = Record{Bar: Bar{Open: now.price, High: now.price, Low: now.price}, Factor: 1}
		of.open, of.begun, of.end, of.count = true, begin, end, 0
	}
	b.High, b.Low, b.Close = max(b.High, now.price), min(b.Low, now.price), now.price
	b.Volume += now.volume
	b.Quote[Amount] += now.amount
	b.Line = now.line
	of.count++
	of.last = now
}

// close ends the bar. Bars of time are named by their end, days by the date, and others by their
// last tick.
func (of *ticker) close(k *tickReader) Record {
	b := of.bar
	b.Time = of.last.at
	if k.size.by == "time" || k.size.by == "day" {
		b.Time = of.end
	}
	if k.columns.book() {
		b.Extra = slices.Clone(of.book)
		b.Quote[Spread], b.Quote[Depth] = of.book[1], of.book[2]
	} else {
		b.Extra = slices.Clone(of.book[len(BookColumns):])
	}
	of.open = false
	return b
}

// book says whether bars have BookColumns.
func (c tickColumns) book() bool { return c.bid >= 0 && c.ask >= 0 || len(c.sizes) > 0 }

// finish ends the bars that are still open.
func (k *tickReader) finish(file string, give func(symbol string, rec Record)) {
	for symbol, of := range k.symbols {
		if of.open {
			rec := of.close(k)
			rec.File = file
			give(symbol, rec)
		}
	}
}

func formatTick(t time.Time) string { return t.Format("2006-01-02 15:04:05.999999") }
