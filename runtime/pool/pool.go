// Package pool runs short pieces of work on several cores in step with their caller.
//
// Starting goroutines and waiting for them takes from 5 to 50 µs when their threads have gone to
// sleep, which is too much for pieces of a few hundred. The workers of a [Pool] stay, and spin for
// a moment before they sleep; a loop of such pieces then pays less than a microsecond for each.
//
// To use it in another kind of work: make one pool per loop, make the function once, and give each
// worker a share of its own that it can find by its number.
package pool

import (
	"fmt"
	"time"
)

// Spin is how long the workers of a loop of short pieces look for their next one before they sleep.
// Waking a sleeping one takes from 5 to 50 µs, much of what a second core can save on a run of some
// hundred. A step's work between two runs, clipping and the optimiser, fits into this time.
const Spin = 100 * time.Microsecond

// Pool is a fixed number of workers, the caller's goroutine included. Only one goroutine may use it
// at a time.
type Pool struct {
	workers []*worker
	job     func(k int)
}

// worker is one goroutine beside the caller's.
type worker struct {
	start, done *baton
	finished    uint32
}

// New starts a pool of n ≥ 1 workers that spin for so long, usually [Spin], before they sleep; with
// 0 they sleep at once, which suits pieces between which the cores have other work. Close it after
// use.
func New(n int, spin time.Duration) *Pool {
	if n < 1 {
		panic(fmt.Sprintf("pool: %d workers", n))
	}
	p := &Pool{}
	for k := 1; k < n; k++ {
		w := &worker{start: newBaton(spin), done: newBaton(spin)}
		p.workers = append(p.workers, w)
		go p.serve(w, k)
	}
	return p
}

// Size returns the number of workers. A nil pool is the caller alone.
func (p *Pool) Size() int {
	if p == nil {
		return 1
	}
	return len(p.workers) + 1
}

// Run calls job(0) on the caller's goroutine and job(1) … job(Size−1) on the others, and returns
// when all have returned. It allocates nothing. job must not panic.
func (p *Pool) Run(job func(k int)) {
	if p == nil {
		job(0)
		return
	}
	p.job = job
	for _, w := range p.workers {
		w.start.pass()
	}
	job(0)
	for _, w := range p.workers {
		w.finished = w.done.await(w.finished)
	}
	// Idle workers keep nothing alive that the job refers to.
	p.job = nil
}

// serve executes jobs until there is none.
func (p *Pool) serve(w *worker, k int) {
	for turn := uint32(0); ; {
		turn = w.start.await(turn)
		job := p.job
		if job != nil {
			job(k)
		}
		w.done.pass()
		if job == nil {
			return
		}
	}
}

// Close ends the goroutines. The pool is the caller alone from then on.
func (p *Pool) Close() {
	if p == nil {
		return
	}
	for _, w := range p.workers {
		w.start.pass()
		w.done.await(w.finished)
	}
	p.workers = nil
}

// Share returns which of n elements worker k of a pool of the given size works on: consecutive
// shares, of equal size up to a cache line of float32.
func Share(n, k, size int) (lo, hi int) {
	const line = 16
	lines := (n + line - 1) / line
	return min(n, lines*k/size*line), min(n, lines*(k+1)/size*line)
}
