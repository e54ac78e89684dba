package transfer

import (
	"fmt"
)

// Report says what was copied and what was not. All lists are sorted by name.
type Report struct {
	// Source and Kind say what was read.
	Source string `json:"source"`
	Kind   string `json:"kind"`
	// Renamed are the changes of names; Automatic says that they were found and not asked for.
	Renamed   []Rename `json:"renamed"`
	Automatic bool     `json:"automatic"`
	// Matched are the parameters that were copied, New those of the network that the source does
	// not have, LeftOver those of the source that the network does not have.
	Matched  []Match `json:"matched"`
	New      []Param `json:"new"`
	LeftOver []Param `json:"left_over"`
	// ShapeMismatch are those that both have with different shapes; they are not copied.
	ShapeMismatch []Mismatch `json:"shape_mismatch"`
}

// Match is a parameter that both have.
type Match struct {
	Name  string `json:"name"`
	From  string `json:"from"`
	Shape []int  `json:"shape"`
}

// Param is a parameter that one side has.
type Param struct {
	Name  string `json:"name"`
	Shape []int  `json:"shape"`
}

// Mismatch is a parameter whose shapes differ.
type Mismatch struct {
	Name    string `json:"name"`
	From    string `json:"from"`
	Network []int  `json:"network_shape"`
	Source  []int  `json:"source_shape"`
}

// firstProblem names one parameter that is not matched.
func (r *Report) firstProblem() string {
	switch {
	case len(r.ShapeMismatch) > 0:
		m := r.ShapeMismatch[0]
		return fmt.Sprintf("; %q has shape %v in the network and %v in the source", m.Name, m.Network, m.Source)
	case len(r.New) > 0:
		return fmt.Sprintf("; the source has no %q%v", r.New[0].Name, r.New[0].Shape)
	}
	return ""
}

// Summary is one line: how many parameters are of which kind, and from where.
func (r *Report) Summary() string {
	s := fmt.Sprintf("%d copied from %s, %d new, %d of other shapes, %d left over", len(r.Matched), r.Source, len(r.New), len(r.ShapeMismatch), len(r.LeftOver))
	for _, n := range r.Renamed {
		how := "renamed"
		if r.Automatic {
			how = "renamed automatically"
		}
		s += fmt.Sprintf("; %s: %q to %q", how, n.From, n.To)
	}
	return s
}
