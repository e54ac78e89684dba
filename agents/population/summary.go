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
	// Trials are the configurations of experts that validation has chosen among: every member that
	// began, or took over from another with hyper-parameters of its own.
	Trials int `json:"trials"`
	// Published is the file of the router with its experts, or of the best expert where there is no
	// router, once it is published, and Policies are those of the experts.
	Published string   `json:"published,omitempty"`
	Policies  []string `json:"policies,omitempty"`
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
	s := Summary{Dir: p.dir, Experts: p.search.Summarize(), Router: []Turn{}, Turns: p.c.turns()}
	if f := p.chosenFrom(); f != nil {
		s.Trials = f.Trials
	}
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
