package offpolicy

import (
	"slices"
	"strings"

	"github.com/onnxrl/onnxrl/agents/network"
	"github.com/onnxrl/onnxrl/models"
	"github.com/onnxrl/onnxrl/models/program"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// frozen is what a learner has where its encoders, or their first layers, never change.
type frozen struct {
	*network.Frozen
	// now and next fill the inputs for obs_tm1 and obs_t.
	now, next *network.FrozenFeed
}

var _ network.Keeper = (*Learner)(nil)

// Kept implements network.Keeper.
func (l *Learner) Kept() *network.Kept {
	if l.frozen.Frozen == nil {
		return nil
	}
	return &l.frozen.Frozen.Kept
}

// split takes out of the networks what depends on windows alone, if it pays. The exported network
// stays whole.
func (l *Learner) split() error {
	n := l.Networks
	roles := map[string]models.Role{}
	for _, s := range n.Specs {
		roles[s.Name] = s.Role
	}
	constant := func(param string) (string, bool) {
		// The target of a frozen parameter begins equal to it and never moves.
		followed, target := strings.CutPrefix(param, TargetScope+".")
		if target && roles[followed] == models.Frozen {
			return followed, true
		}
		return param, !target && (roles[param] == models.Base || roles[param] == models.Frozen)
	}
	nets := []**models.Network{&n.Act, &n.Targets, &n.Critic, &n.Actor}
	if n.Ahead != nil {
		nets = append(nets, &n.Ahead)
	}
	var list []*models.Network
	for _, x := range nets {
		list = append(list, *x)
	}
	var err error
	l.frozen.Frozen, err = network.NewFrozen(&l.Setup, &n.config, n.Frame, l.Params, constant, []string{"", NextPrefix}, list)
	if l.frozen.Frozen == nil || err != nil {
		return err
	}
	for i, x := range nets {
		*x = l.frozen.Networks[i]
	}
	return nil
}

// bind finds the inputs of the programs that are filled from what is kept, and asks for the rows.
func (f *frozen) bind(l *Learner) {
	if f.Frozen == nil {
		return
	}
	programs := []*program.Program{l.Actor, l.Critic, l.Targets}
	in := func(name string) *tensor.Tensor {
		for _, p := range programs {
			if t := p.Input(name); t != nil {
				return t
			}
		}
		return nil
	}
	f.now, f.next = f.Feed("", in), f.Feed(NextPrefix, in)
	rows := func() [][]int64 {
		list := make([][]int64, l.Networks.Frame.Series+1)
		// No row of a table: a store that does not write them is noticed.
		list[l.Networks.Frame.Series] = slices.Repeat([]int64{-1}, len(l.Batch.Reward))
		return list
	}
	if f.now != nil {
		l.Batch.Rows = rows()
	}
	if f.next != nil {
		l.Batch.NextRows = rows()
	}
}

// fill writes what is kept of the windows of the batch into the inputs.
func (f *frozen) fill(l *Learner) error {
	if f.Frozen == nil {
		return nil
	}
	i, w := l.Networks.Frame.Series, l.Networks.Frame.Window()
	if f.now != nil {
		if err := f.now.Rows(w, l.Batch.Rows[i]); err != nil {
			return err
		}
	}
	if f.next != nil {
		return f.next.Rows(w, l.Batch.NextRows[i])
	}
	return nil
}
