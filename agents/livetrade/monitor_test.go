package livetrade

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/onnxrl/onnxrl/configs"
	"github.com/onnxrl/onnxrl/envs/market/live"
)

// monitored is a monitor of two assets and no features.
func monitored(t *testing.T, document string) *monitor {
	t.Helper()
	doc, err := configs.Parse("risk.yaml", []byte(document))
	if err != nil {
		t.Fatal(err)
	}
	var c Risk
	if err := doc.Decode(&c); err != nil {
		t.Fatal(err)
	}
	return newMonitor(c, live.Pipeline{Assets: []string{"A", "B"}})
}

// again is the monitor as it is after a stop.
func again(t *testing.T, m *monitor) *monitor {
	t.Helper()
	text, err := json.Marshal(m.save())
	if err != nil {
		t.Fatal(err)
	}
	var s monitorState
	if err := json.Unmarshal(text, &s); err != nil {
		t.Fatal(err)
	}
	n := &monitor{config: m.config, bars: make([]bool, len(m.bars)), drift: make([]float64, len(m.drift)), scaled: m.scaled, quotes: m.quotes}
	if err := n.load(s); err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(n.save(), m.save()) {
		t.Fatalf("%+v, expected %+v", n.save(), m.save())
	}
	return n
}

var noon = time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC)

// Each action that the service can take when data are too old.
func TestStale(t *testing.T) {
	n := 0
	for _, x := range []struct {
		then string
		want level
	}{{Note, free}, {Kill, holding}} {
		m := monitored(t, "stale: {after: 5m, then: "+x.then+"}")
		if _, waits := m.due(); waits {
			t.Fatal("before the first message something is waited for")
		}
		m.bar(noon)
		if due, waits := m.due(); !waits || !due.Equal(noon.Add(5*time.Minute)) {
			t.Fatal(due, waits)
		}
		if _, ok := m.clock(noon.Add(5*time.Minute - 1)); ok {
			t.Error("too early")
		}
		m = again(t, m)
		e, ok := m.clock(noon.Add(6 * time.Minute))
		if !ok || e.what != eventStale || !e.on || e.value != 360 || e.threshold != 300 || e.action != x.then {
			t.Errorf("%+v", e)
		}
		m = again(t, m)
		if _, waits := m.due(); waits {
			t.Error("it is told twice")
		}
		var events []riskEvent
		if got := m.allow(noon.Add(7*time.Minute), &events); got != x.want || len(events) != 0 {
			t.Errorf("%s: %v, %+v", x.then, got, events)
		}
		if x.then == Kill && m.reason != eventStale {
			t.Errorf("killed by %q", m.reason)
		}
		n++
	}
	if n != 2 {
		t.Errorf("%d cases", n)
	}
}

// Too many orders of a minute, and the end of that.
func TestOrderRate(t *testing.T) {
	m := monitored(t, "orders: {per_minute: 5, then: hold}")
	var events []riskEvent
	steps := 0
	for _, x := range []struct {
		second, orders int
		want           level
		events         int
	}{
		{0, 3, free, 0}, {20, 2, free, 0}, {40, 1, holding, 1}, {59, 0, holding, 0},
		{60, 0, free, 1}, // The first three are a minute old.
		{61, 3, free, 0}, {79, 0, holding, 1}, {80, 0, free, 1}, {200, 9, free, 0}, {201, 0, holding, 1},
	} {
		m = again(t, m)
		now := noon.Add(time.Duration(x.second) * time.Second)
		if got := m.allow(now, &events); got != x.want {
			t.Errorf("second %d: %v, expected %v", x.second, got, x.want)
		}
		if len(events) != x.events {
			t.Errorf("second %d: %+v", x.second, events)
		}
		events = events[:0]
		if x.want == free {
			m.sending(now, x.orders)
		}
		steps++
	}
	if steps != 10 {
		t.Errorf("%d steps", steps)
	}
}

// The kill switch holds or flattens, over a stop, until it is taken back.
func TestKillSwitch(t *testing.T) {
	for _, x := range []struct {
		kill string
		want level
	}{{Hold, holding}, {Flatten, flattened}} {
		m := monitored(t, "kill: "+x.kill)
		e, err := m.command("kill the market is strange")
		if err != nil || e.what != eventKilled || !e.on || e.action != x.kill+": the market is strange" {
			t.Errorf("%+v, %v", e, err)
		}
		m = again(t, m)
		var events []riskEvent
		if got := m.allow(noon, &events); got != x.want || m.reason != "the market is strange" {
			t.Errorf("%v, %q", got, m.reason)
		}
		if e, err := m.command("resume"); err != nil || e.on {
			t.Errorf("%+v, %v", e, err)
		}
		if got := m.allow(noon, &events); got != free {
			t.Error(got)
		}
	}
	m := monitored(t, "kill: hold")
	for _, text := range []string{"", "kil", "Kill", "killall", "resume\n"} {
		if _, err := m.command(text); err == nil || !strings.Contains(err.Error(), "expected kill or resume") {
			t.Errorf("%q: %v", text, err)
		}
	}
	// The strictest of what holds at once counts.
	m = monitored(t, "kill: flatten\norders: {per_minute: 1, then: cut}\ninvalid: kill")
	var events []riskEvent
	m.sending(noon, 2)
	if got := m.allow(noon, &events); got != cutting {
		t.Error(got)
	}
	if got := m.invalid(json.Unmarshal([]byte("x"), new(int)), &events); got != holding || !m.killed {
		t.Error(got, m.killed)
	}
	if got := m.allow(noon, &events); got != flattened {
		t.Error(got)
	}
}
