package fullbatch

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"math"
	"slices"
)

// Journal is what a run is resumed from: every evaluation since the method last restarted, in
// order. A method that is given the same answers asks the same questions, so it is brought back to
// where it was without its private state. The zero value begins a run; all fields are to be saved.
type Journal struct {
	// Start is the point of the beginning, and Iterations and Evaluations are those before it.
	Start       []float32
	Iterations  int
	Evaluations int
	// Points are hashes of the points that were asked for, Losses the float64 bits of the answers,
	// and Grads their gradients one after the other; empty with cmaes.
	Points []uint64
	Losses []uint64
	Grads  []float32
	// Pairs are what lbfgs is resumed from instead, from one iteration to the next: Start is the
	// best point then, and Iterations and Evaluations are those before the last one of the pairs.
	Pairs Pairs
	// Told is the number of the last major iteration that was told.
	Told int
}

// open begins an empty journal at params, or copies the start of one that is not to params.
func (j *Journal) open(params []float32, width int) error {
	if j.Start == nil {
		j.Start = slices.Clone(params)
		return nil
	}
	if len(j.Start) != len(params) || len(j.Points) != len(j.Losses) || len(j.Grads) != width*len(j.Points) {
		return fmt.Errorf("resume: the journal has %d parameters, %d points, %d losses and %d gradients; the run has %d parameters", len(j.Start), len(j.Points), len(j.Losses), len(j.Grads), len(params))
	}
	copy(params, j.Start)
	return j.Pairs.check(len(params))
}

// restart empties the journal.
func (j *Journal) restart(start []float32, iterations, evaluations int) {
	copy(j.Start, start)
	j.Iterations, j.Evaluations = iterations, evaluations
	j.Points, j.Losses, j.Grads = j.Points[:0], j.Losses[:0], j.Grads[:0]
	j.Pairs = Pairs{}
}

// answer returns the loss of evaluation i and writes its gradient, if the journal has it.
func (j *Journal) answer(i int, point, grads []float32) (loss float64, known bool, err error) {
	if j == nil || i >= len(j.Points) {
		return 0, false, nil
	}
	if j.Points[i] != hash(point) {
		return 0, false, errors.New("resume: the method asks for another point than before it was stopped: the journal is of another configuration, program or kind of processor")
	}
	copy(grads, j.Grads[i*len(grads):])
	return math.Float64frombits(j.Losses[i]), true, nil
}

func (j *Journal) add(point, grads []float32, loss float64) {
	if j == nil {
		return
	}
	j.Points = append(j.Points, hash(point))
	j.Losses = append(j.Losses, math.Float64bits(loss))
	j.Grads = append(j.Grads, grads...)
}

func hash(point []float32) uint64 {
	h := fnv.New64a()
	var b [4]byte
	for _, x := range point {
		binary.LittleEndian.PutUint32(b[:], math.Float32bits(x))
		h.Write(b[:])
	}
	return h.Sum64()
}
