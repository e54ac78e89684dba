package app

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/resolver"
	"google.golang.org/grpc/resolver/manual"

	"github.com/onnxrl/onnxrl/cmd/internal/apptest"
	"github.com/onnxrl/onnxrl/export/serve/grpcapi/inference"
	"github.com/onnxrl/onnxrl/runtime/longtest"
	"github.com/onnxrl/onnxrl/runtime/portable"
)

// rollingRequests is how many requests each kind of client in TestServeRollingUpdate sends;
// $ONNXRL_ROLLING_REQUESTS asks for more.
const rollingRequests = 300

// pool are the servers of a rolling update, as a load balancer sees them.
type pool struct {
	mu    sync.Mutex
	ready []string
	next  int
}

func (p *pool) add(address string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ready = append(p.ready, address)
}

// follow takes a server out of the pool when its readiness says no, or when it does not answer.
func (p *pool) follow(ctx context.Context, address string) {
	for ctx.Err() == nil {
		resp, err := http.Get("http://" + address + "/v2/health/ready")
		if err == nil {
			resp.Body.Close()
		}
		if err != nil || resp.StatusCode != 200 {
			p.mu.Lock()
			p.ready = slices.DeleteFunc(p.ready, func(a string) bool { return a == address })
			p.mu.Unlock()
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// choose takes the servers in turn.
func (p *pool) choose() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.next++
	return p.ready[p.next%len(p.ready)]
}

// keepAlive sends requests one after another on one connection, as HTTP/1.1 has it: it keeps the
// connection until an answer says that it ends, and repeats nothing.
type keepAlive struct {
	pool *pool
	conn net.Conn
	in   *bufio.Reader
	// ended counts connections that the server has ended.
	ended *atomic.Int64
}

func (k *keepAlive) ask() error {
	if k.conn == nil {
		conn, err := net.Dial("tcp", k.pool.choose())
		if err != nil {
			return fmt.Errorf("connect: %w", err)
		}
		k.conn, k.in = conn, bufio.NewReader(conn)
	}
	if _, err := fmt.Fprintf(k.conn, "POST /v2/models/m/infer HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", len(scaledRequest), scaledRequest); err != nil {
		return fmt.Errorf("send: %w", err)
	}
	resp, err := http.ReadResponse(k.in, nil)
	if err != nil {
		return fmt.Errorf("answer: %w", err)
	}
	text, err := io.ReadAll(resp.Body)
	if err == nil && (resp.StatusCode != 200 || !strings.Contains(string(text), scaledAnswer(2))) {
		err = fmt.Errorf("status %d: %s", resp.StatusCode, text)
	}
	if resp.Close {
		k.ended.Add(1)
		k.close()
	}
	return err
}

func (k *keepAlive) close() {
	if k.conn != nil {
		k.conn.Close()
		k.conn = nil
	}
}

// ordinary asks as programs do, with net/http's client: over HTTP/1.1 with a pool of connections,
// over HTTP/2 with one that all share.
func ordinary(client *http.Client, p *pool) error {
	resp, err := client.Post("http://"+p.choose()+"/v2/models/m/infer", "application/json", strings.NewReader(scaledRequest))
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err == nil && (resp.StatusCode != 200 || !strings.Contains(string(text), scaledAnswer(2))) {
		err = fmt.Errorf("status %d: %s", resp.StatusCode, text)
	}
	return err
}

// One server after another takes over while clients that keep their connections go on sending over
// HTTP and gRPC: no request is lost.
func TestServeRollingUpdate(t *testing.T) {
	longtest.Slow(t)
	t.Parallel()
	requests := int64(rollingRequests)
	if text := os.Getenv("ONNXRL_ROLLING_REQUESTS"); text != "" {
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		requests = n
	}
	model := scaledFile(t, 2)
	var delay time.Duration
	start := func() *apptest.Server {
		return apptest.StartServe(t, "--engine", portable.Name, "--model", "m="+model, "--shutdown-delay", delay.String())
	}
	// The pool must see within the delay that a server is not ready any more, on a slow and busy
	// machine as well: it has ten times what starting a server takes, which is much more work than
	// asking it once, as far as the test's own deadline allows.
	begun := time.Now()
	if code := start().Stop(); code != 0 {
		t.Fatalf("exit status %d", code)
	}
	delay = max(time.Second, 10*time.Since(begun))
	if deadline, ok := t.Deadline(); ok {
		delay = min(delay, time.Until(deadline)/10)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	web := &pool{}
	var watching sync.WaitGroup
	names := manual.NewBuilderWithScheme("rolling")
	var addresses []resolver.Address
	join := func(r *apptest.Server) {
		web.add(r.First.HTTP)
		watching.Go(func() { web.follow(ctx, r.First.HTTP) })
		addresses = append(addresses, resolver.Address{Addr: r.First.GRPC})
		if len(addresses) > 2 {
			addresses = addresses[1:]
		}
		names.UpdateState(resolver.State{Addresses: addresses})
	}
	current := start()
	names.InitialState(resolver.State{Addresses: []resolver.Address{{Addr: current.First.GRPC}}})
	conn, err := grpc.NewClient("rolling:///m", grpc.WithResolvers(names), grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithDefaultServiceConfig(`{"loadBalancingConfig":[{"round_robin":{}}]}`))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	rpc := inference.NewGRPCInferenceServiceClient(conn)
	if _, err := rpc.ModelInfer(ctx, scaledMessage()); err != nil {
		t.Fatal(err)
	}
	join(current)

	var sent, lost, ended atomic.Int64
	var first atomic.Pointer[error]
	var updates atomic.Int64
	var clients sync.WaitGroup
	client := func(share int64, ask func() error) {
		clients.Go(func() {
			for n := int64(0); n < share || updates.Load() < 3; n++ {
				if n >= share {
					// All go on until the updates are over, but leave the processors to the servers
					// and to the pool, which must see within the delay that one of them is not
					// ready any more.
					time.Sleep(20 * time.Millisecond)
				}
				sent.Add(1)
				if err := ask(); err != nil {
					lost.Add(1)
					first.CompareAndSwap(nil, &err)
					return
				}
			}
		})
	}
	const each = 4
	pooled := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: each}}
	defer pooled.CloseIdleConnections()
	two := new(http.Protocols)
	two.SetUnencryptedHTTP2(true)
	shared := &http.Client{Transport: &http.Transport{Protocols: two}}
	defer shared.CloseIdleConnections()
	for range each {
		k := &keepAlive{pool: web, ended: &ended}
		defer k.close()
		client(requests/each, k.ask)
		client(requests/each, func() error { return ordinary(pooled, web) })
		client(requests/each, func() error { return ordinary(shared, web) })
		client(requests/each, func() error {
			resp, err := rpc.ModelInfer(ctx, scaledMessage())
			if err == nil && len(resp.GetRawOutputContents()) != 1 {
				err = errors.New("no answer")
			}
			return err
		})
	}
	for range 3 {
		next := start()
		join(next)
		// Requests go to both for a while.
		for goal := sent.Load() + requests/8; sent.Load() < goal && first.Load() == nil; {
			time.Sleep(time.Millisecond)
		}
		if code := current.Stop(); code != 0 {
			t.Errorf("exit status %d\n%s", code, current.Log)
		}
		if !strings.Contains(current.Log.String(), "not ready any more") {
			t.Errorf("no word of the delay:\n%s", current.Log)
		}
		current = next
		updates.Add(1)
	}
	clients.Wait()
	cancel()
	watching.Wait()
	if code := current.Stop(); code != 0 {
		t.Errorf("exit status %d\n%s", code, current.Log)
	}
	if e := first.Load(); e != nil || lost.Load() > 0 {
		t.Errorf("%d of %d requests were lost, the first: %v", lost.Load(), sent.Load(), *e)
	}
	if sent.Load() < 4*(requests/each)*each || ended.Load() == 0 {
		t.Errorf("%d requests, %d connections that ended after their answer", sent.Load(), ended.Load())
	}
	t.Logf("%d requests during 3 updates, %d lost, %d connections ended after their answer", sent.Load(), lost.Load(), ended.Load())
}

// After SIGTERM, until the delay is over: readiness says no over both protocols, answers say that
// their connection ends, idle connections stay, new ones are taken.
func TestServeLameDuck(t *testing.T) {
	longtest.Nightly(t)
	r := apptest.StartServe(t, "--engine", portable.Name, "--model", "m="+scaledFile(t, 2), "--shutdown-delay", "5s")
	conn, err := grpc.NewClient(r.First.GRPC, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	rpc := inference.NewGRPCInferenceServiceClient(conn)
	stream, err := rpc.ModelStreamInfer(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	step := func() {
		t.Helper()
		if err := stream.Send(scaledMessage()); err != nil {
			t.Fatal(err)
		}
		if m, err := stream.Recv(); err != nil || m.GetErrorMessage() != "" {
			t.Fatal(m, err)
		}
	}
	step()
	open, ended := &pool{ready: []string{r.First.HTTP}}, &atomic.Int64{}
	kept := &keepAlive{pool: open, ended: ended}
	defer kept.close()
	for range 3 {
		if err := kept.ask(); err != nil {
			t.Fatal(err)
		}
	}
	if ended.Load() != 0 {
		t.Error("connections end before the signal")
	}
	r.Want(200, "/v2/health/ready", "")
	r.Signal(syscall.SIGTERM)
	r.Says("not ready any more")
	before := kept.conn
	if err := kept.ask(); err != nil || ended.Load() != 1 {
		t.Errorf("%v, %d connections ended", err, ended.Load())
	}
	if _, err := before.Read(make([]byte, 1)); err == nil {
		t.Error("the connection goes on")
	}
	if err := kept.ask(); err != nil || ended.Load() != 2 {
		t.Errorf("a new connection: %v, %d ended", err, ended.Load())
	}
	r.Want(503, "/v2/health/ready", "")
	r.Want(503, "/v2/models/m/ready", "")
	r.Want(200, "/v2/health/live", "")
	r.Want(200, "/v2/models/m", "")
	ready, err := rpc.ServerReady(t.Context(), &inference.ServerReadyRequest{})
	if err != nil || ready.GetReady() {
		t.Errorf("%v, %v", ready, err)
	}
	if _, err := rpc.ModelInfer(t.Context(), scaledMessage()); err != nil {
		t.Error(err)
	}
	step() // the stream that had begun
	if err := stream.CloseSend(); err != nil {
		t.Error(err)
	}
	if _, err := stream.Recv(); !errors.Is(err, io.EOF) {
		t.Error(err)
	}
	if err := r.Cmd.Wait(); err != nil || !strings.HasSuffix(r.Log.String(), "onnxrl: stopped\n") {
		t.Errorf("%v\n%s", err, r.Log)
	}
}
