package logs_test

import (
	"context"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/onnxrl/onnxrl/envs/scml/league"
	"github.com/onnxrl/onnxrl/envs/scml/logs"
	"github.com/onnxrl/onnxrl/envs/scml/negotiation"
	"github.com/onnxrl/onnxrl/envs/scml/opponents"
	"github.com/onnxrl/onnxrl/envs/scml/record"
	"github.com/onnxrl/onnxrl/envs/scml/world"
	"github.com/onnxrl/onnxrl/runtime/rng"
	"github.com/onnxrl/onnxrl/runtime/sorted"
)

// seated is a world of so many levels with all sorts of agents.
func seated(t *testing.T, levels, days int) *world.Table {
	t.Helper()
	g := world.StandardLeague()
	g.Days = world.Range{Low: float64(days), High: float64(days)}
	sizes := make([]int, levels)
	var agents []world.Agent
	var types []string
	for l := range sizes {
		sizes[l] = 4
		for i := range 4 {
			k := &opponents.Kinds[(3*l+i)%6]
			agents, types = append(agents, k.New(opponents.FairDice(rng.New(5).Split("agent", l, i)))), append(types, k.Type)
		}
	}
	c, err := g.Draw(rng.New(4), sizes, types)
	if err != nil {
		t.Fatal(err)
	}
	table, err := world.Sit(c, agents)
	if err != nil {
		t.Fatal(err)
	}
	return table
}

// written plays a world and writes its folder.
func written(t *testing.T, dir string, levels, days int) *record.World {
	t.Helper()
	table := seated(t, levels, days)
	r := record.NewRecorder(table.World, 1)
	f, err := logs.Create(dir, table.World, logs.Options{World: "w"})
	if err != nil {
		t.Fatal(err)
	}
	for table.PlayDay() {
		r.Day()
		if err := f.Day(); err != nil {
			t.Fatal(err)
		}
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	return r.File()
}

// tree reads the files below a folder.
func tree(t *testing.T, dir string) map[string]string {
	t.Helper()
	files := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		name, _ := filepath.Rel(dir, path)
		files[name] = string(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// TestFolder writes worlds of each number of levels, reads them, computes them again without any
// error, and finds in them what was played.
func TestFolder(t *testing.T) {
	n := 0
	for levels := 2; levels <= 4; levels++ {
		dir := filepath.Join(t.TempDir(), "world")
		want := written(t, dir, levels, 14)
		got, err := record.ReadLogs(dir)
		if err != nil {
			t.Fatal(err)
		}
		checked, err := record.Replay(got)
		if err != nil || checked.Worst != 0 || checked.Days != 14 || checked.Contracts < 50 {
			t.Errorf("%d levels: %+v, %v", levels, checked, err)
		}
		for id, a := range sorted.All(want.Agents) {
			if b := got.Agents[id]; !reflect.DeepEqual(a, b) {
				t.Errorf("%s is %+v, expected %+v", id, b, a)
			}
		}
		var agreed, left, timedOut, offers int
		err = record.EachNegotiation(filepath.Join(dir, "negotiations.csv"), func(n *record.Negotiation) error {
			offers += len(n.Offers)
			switch {
			case n.Agreement != nil:
				agreed++
				if o := n.Offers[len(n.Offers)-1]; o.Offer != *n.Agreement || o.By == n.Responder {
					return fmt.Errorf("negotiation %s: the agreement is %v, the last offer %v", n.ID, *n.Agreement, o)
				}
			case n.Ended > n.Day:
				left++
			case n.TimedOut:
				timedOut++
			}
			return nil
		})
		if err != nil || agreed != checked.Contracts || left == 0 || offers < 500 {
			t.Errorf("%d levels: %d agreements and %d contracts, %d left over, %d out of time, %d offers: %v", levels, agreed, checked.Contracts, left, timedOut, offers, err)
		}
		again := filepath.Join(t.TempDir(), "world")
		written(t, again, levels, 14)
		if a, b := tree(t, dir), tree(t, again); len(a) != 14 || !reflect.DeepEqual(a, b) {
			t.Errorf("%d levels: %d files, which are others when they are written again", levels, len(a))
		}
		n++
	}
	if n != 3 {
		t.Errorf("%d worlds", n)
	}
}

// TestFolderIsWholeOrAbsent refuses a folder that exists, and leaves nothing of one that is given
// up.
func TestFolderIsWholeOrAbsent(t *testing.T) {
	dir := t.TempDir()
	table := seated(t, 2, 5)
	if _, err := logs.Create(dir, table.World, logs.Options{World: "w"}); err == nil || !strings.Contains(err.Error(), "exists") {
		t.Errorf("a folder that exists: %v", err)
	}
	f, err := logs.Create(filepath.Join(dir, "x"), table.World, logs.Options{World: "w"})
	if err != nil {
		t.Fatal(err)
	}
	table.PlayDay()
	if err := errors.Join(f.Day(), f.Discard()); err != nil {
		t.Fatal(err)
	}
	if list, _ := os.ReadDir(dir); len(list) != 0 {
		t.Errorf("%v is left", list)
	}
	// Nobody watches any more.
	for table.PlayDay() {
	}
}

// counter counts what a witness sees.
type counter struct{ opened, offered, ended int }

func (c *counter) Opened(*negotiation.Mechanism)  { c.opened++ }
func (c *counter) Offered(*negotiation.Mechanism) { c.offered++ }
func (c *counter) Ended(*negotiation.Mechanism)   { c.ended++ }

// TestWitness sees every negotiation, and changes nothing.
func TestWitness(t *testing.T) {
	watched, alone, c := seated(t, 3, 9), seated(t, 3, 9), &counter{}
	watched.Watch(c)
	negotiations := 0
	for watched.PlayDay() {
		if !alone.PlayDay() || !reflect.DeepEqual(watched.SignedToday(), alone.SignedToday()) {
			t.Fatalf("day %d is another one", watched.Today())
		}
		negotiations += watched.Statistics().Negotiations
	}
	if c.opened != negotiations || c.ended == 0 || c.ended > c.opened || c.offered < c.opened {
		t.Errorf("%+v of %d negotiations", *c, negotiations)
	}
}

func spec() league.Spec {
	s := league.Defaults()
	s.Competitors, s.Configs, s.Processes, s.Days, s.Seed = []string{"penguin", "greedy", "syncrandom"}, 2, []int{2, 3}, [2]int{6, 8}, 3
	return s
}

// ran plays a tournament from a world on, and stops after another.
func ran(t *testing.T, dir string, first, stop, workers int) error {
	t.Helper()
	s := spec()
	o, err := logs.OpenTournament(dir, s, logs.Extras{})
	if err != nil {
		t.Fatal(err)
	}
	s.Follow = o.Follow
	errStop, n := errors.New("stop"), first
	err = s.Run(context.Background(), first, workers, func([]league.Row) error {
		if n++; n == stop {
			return errStop
		}
		return nil
	})
	if stop > 0 && errors.Is(err, errStop) {
		return nil
	}
	if err != nil {
		t.Fatal(err)
	}
	return o.Finish()
}

// TestTournament writes the same folder on one and two processors, and when it is stopped in
// between.
func TestTournament(t *testing.T) {
	var dirs []string
	for range 3 {
		dirs = append(dirs, filepath.Join(t.TempDir(), "t"))
	}
	for i, x := range [][]int{{0, 0, 1}, {0, 0, 2}, {0, 4, 2}, {4, 0, 1}} {
		if err := ran(t, dirs[min(i, 2)], x[0], x[1], x[2]); err != nil {
			t.Fatal(err)
		}
	}
	want := tree(t, dirs[0])
	if len(want) != 16+6+6*15 {
		t.Errorf("%d files", len(want))
	}
	for _, dir := range dirs[1:] {
		if !reflect.DeepEqual(want, tree(t, dir)) {
			t.Errorf("%s is another folder", dir)
		}
	}
	if !strings.HasPrefix(want["total_scores.csv"], "index,agent_type,score\n0,") || strings.Count(want["scores.csv"], "\n") != 1+6*3 || strings.Count(want["score_stats.csv"], "\n") != 4 || strings.Count(want["stats.csv"], "\n") < 1+6*6 {
		t.Errorf("%s%s", want["total_scores.csv"], want["score_stats.csv"])
	}
	aggregated(t, want)
	for name := range sorted.All(want) {
		if !strings.HasPrefix(name, "configs/") {
			continue
		}
		w, err := record.Read(filepath.Join(dirs[0], name))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := w.Config(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	s := spec()
	s.Seed++
	if _, err := logs.OpenTournament(dirs[0], s, logs.Extras{}); err == nil || !strings.Contains(err.Error(), "another tournament") {
		t.Errorf("another tournament: %v", err)
	}
	if _, err := logs.OpenTournament(filepath.Dir(dirs[0]), s, logs.Extras{}); err == nil || !strings.Contains(err.Error(), "of no tournament") {
		t.Errorf("a folder of something else: %v", err)
	}
	o, err := logs.OpenTournament(dirs[0], spec(), logs.Extras{})
	if err != nil {
		t.Fatal(err)
	}
	list, err := os.ReadDir(filepath.Join(dirs[0], "logs"))
	if err == nil {
		err = os.RemoveAll(filepath.Join(dirs[0], "logs", list[2].Name()))
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := o.Finish(); err == nil || !strings.Contains(err.Error(), "there is no folder of world 2") {
		t.Errorf("a world that is gone: %v", err)
	}
}

// aggregated compares agg_stats.csv with what its rows are of.
func aggregated(t *testing.T, files map[string]string) {
	t.Helper()
	days, err := csv.NewReader(strings.NewReader(files["stats.csv"])).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	worlds, err := csv.NewReader(strings.NewReader(files["agg_stats.csv"])).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	if len(worlds) != 7 || len(worlds[0]) != 6*21+22 || worlds[0][1] != "activity_levelmax" || worlds[0][146] != "path" {
		t.Fatalf("%d rows, %v", len(worlds), worlds[0])
	}
	at := func(row []string, head []string, name string) string { return row[slices.Index(head, name)] }
	for _, w := range worlds[1:] {
		sum, n, last := 0, 0, ""
		for _, d := range days[1:] {
			if at(d, days[0], "path") == at(w, worlds[0], "path") {
				last = at(d, days[0], "n_contracts_signed")
				x, err := strconv.Atoi(last)
				if err != nil {
					t.Fatal(err)
				}
				sum, n = sum+x, n+1
			}
		}
		mean, err := strconv.ParseFloat(at(w, worlds[0], "n_contracts_signed_mean"), 64)
		if err != nil || n < 6 || math.Abs(mean-float64(sum)/float64(n)) > 1e-12 || at(w, worlds[0], "n_contracts_signed_sum") != strconv.Itoa(sum) || at(w, worlds[0], "n_contracts_signed_final") != last || at(w, worlds[0], "step_final") != strconv.Itoa(n-1) || at(w, worlds[0], "stepmin") != "0" {
			t.Errorf("%v, %d contracts on %d days, %s on the last: %v", err, sum, n, last, w)
		}
	}
}

// TestExtras writes what the official program writes beside its tables, and compares all of it with
// the tables: an event for whatever begins and ends, a file for each negotiation with its history,
// and the offers that could be made.
func TestExtras(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "world")
	table := seated(t, 3, 7)
	f, err := logs.Create(dir, table.World, logs.Options{World: "w", Extras: logs.Extras{Negotiations: true, Utilities: true}})
	if err != nil {
		t.Fatal(err)
	}
	requests := 0
	for table.PlayDay() {
		requests += table.Statistics().Negotiations
		if err := f.Day(); err != nil {
			t.Fatal(err)
		}
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	files := tree(t, dir)
	rows := func(name string) []map[string]string {
		list, err := csv.NewReader(strings.NewReader(files[name])).ReadAll()
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		var all []map[string]string
		for _, row := range list[1:] {
			m := map[string]string{}
			for i, x := range row {
				m[list[0][i]] = x
			}
			all = append(all, m)
		}
		return all
	}
	contracts, dropped := map[string]string{}, 0
	for _, c := range rows("contracts.csv") {
		if contracts[c["id"]] = c["negotiation_id"]; c["dropped_at"] != "-1" {
			dropped++
		}
	}
	counts := map[string]int{}
	for _, line := range strings.Split(strings.TrimSuffix(files["events.json"], "\n"), "\n") {
		var e struct {
			Sender, Type string
			Data         map[string]any
		}
		if err := json.Unmarshal([]byte(strings.TrimSuffix(line, ",")), &e); err != nil || e.Sender != "w" || !strings.HasSuffix(line, "},") {
			t.Fatalf("events.json: %v: %s", err, line)
		}
		counts[e.Type]++
		if id, ok := e.Data["contract"].(string); ok {
			if of, ok := contracts[id]; !ok || e.Type == "negotiation-success" && of != e.Data["mechanism"] {
				t.Errorf("%s: contracts.csv has the contract of negotiation %q", line, of)
			}
		}
	}
	offers, ended := 0, rows("negotiations.csv")
	failed := 0
	for _, n := range ended {
		if n["failed"] == "True" {
			failed++
		}
		history := rows("negotiations/" + n["id"] + ".csv")
		if got := strings.Count(n["history"], "{'running'"); got != len(history) {
			t.Errorf("negotiation %s: %d rounds in its file, %d in its history", n["id"], len(history), got)
			continue
		}
		for k, r := range history {
			want := fmt.Sprintf("'step': %d, 'time': 0.0, 'relative_time': %s, 'broken': %s, 'timedout': False, ", k, r["relative_time"], r["broken"])
			if !strings.Contains(n["history"], want) || !strings.Contains(n["history"], "'new_offers': "+r["new_offers"]+", 'new_offerer_agents': "+r["new_offerer_agents"]) {
				t.Errorf("negotiation %s: round %d of its file is %v, its history %s", n["id"], k, r, n["history"])
			}
		}
	}
	for _, u := range rows("ufuns.csv") {
		if offers++; u["u0"]+u["reserved0"]+u["u1"]+u["reserved1"] != "" || u["mechanism_id"] == "" || u["agent0"] == u["agent1"] {
			t.Fatalf("ufuns.csv: %v", u)
		}
	}
	want := map[string]int{"agent-joined": 14, "negotiation-request": requests, "negotiation-request-accepted": requests, "negotiation-success": len(ended) - failed, "negotiation-failure": failed}
	if dropped > 0 {
		want["dropped-contract"] = dropped
	}
	if !reflect.DeepEqual(counts, want) || failed == 0 || failed == len(ended) {
		t.Errorf("events %v, expected %v", counts, want)
	}
	// 30 quantities, 7 days and fewer towards the end, and four prices or more.
	if offers < 30*2*4*requests/2 {
		t.Errorf("%d offers in ufuns.csv of %d negotiations", offers, requests)
	}
	for _, x := range []string{"w: World Created", "SELLER joined", "0/7 [0.00%]: 0 Negotiations/14 Agents", " requested negotiation with [", " request was accepted", "Contract [signed]: [", "Negotiation failure between [", "breach_prob: "} {
		if !strings.Contains(files["log.txt"], x) {
			t.Errorf("log.txt does not say %q", x)
		}
	}
}

// TestTrackers writes the logs that scml_analyzer's tracker writes, of the competitors of a
// tournament: they are read as the original's, count what the tables have, and have its keys.
func TestTrackers(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "t")
	s := spec()
	s.Configs, s.Processes = 1, []int{3}
	o, err := logs.OpenTournament(dir, s, logs.Extras{Tracked: true})
	if err != nil {
		t.Fatal(err)
	}
	s.Follow = o.Follow
	if err := s.Run(context.Background(), 0, 2, func([]league.Row) error { return nil }); err != nil {
		t.Fatal(err)
	}
	if err := o.Finish(); err != nil {
		t.Fatal(err)
	}
	list, err := record.ReadTrackers(dir)
	if err != nil || len(list) != 9 {
		t.Fatalf("%d trackers: %v", len(list), err)
	}
	contracts := map[string]int{}
	worlds, err := filepath.Glob(filepath.Join(dir, "logs", "*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, w := range worlds {
		f, err := record.ReadLogs(w)
		if err != nil {
			t.Fatal(err)
		}
		for i := range f.Played {
			for _, c := range f.Played[i].Signed {
				contracts[filepath.Base(w)+" "+c.Seller]++
				contracts[filepath.Base(w)+" "+c.Buyer]++
			}
		}
	}
	for _, k := range list {
		id, _, _ := strings.Cut(k.Agent, "#W")
		x := k.Stats
		if x.Signed != contracts[k.World+" "+id] || x.Success != x.Signed || x.Accepted+x.Rejected > x.Started+x.Failed || k.Events["negotiation.success"] != x.Signed || k.Events["negotiation.failure"] != x.Failed || k.Events["negotiation.offer_made"] != x.Made {
			t.Errorf("%s in %s: %+v, %v, and %d contracts", k.Agent, k.World, x, k.Events, contracts[k.World+" "+id])
		}
		if k.Days < 6 || k.Events["custom.daily_status"] != k.Days || k.Events["inventory.state"] != k.Days || k.Events["custom.agent_initialized"] != 1 || k.Events["custom.aop_action"] != x.Made+x.Accepted+x.Rejected || k.Events["negotiation.offer_received"] < x.Accepted {
			t.Errorf("%s in %s: %d days, %v", k.Agent, k.World, k.Days, k.Events)
		}
	}
	files := tree(t, filepath.Join(dir, "tracker_logs"))
	var summary struct {
		Agents map[string]struct {
			Type  string         `json:"type"`
			Stats map[string]int `json:"stats"`
		} `json:"agents"`
	}
	if err := json.Unmarshal([]byte(files["tracker_summary.json"]), &summary); err != nil || len(summary.Agents) != 9 || len(files) != 10 {
		t.Errorf("%d files, %d agents in the summary: %v", len(files), len(summary.Agents), err)
	}
	// The keys of the original's data.
	about := "buyer mechanism_id negotiator_id partner role seller"
	keys := map[string]string{
		"negotiation.started": about + " issues max_price min_price", "negotiation.offer_received": about + " offer", "negotiation.offer_made": about + " offer reason", "negotiation.accept": about + " offer reason", "negotiation.reject": about + " offer reason",
		"negotiation.success": about + " agreement", "negotiation.failure": about + " reason", "contract.signed": "buyer contract_id delivery_day partner price quantity role seller", "contract.executed": "buyer contract_id delivery_day partner price quantity role seller",
		"inventory.state": "balance product raw_material", "custom.aop_action": "action_op mechanism_id negotiator_id offer partner reason response_type role round sim_step",
		"custom.agent_initialized": "agent_display_name agent_type_base agent_type_base_full agent_type_base_qualname agent_type_raw agent_type_raw_full agent_type_raw_qualname level n_lines n_steps",
		"custom.daily_status":      "balance commitments current_step disposal_cost executed_sales executed_supplies exo_input_price exo_input_qty exo_output_price exo_output_qty initial_balance inventory_input inventory_output my_input_product my_output_product n_lines n_products n_steps needed_sales needed_sales_raw needed_supplies needed_supplies_raw offers_snapshot score shortfall_penalty spot_price_in spot_price_out storage_cost total_sales total_supplies trading_prices",
	}
	seen := map[string]bool{}
	for name, text := range sorted.All(files) {
		var k struct {
			Agent   string                  `json:"agent_id"`
			Series  map[string][][2]float64 `json:"time_series"`
			Entries []struct {
				Timestamp          string `json:"timestamp"`
				Agent, Type, World string
				Category, Event    string
				Data               map[string]any
			}
		}
		if !strings.HasPrefix(name, "agent_") {
			continue
		}
		if err := json.Unmarshal([]byte(text), &k); err != nil || !strings.HasPrefix(name, "agent_"+strings.ReplaceAll(k.Agent, "@", "_at_")+"_world_0000_") || len(k.Series["balance"]) < 6 || len(k.Series["raw_material"]) < 6 {
			t.Fatalf("%s: agent %s: %v", name, k.Agent, err)
		}
		last := ""
		for _, e := range k.Entries {
			kind := e.Category + "." + e.Event
			seen[kind] = true
			want := strings.Fields(keys[kind])
			slices.Sort(want)
			if got := slices.Sorted(maps.Keys(e.Data)); !slices.Equal(got, want) {
				t.Fatalf("%s: %s has %v, expected %v", name, kind, got, want)
			}
			if e.Timestamp <= last {
				t.Fatalf("%s: %s follows %s", name, e.Timestamp, last)
			}
			last = e.Timestamp
		}
	}
	if len(seen) != len(keys) {
		t.Errorf("there are %v", seen)
	}
}
