package prepared

import (
	"slices"
	"testing"

	"github.com/onnxrl/onnxrl/envs/market/bars"
	"github.com/onnxrl/onnxrl/envs/market/split"
)

// TestWithout: bars that a training range is without, and those near them, do not change the
// statistics of normalisation, and those that are left do.
func TestWithout(t *testing.T) {
	text := csvText(1)
	c := config(t, text)
	c.Features.Extra = []string{"limit"}
	day := func(s string) bars.Date {
		d, err := bars.ParseDate(s)
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	test, valid := split.Range{From: day("2015-06-01"), To: day("2015-07-31")}, split.Range{From: day("2015-11-02"), To: day("2015-12-30")}
	c.Split = split.Config{Train: c.Split.Train, Valid: valid, Test: test, Without: []split.Range{test, valid}, Purge: 2, Embargo: 3}
	data, err := Read(c)
	if err != nil {
		t.Fatal(err)
	}
	build := func() *Set {
		s, err := Build(c, data)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	before := build()
	gaps := before.Manifest.TrainWithout
	if len(gaps) != 2 || before.Manifest.Split.Train.Outside(gaps)[0].Lo != 0 {
		t.Fatalf("%+v", before.Manifest)
	}
	same := func(at int) bool {
		// A bar that is changed changes features of later ones, too, so only what has no memory is
		// compared: the extra column.
		r := &data.Series[0].Records
		i := slices.IndexFunc(*r, func(r bars.Record) bool { return r.Time.Equal(before.Times[at]) })
		was := (*r)[i].Extra[0]
		(*r)[i].Extra[0] = was * 50
		defer func() { (*r)[i].Extra[0] = was }()
		after, k := build(), slices.IndexFunc(before.Manifest.Features, func(f Feature) bool { return f.Name == "limit" })
		if k < 0 {
			t.Fatal("no feature limit")
		}
		return before.Manifest.Features[k].Max == after.Manifest.Features[k].Max
	}
	checked := 0
	for _, g := range gaps {
		for _, c := range []struct {
			at   int
			same bool
		}{{g.Lo - 1, false}, {g.Lo, true}, {g.Hi - 1, true}, {g.Hi, false}} {
			if c.at >= before.Manifest.Split.Train.Hi {
				continue
			}
			checked++
			if same(c.at) != c.same {
				t.Errorf("bar %d, with gaps %v: the same statistics: %v", c.at, gaps, !c.same)
			}
		}
	}
	if checked != 6 {
		t.Errorf("%d bars", checked)
	}
}
