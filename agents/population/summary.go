package population

import (
	"fmt"

	"github.com/onnxrl/onnxrl/agents/evolve"
	"github.com/onnxrl/onnxrl/agents/study"
	"github.com/onnxrl/onnxrl/export/report/performance"
)

// Summary is what came of a population; the JSON keys are stable.
type Summary struct {
	Dir string `json:"dir"`
	// Experts are those of the newest generation, the best first, and how they came about.
	Experts evolve.Summary `json:"experts"`
	// Router has the turns of the router so far, of Turns, and Path is the newest run directory of
	// the best router.
	Router []Turn `json:"router"`
	Turns  int    `json:"turns"`
	Path   string `json:"path,omitempty"`
	// Routers are those of the newest turn, the best first, and how they came about.
	Routers evolve.Summary `json:"routers"`
	// Trials are the configurations that validation has chosen among: every expert and router that
	// began, or took over from another with hyper-parameters of its own.
	Trials int `json:"trials"`
	// Published is the file of the router with its experts, or of the best expert where there is no
	// router, once it is published, and Policies are those of the experts.
	Published string   `json:"published,omitempty"`
	Policies  []string `json:"policies,omitempty"`
	// Seconds say how long this process took.
	Seconds Seconds `json:"seconds"`
}

// Seconds are how long the parts of a population took in one process, by the clock.
type Seconds struct {
	// Pretrain is that of the encoder, Generations those of each generation of experts that it
	// trained, validation and evolution included, Turns of each turn of the router, with the
	// publication of its experts, and Publish of the publication at the end.
	Pretrain    float64   `json:"pretrain,omitempty"`
	Generations []float64 `json:"generations"`
	Turns       []float64 `json:"turns"`
	Publish     float64   `json:"publish"`
}

// Turn is one turn of the router, the best where there are several: how many decisions it has taken
// in all, and its score on the validation split over the experts of that time.
type Turn struct {
	Decisions int64              `json:"decisions"`
	Metric    string             `json:"metric"`
	Score     performance.Number `json:"score"`
	// Filled counts the seats of experts that had diverged before they had a policy, in which was
	// the best of the others.
	Filled int `json:"filled,omitempty"`
}

// Summarize returns what has come of the population so far.
func (p *Population) Summarize() Summary {
	s := Summary{Dir: p.ledger.Dir, Experts: p.search.Summarize(), Router: []Turn{}, Turns: p.c.turns(), Seconds: p.seconds}
	s.Seconds.Generations, s.Seconds.Turns = append([]float64{}, p.seconds.Generations...), append([]float64{}, p.seconds.Turns...)
	if p.routers == nil {
		s.Trials = p.chosenFrom(p.search.Records(), nil).Trials
		return s
	}
	s.Routers = p.routers.Summarize()
	s.Trials = p.chosenFrom(p.search.Records(), p.routers.Records()).Trials
	for k, list := range p.routers.Records() {
		best := p.routers.Best(list)
		t := Turn{Decisions: best.EnvSteps, Metric: s.Routers.Metric, Score: best.Score}
		for _, r := range p.search.Records()[p.c.Router.after(k)-1] {
			if r.Dir == "" {
				t.Filled++
			}
		}
		s.Router = append(s.Router, t)
	}
	if m := s.Routers.Members; len(m) > 0 && m[0].Dir != "" {
		s.Path = m[0].Path
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
		text += fmt.Sprintf("router, turn %d of %d: %d decisions, %s %s", i+1, s.Turns, t.Decisions, t.Metric, study.Number(t.Score, "–"))
		if t.Filled > 0 {
			text += fmt.Sprintf("; %d seats of experts that had diverged were filled", t.Filled)
		}
		text += "\n"
	}
	if r := &s.Routers; r.Generations > 0 && (r.Population > 1 || r.RolledBack > 0) {
		text += "routers: " + r.Text()
	}
	if s.Published != "" {
		text += fmt.Sprintf("published %s\n", s.Published)
	}
	return text
}
