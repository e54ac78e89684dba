package publish

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/onnxrl/onnxrl/agents/evaluate"
	"github.com/onnxrl/onnxrl/export/bake"
	"github.com/onnxrl/onnxrl/runtime/onnx"
	"github.com/onnxrl/onnxrl/runtime/sorted"
)

// TestPast writes records into models and reads them back.
func TestPast(t *testing.T) {
	day := func(d int) time.Time { return time.Date(2020, 1, d, 15, 30, 0, 0, time.UTC) }
	cases := []Past{
		{},
		{Trials: &Trials{Runs: 1}},
		{
			Trained: evaluate.Period{First: day(1), Last: day(9)}, Chosen: evaluate.Period{First: day(10), Last: day(12)}, LookAhead: []string{"It knows, \"all\".", "二"},
			Trials: &Trials{Runs: 3, Evaluations: 50, Searched: 20, SharpeVariance: 0.25},
		},
	}
	for _, want := range cases {
		m := &onnx.Model{}
		for k, v := range sorted.All(want.Info()) {
			m.SetMeta(bake.MetaPrefix+k, v)
		}
		got, err := PastOf(m)
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%+v, %v; expected %+v", got, err, want)
		}
	}
	refused := 0
	for key, text := range sorted.All(map[string]string{"trained_on": "yesterday", "chosen_on": "2020-01-01T00:00:00Z/soon", "look_ahead": "yes", "trials": "[3]"}) {
		m := &onnx.Model{}
		m.SetMeta(bake.MetaPrefix+key, text)
		if _, err := PastOf(m); err == nil || !strings.Contains(err.Error(), "onnxrl."+key) {
			t.Errorf("%s: %v", key, err)
		}
		refused++
	}
	if refused != 4 {
		t.Errorf("%d were refused", refused)
	}
}

func TestPeriods(t *testing.T) {
	day := func(d int) time.Time { return time.Date(2020, 1, d, 0, 0, 0, 0, time.UTC) }
	a := evaluate.Period{First: day(3), Last: day(9)}
	for _, c := range []struct {
		b, both evaluate.Period
		ok      bool
	}{
		{evaluate.Period{First: day(1), Last: day(3)}, evaluate.Period{First: day(3), Last: day(3)}, true},
		{evaluate.Period{First: day(1), Last: day(2)}, evaluate.Period{}, false},
		{evaluate.Period{First: day(5), Last: day(20)}, evaluate.Period{First: day(5), Last: day(9)}, true},
		{evaluate.Period{First: day(10), Last: day(11)}, evaluate.Period{}, false},
		{evaluate.Period{}, evaluate.Period{}, false},
	} {
		for _, p := range [][2]evaluate.Period{{a, c.b}, {c.b, a}} {
			if both, ok := p[0].Overlap(p[1]); ok != c.ok || ok && both != c.both {
				t.Errorf("%v and %v: %v, %t", p[0], p[1], both, ok)
			}
		}
	}
}

// TestJoin: what a policy began with has seen data, too.
func TestJoin(t *testing.T) {
	day := func(d int) time.Time { return time.Date(2020, 1, d, 0, 0, 0, 0, time.UTC) }
	p := Past{Trained: evaluate.Period{First: day(5), Last: day(9)}, LookAhead: []string{"a"}, Trials: &Trials{Runs: 2}}
	p.Join(Past{Trained: evaluate.Period{First: day(1), Last: day(6)}, Chosen: evaluate.Period{First: day(7), Last: day(8)}, LookAhead: []string{"a", "b"}, Trials: &Trials{Runs: 9}})
	want := Past{Trained: evaluate.Period{First: day(1), Last: day(9)}, Chosen: evaluate.Period{First: day(7), Last: day(8)}, LookAhead: []string{"a", "b"}, Trials: &Trials{Runs: 2}}
	if !reflect.DeepEqual(p, want) {
		t.Errorf("%+v, expected %+v", p, want)
	}
	if p.Join(Past{}); !reflect.DeepEqual(p, want) {
		t.Errorf("after nothing %+v", p)
	}
}
