package portable

import "sync"

// workers runs the parts of one job on several goroutines. A job with one part runs on the caller
// alone; they are then never started.
type workers struct {
	threads int
	once    sync.Once
	jobs    chan *part
	stop    chan struct{}
}

// part is one share of a job. It lives in the frame that submits it, so that submitting allocates
// nothing.
type part struct {
	run  func(*part)
	gemm gemmTask
	done *sync.WaitGroup
	err  any
}

func newWorkers(threads int) *workers {
	return &workers{threads: max(1, threads), jobs: make(chan *part, max(1, threads)), stop: make(chan struct{})}
}

func (p *workers) start() {
	for range p.threads - 1 {
		go func() {
			for {
				select {
				case j := <-p.jobs:
					j.safely()
					j.done.Done()
				case <-p.stop:
					return
				}
			}
		}()
	}
}

func (j *part) safely() {
	defer func() { j.err = recover() }()
	j.run(j)
}

// do runs all parts and returns when they are done. The first part runs on the caller.
func (p *workers) do(parts []part, wg *sync.WaitGroup) {
	p.once.Do(p.start)
	wg.Add(len(parts) - 1)
	for i := 1; i < len(parts); i++ {
		parts[i].done = wg
		select {
		case p.jobs <- &parts[i]:
		default:
			parts[i].safely()
			wg.Done()
		}
	}
	parts[0].safely()
	// Whatever no worker has taken yet, this run's or another's, is done here instead of being
	// waited for.
	for waiting := true; waiting; {
		select {
		case j := <-p.jobs:
			j.safely()
			j.done.Done()
		default:
			waiting = false
		}
	}
	wg.Wait()
	for i := range parts {
		if e := parts[i].err; e != nil {
			panic(e)
		}
	}
}

func (p *workers) close() { close(p.stop) }
