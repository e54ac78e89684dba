package studies

import (
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"

	"github.com/onnxrl/onnxrl/agents/livetrade"
	"github.com/onnxrl/onnxrl/agents/livetrade/files"
	"github.com/onnxrl/onnxrl/agents/livetrade/kafka"
	"github.com/onnxrl/onnxrl/cmd/internal/apptest"
	"github.com/onnxrl/onnxrl/runtime/longtest"
	"github.com/onnxrl/onnxrl/runtime/portable"
	"github.com/onnxrl/onnxrl/runtime/rng"
)

// liveKills is how often TestLiveKilledOften kills the service with files, and as often with Kafka,
// and TestLiveWebsocketOften with a peer.
const liveKills = 8

// liveTrader trains an agent, and writes the messages of the demo's bars for it.
func liveTrader(t *testing.T) (run, bars string) {
	t.Helper()
	dir := t.TempDir()
	run, bars = filepath.Join(dir, "run"), filepath.Join(dir, "bars.jsonl")
	apptest.Succeed(t, "train", "demo", "--engine", portable.Name, "--quiet", "--out", run, "--set", "env.mask=market", "--set", "wrappers.normalize.reward=false", "--set", "seed=4", "--set", "train.total_env_steps=40", "--set", "train.num_envs=2", "--set", "agent.n_steps=10", "--set", "train.validation.every_steps=40", "--set", "publish={observations: 64, allow_ties: true}", "--set", "agent.encoder={kind: timecnn, d_model: 8, n_layers: 1}")
	apptest.Succeed(t, "data", "feed", run, "-q", "--bars", "shipped:market/us5_daily.parquet", "--to", bars)
	return run, bars
}

const liveFrom = "2011-01-03"

// liveRecords are the records of a directory by topic.
func liveRecords(t *testing.T, dir string) (list [livetrade.Topics]string) {
	t.Helper()
	for topic := range livetrade.Topics {
		list[topic] = apptest.ReadText(t, files.Path(dir, topic))
	}
	return list
}

// TestLiveEqualsTheBacktest trades the demo's bars as a service: values, positions, fills and
// orders are those of onnxrl data live, which are those of the environment, to the bit; and the
// journal leads to the same records once more.
func TestLiveEqualsTheBacktest(t *testing.T) {
	longtest.Slow(t)
	t.Parallel()
	run, bars := liveTrader(t)
	dir := t.TempDir()
	doc := apptest.Write(t, "live.yaml", "name: demo\npolicy: "+run+"\nfrom: "+liveFrom+"\nstate: "+filepath.Join(dir, "state")+"\nsource: {kind: file, path: "+bars+"}\nsink: {kind: file, path: "+filepath.Join(dir, "out")+"}\n")
	var s struct {
		Decisions int
		Value     float64
		Bars      struct{ Messages, Times int }
	}
	if err := json.Unmarshal([]byte(apptest.Succeed(t, "live", doc, "-q", "--json", "--engine", portable.Name)), &s); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(apptest.Succeed(t, "data", "live", run, "--engine", portable.Name, "--from", liveFrom, "--bars", "shipped:market/us5_daily.parquet")), "\n")
	got := liveRecords(t, filepath.Join(dir, "out"))
	type fill struct {
		Seq                int
		Symbol             string
		Shares, Price, Fee float64
	}
	var fills []fill
	for _, line := range strings.Split(strings.TrimSpace(got[livetrade.Fills]), "\n") {
		fills = append(fills, apptest.Decoded[fill](t, line))
	}
	positions := strings.Split(strings.TrimSpace(got[livetrade.Positions]), "\n")
	signals := strings.Split(strings.TrimSpace(got[livetrade.Signals]), "\n")
	if len(lines) < 500 || len(positions) != len(lines) || len(signals) != len(lines) || s.Decisions != len(lines) || s.Bars.Messages != 12154 {
		t.Fatalf("%d times, %d positions, %d signals; %+v", len(lines), len(positions), len(signals), s)
	}
	type line struct {
		Time        string
		Value, Cash float64
		Positions   map[string]float64
		Fills       []struct {
			Asset              string
			Shares, Price, Fee float64
		}
		Orders map[string]string
	}
	filled, orders := 0, 0
	for i := range lines {
		want := apptest.Decoded[line](t, lines[i])
		p, signal := apptest.Decoded[line](t, positions[i]), apptest.Decoded[line](t, signals[i])
		if p.Time != want.Time || p.Value != want.Value || p.Cash != want.Cash || len(p.Positions) != 5 {
			t.Fatalf("%s, expected %s", positions[i], lines[i])
		}
		for _, symbol := range []string{"AAPL", "FB", "GOOG", "IBM", "MSFT"} {
			if p.Positions[symbol] != want.Positions[symbol] || signal.Orders[symbol] != want.Orders[symbol] {
				t.Fatalf("%s: %s and %s, expected %s", symbol, positions[i], signals[i], lines[i])
			}
			if want.Orders[symbol] != "hold" {
				orders++
			}
		}
		for _, f := range want.Fills {
			if got := fills[filled]; got != (fill{i + 1, f.Asset, f.Shares, f.Price, f.Fee}) {
				t.Fatalf("fill %d is %+v, expected %+v in %s", filled, got, f, lines[i])
			}
			filled++
		}
	}
	if filled != len(fills) || filled < 500 || strings.Count(got[livetrade.Orders], "\n") != orders {
		t.Errorf("%d fills of %d, %d orders of %d", filled, len(fills), orders, strings.Count(got[livetrade.Orders], "\n"))
	}
	text := apptest.Succeed(t, "live", doc, "--replay", "--engine", portable.Name)
	apptest.Says(t, text, "12155 events lead to", "byte for byte")

	// One changed digit, one record less and one more are found.
	path := files.Path(filepath.Join(dir, "out"), livetrade.Orders)
	whole := apptest.ReadText(t, path)
	at := strings.Index(whole, `"order":"sell"`)
	for _, x := range []struct{ text, want string }{
		{whole[:at] + `"order":"hold"` + whole[at+len(`"order":"sell"`):], "orders: batch 1 of 2011-01-03 00:00:00 was published as"},
		{whole[:strings.LastIndex(strings.TrimSpace(whole), "\n")+1], "which was not published"},
		{whole + "{\"v\":1,\"seq\":9999}\n", "that the journal does not lead to"},
	} {
		if err := os.WriteFile(path, []byte(x.text), 0o600); err != nil {
			t.Fatal(err)
		}
		apptest.Refuse(t, []string{"live", doc, "--replay", "--engine", portable.Name}, x.want)
	}
}

// TestLiveKilled kills services at random moments and starts them again: what they publish, to
// files and to Kafka, is byte for byte what one publishes that nobody kills, nothing twice and
// nothing left out. Kafka is kfake, which speaks its protocol.
func TestLiveKilled(t *testing.T) {
	longtest.Slow(t)
	t.Parallel()
	liveKilled(t, 1)
}

// TestLiveKilledOften kills more often.
func TestLiveKilledOften(t *testing.T) {
	longtest.Nightly(t)
	t.Parallel()
	liveKilled(t, longtest.Times(t, liveKills))
}

func liveKilled(t *testing.T, kills int) {
	t.Helper()
	run, bars := liveTrader(t)
	dir := t.TempDir()
	document := func(name, source, sink string) string {
		return apptest.Write(t, "live.yaml", "name: demo\npolicy: "+run+"\nfrom: "+liveFrom+"\nsnapshot: 100\nstate: "+filepath.Join(dir, name+"-state")+"\nsource: "+source+"\nsink: "+sink+"\n")
	}
	clear := func(name string) {
		for _, part := range []string{"-state", "-out"} {
			if err := os.RemoveAll(filepath.Join(dir, name+part)); err != nil {
				t.Fatal(err)
			}
		}
	}
	// The journal's events differ in their times of the clock and nothing else.
	file := "{kind: file, path: " + bars + "}"
	whole := document("whole", file, "{kind: file, path: "+filepath.Join(dir, "whole-out")+"}")
	began := time.Now()
	apptest.Succeed(t, "live", whole, "-q", "--engine", portable.Name)
	k := killing{t: t, took: time.Since(began), moments: rng.New(2).Stream()}
	want := liveRecords(t, filepath.Join(dir, "whole-out"))
	same := func(what string, got [livetrade.Topics]string) {
		t.Helper()
		for topic := range livetrade.Topics {
			if got[topic] != want[topic] {
				t.Fatalf("%s: %v: %d bytes, expected %d", what, topic, len(got[topic]), len(want[topic]))
			}
		}
	}
	sessions := 0
	killed := document("killed", file, "{kind: file, path: "+filepath.Join(dir, "killed-out")+"}")
	for k.left = kills; k.left > 0; sessions++ {
		clear("killed")
		k.run(func() []string { return []string{"live", killed, "-q", "--engine", portable.Name} })
		same("files", liveRecords(t, filepath.Join(dir, "killed-out")))
	}

	for k.left = kills; k.left > 0; sessions++ {
		clear("kafka")
		cluster, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.DefaultNumPartitions(2))
		if err != nil {
			t.Fatal(err)
		}
		broker := cluster.ListenAddrs()[0]
		apptest.Succeed(t, "data", "feed", run, "-q", "--bars", "shipped:market/us5_daily.parquet", "--to", "kafka://"+broker+"/market.bars", "--partitions", "3", "--encoding", "protobuf")
		doc := document("kafka", "{kind: kafka, brokers: [\""+broker+"\"], end: true}", "{kind: kafka, brokers: [\""+broker+"\"]}")
		k.run(func() []string { return []string{"live", doc, "-q", "--engine", portable.Name} })
		apptest.Says(t, apptest.Succeed(t, "live", doc, "--replay", "--engine", portable.Name), "byte for byte")
		same("kafka", kafkaRecords(t, broker))
		cluster.Close()
	}
	t.Logf("%d kills of %d services, one of which takes %v", 2*kills, sessions, k.took.Round(time.Millisecond))
}

// kafkaRecords are those of topics, as a reader of what is committed has them.
func kafkaRecords(t *testing.T, broker string) (list [livetrade.Topics]string) {
	t.Helper()
	sink := kafka.NewSink(kafka.SinkConfig{Config: kafka.Config{Brokers: []string{broker}}}, "demo")
	for topic := range livetrade.Topics {
		r, err := sink.Read(t.Context(), topic)
		if err != nil {
			t.Fatal(err)
		}
		for {
			value, err := r.Next()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			list[topic] += string(value) + "\n"
		}
		if err := r.Close(); err != nil {
			t.Fatal(err)
		}
	}
	return list
}
