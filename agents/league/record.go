package league

// Match is what came of the games between two members, a line of the log; the JSON keys are stable.
type Match struct {
	// Generation is the one after which it was played.
	Generation int    `json:"generation"`
	A          string `json:"a"`
	B          string `json:"b"`
	// Seats has the games by the agent of the world that A played, in the order of the world's.
	Seats []Tally `json:"seats"`
}

// Tally counts games by what came of them for A.
type Tally struct {
	Seat   string `json:"seat"`
	Wins   int    `json:"wins"`
	Draws  int    `json:"draws"`
	Losses int    `json:"losses"`
	// Return is the sum of what A earned.
	Return float64 `json:"return"`
}

func (t *Tally) add(score, earned float64) {
	switch score {
	case 1:
		t.Wins++
	case 0:
		t.Losses++
	default:
		t.Draws++
	}
	t.Return += earned
}

// Games is how many were played.
func (t Tally) Games() int { return t.Wins + t.Draws + t.Losses }

// Score is the share of the points, of which a draw is half a win; 0 without games.
func (t Tally) Score() float64 {
	if t.Games() == 0 {
		return 0
	}
	return (float64(t.Wins) + float64(t.Draws)/2) / float64(t.Games())
}

// Total is that of all seats.
func (m Match) Total() (t Tally) {
	t.Seat = "all"
	for _, s := range m.Seats {
		t.Wins, t.Draws, t.Losses, t.Return = t.Wins+s.Wins, t.Draws+s.Draws, t.Losses+s.Losses, t.Return+s.Return
	}
	return t
}

// Member is one of the league, a line of the log; the JSON keys are stable.
type Member struct {
	// Generation is the one after which the learner was this, or −1 for one that was there from the
	// beginning.
	Generation int    `json:"generation"`
	Name       string `json:"name"`
	// Model is the file of the policy, relative to the league's directory unless it is of Members.
	Model string `json:"model,omitempty"`
	// EnvSteps are those that the learner had taken.
	EnvSteps int64 `json:"env_steps"`
	// Weights are how often the learner met whom in that generation, by name.
	Weights map[string]float64 `json:"weights,omitempty"`
	// RolledBack, unless empty, says how the learner has diverged in that generation: it is nobody
	// else, and plays no games.
	RolledBack string `json:"rolled_back,omitempty"`
}
