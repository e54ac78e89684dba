package app

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/onnxrl/onnxrl/agents/actors"
	"github.com/onnxrl/onnxrl/agents/actors/flight"
	"github.com/onnxrl/onnxrl/cmd/internal/apptest"
	"github.com/onnxrl/onnxrl/runtime/buildinfo"
	"github.com/onnxrl/onnxrl/runtime/longtest"
	"github.com/onnxrl/onnxrl/runtime/sorted"
)

// TestActorServersRefuse: a run that cannot have its actors says why and where, at once where
// waiting would not help.
func TestActorServersRefuse(t *testing.T) {
	longtest.Nightly(t)
	now := time.Now()
	cert, key := certified(t, now.Add(-time.Hour), now.Add(time.Hour))
	oldCert, oldKey := certified(t, now.Add(-2*time.Hour), now.Add(-time.Hour))
	token, wrong := apptest.Write(t, "token", "secret\n"), apptest.Write(t, "token", "another\n")
	serve := func(config string) *apptest.Flight {
		return apptest.StartFlightIn(t, t.TempDir(), "actor", "serve", apptest.Write(t, "server.yaml", config))
	}
	plain := serve("slots: 2\n")
	safe := serve(fmt.Sprintf("slots: 2\ntoken_file: %q\ntls: {cert: %q, key: %q}\n", token, cert, key))
	old := serve(fmt.Sprintf("tls: {cert: %q, key: %q}\n", oldCert, oldKey))
	replay := apptest.StartReplay(t)
	// An address that is no server of gRPC.
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			_, _ = c.Write([]byte("220 mail.example.org\r\n"))
			defer c.Close()
		}
	}()
	mail := "grpc://" + l.Addr().String()
	// Learners run in a folder with bars, and servers do not: a path of either.
	fake, err := filepath.Abs(filepath.Join("..", "..", "envs", "gymnasium", "testdata", "fake"))
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(filepath.Dir(apptest.MarketCSV(t)))
	const corridor = "{kind: corridor, cells: 4}"
	const market = `{kind: trading, window: 4, episode: {kind: random, length: 20}, data: {source: {path: /proc/self/cwd/bars.csv}, features: {indicators: {sma: [5]}}, split: {train: [2020-01-01, 2020-06-30], valid: [2020-07-01, 2020-08-31], test: [2020-09-01, 2020-12-31]}}}`
	train := func(env, acting string) (r apptest.Result) {
		agent := "hidden: [4]"
		if env == market {
			agent = "encoder: {kind: timecnn, d_model: 4, n_layers: 1}"
		}
		config := apptest.Write(t, "run.yaml", "seed: 1\nenv: "+env+"\nagent: {kind: impala, n_steps: 4, "+agent+"}\ntrain: {num_envs: 2, total_env_steps: 64, threads: 1, validation: {every_steps: 0}, actors: {"+acting+"}}\npublish: {when: never}\n")
		return apptest.Run(t, "train", "-q", config, "--out", filepath.Join(t.TempDir(), "run"))
	}
	at := func(url, more string) string { return fmt.Sprintf("count: 2, urls: [%q]%s", url, more) }
	for _, acting := range []string{at(plain.URL, ""), at(safe.URL, fmt.Sprintf(", ca: %q, token_file: %q", cert, token))} {
		if r := train(corridor, acting); r.Code != 0 {
			t.Errorf("%s: exit status %d\n%s", acting, r.Code, r.Err)
		}
	}
	for _, x := range []struct {
		env, acting string
		says        []string
	}{
		{corridor, at(safe.URL, fmt.Sprintf(", ca: %q, token_file: %q", cert, wrong)), []string{safe.URL, "bearer token"}},
		{corridor, at(safe.URL, fmt.Sprintf(", ca: %q", cert)), []string{safe.URL, "bearer token"}},
		{corridor, at(safe.URL, ""), []string{safe.URL, "certificate", "unknown authority"}},
		{corridor, at(strings.Replace(safe.URL, "+tls", "", 1), ", timeout: 1s"), []string{"no server has begun it for 1s", "grpc+tls:// in its url"}},
		{corridor, at(old.URL, fmt.Sprintf(", ca: %q", oldCert)), []string{old.URL, "certificate", "expired"}},
		{corridor, at(strings.Replace(plain.URL, "grpc:", "grpc+tls:", 1), fmt.Sprintf(", ca: %q", cert)), []string{"does not speak TLS"}},
		{corridor, at(mail, ""), []string{mail, `does not speak gRPC: it begins with "220 "`}},
		{corridor, at(replay.URL, ""), []string{replay.URL, "expected a server of actors (onnxrl actor serve)"}},
		{corridor, at("grpc://127.0.0.1:1", ", timeout: 1s"), []string{"no server has begun it for 1s", "grpc://127.0.0.1:1: "}},
		{market, at(plain.URL, ""), []string{"actor 0 of 2: " + plain.URL + ": ", "bars.csv", "no such file"}},
		{corridor, at("127.0.0.1:1", ""), []string{"train.actors.urls[0]", "grpc://HOST:PORT"}},
		{corridor, at(plain.URL, ", processes: true"), []string{"train.actors.processes", "one of the two"}},
		{corridor, "count: 2, timeout: 1s", []string{"train.actors.urls: required"}},
		{corridor, at(safe.URL, ", cert: x"), []string{"train.actors.cert: needs key"}},
		{corridor, at(safe.URL, ", ca: /nothing.pem"), []string{safe.URL, "ca: open /nothing.pem"}},
	} {
		r := train(x.env, x.acting)
		if r.Code != 1 {
			t.Errorf("%s: exit status %d\n%s", x.acting, r.Code, r.Err)
		}
		for _, s := range x.says {
			if !strings.Contains(r.Err, s) {
				t.Errorf("%s: the error does not say %q:\n%s", x.acting, s, r.Err)
			}
		}
	}
	// Whoever has a slot keeps it, and who is refused leaves none taken.
	own := flight.NewLauncher(actors.Config{Count: 1, URLs: []string{plain.URL}}, flight.Hello{}, nil)
	c, err := own.Launch(t.Context(), 0)
	if err != nil {
		t.Fatal(err)
	}
	if r := train(corridor, at(plain.URL, ", timeout: 1s")); r.Code != 1 || !strings.Contains(r.Err, plain.URL+": all slots are taken, which are 2") {
		t.Errorf("exit status %d\n%s", r.Code, r.Err)
	}
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	// A message that an actor cannot read ends it, and nothing else.
	if c, err = own.Launch(t.Context(), 0); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Write([]byte(strings.Repeat("what is this?\n", 100))); err != nil {
		t.Error(err)
	}
	if how := c.Ending(); how != "its process has ended: exit status 0" {
		t.Errorf("%q", how)
	}
	c.Close()
	if conn, err := net.Dial("tcp", strings.TrimPrefix(plain.URL, "grpc://")); err != nil {
		t.Error(err)
	} else {
		_, _ = conn.Write([]byte("GET / HTTP/1.1\r\n\r\n"))
		conn.Close()
	}
	// Another build, which is "(devel)" as this one is.
	program := apptest.OtherBuild(t)
	for _, c := range []struct{ what, url string }{
		{"agent: {kind: impala, hidden: [4]}\ntrain: {actors: {" + at(plain.URL, "") + "}}\n", plain.URL},
		{"agent: {kind: dqn, hidden: [4]}\nreplay: {kind: flight, url: '" + replay.URL + "'}\n", replay.URL},
	} {
		config := apptest.Write(t, "run.yaml", "seed: 1\nenv: {kind: corridor, cells: 4}\npublish: {when: never}\n"+c.what)
		cmd := apptest.Program(t, "train", "-q", config, "--out", filepath.Join(t.TempDir(), "run"))
		cmd.Path = program
		if text, err := cmd.CombinedOutput(); err == nil || !strings.Contains(string(text), c.url+": ") || !strings.Contains(string(text), "the caller's program is "+buildinfo.Version()+" (build ") {
			t.Errorf("%v\n%s", err, text)
		}
	}
	if r := train(corridor, at(plain.URL, "")); r.Code != 0 {
		t.Errorf("after all of this: exit status %d\n%s", r.Code, r.Err)
	}
	// The server says what of Python documents may name: the learner has a package that imports what
	// it likes.
	t.Setenv("PYTHONPATH", fake)
	t.Setenv("PYTHONDONTWRITEBYTECODE", "1")
	strict, open := serve("slots: 2\npython: {}\n"), serve("slots: 2\npython: {modules: [gymnasium]}\n")
	for url, code := range sorted.All(map[string]int{strict.URL: 1, open.URL: 0}) {
		const says = `id: the server does not permit the module "gymnasium"`
		if r := train("{kind: gymnasium, id: 'gymnasium:Walk-v0', workers: 1}", at(url, "")); r.Code != code || strings.Contains(r.Err, says) != (code == 1) {
			t.Errorf("%s: exit status %d\n%s", url, r.Code, r.Err)
		}
	}
	// SIGHUP reads tokens again: one that is taken away is refused, and what cannot be read changes
	// nothing.
	for i, text := range []string{"# none\n", "# of tomorrow\nanother\n"} {
		if err := os.WriteFile(token, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		safe.Signal(syscall.SIGHUP)
		safe.Says([]string{"what was read before stays in force", "were read again"}[i])
		if r := train(corridor, at(safe.URL, fmt.Sprintf(", ca: %q, token_file: %q", cert, wrong))); r.Code != 1-i {
			t.Errorf("token file %q: exit status %d\n%s", text, r.Code, r.Err)
		}
	}
	for text, says := range sorted.All(map[string]string{
		"slots: -1\n":             "slots: -1",
		"token_file: /nothing\n":  "token_file",
		"tls: {cert: x}\n":        "cert and key",
		"listen: nowhere\n":       "nowhere",
		"listen: 0.0.0.0:0\n":     "0.0.0.0:0 is open to other machines",
		"token_file: /dev/null\n": "there is no token in it",
		"tls: {client_ca: ca}\n":  "client_ca only beside them",
	}) {
		apptest.Refuse(t, []string{"actor", "serve", apptest.Write(t, "bad.yaml", text)}, says)
	}
}
