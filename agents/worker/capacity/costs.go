package capacity

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"fmt"
	"os"
)

// Call is what a request costs at the one that answers it, in seconds, without the network; the
// JSON keys are stable.
type Call struct {
	// Service is how long nobody else can be served meanwhile, and Background what follows of that
	// after the answer.
	Service    float64 `json:"service_s"`
	Background float64 `json:"background_s,omitempty"`
	// Answer is how long the answer takes, and Deliver how long it takes until whoever waits for
	// what follows has it, both where nothing else goes on.
	Answer  float64 `json:"answer_s"`
	Deliver float64 `json:"deliver_s,omitempty"`
	// CPU is the processor time of the one that answers.
	CPU float64 `json:"cpu_s,omitempty"`
}

// Costs are measured where there is no latency; the JSON keys are stable.
type Costs struct {
	// Machine and Command say where and how.
	Machine string `json:"machine"`
	Command string `json:"command"`
	// Start, Schedule, Finish and Complete are what has a task go on, and Beat and Describe what
	// tells how far it is.
	Start    Call `json:"start"`
	Schedule Call `json:"schedule"`
	Finish   Call `json:"finish"`
	Complete Call `json:"complete"`
	Beat     Call `json:"beat"`
	Describe Call `json:"describe"`
	// Stat, Write and Read are requests to the storage.
	Stat  Call `json:"stat"`
	Write Call `json:"write"`
	Read  Call `json:"read"`
	// Program is the processor time that a task takes in the program, Worker what it takes in a
	// worker beside the training, and Rest what else passes there.
	Program float64 `json:"program_s"`
	Worker  float64 `json:"worker_s"`
	Rest    float64 `json:"rest_s"`
	// Disk is the time that a file takes to be durable in the program's directory.
	Disk float64 `json:"disk_s_per_file"`
}

//go:embed costs.json
var measured []byte

// Measured are the costs that this project has measured; see docs/evidence/measured.md.
func Measured() (Costs, error) { return parse("measured costs", measured) }

// Load reads costs from a JSON file.
func Load(path string) (c Costs, err error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return c, err
	}
	return parse(path, text)
}

func parse(name string, text []byte) (c Costs, err error) {
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(&c); err != nil {
		return c, fmt.Errorf("%s: %w", name, err)
	}
	return c, c.check(name)
}

// check refuses what nobody can have measured.
func (c Costs) check(name string) error {
	for _, x := range []struct {
		key  string
		call Call
	}{
		{"start", c.Start}, {"schedule", c.Schedule}, {"finish", c.Finish}, {"complete", c.Complete},
		{"beat", c.Beat}, {"describe", c.Describe}, {"stat", c.Stat}, {"write", c.Write}, {"read", c.Read},
	} {
		if k := x.call; k.Service < 0 || k.Background < 0 || k.CPU < 0 || k.Answer < k.Service || k.Answer <= 0 || k.Deliver < 0 {
			return fmt.Errorf("%s: %s: expected 0 <= service_s <= answer_s, which takes time, and no negative background_s, deliver_s or cpu_s: %+v", name, x.key, k)
		}
	}
	if c.Program < 0 || c.Worker < 0 || c.Rest < 0 || c.Disk < 0 {
		return fmt.Errorf("%s: expected no negative program_s, worker_s, rest_s or disk_s_per_file", name)
	}
	return nil
}
