package app

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/onnxrl/onnxrl/envs"
	"github.com/onnxrl/onnxrl/envs/market/ashare/audit"
	"github.com/onnxrl/onnxrl/envs/market/trading"
	"github.com/onnxrl/onnxrl/envs/wrap"
	"github.com/onnxrl/onnxrl/runtime/printable"
	"github.com/onnxrl/onnxrl/runtime/sorted"
)

// auditRules looks at the fills of random policies over all bars of an experiment.
func (a *app) auditRules(ctx context.Context, path string, sets []string, rules string, policies int) (err error) {
	if rules != "ashare" {
		return fmt.Errorf("--policies needs --rules ashare, which is %q", rules)
	}
	cfg, _, err := a.kinds.Load(path, sets)
	if err != nil {
		return err
	}
	f, err := envs.Open(ctx, a.kinds.Envs, cfg.Env)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	o, ok := wrap.FindFactory[trading.Opened](f)
	if !ok {
		return fmt.Errorf("%s: env.kind is %s, expected trading", path, cfg.Env.Kind)
	}
	s := o.Source()
	r, err := audit.Random(ctx, s, trading.Range{First: 0, Last: s.Market().Len() - 1}, policies)
	if err != nil {
		return err
	}
	if a.json {
		err = a.printJSON(r)
	} else {
		err = a.printAudit(r, o.Data().Notes)
	}
	if n := r.Problems(); err == nil && n > 0 {
		err = fmt.Errorf("%d fills, prices or sums are against the rules", n)
	}
	return err
}

func (a *app) printAudit(r *audit.Report, notes []string) error {
	for _, n := range notes {
		fmt.Fprintf(a.out, "note: %s\n", n)
	}
	w := printable.NewTable(a.out)
	fmt.Fprintf(w, "bars with trading\t%d\tof them with buys blocked at the close %d, with sales %d\n", r.Traded, r.BlockedBuys, r.BlockedSells)
	fmt.Fprintf(w, "steps\t%d\tof %d random policies\n", r.Steps, r.Policies)
	fmt.Fprintf(w, "fills\t%d\tbuys %d, sales %d; fees of %v\n", r.Buys+r.Sells, r.Buys, r.Sells, r.Fees)
	fmt.Fprintf(w, "against the rules\t%d\t\n", r.Problems())
	for kind, n := range sorted.All(r.Wrong) {
		fmt.Fprintf(w, "  %s\t%d\t\n", kind, n)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	for _, text := range slices.Sorted(slices.Values(r.Examples)) {
		fmt.Fprintln(a.out, text)
	}
	return nil
}
