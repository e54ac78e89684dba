package trader

import (
	"bytes"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/onnxrl/onnxrl/agents/experiment"
	"github.com/onnxrl/onnxrl/agents/publish"
	"github.com/onnxrl/onnxrl/envs"
	marketbars "github.com/onnxrl/onnxrl/envs/market/bars"
	"github.com/onnxrl/onnxrl/envs/market/live"
	"github.com/onnxrl/onnxrl/envs/market/prepared"
	"github.com/onnxrl/onnxrl/envs/market/trading"
	"github.com/onnxrl/onnxrl/models/artifact"
	"github.com/onnxrl/onnxrl/models/safetensors"
	"github.com/onnxrl/onnxrl/runtime/engine/testengines"
	"github.com/onnxrl/onnxrl/runtime/longtest"
	"github.com/onnxrl/onnxrl/runtime/rng"
	"github.com/onnxrl/onnxrl/runtime/sorted"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// published publishes a policy of random weights and returns the version.
func published(t *testing.T, c experiment.Config, f envs.Factory, engine int) (artifact.Version, string) {
	t.Helper()
	p := publisher(t, c, f, testengines.All(t)[engine])
	return p.version(t, policy(t, f)), p.file()
}

// demo is the shipped experiment, edited.
func demo(t *testing.T, edits ...string) experiment.Config {
	t.Helper()
	doc, err := experiment.Document("demo")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range edits {
		if err := doc.Set(e); err != nil {
			t.Fatal(err)
		}
	}
	c := experiment.Defaults()
	c.Publish = experiment.Publish{When: experiment.AtImprovements, Observations: 256, AllowTies: true}
	if err := doc.Decode(&c); err != nil {
		t.Fatal(err)
	}
	return c
}

func TestGoldenBarsAreVerified(t *testing.T) {
	for name, c := range sorted.All(longtest.Few(t, map[string]experiment.Config{"three stocks": bars(t), "the demo": demo(t), "raw prices": demo(t, "env.account.prices=raw", "env.costs.participation=0.1")}, 1)) {
		f := open(t, c)
		for i, e := range testengines.All(t) {
			v, _ := published(t, c, f, i)
			for _, with := range testengines.All(t) {
				r, err := VerifyBars(t.Context(), v, with)
				w := f.(trading.Opened).Source().Config().Window
				if err != nil || r.Bars != w-1+goldenDecisions || r.Features < 50*r.Bars || r.Decisions != goldenDecisions || r.MaxError != 0 || r.Close == r.Decisions {
					t.Errorf("%s by %s and %s: %+v, %v", name, e.Name(), with.Name(), r, err)
				}
			}
			size := int64(0)
			for _, file := range v.Files {
				if file.Title == BarsFile || file.Title == DecisionsFile {
					size += file.Size
				}
			}
			if size == 0 || size > 120_000 {
				t.Errorf("%s: golden bars of %d bytes", name, size)
			}
		}
	}
}

// A difference anywhere between bars and actions is found.
func TestGoldenBarsThatDiffer(t *testing.T) {
	c := bars(t)
	f := open(t, c)
	v, path := published(t, c, f, 0)
	e := testengines.All(t)[0]
	p, err := live.ParsePipeline(v.Manifest.Features)
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, k := range []struct {
		want   string
		golden bool
		edit   func(b *goldenBars, d *decisions)
	}{
		{"value 30 of the features of bar 0 is", true, func(b *goldenBars, _ *decisions) { b.features[30] += 1e-2 }},
		{"of the features of bar 3 is", true, func(b *goldenBars, _ *decisions) { b.bars[3*3*5+3] *= 0.99 }},
		{"of the positions is", true, func(_ *goldenBars, d *decisions) { d.position[0]++ }},
		{"of the cash is", true, func(_ *goldenBars, d *decisions) { d.cash[1] = 0 }},
		{"decision 2 for BB is", true, func(_ *goldenBars, d *decisions) {
			d.action[2*3+1] = (d.action[2*3+1] + 1) % 3
			d.margin[2] = 1
		}},
		{"element 0 of the masks", true, func(_ *goldenBars, d *decisions) { d.mask[0] = !d.mask[0] }},
		{"decisions are recorded for", true, func(_ *goldenBars, d *decisions) { d.truncate(3) }},
		{"8 decisions are recorded, and bar 8 leads to another", true, func(b *goldenBars, d *decisions) {
			// A state that has a window already.
			g, err := historyOf(f.(trading.Opened).Data())
			if err != nil {
				t.Fatal(err)
			}
			whole, err := live.New(p)
			if err != nil {
				t.Fatal(err)
			}
			end := slices.IndexFunc(g.Panel.Times, func(at time.Time) bool { return at.UnixMicro() == b.times[0] })
			if err := whole.Prime(g.Panel, 0, end); err != nil {
				t.Fatal(err)
			}
			b.state = whole.SaveState()
		}},
		{"the digest differs", false, func(b *goldenBars, _ *decisions) { b.state[50] ^= 1 }},
		{"are there already", false, func(b *goldenBars, _ *decisions) { b.times[2] = b.times[1] }},
		{"expected positive prices", false, func(b *goldenBars, _ *decisions) { b.bars[0] = -1 }},
		{`"bars" is float64[17 3 5], expected float64[16 3 5]`, false, func(b *goldenBars, _ *decisions) { b.times = b.times[:16] }},
	} {
		n++
		b, err := readGoldenBars(v, p)
		if err != nil {
			t.Fatal(err)
		}
		d, err := readDecisions(v, b.assets, false)
		if err != nil {
			t.Fatal(err)
		}
		k.edit(b, d)
		r, err := VerifyBars(t.Context(), again(t, v, path, b, d), e)
		if err == nil || !strings.Contains(err.Error(), k.want) || errors.Is(err, artifact.ErrGolden) != k.golden || !strings.Contains(err.Error(), "golden bars of ") {
			t.Errorf("error %v, expected %q; %+v", err, k.want, r)
		}
	}
	if n != 12 {
		t.Errorf("%d cases", n)
	}

	// Without the files there is nothing to compare, and a half of them is an error.
	if r, err := VerifyBars(t.Context(), again(t, v, path, nil, nil), e); err != nil || r != (BarsReport{}) {
		t.Errorf("%+v, %v", r, err)
	}
	b, err := readGoldenBars(v, p)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := VerifyBars(t.Context(), again(t, v, path, b, nil), e); err == nil || !strings.Contains(err.Error(), "there is no decisions.safetensors") {
		t.Errorf("error %v", err)
	}
}

func (d *decisions) truncate(n int) {
	k := len(d.margin)
	d.position, d.action, d.mask = d.position[:n*len(d.position)/k], d.action[:n*len(d.action)/k], d.mask[:n*len(d.mask)/k]
	d.cash, d.margin = d.cash[:n], d.margin[:n]
}

// again publishes a version with other golden bars.
func again(t *testing.T, v artifact.Version, model string, b *goldenBars, d *decisions) artifact.Version {
	t.Helper()
	s, err := artifact.Open(t.TempDir(), artifact.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	draft := artifact.Draft{Manifest: artifact.Manifest{Name: "edited", Kind: "agent", Features: v.Manifest.Features}, Model: model}
	if b != nil {
		// The file is written array by array: an edit may make their shapes contradict each other.
		var out bytes.Buffer
		rows := len(b.bars) / barColumns / b.assets
		err := safetensors.Write(&out, map[string]string{"version": "1"}, []safetensors.Tensor{
			safetensors.New("time", []int{len(b.times)}, b.times), safetensors.New("bars", []int{rows, b.assets, barColumns}, b.bars), safetensors.New("features", []int{rows, b.assets, b.width}, b.features),
			safetensors.New("status", []int{rows, b.assets}, b.status), safetensors.New("state", []int{len(b.state)}, b.state),
		})
		if err != nil {
			t.Fatal(err)
		}
		draft.Files = append(draft.Files, artifact.NewFile{Title: BarsFile, MediaType: BarsType, Data: out.Bytes()})
	}
	if d != nil {
		text, err := d.encode(b.assets)
		if err != nil {
			t.Fatal(err)
		}
		draft.Files = append(draft.Files, artifact.NewFile{Title: DecisionsFile, MediaType: DecisionsType, Data: text})
	}
	w, err := s.Publish(t.Context(), draft)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// A published agent that is given bars as they arrive decides over the whole test range what it
// decides in the back-test, and its orders are filled alike.
func TestBarsToOrdersEqualTheBacktest(t *testing.T) {
	c := demo(t)
	f := open(t, c)
	o := f.(trading.Opened)
	for i, e := range testengines.All(t) {
		v, path := published(t, c, f, i)
		p, err := live.ParsePipeline(v.Manifest.Features)
		if err != nil {
			t.Fatal(err)
		}
		// The back-test: the environment of the run.
		back, err := publish.OpenActor(t.Context(), path, f, envs.Test, e, 1)
		if err != nil {
			t.Fatal(err)
		}
		env, err := f.New(envs.Test, 0)
		if err != nil {
			t.Fatal(err)
		}
		e0 := env.(*trading.Env)
		ts := envs.NewTimeStep(env.Spec())
		if err := env.Reset(rng.New(1), ts); err != nil {
			t.Fatal(err)
		}
		// Live: nothing but the manifest, the model and bars.
		trader, err := New(t.Context(), v, e)
		if err != nil {
			t.Fatal(err)
		}
		portfolio := trader.Portfolio
		history, err := prepared.NewHistory(o.Data().Config.(prepared.Config), read(t, o))
		if err != nil {
			t.Fatal(err)
		}
		feed, err := live.New(p)
		if err != nil {
			t.Fatal(err)
		}
		begin := history.First + e0.Bar() - p.Window + 1
		if err := feed.Prime(history.Panel, 0, begin); err != nil {
			t.Fatal(err)
		}
		// A restart on another machine.
		state := feed.SaveWarm()
		if err := trader.Feed.LoadState(state); err != nil {
			t.Fatal(err)
		}
		rows := make([]live.Row, len(p.Assets))
		decided, fills, kinds := 0, 0, map[int64]int{}
		for at := begin; at < len(history.Panel.Times) && ts.Type != envs.Last; at++ {
			live.RowsAt(history.Panel, at, rows)
			if err := trader.Append(history.Panel.Times[at], rows); err != nil {
				t.Fatal(err)
			}
			if trader.Feed.Rows()-1 < e0.Bar() {
				if _, err := trader.Decide(); err == nil || !strings.Contains(err.Error(), "no whole window") {
					t.Fatalf("error %v", err)
				}
				continue
			}
			if portfolio.Value() != e0.Value() || !slices.Equal(portfolio.Account().Positions(), e0.Positions()) || !slices.Equal(portfolio.Account().Fills(), e0.Fills()) {
				t.Fatalf("%s: bar %d: value %v, fills %v, expected %v, %v", e.Name(), trader.Feed.Rows()-1, portfolio.Value(), portfolio.Account().Fills(), e0.Value(), e0.Fills())
			}
			fills += len(e0.Fills())
			if err := back.Observe(0, ts); err != nil {
				t.Fatal(err)
			}
			want, err := back.Decide()
			if err != nil {
				t.Fatal(err)
			}
			for name, x := range sorted.All(map[string]*tensor.Tensor{trading.WindowField: trader.Feed.Raw(), trading.PositionField: portfolio.Position(), trading.CashField: portfolio.Cash(), "mask": portfolio.Mask()}) {
				if !bytes.Equal(x.Bytes(), back.Policy().Input(name).Bytes()) {
					t.Fatalf("%s: bar %d: the input %q differs", e.Name(), trader.Feed.Rows()-1, name)
				}
			}
			orders, err := trader.Decide()
			if err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(orders, want.Actions.Int64s()) {
				t.Fatalf("%s: bar %d: orders %v, expected %v", e.Name(), trader.Feed.Rows()-1, orders, want.Actions.Int64s())
			}
			for _, k := range orders {
				kinds[k]++
			}
			if err := portfolio.Decide(orders); err != nil {
				t.Fatal(err)
			}
			if err := env.Step(want.Actions.Reshape(len(p.Assets)), ts); err != nil {
				t.Fatal(err)
			}
			decided++
		}
		if decided != env.Spec().MaxSteps || decided < 400 || fills < 100 || len(kinds) != 3 {
			t.Errorf("%s: %d decisions of %d, %d fills, kinds %v", e.Name(), decided, env.Spec().MaxSteps, fills, kinds)
		}
		for _, close := range []func() error{back.Close, trader.Close, env.Close} {
			if err := close(); err != nil {
				t.Error(err)
			}
		}
	}
}

// Data that have changed since the market was prepared are not published with it.
func TestChangedDataAreNoticed(t *testing.T) {
	c := bars(t)
	f := open(t, c)
	own := f.(trading.Opened).Data()
	d := trading.Data{Market: own.Market, Scales: own.Scales, Config: own.Config}
	h, err := newHistory(&d)
	if err != nil || h == nil || h.unscaled.Len() != len(d.Market.X) {
		t.Fatal(err)
	}
	if again, err := historyOf(own); err != nil || again == h {
		t.Fatal(err)
	} else if same, err := historyOf(own); err != nil || same != again {
		t.Errorf("the history of the same data is made again, %v", err)
	}
	m := *d.Market
	m.Close = slices.Clone(m.Close)
	m.Close[len(m.Close)-1]++
	d.Market = &m
	if _, err := newHistory(&d); !errors.Is(err, errChanged) || !strings.Contains(err.Error(), "the bar of CC on 2021-02-0") {
		t.Errorf("error %v", err)
	}
	m.X = m.X[1:]
	if _, err := newHistory(&d); !errors.Is(err, errChanged) {
		t.Errorf("error %v", err)
	}
	// Other data do not tell.
	d.Config = nil
	if h, err := newHistory(&d); h != nil || err != nil {
		t.Errorf("%v, %v", h, err)
	}
}

// read reads the rows of a market's data.
func read(t *testing.T, o trading.Opened) *marketbars.Data {
	t.Helper()
	d, err := prepared.Read(o.Data().Config.(prepared.Config))
	if err != nil {
		t.Fatal(err)
	}
	return d
}
