package httpapi

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/onnxrl/onnxrl/export/serve"
	"github.com/onnxrl/onnxrl/export/serve/internal/oiptest"
	"github.com/onnxrl/onnxrl/export/serve/oip"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

func start(t testing.TB, s serve.Service, o Options) *httptest.Server {
	t.Helper()
	ts := httptest.NewUnstartedServer(nil)
	ts.Config = NewServer(New(s, o), ServerOptions{})
	ts.Start()
	t.Cleanup(ts.Close)
	return ts
}

// do sends a request whose path goes out as it is written.
func do(t testing.TB, ts *httptest.Server, method, path, body string, header ...string) (*http.Response, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, ts.URL+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(header); i += 2 {
		if header[i] == "Host" {
			r.Host = header[i+1]
		}
		r.Header.Set(header[i], header[i+1])
	}
	resp, err := ts.Client().Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp, string(b)
}

func TestConformance(t *testing.T) {
	s := &oiptest.Service{}
	metrics := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, "metrics") })
	page := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, "page of "+r.URL.Path) })
	ts := start(t, s, Options{Name: "onnxrl", Version: "1.2", MaxBody: 4096, Metrics: metrics, Page: page})
	const addition = `{"id":"q","inputs":[{"name":"a","shape":[1,2],"datatype":"FP32","data":[1,2]},{"name":"b","shape":[1,2],"datatype":"FP32","data":[[3,4.5]]}]}`
	const addInput = `{"name":"a","datatype":"FP32","shape":[-1,2]},{"name":"b","datatype":"FP32","shape":[-1,2]}`
	cases := []struct {
		method, path, body string
		status             int
		want               string // all of the body; with … its begin
	}{
		{"GET", "/v2", "", 200, `{"name":"onnxrl","version":"1.2","extensions":["binary_tensor_data",…`},
		{"GET", "/v2/", "", 200, `{"name":"onnxrl"…`},
		{"HEAD", "/v2", "", 200, ""},
		{"GET", "/v2/health/live", "", 200, `{"live":true}`},
		{"GET", "/v2/health/ready", "", 200, `{"ready":true}`},
		{"HEAD", "/v2/health/ready", "", 200, ""},
		{"GET", "/v2/models/add", "", 200, `{"name":"add","versions":["1","2"],"platform":"onnxruntime_onnx","inputs":[` + addInput + `],"outputs":[{"name":"sum","datatype":"FP32","shape":[-1,2]},{"name":"diff","datatype":"FP32","shape":[-1,2]}]}`},
		{"GET", "/v2/models/add/versions/1", "", 200, `{"name":"add"…`},
		{"GET", "/v2/models/add/versions/prod", "", 200, `{"name":"add"…`},
		{"GET", "/v2/models/add/versions/9", "", 404, `{"error":"model \"add\": unknown version \"9\""}`},
		{"GET", "/v2/models/none", "", 404, `{"error":"Request for unknown model: 'none' is not found"}`},
		{"GET", "/v2/models/team%2Fnone", "", 404, `{"error":"Request for unknown model: 'team/none' is not found"}`},
		{"GET", "/v2/models/add/ready", "", 200, `{"name":"add","ready":true}`},
		{"GET", "/v2/models/add/versions/prod/ready", "", 200, `{"name":"add","ready":true}`},
		{"GET", "/v2/models/loading/ready", "", 503, `{"error":"model \"loading\": it is loading"}`},
		{"GET", "/v2/models/none/ready", "", 404, `{"error":…`},
		{"GET", "/v2/models/add/config", "", 200, `{"name":"add","platform":"onnxruntime_onnx","backend":"onnxruntime","version_policy":{"latest":{"num_versions":1}},"max_batch_size":8,"input":[{"name":"a","data_type":"TYPE_FP32","dims":[2]},{"name":"b","data_type":"TYPE_FP32","dims":[2]}],"output":[{"name":"sum","data_type":"TYPE_FP32","dims":[2]},{"name":"diff","data_type":"TYPE_FP32","dims":[2]}],"instance_group":[{"count":2,"kind":"KIND_CPU"}],"dynamic_batching":{"preferred_batch_size":[4],"max_queue_delay_microseconds":100},"parameters":{}}`},
		{"GET", "/v2/models/add/versions/2/config", "", 200, `{"name":"add"…`},
		{"GET", "/v2/models/add/stats", "", 200, `{"model_stats":[{"name":"add","version":"1","last_inference":1700000000000,"inference_count":5,"execution_count":3,"inference_stats":{"success":{"count":3,"ns":3000000},…`},
		{"GET", "/v2/models/add/versions/1/stats", "", 200, `{"model_stats":[{"name":"add"…`},
		{"GET", "/v2/models/stats", "", 200, `{"model_stats":[{"name":"add"…`},
		{"GET", "/v2/models/none/stats", "", 404, `{"error":…`},
		{"POST", "/v2/models/add/infer", addition, 200, `{"model_name":"add","model_version":"2","id":"q","outputs":[{"name":"sum","datatype":"FP32","shape":[1,2],"data":[4,6.5]},{"name":"diff","datatype":"FP32","shape":[1,2],"data":[-2,-2.5]}]}`},
		{"POST", "/v2/models/add/versions/prod/infer", addition, 200, `{"model_name":"add","model_version":"1",…`},
		{"POST", "/v2/models/add/versions/7/infer", addition, 404, `{"error":"model \"add\": unknown version \"7\""}`},
		{"POST", "/v2/models/none/infer", addition, 404, `{"error":"Request for unknown model: 'none' is not found"}`},
		{"POST", "/v2/models/add/infer", `{`, 400, `{"error":"request: JSON at byte 1: expected a string, got the end"}`},
		{"POST", "/v2/models/add/infer", ``, 400, `{"error":"request: JSON at byte 0: expected an object, got the end"}`},
		{"POST", "/v2/models/add/infer", `{"inputs":[{"name":"a","shape":[2],"datatype":"FP32","data":[1]}]}`, 400, `{"error":"input \"a\": data has 1 elements, but shape [2] has 2"}`},
		{"POST", "/v2/models/add/infer", strings.Repeat(" ", 5000), 413, `{"error":"the body has more than 4096 bytes"}`},
		{"POST", "/v2/models/broken/infer", `{"inputs":[]}`, 500, `{"error":"model \"broken\": run: it is broken"}`},
		{"POST", "/v2/models/full/infer", `{"inputs":[]}`, 429, `{"error":"model \"full\": the queue is full: 1024 requests wait"}`},
		{"POST", "/v2/models/loading/infer", `{"inputs":[]}`, 503, `{"error":…`},
		{"POST", "/v2/models/drifted/infer", `{"inputs":[]}`, 422, `{"error":"model \"drifted\": observations have drifted"}`},
		{"POST", "/v2/models/slow/infer", `{"inputs":[],"parameters":{"timeout":1}}`, 504, `{"error":"model \"slow\": context deadline exceeded"}`},
		{"POST", "/v2/models/panic/infer", `{"inputs":[]}`, 500, `{"error":"internal error"}`},
		{"POST", "/v2/models/echo/infer", `{"inputs":[{"name":"x","shape":[1],"datatype":"BYTES","data":["ü\n"]}]}`, 200, `{"model_name":"echo","model_version":"1","outputs":[{"name":"x","datatype":"BYTES","shape":[1],"data":["ü\u000a"]}]}`},
		{"POST", "/v2/repository/index", "", 200, `[{"name":"add","version":"1","state":"READY"},{"name":"add","version":"2","state":"READY"},{"name":"bad","version":"1","state":"UNAVAILABLE","reason":"golden output differs"}]`},
		{"POST", "/v2/repository/index", `{"ready":true}`, 200, `[{"name":"add","version":"1","state":"READY"},{"name":"add","version":"2","state":"READY"}]`},
		{"POST", "/v2/repository/index", `{"ready":1}`, 400, `{"error":"request: …`},
		{"POST", "/v2/repository/models/m/load", "", 200, `{}`},
		{"POST", "/v2/repository/models/m/load", `{"parameters":{"config":"{}","file:1/model.onnx":"QUJD"}}`, 200, `{}`},
		{"POST", "/v2/repository/models/m/load", `{"parameters":{"file:../x":"QUJD"}}`, 400, `{"error":"file \"../x\": expected a path within the model's folder, such as 1/model.onnx"}`},
		{"POST", "/v2/repository/models/m/load", `{"parameters":{"file:1/m":"?"}}`, 400, `{"error":"parameter \"file:1/m\": illegal base64…`},
		{"POST", "/v2/repository/models/m/load", `{"parameters":{"other":"x"}}`, 400, `{"error":"parameter \"other\": expected config or file:PATH"}`},
		{"POST", "/v2/repository/models/fixed/load", "", 501, `{"error":"the server does not load models on request"}`},
		{"POST", "/v2/repository/models/add/unload", `{"parameters":{"unload_dependents":false}}`, 200, `{}`},
		{"POST", "/v2/repository/models/none/unload", "", 404, `{"error":…`},
		{"GET", "/metrics", "", 200, "metrics"},
		{"GET", "/", "", 200, "page of /"},
		{"GET", "/assets/x.js", "", 200, "page of /assets/x.js"},
		{"GET", "/v2/systemsharedmemory/status", "", 501, `{"error":"/v2/systemsharedmemory/status: shared memory, tracing and logging settings are not supported"}`},
		{"POST", "/v2/logging", "", 501, `{"error":…`},
		{"GET", "/v2/models/add/trace/setting", "", 501, `{"error":…`},
		{"GET", "/v2/nothing", "", 404, `{"error":"/v2/nothing: there is no such endpoint"}`},
		{"GET", "/v2/models", "", 404, `{"error":…`},
		{"GET", "/v2/a/b/c/d/e/f/g/h/i/j", "", 404, `{"error":…`},
		{"GET", "/v2/models/add/infer", "", 405, `{"error":"GET is not a method of /v2/models/add/infer, expected POST, OPTIONS"}`},
		{"DELETE", "/v2/models/add", "", 405, `{"error":"DELETE is not a method of /v2/models/add, expected GET, HEAD, OPTIONS"}`},
		{"OPTIONS", "/v2/models/add/infer", "", 204, ""},
		{"GET", "/v2/models/..%2f..%2fetc/ready", "", 400, `{"error":"model \"../../etc\": expected a name of 1 to 255 bytes without control characters, backslashes and parts that are empty, . or .."}`},
		{"GET", "/v2/models/%2e%2e/ready", "", 400, `{"error":"model \"..\": …`},
		{"GET", "/v2/models//ready", "", 400, `{"error":"model \"\": …`},
		{"GET", "/v2/models/add/versions/..%5c..", "", 400, `{"error":"version \"..\\\\..\": …`},
		{"POST", "/v2/repository/models/..%2f..%2ftmp/load", "", 400, `{"error":…`},
		{"POST", "/v2/repository/models/%00/load", "", 400, `{"error":…`},
	}
	for _, c := range cases {
		resp, body := do(t, ts, c.method, c.path, c.body)
		begin, rest, _ := strings.Cut(c.want, "…")
		if resp.StatusCode != c.status || !strings.HasPrefix(body, begin) || rest == "" && !strings.HasSuffix(c.want, "…") && body != c.want {
			t.Errorf("%s %s: %d %s\nexpected %d %s", c.method, c.path, resp.StatusCode, body, c.status, c.want)
		}
		if own := strings.HasPrefix(c.path, "/v2") && c.method != "OPTIONS"; own && resp.Header.Get("Content-Type") != "application/json" {
			t.Errorf("%s %s: Content-Type %q", c.method, c.path, resp.Header.Get("Content-Type"))
		}
		if has := resp.Header.Get("Allow") != ""; has != (c.status == 405 || c.status == 204) {
			t.Errorf("%s %s: Allow %q", c.method, c.path, resp.Header.Get("Allow"))
		}
		if has := resp.Header.Get("Retry-After") != ""; has != (c.status == 429) {
			t.Errorf("%s %s: Retry-After %q", c.method, c.path, resp.Header.Get("Retry-After"))
		}
	}
	if len(cases) != 66 {
		t.Errorf("%d cases", len(cases))
	}
	if got := strings.Join(s.Loaded(), "; "); got != "load m  0; load m {} 3; unload add" {
		t.Errorf("loads %q", got)
	}
}

func TestNotReady(t *testing.T) {
	ts := start(t, &oiptest.Service{NotReady: true}, Options{})
	if resp, body := do(t, ts, "GET", "/v2/health/ready", ""); resp.StatusCode != 503 || body != `{"ready":false}` {
		t.Error(resp.StatusCode, body)
	}
	if resp, _ := do(t, ts, "GET", "/v2/health/live", ""); resp.StatusCode != 200 {
		t.Error(resp.StatusCode)
	}
}

// Binary requests and answers, as tritonclient sends them.
func TestBinary(t *testing.T) {
	ts := start(t, &oiptest.Service{}, Options{})
	a, b := tensor.Of([]float32{1, 2, 3, 4}, 2, 2), tensor.Of([]float32{10, 20, 30, 40}, 2, 2)
	req := serve.Request{ID: "7", Inputs: []serve.Tensor{{Name: "a", Value: a}, {Name: "b", Value: b}}}
	n := 0
	for _, o := range []oip.Options{{Binary: true, BinaryOutput: true}, {Binary: true}, {BinaryOutput: true}, {}} {
		body, jsonLen, err := oip.AppendRequest(nil, &req, o)
		if err != nil {
			t.Fatal(err)
		}
		var header []string
		if jsonLen >= 0 {
			header = []string{oip.HeaderLength, itoa(jsonLen)}
		}
		resp, answer := do(t, ts, "POST", "/v2/models/add/infer", string(body), append(header, "X-Request-Id", "abc")...)
		if got := resp.Header.Get("Content-Type"); (got == "application/octet-stream") != o.BinaryOutput || resp.Header.Get("X-Request-Id") != "abc" {
			t.Errorf("%+v: %v", o, resp.Header)
		}
		check(t, resp, answer, []float32{11, 22, 33, 44})
		n++
	}
	// A model with one input takes its bytes as they are.
	resp, answer := do(t, ts, "POST", "/v2/models/one/infer", string(tensor.Of([]float32{1, 2, 3, 4, 5, 6}, 6).Bytes()), oip.HeaderLength, "0")
	check(t, resp, answer, []float32{1, 2, 3, 4, 5, 6})
	// State inputs are not for requests in a sequence.
	if resp, answer := do(t, ts, "POST", "/v2/models/seq/infer", string(make([]byte, 12)), oip.HeaderLength, "0"); resp.StatusCode != 200 {
		t.Error(answer)
	}
	for _, c := range [][2]string{{"add", "has more"}, {"echo", "has none"}} {
		if resp, answer := do(t, ts, "POST", "/v2/models/"+c[0]+"/infer", "abcd", oip.HeaderLength, "0"); resp.StatusCode != 400 || !strings.Contains(answer, c[1]) {
			t.Error(resp.StatusCode, answer)
		}
		n++
	}
	for _, v := range []string{"-1", "x", "99999999999999999999", "1e3"} {
		if resp, answer := do(t, ts, "POST", "/v2/models/add/infer", "{}", oip.HeaderLength, v); resp.StatusCode != 400 || !strings.Contains(answer, oip.HeaderLength) {
			t.Error(resp.StatusCode, answer)
		}
		n++
	}
	if resp, answer := do(t, ts, "POST", "/v2/models/add/infer", "{}", oip.HeaderLength, "3"); resp.StatusCode != 400 || !strings.Contains(answer, "is 3, but the body has 2 bytes") {
		t.Error(resp.StatusCode, answer)
	}
	if n != 10 {
		t.Error(n)
	}
}

func check(t *testing.T, resp *http.Response, answer string, want []float32) {
	t.Helper()
	if resp.StatusCode != 200 {
		t.Fatal(resp.StatusCode, answer)
	}
	jsonLen := -1
	if v := resp.Header.Get(oip.HeaderLength); v != "" {
		jsonLen = atoi(t, v)
	}
	var r oip.Response
	if err := r.Decode([]byte(answer), jsonLen); err != nil {
		t.Fatal(err)
	}
	got := r.Outputs[0].Value.Float32s()
	for i := range want {
		if len(got) != len(want) || got[i] != want[i] {
			t.Fatalf("got %v, expected %v", got, want)
		}
	}
}
