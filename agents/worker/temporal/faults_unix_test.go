//go:build unix

package temporal

import (
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/onnxrl/onnxrl/agents/worker/temporal/temporaltest"
	"github.com/onnxrl/onnxrl/agents/worker/workertest"
	"github.com/onnxrl/onnxrl/runtime/longtest"
	_ "github.com/onnxrl/onnxrl/runtime/objects/s3"
	"github.com/onnxrl/onnxrl/runtime/objects/s3/s3test"
	"github.com/onnxrl/onnxrl/runtime/rng"
	"github.com/onnxrl/onnxrl/runtime/sorted"
)

// faultSchedules is how many schedules of faults TestFaults plays; the seeds are 0 to faultSchedules-1.
const faultSchedules = 2

// TestFaults: workers are killed, stopped for longer than they may be silent and cut off from the
// server, the server is killed, the program is cut off, and where there is an S3 server one request
// of ten fails or is slow; when, a seed draws. No generation is lost and none counted twice: the
// log, which has digests of all states, and the list of files are those of a population that
// nothing happens to.
func TestFaults(t *testing.T) {
	longtest.Nightly(t)
	s := serve(t)
	path, dir := workertest.Population(t, "interval_steps: 400", "interval_steps: 4000"), t.TempDir()
	here := filepath.Join(dir, "here")
	want, err := workertest.Evolve(t.Context(), path, here, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	var storage *s3test.Server
	if os.Getenv(s3test.Variable) != "" {
		storage = s3test.Start(t)
	}
	sum := map[string]int{}
	schedules := longtest.Times(t, faultSchedules)
	for seed := range uint64(schedules) {
		faults := map[string]int{}
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			a := s.address(t)
			a.Queue = fmt.Sprint("queue-", seed)
			if storage != nil {
				line := s3test.NewLine(t, storage.Address)
				line.Fail(s3test.Faults{Seed: seed, Rate: 0.1, Slow: 20 * time.Millisecond})
				a.Objects = s3test.URL(line.Address, fmt.Sprint("schedule-", seed))
				defer func() {
					for _, n := range sorted.All(line.Failed()) {
						faults["storage"] += n
					}
				}()
			}
			// Everybody has a line of their own to the server.
			lines := []*temporaltest.Line{temporaltest.NewLine(t, a.HostPort), temporaltest.NewLine(t, a.HostPort), temporaltest.NewLine(t, a.HostPort)}
			by := func(i int) Address {
				b := a
				b.HostPort = lines[i].Address
				return b
			}
			workers := []*exec.Cmd{s.worker(t, by(0)), s.worker(t, by(1))}
			const program = 2
			draws := rng.New(seed).Stream()
			var mu sync.Mutex
			var woken sync.WaitGroup
			next := func() int64 { return int64(3000 + draws.Uint64()%9000) }
			left := next()
			there := filepath.Join(dir, fmt.Sprint(seed))
			got, err := workertest.Evolve(t.Context(), path, there, executor(t, by(program), nil), func(n int64) {
				mu.Lock()
				defer mu.Unlock()
				if left -= n; left > 0 {
					return
				}
				left = next()
				i := int(draws.Uint64() % uint64(len(workers)))
				switch draws.Uint64() % 6 {
				case 0:
					faults["server killed"]++
					s.KillAndStart()
				case 1:
					faults["worker stopped"]++
					p := workers[i].Process
					_ = p.Signal(syscall.SIGSTOP) // It may have ended.
					woken.Go(func() {
						time.Sleep(3 * time.Second)
						_ = p.Signal(syscall.SIGCONT)
					})
				case 2:
					// One that works, or whoever waits for it.
					cut, name := i, "worker cut off"
					if draws.Uint64()%3 == 0 {
						cut, name = program, "program cut off"
					}
					faults[name]++
					lines[cut].Cut()
					woken.Go(func() {
						time.Sleep(3 * time.Second)
						lines[cut].Mend()
					})
				default:
					faults["worker killed"]++
					_ = workers[i].Process.Kill()
					workers[i] = s.worker(t, by(i))
				}
			})
			woken.Wait()
			if err != nil || got != want {
				t.Errorf("%v: %v\n%s\nexpected\n%s", faults, err, got, want)
			}
			if a, b := files(t, here), files(t, there); !reflect.DeepEqual(a, b) {
				t.Errorf("%v: %v, expected %v", faults, b, a)
			}
		})
		t.Logf("seed %d: %v", seed, faults)
		if len(faults) == 0 {
			t.Errorf("seed %d: nothing was killed", seed)
		}
		for k, n := range sorted.All(faults) {
			sum[k] += n
		}
	}
	t.Logf("%d schedules: %s", schedules, strings.TrimPrefix(fmt.Sprint(maps.Clone(sum)), "map"))
}
