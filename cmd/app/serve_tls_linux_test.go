package app

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"io"
	"math/big"
	"net/http"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	"github.com/onnxrl/onnxrl/cmd/internal/apptest"
	"github.com/onnxrl/onnxrl/export/serve/grpcapi/inference"
	"github.com/onnxrl/onnxrl/runtime/portable"
)

// authority issues certificates of clients.
type authority struct {
	t    *testing.T
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	file string
}

func newAuthority(t *testing.T, name string) *authority {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, NotBefore: now.Add(-time.Hour), NotAfter: now.Add(time.Hour), IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return &authority{t, cert, key, apptest.Write(t, name+".pem", string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})))}
}

func (a *authority) client() []tls.Certificate {
	a.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		a.t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: "client"}, NotBefore: a.cert.NotBefore, NotAfter: a.cert.NotAfter, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, &key.PublicKey, a.key)
	if err != nil {
		a.t.Fatal(err)
	}
	return []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}
}

// With an authority of clients, only clients with a certificate of it are let in, over both
// protocols, and SIGHUP reads the authority again.
func TestServeClientCertificates(t *testing.T) {
	cert, key, pool := certificate(t)
	ours, theirs := newAuthority(t, "ours"), newAuthority(t, "theirs")
	r := apptest.StartServe(t, "--engine", portable.Name, "--model", "m="+scaledFile(t, 2), "--tls-cert", cert, "--tls-key", key, "--tls-client-ca", ours.file)
	n := 0
	check := func(what string, certs []tls.Certificate, let bool) {
		t.Helper()
		config := &tls.Config{RootCAs: pool, Certificates: certs}
		client := &http.Client{Transport: &http.Transport{TLSClientConfig: config, ForceAttemptHTTP2: true}}
		defer client.CloseIdleConnections()
		resp, err := client.Post("https://"+r.First.HTTP+"/v2/models/m/infer", "application/json", strings.NewReader(scaledRequest))
		if err == nil {
			io.Copy(io.Discard, resp.Body)
			resp.Body.Close()
		}
		if (err == nil && resp.StatusCode == 200 && resp.ProtoMajor == 2) != let {
			t.Errorf("%s over HTTP: %v, %v", what, resp, err)
		}
		conn, err := grpc.NewClient(r.First.GRPC, grpc.WithTransportCredentials(credentials.NewTLS(config.Clone())))
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		_, err = inference.NewGRPCInferenceServiceClient(conn).ModelInfer(t.Context(), scaledMessage())
		if want := map[bool]codes.Code{true: codes.OK, false: codes.Unavailable}[let]; status.Code(err) != want {
			t.Errorf("%s over gRPC: %v, expected %v", what, err, want)
		}
		n++
	}
	check("no certificate", nil, false)
	check("a certificate", ours.client(), true)
	check("a certificate of another authority", theirs.client(), false)
	if err := os.Rename(theirs.file, ours.file); err != nil {
		t.Fatal(err)
	}
	r.Signal(syscall.SIGHUP)
	r.Says("reloaded")
	check("a certificate of the authority before", ours.client(), false)
	check("a certificate of the new authority", theirs.client(), true)
	// A file that cannot be read leaves it as it was.
	if err := os.WriteFile(ours.file, []byte("none"), 0o644); err != nil {
		t.Fatal(err)
	}
	r.Signal(syscall.SIGHUP)
	r.Says("has no certificate in PEM")
	check("a certificate after a reload that failed", theirs.client(), true)
	if n != 6 {
		t.Error(n)
	}
	if code := r.Stop(); code != 0 {
		t.Errorf("exit status %d\n%s", code, r.Log)
	}
}

// jsonLog are the lines of a log in JSON; every line has time, level and msg.
func jsonLog(t *testing.T, text string) (lines []map[string]any) {
	t.Helper()
	for line := range strings.Lines(text) {
		var m map[string]any
		if err := json.Unmarshal([]byte(line), &m); err != nil {
			t.Fatalf("no JSON: %q", line)
		}
		at, _ := m["time"].(string)
		if _, err := time.Parse(time.RFC3339Nano, at); err != nil || m["level"] == nil || m["msg"] == nil || m["msg"] == "" {
			t.Errorf("a line without time, level and msg: %s", line)
		}
		lines = append(lines, m)
	}
	return lines
}

// In JSON every line of the log is an object, whoever writes it: what is loaded, requests of both
// protocols, warnings, and the error that ends the program. An address of IPv4 is one of IPv4 only.
func TestServeLogsJSON(t *testing.T) {
	model := scaledFile(t, 2)
	r := apptest.StartServe(t, "--engine", portable.Name, "--model", "m="+model, "--log-format", "json", "--access-log", "--http", "0.0.0.0:0", "--grpc", "127.0.0.1:0")
	if !strings.HasPrefix(r.First.HTTP, "0.0.0.0:") {
		t.Errorf("listens on %s", r.First.HTTP)
	}
	r.Want(200, "/v2/models/m/infer", scaledRequest)
	r.Want(404, "/v2/models/x/infer", scaledRequest)
	conn, err := grpc.NewClient(r.First.GRPC, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := inference.NewGRPCInferenceServiceClient(conn).ModelInfer(t.Context(), scaledMessage()); err != nil {
		t.Error(err)
	}
	if err := os.WriteFile(model, []byte("damaged"), 0o644); err != nil {
		t.Fatal(err)
	}
	r.Signal(syscall.SIGHUP)
	r.Says("reloaded")
	if code := r.Stop(); code != 0 {
		t.Errorf("exit status %d\n%s", code, r.Log)
	}
	seen := map[string]int{}
	for _, m := range jsonLog(t, r.Log.String()) {
		level, _ := m["level"].(string)
		switch {
		case m["msg"] == "request":
			seen[level+" "+m["protocol"].(string)]++
			if m["took"] == nil || m["remote"] == nil || m["path"] == nil {
				t.Errorf("request %v", m)
			}
		case level == "WARN":
			seen["WARN"]++
		default:
			seen[level+" note"]++
		}
	}
	if seen["INFO http"] != 2 || seen["INFO grpc"] != 1 || seen["WARN"] == 0 || seen["INFO note"] < 5 || len(seen) != 4 {
		t.Errorf("lines %v\n%s", seen, r.Log)
	}
	// Without --json the addresses are in the log, and what ends the start is an error in it.
	cmd := apptest.Program(t, "serve", "--engine", portable.Name, "--log-format", "json", "--model", "m="+scaledFile(t, 2), "--http", "127.0.0.1:0", "--grpc", "")
	var out bytes.Buffer
	cmd.Stdout = &out
	started := apptest.Launch(t, cmd)
	started.Says(`"msg":"started"`)
	if code := started.Stop(); code != 0 || out.Len() > 0 {
		t.Errorf("exit status %d, %q\n%s", code, &out, started.Log)
	}
	jsonLog(t, started.Log.String())
	failed := apptest.Run(t, "serve", "--log-format", "json", "--engine", portable.Name, "--model", "m="+apptest.Write(t, "bad.onnx", "x"), "--http", "127.0.0.1:0", "--grpc", "")
	if lines := jsonLog(t, failed.Err); failed.Code != 1 || len(lines) == 0 || lines[len(lines)-1]["level"] != "ERROR" {
		t.Errorf("exit status %d\n%s", failed.Code, failed.Err)
	}
	for i, args := range [][]string{{"serve", "--log-format", "json", "a", "b"}, {"serve", "--nonsense", "--log-format", "json"}, {"--log-format=json", "nonsense"}} {
		bad := apptest.Run(t, args...)
		if lines := jsonLog(t, bad.Err); bad.Code != min(1+i, exitUsage) || len(lines) != 1 || lines[0]["level"] != "ERROR" {
			t.Errorf("%q: exit status %d\n%s", args, bad.Code, bad.Err)
		}
	}
	if bad := apptest.Run(t, "serve", "--log-format", "xml", "--model", model); bad.Code != 1 || !strings.Contains(bad.Err, "expected text or json") {
		t.Errorf("%+v", bad)
	}
}
