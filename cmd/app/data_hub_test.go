package app

import (
	"crypto/sha1"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/onnxrl/onnxrl/cmd/internal/apptest"
	"github.com/onnxrl/onnxrl/runtime/objects"
)

// TestDataHub: commands read a data set of the Hub of Hugging Face by its name, and write that down.
func TestDataHub(t *testing.T) {
	var bars strings.Builder
	bars.WriteString("date,symbol,open,high,low,close,volume\n")
	for day := range 28 {
		fmt.Fprintf(&bars, "2024-02-%02d,A,1,2,1,2,%d\n", day+1, 100+day)
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		commit := strings.Repeat("c", 40)
		switch r.URL.Path {
		case "/api/datasets/me/bars/revision/main":
			fmt.Fprintf(w, `{"sha": %q}`, commit)
		case "/api/datasets/me/bars/tree/" + commit:
			fmt.Fprintf(w, `[{"type": "file", "path": "data/train.csv", "size": %d, "oid": "%x"}]`, bars.Len(), sha1.Sum([]byte(fmt.Sprintf("blob %d\x00%s", bars.Len(), bars.String()))))
		case "/datasets/me/bars/resolve/" + commit + "/data/train.csv":
			fmt.Fprint(w, bars.String())
		default:
			w.WriteHeader(http.StatusNotFound)
		}
	}))
	defer server.Close()
	t.Setenv("HF_ENDPOINT", server.URL)
	t.Setenv("HF_TOKEN", "")
	t.Setenv(objects.CacheVariable, t.TempDir())
	apptest.Says(t, apptest.Succeed(t, "data", "init", "hf://datasets/me/bars"), `path: "hf://datasets/me/bars"`, "28 times of 1 symbol")
	apptest.Says(t, apptest.Succeed(t, "data", "inspect", "hf://datasets/me/bars/data/train.csv"), "1 symbol, 28 times")
	config := apptest.Write(t, "data.yaml", "source: {path: hf://datasets/me/bars}\nwindow: 2\nfeatures: {indicators: {sma: [2]}}\nsplit: {train: [2024-02-01, 2024-02-20], valid: [2024-02-21, 2024-02-24], test: [2024-02-25, 2024-02-28]}\n")
	apptest.Says(t, apptest.Succeed(t, "data", "prepare", config, "--out", t.TempDir()+"/set"), "N = 1", "18 bars")
	apptest.Refuse(t, []string{"data", "init", "hf://datasets/me/others"}, "there is no such data set, or no such revision or file")
}
