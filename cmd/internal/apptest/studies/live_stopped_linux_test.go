package studies

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/onnxrl/onnxrl/agents/livetrade"
	"github.com/onnxrl/onnxrl/cmd/internal/apptest"
	"github.com/onnxrl/onnxrl/envs/market/stream/kafkatest"
	"github.com/onnxrl/onnxrl/runtime/longtest"
	"github.com/onnxrl/onnxrl/runtime/portable"
)

// TestLiveStopsWithoutKafka stops services by SIGTERM while Kafka is gone: they end by themselves,
// say what is not written, and their journals are whole. Started again they wait for Kafka, and
// what is published is that of a service that nobody stopped.
func TestLiveStopsWithoutKafka(t *testing.T) {
	longtest.Nightly(t)
	broker := kafkatest.Start(t)
	run, bars := liveTrader(t)
	d := &kafkaDemo{t: t, run: run, dir: t.TempDir(), broker: broker, client: newKafkaClient(t, broker)}
	d.want = d.whole(bars)
	brokers := "brokers: [\"" + broker.Address() + "\"], patience: 3m"

	// Bars that come while Kafka is gone are traded, and are to be published.
	lines := strings.SplitAfter(apptest.ReadText(t, bars), "\n")
	first, second := lineOf(t, lines, "2011-06-01"), lineOf(t, lines, "2011-09-01")
	growing := apptest.Write(t, "growing.jsonl", strings.Join(lines[:first], ""))
	file := d.document("file", "{kind: file, path: "+growing+", follow: true}", "{kind: kafka, "+brokers+", prefix: file., partitions: 1}")
	path := apptest.Write(t, "live.yaml", file)
	s := d.start(path)
	s.Says("trades with")
	d.decided("file.positions", "2011-05-27") // The last waits for one of FB, which begins later.
	broker.Kill()
	grow(t, growing, strings.Join(lines[first:second], ""))
	s.Says("kafka: sink: brokers " + broker.Address() + ": tried again for 3m0s: ")
	if code, log := s.Stop(), s.Log.String(); code == 0 || !strings.Contains(log, "are not written, and are when the service is started again") || !strings.Contains(log, broker.Address()) || strings.Contains(log, "was cut off") {
		t.Errorf("exit status %d\n%s", code, log)
	}
	events := 0
	if err := livetrade.Events(filepath.Join(d.dir, "file-state"), 0, func(int64, *livetrade.Event) error { events++; return nil }); err != nil || events < first {
		t.Errorf("%d events, expected at least %d: %v", events, first, err)
	}
	grow(t, growing, strings.Join(lines[second:], ""))
	path = apptest.Write(t, "live.yaml", strings.Replace(file, ", follow: true", "", 1))
	s = d.start(path)
	broker.Restart()
	d.ended(s)
	d.same("file.")
	apptest.Says(t, apptest.Succeed(t, "live", path, "--replay", "--engine", portable.Name), "byte for byte")

	// One whose source is Kafka has nothing to write meanwhile.
	d.feed("market.bars", 0)
	path = apptest.Write(t, "live.yaml", d.document("kafka", "{kind: kafka, "+brokers+"}", "{kind: kafka, "+brokers+", prefix: kafka., partitions: 1}"))
	s = d.start(path)
	d.decided("kafka.positions", "2013-03-01")
	broker.Kill()
	s.Says("kafka: topic market.bars: brokers " + broker.Address() + ": tried again for 3m0s: ")
	if code := s.Stop(); code != 0 {
		t.Errorf("exit status %d\n%s", code, s.Log)
	}
	s = d.start(path)
	s.Says("kafka: sink: brokers " + broker.Address() + " have not answered so far") // It can be stopped then, too.
	s.Signal(syscall.SIGTERM)
	_ = s.Cmd.Wait()
	if log := s.Log.String(); s.Cmd.ProcessState.ExitCode() != apptest.Interrupted || strings.Contains(log, "was cut off") {
		t.Errorf("exit status %d\n%s", s.Cmd.ProcessState.ExitCode(), log)
	}
	s = d.start(path)
	broker.Restart()
	s.Says("trades with")
	d.same("kafka.")
	if code := s.Stop(); code != 0 {
		t.Errorf("exit status %d\n%s", code, s.Log)
	}
}

// lineOf is the first message of a date.
func lineOf(t *testing.T, lines []string, date string) int {
	t.Helper()
	for i, line := range lines {
		if strings.Contains(line, `"time":"`+date) {
			return i
		}
	}
	t.Fatalf("there is no row of %s", date)
	return 0
}

func grow(t *testing.T, path, text string) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteString(text); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
}

// start starts a service.
func (d *kafkaDemo) start(path string) *apptest.Server {
	d.t.Helper()
	return apptest.Launch(d.t, apptest.Program(d.t, "live", path, "--engine", portable.Name))
}

// ended waits until a service has ended by itself.
func (d *kafkaDemo) ended(s *apptest.Server) {
	d.t.Helper()
	if err := s.Cmd.Wait(); err != nil {
		d.t.Fatalf("%v\n%s", err, s.Log)
	}
}

// decided waits until the decision of a date is committed.
func (d *kafkaDemo) decided(topic, date string) {
	d.t.Helper()
	c := d.reader(topic, 1)
	defer c.Close()
	ctx, cancel := context.WithTimeout(d.t.Context(), 2*time.Minute)
	defer cancel()
	for {
		fetches := c.PollFetches(ctx)
		if err := ctx.Err(); err != nil {
			d.t.Fatalf("%s: no decision of %s: %v", topic, date, err)
		}
		for _, r := range fetches.Records() {
			if strings.Contains(string(r.Value), `"time":"`+date) {
				return
			}
		}
	}
}
