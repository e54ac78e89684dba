package record

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

// folder writes files.
func folder(t *testing.T, files ...string) string {
	t.Helper()
	dir := t.TempDir()
	for i := 0; i < len(files); i += 2 {
		path := filepath.Join(dir, files[i])
		err := os.MkdirAll(filepath.Dir(path), 0o755)
		if err == nil {
			err = os.WriteFile(path, []byte(files[i+1]), 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

const (
	someScores = "index,agent_id,agent_name,agent_type,run_id,score,world\n0,a,a,x:m.PenguinAgent,r1,1.5,w\n1,b,b,x:m.AS0,r1,1.0,w\n2,a,a,x:m.PenguinAgent,r2,0.5,w\n3,b,b,x:m.AS0,r2,1.2,w\n"
	someStats  = "agent_type,count,mean,std,min,25%,median,75%,max\nx:m.AS0,2.0,1.1,0.14142135623730948,1.0,1.05,1.1,1.15,1.2\nx:m.PenguinAgent,2.0,1.0,0.7071067811865476,0.5,0.75,1.0,1.25,1.5\n"
	tracked    = `{"agent_id": "00Li@0", "agent_type": "LitaAgentYR", "world_id": "w", "stats": {"negotiations_started": 3, "negotiations_success": 2, "negotiations_failed": 1, "contracts_signed": 2, "contracts_breached": 0, "offers_made": 9, "offers_accepted": 1, "offers_rejected": 4, "production_scheduled": 0},
"time_series": {"balance": [[0, 1.5], [1, NaN]]}, "entries": [{"timestamp": "t", "agent_id": "00Li@0", "agent_type": "LitaAgentYR", "world_id": "w", "day": 0, "category": "negotiation", "event": "offer_made", "data": {"partner": "x", "offer": {"quantity": 1}}},
{"timestamp": "t", "agent_id": "00Li@0", "agent_type": "LitaAgentYR", "world_id": "w", "day": 4, "category": "negotiation", "event": "accept", "data": {}}]}`
	summary = `{"world_id": "w", "agents": {"00Li@0": {"type": "LitaAgentYR", "stats": {"negotiations_started": 3}}, "01Li@0": {"type": "LitaAgentP", "stats": {"negotiations_started": 7, "offers_made": 2}}}, "timestamp": "t"}`
)

// TestTournament reads the scores of a tournament, and what its tracked agents have written.
func TestTournament(t *testing.T) {
	for _, stage := range []string{"", "x-stage-0001/"} {
		got, err := OpenTournament(folder(t, stage+"scores.csv", someScores, stage+"score_stats.csv", someStats, "tracker_logs/agent_00Li_at_0.json", tracked, "tracker_logs/tracker_summary.json", summary))
		if err != nil {
			t.Fatal(err)
		}
		want := &Tournament{
			Worlds: 2, Types: []TypeScores{{"AS0", 1.1, 2, 1.1, 1, 1.2}, {"PenguinAgent", 1, 2, 1, 0.5, 1.5}},
			Trackers: []Tracker{
				{Agent: "00Li@0", Type: "LitaAgentYR", World: "w", Stats: TrackerStats{3, 2, 1, 2, 0, 9, 1, 4}, Entries: 2, Events: map[string]int{"negotiation.offer_made": 1, "negotiation.accept": 1}, Days: 5},
				{Agent: "01Li@0", Type: "LitaAgentP", World: "w", Stats: TrackerStats{Started: 7, Made: 2}},
			},
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%+v, expected %+v", got, want)
		}
		var text strings.Builder
		if err := got.Print(&text); err != nil || !strings.Contains(text.String(), "PenguinAgent") || !strings.Contains(text.String(), "01Li@0") {
			t.Errorf("%s %v", text.String(), err)
		}
	}
	cases := []struct {
		files []string
		says  string
	}{
		{[]string{"scores.csv", "index,score\n0,1\n"}, "no column agent_type"},
		{[]string{"scores.csv", strings.Replace(someScores, "1.5", "x", 1)}, "row 1, column score"},
		{[]string{"scores.csv", someScores, "agent_x.json", tracked[:300]}, "agent_x.json"},
		{[]string{"scores.csv", someScores, "agent_x.json", "{}"}, "agent_id is missing"},
		{[]string{"scores.csv", someScores, "agent_x.json", strings.Replace(tracked, `"event": "accept"`, `"event": ""`, 1)}, "entries[1]"},
		{[]string{"scores.csv", someScores, "tracker_summary.json", "[]"}, "tracker_summary.json"},
		{[]string{"scores.csv", someScores, "score_stats.csv", strings.Replace(someStats, "1.25", "1.26", 1)}, "score_stats.csv: row 2, column 75%: 1.26, and the scores in scores.csv come to 1.25"},
		{[]string{"scores.csv", someScores, "score_stats.csv", strings.Replace(someStats, "AS0", "AS1", 1)}, "row 1: x:m.AS1 has no scores"},
		{[]string{"scores.csv", someScores, "score_stats.csv", someStats[:strings.Index(someStats, "x:m.P")]}, "1 rows, expected 2"},
		{[]string{"scores.csv", someScores, "score_stats.csv", strings.Replace(someStats, "std", "sd", 1)}, "no column std"},
		{[]string{"scores.csv", someScores, "score_stats.csv", strings.Replace(someStats, "0.75", "x", 1)}, `row 2, column 25%: "x" is no number`},
	}
	for _, c := range cases {
		if _, err := OpenTournament(folder(t, c.files...)); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%v, expected %q", err, c.says)
		}
	}
	if len(cases) != 11 {
		t.Errorf("%d cases", len(cases))
	}
	if _, err := OpenTournament(t.TempDir()); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("an empty folder: %v", err)
	}
}

// FuzzTracker reads anything as an agent's tracker log without a panic.
func FuzzTracker(f *testing.F) {
	f.Add(tracked)
	f.Add(summary)
	f.Add(tracked[:200])
	f.Fuzz(func(t *testing.T, text string) {
		path := filepath.Join(t.TempDir(), "agent_x.json")
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		if k, err := readTracker(path); err == nil && k.Agent == "" {
			t.Error("an agent without a name")
		}
		// Whatever it is, it is read or refused.
		_, _ = readTrackerSummary(path)
	})
}

// FuzzNegotiations reads anything as a table of negotiations: each row that it takes is one, and
// whatever else is there has an error that names the file.
func FuzzNegotiations(f *testing.F) {
	head := "id,ended_at,issues,agreement,caller,product,buyer,seller,sim_step,broken,timedout,history\n"
	row := `x,0,"['quantity: (1, 30)', 'time: (0, 4)', 'unit_price: (14, 17)']","(1, 0, 14)",A,1,A,B,0,False,False,"[{'step': 0, 'new_offers': [('B', (1, 0, 14))]}]"` + "\n"
	f.Add(head + row)
	f.Add(head + row + row[:60])
	f.Add(head + strings.Replace(row, "'step'", "step", 1))
	f.Fuzz(func(t *testing.T, text string) {
		path := filepath.Join(t.TempDir(), "negotiations.csv")
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		err := EachNegotiation(path, func(n *Negotiation) error {
			if n.Buyer == n.Seller || n.Caller != n.Buyer && n.Caller != n.Seller || len(n.Offers) > 2*n.Rounds {
				t.Errorf("%+v", n)
			}
			return nil
		})
		if err != nil && !strings.Contains(err.Error(), path) {
			t.Errorf("%v does not name the file", err)
		}
	})
}
