package split

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/onnxrl/onnxrl/configs"
	"github.com/onnxrl/onnxrl/runtime/longtest"
	"github.com/onnxrl/onnxrl/runtime/rng"
	"github.com/onnxrl/onnxrl/runtime/sorted"
)

func length(s string) (l Length) {
	if err := l.UnmarshalText([]byte(s)); err != nil {
		panic(err)
	}
	return l
}

// weekdays are n days without weekends, from a date.
func weekdays(from string, n int) (list []time.Time) {
	at, err := time.Parse(time.DateOnly, from)
	for ; err == nil && len(list) < n; at = at.AddDate(0, 0, 1) {
		if d := at.Weekday(); d != time.Saturday && d != time.Sunday {
			list = append(list, at)
		}
	}
	return list
}

func TestSchemes(t *testing.T) {
	for name, c := range sorted.All(map[string]struct {
		scheme string
		times  []time.Time
		// want are the ranges of the first and of the last fold.
		names       string
		first, last string
	}{
		"by year": {"{}", weekdays("2000-01-03", 261*8), "2006 2007", "2000-01-03 to 2004-12-31, 2005-01-03 to 2005-12-30, 2006-01-02 to 2006-12-29", "2000-01-03 to 2005-12-30, 2006-01-02 to 2006-12-29, 2007-01-01 to 2007-12-31"},
		"rolling, from the middle of a year": {"{kind: rolling, train: 2y}", weekdays("2000-05-03", 261*6), "2004 2005", "2001-01-01 to 2002-12-31, 2003-01-01 to 2003-12-31, 2004-01-01 to 2004-12-31",
			"2002-01-01 to 2003-12-31, 2004-01-01 to 2004-12-31, 2005-01-03 to 2005-12-30"},
		"half a year is a fold": {"{train: 1y}", weekdays("2000-01-03", 261*2+150), "2002", "2000-01-03 to 2000-12-29, 2001-01-01 to 2001-12-31, 2002-01-01 to 2002-07-30", ""},
		"less is none":          {"{train: 1y}", weekdays("2000-01-03", 261*3+80), "2002", "2000-01-03 to 2000-12-29, 2001-01-01 to 2001-12-31, 2002-01-01 to 2002-12-31", ""},
		"by month, with a step": {"{train: 3m, valid: 1m, test: 1m, step: 2m}", weekdays("2000-01-03", 170), "2000-05-01 2000-07-03", "2000-01-03 to 2000-03-31, 2000-04-03 to 2000-04-28, 2000-05-01 to 2000-05-31", "2000-01-03 to 2000-05-31, 2000-06-01 to 2000-06-30, 2000-07-03 to 2000-07-31"},
		"by bars":               {"{kind: rolling, train: 20b, valid: 5b, test: 10b}", days(50), "2020-01-26 2020-02-05 2020-02-15", "2020-01-01 to 2020-01-20, 2020-01-21 to 2020-01-25, 2020-01-26 to 2020-02-04", "2020-01-21 to 2020-02-09, 2020-02-10 to 2020-02-14, 2020-02-15 to 2020-02-19"},
		"combinatorial":         {"{kind: combinatorial, blocks: 4, test_blocks: 1}", days(40), "blocks-1 blocks-2 blocks-3 blocks-4", "2020-01-01 to 2020-02-09, 2020-01-31 to 2020-02-09, 2020-01-01 to 2020-01-10", "2020-01-01 to 2020-02-09, 2020-01-21 to 2020-01-30, 2020-01-31 to 2020-02-09"},
	}) {
		folds, err := decode(t, c.scheme).Folds(c.times)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		var names []string
		for _, f := range folds {
			names = append(names, f.Name)
		}
		text := func(f SchemeFold) string {
			return f.Train.String() + ", " + f.Valid.String() + ", " + f.Tests[0].String()
		}
		if got := strings.Join(names, " "); got != c.names {
			t.Errorf("%s: folds %s, expected %s", name, got, c.names)
		}
		if got := text(folds[0]); got != c.first {
			t.Errorf("%s: %s, expected %s", name, got, c.first)
		}
		if got := text(folds[len(folds)-1]); c.last != "" && got != c.last {
			t.Errorf("%s: %s, expected %s", name, got, c.last)
		}
	}
}

func decode(t *testing.T, text string) Scheme {
	t.Helper()
	doc, err := configs.Parse("scheme.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	s := DefaultScheme()
	if err := doc.Decode(&s); err != nil {
		t.Fatal(err)
	}
	return s
}

func TestBadSchemes(t *testing.T) {
	cases := map[string]string{
		"{kind: forward}":       "kind",
		"{train: 5}":            "is not a length such as 5y",
		"{test: 0y}":            "is not a length",
		"{train: 250b}":         "cannot be mixed",
		"{step: 6m}":            "tested twice",
		"{step: 300b}":          "cannot be mixed",
		"{purge: -1}":           "purge",
		"{blocks: 5}":           "blocks: belongs to the kind combinatorial",
		"{kind: combinatorial}": "blocks",
		"{kind: combinatorial, blocks: 4, test_blocks: 3}": "2 that are left",
		"{train: 30y}": "are shorter than one fold",
		"{purge: 400}": "no bar left after purging 400",
	}
	refused := 0
	for text, want := range sorted.All(cases) {
		doc, err := configs.Parse("scheme.yaml", []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		s := DefaultScheme()
		if err = doc.Decode(&s); err == nil {
			_, err = s.Folds(weekdays("2000-01-03", 261*8))
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, expected %q", text, err, want)
			continue
		}
		refused++
	}
	if refused != 12 {
		t.Errorf("%d of 12 schemes are refused", refused)
	}
}

// TestSchemesDoNotLeak draws schemes and data: no bar that is learnt from, or that a policy is
// chosen by, lies within reach of a test range, or of each other; where they walk forward all of it
// lies before; and no bar is tested twice, or as often as there are paths.
func TestSchemesDoNotLeak(t *testing.T) {
	draw := rng.New(1).Stream()
	units := []string{"b", "d", "w", "m"}
	checked, kinds := 0, map[string]int{}
	draws := longtest.Cases(t, 400, 80)
	for range draws {
		s := DefaultScheme()
		s.Kind = []string{Expanding, Rolling, Combinatorial}[draw.IntN(3)]
		s.Purge, s.Embargo = draw.IntN(4), draw.IntN(4)
		if s.Kind == Combinatorial {
			s.Train, s.Valid, s.Test = Length{}, Length{}, Length{}
			s.Blocks = 3 + draw.IntN(5)
			s.TestBlocks = 1 + draw.IntN(s.Blocks-2)
		} else {
			unit := units[draw.IntN(4)]
			many := func() Length {
				return length(string(rune('1'+draw.IntN(3))) + map[bool]string{true: "0", false: ""}[unit == "b" || unit == "d"] + unit)
			}
			s.Train, s.Valid, s.Test = many(), many(), many()
			if draw.Bernoulli(0.3) {
				s.Step = Length{s.Test.N + draw.IntN(3), s.Test.Unit}
			}
		}
		times := weekdays("2001-03-08", 60+draw.IntN(300))
		if draw.Bernoulli(0.3) { // two bars a day
			for _, d := range slices.Clone(times) {
				times = append(times, d.Add(12*time.Hour))
			}
			slices.SortFunc(times, time.Time.Compare)
		}
		folds, err := s.Folds(times)
		if err != nil {
			continue // Too short, or purged to nothing: nothing is trained.
		}
		kinds[s.Kind]++
		tested := make([]int, len(times))
		for _, f := range folds {
			reach := make([]int, len(times)) // 1: learnt from, 2: chosen by
			mark := func(i, what int) {
				if reach[i] != 0 {
					t.Fatalf("%+v: fold %s uses bar %d twice", s, f.Name, i)
				}
				reach[i] = what
			}
			for i := range f.Tests {
				c := f.Split(s, i)
				at, err := c.Resolve(times)
				if err != nil {
					t.Fatal(err)
				}
				if i == 0 {
					for _, part := range at.Train.Outside(c.Gaps(times)) {
						for b := part.Lo; b < part.Hi; b++ {
							mark(b, 1)
						}
					}
					for b := at.Valid.Lo; b < at.Valid.Hi; b++ {
						mark(b, 2)
					}
					for b, what := range reach {
						for near := max(0, b-s.Purge); near < b && what != 0; near++ {
							if reach[near] != 0 && reach[near] != what {
								t.Fatalf("%+v: fold %s: bars %d and %d are learnt from and chosen by", s, f.Name, near, b)
							}
						}
					}
				}
				checked++
				for b := at.Test.Lo; b < at.Test.Hi; b++ {
					tested[b]++
					for used, what := range reach {
						switch {
						case what == 0:
						case s.Kind != Combinatorial && used >= b-s.Purge-s.Embargo && used >= at.Test.Lo-s.Purge-s.Embargo, used < b && b-used <= s.Purge, used > b && used-b <= s.Purge+s.Embargo, used == b:
							t.Fatalf("%+v: fold %s tests bar %d and uses %d (%d)", s, f.Name, b, used, what)
						}
					}
				}
			}
		}
		for b, n := range tested {
			if s.Kind == Combinatorial && n != (CombinatorialPurged{Blocks: s.Blocks, TestBlocks: s.TestBlocks}).Paths() || s.Kind != Combinatorial && n > 1 {
				t.Fatalf("%+v: bar %d is tested %d times", s, b, n)
			}
		}
	}
	if checked < draws*5/2 || kinds[Expanding] < draws/8 || kinds[Rolling] < draws/8 || kinds[Combinatorial] < draws/8 {
		t.Errorf("only %d test ranges of %v", checked, kinds)
	}
}
