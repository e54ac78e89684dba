package live_test

import (
	"crypto/sha256"
	"slices"
	"strings"
	"testing"

	"github.com/onnxrl/onnxrl/envs/market/bars"
	"github.com/onnxrl/onnxrl/envs/market/live"
	"github.com/onnxrl/onnxrl/envs/market/prepared"
	"github.com/onnxrl/onnxrl/runtime/longtest"
	"github.com/onnxrl/onnxrl/runtime/sorted"
)

func TestStateGoesOn(t *testing.T) {
	saved := 0
	forVariants(t, func(t *testing.T, seed uint64, v variant) {
		c, d := market(t, seed, v)
		set := mustBuild(t, c, d)
		m, f := newMatcher(t, c, d, set), mustFeed(t, set)
		list := arrivals(d)
		for i, a := range list {
			if i%37 == 0 {
				whole, warm := mustFeed(t, set), mustFeed(t, set)
				block := f.SaveState()
				// The earlier state of the feed does not matter.
				if err := whole.Append(list[len(list)-1].at, list[len(list)-1].rows); err != nil {
					t.Fatal(err)
				}
				if err := whole.LoadState(block); err != nil {
					t.Fatal(err)
				}
				if err := warm.LoadState(f.SaveWarm()); err != nil {
					t.Fatal(err)
				}
				if string(whole.SaveState()) != string(block) {
					t.Fatal("what was loaded is saved differently")
				}
				if whole.Rows() > 0 {
					m.match(t, whole)
				}
				fresh := 0
				for _, next := range list[i:min(i+set.Manifest.W+3, len(list))] {
					for _, g := range []*live.Feed{whole, warm} {
						if err := g.Append(next.at, next.rows); err != nil {
							t.Fatal(err)
						}
					}
					m.match(t, whole)
					if warm.Rows() > 0 {
						bits(t, "raw row", warm.RawRow(), whole.RawRow())
						fresh++
					}
					if warm.Ready() != (fresh >= set.Manifest.W) {
						t.Fatalf("ready after %d rows: %v", fresh, warm.Ready())
					}
					if warm.Ready() {
						bits(t, "window", warm.Scaled().Float32s(), whole.Scaled().Float32s())
					}
				}
				saved++
			}
			if err := f.Append(a.at, a.rows); err != nil {
				t.Fatal(err)
			}
		}
	})
	if saved < longtest.Cases(t, 100, 33) {
		t.Errorf("saved %d times", saved)
	}
}

func TestStatesThatDoNotFit(t *testing.T) {
	c, d := market(t, 5, variants[1])
	set := mustBuild(t, c, d)
	f, list := mustFeed(t, set), arrivals(d)
	for _, a := range list[:200] {
		if err := f.Append(a.at, a.rows); err != nil {
			t.Fatal(err)
		}
	}
	block := f.SaveState()
	sealed := func(edit func(b []byte) []byte) []byte {
		body := edit(slices.Clone(block[:len(block)-sha256.Size]))
		sum := sha256.Sum256(body)
		return append(body, sum[:]...)
	}
	other := live.NewPipeline(&set.Manifest)
	other.Features = slices.Clone(other.Features)
	other.Features[0].Mean++
	g, err := live.New(other)
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, k := range []struct {
		want  string
		block []byte
	}{
		{"0 bytes that are no state", nil},
		{"bytes that are no state", append([]byte("another "), block...)},
		{"version 2, this program knows version 1", sealed(func(b []byte) []byte { b[12] = 2; return b })},
		{"belongs to another pipeline", g.SaveState()},
		{"the digest differs", block[:len(block)-1]},
		{"the digest differs", append(slices.Clone(block[:len(block)-40]), block[len(block)-39:]...)},
		{"1 bytes too many", sealed(func(b []byte) []byte { return append(b, 0) })},
		{"are left where", sealed(func(b []byte) []byte { return b[:len(b)-1] })},
		{"the integer -1 is not between", sealed(func(b []byte) []byte { copy(b[12+1+32:], "\xff\xff\xff\xff\xff\xff\xff\xff"); return b })},
	} {
		n++
		if err := f.LoadState(k.block); err == nil || !strings.Contains(err.Error(), k.want) {
			t.Errorf("error %v, expected %q", err, k.want)
		}
		if string(f.SaveState()) != string(block) {
			t.Fatalf("%q changed the feed", k.want)
		}
	}
	if n != 9 {
		t.Errorf("%d cases", n)
	}
}

func TestPrimeIsAllOrNothing(t *testing.T) {
	c, d := market(t, 6, variants[1])
	set := mustBuild(t, c, d)
	h, err := prepared.NewHistory(c, d)
	if err != nil {
		t.Fatal(err)
	}
	f := mustFeed(t, set)
	if err := f.Prime(h.Panel, 0, 100); err != nil {
		t.Fatal(err)
	}
	before := f.SaveState()
	bad := *h.Panel
	bad.Bars = slices.Clone(bad.Bars)
	at := bad.Index(150, 0)
	for bad.Status[at] != bars.Traded {
		at++
	}
	bad.Bars[at].Low = -1
	for want, err := range sorted.All(map[string]error{
		"expected positive prices": f.Prime(&bad, 100, 200),
		"which is later":           f.Prime(h.Panel, 50, 60),
		"a history of [A]":         f.Prime(&bars.Panel{Symbols: []string{"A"}}, 0, 0),
	}) {
		if err == nil || !strings.Contains(err.Error(), "prime: ") || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, expected %q", err, want)
		}
	}
	if string(f.SaveState()) != string(before) {
		t.Error("a history that was refused changed the feed")
	}
	if err := f.Prime(h.Panel, 100, len(h.Panel.Times)); err != nil {
		t.Fatal(err)
	}
	newMatcher(t, c, d, set).match(t, f)
}

// A state of arbitrary fields is refused or leaves a feed that can go on.
func FuzzState(f *testing.F) {
	c, d := market(f, 7, variants[2])
	set := mustBuild(f, c, d)
	feed, list := mustFeed(f, set), arrivals(d)
	empty := feed.SaveState()
	const header = 12 + 1 + sha256.Size
	f.Add(empty[header : len(empty)-sha256.Size])
	for _, a := range list[:100] {
		if err := feed.Append(a.at, a.rows); err != nil {
			f.Fatal(err)
		}
	}
	full := feed.SaveState()
	f.Add(full[header : len(full)-sha256.Size])
	g := mustFeed(f, set)
	f.Fuzz(func(t *testing.T, fields []byte) {
		block := append(slices.Clone(empty[:header]), fields...)
		sum := sha256.Sum256(block)
		if g.LoadState(append(block, sum[:]...)) != nil {
			return
		}
		for _, a := range list[100:110] {
			if g.Append(a.at, a.rows) == nil {
				_, _ = g.Ready(), g.Raw()
			}
		}
		if err := g.LoadState(g.SaveState()); err != nil {
			t.Fatal(err)
		}
	})
}
