package logs

import (
	"path/filepath"

	"github.com/onnxrl/onnxrl/runtime/sorted"
)

// resultsFile is what a world of a tournament came to, in its folder.
const resultsFile = "results.json"

// result is results.json.
type result struct {
	RunID  string       `json:"run_id"`
	Name   string       `json:"name"`
	Paths  string       `json:"world_paths"`
	Scores []score      `json:"scores"`
	Types  []worldType  `json:"type_stats"`
	Agents []worldAgent `json:"agent_stats"`
	Worlds []worldStats `json:"world_stats"`
	Extra  extra        `json:"extra_scores"`
	// World numbers the worlds of the tournament, from 0.
	World int `json:"onnxrl_world"`
}

// score is a row of scores.csv.
type score struct {
	Name    string  `json:"agent_name"`
	ID      string  `json:"agent_id"`
	Type    string  `json:"agent_type"`
	Score   float64 `json:"score"`
	LogFile string  `json:"log_file"`
	World   string  `json:"world"`
	Folders string  `json:"stats_folders"`
	Base    string  `json:"base_stats_folder"`
	RunID   string  `json:"run_id"`
}

// extra are other scores of the types of a world.
type extra struct {
	Combined     []typeScore `json:"combined_scores"`
	Consolidated []typeScore `json:"consolidated_scores"`
}

type typeScore struct {
	Type  string  `json:"type"`
	Score float64 `json:"score"`
	World string  `json:"world"`
	RunID string  `json:"run_id"`
}

// counted are the counters of an agent, of a type or of a world.
type counted struct {
	Sent       int `json:"neg_requests_sent"`
	Initiated  int `json:"negs_initiated"`
	Dropped    int `json:"contracts_dropped"`
	Rejected   int `json:"neg_requests_rejected"`
	Signed     int `json:"contracts_signed"`
	Succeeded  int `json:"negs_succeeded"`
	Concluded  int `json:"contracts_concluded"`
	Erred      int `json:"contracts_erred"`
	Registered int `json:"negs_registered"`
	Received   int `json:"neg_requests_received"`
	TimedOut   int `json:"negs_timedout"`
	Failed     int `json:"negs_failed"`
	Executed   int `json:"contracts_executed"`
}

func countedOf(c counters) counted {
	return counted{Sent: c.sent, Initiated: c.sent, Dropped: c.dropped, Signed: c.signed, Succeeded: c.succeeded, Concluded: c.concluded, Registered: c.received, Received: c.received, TimedOut: c.timedOut, Failed: c.failed, Executed: c.executed}
}

type worldAgent struct {
	World string `json:"world"`
	Agent string `json:"agent"`
	counted
}

type worldType struct {
	World string `json:"world"`
	Type  string `json:"type"`
	counted
}

type worldStats struct {
	Name     string `json:"name"`
	Planned  int    `json:"planned_n_steps"`
	Executed int    `json:"executed_n_steps"`
	// Of the agents' counters these are the sums.
	Sum counted `json:"sums"`
}

// results describes a world that was played. Paths are relative to the tournament's folder.
func (f *Folder) results() result {
	c := f.w.Config()
	r := result{RunID: f.o.World, Name: f.o.Tournament, Paths: filepath.Join(worldsDir, f.o.World), World: f.o.Number}
	for _, i := range f.o.Competitors {
		r.Scores = append(r.Scores, score{Name: f.ids[i], ID: f.ids[i], Type: f.types[i], Score: f.w.Score(i), LogFile: r.Paths, World: f.o.World, Folders: r.Paths, Base: r.Paths, RunID: f.o.World})
		x := typeScore{f.types[i], f.w.Score(i), f.o.World, f.o.World}
		r.Extra.Combined, r.Extra.Consolidated = append(r.Extra.Combined, x), append(r.Extra.Consolidated, x)
	}
	types, all := map[string]counters{}, counters{}
	for i, id := range f.ids {
		r.Agents = append(r.Agents, worldAgent{f.o.World, id, countedOf(f.counters[i])})
		sum := types[f.types[i]]
		sum.add(f.counters[i])
		types[f.types[i]] = sum
		all.add(f.counters[i])
	}
	for name, sum := range sorted.All(types) {
		r.Types = append(r.Types, worldType{f.o.World, name, countedOf(sum)})
	}
	r.Worlds = []worldStats{{f.o.World, c.Days, f.w.Today() + 1, countedOf(all)}}
	return r
}
