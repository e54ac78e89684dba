// Package golden is the net under every result: small runs of the program whose results must stay
// what they are, to the last bit, while the program is built in another way. It has nothing but
// tests.
//
// A golden run (runs_test.go) is a few command lines and documents (testdata/tiny), tiny, on the
// pure-Go engine with one thread. Its results are what it comes to: weights, the optimiser's
// moments, the rest of the state, metrics, decisions, tables, published graphs. They are written as
// text in a form of their own, without what differs between equal runs or only says how the work was
// organised: times, places, the program's version, digests that cover these. testdata/digests.txt
// has the SHA-256 of each of these texts, one line for each run and result. TestGolden performs all
// runs and compares; TestGoldenSeeds performs them with another seed, and expects that no result
// stays the same; TestGoldenKinds expects a run of every kind of agent, strategy, replay and export
// that there is.
//
// Beside these, testdata/resumed has runs, searches, studies and fits that an older program was
// stopped in: this one goes on with them, and ends where that one did. testdata/documents are what
// the shipped experiments meant to it.
//
// Results are those of amd64 with FMA, with or without AVX2 and AVX-512, on any number of cores. Other
// processors round otherwise (math.Exp, fused multiplications): the tests skip there.
//
// # When a test fails
//
// It says which result of which run is another. To see what differs, keep the texts of this program
// and of one whose results were good, and compare:
//
//	go test ./cmd/internal/golden -run 'TestGolden$/ppo$' -golden-out /tmp/now
//	go test ./cmd/internal/golden -run 'TestGolden$/ppo$' -golden-out /tmp/then -golden-from /path/to/onnxrl
//	git checkout cmd/internal/golden/testdata/digests.txt
//	diff -r /tmp/then /tmp/now
//
// # How to record
//
// With -golden-from, the tests record what they compare with by another build of the program,
// instead of by this one, and then compare. Lines of other runs stay as they are. A golden that
// changes is a commit of its own, whose body says why.
//
//	go test ./cmd/internal/golden -run 'TestGolden$' -golden-from /path/to/onnxrl
//
// The tests of testdata/resumed and testdata/documents record those in the same way
// (TestGoldenResumed, TestGoldenTune and others), but they stay as old as they are: that is their
// purpose.
//
// # How to add a golden run
//
//  1. Write a small document into testdata/tiny: networks of a few units, a few hundred steps,
//     threads: 1, seed: $SEED. $DIR is the run's own folder, and $NAME that of another run, which is
//     performed before.
//  2. Add a line to one of the lists of runs_test.go: name, documents, command lines, results.
//     results_test.go has forms of results: training (a folder of runs), tables, said (what a
//     command printed). A run of 2 s or more is slow: -short leaves it out.
//  3. Build the program as it is on the main branch (go build -o /tmp/onnxrl ./cmd/onnxrl) and record
//     the run: go test ./cmd/internal/golden -run 'TestGolden$/NAME$' -golden-from /tmp/onnxrl
//  4. Set tableLines to the number of lines of testdata/digests.txt, and run the package's tests:
//     all results are as recorded, and each depends on the seed.
package golden
