package actors

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/onnxrl/onnxrl/agents"
)

// TestSchedules lets actors and a learner meet at a hub under random schedules, in which unrolls
// are lost, handed over twice and made up: whatever happens, no unroll is learnt from twice or left
// out, none is older than permitted, and everybody comes to an end. synctest fails when all are
// blocked, and has the schedules take no time.
func TestSchedules(t *testing.T) {
	var mu sync.Mutex
	seen := map[string]int{}
	see := func(what string) {
		mu.Lock()
		defer mu.Unlock()
		seen[what]++
	}
	for _, c := range []struct {
		actors, lag int
		// lost is the part of the unrolls that are lost, and twice that of those handed over twice.
		lost, twice float64
		// end is how it ends: after all updates, by cancelling, or because an actor fails.
		end string
	}{
		{1, 0, 0, 0, "done"}, {1, 3, 0.2, 0.2, "done"}, {2, 0, 0.1, 0.5, "done"}, {2, 1, 0, 0, "done"}, {4, 1, 0.3, 0.3, "done"}, {7, 5, 0.1, 0.1, "done"},
		{1, 0, 0, 0, "cancel"}, {3, 2, 0.2, 0.2, "cancel"}, {5, 1, 0.2, 0, "cancel"}, {2, 0, 0, 0, "fail"}, {4, 3, 0.1, 0.1, "fail"},
	} {
		for seed := range uint64(25) {
			what := fmt.Sprintf("%+v, seed %d", c, seed)
			synctest.Test(t, func(t *testing.T) {
				const begin, updates = 11, 30
				h := NewHub(c.actors, c.lag, begin, begin)
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				failed := errors.New("an actor fails")
				weights := make(chan int64, 1)
				weights <- begin
				newest := func() int64 {
					v := <-weights
					weights <- v
					return v
				}
				ends := make(chan error)
				for i := range c.actors {
					r := rand.New(rand.NewPCG(seed, uint64(i)))
					nap := func() { time.Sleep(time.Duration(r.IntN(1000))) }
					go func() {
						ends <- func() error {
							for {
								nap()
								number, err := h.Permit(ctx, i)
								if err != nil {
									return err
								}
								v := newest()
								nap()
								if c.end == "fail" && number == begin+updates/2 && i == 0 {
									h.Fail(failed)
								}
								if r.Float64() < c.lost {
									see("lost")
									continue
								}
								p := &Played{Number: number, Unroll: &agents.Unroll{Version: v}}
								// The hub takes nothing that no actor should hand over.
								for _, bad := range []*Played{
									{Number: number + 1, Unroll: p.Unroll}, {Number: number, Unroll: &agents.Unroll{Version: number - int64(c.lag) - 1}}, {Number: number, Unroll: &agents.Unroll{Version: begin + updates + 1}},
								} {
									if refused := (*RefusedError)(nil); !errors.As(h.Submit(i, bad), &refused) {
										t.Errorf("%s: unroll %d of version %d is taken, expected %d", what, bad.Number, bad.Version, number)
									}
								}
								if err := h.Submit(i, p); err != nil {
									return err
								}
								if r.Float64() < c.twice {
									see("twice")
									if refused := (*RefusedError)(nil); !errors.As(h.Submit(i, p), &refused) {
										t.Errorf("%s: unroll %d is taken twice", what, number)
									}
								}
							}
						}()
					}()
				}
				r := rand.New(rand.NewPCG(seed, 99))
				stop := begin + int64(r.IntN(updates))
				taken := map[*Played]bool{}
				var err error
				for version := int64(begin); version < begin+updates; version++ {
					time.Sleep(time.Duration(r.IntN(1000)))
					if c.end == "cancel" && version == stop {
						if r.IntN(2) == 0 {
							cancel()
						} else {
							time.AfterFunc(time.Duration(r.IntN(500)), cancel)
						}
					}
					var batch []*Played
					if batch, err = h.Take(ctx); err != nil {
						break
					}
					for i, p := range batch {
						see("taken")
						if p.Lag() > 0 {
							see("late")
						}
						if p.Number != version || p.Version < begin || p.Lag() < 0 || p.Lag() > int64(c.lag) || taken[p] {
							t.Errorf("%s: update %d has unroll %d of actor %d, played by version %d, taken before: %v", what, version, p.Number, i, p.Version, taken[p])
						}
						taken[p] = true
					}
					if len(batch) != c.actors {
						t.Errorf("%s: a batch of %d", what, len(batch))
					}
					h.Learnt(func() {
						<-weights
						weights <- version + 1
						// Whoever has these now is not to be ahead of the hub.
						runtime.Gosched()
					})
				}
				want := map[string]error{"done": nil, "cancel": context.Canceled, "fail": failed}[c.end]
				if !errors.Is(err, want) {
					t.Errorf("%s: ends with %v", what, err)
				}
				cancel()
				for range c.actors {
					if err := <-ends; !errors.Is(err, context.Canceled) && !errors.Is(err, want) {
						t.Errorf("%s: an actor ends with %v", what, err)
					}
				}
				see(c.end)
			})
		}
	}
	if seen["done"] != 150 || seen["cancel"] != 75 || seen["fail"] != 50 || seen["lost"] < 1000 || seen["twice"] < 1000 || seen["late"] < 1000 || seen["taken"] < 10_000 {
		t.Errorf("%v", seen)
	}
}
