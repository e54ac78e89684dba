package app

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
)

// runLimits bound what running a model may take, whose loops may be endless.
type runLimits struct {
	timeout time.Duration
	memory  float64 // GiB
}

func (l *runLimits) add(cmd *cobra.Command) {
	fl := cmd.Flags()
	fl.DurationVar(&l.timeout, "timeout", 10*time.Minute, "longest time for everything; 0 for none")
	fl.Float64Var(&l.memory, "max-memory", 0, "most memory in GiB, of this process and of those that try models; on systems without /proc only the pure-Go engine's counts (default: four fifths of what is available at the start)")
}

// watchEvery is the time between two looks at the memory; stopWithin is how long an engine may take to
// stop, which it does between two nodes.
const (
	watchEvery = 50 * time.Millisecond
	stopWithin = 3 * time.Second
)

// within calls f with a context that ends where a limit is reached; the error then says which. An
// engine that is within one node does not stop and is left behind: the process ends soon.
func (l *runLimits) within(ctx context.Context, f func(context.Context) error) error {
	if l.timeout < 0 || !(l.memory >= 0) {
		return fmt.Errorf("--timeout %v and --max-memory %g: expected numbers that are not negative", l.timeout, l.memory)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	if l.timeout > 0 {
		stop := time.AfterFunc(l.timeout, func() {
			cancel(fmt.Errorf("not finished after %v: --timeout gives more time, if the model's loops end at all", l.timeout))
		})
		defer stop.Stop()
	}
	most := int64(l.memory * (1 << 30))
	if free := availableMemory(); l.memory == 0 && free > 0 {
		most = memoryInUse() + free/5*4
	}
	if most > 0 {
		go func() {
			for {
				select {
				case <-ctx.Done():
					return
				case <-time.After(watchEvery):
				}
				if now := memoryInUse(); now > most {
					cancel(fmt.Errorf("%s of memory are in use, more than %s: --max-memory allows more, if the model's loops end at all", byteSize(now), byteSize(most)))
				}
			}
		}()
	}
	done := make(chan error, 1)
	go func() { done <- f(ctx) }()
	var err error
	select {
	case err = <-done:
	case <-ctx.Done():
		select {
		case err = <-done:
		case <-time.After(stopWithin):
			err = ctx.Err()
		}
	}
	if cause := context.Cause(ctx); cause != nil && err != nil && !errors.Is(cause, context.Canceled) && ctx.Err() != nil {
		return cause
	}
	return err
}

// memoryInUse is what this process and its children hold in memory, in bytes.
func memoryInUse() int64 {
	n, ok := residentBytes("self")
	if !ok {
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return int64(m.Sys - m.HeapReleased)
	}
	lists, _ := filepath.Glob("/proc/self/task/*/children")
	for _, file := range lists {
		// A thread that has ended meanwhile has no children.
		b, _ := os.ReadFile(file)
		for _, pid := range strings.Fields(string(b)) {
			child, _ := residentBytes(pid)
			n += child
		}
	}
	return n
}

func residentBytes(process string) (int64, bool) {
	b, err := os.ReadFile("/proc/" + process + "/statm")
	if f := bytes.Fields(b); err == nil && len(f) > 1 {
		pages, err := strconv.ParseInt(string(f[1]), 10, 64)
		return pages * int64(os.Getpagesize()), err == nil
	}
	return 0, false
}

// availableMemory is what programs may still take, in bytes; 0 where nobody says.
func availableMemory() int64 {
	b, _ := os.ReadFile("/proc/meminfo")
	for line := range strings.Lines(string(b)) {
		if f := strings.Fields(line); len(f) > 1 && f[0] == "MemAvailable:" {
			kib, _ := strconv.ParseInt(f[1], 10, 64)
			return kib << 10
		}
	}
	return 0
}
