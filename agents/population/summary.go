package population

import (
	"fmt"
	"math"

	"github.com/onnxrl/onnxrl/agents/evolve"
	"github.com/onnxrl/onnxrl/agents/study"
	"github.com/onnxrl/onnxrl/export/report/performance"
)

// Summary is what came of a population; the JSON keys are stable.
type Summary struct {
	Dir string `json:"dir"`
	// Experts are those of the newest generation, the best first, and how they came about.
	Experts evolve.Summary `json:"experts"`
	// Router has the turns of the router so far, of Turns, and Path is its newest run directory.
	Router []Turn `json:"router"`
	Turns  int    `json:"turns"`
	Path   string `json:"path,omitempty"`
	// Published is the file of the router with its experts, once it is published.
	Published string `json:"published,omitempty"`
	// Seconds say how long this process took.
	Seconds Seconds `json:"seconds"`
}

// Seconds are how long the parts of a population took in one process, by the clock.
type Seconds struct {
	// Generations are those of each generation of experts that it trained, validation and evolution
	// included, Turns of each turn of the router, with the publication of its experts, and Publish
	// of the publication at the end.
	Generations []float64 `json:"generations"`
	Turns       []float64 `json:"turns"`
	Publish     float64   `json:"publish"`
}

// Turn is one turn of the router: how many decisions it has taken in all, and its score on the
// validation split over the experts of that time.
type Turn struct {
	Decisions int64              `json:"decisions"`
	Metric    string             `json:"metric"`
	Score     performance.Number `json:"score"`
}

// Summarize returns what has come of the population so far.
func (p *Population) Summarize() Summary {
	s := Summary{Dir: p.dir, Experts: p.search.Summarize(), Router: []Turn{}, Turns: p.c.turns(), Seconds: p.seconds}
	s.Seconds.Generations, s.Seconds.Turns = append([]float64{}, p.seconds.Generations...), append([]float64{}, p.seconds.Turns...)
	for _, r := range p.turns {
		t := Turn{Decisions: r.EnvSteps, Metric: r.Metric, Score: performance.Number(math.NaN())}
		if x, ok := r.Last[r.Metric]; ok {
			t.Score = performance.Number(x)
		}
		s.Router = append(s.Router, t)
	}
	if k := len(p.turns); k > 0 {
		s.Path = p.turnDir(k - 1)
	}
	return s
}

// Table returns the experts of the newest generation, the best first.
func (s *Summary) Table(dash string) (head []string, rows [][]string) {
	head = []string{"expert", "skill", s.Experts.Metric, "action", "parent", "distance"}
	for _, m := range s.Experts.Members {
		skill, parent := dash, dash
		if m.Skill != nil {
			skill = fmt.Sprint(*m.Skill)
		}
		if m.Parent >= 0 {
			parent = fmt.Sprint(m.Parent)
		}
		rows = append(rows, []string{fmt.Sprint(m.Member), skill, study.Number(m.Score, dash), m.Action, parent, study.Number(m.Distance, dash)})
	}
	return head, rows
}

// Text says in a few lines what the table does not.
func (s *Summary) Text() string {
	text := s.Experts.Text()
	for i, t := range s.Router {
		text += fmt.Sprintf("router, turn %d of %d: %d decisions, %s %s\n", i+1, s.Turns, t.Decisions, t.Metric, study.Number(t.Score, "–"))
	}
	if s.Published != "" {
		text += fmt.Sprintf("published %s\n", s.Published)
	}
	return text
}
