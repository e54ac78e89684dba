package app

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/onnxrl/onnxrl/cmd/internal/apptest"
	"github.com/onnxrl/onnxrl/envs/market/ashare"
	"github.com/onnxrl/onnxrl/runtime/longtest"
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
	longtest.Nightly(t)
	t.Parallel()
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
		r := apptest.Decoded[rulesReport](t, apptest.Succeed(t, "data", "inspect", filepath.Join(dir, name), "--rules", "ashare", "--json"))
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
	fills := apptest.Decoded[struct {
		Traded       int            `json:"traded"`
		BlockedBuys  int            `json:"blocked_buys"`
		BlockedSells int            `json:"blocked_sells"`
		Buys         int            `json:"buys"`
		Sells        int            `json:"sells"`
		Wrong        map[string]int `json:"wrong"`
	}](t, apptest.Succeed(t, "data", "inspect", "ashare", "--rules", "ashare", "--policies", "2", "--json", "--set", "env.data.source.path="+filepath.Join(dir, "cn_daily.csv.gz"),
		"--set", "env.data.features.factors.sets=[]", "--set", "env.data.features.ohlcv=true"))
	if len(fills.Wrong) != 0 || fills.Traded != 164_690 || fills.BlockedBuys != 1_528 || fills.BlockedSells != 1_480 || fills.Buys+fills.Sells < 150_000 {
		t.Errorf("%+v", fills)
	}
}

// TestDataInspectPolicies: the fills of random policies keep the rules, and what cannot be looked
// at.
func TestDataInspectPolicies(t *testing.T) {
	t.Parallel()
	text := new(strings.Builder)
	fmt.Fprintln(text, "date,symbol,open,high,low,close,volume")
	for day := range 200 {
		for i, symbol := range []string{"600000.SH", "688001.SH"} {
			open, close := 10+float64(day*(i+3)%7)/10, 10+float64(day*(i+2)%5)/10
			fmt.Fprintf(text, "%s,%s,%.2f,%.2f,%.2f,%.2f,%d\n", time.Date(2021, 1, 1+day, 0, 0, 0, 0, time.UTC).Format(time.DateOnly), symbol, open, max(open, close), min(open, close), close, 100_000)
		}
	}
	args := []string{"data", "inspect", "ashare", "--rules", "ashare", "--policies", "3", "--set", "env.data.source.path=" + apptest.Write(t, "bars.csv", text.String()), "--set", "env.data.features.factors.sets=[]",
		"--set", "env.data.features.ohlcv=true", "--set", "env.data.split={train: [2021-01-01, 2021-12-31], valid: null, test: null}"}
	apptest.Says(t, apptest.Succeed(t, args...), "note: limits of 398 rows are those of the rule book ashare, and of 0 the data's own, which hold", "of 3 random policies", "against the rules  0")
	apptest.Refuse(t, append(args, "--set", "env.execution.lot=100"), "execution.lot: 100, and data.rules: ashare says how many shares an order has; leave one of the two out")
	apptest.Refuse(t, append(args, "--set", "env.data.rules=''"), "the market is not under the rule book ashare (data.rules)")
	apptest.Refuse(t, []string{"data", "inspect", "ashare", "--policies", "3"}, "--policies needs --rules ashare")
}

// TestDataInspectRules: the table, and what cannot be compared.
func TestDataInspectRules(t *testing.T) {
	t.Parallel()
	file := apptest.Write(t, "bars.csv", `date,symbol,open,high,low,close,pre_close,vol,is_st,up_limit,down_limit
2020-08-21,300750.SZ,200.00,219.99,200.00,219.99,200.00,100,0,220.00,180.00
2020-08-24,300750.SZ,263.99,263.99,263.99,263.99,219.99,100,0,263.99,175.99
2020-08-25,300750.SZ,270.00,317.00,270.00,270.00,263.99,100,0,290.39,237.59
`)
	apptest.Says(t, apptest.Succeed(t, "data", "inspect", file, "--rules", "ashare"),
		"300750.SZ  ChiNext             3          0   0           0     0          0        1   1     0          1            0         1         0",
		"300750.SZ: 2020-08-25, bars.csv line 4: disagreement: traded from 270.00 to 317.00 after 263.99, limits of 211.19 and 316.79 by the rules, limits of 237.59 and 290.39 in the data\n",
		"300750.SZ: 2020-08-25, bars.csv line 4: outside: traded from 270.00 to 317.00 after 263.99, limits of 211.19 and 316.79 by the rules\n")
	apptest.Refuse(t, []string{"data", "inspect", file, "--rules", "nyse"}, `--rules is "nyse", expected ashare`)
	apptest.Refuse(t, []string{"data", "inspect", filepath.Join(t.TempDir(), "none.csv"), "--rules", "ashare"}, "none.csv: no such file")
	out := filepath.Join(t.TempDir(), "set")
	apptest.Succeed(t, "data", "prepare", marketYAML(t), "--out", out)
	apptest.Refuse(t, []string{"data", "inspect", out, "--rules", "ashare"}, "is a prepared data set: --rules compares the bars that one is made from")
}
