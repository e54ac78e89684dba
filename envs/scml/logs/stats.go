package logs

import "fmt"

// simstepColumns are those of simsteps.csv.
var simstepColumns = []string{"id", "started", "step", "relative_time_start", "world", "ended", "relative_time_end", "duration"}

// statColumns are those of stats.csv: of the world, of each product, of each agent, and counts.
func (f *Folder) statColumns() []string {
	list := []string{"index", "n_contracts_nullified_now", "n_contracts_nullified_quantity", "n_contracts_nullified_price"}
	c := f.w.Config()
	for p := range c.Catalog {
		for _, name := range []string{"trading_price", "sold_quantity", "unit_price", "exogenous_quantity", "exogenous_unit_price"} {
			list = append(list, fmt.Sprintf("%s_%d", name, p))
		}
	}
	for i := range c.Factories {
		for _, name := range []string{"score", "balance", "bankrupt", "productivity", "shortfall_quantity", "shortfall_penalty", "storage_cost", "disposal_cost", "inventory_penalized", "inventory_input", "inventory_output"} {
			list = append(list, name+"_"+f.ids[i])
		}
	}
	return append(list,
		"n_contracts_executed", "n_contracts_erred", "n_contracts_nullified", "n_contracts_cancelled", "n_contracts_dropped", "n_breaches", "breach_level", "n_contracts_signed", "n_contracts_concluded", "n_negotiations", "activity_level",
		"n_registered_negotiations_before", "n_negotiation_rounds_successful", "n_negotiation_rounds_failed", "n_negotiation_successful", "n_negotiation_failed", "n_registered_negotiations_after", "step_time", "total_time")
}

// stat writes a row of stats.csv.
func (f *Folder) stat() {
	w, t, st := f.w, f.stats, f.w.Statistics()
	t.whole(w.Today())
	t.raw("0,0,0")
	activity, exogenous := 0.0, 0
	unit := func(money float64, quantity int) {
		if quantity == 0 {
			t.number(0)
		} else {
			t.number(money / float64(quantity))
		}
	}
	for p, quantity := range st.Quantity {
		t.number(w.TradingPrice(p))
		t.whole(quantity)
		unit(st.Money[p], quantity)
		outside, money := 0, 0.0
		if p == 0 || p == len(st.Quantity)-1 {
			outside, money = quantity, st.Money[p]
		}
		t.whole(outside)
		unit(money, outside)
		activity += st.Money[p]
	}
	for i := range w.Config().Factories {
		o := w.Outcome(i)
		t.number(w.Score(i))
		t.number(w.Balance(i))
		t.flag(w.Bankrupt(i))
		t.number(float64(o.Made) / float64(w.Config().Lines))
		t.whole(o.Missing)
		t.number(o.Penalty)
		t.number(o.Kept)
		t.number(0)
		t.whole(o.Left)
		t.whole(w.Stock(i))
		t.whole(0)
	}
	for _, e := range w.Config().Exogenous {
		if e.Day == w.Today() {
			exogenous++
		}
	}
	t.whole(st.Executed)
	t.raw("0,0,0")
	t.whole(st.Dropped)
	t.raw("0,0")
	t.whole(st.Agreements + exogenous)
	t.whole(st.Concluded)
	t.whole(st.Negotiations)
	t.number(activity)
	t.whole(0)
	for _, x := range []int{f.today.succeededRounds, f.today.failedRounds, f.today.succeeded, f.today.failed, len(f.talks)} {
		t.whole(x)
	}
	t.raw("0.0,0.0")
	t.end()
}

// simstep writes a row of simsteps.csv.
func (f *Folder) simstep() {
	t, day, days := f.simsteps, f.w.Today(), float64(f.w.Config().Days)
	t.whole(day + 1)
	t.number(0)
	t.whole(day)
	t.number(float64(day) / days)
	t.text(f.o.World)
	t.number(0)
	t.number(float64(day+1) / days)
	t.number(0)
	t.end()
}
