package actorbench

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/onnxrl/onnxrl/agents/actors"
	"github.com/onnxrl/onnxrl/agents/experiment"
	"github.com/onnxrl/onnxrl/agents/run"
	"github.com/onnxrl/onnxrl/agents/train"
	"github.com/onnxrl/onnxrl/cmd/internal/benchmark"
	"github.com/onnxrl/onnxrl/configs"
	"github.com/onnxrl/onnxrl/runtime/engine"
	"github.com/onnxrl/onnxrl/runtime/printable"
)

// Options say what is measured.
type Options struct {
	Engine engine.Compiler
	// Kinds are those of a document, with [Kind].
	Kinds experiment.Kinds
	// Actor starts a process that acts, see run.Options.
	Actor func(ctx context.Context, index int) (actors.Conn, error)
	// Wait is how long a step of an environment takes, Envs the number of environments of all
	// actors together.
	Wait time.Duration
	Envs int
	// Counts are the numbers of actors.
	Counts []int
	// MaxPolicyLag is that of the document.
	MaxPolicyLag int
	// EnvSteps are those of one run.
	EnvSteps int64
	// Began receives each run.
	Began func(name string)
}

// Target is what two processes are to reach of the env steps per second of one.
const Target = 1.8

// Row is the training with some number of actors; the JSON keys are stable.
type Row struct {
	Actors         int     `json:"actors"`
	EnvSteps       int64   `json:"env_steps"`
	Seconds        float64 `json:"seconds"`
	StepsPerSecond float64 `json:"env_steps_per_second"`
	// Ratio is to the first row.
	Ratio     float64        `json:"ratio"`
	PolicyLag *run.PolicyLag `json:"policy_lag"`
}

// Report is what came of it; the JSON keys are stable.
type Report struct {
	Machine benchmark.Machine `json:"machine"`
	Wait    float64           `json:"wait_seconds"`
	Envs    int               `json:"envs"`
	Rows    []Row             `json:"rows"`
	Target  float64           `json:"target"`
	// Missed counts the targets that are missed.
	Missed int `json:"missed"`
}

// document is APPO's for CartPole, with environments that wait.
const document = `
seed: 1
env: {kind: waiting_cartpole}
agent: {kind: appo, n_steps: 16, n_epochs: 4, learning_rate: 1.0e-3}
train: {threads: 1, validation: {every_steps: 0}}
`

// Run trains with each number of actors, one run after the other.
func Run(ctx context.Context, o Options) (*Report, error) {
	r := &Report{Machine: benchmark.ThisMachine(), Wait: o.Wait.Seconds(), Envs: o.Envs, Target: Target}
	for _, n := range o.Counts {
		if o.Began != nil {
			o.Began(fmt.Sprintf("%d actors", n))
		}
		row, err := measure(ctx, o, n)
		if err != nil {
			return nil, fmt.Errorf("%d actors: %w", n, err)
		}
		r.Rows = append(r.Rows, row)
		first := r.Rows[0]
		row.Ratio = row.StepsPerSecond / first.StepsPerSecond
		if r.Rows[len(r.Rows)-1] = row; n == 2*first.Actors && row.Ratio < Target {
			r.Missed++
		}
	}
	return r, nil
}

// measure trains with so many actors. The time is that between the first and the last learner step,
// without the start of the processes.
func measure(ctx context.Context, o Options, n int) (row Row, err error) {
	doc, err := configs.Parse("document", []byte(document))
	if err != nil {
		return row, err
	}
	if err := doc.Set(fmt.Sprintf("env.wait=%s", o.Wait), fmt.Sprintf("train.num_envs=%d", o.Envs), fmt.Sprintf("train.total_env_steps=%d", o.EnvSteps),
		fmt.Sprintf("train.actors={count: %d, max_policy_lag: %d, processes: true}", n, o.MaxPolicyLag)); err != nil {
		return row, err
	}
	var first, last time.Time
	var from, to int64
	options := run.Options{Engine: o.Engine, Actor: o.Actor, Hooks: run.Hooks{Progress: func(_ *run.Run, p train.Progress) {
		if p.Update > 0 || p.LearnerSteps == 0 || p.EnvSteps == to {
			return
		}
		last, to = time.Now(), p.EnvSteps
		if first.IsZero() {
			first, from = last, to
		}
	}}}
	res, err := run.Job{Config: string(doc.Bytes()), Name: "actors"}.Train(ctx, o.Kinds, options)
	if err != nil {
		return row, err
	}
	row = Row{Actors: n, EnvSteps: to - from, Seconds: last.Sub(first).Seconds(), PolicyLag: res.PolicyLag}
	if row.EnvSteps == 0 {
		return row, fmt.Errorf("%d env steps are one learner step, expected more", o.EnvSteps)
	}
	row.StepsPerSecond = float64(row.EnvSteps) / row.Seconds
	return row, nil
}

// Print writes the report as a table.
func (r *Report) Print(w io.Writer) error {
	t := printable.NewNumbers(w)
	fmt.Fprintln(t, "actor processes\tenv steps\tseconds\tenv steps/s\tratio\ttarget\tpolicy lag (max)\t")
	for _, x := range r.Rows {
		target := "-"
		if x.Actors == 2*r.Rows[0].Actors {
			target = fmt.Sprintf("%.1f", r.Target)
		}
		fmt.Fprintf(t, "%d\t%d\t%.2f\t%.0f\t%.2f\t%s\t%.2f (%d)\t\n", x.Actors, x.EnvSteps, x.Seconds, x.StepsPerSecond, x.Ratio, target, x.PolicyLag.Mean, x.PolicyLag.Max)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	_, err := fmt.Fprintf(w, "%d environments, of which each step waits %g ms, one after the other in each actor\n%s\n", r.Envs, 1000*r.Wait, r.Machine)
	return err
}
