package gymnasium

import (
	"fmt"
	"log/slog"

	"github.com/onnxrl/onnxrl/envs"
	"github.com/onnxrl/onnxrl/envs/vector"
	"github.com/onnxrl/onnxrl/runtime/rng"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// Env is a single environment in a process of its own. A Vector steps many at the price of one.
type Env struct {
	v *Vector
	// seed is what the present episode is made from.
	seed int64
}

var (
	_ envs.Env      = (*Env)(nil)
	_ envs.Saver    = (*Env)(nil)
	_ vector.Logger = (*Env)(nil)
)

func newEnv(v *Vector) *Env {
	e := &Env{v: v}
	v.fixed = &e.seed
	return e
}

// Spec implements envs.Env.
func (e *Env) Spec() envs.Spec { return e.v.spec }

// SetLog implements vector.Logger: the log says when the process is replaced.
func (e *Env) SetLog(log *slog.Logger) { e.v.opts.Log = log }

// Reset implements envs.Env. The first one starts the process.
func (e *Env) Reset(key rng.Key, ts *envs.TimeStep) error {
	e.seed = e.v.seedFrom(key)
	if err := e.v.Reset(key); err != nil {
		return err
	}
	e.write(ts, e.v.rows[0].obs, e.v.batch.Mask)
	return nil
}

// Step implements envs.Env.
func (e *Env) Step(action *tensor.Tensor, ts *envs.TimeStep) error {
	v := e.v
	if v.running {
		if err := envs.CheckAction(&v.spec, action); err != nil {
			return err
		}
		// An action has no batch in front.
		copy(v.batch.Actions.Bytes(), action.Bytes())
	}
	if err := v.Step(v.batch.Actions); err != nil {
		return err
	}
	if v.batch.Type[0] == envs.Last {
		v.running = false
		e.write(ts, v.rows[0].final, v.batch.FinalMask)
		return nil
	}
	e.write(ts, v.rows[0].obs, v.batch.Mask)
	return nil
}

// write copies the batch's only row.
func (e *Env) write(ts *envs.TimeStep, obs []*tensor.Tensor, mask *tensor.Tensor) {
	b := e.v.batch
	ts.Type, ts.Reward, ts.Discount = b.Type[0], b.Reward[0], b.Discount[0]
	for f, t := range obs {
		copy(ts.Obs[f].Bytes(), t.Bytes())
	}
	if mask != nil {
		copy(ts.Mask.Bytes(), mask.Bytes())
	}
	copy(ts.Costs, b.Costs[0])
	copy(ts.Info, b.Info[0])
}

// SaveState implements envs.Saver.
func (e *Env) SaveState() ([]byte, error) { return e.v.SaveState() }

// LoadState implements envs.Saver.
func (e *Env) LoadState(data []byte, ts *envs.TimeStep) error {
	if err := e.v.LoadState(data); err != nil {
		return fmt.Errorf("load an environment: %w", err)
	}
	e.write(ts, e.v.rows[0].obs, e.v.batch.Mask)
	return nil
}

// Close implements envs.Env.
func (e *Env) Close() error { return e.v.Close() }
