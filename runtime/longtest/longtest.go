// Package longtest sorts tests by how long they take, so that those that anybody runs all the time
// end within minutes. Only tests import it.
//
//   - go test -short ./... leaves out whatever takes 2 s or more: it begins with [Slow]. Of a long list
//     of cases it takes a few, always the same: [Cases], [Few] and [Every].
//   - go test ./... leaves out what belongs into a night: tutorials, schedules of kills, real servers,
//     browsers, cross builds, learning, stress. It begins with [Nightly].
//   - .ci/nightly runs every test of a night, and .ci/run a few of them, others every day. Both take
//     the list from .ci/nightly-tests, and fail when one of them was left out.
//
// A test that does something again and again asks [Times] how often, so that anybody can let it run
// for longer.
//
// # How to move a test into the night
//
// Let it begin with longtest.Nightly(t): .ci/nightly-tests finds it in the file. Say in the commit
// which test of every day still finds the fault that it looks for, or that none does.
package longtest

import (
	"cmp"
	"maps"
	"os"
	"slices"
	"strconv"
	"testing"
)

// Variable is the name of the environment variable that asks for the tests of a night, with any
// value but the empty one.
const Variable = "ONNXRL_TEST_NIGHTLY"

// Factor is the name of the environment variable that says how many times as often as usual a test
// kills, cuts off or draws what it does so often by itself: a whole number from 1.
const Factor = "ONNXRL_TEST_TIMES"

// Times is how often a test does what it does n times by itself: n times the value of [Factor], or n
// where that is not set.
func Times(t testing.TB, n int) int {
	t.Helper()
	text := os.Getenv(Factor)
	if text == "" {
		return n
	}
	factor, err := strconv.Atoi(text)
	if err != nil || factor < 1 {
		t.Fatalf("%s=%s, expected a whole number from 1", Factor, text)
	}
	return n * factor
}

// Cases is how many of its cases, draws or repetitions a test takes: all of them, or few where -short
// asks for the quick ones. The test itself asserts how many it took.
func Cases(t testing.TB, all, few int) int {
	t.Helper()
	if testing.Short() {
		return min(few, all)
	}
	return all
}

// Few is [Cases] of the entries of a map: all of them, or few where -short asks for the quick ones,
// the first in the order of their keys. It returns another map.
func Few[M ~map[K]V, K cmp.Ordered, V any](t testing.TB, all M, few int) M {
	t.Helper()
	taken := M{}
	for _, key := range slices.Sorted(maps.Keys(all))[:Cases(t, len(all), few)] {
		taken[key] = all[key]
	}
	return taken
}

// Every is the step of a sweep that a test makes: 1, or n where -short asks for the quick ones.
func Every(t testing.TB, n int) int {
	t.Helper()
	return n - Cases(t, n-1, 0)
}

// Slow skips a test that takes 2 s or more where -short asks for the quick ones.
func Slow(t testing.TB) {
	t.Helper()
	if testing.Short() {
		t.Skip("-short leaves out what takes 2 s or more")
	}
}

// Nightly skips a test that .ci/nightly runs, unless [Variable] asks for it.
func Nightly(t testing.TB) {
	t.Helper()
	if os.Getenv(Variable) == "" {
		t.Skip(".ci/nightly runs this test; " + Variable + "=1 runs it here")
	}
}
