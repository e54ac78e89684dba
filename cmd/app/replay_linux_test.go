package app

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/memory"

	"github.com/onnxrl/onnxrl/agents/replay"
	"github.com/onnxrl/onnxrl/agents/replay/flight"
	"github.com/onnxrl/onnxrl/cmd/internal/apptest"
	"github.com/onnxrl/onnxrl/runtime/longtest"
	"github.com/onnxrl/onnxrl/runtime/sorted"
)

// TestReplayServeKilled kills the program by SIGKILL while a table and a queue are written, and the
// queue is read: what was acknowledged is there, each row and each item once.
func TestReplayServeKilled(t *testing.T) {
	longtest.Slow(t)
	t.Parallel()
	server := apptest.StartReplay(t, apptest.Write(t, "replay.yaml", fmt.Sprintf("dir: %q\ntables:\n  rows: {capacity: 10000}\n  items: {selector: fifo, capacity: 16}\n", t.TempDir())))
	schema := arrow.NewSchema([]arrow.Field{
		{Name: "obs.x", Type: arrow.PrimitiveTypes.Float32}, {Name: "action", Type: arrow.PrimitiveTypes.Int64}, {Name: "reward", Type: arrow.PrimitiveTypes.Float32},
		{Name: "discount", Type: arrow.PrimitiveTypes.Float32}, {Name: "kind", Type: arrow.PrimitiveTypes.Uint8},
	}, nil)
	const batches, items = 120, 120
	// Each batch is two transitions, whose rewards are their numbers, and what follows.
	batch := func(n int) arrow.Record {
		b := array.NewRecordBuilder(memory.DefaultAllocator, schema)
		defer b.Release()
		for r, kind := range []byte{replay.RowTransition, replay.RowTransition, replay.RowNext} {
			b.Field(0).(*array.Float32Builder).Append(float32(2*n + r))
			b.Field(1).(*array.Int64Builder).Append(1)
			b.Field(2).(*array.Float32Builder).Append(float32(2*n + r))
			b.Field(3).(*array.Float32Builder).Append(1)
			b.Field(4).(*array.Uint8Builder).Append(kind)
		}
		return b.NewRecord()
	}
	c := server.Client("rows")
	rows, err := c.Writer(flight.PutCommand{Table: "rows", Writer: "actor"}, schema)
	if err != nil {
		t.Fatal(err)
	}
	queue, err := c.Writer(flight.PutCommand{Table: "items", Writer: "actor"}, schema)
	if err != nil {
		t.Fatal(err)
	}
	taken := make(chan error, 1)
	go func() {
		r, err := c.Reader(flight.SampleCommand{Table: "items"})
		for n := 0; err == nil && n < items; {
			take := min(3, items-n)
			err = r.Ask(flight.SampleRequest{Take: take})
			for ; err == nil && take > 0; take-- {
				var about flight.Sampled
				if _, about, err = r.Next(); err == nil && string(about.Meta) != fmt.Sprint(n) {
					err = fmt.Errorf("item %s, expected %d", about.Meta, n)
				}
				n++
			}
		}
		if err == nil {
			err = r.Finish()
		}
		taken <- err
	}()
	for n := range batches {
		rec := batch(n)
		if err := rows.Put(rec, nil); err != nil {
			t.Fatal(err)
		}
		if err := queue.Put(rec, json.RawMessage(fmt.Sprint(n))); err != nil {
			t.Fatal(err)
		}
		rec.Release()
		switch n % 60 {
		case 29:
			server.KillAndStart()
		case 59:
			// All is acknowledged, and nothing is under way.
			if err := rows.Flush(); err != nil {
				t.Fatal(err)
			}
			server.KillAndStart()
			if s, err := c.Stats("rows"); err != nil || s.Inserts != int64(2*(n+1)) {
				t.Fatalf("%d transitions were acknowledged, and after the kill there are %d (%v)", 2*(n+1), s.Inserts, err)
			}
		}
	}
	for _, err := range []error{rows.Close(), queue.Close(), <-taken} {
		if err != nil {
			t.Fatal(err)
		}
	}
	if s, err := c.Stats("items"); err != nil || s.Inserts != items || s.Samples != items || s.Size != 0 {
		t.Errorf("the queue after %d items: %+v (%v)", items, s, err)
	}
	r, err := c.Reader(flight.SampleCommand{Table: "rows", Batch: 2 * batches, Columns: []string{"reward", "time"}})
	if err != nil {
		t.Fatal(err)
	}
	seen := map[float32]int64{}
	for range 20 {
		if err := r.Ask(flight.SampleRequest{}); err != nil {
			t.Fatal(err)
		}
		rec, about, err := r.Next()
		if err != nil || about.Size != 2*batches {
			t.Fatal(about, err)
		}
		for i := range int(rec.NumRows()) {
			reward, at := rec.Column(0).(*array.Float32).Value(i), rec.Column(1).(*array.Int64).Value(i)
			if before, ok := seen[reward]; ok && before != at {
				t.Fatalf("transition %g is there twice, as number %d and %d", reward, before, at)
			}
			seen[reward] = at
		}
	}
	// 9,600 draws of 480 leave one out in a million times.
	if len(seen) != 2*batches {
		t.Errorf("%d transitions were drawn, expected all %d", len(seen), 2*batches)
	}
	if code := server.Stop(); code != 0 {
		t.Errorf("exit status %d\n%s", code, server.Log)
	}
}

// certified writes a certificate for 127.0.0.1, which is valid between two times, and its key.
func certified(t *testing.T, from, to time.Time) (cert, key string) {
	t.Helper()
	k, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: from, NotAfter: to, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &k.PublicKey, k)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalECPrivateKey(k)
	if err != nil {
		t.Fatal(err)
	}
	return apptest.Write(t, "cert.pem", string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))), apptest.Write(t, "key.pem", string(pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: secret})))
}

// TestReplayRefuses: a run that cannot have its replay says why, at once where waiting would not
// help.
func TestReplayRefuses(t *testing.T) {
	longtest.Slow(t)
	t.Parallel()
	now := time.Now()
	cert, key := certified(t, now.Add(-time.Hour), now.Add(time.Hour))
	oldCert, oldKey := certified(t, now.Add(-2*time.Hour), now.Add(-time.Hour))
	token, wrong := apptest.Write(t, "token", "secret\n"), apptest.Write(t, "token", "another\n")
	tables := "tables:\n  transitions: {capacity: 1000}\n  queue: {selector: fifo, capacity: 10}\n"
	plain := apptest.StartReplay(t, apptest.Write(t, "replay.yaml", tables))
	safe := apptest.StartReplay(t, apptest.Write(t, "replay.yaml", fmt.Sprintf("token_file: %q\ntls: {cert: %q, key: %q}\n", token, cert, key)+tables))
	old := apptest.StartReplay(t, apptest.Write(t, "replay.yaml", fmt.Sprintf("tls: {cert: %q, key: %q}\n", oldCert, oldKey)+tables))
	mutual := apptest.StartReplay(t, apptest.Write(t, "replay.yaml", fmt.Sprintf("tls: {cert: %q, key: %q, client_ca: %q}\n", cert, key, cert)+tables))
	document := func(env, replay string) string {
		return apptest.Write(t, "run.yaml", "seed: 1\nenv: "+env+"\nagent: {kind: dqn, batch_size: 8, buffer_size: 500, learning_starts: 20, train_freq: 4, gradient_steps: 1, hidden: [4]}\nreplay: {kind: flight, "+replay+"}\ntrain: {num_envs: 1, total_env_steps: 60, threads: 1, validation: {every_steps: 60}}\neval: {episodes: 2}\npublish: {when: never}\n")
	}
	const cartpole = "{kind: cartpole}"
	train := func(document string) []string {
		return []string{"train", "-q", document, "--out", t.TempDir() + "/run"}
	}
	// This one says what the table has.
	apptest.Succeed(t, train(document(cartpole, fmt.Sprintf("url: %q", plain.URL)))...)
	apptest.Succeed(t, train(document(cartpole, fmt.Sprintf("url: %q, ca: %q, token_file: %q", safe.URL, cert, token)))...)
	for _, x := range []struct {
		env, replay string
		says        []string
	}{
		{cartpole, fmt.Sprintf("url: %q, table: nothing", plain.URL), []string{plain.URL, `there is no table "nothing"`, `"transitions"`}},
		{cartpole, fmt.Sprintf("url: %q, table: queue", plain.URL), []string{"queue", "can be sampled"}},
		{"{kind: corridor, cells: 6}", fmt.Sprintf("url: %q", plain.URL), []string{"table transitions", "obs.", "schema"}},
		{cartpole, fmt.Sprintf("url: %q, ca: %q, token_file: %q", safe.URL, cert, wrong), []string{"bearer token"}},
		{cartpole, fmt.Sprintf("url: %q, ca: %q", safe.URL, cert), []string{"bearer token"}},
		{cartpole, fmt.Sprintf("url: %q", safe.URL), []string{"certificate", "unknown authority"}},
		{cartpole, fmt.Sprintf("url: %q, ca: %q", old.URL, oldCert), []string{"certificate", "expired"}},
		{cartpole, fmt.Sprintf("url: %q, ca: %q", mutual.URL, cert), []string{"refuses the connection", "certificate required"}},
		{cartpole, fmt.Sprintf("url: %q, ca: %q", strings.Replace(plain.URL, "grpc:", "grpc+tls:", 1), cert), []string{"does not speak TLS"}},
		{cartpole, `url: "grpc://127.0.0.1:1", timeout: 1s`, []string{"no server for 1s", "127.0.0.1:1"}},
		{cartpole, `url: "127.0.0.1:1"`, []string{"replay.url", "grpc://HOST:PORT"}},
		{cartpole, fmt.Sprintf("url: %q, ca: /nothing.pem", safe.URL), []string{"ca: open /nothing.pem"}},
	} {
		begun := time.Now()
		r := apptest.Run(t, train(document(x.env, x.replay))...)
		if r.Code != 1 {
			t.Errorf("%s: exit status %d\n%s", x.replay, r.Code, r.Err)
		}
		for _, s := range x.says {
			if !strings.Contains(r.Err, s) {
				t.Errorf("%s: the error does not say %q:\n%s", x.replay, s, r.Err)
			}
		}
		// The document's timeout is a minute where it says nothing else.
		if d := time.Since(begun); d > 30*time.Second {
			t.Errorf("%s: took %v", x.replay, d)
		}
	}
	// Nothing of this has taken anything from who had recorded before.
	if s, err := plain.Client("transitions").Stats("transitions"); err != nil || s.Inserts != 60 || s.Writers != 0 {
		t.Errorf("%+v (%v), expected the 60 transitions of the first run", s, err)
	}
	for text, says := range sorted.All(map[string]string{
		"tables:\n  a: {selector: newest}\n":               "tables.a: selector",
		"tables:\n  a: {capacity: 0}\n":                    "tables.a: capacity",
		"tables:\n  a: {spill: true}\n":                    "tables.a: spill",
		"token_file: /nothing\n":                           "token_file",
		"tls: {cert: x}\n":                                 "cert and key",
		"tables:\n  a: {rate: {samples_per_insert: -1}}\n": "samples_per_insert",
		"listen: nowhere\n":                                "nowhere",
	}) {
		apptest.Refuse(t, []string{"replay", "serve", apptest.Write(t, "bad.yaml", text)}, says)
	}
}
