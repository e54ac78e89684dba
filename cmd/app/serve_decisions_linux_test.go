package app

import (
	"encoding/json"
	"fmt"
	"math"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/onnxrl/onnxrl/agents/ope"
	"github.com/onnxrl/onnxrl/cmd/internal/apptest"
	"github.com/onnxrl/onnxrl/export/serve/grpcapi/inference"
	"github.com/onnxrl/onnxrl/models/decisionlog"
	"github.com/onnxrl/onnxrl/runtime/longtest"
	"github.com/onnxrl/onnxrl/runtime/portable"
	"github.com/onnxrl/onnxrl/runtime/rng"
)

// TestFeedback goes from a server that explores to an estimate of the candidate and to learning:
// requests over HTTP without ids and with several rows, and over gRPC with ids, whose rewards come
// in a table.
func TestFeedback(t *testing.T) {
	longtest.Slow(t)
	t.Parallel()
	run, dir := apptest.Trained(t, tinyCartPole), t.TempDir()
	log := filepath.Join(dir, "decisions")
	args := []string{"--engine", portable.Name, "--model", "policy=" + filepath.Join(run, "best.onnx"), "--decisions", log, "--decisions-every", "1h", "--explore"}
	r := apptest.StartServe(t, args...)
	conn, err := grpc.NewClient(r.First.GRPC, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	rpc, s := inference.NewGRPCInferenceServiceClient(conn), rng.New(4).Stream()
	rewards := "request,row,reward\n"
	chosen := [2]int{}
	// taken notes what an action has earned: that of the arm 1 is worth more.
	taken := func(id string, row int, a float64) {
		rewards += fmt.Sprintf("%s,%d,%v\n", id, row, 1+2*a)
		chosen[int(a)]++
	}
	ids := map[string]bool{}
	const asks = 60
	for i := range asks {
		obs := make([]float32, 8)
		for k := range obs {
			obs[k] = float32(s.Normal()) / 20
		}
		text, err := json.Marshal(obs)
		if err != nil {
			t.Fatal(err)
		}
		var a struct {
			ID      string `json:"id"`
			Outputs []struct {
				Name string    `json:"name"`
				Data []float64 `json:"data"`
			} `json:"outputs"`
		}
		answer := r.Want(200, "/v2/models/policy/infer", fmt.Sprintf(`{"inputs":[{"name":"observation","shape":[2,4],"datatype":"FP32","data":%s}],"outputs":[{"name":"action"}]}`, text))
		if err := json.Unmarshal([]byte(answer), &a); err != nil || a.ID == "" || ids[a.ID] || len(a.Outputs) != 1 || a.Outputs[0].Name != "action" || len(a.Outputs[0].Data) != 2 {
			t.Fatal(answer, err)
		}
		ids[a.ID] = true
		taken(a.ID, 0, a.Outputs[0].Data[0])
		taken(a.ID, 1, a.Outputs[0].Data[1])
		id := fmt.Sprint("call ", i)
		got, err := rpc.ModelInfer(t.Context(), &inference.ModelInferRequest{ModelName: "policy", Id: id, Inputs: []*inference.ModelInferRequest_InferInputTensor{{Name: "observation", Datatype: "FP32", Shape: []int64{1, 4}, Contents: &inference.InferTensorContents{Fp32Contents: obs[:4]}}}})
		if err != nil || got.Id != id {
			t.Fatal(got, err)
		}
		for k, o := range got.Outputs {
			if o.Name == "action" {
				taken(id, 0, float64(got.RawOutputContents[k][0]))
			}
		}
	}
	r.Want(400, "/v2/models/policy/infer", `{"inputs":[{"name":"observation","shape":[1,4],"datatype":"FP32","data":[0,0,0,0]}],"outputs":[{"name":"nothing"}]}`)
	if files, err := decisionlog.Files(log, "policy"); err != nil || len(files) > 0 {
		t.Fatal("files are published before their time", files, err)
	}
	if code := r.Stop(); code != 0 {
		t.Fatalf("exit status %d\n%s", code, r.Log)
	}
	const n = 3 * asks
	r.Says(fmt.Sprintf("%d decisions are in", n))
	if chosen[0] < n/10 || chosen[1] < n/10 || chosen[0]+chosen[1] != n {
		t.Fatalf("a policy that has hardly learnt has chosen %v", chosen)
	}
	table, data := apptest.Write(t, "rewards.csv", rewards), filepath.Join(dir, "served")
	config := filepath.Join(run, "config.yaml")
	apptest.Refuse(t, []string{"dataset", "import", log, "--config", config, "-o", data}, "no episode", fmt.Sprint(n, " decisions without a reward"))
	apptest.Says(t, apptest.Succeed(t, "dataset", "import", log, "--rewards", table, "--config", config, "-o", data), fmt.Sprintf("%d episodes, %d transitions of cartpole", n, n))
	apptest.Succeed(t, "dataset", "inspect", data)

	// The served policy has its own data: all weights are 1. The candidate's value is what its
	// probabilities of the arms give.
	other := apptest.Trained(t, tinyCartPole, "--set", "seed=9")
	e := apptest.Decode[offlineEvaluation](t, apptest.Succeed(t, "evaluate", run, "--offline", data, "--stochastic", "--json", "-q", "--fqe-updates", "60", "--fqe-hidden", "8", "--bootstrap", "100"))
	known := 0
	for _, x := range e.Rows[1:] {
		if x.Value == nil || x.Low == nil {
			t.Errorf("%+v", x)
			continue
		}
		known++
		if (x.Estimator == ope.PDIS || x.Estimator == ope.WPDIS) && (math.Abs(*x.Value-*e.Rows[0].Value) > 1e-3 || *x.EffectiveSampleSize < n-0.1) {
			t.Errorf("%s is %v, and the data's return %v", x.Estimator, *x.Value, *e.Rows[0].Value)
		}
	}
	if known != len(ope.Estimators()) {
		t.Errorf("%d estimators have a value", known)
	}
	apptest.Says(t, apptest.Succeed(t, "evaluate", other, "--offline", data, "--stochastic", "-q", "--fqe-updates", "60", "--fqe-hidden", "8"), fmt.Sprint(n, " episodes (0 cut off)"), "wpdis", "95 % interval")

	apptest.Says(t, apptest.Succeed(t, "fit", "-q", "--model", filepath.Join(run, "best.onnx"), "--data", data, "--input", "observation=obs.observation", "--target", "value=reward", "--loss", "mse", "--epochs", "2", "--out", filepath.Join(dir, "fit")), "")
	learn := apptest.Write(t, "iql.yaml", strings.Replace(tinyCartPole, "agent: {kind: ppo, hidden: [8], n_steps: 32}", "agent: {kind: discrete_cql, hidden: [8], batch_size: 16}\ndataset: {path: "+data+"}", 1))
	apptest.Says(t, apptest.Succeed(t, "train", learn, "--out", filepath.Join(dir, "offline")), "published")
}

// TestFeedbackKilled: a server that is killed leaves whole files, and of what it answered lacks no
// more than what was not published yet.
func TestFeedbackKilled(t *testing.T) {
	t.Parallel()
	run, dir := apptest.Trained(t, tinyCartPole), t.TempDir()
	log := filepath.Join(dir, "decisions")
	r := apptest.StartServe(t, "--engine", portable.Name, "--model", "policy="+filepath.Join(run, "best.onnx"), "--decisions", log, "--decisions-every", "20ms")
	ask := func() {
		r.Want(200, "/v2/models/policy/infer", `{"id":"a","inputs":[{"name":"observation","shape":[1,4],"datatype":"FP32","data":[0,0,0,0]}]}`)
	}
	answers, published := 0, func() bool {
		files, err := decisionlog.Files(log, "policy")
		return err == nil && len(files) >= 3
	}
	for ; !published(); answers++ {
		ask()
		time.Sleep(time.Millisecond)
	}
	for range 50 {
		ask()
		answers++
	}
	metrics := r.Want(200, "/metrics", "")
	r.Signal(syscall.SIGKILL)
	rows := 0
	if err := decisionlog.Read(t.Context(), log, "policy", func(_ *decisionlog.Layout, x *decisionlog.Row) error {
		if x.Request != "a" || x.LogProb != 0 || !strings.HasPrefix(x.Digest, "sha256:") {
			return fmt.Errorf("%+v", x)
		}
		rows++
		return nil
	}); err != nil || rows > answers || rows < 3 {
		t.Errorf("%d rows of %d answers: %v", rows, answers, err)
	}
	apptest.Says(t, metrics, `onnxrl_decisions_dropped_total{reason="queue"} 0`, "onnxrl_decisions_logged_total ")
}
