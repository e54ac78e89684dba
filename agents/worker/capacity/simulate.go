package capacity

import (
	"github.com/onnxrl/onnxrl/runtime/rng"
)

// Result is what comes of a simulation. Times are in seconds; the JSON keys are stable.
type Result struct {
	Makespan float64 `json:"makespan_s"`
	// Overhead is what an interval costs a worker beside the training, and Efficiency the share of
	// all workers' time in which they train.
	Overhead   float64 `json:"overhead_s"`
	Efficiency float64 `json:"efficiency"`
	// Latency is the mean time from when a task is handed over until the program has its directory.
	Latency float64 `json:"latency_s"`
	// Done, Beats and Asked count tasks, heartbeats and questions of the program.
	Done  int `json:"done"`
	Beats int `json:"beats"`
	Asked int `json:"asked"`
	// Stations are how everything was used, and First is the one that was used most.
	Stations []Use `json:"stations"`
	First    Use   `json:"first"`
}

// task is an interval.
type task struct {
	began float64
	// decided is the worker that has its workflow.
	decided *machine
	done    int
}

// machine is a worker, or the program: what moves objects, so many at once.
type machine struct {
	transfers *station
	// storage is how far that is, and link its bandwidth to it, nil without limit.
	storage float64
	link    *station
	// sticky are the tasks whose workflow it has.
	sticky counter
}

// world is a simulation.
type world struct {
	clock
	Scenario
	c                                            Costs
	server, objects, bandwidth, processors, disk *station
	program                                      *machine
	workflows, activities                        counter
	waiting                                      []*task
	done, beats, asked                           int
	latency                                      float64
	left, going                                  int
}

// Simulate plays a scenario with costs. The error says what of them cannot be.
func Simulate(c Costs, s Scenario) (r Result, err error) {
	if err = s.check(); err == nil {
		err = c.check("costs")
	}
	if err != nil {
		return r, err
	}
	w := &world{Scenario: s, c: c}
	w.server, w.objects = w.station("server", s.Writers), w.station("storage", s.Storage)
	w.processors, w.disk = w.station("program's processors", s.Processors), w.station("program's disk", 1)
	w.program = w.machine("program's transfers", s.Transfers, s.Network.ProgramStorage)
	list := []*station{w.server, w.objects, w.processors, w.disk, w.program.transfers}
	if s.ProgramBandwidth > 0 {
		w.program.link = w.station("program's bandwidth", 1)
		list = append(list, w.program.link)
	}
	if s.StorageBandwidth > 0 {
		w.bandwidth = w.station("storage's bandwidth", 1)
		list = append(list, w.bandwidth)
	}
	for range s.Workers {
		m := w.machine("worker", parallel, s.Network.WorkerStorage)
		w.serve(m)
	}
	w.generation()
	w.after(s.Poll, func() { w.ask(s.Poll) })
	w.run(func() bool { return w.done == s.Tasks })
	r = Result{Makespan: w.now, Done: w.done, Beats: w.beats, Asked: w.asked, Latency: w.latency / float64(s.Tasks)}
	all := r.Makespan * float64(s.Workers)
	r.Overhead = (all - float64(s.Tasks)*s.Train) / float64(s.Tasks)
	if all > 0 {
		r.Efficiency = float64(s.Tasks) * s.Train / all
	}
	for _, x := range list {
		u := x.usage()
		if r.Stations = append(r.Stations, u); u.Utilisation > r.First.Utilisation {
			r.First = u
		}
	}
	return r, nil
}

// parallel is how many objects a worker moves at once, see package objects, and asked how many
// tasks the program asks for at once.
const (
	parallel = 4
	asked    = 8
)

func (w *world) station(name string, servers int) *station {
	s := &station{clock: &w.clock, name: name, servers: servers}
	if w.Random {
		s.draws = rng.New(w.Seed).Split(name).Stream()
	}
	return s
}

func (w *world) machine(name string, transfers int, storage float64) *machine {
	return &machine{transfers: w.station(name, transfers), storage: storage}
}

// call goes to a station and comes back, on a way of so many seconds. Delivered, unless nil, is
// called where the station is when what follows may be handed to whoever waits for it.
func (w *world) call(s *station, c Call, way float64, delivered, answered func()) {
	w.after(way, func() {
		if w.Together {
			// It is part of the service, and of the time of the others.
			w.processors.use(c.CPU, nil)
		}
		s.use(c.Service, func() {
			s.use(c.Background, nil)
			if delivered != nil {
				w.after(max(0, c.Deliver-c.Service), delivered)
			}
			if answered != nil {
				w.after(c.Answer-c.Service+way, answered)
			}
		})
	})
}

// generation has the program hand over the tasks of one.
func (w *world) generation() {
	w.left, w.going = w.Tasks/w.Generations, 0
	for w.left > 0 && w.going < w.Slots {
		w.begin()
	}
}

// begin hands a task over.
func (w *world) begin() {
	w.left--
	w.going++
	t := &task{began: w.now}
	w.processors.use(w.c.Program/2, func() {
		w.put(w.program, w.Checkpoint, func() {
			w.waiting = append(w.waiting, t)
			w.call(w.server, w.c.Start, w.Network.Program, func() { w.workflows.offer(t) }, nil)
		})
	})
}

// end is where the program has heard that a task has ended.
func (w *world) end(t *task) {
	w.get(w.program, w.Run, func() {
		w.disk.use(float64(w.Run.Files)*w.c.Disk, func() {
			w.processors.use(w.c.Program/2, func() {
				for i, x := range w.waiting {
					if x == t {
						w.waiting = append(w.waiting[:i], w.waiting[i+1:]...)
						break
					}
				}
				w.latency += w.now - t.began
				w.done++
				t.done++
				w.going--
				switch {
				case w.left > 0:
					w.begin()
				case w.going == 0 && w.done < w.Tasks:
					w.generation()
				}
			})
		})
	})
}

// ask asks for all tasks that are waited for, some at once, and does so again.
func (w *world) ask(due float64) {
	list := append([]*task(nil), w.waiting...)
	next, lanes := 0, min(asked, len(list))
	again := func() { w.after(max(0, due+w.Poll-w.now), func() { w.ask(max(due+w.Poll, w.now)) }) }
	if lanes == 0 {
		again()
		return
	}
	var one func()
	one = func() {
		if next == len(list) {
			if lanes--; lanes == 0 {
				again()
			}
			return
		}
		next++
		w.asked++
		w.after(w.Network.Program, func() { w.call(w.server, w.c.Describe, 0, nil, func() { w.after(w.Network.Program, one) }) })
	}
	for range lanes {
		one()
	}
}

// cpu is processor time of a worker.
func (w *world) cpu(seconds float64, then func()) {
	if w.Together {
		w.processors.use(seconds, then)
		return
	}
	w.after(seconds, then)
}

// serve has a worker poll: for workflow tasks of anybody, for those of its own workflows, and for
// an activity at a time.
func (w *world) serve(m *machine) {
	way := w.Network.Worker
	// A poll is out again as soon as one has come back, while that is carried out.
	var any, own, interval func()
	any = func() {
		w.workflows.poll(func(t *task) {
			w.after(way, func() {
				w.after(way, any)
				t.decided = m
				w.cpu(w.c.Worker/4, func() { w.call(w.server, w.c.Schedule, way, func() { w.activities.offer(t) }, nil) })
			})
		})
	}
	own = func() {
		m.sticky.poll(func(t *task) {
			w.after(way, func() {
				w.after(way, own)
				w.cpu(w.c.Worker/4, func() {
					w.call(w.server, w.c.Complete, way, func() { w.after(w.Network.Program, func() { w.end(t) }) }, nil)
				})
			})
		})
	}
	interval = func() {
		w.activities.poll(func(t *task) { w.after(way, func() { w.train(m, t, func() { w.after(way, interval) }) }) })
	}
	// At the beginning polls are there.
	any()
	own()
	interval()
}

// train is an interval in a worker, which is free where free is called.
func (w *world) train(m *machine, t *task, free func()) {
	way, going := w.Network.Worker, true
	var beat func()
	beat = func() {
		if going {
			w.beats++
			w.call(w.server, w.c.Beat, way, nil, nil)
			w.after(w.Beat, beat)
		}
	}
	ended := func() {
		going = false
		w.call(w.server, w.c.Finish, way, func() { t.decided.sticky.offer(t) }, free)
	}
	// The rest is trained up to the next time to save.
	var on func(left float64)
	on = func(left float64) {
		if left <= w.Save {
			w.after(left, func() { w.put(m, w.Run, ended) })
			return
		}
		w.after(w.Save, func() { w.put(m, w.Run, func() { on(left - w.Save) }) })
	}
	w.after(w.Beat, beat)
	w.cpu(w.c.Worker/2, func() { w.after(w.c.Rest, func() { w.get(m, w.Checkpoint, func() { on(w.Train) }) }) })
}

// request asks the storage, and moves bytes with it.
func (w *world) request(m *machine, c Call, bytes float64, then func()) {
	// Both sides of the way are busy with the bytes, one after the other: what is larger counts
	// where many come.
	move := then
	if w.bandwidth != nil && bytes > 0 {
		inner := move
		move = func() { w.bandwidth.use(bytes/w.StorageBandwidth, inner) }
	}
	if m.link != nil && bytes > 0 {
		inner := move
		move = func() { m.link.use(bytes/w.ProgramBandwidth, inner) }
	}
	w.call(w.objects, c, m.storage, nil, move)
}

// files moves the files of a tree, as many at once as the machine does.
func (w *world) files(m *machine, files int, one func(then func()), then func()) {
	left := files
	if left == 0 {
		then()
		return
	}
	for range files {
		m.transfers.take(func(release func()) {
			one(func() {
				release()
				if left--; left == 0 {
					then()
				}
			})
		})
	}
}

// put stores a tree that is not there; one without files is none.
func (w *world) put(m *machine, t Tree, then func()) {
	if t.Files == 0 {
		then()
		return
	}
	each := float64(t.Bytes) / float64(t.Files)
	write := func(bytes float64, then func()) {
		w.request(m, w.c.Stat, 0, func() { w.request(m, w.c.Write, bytes, then) })
	}
	w.files(m, t.Files, func(then func()) { write(each, then) }, func() { write(0, then) })
}

// get fetches a tree.
func (w *world) get(m *machine, t Tree, then func()) {
	if t.Files == 0 {
		then()
		return
	}
	each := float64(t.Bytes) / float64(t.Files)
	w.request(m, w.c.Read, 0, func() {
		w.files(m, t.Files, func(then func()) { w.request(m, w.c.Read, each, then) }, then)
	})
}
