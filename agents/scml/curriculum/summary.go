package curriculum

import (
	"fmt"
	"path/filepath"
	"strings"

	agents "github.com/onnxrl/onnxrl/agents/league"
	"github.com/onnxrl/onnxrl/envs/scml/league"
)

// Summary is what has come of a curriculum; the JSON keys are stable.
type Summary struct {
	Dir    string  `json:"dir"`
	Rounds []Round `json:"rounds"`
	// Of is how many rounds there are at most.
	Of int `json:"of"`
	// Best is the round whose agent is the best of the trials, counted from 0; −1 while that is the
	// baseline. Chosen is the one whose agent is published, which is the best.
	Best   int `json:"best"`
	Chosen int `json:"chosen"`
	// Agent is the directory of the published agent, and Evaluation the tournament that it has
	// played, once there are; without the rows.
	Agent      string         `json:"agent,omitempty"`
	Evaluation *league.Report `json:"evaluation,omitempty"`
	// Ratings are those of the competitors of the evaluation, by all of its worlds: who of two
	// scored more has won a game.
	Ratings []agents.Rating `json:"ratings,omitempty"`
}

// Summarize returns what has come of the curriculum so far.
func (c *Curriculum) Summarize() Summary {
	s := Summary{Dir: c.ledger.Dir, Rounds: append([]Round{}, c.rounds...), Of: c.c.Rounds, Best: best(c.rounds), Chosen: best(c.rounds)}
	if c.evaluation != nil {
		e := *c.evaluation
		s.Agent, s.Ratings = filepath.Join(c.ledger.Dir, AgentDir), ratings(e.Rows)
		e.Rows = nil
		s.Evaluation = &e
	}
	return s
}

// ratings rates competitors by the games of a tournament.
func ratings(rows []league.Row) []agents.Rating {
	var names []string
	seen, matches := map[string]bool{}, map[[2]string]*agents.Tally{}
	worlds := map[int][]league.Row{}
	var order []int
	for _, r := range rows {
		if !seen[r.Name] {
			seen[r.Name], names = true, append(names, r.Name)
		}
		if len(worlds[r.World]) == 0 {
			order = append(order, r.World)
		}
		worlds[r.World] = append(worlds[r.World], r)
	}
	var pairs [][2]string
	for _, w := range order {
		list := worlds[w]
		for i := range list {
			for k := i + 1; k < len(list); k++ {
				pair := [2]string{list[i].Name, list[k].Name}
				t := matches[pair]
				if t == nil {
					t = &agents.Tally{}
					matches[pair], pairs = t, append(pairs, pair)
				}
				switch a, b := list[i].Score, list[k].Score; {
				case a > b:
					t.Wins++
				case a < b:
					t.Losses++
				default:
					t.Draws++
				}
			}
		}
	}
	var all []agents.Match
	for _, p := range pairs {
		all = append(all, agents.Match{A: p[0], B: p[1], Seats: []agents.Tally{*matches[p]}})
	}
	return agents.Rate(names, all)
}

// Table returns a row for each round.
func (s *Summary) Table(dash string) (head []string, rows [][]string) {
	head = []string{"round", "from", "env steps", "score", "gain", "95 %", "won", "short", "overflow", "unsafe", "decision"}
	for _, r := range s.Rounds {
		from, steps, interval := dash, int64(0), dash
		if r.From >= 0 {
			from = fmt.Sprint(r.From + 1)
		}
		for _, n := range r.EnvSteps {
			steps += n
		}
		if r.Gain.Configs > 0 {
			interval = r.Gain.Interval(dash)
		}
		rows = append(rows, []string{
			fmt.Sprint(r.Round + 1), from, fmt.Sprint(steps), fmt.Sprintf("%.3f", r.Agent.Score), fmt.Sprintf("%+.3f", r.Agent.Score-r.Best.Score), interval,
			fmt.Sprintf("%.0f %%", 100*r.Agent.WinRate), fmt.Sprintf("%.0f %%", 100*r.Agent.Short), fmt.Sprintf("%.1f", r.Agent.Overflow), fmt.Sprint(r.Agent.Unsafe), r.Decision,
		})
	}
	return head, rows
}

// Ranking returns a row for each competitor of the evaluation, with how far the agent is ahead of
// it.
func (s *Summary) Ranking(dash string) (head []string, rows [][]string) {
	head = []string{"competitor", "score", "± s.e.", "worlds", "won", "Elo", "short", "unsafe", "the agent is ahead by", "95 %"}
	for _, st := range s.Evaluation.Standings {
		ahead, interval, elo := dash, dash, dash
		if d, ok := s.Evaluation.Between(nameAgent, st.Name); ok {
			ahead, interval = fmt.Sprintf("%+.3f", d.Difference), d.Interval(dash)
		}
		for _, r := range s.Ratings {
			if r.Name == st.Name {
				elo = fmt.Sprintf("%.0f", r.Elo)
			}
		}
		rows = append(rows, []string{st.Name, fmt.Sprintf("%.3f", st.Score), st.Spread(dash), fmt.Sprint(st.Worlds), fmt.Sprintf("%.0f %%", 100*st.WinRate), elo, fmt.Sprintf("%.0f %%", 100*st.Short), fmt.Sprint(st.Unsafe), ahead, interval})
	}
	return head, rows
}

// Text says in a few lines what the tables do not.
func (s *Summary) Text() string {
	var b strings.Builder
	for _, r := range s.Rounds {
		if r.Decision != Better {
			fmt.Fprintf(&b, "round %d %s: it %s\n", r.Round+1, r.Decision, r.Why)
		}
		if len(r.Joined) > 0 {
			fmt.Fprintf(&b, "after round %d %s joined the pool\n", r.Round+1, strings.Join(r.Joined, ", "))
		}
	}
	best := "that of round " + fmt.Sprint(s.Best+1)
	if s.Best < 0 {
		best = "the baseline"
	}
	if s.Agent != "" && len(s.Rounds) < s.Of {
		fmt.Fprintf(&b, "no agent was better than %s: training ended after %d of %d rounds\n", best, len(s.Rounds), s.Of)
	}
	if s.Agent != "" {
		fmt.Fprintf(&b, "the agent is %s: %s, the best of the trials\n", s.Agent, best)
	}
	return b.String()
}
