package kafkatest

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// Variable is the environment variable that names the folder of Kafka's jars.
const Variable = "ONNXRL_KAFKA"

// Broker is a broker that runs in a process of its own. Its methods are for one goroutine and end
// the test where something fails.
type Broker struct {
	t        testing.TB
	jars     string // folder
	cable    *cable // nil for a broker on loopback
	dir      string // of the properties and the data
	client   int    // port
	peer     int    // port of the controller
	process  *exec.Cmd
	gone     chan struct{} // closed when the process has ended
	log      *log
	patience time.Duration
}

// properties are the settings of a broker: the ports of the controller and of clients, the data
// directory, and the host of clients. A broker that was killed is fenced until its session is over,
// which is why that is short; one that gets no processor for so long is, too, which is why it is
// not shorter.
const properties = `process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:%[1]d
controller.listener.names=CONTROLLER
listeners=PLAINTEXT://%[4]s:%[2]d,CONTROLLER://127.0.0.1:%[1]d
advertised.listeners=PLAINTEXT://%[4]s:%[2]d
log.dirs=%[3]s
auto.create.topics.enable=false
num.network.threads=1
num.io.threads=2
background.threads=2
log.cleaner.dedupe.buffer.size=2097152
broker.session.timeout.ms=6000
broker.heartbeat.interval.ms=200
group.initial.rebalance.delay.ms=0
offsets.topic.num.partitions=1
offsets.topic.replication.factor=1
transaction.state.log.num.partitions=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
share.coordinator.state.topic.num.partitions=1
share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.min.isr=1
`

// logging prints what is wrong, and the line that says that the broker has started.
const logging = `status=warn
appenders=out
appender.out.type=Console
appender.out.name=out
appender.out.layout.type=PatternLayout
appender.out.layout.pattern=%d{HH:mm:ss.SSS} %p %c{1}: %m%n
rootLogger.level=warn
rootLogger.appenderRefs=out
rootLogger.appenderRef.out.ref=out
logger.server.name=kafka.server.KafkaRaftServer
logger.server.level=info
`

// started is what the broker prints when it takes requests.
const started = "Kafka Server started"

// Start runs a new, empty broker until it answers. Topics are not made by themselves. The test is
// skipped where there is no Kafka, see [Variable].
func Start(t testing.TB) *Broker {
	t.Helper()
	return start(t, false)
}

// StartApart is Start of a broker in a network of its own, which [Broker.Cut] parts from the test.
// It needs the rights of root over networks, as unshare --map-root-user --net gives them, and
// programs ip and nsenter.
func StartApart(t testing.TB) *Broker {
	t.Helper()
	return start(t, true)
}

func start(t testing.TB, apart bool) *Broker {
	t.Helper()
	jars := os.Getenv(Variable)
	if jars == "" {
		t.Skip(Variable + " is not set; .ci/kafka prints the folder that it names")
	}
	if found, err := filepath.Glob(filepath.Join(jars, "kafka_*.jar")); err != nil || len(found) == 0 {
		t.Fatalf("%s=%s: no kafka_*.jar in that folder, %v", Variable, jars, err)
	}
	b := &Broker{t: t, jars: jars, patience: 2 * time.Minute}
	t.Cleanup(func() {
		b.end()
		if t.Failed() && b.log != nil {
			t.Logf("Kafka says\n%s", b.Log())
		}
	})
	if apart {
		var err error
		if b.cable, err = lay(t); err != nil {
			t.Fatalf("start Kafka: %v", err)
		}
	}
	for try := 1; ; try++ {
		err := b.create()
		if err == nil {
			return b
		}
		// Another process may have taken a port that was free.
		if try == 3 || !strings.Contains(err.Error(), "Address already in use") {
			t.Fatalf("start Kafka: %v", err)
		}
	}
}

// create makes a data directory, formats it and starts the broker.
func (b *Broker) create() (err error) {
	b.end()
	b.dir = b.t.TempDir()
	if b.client, err = freePort(); err != nil {
		return err
	}
	if b.peer, err = freePort(); err != nil {
		return err
	}
	files := map[string]string{
		"server.properties": fmt.Sprintf(properties, b.peer, b.client, filepath.Join(b.dir, "data"), b.host()),
		"log4j2.properties": logging,
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(b.dir, name), []byte(text), 0o600); err != nil {
			return err
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), b.patience)
	defer cancel()
	format := b.java(ctx, "kafka.tools.StorageTool", "format", "--cluster-id", "AAAAAAAAAAAAAAAAAAAAAA", "--config", b.file("server.properties"))
	if out, err := format.CombinedOutput(); err != nil {
		return fmt.Errorf("format the storage: %w\n%s", err, out)
	}
	return b.launch()
}

// freePort finds a port on which nothing listens, below those that the system gives to outgoing
// connections: a client that tries to reach a broker that is down could be given the broker's own
// port.
func freePort() (int, error) {
	var err error
	for range 1000 {
		port := 10000 + rand.IntN(20000)
		var l net.Listener
		if l, err = net.Listen("tcp4", fmt.Sprintf("127.0.0.1:%d", port)); err == nil {
			return port, l.Close()
		}
	}
	return 0, fmt.Errorf("find a free port: %w", err)
}

func (b *Broker) file(name string) string { return filepath.Join(b.dir, name) }

// java is a command that runs a class of Kafka. It compiles little: what is short-lived starts
// sooner.
func (b *Broker) java(ctx context.Context, args ...string) *exec.Cmd {
	args = append([]string{"java", "-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1",
		"-Dlog4j2.configurationFile=" + b.file("log4j2.properties"), "-cp", filepath.Join(b.jars, "*")}, args...)
	if b.cable != nil {
		args = b.cable.beyond(args)
	}
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	cmd.Dir = b.dir
	// A test that panics, or is killed, has no cleanup.
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	return cmd
}

// launch starts the broker on its data directory and waits until it answers.
func (b *Broker) launch() error {
	b.log = &log{started: make(chan struct{})}
	b.process = b.java(context.Background(), "kafka.Kafka", b.file("server.properties"))
	out, err := b.process.StdoutPipe()
	if err != nil {
		return err
	}
	b.process.Stderr = b.process.Stdout
	if err := b.process.Start(); err != nil {
		b.process = nil
		return err
	}
	process, log, gone := b.process, b.log, make(chan struct{})
	b.gone = gone
	go func() {
		defer close(gone)
		log.read(out)
		_ = process.Wait() // How it ended is in its log.
	}()
	ctx, cancel := context.WithTimeout(context.Background(), b.patience)
	defer cancel()
	select {
	case <-log.started:
	case <-gone:
		return fmt.Errorf("the broker ended\n%s", log)
	case <-ctx.Done():
		return fmt.Errorf("the broker did not start within %v\n%s", b.patience, log)
	}
	client, err := kgo.NewClient(kgo.SeedBrokers(b.Address()))
	if err != nil {
		return err
	}
	defer client.Close()
	if err := client.Ping(ctx); err != nil {
		return fmt.Errorf("the broker does not answer: %w\n%s", err, log)
	}
	return nil
}

// Address is where clients reach the broker, host:port; it stays the same.
func (b *Broker) Address() string { return fmt.Sprintf("%s:%d", b.host(), b.client) }

func (b *Broker) host() string {
	if b.cable != nil {
		return b.cable.far
	}
	return "127.0.0.1"
}

// PID is the process, 0 while there is none.
func (b *Broker) PID() int {
	if b.process == nil {
		return 0
	}
	return b.process.Process.Pid
}

// Log is what the present process, or the last one, has printed: warnings and errors.
func (b *Broker) Log() string { return b.log.String() }

// Kill ends the broker with SIGKILL and waits until it is gone.
func (b *Broker) Kill() {
	b.t.Helper()
	b.signal(syscall.SIGKILL)
	<-b.gone
	b.process = nil
}

// Restart starts a broker that was killed on its data, and waits until it answers.
func (b *Broker) Restart() {
	b.t.Helper()
	if b.process != nil {
		b.t.Fatal("restart Kafka: it runs")
	}
	if err := b.launch(); err != nil {
		b.t.Fatalf("restart Kafka: %v", err)
	}
}

// Pause stops the process with SIGSTOP: connections stay open and nothing answers.
func (b *Broker) Pause() {
	b.t.Helper()
	b.signal(syscall.SIGSTOP)
}

// Resume lets a paused process go on.
func (b *Broker) Resume() {
	b.t.Helper()
	b.signal(syscall.SIGCONT)
}

func (b *Broker) signal(s syscall.Signal) {
	b.t.Helper()
	if b.process == nil {
		b.t.Fatalf("send %v to Kafka: it does not run", s)
	}
	if err := b.process.Process.Signal(s); err != nil {
		b.t.Fatalf("send %v to Kafka: %v\n%s", s, err, b.log)
	}
}

// end kills what may still run.
func (b *Broker) end() {
	if b.process == nil {
		return
	}
	if err := b.process.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		b.t.Errorf("end Kafka: %v", err)
	}
	<-b.gone
	b.process = nil
}

// log keeps what a process prints, and notes when it has started.
type log struct {
	mu      sync.Mutex
	text    strings.Builder
	started chan struct{}
}

// most is how much of a log is kept, in bytes.
const most = 1 << 20

// read takes lines until the process closes its output.
func (l *log) read(r io.Reader) {
	lines, seen := bufio.NewReader(r), false
	for {
		line, err := lines.ReadString('\n')
		l.mu.Lock()
		if l.text.Len() < most {
			l.text.WriteString(line)
		}
		l.mu.Unlock()
		if !seen && strings.Contains(line, started) {
			seen = true
			close(l.started)
		}
		if err != nil {
			return
		}
	}
}

// String is the log so far.
func (l *log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}
