package league

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"reflect"
	"time"

	"github.com/onnxrl/onnxrl/runtime/atomicfile"
)

// Report is a tournament so far, and what it comes to; the JSON keys are stable.
type Report struct {
	Spec Spec `json:"spec"`
	// Worlds is how many there are to play, Played how many were.
	Worlds    int        `json:"worlds"`
	Played    int        `json:"played"`
	Standings []Standing `json:"standings"`
	// Differences are those of all pairs, in all worlds and in groups of them.
	Differences []Difference `json:"differences"`
	Rows        []Row        `json:"rows"`
}

// keepEvery is how often a tournament is saved.
const keepEvery = 10 * time.Second

// Report plays the worlds of a tournament on workers processors. Unless path is empty, every score
// is kept in that file: one that was stopped goes on from it, and one that is finished is only told
// again. Progress, unless nil, is called with the number of worlds played, first with that in the
// file. After an error the report has what was played.
func (s *Spec) Report(ctx context.Context, path string, workers int, progress func(played int)) (*Report, error) {
	if err := s.Validate(); err != nil {
		return nil, err
	}
	r := &Report{Spec: *s, Worlds: s.Worlds(), Rows: []Row{}}
	if path != "" {
		if err := r.load(path); err != nil {
			return nil, err
		}
	}
	if progress == nil {
		progress = func(int) {}
	}
	progress(r.Played)
	kept := time.Now()
	save := func() error {
		r.count()
		if path == "" {
			return nil
		}
		kept = time.Now()
		return atomicfile.WriteFile(path, func(w io.Writer) error { return json.NewEncoder(w).Encode(r) })
	}
	// A file that cannot be written is reported before anything is played.
	if err := save(); err != nil {
		return nil, err
	}
	err := s.Run(ctx, r.Played, workers, func(rows []Row) error {
		r.Rows = append(r.Rows, rows...)
		r.Played++
		progress(r.Played)
		if time.Since(kept) > keepEvery {
			return save()
		}
		return nil
	})
	return r, errors.Join(err, save())
}

// count works out standings and differences.
func (r *Report) count() {
	r.Standings = Standings(r.Rows)
	var names []string
	for _, s := range r.Standings {
		names = append(names, s.Name)
	}
	r.Differences = Differences(r.Rows, names, r.Spec.Seed)
}

// Between returns the difference of two competitors in all worlds, as one that name is the first
// of, if there is one.
func (r *Report) Between(name, against string) (Difference, bool) {
	for _, d := range r.Differences {
		switch {
		case d.Group != Everything:
		case d.Name == name && d.Against == against:
			return d, true
		case d.Name == against && d.Against == name:
			return d.Reversed(), true
		}
	}
	return Difference{}, false
}

// Reversed is the same difference, seen from the other side.
func (d Difference) Reversed() Difference {
	d.Name, d.Against = d.Against, d.Name
	d.Difference = -d.Difference
	if d.Low != nil && d.High != nil && d.Ahead != nil {
		low, high, ahead := -*d.High, -*d.Low, 1-*d.Ahead
		d.Low, d.High, d.Ahead = &low, &high, &ahead
	}
	return d
}

// Standing returns that of a competitor, if it has played.
func (r *Report) Standing(name string) (Standing, bool) {
	for _, s := range r.Standings {
		if s.Name == name {
			return s, true
		}
	}
	return Standing{}, false
}

// load goes on from a file, if there is one, of the same tournament.
func (r *Report) load(path string) error {
	text, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	var kept Report
	if err := json.Unmarshal(text, &kept); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	want := r.Spec
	want.Find, want.Watch, want.Follow, want.Limit = nil, nil, nil, 0 // They are not kept, and no function equals another.
	if !reflect.DeepEqual(kept.Spec, want) {
		return fmt.Errorf("%s is of another tournament: name another file, or delete it", path)
	}
	last := -1
	for i, row := range kept.Rows {
		if row.World != last && row.World != last+1 {
			return fmt.Errorf("%s: rows[%d] is of world %d, expected %d", path, i, row.World, last+1)
		}
		last = row.World
	}
	if last+1 != kept.Played {
		return fmt.Errorf("%s: %d worlds were played, and the rows are of %d", path, kept.Played, last+1)
	}
	r.Rows, r.Played = kept.Rows, kept.Played
	return nil
}
