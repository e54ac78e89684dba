package app

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/onnxrl/onnxrl/envs/market/ashare"
	"github.com/onnxrl/onnxrl/runtime/sorted"
)

// marketDataVar names the folder of real bars. They are not part of the repository; .ci/run sets it
// where they lie beside the checkout.
const marketDataVar = "ONNXRL_MARKET_DATA"

// rulesReport is what is read back of an ashare.Report.
type rulesReport struct {
	Total   ashare.Counts
	Symbols []struct {
		Symbol, Problem string
		Findings        []struct{ Date, Kind string }
	}
}

// TestRulesOnRealBars compares real bars with the rule book. Those of 2010 to 2025 have limit
// columns of their own; the days without limits that no rule tells are the three on which suspended
// listings were resumed, and the one on which book and columns disagree is an IPO of 2014, whose
// first day the columns leave out. Those of 2005 to 2011 have neither limits nor ST; what is
// outside are days of share reforms, mostly of 2005 to 2007.
func TestRulesOnRealBars(t *testing.T) {
	dir := os.Getenv(marketDataVar)
	files := map[string]struct {
		total    ashare.Counts
		findings map[string]int // by kind and, where they are few, day and symbol
	}{
		"cn_daily.csv.gz": {
			ashare.Counts{Days: 175_702, Suspended: 11_012, ST: 9_618, Free: 9, Announced: 3, ClosedUp: 1_528, ClosedDown: 1_480, LockedUp: 188, LockedDown: 591, Disagreements: 1},
			map[string]int{"announced 2014-01-10 000693.SZ": 1, "announced 2010-02-12 000776.SZ": 1, "announced 2012-02-17 600401.SH": 1, "disagreement 2014-02-11 603288.SH": 1},
		},
		"cn_daily_licensed.csv.gz": {
			ashare.Counts{Days: 60_336, Suspended: 3_786, NotJudged: 36, Outside: 28, ClosedUp: 671, ClosedDown: 283, LockedUp: 56, LockedDown: 11},
			map[string]int{"outside 2005": 4, "outside 2006": 18, "outside 2007": 3, "outside 2009": 2, "outside 2010": 1},
		},
	}
	if dir == "" {
		t.Logf("0 of %d files of real bars compared with the rules: %s is not set", len(files), marketDataVar)
		return
	}
	for name, want := range sorted.All(files) {
		r := decoded[rulesReport](t, succeed(t, "data", "inspect", filepath.Join(dir, name), "--rules", "ashare", "--json"))
		if r.Total != want.total {
			t.Errorf("%s: %+v, expected %+v", name, r.Total, want.total)
		}
		found := map[string]int{}
		for _, s := range r.Symbols {
			if s.Problem != "" {
				t.Errorf("%s, %s: %s", name, s.Symbol, s.Problem)
			}
			for _, f := range s.Findings {
				key := f.Kind + " " + f.Date + " " + s.Symbol
				if f.Kind == "outside" {
					key = f.Kind + " " + f.Date[:4]
				}
				found[key]++
			}
		}
		for key, n := range sorted.All(found) {
			if want.findings[key] != n {
				t.Errorf("%s: %s %d times, expected %d", name, key, n, want.findings[key])
			}
		}
		for key, n := range sorted.All(want.findings) {
			if found[key] != n {
				t.Errorf("%s: %s %d times, expected %d", name, key, found[key], n)
			}
		}
	}
	t.Logf("%d of %d files of real bars compared with the rules", len(files), len(files))
}

// TestDataInspectRules: the table, and what cannot be compared.
func TestDataInspectRules(t *testing.T) {
	file := write(t, "bars.csv", `date,symbol,open,high,low,close,pre_close,vol,is_st,up_limit,down_limit
2020-08-21,300750.SZ,200.00,219.99,200.00,219.99,200.00,100,0,220.00,180.00
2020-08-24,300750.SZ,263.99,263.99,263.99,263.99,219.99,100,0,263.99,175.99
2020-08-25,300750.SZ,270.00,317.00,270.00,270.00,263.99,100,0,290.39,237.59
`)
	says(t, succeed(t, "data", "inspect", file, "--rules", "ashare"),
		"300750.SZ  ChiNext             3          0   0           0     0          0        1   1     0          1            0         1         0",
		"300750.SZ: 2020-08-25, bars.csv line 4: disagreement: traded from 270.00 to 317.00 after 263.99, limits of 211.19 and 316.79 by the rules, limits of 237.59 and 290.39 in the data\n",
		"300750.SZ: 2020-08-25, bars.csv line 4: outside: traded from 270.00 to 317.00 after 263.99, limits of 211.19 and 316.79 by the rules\n")
	refuse(t, []string{"data", "inspect", file, "--rules", "nyse"}, `--rules is "nyse", expected ashare`)
	refuse(t, []string{"data", "inspect", filepath.Join(t.TempDir(), "none.csv"), "--rules", "ashare"}, "none.csv: no such file")
	out := filepath.Join(t.TempDir(), "set")
	succeed(t, "data", "prepare", marketYAML(t), "--out", out)
	refuse(t, []string{"data", "inspect", out, "--rules", "ashare"}, "is a prepared data set: --rules compares the bars that one is made from")
}
