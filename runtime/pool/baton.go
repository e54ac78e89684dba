package pool

import (
	"runtime"
	"sync/atomic"
	"time"
)

// baton hands turns from one goroutine to another. The zero value is not ready: use newBaton.
type baton struct {
	turns  atomic.Uint32
	asleep atomic.Bool
	wake   chan struct{}
	// spin is how long the waiting side looks for its turn before it sleeps.
	spin time.Duration
}

func newBaton(spin time.Duration) *baton { return &baton{wake: make(chan struct{}, 1), spin: spin} }

// pass gives the waiting side one more turn. What the caller has written before is visible to it.
func (b *baton) pass() {
	b.turns.Add(1)
	if b.asleep.Swap(false) {
		b.wake <- struct{}{}
	}
}

// await returns the number of turns passed once it is not seen any more.
func (b *baton) await(seen uint32) uint32 {
	for {
		for start := time.Now(); time.Since(start) < b.spin; runtime.Gosched() {
			for range 100 {
				if t := b.turns.Load(); t != seen {
					return t
				}
			}
		}
		b.asleep.Store(true)
		// The turn may have come before the other side could see the sleeper. Whoever takes the
		// mark back first decides whether a wake-up is sent.
		if t := b.turns.Load(); t != seen && b.asleep.Swap(false) {
			return t
		}
		<-b.wake
		// A pass that is held up between its two steps wakes whoever waits for the turn after; that
		// one looks again.
		if t := b.turns.Load(); t != seen {
			return t
		}
	}
}
