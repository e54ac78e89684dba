package record_test

import (
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/onnxrl/onnxrl/envs/scml/record"
	"github.com/onnxrl/onnxrl/envs/scml/world"
	"github.com/onnxrl/onnxrl/runtime/rng"
	"github.com/onnxrl/onnxrl/runtime/sorted"
)

// pickled is an array of numbers as the official program writes it into a configuration.
func pickled(list ...int64) string {
	data := []byte("__CLOUDPICKLE_START__:\x80\x05\x8cnumpy.core.numeric\x94(\x96")
	data = binary.LittleEndian.AppendUint64(data, uint64(8*len(list)))
	for _, x := range list {
		data = binary.LittleEndian.AppendUint64(data, uint64(x))
	}
	return "__BYTES__:" + base64.StdEncoding.EncodeToString(append(data, "\x94\x8c\x05dtype\x94\x8c\x02i8\x94."...))
}

// officialFile is the configuration of a world, edited.
func officialFile(t *testing.T, edits ...string) string {
	t.Helper()
	profile := `{"cost": %d, "input_product": %d, "shortfall_penalty_mean": 0.5, "shortfall_penalty_dev": 0.02, "storage_cost_mean": 0.03, "storage_cost_dev": 0.0}`
	text := `{"config_id": "x", "other": 1, "world_params": {"n_lines": 10, "n_processes": 2, "n_steps": 4, "negotiation_speed": 21, "neg_n_steps": 20,
"agent_types": ["scml.std.agents.rand.SyncRandomStdAgent", "a:b.GreedyStdAgent", "x.PenguinAgent"],
"__exact_params": {"catalog_prices": "` + pickled(10, 17, 29) + `", "initial_balance": [500, 500, 900],
"profiles": [` + fmt.Sprintf(profile, 1, 0) + `, ` + fmt.Sprintf(profile, 2, 0) + `, ` + fmt.Sprintf(profile, 6, 1) + `],
"exogenous_contracts": [{"buyer": 1, "seller": -1, "product": 0, "quantity": 7, "time": 2, "unit_price": 11}, {"buyer": -1, "seller": 2, "product": 2, "quantity": 5, "time": 1, "unit_price": 28}]}}}`
	text = strings.NewReplacer(edits...).Replace(text)
	path := filepath.Join(t.TempDir(), "000000.json")
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestOfficialConfig reads the configuration of a tournament's world, and plays it.
func TestOfficialConfig(t *testing.T) {
	path := officialFile(t)
	file, err := record.Read(path)
	if err != nil {
		t.Fatal(err)
	}
	c, err := file.Config()
	if err != nil {
		t.Fatal(err)
	}
	if c.Days != 4 || !reflect.DeepEqual(c.Catalog, []int{10, 17, 29}) || len(c.Factories) != 3 || c.Factories[0].ID != "00SRS@0" || c.Factories[2].ID != "02Pe@1" || c.Factories[2].Cost != 6 || c.Factories[1].Balance != 500 || c.Rules != world.DefaultRules() {
		t.Errorf("%+v", c)
	}
	want := []world.Exogenous{{Day: 1, Factory: 2, Demand: true, Quantity: 5, Price: 28}, {Day: 2, Factory: 1, Quantity: 7, Price: 11}}
	if !reflect.DeepEqual(c.Exogenous, want) {
		t.Errorf("%+v", c.Exogenous)
	}
	if s := c.Factories[0].Shortfall; s[0] == s[1] || s[0] < 0.4 || s[0] > 0.6 {
		t.Errorf("coefficients %v", s)
	}
	again, err := record.Read(path)
	if err != nil || !reflect.DeepEqual(file, again) {
		t.Errorf("read again it is another one (%v)", err)
	}
	cases := [][2]string{
		{`"__BYTES__:`, `"__TEXT__:`}, {`"n_processes": 2`, `"n_processes": 3`}, {`"buyer": 1, "seller": -1`, `"buyer": 9, "seller": -1`}, {`[500, 500, 900]`, `[500, 500]`},
		{`"storage_cost_dev": 0.0`, `"storage_cost_dev": 0.1`}, {pickled(10, 17, 29)[30:], `AAAA"`}, {`"neg_n_steps": 20`, `"neg_n_steps": 0`},
	}
	says := []string{"catalog_prices: expected a list", "n_processes is 3", "exogenous_contracts[0]: seller -1 and buyer 9", "2 balances of 3 agents", "profiles[0].storage_cost_dev is 0.1", "000000.json", "rounds"}
	for i, e := range cases {
		file, err := record.Read(officialFile(t, e[0], e[1]))
		if err == nil {
			_, err = file.Config()
		}
		if err == nil || !strings.Contains(err.Error(), says[i]) {
			t.Errorf("%v, expected %q", err, says[i])
		}
	}
	if len(cases) != 7 {
		t.Errorf("%d cases", len(cases))
	}
}

// played returns the file of a world in which contracts are signed at random.
func played(t *testing.T) *record.World {
	t.Helper()
	g := world.StandardLeague()
	g.Days = world.Range{Low: 9, High: 9}
	c, err := g.Draw(rng.New(2), []int{3, 3}, strings.Fields("GreedyStdAgent GreedyStdAgent RandomStdAgent RandomStdAgent RandomStdAgent RandomStdAgent"))
	if err != nil {
		t.Fatal(err)
	}
	w, err := world.New(c, make([]bool, 6))
	if err != nil {
		t.Fatal(err)
	}
	r, s, signed := record.NewRecorder(w, 2), rng.New(3).Stream(), false
	for {
		switch w.Next().Event {
		case world.DayBegins:
			signed = false
		case world.DayEnds:
			for range 6 {
				seller, buyer := s.IntN(3), 3+s.IntN(3)
				if signed || w.Bankrupt(seller) || w.Bankrupt(buyer) {
					continue
				}
				if err := w.Sign(world.Contract{Seller: seller, Buyer: buyer, Quantity: 1 + s.IntN(30), Time: min(w.Today()+s.IntN(4), 8), Price: 14 + s.IntN(6), Rounds: 1}); err != nil {
					t.Fatal(err)
				}
			}
			signed = true
		case world.Settled:
			r.Day()
		case world.Over:
			return r.File()
		}
	}
}

// logs writes a file as the folder that the official program writes for a world.
func logs(t *testing.T, w *record.World) string {
	t.Helper()
	dir := t.TempDir()
	write := func(name, text string) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	info := map[string]any{"catalog_prices": w.Catalog, "n_steps": w.Days, "n_processes": w.Levels, "n_lines": w.Lines, "negotiation_speed": w.PassLimit}
	balances, profiles := map[string]float64{"SELLER": 2305843009213693951, "BUYER": 2305843009213693951}, map[string]any{}
	for id, a := range sorted.All(w.Agents) {
		balances[id] = a.Balance
		profiles[id] = map[string]any{"cost": a.Cost, "input_product": a.Level, "shortfall_penalty_mean": 0.5, "storage_cost_mean": a.Storage[0], "storage_cost_dev": 0.0}
	}
	info["agent_initial_balances"], info["agent_profiles"] = balances, profiles
	text, err := json.Marshal(info)
	if err != nil {
		t.Fatal(err)
	}
	write("info.json", string(text))

	columns, stats := []string{"index"}, [][]string{}
	for day, d := range w.Played {
		row := []string{fmt.Sprint(day)}
		add := func(name string, value any) {
			if day == 0 {
				columns = append(columns, name)
			}
			row = append(row, fmt.Sprint(value))
		}
		for p := range w.Catalog {
			unit := fmt.Sprint(d.End.UnitPrice[p])
			if d.End.Quantity[p] == 0 {
				unit = ""
			}
			add(fmt.Sprint("trading_price_", p), d.End.Trading[p])
			add(fmt.Sprint("sold_quantity_", p), d.End.Quantity[p])
			add(fmt.Sprint("unit_price_", p), unit)
		}
		for id, e := range sorted.All(d.End.Agents) {
			bankrupt := "False"
			if e.Bankrupt {
				bankrupt = "True"
			}
			for _, c := range []struct {
				name  string
				value any
			}{
				{"score", e.Score}, {"balance", e.Balance}, {"bankrupt", bankrupt}, {"productivity", e.Productivity}, {"shortfall_quantity", e.Missing}, {"shortfall_penalty", e.Penalty},
				{"storage_cost", e.StorageCost}, {"inventory_penalized", e.Left}, {"inventory_input", e.Stock}, {"inventory_output", e.Output},
			} {
				add(c.name+"_"+id, c.value)
			}
		}
		stats = append(stats, row)
	}
	lines := []string{strings.Join(columns, ",")}
	for _, row := range stats {
		lines = append(lines, strings.Join(row, ","))
	}
	write("stats.csv.csv", strings.Join(lines, "\n")+"\n")

	lines = []string{"index,id,delivery_time,quantity,unit_price,signed_at,seller,buyer,product_name,n_neg_steps,executed_at"}
	for day, d := range w.Played {
		dropped := map[string]bool{}
		for _, later := range w.Played {
			for _, id := range later.Dropped {
				dropped[id] = true
			}
		}
		for _, c := range d.Signed {
			executed := c.Time
			if dropped[c.ID] {
				executed = -1
			}
			lines = append(lines, fmt.Sprintf("0,%s,%d,%d,%d,%d,%s,%s,p1,1,%d", c.ID, c.Time, c.Quantity, c.Price, day, c.Seller, c.Buyer, executed))
		}
	}
	for i, e := range w.Exogenous {
		lines = append(lines, fmt.Sprintf("0,x%d,%d,%d,%d,%d,%s,%s,p%d,0,%d", i, e.Day, e.Quantity, e.Price, e.Day, e.Seller, e.Buyer, e.Product, e.Day))
	}
	write("contracts.csv", strings.Join(lines, "\n")+"\n")
	return dir
}

// TestLogs reads a folder in the form of the official program's, and computes it again; what is
// missing or damaged is named.
func TestLogs(t *testing.T) {
	dir := logs(t, played(t))
	file, err := record.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	got, err := record.Replay(file)
	if err != nil || got.Days != 9 || got.Contracts < 20 || got.Dropped == 0 || got.Bankrupt == 0 || got.Numbers < 600 {
		t.Errorf("%+v, %v", got, err)
	}
	cases := []struct{ name, from, to, says string }{
		{"info.json", `"n_lines":10`, `"n_lines":"ten"`, "info.json"},
		{"info.json", `"n_lines":10`, `"perishable":true,"n_lines":10`, "perishable is true"},
		{"info.json", `"storage_cost_dev":0`, `"storage_cost_dev":0.5`, "storage costs that change"},
		{"stats.csv.csv", "trading_price_1", "trading_price_9", "there is no column trading_price_1"},
		{"stats.csv.csv", "False", "Maybe", `"Maybe" is no number`},
		{"contracts.csv", ",p1,", ",q1,", `product_name: "q1", expected p and a number`},
		{"contracts.csv", "seller,buyer", "vendor,buyer", "there is no column seller"},
		{"contracts.csv", "index,", "index", "contracts.csv"},
		{"contracts.csv", "", "", "contracts.csv"},
		{"stats.csv.csv", "", "", "log_stats_every=1"},
		{"info.json", "", "", "there is no info.json"},
	}
	for _, c := range cases {
		dir := logs(t, played(t))
		path := filepath.Join(dir, c.name)
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if c.from == "" {
			err = os.Remove(path)
		} else if err = os.WriteFile(path, []byte(strings.Replace(string(text), c.from, c.to, 1)), 0o644); !strings.Contains(string(text), c.from) {
			t.Fatalf("%s has no %s", c.name, c.from)
		}
		if err != nil {
			t.Fatal(err)
		}
		if _, err := record.Open(dir); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v, expected %q", c.name, err, c.says)
		}
	}
	if len(cases) != 11 {
		t.Errorf("%d cases", len(cases))
	}
}

// TestPerishable: worlds whose stock perishes are refused by name wherever files of worlds are read,
// and what says that it does not is read.
func TestPerishable(t *testing.T) {
	w := played(t)
	file, own := filepath.Join(t.TempDir(), "world.json"), filepath.Join(t.TempDir(), "kept.json")
	if err := w.Write(own); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(own)
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, value := range []string{"true", "false"} {
		folder := logs(t, w)
		info := filepath.Join(folder, "info.json")
		said, err := os.ReadFile(info)
		if err != nil {
			t.Fatal(err)
		}
		key := `{"perishable":` + value + ","
		for path, text := range sorted.All(map[string]string{file: key + string(text[1:]), info: key + string(said[1:])}) {
			if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		config := officialFile(t, `"n_lines"`, key[1:]+`"n_lines"`)
		for _, path := range []string{file, folder, config} {
			_, err := record.Open(path)
			if errors.Is(err, record.ErrPerishable) != (value == "true") || value == "false" && err != nil || value == "true" && !strings.Contains(err.Error(), "perishable is true") {
				t.Errorf("%s, perishable %s: %v", filepath.Base(path), value, err)
			}
			n++
		}
	}
	if n != 6 {
		t.Errorf("%d files", n)
	}
}

// TestReplayFinds: every kind of number that is changed is found, on its day.
func TestReplayFinds(t *testing.T) {
	id := "01Gr@0"
	end := func(change func(e *record.Last)) func(w *record.World) {
		return func(w *record.World) {
			e := w.Played[4].End.Agents[id]
			change(&e)
			w.Played[4].End.Agents[id] = e
		}
	}
	cases := []struct {
		of, number string
		change     func(w *record.World)
	}{
		{id, "balance", end(func(e *record.Last) { e.Balance += 1e-6 })},
		{id, "score", end(func(e *record.Last) { e.Score += 1e-9 })},
		{id, "bankrupt", end(func(e *record.Last) { e.Bankrupt = !e.Bankrupt })},
		{id, "productivity", end(func(e *record.Last) { e.Productivity += 0.1 })},
		{id, "shortfall_quantity", end(func(e *record.Last) { e.Missing++ })},
		{id, "shortfall_penalty", end(func(e *record.Last) { e.Penalty++ })},
		{id, "storage_cost", end(func(e *record.Last) { e.StorageCost++ })},
		{id, "inventory_penalized", end(func(e *record.Last) { e.Left++ })},
		{id, "inventory_input", end(func(e *record.Last) { e.Stock++ })},
		{id, "inventory_output", end(func(e *record.Last) { e.Output++ })},
		{id, "end", func(w *record.World) { delete(w.Played[4].End.Agents, id) }},
		{"product 1", "trading_price", func(w *record.World) { w.Played[4].End.Trading[1] += 1e-6 }},
		{"product 1", "sold_quantity", func(w *record.World) { w.Played[4].End.Quantity[1]++ }},
		{"product 1", "unit_price", func(w *record.World) { w.Played[4].End.UnitPrice[1]++ }},
		{"product 2", "trading_price_in_force", func(w *record.World) { w.Played[4].InForce[2]++ }},
		{"product 1", "issues_q_t_p_by_product", func(w *record.World) { w.Played[4].Issues[1][2][0]-- }},
		{"the league", "n_contracts_concluded", func(w *record.World) { w.Played[4].Concluded++ }},
	}
	for _, c := range cases {
		w := played(t)
		if _, err := record.Replay(w); err != nil {
			t.Fatal(err)
		}
		c.change(w)
		_, err := record.Replay(w)
		if d, ok := err.(*record.Difference); !ok || d.Day != 4 || d.Of != c.of || d.Number != c.number {
			t.Errorf("%s of %s: %v", c.number, c.of, err)
		}
	}
	w := played(t)
	r := w.Played[5].Reports[id]
	r.BreachLevel += 0.01
	w.Played[5].Reports[id] = r
	if _, err := record.Replay(w); err == nil || !strings.Contains(err.Error(), "day 5, 01Gr@0: reports.breach_level") {
		t.Errorf("%v", err)
	}
	w = played(t)
	w.Scores[id]++
	if _, err := record.Replay(w); err == nil || !strings.Contains(err.Error(), "final_scores") {
		t.Errorf("%v", err)
	}
	for _, c := range []struct {
		says   string
		change func(w *record.World)
	}{
		{"days[3].day is 5, expected 3", func(w *record.World) { w.Played[3].Day = 5 }},
		{`days[2].signed_today[0]: seller "nobody"`, func(w *record.World) { w.Played[2].Signed[0].Seller = "nobody" }},
		{"days[2].signed_today[0]: sign a contract", func(w *record.World) { w.Played[2].Signed[0].Time = 0 }},
		{"days[2].signed_today[0]: sign a contract", func(w *record.World) { w.Played[2].Signed[0].Buyer = "01Gr@0" }},
		{"9 days, but n_steps is 8", func(w *record.World) {
			w.Days = 8
			for id, a := range sorted.All(w.Agents) {
				a.Storage, a.Shortfall = a.Storage[:8], a.Shortfall[:8]
				w.Agents[id] = a
			}
			w.Exogenous = w.Exogenous[:10]
		}},
	} {
		w := played(t)
		c.change(w)
		if _, err := record.Replay(w); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%v, expected %q", err, c.says)
		}
	}
	if len(cases) != 17 {
		t.Errorf("%d cases", len(cases))
	}
}

// TestReplayNearZero: a balance near zero may be off by what sums of the agent's money are, and by
// no more.
func TestReplayNearZero(t *testing.T) {
	w := played(t)
	day, poorest, least := 0, "", 1.0
	for d := range w.Played {
		for id, e := range sorted.All(w.Played[d].End.Agents) {
			if share := math.Abs(e.Balance) / w.Agents[id].Balance; share < least {
				day, poorest, least = d, id, share
			}
		}
	}
	if least > 0.2 {
		t.Fatalf("nobody is poor: the least balance is %g of that before the first day", least)
	}
	for _, c := range []struct {
		off  float64
		fine bool
	}{{0, true}, {1e-12, true}, {1e-11, false}} {
		w := played(t)
		e := w.Played[day].End.Agents[poorest]
		e.Balance += c.off * w.Agents[poorest].Balance
		w.Played[day].End.Agents[poorest] = e
		if _, err := record.Replay(w); (err == nil) != c.fine {
			t.Errorf("a balance of %g that is off by %g of %g: %v", e.Balance, c.off, w.Agents[poorest].Balance, err)
		}
	}
}
