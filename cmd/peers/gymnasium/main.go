// Command gymnasium steps environments of Python through envs/gymnasium, for gymnasium_compare.py
// and gymnasium_speed.py, which start it and write to its standard input. Each line is a command,
// each line of output its answer as JSON:
//
//	trace STEPS      steps with random actions and answers with everything that went in and came out
//	step STEPS       the nanoseconds that a step of all environments takes
//	plain STEPS      the nanoseconds that one plain loop in Python over the environments of the first worker takes, measured in that worker
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"time"

	"github.com/onnxrl/onnxrl/envs"
	"github.com/onnxrl/onnxrl/envs/gymnasium"
	"github.com/onnxrl/onnxrl/envs/vector"
	"github.com/onnxrl/onnxrl/runtime/rng"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "gymnasium:", err)
		os.Exit(1)
	}
}

func run() (err error) {
	c := gymnasium.Defaults()
	flag.StringVar(&c.ID, "id", "CartPole-v1", "environment")
	flag.IntVar(&c.Workers, "workers", 1, "processes")
	n := flag.Int("envs", 8, "environments")
	flag.Parse()
	f, err := gymnasium.Open(context.Background(), c)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	opened, err := f.NewVector(envs.Train, *n, vector.Options{})
	if err != nil {
		return err
	}
	v := opened.(*gymnasium.Vector)
	defer func() { err = errors.Join(err, v.Close()) }()
	out := json.NewEncoder(os.Stdout)
	for in := bufio.NewScanner(os.Stdin); in.Scan(); {
		var command string
		var steps int
		if _, err := fmt.Sscan(in.Text(), &command, &steps); err != nil {
			return fmt.Errorf("command %q: %w", in.Text(), err)
		}
		var answer any
		switch command {
		case "trace":
			answer, err = traced(v, steps)
		case "step":
			answer, err = timed(v, steps)
		case "plain":
			// Only workers that have been started can be asked.
			if err = v.Reset(rng.New(1)); err == nil {
				answer, err = v.PlainLoop(0, steps)
			}
		default:
			err = fmt.Errorf("unknown command %q", command)
		}
		if err != nil {
			return err
		}
		if err := out.Encode(answer); err != nil {
			return err
		}
	}
	return nil
}

// wheel draws actions for many steps.
func wheel(v *gymnasium.Vector, n int) []*tensor.Tensor {
	stream, space, like := rng.New(7).Stream(), v.Spec().Action, v.Batch().Actions
	one, out := tensor.New(space.DType(), space.Shape()...), make([]*tensor.Tensor, n)
	for k := range out {
		out[k] = tensor.New(like.DType(), like.Shape()...)
		for rest := out[k].Bytes(); len(rest) > 0; rest = rest[len(one.Bytes()):] {
			space.Sample(stream, nil, one)
			copy(rest, one.Bytes())
		}
	}
	return out
}

func timed(v *gymnasium.Vector, steps int) (time.Duration, error) {
	actions := wheel(v, 64)
	if err := v.Reset(rng.New(1)); err != nil {
		return 0, err
	}
	start := time.Now()
	for k := range steps {
		if err := v.Step(actions[k&63]); err != nil {
			return 0, err
		}
	}
	return time.Since(start) / time.Duration(steps), nil
}

// trace is what a run looked like. Arrays of bytes are as in memory, a row for each step.
type trace struct {
	// Seeds has the seeds of the first episodes of every environment.
	Seeds   [][]int64   `json:"seeds"`
	Actions []byte      `json:"actions"`
	First   []byte      `json:"first"`
	Obs     []byte      `json:"obs"`
	Final   []byte      `json:"final"`
	Rewards [][]float64 `json:"rewards"`
	// Ends has 0 where an episode goes on, 1 where it has come to its end and 2 where it was cut
	// off.
	Ends [][]int `json:"ends"`
}

func traced(v *gymnasium.Vector, steps int) (*trace, error) {
	key := rng.New(11)
	t, b := &trace{}, v.Batch()
	for i := range v.Len() {
		var seeds []int64
		for e := range steps {
			seeds = append(seeds, int64(key.Split("episode", i, e).Stream().Uint64()>>33))
		}
		t.Seeds = append(t.Seeds, seeds)
	}
	if err := v.Reset(key); err != nil {
		return nil, err
	}
	t.First = append(t.First, b.Obs[0].Bytes()...)
	for _, a := range wheel(v, steps) {
		if err := v.Step(a); err != nil {
			return nil, err
		}
		t.Actions, t.Obs, t.Final = append(t.Actions, a.Bytes()...), append(t.Obs, b.Obs[0].Bytes()...), append(t.Final, b.Final[0].Bytes()...)
		t.Rewards = append(t.Rewards, append([]float64{}, b.Reward...))
		ends := make([]int, v.Len())
		for _, e := range b.Ended {
			if ends[e.Env] = 1; e.Truncated {
				ends[e.Env] = 2
			}
		}
		t.Ends = append(t.Ends, ends)
	}
	return t, nil
}
