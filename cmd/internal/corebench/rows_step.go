package corebench

import (
	"context"
	"fmt"
	"slices"

	"github.com/onnxrl/onnxrl/cmd/internal/benchmark"
)

// measure compares a training step with its bare products.
func (w workload) measure(ctx context.Context, b *bench) ([]benchmark.Row, error) {
	t, err := w.newTrainer(b.Engine, 1)
	if err != nil {
		return nil, err
	}
	defer t.Close()
	if err := t.check(); err != nil {
		return nil, err
	}
	allocs, err := allocations(t.step)
	if err != nil {
		return nil, err
	}
	products, err := w.products(t)
	if err != nil {
		return nil, err
	}
	bare, err := bindProducts(b.Engine, products)
	if err != nil {
		return nil, err
	}
	defer bare.Close()
	d, err := b.pace.alternate(ctx, mean(t.step), mean(bare.run))
	if err != nil {
		return nil, err
	}
	row := duelRow("step/"+w.name, "gradient step with Adam", fmt.Sprintf("%d bare products", len(products)), d, w.target)
	row.Allocs = &allocs
	row.Note = rate(row.Value) + ", " + t.nodes()
	return []benchmark.Row{row}, nil
}

func (w workload) products(t *trainer) ([]Product, error) {
	bind := map[string]int{}
	if w.batch > 0 {
		bind[batchSymbol] = w.batch
	}
	return Products(t.forward, bind, slices.Concat(t.net.Constants, t.net.Buffers)...)
}

// measureParallel compares the step on one core with the same step split over two.
func (w workload) measureParallel(ctx context.Context, b *bench) ([]benchmark.Row, error) {
	one, err := w.newTrainer(b.Engine, 1)
	if err != nil {
		return nil, err
	}
	defer one.Close()
	two, err := w.newTrainer(b.Engine, 2)
	if err != nil {
		return nil, err
	}
	defer two.Close()
	if err := two.check(); err != nil {
		return nil, err
	}
	allocs, err := allocations(two.step)
	if err != nil {
		return nil, err
	}
	d, err := b.pace.alternate(ctx, mean(two.step), mean(one.step))
	if err != nil {
		return nil, err
	}
	row := duelRow("parallel/"+w.name, "step on two cores", "on one core", d, w.speedup)
	// The target is the speed-up, the inverse of the ratio of times.
	if row.Ratio != 0 {
		row.Ratio = 1 / row.Ratio
	}
	row.Allocs = &allocs
	row.Note = rate(row.Value)
	return []benchmark.Row{row}, nil
}
