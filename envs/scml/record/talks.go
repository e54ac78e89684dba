package record

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	"github.com/onnxrl/onnxrl/runtime/printable"
)

// negotiationsFile is the table of the negotiations in the folder of a world.
const negotiationsFile = "negotiations.csv"

// Talks are the negotiations about a product.
type Talks struct {
	Product int `json:"product"`
	// Negotiations ended in agreements, were broken by a side, or ran out of rounds; the others
	// were left over.
	Negotiations int `json:"negotiations"`
	Agreed       int `json:"agreed"`
	Broken       int `json:"broken"`
	TimedOut     int `json:"timed_out"`
	// Offers and Rounds are those of all of them.
	Offers int `json:"offers"`
	Rounds int `json:"rounds"`
}

// Hear adds the negotiations of the folder of a world, if it has a table of them; a file has none.
// Of a table that was not written to its end the whole rows count, and Cut says so.
func (s *Summary) Hear(dir string) error {
	if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		return err
	}
	talks := map[int]*Talks{}
	err := EachNegotiation(filepath.Join(dir, negotiationsFile), func(n *Negotiation) error {
		t := talks[n.Product]
		if t == nil {
			t = &Talks{Product: n.Product}
			talks[n.Product] = t
		}
		t.Negotiations++
		t.Offers += len(n.Offers)
		t.Rounds += n.Rounds
		switch {
		case n.Agreement != nil:
			t.Agreed++
		case n.TimedOut:
			t.TimedOut++
		case n.Broken:
			t.Broken++
		}
		return nil
	})
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if s.Cut = errors.Is(err, ErrCut); err != nil && !s.Cut {
		return err
	}
	for _, t := range talks {
		s.Talks = append(s.Talks, *t)
	}
	slices.SortFunc(s.Talks, func(a, b Talks) int { return a.Product - b.Product })
	return nil
}

// printTalks writes a row for each product that was negotiated.
func (s *Summary) printTalks(out io.Writer) error {
	if len(s.Talks) == 0 {
		return nil
	}
	fmt.Fprintln(out)
	w := printable.NewNumbers(out)
	fmt.Fprintln(w, "product\tnegotiations\tagreed\tbroken\ttimed out\toffers\trounds\t")
	for _, t := range s.Talks {
		fmt.Fprintf(w, "%d\t%d\t%d\t%d\t%d\t%d\t%d\t\n", t.Product, t.Negotiations, t.Agreed, t.Broken, t.TimedOut, t.Offers, t.Rounds)
	}
	if s.Cut {
		fmt.Fprintf(w, "%s was not written to its end\n", negotiationsFile)
	}
	return w.Flush()
}
