package app

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/onnxrl/onnxrl/cmd/internal/apptest"
	"github.com/onnxrl/onnxrl/runtime/portable"
)

// probed is what a probe is answered, as a kubelet asks: without certificate, token and name; 0 is
// no answer.
func probed(t *testing.T, address, path string) (status int, body string) {
	t.Helper()
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	r, err := client.Get("http://" + address + path)
	if err != nil {
		return 0, err.Error()
	}
	defer r.Body.Close()
	text, err := io.ReadAll(r.Body)
	if err != nil {
		t.Error(err)
	}
	return r.StatusCode, string(text)
}

// answersProbes expects answers, by path.
func answersProbes(t *testing.T, address string, want ...any) {
	t.Helper()
	for i := 0; i < len(want); i += 2 {
		if status, body := probed(t, address, want[i].(string)); status != want[i+1].(int) {
			t.Errorf("GET %s: %d, expected %d: %s", want[i], status, want[i+1], body)
		}
	}
}

// A server whose clients show certificates and tokens tells probes how it is on a port of its own,
// and nothing else there.
func TestServeHealth(t *testing.T) {
	t.Parallel()
	cert, key, _ := certificate(t)
	token := apptest.Write(t, "token", "0123456789abcdef0123\n")
	if err := os.Chmod(token, 0o600); err != nil {
		t.Fatal(err)
	}
	secured := []string{"--engine", portable.Name, "--model", "m=" + scaledFile(t, 2), "--tls-cert", cert, "--tls-key", key, "--tls-client-ca", newAuthority(t, "ours").file, "--token-file", token}
	r := apptest.StartServe(t, append(secured, "--health", "127.0.0.1:0", "--health-metrics", "--shutdown-delay", "10m")...)
	answersProbes(t, r.First.Health, "/livez", 200, "/readyz", 200, "/metrics", 401, "/v2/models/m", 404, "/", 404)
	q, err := http.NewRequest("GET", "http://"+r.First.Health+"/metrics", nil)
	if err != nil {
		t.Fatal(err)
	}
	q.Header.Set("Authorization", "Bearer 0123456789abcdef0123")
	if resp, err := http.DefaultClient.Do(q); err != nil || resp.StatusCode != 200 {
		t.Errorf("%v %v", resp, err)
	} else {
		resp.Body.Close()
	}
	// It is asked to stop: alive for as long as it answers, and not ready.
	r.Signal(os.Interrupt)
	r.Says("not ready any more")
	answersProbes(t, r.First.Health, "/livez", 200, "/readyz", 503)
	// Of what is not ready yet, and without metrics.
	loading := apptest.StartServe(t, append(secured, "--health", "127.0.0.1:0", "--mode", "explicit")...)
	answersProbes(t, loading.First.Health, "/livez", 200, "/metrics", 404)
	if code := loading.Stop(); code != 0 {
		t.Errorf("exit status %d\n%s", code, loading.Log)
	}
	for _, c := range [][]string{{"--health-metrics"}, {"--health", "nowhere"}} {
		apptest.Refuse(t, append(append([]string{"serve"}, secured...), c...), map[string]string{"--health-metrics": "there is no health", "--health": "no address"}[c[0]])
	}
}

// Servers over Arrow Flight are ready from when calls are answered.
func TestFlightHealth(t *testing.T) {
	t.Parallel()
	cert, key, _ := certificate(t)
	config := fmt.Sprintf("tls: {cert: %s, key: %s, client_ca: %s}\nhealth: 127.0.0.1:0\n", cert, key, newAuthority(t, "ours").file)
	for _, command := range []string{"replay", "actor"} {
		r := apptest.StartFlight(t, command, "serve", apptest.Write(t, command+".yaml", config), "--engine", portable.Name)
		if r.Health == "" {
			t.Fatalf("%s serve does not say where its health is\n%s", command, r.Log)
		}
		answersProbes(t, r.Health, "/livez", 200, "/readyz", 200, "/metrics", 404)
		if code := r.Stop(); code != 0 {
			t.Errorf("exit status %d\n%s", code, r.Log)
		}
		if r := apptest.Run(t, command, "serve", apptest.Write(t, command+".yaml", "health: nowhere\n")); r.Code != 1 || strings.Count(r.Err, "is no address") != 1 {
			t.Errorf("%+v", r)
		}
	}
}
