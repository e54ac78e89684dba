package ashare

import (
	"math/rand/v2"
	"testing"
)

// TestLimitsProperties: limits rise with the previous close, contain it, and are the exact product
// to the nearest tick, halves up, but for the tick that they are off it at least.
func TestLimitsProperties(t *testing.T) {
	day2014 := date(t, "2014-02-11")
	draw, checked := rand.New(rand.NewPCG(1, 2)), 0
	for _, c := range []struct {
		date     string
		l        Listing
		up, down int64
	}{
		{"2019-01-02", Listing{Board: MainSH}, 10, 10},
		{"2019-01-02", Listing{Board: MainSZ, ST: true}, 5, 5},
		{"2024-01-02", Listing{Board: ChiNext, ST: true}, 20, 20},
		{"2024-01-02", Listing{Board: STAR}, 20, 20},
		{"2024-01-02", Listing{Board: BSE}, 30, 30},
		{"2014-02-11", Listing{Board: MainSH, Listed: day2014, Day: 1}, 44, 36},
	} {
		r := on(t, c.date)
		last := Limits{}
		for i := range 20_000 {
			p := Fen(i + 1)
			if i > 10_000 {
				p = Fen(1 + draw.IntN(1_000_000))
				last = Limits{}
				for _, q := range []Fen{p, p + 1} {
					now := r.Limits(c.l, q)
					if now.Low < last.Low || now.High < last.High {
						t.Fatalf("%+v after %s: %+v, one tick lower %+v", c.l, q, now, last)
					}
					last = now
				}
			}
			l := r.Limits(c.l, p)
			checked++
			// In hundredths of a fen.
			high, low := 100*int64(l.High)-int64(p)*(100+c.up), 100*int64(l.Low)-int64(p)*(100-c.down)
			exact := (high > -50 && high <= 50 || l.High == p+1) && (low > -50 && low <= 50 || l.Low == p-1 || l.Low == 1)
			if !l.Limited || l.Low < 1 || l.Low > p || l.High <= p || l.Low == p && p > 1 || !exact || i <= 10_000 && (l.Low < last.Low || l.High < last.High) {
				t.Fatalf("%+v after %s: %+v, before it %+v", c.l, p, l, last)
			}
			if i <= 10_000 {
				last = l
			}
		}
	}
	if checked != 120_000 {
		t.Errorf("%d limits, expected 120000", checked)
	}
}

// TestHalves are limits that lie halfway between two ticks, where floats go wrong: 1.1 times 10.05
// is 11.055, and 11.06.
func TestHalves(t *testing.T) {
	r, cases := on(t, "2019-01-02"), 0
	for _, c := range []struct {
		previous Fen
		st       bool
		want     string
	}{
		{1005, false, "9.05-11.06"},
		{1025, false, "9.23-11.28"},
		{115, false, "1.04-1.27"},
		{110, true, "1.05-1.16"},
		{130, true, "1.24-1.37"},
		{5125, false, "46.13-56.38"},
		{27, false, "0.24-0.30"},
		{25, false, "0.23-0.28"},
		{7, true, "0.06-0.08"}, // 0.0735 and 0.0665 are 0.07
		{1, false, "0.01-0.02"},
	} {
		cases++
		if got := r.Limits(Listing{ST: c.st}, c.previous).text(); got != c.want {
			t.Errorf("after %s, ST %v: %s, expected %s", c.previous, c.st, got, c.want)
		}
	}
	if cases != 10 {
		t.Errorf("%d cases, expected 10", cases)
	}
}

// TestFree are days without limits, and what goes before what.
func TestFree(t *testing.T) {
	r, cases := on(t, "2024-01-08"), 0
	listed := date(t, "2024-01-02")
	for _, c := range []struct {
		l        Listing
		previous Fen
		want     string
	}{
		{Listing{Unlimited: true}, 1000, "free"},
		{Listing{}, 0, "free"},
		{Listing{Listed: listed, Day: 5}, 1000, "free"},
		{Listing{Listed: listed, Day: 6}, 1000, "9.00-11.00"},
		// Listed by the rules before, its fifth day has a limit although new shares' have none.
		{Listing{Listed: date(t, "2023-04-07"), Day: 5}, 1000, "9.00-11.00"},
		{Listing{Board: ChiNext, Listed: date(t, "2020-08-21"), Day: 2}, 1000, "8.00-12.00"},
		{Listing{ST: true, Delisting: 1}, 1000, "free"},
		{Listing{ST: true, Delisting: 15}, 1000, "9.00-11.00"},
		{Listing{ST: true}, 1000, "9.50-10.50"},
		{Listing{ST: true, Unlimited: true}, 1000, "free"},
	} {
		cases++
		if got := r.Limits(c.l, c.previous).text(); got != c.want {
			t.Errorf("%+v: %s, expected %s", c.l, got, c.want)
		}
	}
	if cases != 10 {
		t.Errorf("%d cases, expected 10", cases)
	}
}

// TestMayTrade: at the upper limit only buys are blocked, at the lower only sales; the band of
// prices between two ticks is that of section 4.5 of the reference.
func TestMayTrade(t *testing.T) {
	limits, free := Limits{Low: 900, High: 1000, Limited: true}, Limits{}
	halted := limits
	halted.Suspended = true
	cases := 0
	for _, c := range []struct {
		l         Limits
		price     float64
		buy, sell bool
	}{
		{limits, 9.99, true, true},
		{limits, 9.990001, false, true},
		{limits, 10, false, true},
		{limits, 9.01, true, true},
		{limits, 9.009999, true, false},
		{limits, 9, true, false},
		{limits, 9.5, true, true},
		{free, 1e6, true, true},
		{halted, 9.5, false, false},
		{Limits{Suspended: true}, 9.5, false, false},
	} {
		cases++
		if buy, sell := c.l.MayBuy(c.price), c.l.MaySell(c.price); buy != c.buy || sell != c.sell {
			t.Errorf("%+v at %v: buy %v, sell %v, expected %v and %v", c.l, c.price, buy, sell, c.buy, c.sell)
		}
	}
	// Every tick of a wide band, as the float that its decimals are read as.
	wide := Limits{Low: 1, High: 500_000, Limited: true}
	for f := Fen(1); f <= 500_000; f++ {
		if p := float64(f) / 100; wide.MayBuy(p) != (f < wide.High) || wide.MaySell(p) != (f > wide.Low) {
			t.Fatalf("%s: buy %v, sell %v", f, wide.MayBuy(p), wide.MaySell(p))
		}
	}
	for _, c := range []struct {
		l                Limits
		open, high, last Fen
		up, down         bool
	}{
		{limits, 1000, 1000, 1000, true, false},
		{limits, 900, 900, 900, false, true},
		{limits, 999, 1000, 1000, false, false},
		{limits, 950, 950, 950, false, false},
		{free, 1000, 1000, 1000, false, false},
		{halted, 1000, 1000, 1000, false, false},
	} {
		cases++
		if up, down := c.l.Locked(c.open, c.high, min(c.open, c.last), c.last); up != c.up || down != c.down {
			t.Errorf("%+v, a bar %s to %s: %v, %v", c.l, c.open, c.last, up, down)
		}
	}
	if cases != 16 {
		t.Errorf("%d cases, expected 16", cases)
	}
}

// TestNoAllocations goes over what an environment calls at every bar.
func TestNoAllocations(t *testing.T) {
	d, sum := date(t, "2023-08-28"), Fen(0)
	if n := testing.AllocsPerRun(100, func() {
		r, err := On(d)
		if err != nil {
			t.Fatal(err)
		}
		for b := range boards {
			l := r.Limits(Listing{Board: b, Listed: d, Day: 7, ST: true}, 1234)
			if l.MayBuy(12.34) && l.MaySell(12.34) && l.Contains(1234) && r.Phase(b, 600) == Continuous && r.Breaker(700, 600, false) == 0 {
				c := r.Costs(b, Sell, 123_400, r.Lot(b).Sell(1_000, 1_000), Broker{Rate: 2_500, Least: 500, Net: true})
				sum += c.Total()
			}
		}
	}); n != 0 || sum == 0 {
		t.Errorf("%v allocations, sum %s", n, sum)
	}
}

func BenchmarkLimits(b *testing.B) {
	r := on(b, "2023-08-28")
	l := Listing{Board: ChiNext, ST: true}
	sum := Fen(0)
	for b.Loop() {
		sum += r.Limits(l, 1234).High
	}
	if sum == 0 {
		b.Error("no limits")
	}
}
