package dashboard

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/onnxrl/onnxrl/export/report/performance"
	"github.com/onnxrl/onnxrl/models/artifact"
	"github.com/onnxrl/onnxrl/runtime/metrics"
	"github.com/onnxrl/onnxrl/runtime/sorted"
)

// reported writes a report of n days.
func reported(t testing.TB, dir string, n int) {
	t.Helper()
	write(t, filepath.Join(dir, "summary.json"), `{"title":"T","verdict":{"line":"A beats B"},"warnings":["short"],"benchmark":"B","notes":["Limits on risk: 3 times","other"],
		"strategies":[{"name":"A","role":"agent","metrics":{"sharpe":1.5,"total_return":0.25,"calmar":null}},{"name":"B","role":"benchmark","metrics":{"sharpe":0.5}}]}`)
	var equity, positions, trades strings.Builder
	equity.WriteString("date,strategy,value,return,drawdown,cash,turnover,fees\n")
	positions.WriteString("date,cash,X\n")
	trades.WriteString("date,strategy,asset,side,shares,price,amount,fee\n")
	for i := range n {
		day := fmt.Sprintf("2020-%02d-%02d-%04d", i/28%12+1, i%28+1, i)
		for _, s := range []string{"A", "B"} {
			fmt.Fprintf(&equity, "%s,%s,%d,,%v,1,,\n", day, s, 100+i*len(s), -float64(i)/1e6)
		}
		if i == n/2 {
			fmt.Fprintf(&equity, "%s-x,A,1e9,,,1,,\n", day)
		}
		fmt.Fprintf(&positions, "%s,%v,%v\n", day, 1-float64(i)/float64(2*n), float64(i)/float64(2*n))
		fmt.Fprintf(&trades, "%s,A,X,buy,%d,2,3,4\n%s,B,Y,sell,1,2,3,4\n", day, i, day)
	}
	write(t, filepath.Join(dir, "equity.csv"), equity.String())
	write(t, filepath.Join(dir, "positions.csv"), positions.String())
	write(t, filepath.Join(dir, "trades.csv"), trades.String())
}

// only is the id of the only item of a kind.
func only(t testing.TB, b *Board, k Kind) string {
	t.Helper()
	var ids []string
	for _, it := range b.Overview(0).Items {
		if it.Kind == k {
			ids = append(ids, it.ID)
		}
	}
	if len(ids) != 1 {
		t.Fatalf("%d items of kind %s", len(ids), k)
	}
	return ids[0]
}

func TestReport(t *testing.T) {
	for _, n := range []int{10, 5000} {
		root := t.TempDir()
		reported(t, filepath.Join(root, "report"), n)
		b := watching(t, Options{Paths: []string{root}})
		d, err := b.Report(only(t, b, Report))
		if err != nil {
			t.Fatal(err)
		}
		if d.Title != "T" || d.Verdict != "A beats B" || d.Benchmark != "B" || len(d.Strategies) != 2 || d.Strategies[0].Metrics["sharpe"] != 1.5 || d.Strategies[0].Metrics["calmar"].Defined() || !slices.Equal(d.Limits, []string{"Limits on risk: 3 times"}) {
			t.Errorf("%+v", d)
		}
		a := d.Curves[0]
		if a.Strategy != "A" || a.Rows != n+1 || len(a.Dates) > mostRows || a.Value[0] != 100 || a.Value[len(a.Value)-1] != float64(99+n) || !slices.Contains(a.Value, 1e9) {
			t.Errorf("%d rows, %d shown, from %v to %v", a.Rows, len(a.Dates), a.Value[0], a.Value[len(a.Value)-1])
		}
		for i, v := range a.Value {
			if v == 1e9 {
				if a.Drawdown[i].Defined() {
					t.Error("an empty drawdown is a number")
				}
			} else if got := float64(a.Drawdown[i]); math.Abs(got+(v-100)/1e6) > 1e-15 {
				t.Errorf("at %s: drawdown %v beside the value %v", a.Dates[i], got, v)
			}
		}
		p := d.Positions
		if p.Rows != n || !slices.Equal(p.Names, []string{"cash", "X"}) || p.Weights[1][len(p.Dates)-1] != performance.Number(float64(n-1)/float64(2*n)) {
			t.Errorf("%+v", p.Names)
		}
		if d.TradesOf != n || len(d.Trades) != min(n, mostTrades) || d.Trades[0]["shares"] != fmt.Sprint(n-1) || d.Trades[len(d.Trades)-1]["shares"] != fmt.Sprint(n-len(d.Trades)) || d.Trades[0]["asset"] != "X" {
			t.Errorf("%d trades, the newest %v", d.TradesOf, d.Trades[0])
		}
	}
}

func TestReportDamaged(t *testing.T) {
	for name, damage := range sorted.All(map[string]struct{ file, text, want string }{
		"no JSON":      {"summary.json", "{", "summary.json"},
		"no column":    {"equity.csv", "a,b\n", "column date"},
		"no number":    {"equity.csv", "date,strategy,value,drawdown\nx,A,one,0\n", `row 2: "one" is no number`},
		"short row":    {"equity.csv", "date,strategy,value,drawdown\nx,A\n", "wrong number of fields"},
		"no weights":   {"positions.csv", "x\n", "expected the columns"},
		"quoted badly": {"trades.csv", "date,strategy\n\"x", "trades.csv"},
	}) {
		root := t.TempDir()
		reported(t, root, 3)
		write(t, filepath.Join(root, damage.file), damage.text)
		b := watching(t, Options{Paths: []string{root}})
		if _, err := b.Report(only(t, b, Report)); err == nil || !strings.Contains(err.Error(), damage.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestPopulation(t *testing.T) {
	root := t.TempDir()
	write(t, filepath.Join(root, "evolution.yaml"), "search:\n  metric: cost\n  direction: minimize\n")
	lines := ""
	for g := range 3 {
		for _, m := range []int{1, 0} {
			dir := fmt.Sprintf("generation-%04d/member-%03d", g, m)
			parent := m
			if g == 2 {
				parent = 0
			}
			lines += fmt.Sprintf(`{"generation":%d,"member":%d,"action":"keep","parent":%d,"hyper_from":%d,"values":{"agent.lr":%v},"env_steps":%d,"score":%v,"distance":%v,"dir":%q}`+"\n", g, m, parent, parent, 0.1*float64(m+1), 100*(g+1), g+m, 0.5*float64(m+1)/float64(g+1), dir)
			if err := os.MkdirAll(filepath.Join(root, dir), 0o777); err != nil {
				t.Fatal(err)
			}
			w, err := metrics.CreateJSONLines(filepath.Join(root, dir, metricsFile), clock())
			if err == nil {
				err = w.Scalars(1, map[string]float64{"replay/policy_0/share": 1})
			}
			if err == nil {
				err = w.Scalars(2, map[string]float64{"replay/policy_0/share": 0.25, "replay/policy_1/share": 0.75, "replay/policy_1/age": float64(10 * m)})
			}
			if err == nil {
				err = w.Scalars(3, map[string]float64{"train/loss": 1})
			}
			if err == nil {
				err = w.Close()
			}
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	file := filepath.Join(root, membersFile)
	write(t, file, lines)
	b := watching(t, Options{Paths: []string{root}})
	id := only(t, b, Population)
	d, err := b.Population(id)
	if err != nil {
		t.Fatal(err)
	}
	if len(d.Generations) != 3 || d.Dropped != 0 || !slices.Equal(d.Paths, []string{"agent.lr"}) || d.Metric != "cost" || !d.Minimize || !strings.HasPrefix(d.Document, "search:") || d.Usage != nil {
		t.Fatalf("%+v", d)
	}
	for g, list := range d.Generations {
		for m, x := range list {
			if x.Member != m || x.Score != performance.Number(g+m) || x.Values["agent.lr"] != performance.Number(0.1*float64(m+1)) || x.EnvSteps != int64(100*(g+1)) {
				t.Errorf("generation %d: %+v", g, x)
			}
		}
		if want := 0.75 / float64(g+1); math.Abs(float64(d.MAPD[g])-want) > 1e-12 {
			t.Errorf("MAPD of generation %d is %v, expected %v", g, d.MAPD[g], want)
		}
	}
	if r := d.Replay; r == nil || r.Generation != 2 || !slices.Equal(r.Policies, []int{0, 1}) || r.Share[1][0] != 0.25 || r.Share[0][1] != 0.75 || r.Age[1][1] != 10 || r.Age[0][0].Defined() {
		t.Errorf("%+v", r)
	}
	// A generation that is being written is left out, and half a line.
	extend(t, file, `{"generation":3,"member":0,"parent":0,"values":{}}`+"\n"+`{"generation":3,"mem`)
	if d, err = b.Population(id); err != nil || len(d.Generations) != 3 || d.Dropped != 1 {
		t.Errorf("%d generations, %d dropped: %v", len(d.Generations), d.Dropped, err)
	}
	for text, want := range sorted.All(map[string]string{
		"{\n": "members.jsonl:1", `{"generation":5}` + "\n": "of generation 5, expected 0", `{"member":-1}` + "\n": "member -1", `{"member":100000000}` + "\n": "expected less than", `{"parent":1000000}` + "\n": "parent 1000000",
	}) {
		write(t, file, text)
		if _, err := b.Population(id); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", text, err)
		}
	}
	// A folder of a member that leads elsewhere is not looked at.
	write(t, file, strings.ReplaceAll(lines, "generation-0002/", "../x/generation-0002/"))
	if d, err = b.Population(id); err != nil || d.Replay != nil {
		t.Errorf("%+v %v", d.Replay, err)
	}
}

const world = `{"seed":7,"n_processes":1,"n_steps":2,"catalog_prices":[10,15],"agents":{"a@0":{"type":"T","level":0},"b@0":{"type":"U","level":0}},
	"days":[{"day":0,"signed_today":[{"id":"0.0","seller":"a@0","buyer":"b@0","quantity":3,"time":1,"unit_price":11},{"id":"0.1","seller":"b@0","buyer":"a@0","quantity":1,"time":1,"unit_price":12}],"executed_ids":[],"dropped_ids":[],"n_negotiations":4,"n_contracts_concluded":2,
		"end":{"trading_price":[10,15],"sold_quantity":[0,1],"unit_price":[0,15],"agents":{"a@0":{"balance":100,"score":1,"inventory_input":2},"b@0":{"balance":90,"score":0.5,"shortfall_quantity":1}}}},
	{"day":1,"signed_today":[{"id":"1.0","seller":"a@0","buyer":"b@0","quantity":2,"time":9,"unit_price":13}],"executed_ids":["0.0"],"dropped_ids":["0.1"],"n_negotiations":1,"n_contracts_concluded":1,
		"end":{"trading_price":[10.5,14.5],"sold_quantity":[3,0],"unit_price":[11,0],"agents":{"a@0":{"balance":110,"score":1.1},"b@0":{"balance":80,"score":0.4,"bankrupt":true}}}}],
	"final_scores":{"a@0":1.2}}`

func TestWorld(t *testing.T) {
	root := t.TempDir()
	file := filepath.Join(root, "w.json")
	write(t, file, world)
	b := watching(t, Options{Paths: []string{root}})
	id := only(t, b, World)
	d, err := b.World(id)
	if err != nil {
		t.Fatal(err)
	}
	states := ""
	for _, c := range d.Contracts {
		states += c.ID + " " + c.State + ","
	}
	if d.Seed != 7 || d.Products != 2 || d.Days != 2 || !slices.Equal(d.TradingPrice[1], []float64{15, 14.5}) || !slices.Equal(d.Sold[0], []float64{0, 3}) || d.ContractsOf != 3 || states != "1.0 open,0.1 dropped,0.0 executed," || !slices.Equal(d.Signed, []int{2, 1}) || !slices.Equal(d.Dropped, []int{0, 1}) {
		t.Errorf("%+v", d)
	}
	if a, b := d.Agents[0], d.Agents[1]; a.Name != "a@0" || *a.Final != 1.2 || !slices.Equal(a.Balance, []float64{100, 110}) || a.Input[0] != 2 || b.Final != nil || !b.Bankrupt || b.Shortfall[0] != 1 {
		t.Errorf("%+v", d.Agents)
	}
	for change, want := range sorted.All(map[string]string{
		`"n_processes":1/"n_processes":1000000000`: "2 catalog_prices", `"n_processes":1/"n_processes":-5`: "catalog_prices", `[10.5,14.5]/[10.5]`: "days[1].end", `"b@0":{"balance":80/"c@0":{"balance":80`: "b@0 is missing", `"final_scores"/final`: "invalid character",
	}) {
		old, new, _ := strings.Cut(change, "/")
		write(t, file, strings.Replace(world, old, new, 1))
		if _, err := b.World(id); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", change, err)
		}
	}
}

// TestTrading reads a log of more lines than are kept, with rejections.
func TestTrading(t *testing.T) {
	root := t.TempDir()
	file := filepath.Join(root, "t.jsonl")
	var text strings.Builder
	n, peak, worst, rejected := 3*mostRows+11, 0.0, 0.0, 0
	for i := range n {
		v := 1000 + 100*math.Sin(float64(i)/50)
		if i == 1234 {
			v = 1
		}
		peak = max(peak, v)
		worst = min(worst, v/peak-1)
		more := ""
		if i%7 == 0 {
			more = `,"rejected":[{"symbol":"X","reason":"lot"},{"symbol":"Y","reason":"cash"}]`
			rejected++
		}
		fmt.Fprintf(&text, `{"time":"%05d","value":%v,"cash":%d,"positions":{"X":%d},"orders":{"X":"buy","Y":"hold"},"fills":[{"asset":"X","shares":1,"price":2}]%s}`+"\n", i, v, i, 2*i, more)
	}
	text.WriteString("no line\n{\"a\":1}\n\n{\"time\":\"half")
	write(t, file, text.String())
	b := watching(t, Options{Paths: []string{root}})
	id := only(t, b, Trading)
	d, err := b.Trading(id)
	if err != nil {
		t.Fatal(err)
	}
	last := len(d.Times) - 1
	if d.EventsOf != n || d.Bad != 2 || d.Fills != n || d.Orders["buy"] != n || d.Orders["hold"] != n || d.Rejected["lot"] != rejected || d.Rejected["cash"] != rejected || len(d.Events) != mostEvents || len(d.Times) > mostRows {
		t.Errorf("%d events, %d bad, %d fills, %v, %v, %d rows", d.EventsOf, d.Bad, d.Fills, d.Orders, d.Rejected, len(d.Times))
	}
	if slices.Min(d.Low) != 1 || math.Abs(slices.Min(d.Drawdown)-worst) > 1e-12 || slices.Max(d.High) != peak || d.Cash[last] != float64(n-1) || d.Positions[0][last] != performance.Number(2*(n-1)) || d.Times[0] != "00000" {
		t.Errorf("from %v to %v, drawdown %v, cash %v, position %v", slices.Min(d.Low), slices.Max(d.High), slices.Min(d.Drawdown), d.Cash[last], d.Positions[0][last])
	}
	if !strings.HasPrefix(string(d.Events[0]), fmt.Sprintf(`{"time":"%05d"`, n-1)) {
		t.Errorf("the newest is %.40s", d.Events[0])
	}
}

// TestTradingHostile keeps memory bounded whatever a log says.
func TestTradingHostile(t *testing.T) {
	k := newTrack()
	for i := range 5000 {
		k.add(fmt.Appendf(nil, `{"time":"%d","value":1,"positions":{"s%d":1},"rejected":[{"reason":"r%d"}],"orders":{"a":"o%d"}}`, i, i, i, i))
	}
	k.add([]byte(`{"time":"x","value":1,"orders":{"a":"` + strings.Repeat("y", mostEvent) + `"}}`))
	k.add([]byte(`{"time":"x","value":null}`))
	k.add([]byte(`{"time":"x","value":1e999}`))
	k.add([]byte(`{"time":"y","value":-5,"positions":{"s1":-2},"rejected":"word","orders":[1,2],"fills":null}`))
	d := k.data("x")
	if len(d.Symbols) != mostSymbols || len(d.Rejected) > mostReasons+1 || len(d.Orders) > mostReasons+1 || len(d.Times) > mostRows || d.Bad != 2 || len(d.Events[1]) > 200 {
		t.Errorf("%d symbols, %d reasons, %d rows, %d bad", len(d.Symbols), len(d.Rejected), len(d.Times), d.Bad)
	}
}

func TestThin(t *testing.T) {
	for _, n := range []int{0, 1, 5, 100, 101, 9999} {
		values := make([]float64, n)
		for i := range values {
			values[i] = math.Sin(float64(i * i))
		}
		if n > 50 {
			values[50] = math.NaN()
		}
		at := thin(values, 100)
		if len(at) > 100 || !slices.IsSorted(at) || n > 0 && (at[0] != 0 || at[len(at)-1] != n-1) || n <= 100 && len(at) != n {
			t.Errorf("%d of %d: %v", len(at), n, at)
		}
	}
}

// TestArtefacts shows two versions, of which one descends from the other in another store.
func TestArtefacts(t *testing.T) {
	root := t.TempDir()
	publish := func(dir string, d artifact.Draft) artifact.Version {
		s, err := artifact.Open(filepath.Join(root, dir), artifact.Options{})
		if err != nil {
			t.Fatal(err)
		}
		d.Data, d.Files = true, []artifact.NewFile{{Title: "a/b.txt", Data: []byte("content of " + d.Manifest.Name)}}
		v, err := s.Publish(t.Context(), d)
		if err == nil {
			err = s.Close()
		}
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	seed := uint64(5)
	old := publish("one", artifact.Draft{Manifest: artifact.Manifest{Name: "parent", Kind: "data", Metrics: map[string]float64{"sharpe": 1.5}, Seed: &seed, EnvStep: 12}})
	publish("two", artifact.Draft{Manifest: artifact.Manifest{Name: "child", Kind: "data", Parents: []string{old.Digest}}, Aliases: []string{"prod"}})
	b := watching(t, Options{Paths: []string{root}})
	one, two := filepath.ToSlash(filepath.Join(root, "one")), filepath.ToSlash(filepath.Join(root, "two"))
	list, err := b.Artefacts(one)
	if err != nil || len(list) != 1 || list[0].Name != "parent" || list[0].Metrics["sharpe"] != 1.5 || *list[0].Seed != 5 || list[0].EnvStep != 12 || list[0].Digest != old.Digest || list[0].Files[0].Title != "a/b.txt" {
		t.Fatalf("%+v %v", list, err)
	}
	list, err = b.Artefacts(two)
	if err != nil || len(list) != 1 || !slices.Contains(list[0].Aliases, "prod") || len(list[0].Lineage) != 2 || list[0].Lineage[0].Store != two || list[0].Lineage[1] != (Ancestor{Digest: old.Digest, Depth: 1, Name: "parent", Store: one}) {
		t.Fatalf("%+v %v", list, err)
	}
	s := page(t, b, guardless)
	answer, text := request(t, s.URL+"/data/file?kind=store&id="+two+"&version="+list[0].Digest+"&path=a/b.txt")
	if answer.StatusCode != 200 || text != "content of child" || answer.Header.Get("Content-Disposition") != `attachment; filename=b.txt` {
		t.Errorf("%d %q %v", answer.StatusCode, text, answer.Header)
	}
	for _, path := range []string{"b.txt", "../oci-layout", "a/../a/b.txt", ""} {
		if answer, text := request(t, s.URL+"/data/file?kind=store&id="+two+"&version="+list[0].Digest+"&path="+path); answer.StatusCode != 404 {
			t.Errorf("%q: %d %s", path, answer.StatusCode, text)
		}
	}
}
