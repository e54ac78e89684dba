package evolve

import (
	"testing"

	"github.com/onnxrl/onnxrl/export/report/performance"
)

// TestRest: nobody restarts in the generations at the end that are to rest, and how many there
// were since somebody did is counted.
func TestRest(t *testing.T) {
	generation := func(g int, actions ...string) (list []Record) {
		for i, a := range actions {
			list = append(list, Record{Generation: g, Member: i, Action: a, Parent: -1, Score: performance.Number(i), Distance: 0.1})
		}
		return list
	}
	s := &Search{c: Config{Generations: 6, Population: 2, Direction: "maximize", Diversity: Diversity{Threshold: 0.5, Rest: 3}}}
	for g, want := range []int{-1, 0, 0, -1, -1, -1} {
		s.records = nil
		for k := range g {
			s.records = append(s.records, generation(k, Keep, Keep))
		}
		if got := s.tooClose(); got != want {
			t.Errorf("generation %d: member %d restarts, expected %d", g, got, want)
		}
	}
	s.records = [][]Record{generation(0, Begin, Begin), generation(1, Restart, Keep), generation(2, Keep, Keep), generation(3, Keep, Keep)}
	if n := s.Summarize().SinceRestart; n != 2 {
		t.Errorf("%d generations since the last restart, expected 2", n)
	}
}
