package feed_test

import (
	"math"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/onnxrl/onnxrl/envs"
	"github.com/onnxrl/onnxrl/envs/envtest"
	"github.com/onnxrl/onnxrl/envs/market/trading"
	"github.com/onnxrl/onnxrl/envs/market/trading/feed"
	"github.com/onnxrl/onnxrl/envs/market/universe"
	"github.com/onnxrl/onnxrl/runtime/rng"
)

const times, assets, features = 90, 5, 3

// data has all columns that there can be, or only those that must be.
func data(all bool) *trading.Data {
	s := rng.New(1).Stream()
	zone, err := time.LoadLocation("Asia/Shanghai")
	if err != nil {
		panic(err)
	}
	prices := func() []float64 {
		out := make([]float64, times*assets)
		for i := range out {
			out[i] = 40 + 20*s.Float64()
		}
		return out
	}
	m := &trading.Market{Assets: []string{"A", "B", "C", "D", "E"}, Features: []string{"f", "g", "h"}, X: make([]float32, times*assets*features), Open: prices(), Close: prices()}
	for t := range times {
		m.Dates = append(m.Dates, time.Date(2020, 1, 1+t/4, 9+t%4, 30, 0, 0, zone))
	}
	s.FillNormal32(m.X, 0, 1)
	for i := range times * assets {
		m.Tradable = append(m.Tradable, trading.Both)
		if i < 10*assets && i%assets == 1 {
			m.Tradable[i], m.Open[i], m.Close[i] = 0, math.NaN(), 0
		}
	}
	d := &trading.Data{Market: m, Splits: map[envs.Split]trading.Range{envs.Train: {First: 0, Last: 60}, envs.Test: {First: 61, Last: times - 1}}}
	if !all {
		return d
	}
	d.Scales = []trading.Scale{{Mean: 1, Std: 2, Clip: 3, Scaled: true, Unit: "price"}, {}, {}}
	d.TrainParts = []trading.Range{{First: 0, Last: 20}, {First: 30, Last: 60}}
	d.LookAhead, d.Notes, d.Adjusted, d.Digests = []string{"it knows"}, []string{"a note"}, "factor", map[string]string{"data_config_sha256": "abc"}
	m.Volume, m.LimitUp, m.LimitDown, m.Factor = prices(), prices(), prices(), prices()
	m.Raw = &trading.RawPrices{Open: prices(), Close: prices(), Volume: prices(), LimitUp: prices(), LimitDown: prices(), Factor: prices(), Spread: prices(), Depth: prices()}
	m.Spread, m.Depth = prices(), prices()
	m.AtOpen = append([]trading.Sides(nil), m.Tradable...)
	members := make([]universe.Membership, times*assets)
	for i := range members {
		members[i] = universe.Membership(s.IntN(3))
	}
	m.Enrol(members)
	for i := range times * assets {
		m.Gone = append(m.Gone, uint8(i%7/6))
	}
	return d
}

// bits replaces what cannot be compared: functions, and NaN, which is equal to nothing.
func bits(m *trading.Market) trading.Market {
	out := *m
	out.Checked, out.Release = false, nil
	fill := func(in []float64) []float64 {
		x := append([]float64(nil), in...)
		for i, v := range x {
			if math.IsNaN(v) {
				x[i] = -1
			}
		}
		return x
	}
	out.Open, out.Close = fill(m.Open), fill(m.Close)
	return out
}

func TestSaveOpen(t *testing.T) {
	for _, all := range []bool{false, true} {
		path := filepath.Join(t.TempDir(), "m.columns")
		want := data(all)
		if err := feed.SaveColumns(path, want); err != nil {
			t.Fatal(err)
		}
		if err := feed.VerifyColumns(path); err != nil || !feed.IsColumns(path) {
			t.Fatal(err)
		}
		got, err := feed.OpenColumns(path)
		if err != nil {
			t.Fatal(err)
		}
		g, w := bits(got.Market), bits(want.Market)
		if !reflect.DeepEqual(g.Dates[0].Format(time.RFC3339Nano), w.Dates[0].Format(time.RFC3339Nano)) || g.Dates[times-1].Unix() != w.Dates[times-1].Unix() {
			t.Errorf("dates from %v, expected %v", g.Dates[0], w.Dates[0])
		}
		g.Dates, w.Dates = nil, nil
		if !reflect.DeepEqual(g, w) || !reflect.DeepEqual(got.Splits, want.Splits) || !reflect.DeepEqual(got.TrainParts, want.TrainParts) || !reflect.DeepEqual(got.Scales, want.Scales) || !reflect.DeepEqual(got.Notes, want.Notes) ||
			!reflect.DeepEqual(got.LookAhead, want.LookAhead) || got.Adjusted != want.Adjusted || got.Digests["data_config_sha256"] != want.Digests["data_config_sha256"] || len(got.Digests["data_sha256"]) != 64 {
			t.Errorf("all columns: %v: the market changes on the way", all)
		}
		// Environments live in the mapped memory, which is released between the steps.
		c := trading.Defaults()
		c.Window = 4
		steps := 0
		for _, slots := range []int{0, 3} {
			c.Slots = slots
			source, err := trading.NewSource(got.Market, c)
			if err != nil {
				t.Fatal(err)
			}
			r := envtest.Run(t, func() (envs.Env, error) {
				got.Market.Release()
				return source.Env(got.Splits[envs.Train])
			}, envtest.Options{Steps: 200})
			steps += r.Steps
		}
		if steps < 300 {
			t.Errorf("%d steps", steps)
		}
		if err := got.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

func TestDamage(t *testing.T) {
	path := filepath.Join(t.TempDir(), "m.columns")
	if err := feed.SaveColumns(path, data(true)); err != nil {
		t.Fatal(err)
	}
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	at := strings.Index(string(whole), `"bars":90`)
	cases := []struct {
		name  string
		bytes []byte
		want  string
		open  bool // it opens, and Verify finds the damage
	}{
		{"empty", nil, "is no file of columns", false},
		{"cut off", whole[:len(whole)-100], "its end is missing", false},
		{"cut in front", whole[page:], "at", false},
		{"another index", append(append(append([]byte{}, whole[:at]...), `"bars":80`...), whole[at+9:]...), "its index is damaged", false},
		{"a number", append(append(append([]byte{}, whole[:page+100]...), whole[page+100]+1), whole[page+101:]...), "the column date was changed or is damaged", true},
	}
	for _, c := range cases {
		if err := os.WriteFile(path, c.bytes, 0o600); err != nil {
			t.Fatal(err)
		}
		d, err := feed.OpenColumns(path)
		if c.open {
			if err != nil {
				t.Fatalf("%s: %v", c.name, err)
			}
			if err := d.Close(); err != nil {
				t.Fatal(err)
			}
			err = feed.VerifyColumns(path)
		}
		if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: %v; expected %q", c.name, err, c.want)
		}
	}
	d := data(false)
	d.Market.Close[7] = -1
	if err := feed.SaveColumns(path, d); err == nil || !strings.Contains(err.Error(), "close of C on 2020-01-01 is -1") {
		t.Error(err)
	}
}

const page = 4096
