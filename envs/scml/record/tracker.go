package record

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/onnxrl/onnxrl/runtime/sorted"
)

// The files that the tracker of scml_analyzer writes: one for each agent, and a summary.
const (
	trackerPrefix  = "agent_"
	trackerSummary = "tracker_summary.json"
)

// Tracker is what an agent that scml_analyzer tracks has written of itself.
type Tracker struct {
	Agent string       `json:"agent_id"`
	Type  string       `json:"agent_type"`
	World string       `json:"world_id"`
	Stats TrackerStats `json:"stats"`
	// Entries is how many there are, and Events how many of each category and event, such as
	// negotiation.accept. Summaries have none.
	Entries int            `json:"entries"`
	Events  map[string]int `json:"events,omitempty"`
	// Days are those of the entries: one more than the last.
	Days int `json:"days"`
}

// TrackerStats are the tracker's own counters.
type TrackerStats struct {
	Started  int `json:"negotiations_started"`
	Success  int `json:"negotiations_success"`
	Failed   int `json:"negotiations_failed"`
	Signed   int `json:"contracts_signed"`
	Breached int `json:"contracts_breached"`
	Made     int `json:"offers_made"`
	Accepted int `json:"offers_accepted"`
	Rejected int `json:"offers_rejected"`
}

// trackerFile is agent_ID.json. Entries have a category and an event, such as negotiation and
// accept.
type trackerFile struct {
	Agent   string       `json:"agent_id"`
	Type    string       `json:"agent_type"`
	World   string       `json:"world_id"`
	Stats   TrackerStats `json:"stats"`
	Entries []struct {
		Day      int    `json:"day"`
		Category string `json:"category"`
		Event    string `json:"event"`
	} `json:"entries"`
}

// ReadTrackers reads the logs of scml_analyzer's tracker below a folder, agent_ID.json, in order;
// of agents that have none of their own it takes what tracker_summary.json beside them says.
func ReadTrackers(dir string) ([]Tracker, error) {
	var list []Tracker
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		name := d.Name()
		switch {
		case strings.HasPrefix(name, trackerPrefix) && strings.HasSuffix(name, ".json"):
			t, err := readTracker(path)
			if err == nil {
				list = append(list, t)
			}
			return err
		case name == trackerSummary:
			some, err := readTrackerSummary(path)
			list = append(list, some...)
			return err
		}
		return nil
	})
	// An agent's own file comes before the summary of the same folder, which names one of its worlds;
	// the identifiers of agents of several worlds have a digest of theirs.
	seen := map[string]bool{}
	list = slices.DeleteFunc(list, func(t Tracker) bool {
		key := t.World + " " + t.Agent
		if strings.Contains(t.Agent, "#W") {
			key = t.Agent
		}
		was := seen[key]
		seen[key] = true
		return was
	})
	return list, err
}

// readTracker reads the file of an agent.
func readTracker(path string) (Tracker, error) {
	var f trackerFile
	if err := readTrackerJSON(path, &f); err != nil {
		return Tracker{}, err
	}
	if f.Agent == "" {
		return Tracker{}, fmt.Errorf("%s: agent_id is missing", path)
	}
	t := Tracker{Agent: f.Agent, Type: f.Type, World: f.World, Stats: f.Stats, Entries: len(f.Entries), Events: map[string]int{}}
	for i, e := range f.Entries {
		if e.Category == "" || e.Event == "" || e.Day < 0 {
			return Tracker{}, fmt.Errorf("%s: entries[%d]: category %q, event %q, day %d: expected a name each, and a day", path, i, e.Category, e.Event, e.Day)
		}
		t.Events[e.Category+"."+e.Event]++
		t.Days = max(t.Days, e.Day+1)
	}
	return t, nil
}

// readTrackerSummary reads the summary of a folder.
func readTrackerSummary(path string) (list []Tracker, err error) {
	var f struct {
		World  string `json:"world_id"`
		Agents map[string]struct {
			Type  string       `json:"type"`
			Stats TrackerStats `json:"stats"`
		} `json:"agents"`
	}
	if err := readTrackerJSON(path, &f); err != nil {
		return nil, err
	}
	for id, a := range sorted.All(f.Agents) {
		list = append(list, Tracker{Agent: id, Type: a.Type, World: f.World, Stats: a.Stats})
	}
	return list, nil
}

func readTrackerJSON(path string, to any) error {
	text, err := os.ReadFile(path)
	if err == nil {
		err = json.Unmarshal(withoutNaN(text), to)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}
