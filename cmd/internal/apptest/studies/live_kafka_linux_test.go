package studies

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/onnxrl/onnxrl/agents/livetrade"
	"github.com/onnxrl/onnxrl/cmd/internal/apptest"
	"github.com/onnxrl/onnxrl/envs/market/stream/kafkatest"
	"github.com/onnxrl/onnxrl/runtime/longtest"
	"github.com/onnxrl/onnxrl/runtime/portable"
	"github.com/onnxrl/onnxrl/runtime/rng"
)

// How often TestLiveWithKafka kills Kafka, cuts it off and kills the service.
const (
	kafkaKills     = 3
	kafkaCuts      = 3
	kafkaLiveKills = 4
)

// kafkaDemo are services with a real Kafka and trouble.
type kafkaDemo struct {
	t       *testing.T
	run     string
	dir     string
	broker  *kafkatest.Broker
	client  *kgo.Client
	want    [livetrade.Topics]string
	took    time.Duration // of a service that reads what is there
	moments *rng.Stream
	session int
	said    strings.Builder // by the service, since it was started last
}

// feedRate is how many messages a second arrive while they are traded.
const feedRate = 3000

// TestLiveWithKafka trades with a real Kafka that is killed, that is cut off, and with services
// that are killed. What is published is byte for byte that of a service without trouble, nothing
// twice and nothing left out. In every other session bars arrive while they are traded.
func TestLiveWithKafka(t *testing.T) {
	longtest.Nightly(t)
	apart := kafkatest.StartApart(t)
	run, bars := liveTrader(t)
	d := &kafkaDemo{t: t, run: run, dir: t.TempDir(), broker: apart, client: newKafkaClient(t, apart), moments: rng.New(6).Stream()}
	d.want = d.whole(bars)
	d.feed("market.bars", 0)

	kinds := 0
	for _, x := range []struct {
		name    string
		n       int
		trouble func(i int, service *exec.Cmd)
	}{
		{"Kafka was killed", kafkaKills, func(int, *exec.Cmd) {
			apart.Kill()
			time.Sleep(d.between(0, 2*time.Second)) // So long it is not there.
			apart.Restart()
		}},
		{"Kafka was cut off", kafkaCuts, func(i int, _ *exec.Cmd) {
			apart.Cut(kafkatest.Partition(i / 3 % 2))
			// Requests, and then connections, are given up after 10 s or so.
			time.Sleep([]time.Duration{d.between(0, time.Second), d.between(time.Second, 6*time.Second), d.between(9*time.Second, 16*time.Second)}[i%3])
			apart.Join()
		}},
		{"the service was killed", kafkaLiveKills, func(_ int, service *exec.Cmd) {
			_ = service.Process.Kill() // It may have ended.
		}},
	} {
		left := longtest.Times(t, x.n)
		n, sessions, began := left, d.session, time.Now()
		for left > 0 {
			d.trade(x.name, &left, func(service *exec.Cmd) { x.trouble(n-left, service) })
			t.Logf("%s: %d of %d times, %d sessions", x.name, n-left, n, d.session-sessions)
		}
		t.Logf("%s %d times in %d sessions: %v", x.name, n, d.session-sessions, time.Since(began).Round(time.Second))
		kinds++
	}
	if lines := strings.Count(d.want[livetrade.Positions], "\n"); kinds != 3 || lines < 500 {
		t.Errorf("%d kinds of trouble, %d decisions", kinds, lines)
	}
}

func newKafkaClient(t *testing.T, broker *kafkatest.Broker) *kgo.Client {
	t.Helper()
	c, err := kgo.NewClient(kgo.SeedBrokers(broker.Address()), kgo.MetadataMinAge(100*time.Millisecond))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// whole is what a service publishes without trouble, and how long it takes.
func (d *kafkaDemo) whole(bars string) [livetrade.Topics]string {
	d.t.Helper()
	out := filepath.Join(d.dir, "whole-out")
	doc := apptest.Write(d.t, "live.yaml", d.document("whole", "{kind: file, path: "+bars+"}", "{kind: file, path: "+out+"}"))
	began := time.Now()
	apptest.Succeed(d.t, "live", doc, "-q", "--engine", portable.Name)
	d.took = time.Since(began)
	return liveRecords(d.t, out)
}

func (d *kafkaDemo) between(a, b time.Duration) time.Duration {
	return a + time.Duration(d.moments.Float64()*float64(b-a))
}

// document is that of a service.
func (d *kafkaDemo) document(name, source, sink string) string {
	return "name: demo\npolicy: " + d.run + "\nfrom: " + liveFrom + "\nsnapshot: 100\nstate: " + filepath.Join(d.dir, name+"-state") + "\nsource: " + source + "\nsink: " + sink + "\n"
}

// feedArgs are those of a program that writes the messages of the bars to a topic, so many a
// second; 0 is as fast as it can.
func (d *kafkaDemo) feedArgs(topic string, rate int) []string {
	return []string{"data", "feed", d.run, "-q", "--bars", "shipped:market/us5_daily.parquet", "--to", "kafka://" + d.broker.Address() + "/" + topic, "--partitions", "3", "--encoding", "protobuf", "--rate", fmt.Sprint(rate)}
}

func (d *kafkaDemo) feed(topic string, rate int) {
	d.t.Helper()
	apptest.Succeed(d.t, d.feedArgs(topic, rate)...)
}

// trade runs services to the end of the bars, with trouble at random moments as long as some is
// left, and compares what they publish. A service that was killed is started again.
func (d *kafkaDemo) trade(what string, left *int, trouble func(service *exec.Cmd)) {
	d.t.Helper()
	d.session++
	name := fmt.Sprintf("s%d", d.session)
	prefix, arrive := name+".", d.session%2 == 0
	span, topic, end, rules := d.took, "market.bars", ", end: true", ""
	var fed chan error
	var all chan struct{}
	ctx, cancel := context.WithTimeout(d.t.Context(), 6*time.Minute)
	defer cancel()
	if arrive {
		topic, end = prefix+topic, ""
		// Who writes the bars is cut off, too, and goes on with one partition before another: more
		// times may be open at once than are by default.
		rules = "bars: {pending: 4096}\n"
		d.createTopic(ctx, topic, 3)
		for t := range livetrade.Topics {
			d.createTopic(ctx, prefix+t.String(), 1)
		}
		span += 12000 * time.Second / feedRate
		feed := apptest.Program(d.t, d.feedArgs(topic, feedRate)...)
		if err := feed.Start(); err != nil {
			d.t.Fatal(err)
		}
		fed, all = make(chan error, 1), make(chan struct{})
		go func() { fed <- feed.Wait() }()
		d.begun(ctx, topic, 3)
		positions := d.reader(prefix+livetrade.Positions.String(), 1)
		defer positions.Close()
		go func() {
			defer close(all)
			for n := strings.Count(d.want[livetrade.Positions], "\n"); n > 0 && ctx.Err() == nil; {
				n -= positions.PollFetches(ctx).NumRecords()
			}
		}()
	}
	brokers := "brokers: [\"" + d.broker.Address() + "\"], patience: 5m"
	doc := apptest.Write(d.t, "live.yaml", d.document(name, "{kind: kafka, "+brokers+", topic: "+topic+end+"}", "{kind: kafka, "+brokers+", prefix: "+prefix+", partitions: 1}")+rules)
	for again := true; again; {
		again = false
		service := apptest.Program(d.t, "live", doc, "--engine", portable.Name)
		d.said.Reset()
		service.Stdout, service.Stderr = &d.said, &d.said
		if err := service.Start(); err != nil {
			d.t.Fatal(err)
		}
		var failed error
		gone := make(chan struct{})
		go func() {
			failed = service.Wait()
			close(gone)
		}()
		var moment <-chan time.Time
		if *left > 0 {
			moment = time.After(d.between(0, span))
		}
		for running := true; running; {
			select {
			case <-moment:
				moment = nil
				select {
				case <-gone: // It was too late for trouble.
				default:
					trouble(service)
					*left--
				}
			case <-all:
				all = nil
				_ = service.Process.Signal(syscall.SIGTERM) // It may have been killed.
			case err := <-fed:
				fed = nil
				if err != nil {
					d.t.Errorf("%s: session %d: data feed: %v", what, d.session, err)
				}
			case <-gone:
				running = false
				if again = service.ProcessState.ExitCode() == -1; !again && failed != nil {
					d.t.Fatalf("%s: session %d: %v\n%s", what, d.session, failed, d.said.String())
				}
			case <-ctx.Done():
				_ = service.Process.Signal(syscall.SIGQUIT) // It says where it waits.
				<-gone
				d.t.Fatalf("%s: session %d does not end\n%s", what, d.session, d.said.String())
			}
		}
	}
	d.same(prefix)
	apptest.Says(d.t, apptest.Succeed(d.t, "live", doc, "--replay", "--engine", portable.Name), "byte for byte")
}

// same compares what is committed with what is published without trouble.
func (d *kafkaDemo) same(prefix string) {
	d.t.Helper()
	ctx, cancel := context.WithTimeout(d.t.Context(), 6*time.Minute)
	defer cancel()
	for topic := range livetrade.Topics {
		if got := d.committed(ctx, prefix+topic.String()); got != d.want[topic] {
			d.t.Fatalf("%s%v: %d records, expected %d; %s\n%v", prefix, topic, strings.Count(got, "\n"), strings.Count(d.want[topic], "\n"), differs(got, d.want[topic]), d.said.String())
		}
	}
}

// differs tells the first line that does.
func differs(got, want string) string {
	a, b := strings.Split(got, "\n"), strings.Split(want, "\n")
	i := 0
	for i < min(len(a), len(b))-1 && a[i] == b[i] {
		i++
	}
	return fmt.Sprintf("line %d is\n%s\nexpected\n%s", i+1, a[i], b[i])
}

// createTopic makes a topic.
func (d *kafkaDemo) createTopic(ctx context.Context, topic string, partitions int32) {
	d.t.Helper()
	req := kmsg.NewPtrCreateTopicsRequest()
	one := kmsg.NewCreateTopicsRequestTopic()
	one.Topic, one.NumPartitions, one.ReplicationFactor = topic, partitions, 1
	req.Topics = append(req.Topics, one)
	resp, err := req.RequestWith(ctx, d.client)
	if err == nil {
		err = kerr.ErrorForCode(resp.Topics[0].ErrorCode)
	}
	if err != nil {
		d.t.Fatal(err)
	}
}

// begun waits until every partition has rows of some times. A partition that is empty when a
// service begins is not waited for.
func (d *kafkaDemo) begun(ctx context.Context, topic string, partitions int) {
	d.t.Helper()
	c := d.reader(topic, partitions)
	defer c.Close()
	counts := map[int32]int{}
	for begun := 0; begun < partitions; {
		c.PollFetches(ctx).EachRecord(func(r *kgo.Record) {
			if counts[r.Partition]++; counts[r.Partition] == 50 {
				begun++
			}
		})
		if err := ctx.Err(); err != nil {
			d.t.Fatalf("%s: %v: %v", topic, counts, err)
		}
	}
}

// reader reads what is committed of a topic from its beginning.
func (d *kafkaDemo) reader(topic string, partitions int) *kgo.Client {
	d.t.Helper()
	starts := map[int32]kgo.Offset{}
	for id := range partitions {
		starts[int32(id)] = kgo.NewOffset().AtStart()
	}
	c, err := kgo.NewClient(kgo.SeedBrokers(d.broker.Address()), kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{topic: starts}), kgo.FetchIsolationLevel(kgo.ReadCommitted()), kgo.FetchMaxWait(50*time.Millisecond))
	if err != nil {
		d.t.Fatal(err)
	}
	return c
}

// committed are the records of a topic that a reader sees of what is committed, up to one that is
// written now: no transaction is open.
func (d *kafkaDemo) committed(ctx context.Context, topic string) string {
	d.t.Helper()
	const last = "no record"
	if err := d.client.ProduceSync(ctx, &kgo.Record{Topic: topic, Value: []byte(last)}).FirstErr(); err != nil {
		d.t.Fatal(err)
	}
	c := d.reader(topic, 1)
	defer c.Close()
	var text strings.Builder
	for {
		fetches := c.PollFetches(ctx)
		if err := ctx.Err(); err != nil {
			d.t.Fatalf("%s: %v after %d bytes", topic, err, text.Len())
		}
		for _, r := range fetches.Records() {
			if string(r.Value) == last {
				return text.String()
			}
			text.Write(r.Value)
			text.WriteByte('\n')
		}
	}
}
