package live_test

import (
	"encoding/json"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/onnxrl/onnxrl/envs/market/bars"
	"github.com/onnxrl/onnxrl/envs/market/live"
	"github.com/onnxrl/onnxrl/envs/market/prepared"
	"github.com/onnxrl/onnxrl/runtime/longtest"
	"github.com/onnxrl/onnxrl/runtime/sorted"
)

// bits compares two runs of numbers to the bit, all NaN being alike.
func bits(t *testing.T, what string, got, want []float32) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%s: %d values, expected %d", what, len(got), len(want))
	}
	for i := range got {
		if math.Float32bits(got[i]) != math.Float32bits(want[i]) && (got[i] == got[i] || want[i] == want[i]) {
			t.Fatalf("%s: value %d is %v, expected %v", what, i, got[i], want[i])
		}
	}
}

// matcher holds a feed against a set, row by row.
type matcher struct {
	set      *prepared.Set
	unscaled []float32
	windows  int
	values   int
	tradable int
	unknown  int
}

func newMatcher(t testing.TB, c prepared.Config, d *bars.Data, set *prepared.Set) *matcher {
	t.Helper()
	h, err := prepared.NewHistory(c, d)
	if err != nil {
		t.Fatal(err)
	}
	x := h.Unscaled().Float32s()
	if len(x) != len(set.X.Float32s()) || h.First != set.Manifest.DroppedRows {
		t.Fatalf("the history has %d values from row %d on, the set %d from row %d on", len(x), h.First, len(set.X.Float32s()), set.Manifest.DroppedRows)
	}
	return &matcher{set: set, unscaled: x}
}

// match compares everything that a feed shows after the row at of the set was appended.
func (m *matcher) match(t *testing.T, f *live.Feed) {
	t.Helper()
	at, k := f.Rows()-1, &m.set.Manifest
	if at < 0 {
		return
	}
	if !f.Time().Equal(m.set.Times[at]) || f.Time().Location().String() != m.set.Times[at].Location().String() {
		t.Fatalf("row %d is of %v, expected %v", at, f.Time(), m.set.Times[at])
	}
	row := k.N * k.F
	bits(t, "scaled row", f.ScaledRow(), m.set.X.Float32s()[at*row:(at+1)*row])
	bits(t, "raw row", f.RawRow(), m.unscaled[at*row:(at+1)*row])
	for n := range k.N {
		i := at*k.N + n
		if f.Status(n) != m.set.Status[i] || (f.Tradable()[n] != 0) != m.set.Tradable(at, n) || f.Open()[n] != m.set.Open[i] || f.Close()[n] != m.set.Close[i] {
			t.Fatalf("%s in row %d: %v, tradable %v, open %v, close %v, expected %v, %v, %v, %v", k.Symbols[n], at, f.Status(n), f.Tradable()[n], f.Open()[n], f.Close()[n], m.set.Status[i], m.set.Tradable(at, n), m.set.Open[i], m.set.Close[i])
		}
		if f.Tradable()[n] != 0 {
			m.tradable++
		}
		// Unknown values are NaN in at least the first column; known ones are in all.
		if (f.RawRow()[n*k.F] != f.RawRow()[n*k.F]) == m.set.Defined[i] {
			t.Fatalf("%s in row %d is defined: %v, and begins with %v", k.Symbols[n], at, m.set.Defined[i], f.RawRow()[n*k.F])
		}
		if !m.set.Defined[i] {
			m.unknown++
		}
	}
	m.values += 2 * row
	if f.Ready() != (at >= k.W-1) {
		t.Fatalf("ready in row %d: %v, and the window has %d rows", at, f.Ready(), k.W)
	}
	if !f.Ready() {
		if f.Raw() != nil || f.Scaled() != nil {
			t.Fatal("a window before there are enough rows")
		}
		return
	}
	m.windows++
	bits(t, "scaled window", f.Scaled().Float32s(), m.set.Window(at))
	bits(t, "raw window", f.Raw().Float32s(), m.unscaled[(at-k.W+1)*row:(at+1)*row])
	if !slices.Equal(f.Raw().Shape(), []int{k.W, k.N, k.F}) {
		t.Fatalf("a window of %v", f.Raw().Shape())
	}
	m.values += 2 * row * k.W
}

func TestFeedEqualsTheSet(t *testing.T) {
	values, tradable, unknown := 0, 0, 0
	forVariants(t, func(t *testing.T, seed uint64, v variant) {
		c, d := market(t, seed, v)
		set := mustBuild(t, c, d)
		m, f := newMatcher(t, c, d, set), mustFeed(t, set)
		for _, a := range arrivals(d) {
			if err := f.Append(a.at, a.rows); err != nil {
				t.Fatal(err)
			}
			m.match(t, f)
		}
		if f.Rows() != set.Manifest.T || m.windows != set.Manifest.T-set.Manifest.W+1 {
			t.Errorf("%d rows, expected %d; %d windows", f.Rows(), set.Manifest.T, m.windows)
		}
		values, tradable, unknown = values+m.values, tradable+m.tradable, unknown+m.unknown
	})
	if k := longtest.Cases(t, 3, 1); values < k*3_300_000 || tradable < k*3_300 || unknown < k*1_600 {
		t.Errorf("%d values compared, %d times tradable, %d times not known", values, tradable, unknown)
	}
}

// The stocks that come with the program, from the first bar to the last, as an experiment prepares
// them.
func TestFeedEqualsTheDemo(t *testing.T) {
	c := demo(t)
	d, err := prepared.Read(c)
	if err != nil {
		t.Fatal(err)
	}
	set := mustBuild(t, c, d)
	h, err := prepared.NewHistory(c, d)
	if err != nil {
		t.Fatal(err)
	}
	m, f := newMatcher(t, c, d, set), mustFeed(t, set)
	rows := make([]live.Row, len(h.Panel.Symbols))
	for at, now := range h.Panel.Times {
		live.RowsAt(h.Panel, at, rows)
		if err := f.Append(now, rows); err != nil {
			t.Fatal(err)
		}
		m.match(t, f)
	}
	if f.Rows() != set.Manifest.T || set.Manifest.T < 3000 || m.windows != set.Manifest.T-set.Manifest.W+1 {
		t.Errorf("%d rows of %d, %d windows", f.Rows(), set.Manifest.T, m.windows)
	}
	primed := mustFeed(t, set)
	if err := primed.Prime(h.Panel, 0, len(h.Panel.Times)); err != nil {
		t.Fatal(err)
	}
	m.match(t, primed)
}

func TestPipelineTravelsAsJSON(t *testing.T) {
	forVariants(t, func(t *testing.T, seed uint64, v variant) {
		c, d := market(t, seed, v)
		set := mustBuild(t, c, d)
		p := live.NewPipeline(&set.Manifest)
		text, err := json.Marshal(p)
		if err != nil {
			t.Fatal(err)
		}
		back, err := live.ParsePipeline(text)
		if err != nil {
			t.Fatal(err)
		}
		again, err := json.Marshal(back)
		if err != nil || string(again) != string(text) {
			t.Fatalf("error %v, %s became %s", err, text, again)
		}
		// An environment's document has the configuration under data, and then the state of one
		// feed fits the other.
		back.Config = "kind: trading\nwindow: 7\ndata:\n  " + strings.ReplaceAll(strings.TrimSpace(back.Config), "\n", "\n  ") + "\n"
		a, err := live.New(p)
		if err != nil {
			t.Fatal(err)
		}
		b, err := live.New(back)
		if err != nil {
			t.Fatal(err)
		}
		if err := b.LoadState(a.SaveState()); err != nil {
			t.Error(err)
		}
	})
}

func TestPipelinesThatDoNotFit(t *testing.T) {
	c, d := market(t, 1, variants[1])
	set := mustBuild(t, c, d)
	n := 0
	for want, edit := range sorted.All(map[string]func(p *live.Pipeline){
		"version 2, this program knows version 1":           func(p *live.Pipeline) { p.Version = 2 },
		"window: 0, expected at least 1":                    func(p *live.Pipeline) { p.Window = 0 },
		"assets: there are none":                            func(p *live.Pipeline) { p.Assets = nil },
		`assets[1]: "A" is empty or there twice`:            func(p *live.Pipeline) { p.Assets = []string{"A", "A"} },
		"features[1]: high has the mean 0, the deviation 0": func(p *live.Pipeline) { p.Features[1] = live.Feature{Name: "high", Scaled: true} },
		`features[2]: "high in ratio after 1 bars", and the configuration gives "low in ratio after 1 bars"`: func(p *live.Pipeline) { p.Features[2].Name = "high" },
		"sequence end token":               func(p *live.Pipeline) { p.Config = "[" },
		`extra column "limit" is not read`: func(p *live.Pipeline) { p.Extra = []string{"flag"} },
		"configuration gives \"listed":     func(p *live.Pipeline) { p.Features = p.Features[:len(p.Features)-1] },
		`and the configuration gives ""`:   func(p *live.Pipeline) { p.Features = append(p.Features, live.Feature{Name: "more"}) },
		`anchors: 0 for 6 assets, and data.source.anchor is "first"`: func(p *live.Pipeline) {
			p.Config, p.Adjusted = strings.Replace(p.Config, "adjust_volume:", "anchor: first\n  adjust_volume:", 1), "adj_close"
		},
		`anchors: 1 for 6 assets, and data.source.anchor is ""`: func(p *live.Pipeline) { p.Anchors = []bars.Anchor{{Symbol: "A"}} },
		`anchors[0]: of "B", from the factor 0.5 to 1; expected positive ones of "A"`: func(p *live.Pipeline) {
			p.Config, p.Adjusted = strings.Replace(p.Config, "adjust_volume:", "anchor: first\n  adjust_volume:", 1), "adj_close"
			p.Anchors = make([]bars.Anchor, 6)
			p.Anchors[0] = bars.Anchor{Symbol: "B", Factor: 0.5, UntilFactor: 1}
		},
		"unknown key":        func(p *live.Pipeline) { p.Config = "sauce: {}" },
		"is not a time zone": func(p *live.Pipeline) { p.Config = strings.Replace(p.Config, `timezone: ""`, "timezone: Moon/Base", 1) },
	}) {
		n++
		p := live.NewPipeline(&set.Manifest)
		p.Features = slices.Clone(p.Features)
		edit(&p)
		text, err := json.Marshal(p)
		if err != nil {
			t.Fatal(err)
		}
		for _, err := range []error{second(live.New(p)), second(live.ParsePipeline(text))} {
			if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "pipeline: ") {
				t.Errorf("error %v, expected %q", err, want)
			}
		}
	}
	if _, err := live.ParsePipeline([]byte(`{"version":`)); err == nil || !strings.Contains(err.Error(), "pipeline: ") {
		t.Errorf("error %v", err)
	}
	if n != 15 {
		t.Errorf("%d cases", n)
	}
}

func second[T any](_ T, err error) error { return err }

// A row that cannot follow changes nothing: after each refusal the feed is the same to the bit,
// and the right row follows.
func TestRowsThatCannotFollow(t *testing.T) {
	forVariants(t, func(t *testing.T, seed uint64, v variant) {
		c, d := market(t, seed, v)
		set := mustBuild(t, c, d)
		m, f := newMatcher(t, c, d, set), mustFeed(t, set)
		list := arrivals(d)
		refused := 0
		for i, a := range list {
			k := slices.IndexFunc(a.rows, func(r live.Row) bool { return r.Status == bars.Traded })
			if i%21 == 3 && k >= 0 {
				edited := func(edit func(r *live.Row)) []live.Row {
					rows := slices.Clone(a.rows)
					edit(&rows[k])
					return rows
				}
				before := f.SaveState()
				for _, bad := range []struct {
					want string
					at   time.Time
					rows []live.Row
				}{
					{"are there already", list[i-1].at, list[i-1].rows},
					{"which is later", list[i-2].at, list[i-2].rows},
					{"5 rows for 6 assets", a.at, a.rows[:5]},
					{"no asset has a bar", a.at, make([]live.Row, 6)},
					{"a bar of ", a.at, edited(func(r *live.Row) { r.Time = r.Time.Add(time.Minute) })},
					{"expected positive prices", a.at, edited(func(r *live.Row) { r.Close = 0 })},
					{"expected positive prices", a.at, edited(func(r *live.Row) { r.Open = math.NaN() })},
					{"expected positive prices", a.at, edited(func(r *live.Row) { r.High = r.Low / 2 })},
					{"expected positive prices", a.at, edited(func(r *live.Row) { r.High = math.Inf(1) })},
					{"expected positive prices", a.at, edited(func(r *live.Row) { r.Low = r.Close * 1.1 })},
					{"the volume -1", a.at, edited(func(r *live.Row) { r.Volume = -1 })},
					{"further columns, expected", a.at, edited(func(r *live.Row) { r.Extra = append(slices.Clone(r.Extra), 1) })},
					{"the year is not", a.at.AddDate(9000, 0, 0), a.rows},
				} {
					if err := f.Append(bad.at, bad.rows); err == nil || !strings.Contains(err.Error(), bad.want) {
						t.Fatalf("error %v, expected %q", err, bad.want)
					}
					if refused++; string(f.SaveState()) != string(before) {
						t.Fatalf("%q changed the feed", bad.want)
					}
				}
			}
			// The time of a bar may be left out.
			if i%2 == 0 {
				for n := range a.rows {
					a.rows[n].Time = time.Time{}
				}
			}
			if err := f.Append(a.at, a.rows); err != nil {
				t.Fatal(err)
			}
			m.match(t, f)
		}
		if refused < 150 {
			t.Errorf("%d refusals", refused)
		}
	})
}

func TestAppendAllocatesNothing(t *testing.T) {
	forVariants(t, func(t *testing.T, seed uint64, v variant) {
		c, d := market(t, seed, v)
		f := mustFeed(t, mustBuild(t, c, d))
		list, i := arrivals(d), 0
		if n := testing.AllocsPerRun(len(list)-10, func() {
			if err := f.Append(list[i].at, list[i].rows); err != nil {
				t.Fatal(err)
			}
			if f.Ready() {
				_, _ = f.Raw(), f.Scaled()
			}
			i++
		}); n != 0 {
			t.Errorf("%v allocations per bar", n)
		}
	})
}

func BenchmarkAppend(b *testing.B) {
	c, d := market(b, 1, variants[0])
	f := mustFeed(b, mustBuild(b, c, d))
	list := arrivals(d)
	start, span := list[0].at, list[len(list)-1].at.Sub(list[0].at)+24*time.Hour
	for i := range list {
		for n := range list[i].rows {
			list[i].rows[n].Time = time.Time{}
		}
	}
	i := 0
	b.ReportAllocs()
	for b.Loop() {
		a := &list[i%len(list)]
		if err := f.Append(start.Add(time.Duration(i/len(list))*span+a.at.Sub(start)), a.rows); err != nil {
			b.Fatal(err)
		}
		i++
	}
}
