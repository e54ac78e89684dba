package risk_test

import (
	"fmt"
	"time"

	"github.com/onnxrl/onnxrl/envs/risk"
)

// A router masks the experts whose drawdown is beyond the limit, until they have recovered.
func ExampleMonitor() {
	limits := risk.Config{Drawdown: risk.Drawdown{Limit: 0.15, Resume: 0.05}}
	experts := []string{"momentum", "reversal"}
	values := [][2]float64{{100, 100}, {104, 92}, {101, 84}, {103, 90}, {105, 96}}

	books := make([]*risk.Monitor, len(experts))
	for i, name := range experts {
		m, err := risk.NewMonitor(limits)
		if err != nil {
			panic(err)
		}
		m.OnAlert = func(a risk.Alert) { fmt.Printf("%s: %v\n", name, a) }
		books[i] = m
	}
	mask := make([]bool, len(experts))
	for day, v := range values {
		at := time.Date(2024, 1, 2+day, 15, 0, 0, 0, time.UTC)
		for i, m := range books {
			m.Observe(at, v[i])
			mask[i] = !m.Stopped()
		}
		fmt.Println(at.Format(time.DateOnly), mask)
	}
	// Output:
	// 2024-01-02 [true true]
	// 2024-01-03 [true true]
	// reversal: risk: 2024-01-04 15:00:00: the drawdown is 16.00 %, beyond the limit of 15 %: nothing is bought
	// 2024-01-04 [true false]
	// 2024-01-05 [true false]
	// reversal: risk: 2024-01-06 15:00:00: the drawdown is 4.00 %, back at 5 %: its limit has ended
	// 2024-01-06 [true true]
}
