package dashboard

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"
)

// Options are what a board shows. Zero values stand for the defaults in parentheses.
type Options struct {
	// Paths are folders and files; what is below folders is found.
	Paths []string
	// Interval is how often files are looked at (1 s), and Search how often for new ones (5 s).
	Interval, Search time.Duration
	// Buckets is the most buckets of all series together (2 million, of 40 bytes each).
	Buckets int
	// Explain, unless nil, explains decisions of published policies.
	Explain Explainer
	// Live, unless nil, is a live trading service.
	Live *Live
	// Version is that of the program.
	Version string
	// Log gets what goes wrong (nothing).
	Log *slog.Logger
	// Now is the time ([time.Now]).
	Now func() time.Time
}

const (
	defaultBuckets = 2 << 20
	// fewest and most are the bounds of a series' buckets.
	fewest, most = 32, 2048
	// readBudget is how many bytes of one run are read before the next has its turn.
	readBudget = 4 << 20
)

// Board watches folders; see the package comment. Its methods are safe for concurrent use.
type Board struct {
	o      Options
	finder finder

	mu    sync.RWMutex
	items []Item
	runs  map[string]*run
	byID  map[string]Item
	order []string
	// version counts changes; structure is the version at which items changed last.
	version, structure int
	limit              int
	problem            string
	processes          map[string]*Process
	listeners          map[chan struct{}]bool
	usage              usage
}

// New returns a board. [Board.Run] has it watch.
func New(o Options) *Board {
	if o.Interval <= 0 {
		o.Interval = time.Second
	}
	if o.Search <= 0 {
		o.Search = 5 * time.Second
	}
	if o.Buckets <= 0 {
		o.Buckets = defaultBuckets
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	return &Board{o: o, runs: map[string]*run{}, byID: map[string]Item{}, limit: most, listeners: map[chan struct{}]bool{}, usage: usage{last: map[int]cpuTime{}}}
}

// Run watches until the context ends, and returns its error.
func (b *Board) Run(ctx context.Context) error {
	if b.o.Live != nil {
		var live sync.WaitGroup
		live.Go(func() { b.o.Live.run(ctx, b.notify) })
		defer live.Wait()
	}
	tick := time.NewTicker(b.o.Interval)
	defer tick.Stop()
	var searched time.Time
	for {
		if now := b.o.Now(); now.Sub(searched) >= b.o.Search {
			searched = now
			b.search()
		}
		if err := b.catchUp(ctx); err != nil {
			return err
		}
		b.measure()
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
	}
}

// search finds items.
func (b *Board) search() {
	items, err := b.finder.find(b.o.Paths)
	b.mu.Lock()
	defer b.mu.Unlock()
	text := ""
	if err != nil {
		text = err.Error()
	}
	changed := text != b.problem || len(items) != len(b.items)
	if text != b.problem && err != nil {
		b.o.Log.Warn("look for runs", slog.Any("error", err))
	}
	b.problem = text
	found := map[string]bool{}
	for _, it := range items {
		key := it.key()
		found[key] = true
		if _, ok := b.byID[key]; !ok {
			changed = true
		}
		b.byID[key] = it
		if it.Kind == Training && b.runs[it.ID] == nil {
			b.runs[it.ID] = newRun(it, b.limit)
			b.order = append(b.order, it.ID)
		}
	}
	for key, it := range b.byID {
		if !found[key] {
			delete(b.byID, key)
			delete(b.runs, it.ID)
			changed = true
		}
	}
	kept := b.order[:0]
	for _, id := range b.order {
		if b.runs[id] != nil {
			kept = append(kept, id)
		}
	}
	b.order, b.items = kept, items
	if changed {
		b.version++
		b.structure = b.version
		b.tell()
	}
}

// list is all runs in the order in which they were found.
func (b *Board) list() []*run {
	b.mu.RLock()
	defer b.mu.RUnlock()
	list := make([]*run, len(b.order))
	for i, id := range b.order {
		list[i] = b.runs[id]
	}
	return list
}

// catchUp reads, in turns, what has come, until nothing is left.
func (b *Board) catchUp(ctx context.Context) error {
	buffer := make([]byte, longestLine)
	var line metricsLine
	runs := b.list()
	for len(runs) > 0 {
		left := runs[:0]
		for _, r := range runs {
			if err := ctx.Err(); err != nil {
				return err
			}
			if b.take(r, buffer, &line) {
				left = append(left, r)
			}
		}
		runs = left
	}
	b.share()
	return nil
}

// take lets a run have its turn, and reports whether it needs another.
func (b *Board) take(r *run, buffer []byte, line *metricsLine) (more bool) {
	r.mu.Lock()
	before := len(r.series)
	r.mu.Unlock()
	if r.read(readBudget, buffer, line) {
		b.changed(r)
	}
	r.mu.Lock()
	grown := len(r.series) > before
	more = r.reading
	r.mu.Unlock()
	if grown {
		b.share() // before the next has its turn, so that not all of them are large for a while
	}
	return more
}

// changed gives a run a new version.
func (b *Board) changed(r *run) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.version++
	r.mu.Lock()
	r.version = b.version
	r.mu.Unlock()
	b.tell()
}

// notify tells the pages that something has changed that has no version.
func (b *Board) notify() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.tell()
}

// tell wakes listeners; b.mu is held.
func (b *Board) tell() {
	for l := range b.listeners {
		select {
		case l <- struct{}{}:
		default: // It is awake.
		}
	}
}

// listen returns a channel that has something whenever anything has changed since it was received
// from last, and what ends that.
func (b *Board) listen() (changed <-chan struct{}, end func()) {
	l := make(chan struct{}, 1)
	b.mu.Lock()
	defer b.mu.Unlock()
	b.listeners[l] = true
	return l, func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		delete(b.listeners, l)
	}
}

// share divides the budget of buckets among the series.
func (b *Board) share() {
	series := 0
	runs := b.list()
	for _, r := range runs {
		r.mu.Lock()
		series += len(r.series)
		r.mu.Unlock()
	}
	limit := most
	for limit > fewest && limit*series > b.o.Buckets {
		limit /= 2
	}
	b.mu.Lock()
	same := limit >= b.limit
	if !same {
		b.limit = limit
	}
	b.mu.Unlock()
	if same {
		return
	}
	for _, r := range runs {
		r.resize(limit)
	}
}

// measure asks the system what running trainings cost.
func (b *Board) measure() {
	locks := map[string]string{}
	for _, r := range b.list() {
		r.mu.Lock()
		if !r.finished.done {
			locks[r.ID] = r.path
		}
		r.mu.Unlock()
	}
	p := b.usage.measure(locks, b.o.Now())
	b.mu.Lock()
	defer b.mu.Unlock()
	b.processes = p
}

// run returns a run by its id.
func (b *Board) run(id string) (*run, error) {
	b.mu.RLock()
	defer b.mu.RUnlock()
	if r := b.runs[id]; r != nil {
		return r, nil
	}
	return nil, missing(Training, id)
}

// item returns an item by its kind and id.
func (b *Board) item(kind Kind, id string) (Item, error) {
	b.mu.RLock()
	defer b.mu.RUnlock()
	if it, ok := b.byID[Item{Kind: kind, ID: id}.key()]; ok {
		return it, nil
	}
	return Item{}, missing(kind, id)
}

// errMissing says that there is no such item.
var errMissing = errors.New("is not among what is shown")

func missing(kind Kind, id string) error { return fmt.Errorf("%s %q %w", kind, id, errMissing) }

// Overview is what a board has. Runs are those that changed after the version that was asked about.
type Overview struct {
	// Version is the newest version; Structure the one at which items came or went last.
	Version   int          `json:"version"`
	Structure int          `json:"structure"`
	Now       float64      `json:"now"`
	Program   string       `json:"program"`
	Items     []Item       `json:"items"`
	Runs      []RunSummary `json:"runs"`
	Live      bool         `json:"live"`
	Explains  bool         `json:"explains"`
	Problem   string       `json:"problem,omitempty"`
	// Buckets is how many buckets a series may have.
	Buckets int `json:"buckets"`
	// Memory is the bytes of the dashboard's own heap that are in use.
	Memory uint64 `json:"memory"`
}

// Overview lists the items, and the runs that have changed after a version; 0 is before all.
func (b *Board) Overview(since int) Overview {
	now := float64(b.o.Now().UnixMilli()) / 1000
	b.mu.RLock()
	o := Overview{Version: b.version, Structure: b.structure, Now: now, Program: b.o.Version, Items: append([]Item{}, b.items...), Runs: []RunSummary{}, Live: b.o.Live != nil, Explains: b.o.Explain != nil, Problem: b.problem, Buckets: b.limit}
	processes := b.processes
	b.mu.RUnlock()
	for _, r := range b.list() {
		if s := r.summary(now); s.Version > since || since == 0 || processes[r.ID] != nil {
			s.Process = processes[r.ID]
			o.Runs = append(o.Runs, s)
		}
	}
	o.Memory = heapInUse()
	return o
}

// Check reports the first of the paths that is not there.
func Check(paths []string) error {
	for _, p := range paths {
		if _, err := os.Stat(p); err != nil {
			return fmt.Errorf("look for runs: %w", err)
		}
	}
	return nil
}
