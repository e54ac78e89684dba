package app

import (
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/onnxrl/onnxrl/cmd/internal/apptest"
	"github.com/onnxrl/onnxrl/export/serve/grpcapi/inference"
	"github.com/onnxrl/onnxrl/runtime/portable"
	"github.com/onnxrl/onnxrl/runtime/sorted"
)

// send sends a request with headers, Host among them, and returns the status.
func send(t *testing.T, method, url, body string, header ...string) int {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(header); i += 2 {
		if header[i] == "Host" {
			r.Host = header[i+1]
		}
		r.Header.Set(header[i], header[i+1])
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if _, err := io.Copy(io.Discard, resp.Body); err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode
}

// In mode explicit, pages of other sites reach nothing, tokens divide use from administration over
// both protocols, and SIGHUP reads them again.
func TestServeGuard(t *testing.T) {
	repository := t.TempDir()
	folder := filepath.Join(repository, "m", "1")
	if err := os.MkdirAll(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(scaledFile(t, 2), filepath.Join(folder, "model.onnx")); err != nil {
		t.Fatal(err)
	}
	use, admin := apptest.Write(t, "use", "use\n"), apptest.Write(t, "admin", "admin\n")
	r := apptest.StartServe(t, "--engine", portable.Name, "--repository", repository, "--mode", "explicit", "--token-file", use, "--admin-token-file", admin, "--allow-host", "models.example")
	if !r.First.Token || !r.First.AdminToken {
		t.Errorf("started with %+v", r.First)
	}
	conn, err := grpc.NewClient(r.First.GRPC, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	rpc := inference.NewGRPCInferenceServiceClient(conn)
	load, unload, infer := r.URL("/v2/repository/models/m/load"), r.URL("/v2/repository/models/m/unload"), r.URL("/v2/models/m/infer")
	n := 0
	check := func(token string, load200, infer200 int, want codes.Code) {
		t.Helper()
		auth := []string{"Authorization", "Bearer " + token}
		if got := send(t, "POST", load, "", auth...); got != load200 {
			t.Errorf("load with %q: status %d, expected %d", token, got, load200)
		}
		if got := send(t, "POST", infer, scaledRequest, auth...); got != infer200 {
			t.Errorf("infer with %q: status %d, expected %d", token, got, infer200)
		}
		_, err := rpc.RepositoryModelLoad(metadata.AppendToOutgoingContext(t.Context(), "authorization", "Bearer "+token), &inference.RepositoryModelLoadRequest{ModelName: "m"})
		if status.Code(err) != want {
			t.Errorf("load over gRPC with %q: %v, expected %v", token, err, want)
		}
		n++
	}
	check("admin", 200, 200, codes.OK)
	check("use", 403, 200, codes.PermissionDenied)
	check("", 401, 401, codes.Unauthenticated)
	// A token does not make another site's page welcome.
	auth := []string{"Authorization", "Bearer admin", "Content-Type", "application/json"}
	for _, header := range [][]string{
		{"Origin", "https://evil.example"}, {"Sec-Fetch-Site", "cross-site"}, {"Sec-Fetch-Site", "same-site", "Origin", "http://localhost:3000"}, {"Host", "evil.example"}, {"Host", "evil.example:8000", "Origin", "http://evil.example:8000", "Sec-Fetch-Site", "same-origin"},
	} {
		for _, url := range []string{load, unload, infer} {
			if got := send(t, "POST", url, scaledRequest, append(header, auth...)...); got != 403 {
				t.Errorf("%s %q: status %d", url, header, got)
			}
			n++
		}
	}
	if got := send(t, "POST", unload, "{}", "Authorization", "Bearer admin", "Content-Type", "text/plain"); got != 415 {
		t.Errorf("text: status %d", got)
	}
	if got := send(t, "POST", infer, scaledRequest, append([]string{"Host", "models.example", "Origin", "https://models.example"}, auth...)...); got != 200 {
		t.Errorf("the page behind a proxy: status %d", got)
	}
	if got := send(t, "GET", r.URL("/"), ""); got != 200 {
		t.Errorf("the page: status %d", got)
	}
	// New tokens.
	for path, token := range sorted.All(map[string]string{use: "use2", admin: "admin2"}) {
		if err := os.WriteFile(path, []byte(token), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	r.Signal(syscall.SIGHUP)
	r.Says("reloaded")
	check("admin", 401, 401, codes.Unauthenticated)
	check("use", 401, 401, codes.Unauthenticated)
	check("use2", 403, 200, codes.PermissionDenied)
	check("admin2", 200, 200, codes.OK)
	// One that cannot be read leaves those that were.
	if err := os.WriteFile(use, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	r.Signal(syscall.SIGHUP)
	r.Says("there is no token in it")
	check("use2", 403, 200, codes.PermissionDenied)
	if n != 23 {
		t.Errorf("%d checks", n)
	}
	if code := r.Stop(); code != 0 {
		t.Errorf("exit status %d\n%s", code, r.Log)
	}
}
