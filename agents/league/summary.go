package league

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/onnxrl/onnxrl/agents/study"
)

// Summary is what came of a league; the JSON keys are stable.
type Summary struct {
	Dir         string `json:"dir"`
	Matchmaking string `json:"matchmaking"`
	// Generations are those that are finished, of Of.
	Generations int   `json:"generations"`
	Of          int   `json:"of"`
	EnvSteps    int64 `json:"env_steps"`
	RolledBack  int   `json:"rolled_back"`
	// Ratings are those of all members, the best first.
	Ratings []Rating `json:"ratings"`
	// Members are what the learner was, by generation, and Matches all that were played.
	Members []Member `json:"members"`
	Matches []Match  `json:"matches"`
	// Published is the file of the policy of the last generation, once it is published.
	Published string `json:"published,omitempty"`
	// Exploitability has, where the world is a matrix game, what the best response earns of the
	// newest member and of the average of all; absent in other worlds.
	Exploitability *Exploitability `json:"exploitability,omitempty"`
}

// Summarize returns what has come of the league so far.
func (l *League) Summarize() Summary {
	s := summarize(l.ledger.Dir, l.c, l.members.Records(), l.matches.Records())
	s.Published = l.published
	return s
}

// Read reads what the directory of a league has recorded, of which it may still go on.
func Read(dir string) (*Summary, error) {
	c, err := stored(dir)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", dir, err)
	}
	members, matches, err := load(dir)
	if err != nil {
		return nil, err
	}
	s := summarize(dir, c, members.Records(), matches.Records())
	return &s, nil
}

func summarize(dir string, c Config, members []Member, matches []Match) Summary {
	s := Summary{Dir: dir, Matchmaking: c.Matchmaking.Kind, Generations: len(members), Of: c.Generations, Members: append([]Member{}, members...), Matches: append([]Match{}, matches...)}
	var names []string
	for _, o := range c.Members {
		names = append(names, o.Called())
	}
	for _, m := range members {
		s.EnvSteps = m.EnvSteps
		if m.RolledBack != "" {
			s.RolledBack++
			continue
		}
		names = append(names, m.Name)
	}
	s.Ratings = Rate(names, matches)
	slices.SortStableFunc(s.Ratings, func(a, b Rating) int {
		switch {
		case a.Elo > b.Elo:
			return -1
		case a.Elo < b.Elo:
			return 1
		}
		return 0
	})
	return s
}

// shown is how many members the matrix of a table has.
const shown = 12

// Table returns the members, the best first, with their ratings, and the payoff matrix: the share
// of the points that a member has of each of the others.
func (s *Summary) Table(dash string) (head []string, rows [][]string) {
	head = []string{"member", "Elo", "95 % interval", "games", "score"}
	columns := s.Ratings[:min(shown, len(s.Ratings))]
	for i := range columns {
		head = append(head, fmt.Sprint(i+1))
	}
	points := s.Payoffs()
	for i, r := range s.Ratings {
		interval := dash
		if r.Low != nil && r.High != nil {
			interval = fmt.Sprintf("%.0f to %.0f", *r.Low, *r.High)
		}
		row := []string{fmt.Sprintf("%d %s", i+1, r.Name), fmt.Sprintf("%.0f", r.Elo), interval, fmt.Sprint(r.Games), fmt.Sprintf("%.3f", r.Score)}
		for _, c := range columns {
			t, ok := points[[2]string{r.Name, c.Name}]
			if !ok {
				row = append(row, dash)
				continue
			}
			row = append(row, fmt.Sprintf("%.2f", t.Score()))
		}
		rows = append(rows, row)
	}
	return head, rows
}

// Payoffs has the games of every two members that have played, by their names.
func (s *Summary) Payoffs() map[[2]string]Tally {
	out := map[[2]string]Tally{}
	for _, m := range s.Matches {
		for _, one := range [2]struct {
			key  [2]string
			t    Tally
			sign int
		}{{[2]string{m.A, m.B}, m.Total(), 1}, {[2]string{m.B, m.A}, m.Total(), -1}} {
			t := one.t
			if one.sign < 0 {
				t.Wins, t.Losses, t.Return = t.Losses, t.Wins, -t.Return
			}
			sum := out[one.key]
			sum.Wins, sum.Draws, sum.Losses, sum.Return = sum.Wins+t.Wins, sum.Draws+t.Draws, sum.Losses+t.Losses, sum.Return+t.Return
			out[one.key] = sum
		}
	}
	return out
}

// Print writes the table and what it means.
func (s *Summary) Print(w io.Writer) error {
	if s.Generations == 0 {
		_, err := fmt.Fprintln(w, "no generation is finished")
		return err
	}
	if err := study.Print(w, s.Table); err != nil {
		return err
	}
	_, err := fmt.Fprintf(w, "\n%s", s.Text())
	return err
}

// Text says what the table does not.
func (s *Summary) Text() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d of %d generations, %d env steps, matchmaking %s\n", s.Generations, s.Of, s.EnvSteps, s.Matchmaking)
	if s.RolledBack > 0 {
		fmt.Fprintf(&b, "the learner has diverged in %d generations, which it was rolled back from\n", s.RolledBack)
	}
	if e := s.Exploitability; e != nil {
		fmt.Fprintf(&b, "exploitability: %.4f of the average policy, %.4f of the newest\n", e.Average, e.Newest)
	}
	if s.Published != "" {
		fmt.Fprintf(&b, "published %s\n", s.Published)
	}
	return b.String()
}
