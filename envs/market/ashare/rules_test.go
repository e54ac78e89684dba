package ashare

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/onnxrl/onnxrl/envs/market/bars"
	"github.com/onnxrl/onnxrl/runtime/sorted"
)

func date(t testing.TB, text string) bars.Date {
	t.Helper()
	d, err := bars.ParseDate(text)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func on(t testing.TB, text string) Rules {
	t.Helper()
	r, err := On(date(t, text))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func (l Limits) text() string {
	if !l.Limited {
		return "free"
	}
	return l.Low.String() + "-" + l.High.String()
}

// rows are the days of a table.
func rows[T any](table []dated[T]) (days []bars.Date) {
	for _, r := range table {
		days = append(days, r.from)
	}
	return days
}

func byBoard[T any](tables [boards][]dated[T]) (days [boards][]bars.Date) {
	for b := range tables {
		days[b] = rows(tables[b])
	}
	return days
}

func forAll[T any](table []dated[T]) (days [boards][]bars.Date) {
	for b := range days {
		days[b] = rows(table)
	}
	return days
}

// rule is a table of the book: the days of its rows, and what it says on a day by the functions
// that others call.
type rule struct {
	rows [boards][]bars.Date
	says func(r Rules, b Board) string
}

// million is an order for a million yuan and 100,000 shares.
func million(r Rules, b Board, side Side) Costs {
	return r.Costs(b, side, 100_000_000, 100_000, Broker{Net: true})
}

var tables = map[string]rule{
	"duty": {forAll(stampDuty), func(r Rules, b Board) string {
		return fmt.Sprint(million(r, b, Buy).StampDuty, " ", million(r, b, Sell).StampDuty)
	}},
	"transfer": {byBoard(transferFees), func(r Rules, b Board) string {
		buy, sell, small := million(r, b, Buy).TransferFee, million(r, b, Sell).TransferFee, r.Costs(b, Buy, 100_000, 100, Broker{}).TransferFee
		return fmt.Sprint(buy, " ", sell, " ", small)
	}},
	"handling":   {byBoard(handlingFees), func(r Rules, b Board) string { return million(r, b, Buy).Handling.String() }},
	"regulatory": {forAll(regulatoryFees), func(r Rules, b Board) string { return million(r, b, Sell).Regulatory.String() }},
	// Ordinary, then ST, after 10.00.
	"limit": {byBoard(priceLimits), func(r Rules, b Board) string {
		return r.Limits(Listing{Board: b}, 1000).text() + " " + r.Limits(Listing{Board: b, ST: true}, 1000).text()
	}},
	// The first, second, fifth and sixth day of a share listed on the day.
	"debut": {byBoard(debuts), func(r Rules, b Board) string {
		var text []string
		for _, d := range []int{1, 2, 5, 6} {
			text = append(text, r.Limits(Listing{Board: b, Listed: r.date, Day: d}, 1000).text())
		}
		return strings.Join(append(text, fmt.Sprint(r.Halts(Listing{Board: b, Listed: r.date, Day: 1}))), " ")
	}},
	// The days of the period, and the limits on its first two of a share under risk warning.
	"delisting": {byBoard(delistings), func(r Rules, b Board) string {
		l := Listing{Board: b, ST: true, Delisting: 1}
		first := r.Limits(l, 1000).text()
		l.Delisting = 2
		return fmt.Sprint(r.Delisting(b).Days, " ", first, " ", r.Limits(l, 1000).text())
	}},
	"lot":        {byBoard(lots), func(r Rules, b Board) string { return fmt.Sprint(r.Lot(b)) }},
	"settlement": {forAll(settlements), func(r Rules, _ Board) string { return fmt.Sprint(r.Settlement()) }},
	// A minute before the closing call, one in it, and one after the close.
	"sessions": {byBoard(sessions), func(r Rules, b Board) string {
		return fmt.Sprint(r.Phase(b, clock(14, 56)), ", ", r.Phase(b, clock(14, 58)), ", ", r.Phase(b, clock(15, 10)))
	}},
	"breaker": {forAll(breaker), func(r Rules, b Board) string { return fmt.Sprint(r.Breaker(-500, clock(10, 0), false)) }},
}

func daysBefore(d bars.Date, n int) bars.Date {
	t, err := time.Parse(time.DateOnly, d.String())
	if err != nil {
		panic(err)
	}
	return bars.NewDate(t.AddDate(0, 0, -n))
}

const none = "not open"

// TestDated goes over both sides of every change of every rule: for each row of a table but the
// first there must be a case on its day and one on a day at most a week before.
func TestDated(t *testing.T) {
	both := []Board{MainSH, MainSZ}
	shenzhen := []Board{MainSZ, ChiNext}
	all := []Board{MainSH, MainSZ, ChiNext, STAR, BSE}
	ten, star, five := "9.00-11.00", "8.00-12.00", "free free free "
	halts := " [{30 10} {60 10}]"
	cases, covered := 0, map[string]bool{}
	for _, c := range []struct {
		rule   string
		boards []Board
		days   []string // day, and what holds
	}{
		{"duty", both, []string{
			"2005-01-21 2000.00 2000.00", "2005-01-24 1000.00 1000.00", "2007-05-29 1000.00 1000.00", "2007-05-30 3000.00 3000.00", "2008-04-23 3000.00 3000.00", "2008-04-24 1000.00 1000.00",
			"2008-09-18 1000.00 1000.00", "2008-09-19 0.00 1000.00", "2023-08-25 0.00 1000.00", "2023-08-28 0.00 500.00", "2026-12-31 0.00 500.00",
		}},
		{"duty", []Board{ChiNext, STAR, BSE}, []string{"2023-08-25 0.00 1000.00", "2023-08-28 0.00 500.00"}},
		{"transfer", []Board{MainSH}, []string{
			"2008-01-02 100.00 100.00 1.00", "2012-05-31 100.00 100.00 1.00", "2012-06-01 75.00 75.00 1.00", "2012-08-31 75.00 75.00 1.00", "2012-09-03 60.00 60.00 1.00", "2012-09-01 60.00 60.00 1.00",
			"2015-07-31 60.00 60.00 1.00", "2015-08-01 20.00 20.00 0.02", "2015-08-03 20.00 20.00 0.02", "2022-04-28 20.00 20.00 0.02", "2022-04-29 10.00 10.00 0.01",
		}},
		{"transfer", shenzhen, []string{"2015-07-31 0.00 0.00 0.00", "2015-08-01 20.00 20.00 0.02", "2015-08-03 20.00 20.00 0.02", "2022-04-28 20.00 20.00 0.02", "2022-04-29 10.00 10.00 0.01"}},
		{"transfer", []Board{STAR}, []string{"2022-04-28 20.00 20.00 0.02", "2022-04-29 10.00 10.00 0.01"}},
		{"transfer", []Board{BSE}, []string{"2022-04-28 25.00 25.00 0.03", "2022-04-29 10.00 10.00 0.01"}},
		{"handling", []Board{MainSH}, []string{"2012-05-31 110.00", "2012-06-01 87.00"}},
		{"handling", []Board{MainSZ, ChiNext}, []string{"2012-05-31 122.00", "2012-06-01 87.00"}},
		{"handling", []Board{MainSH, MainSZ, ChiNext}, []string{"2012-08-31 87.00", "2012-09-01 69.60", "2015-07-31 69.60", "2015-08-01 48.70"}},
		{"handling", []Board{MainSH, MainSZ, ChiNext, STAR}, []string{"2023-08-25 48.70", "2023-08-28 34.10"}},
		{"handling", []Board{BSE}, []string{"2022-11-30 500.00", "2022-12-01 250.00", "2023-08-25 250.00", "2023-08-28 125.00"}},
		{"regulatory", all[:3], []string{"2011-12-30 40.00", "2012-01-01 20.00", "2012-01-04 20.00"}},
		{"limit", both, []string{"2008-01-02 " + ten + " 9.50-10.50", "2026-07-03 " + ten + " 9.50-10.50", "2026-07-06 " + ten + " " + ten}},
		{"limit", []Board{ChiNext}, []string{"2009-10-29 " + none, "2009-10-30 " + ten + " 9.50-10.50", "2020-08-21 " + ten + " 9.50-10.50", "2020-08-24 " + star + " " + star, "2026-07-06 " + star + " " + star}},
		{"limit", []Board{STAR}, []string{"2019-07-19 " + none, "2019-07-22 " + star + " " + star, "2026-07-06 " + star + " " + star}},
		{"limit", []Board{BSE}, []string{"2021-11-12 " + none, "2021-11-15 7.00-13.00 7.00-13.00", "2026-07-06 7.00-13.00 7.00-13.00"}},
		{"debut", both, []string{
			"2012-06-05 free " + ten + " " + ten + " " + ten + " []", "2013-12-31 free " + ten + " " + ten + " " + ten + " []", "2014-01-01 6.40-14.40 " + ten + " " + ten + " " + ten + " []",
			"2015-06-05 6.40-14.40 " + ten + " " + ten + " " + ten + " []", "2023-04-07 6.40-14.40 " + ten + " " + ten + " " + ten + " []", "2023-04-10 " + five + ten + halts,
		}},
		{"debut", []Board{ChiNext}, []string{
			"2013-12-31 free " + ten + " " + ten + " " + ten + " []", "2014-01-01 6.40-14.40 " + ten + " " + ten + " " + ten + " []",
			"2020-08-21 6.40-14.40 " + ten + " " + ten + " " + ten + " []", "2020-08-24 " + five + star + halts,
		}},
		{"debut", []Board{STAR}, []string{"2019-07-22 " + five + star + halts, "2020-07-16 " + five + star + halts}},
		{"debut", []Board{BSE}, []string{"2021-11-15 free 7.00-13.00 7.00-13.00 7.00-13.00" + halts}},
		{"delisting", []Board{MainSH}, []string{"2012-12-31 0 " + ten + " " + ten, "2013-01-01 30 " + ten + " " + ten, "2013-01-04 30 " + ten + " " + ten}},
		{"delisting", []Board{MainSZ, ChiNext}, []string{"2012-07-06 0 " + ten + " " + ten, "2012-07-07 30 " + ten + " " + ten}},
		{"delisting", both, []string{"2020-12-30 30 " + ten + " " + ten, "2020-12-31 15 free " + ten}},
		{"delisting", []Board{ChiNext, STAR}, []string{"2020-12-30 30 " + star + " " + star, "2020-12-31 15 free " + star}},
		{"delisting", []Board{BSE}, []string{"2021-11-15 15 free 7.00-13.00"}},
		{"lot", both, []string{"2008-01-02 {100 100 1000000}", "2026-12-31 {100 100 1000000}"}},
		{"lot", []Board{ChiNext}, []string{"2020-08-21 {100 100 1000000}", "2020-08-24 {100 100 300000}"}},
		{"lot", []Board{STAR}, []string{"2019-07-22 {200 1 100000}"}},
		{"lot", []Board{BSE}, []string{"2021-11-15 {100 1 1000000}"}},
		{"settlement", all, []string{"2023-08-28 {1 0 1}"}},
		{"sessions", []Board{MainSH}, []string{
			"2018-08-17 continuous, continuous, closed", "2018-08-20 continuous, closing call, closed", "2026-07-03 continuous, closing call, closed", "2026-07-06 continuous, closing call, after hours",
		}},
		{"sessions", []Board{MainSZ}, []string{"2006-06-30 continuous, continuous, closed", "2006-07-01 continuous, closing call, closed", "2026-07-06 continuous, closing call, closed"}},
		{"sessions", []Board{ChiNext}, []string{"2020-08-21 continuous, closing call, closed", "2020-08-24 continuous, closing call, after hours"}},
		{"sessions", []Board{STAR}, []string{"2019-07-22 continuous, closing call, after hours"}},
		{"sessions", []Board{BSE}, []string{"2021-11-15 continuous, closing call, closed"}},
		{"breaker", all[:3], []string{"2015-12-31 0", "2016-01-04 615", "2016-01-07 615", "2016-01-08 0"}},
	} {
		for _, b := range c.boards {
			for _, d := range c.days {
				cases++
				when, want, _ := strings.Cut(d, " ")
				covered[fmt.Sprintf("%s/%v/%v", c.rule, b, when)] = true
				r := on(t, when)
				got := none
				if r.Open(b) {
					got = tables[c.rule].says(r, b)
				}
				if got != want {
					t.Errorf("%s, %v on %s: %s, expected %s", c.rule, b, when, got, want)
				}
			}
		}
	}
	changes := 0
	for name, rule := range sorted.All(tables) {
		for b, days := range rule.rows {
			if len(days) == 0 || days[0] != begin && days[0] != opened[b] {
				t.Errorf("%s, %v begins on %v, expected %s or %s", name, Board(b), days, begin, opened[b])
			}
			for i, d := range days {
				if i == 0 || !opened[b].Before(d) {
					continue
				}
				changes++
				if !days[i-1].Before(d) {
					t.Errorf("%s, %v: %s does not come after %s", name, Board(b), d, days[i-1])
				}
				before := false
				for k := 1; k <= 7; k++ {
					before = before || covered[fmt.Sprintf("%s/%v/%v", name, Board(b), daysBefore(d, k))]
				}
				if !before || !covered[fmt.Sprintf("%s/%v/%v", name, Board(b), d)] {
					t.Errorf("%s, %v: no case on both sides of %s", name, Board(b), d)
				}
			}
		}
	}
	if cases != 180 || changes != 68 {
		t.Errorf("%d cases of %d changes, expected 180 and 68", cases, changes)
	}
	if _, err := On(date(t, "2004-12-31")); err == nil || !strings.Contains(err.Error(), "begins on 2005-01-01") {
		t.Errorf("before the book: %v", err)
	}
}
