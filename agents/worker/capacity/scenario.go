package capacity

import (
	"fmt"
	"math"
	"time"
)

// Tree is a directory that goes through the storage.
type Tree struct {
	Files int   `json:"files"`
	Bytes int64 `json:"bytes"`
}

// Network is how long a message takes on each way, in seconds.
type Network struct {
	Program        float64 `json:"program_server_s"`
	Worker         float64 `json:"worker_server_s"`
	ProgramStorage float64 `json:"program_storage_s"`
	WorkerStorage  float64 `json:"worker_storage_s"`
}

// Scenario is a run that is simulated. Times are in seconds; the JSON keys are stable.
type Scenario struct {
	Workers int `json:"workers"`
	// Tasks are those of the run, and Generations the number of times that all that were handed
	// over are waited for; at least 1. Slots is how many are handed over at once.
	Tasks       int     `json:"tasks"`
	Generations int     `json:"generations"`
	Slots       int     `json:"slots"`
	Train       float64 `json:"train_s"`
	// Beat, Poll and Save are how often a worker says that it goes on, the program asks for a task,
	// and a run directory is saved.
	Beat float64 `json:"beat_s"`
	Poll float64 `json:"poll_s"`
	Save float64 `json:"save_s"`
	// Checkpoint is what an interval goes on from, none where it has no files, and Run what it
	// leaves.
	Checkpoint Tree    `json:"checkpoint"`
	Run        Tree    `json:"run"`
	Network    Network `json:"network"`
	// Transfers is how many objects the program moves at once; a worker moves four.
	Transfers int `json:"transfers"`
	// Writers is how many of the measured servers there are: shards with a database that serves
	// them at once.
	Writers int `json:"writers"`
	// Storage is how many requests the storage serves at once. ProgramBandwidth and
	// StorageBandwidth are in bytes a second; 0 is without limit.
	Storage          int     `json:"storage"`
	ProgramBandwidth float64 `json:"program_bytes_per_s"`
	StorageBandwidth float64 `json:"storage_bytes_per_s"`
	// Processors are the program's. Together says that everybody has those, too.
	Processors int  `json:"processors"`
	Together   bool `json:"together,omitempty"`
	// Random makes the time at a station exponential, drawn by Seed; otherwise it is always the
	// mean.
	Random bool   `json:"random,omitempty"`
	Seed   uint64 `json:"seed,omitempty"`
}

// Defaults are those of the program: workers with intervals of so many seconds, three for each,
// between machines of one place and a storage that is 5 ms away.
func Defaults(workers int, train float64) Scenario {
	tasks := 3 * workers
	beat, _ := Pace(time.Second, 0, min(tasks, maxSlots))
	return Scenario{
		Workers: workers, Tasks: tasks, Generations: 1, Slots: maxSlots, Train: train, Beat: beat.Seconds(), Poll: beat.Seconds(), Save: 30,
		Checkpoint: Tree{4, 1 << 20}, Run: Tree{12, 2 << 20}, Network: Network{0.0005, 0.0005, 0.005, 0.005},
		Transfers: Transfers, Writers: 1, Storage: 64, Processors: 2,
	}
}

// maxSlots is how many tasks a program hands over at once.
const maxSlots = 1024

// Transfers is how many objects a program moves at once that has workers elsewhere. Each needs up
// to 16 MiB of memory.
const Transfers = 16

// Silence is how long a worker may say nothing of an interval before it counts as lost, where there
// are few and nothing else is said.
const Silence = 20 * time.Second

// rate is how many times a second the intervals of a program beat together at most, and how many
// tasks it asks for.
const rate = 50

// Pace is how often each of so many tasks beats, and is asked for: every beat, or less often where
// there are so many that a server would have nothing else to do. Whoever says nothing for four
// beats, and for [Silence], counts as lost; where silence is not 0, that is how long it takes, and
// tasks beat four times meanwhile.
func Pace(beat, silence time.Duration, tasks int) (every, lost time.Duration) {
	every = max(beat, time.Duration(tasks)*time.Second/rate)
	if silence == 0 {
		return every, max(Silence, 4*every)
	}
	return max(beat, min(every, silence/4)), silence
}

func (s Scenario) check() error {
	for _, x := range []struct {
		key   string
		value float64
		least float64
	}{
		{"workers", float64(s.Workers), 1}, {"tasks", float64(s.Tasks), 1}, {"generations", float64(s.Generations), 1}, {"slots", float64(s.Slots), 1},
		{"transfers", float64(s.Transfers), 1}, {"writers", float64(s.Writers), 1}, {"storage", float64(s.Storage), 1}, {"processors", float64(s.Processors), 1},
		{"run.files", float64(s.Run.Files), 0}, {"checkpoint.files", float64(s.Checkpoint.Files), 0}, {"run.bytes", float64(s.Run.Bytes), 0}, {"checkpoint.bytes", float64(s.Checkpoint.Bytes), 0},
		{"train_s", s.Train, 0}, {"beat_s", s.Beat, 1e-3}, {"poll_s", s.Poll, 1e-3}, {"save_s", s.Save, 1e-3},
		{"program_server_s", s.Network.Program, 0}, {"worker_server_s", s.Network.Worker, 0}, {"program_storage_s", s.Network.ProgramStorage, 0}, {"worker_storage_s", s.Network.WorkerStorage, 0},
		{"program_bytes_per_s", s.ProgramBandwidth, 0}, {"storage_bytes_per_s", s.StorageBandwidth, 0},
	} {
		if !(x.value >= x.least) || math.IsInf(x.value, 0) {
			return fmt.Errorf("scenario: %s is %g, expected at least %g", x.key, x.value, x.least)
		}
	}
	if s.Tasks%s.Generations != 0 {
		return fmt.Errorf("scenario: %d tasks are no multiple of %d generations", s.Tasks, s.Generations)
	}
	return nil
}
