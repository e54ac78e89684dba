// Package worker trains intervals in other processes. A [Pool] is a run.Executor: whatever trains
// intervals, such as a population, a search for hyper-parameters or the seeds of a run, hands them
// to it as run.Job, and each is carried out by a process that serves jobs with [Serve].
//
//	pool, err := worker.NewPool(worker.Options{Workers: 4, Command: command, Hello: hello})
//	…
//	defer pool.Close()
//	search, err := evolve.Open(ctx, "search.yaml", evolve.Options{Run: run.Options{Executor: pool, …}, …})
//
// # What is kept where
//
// A job is a document, a checkpoint to go on from and a directory; the worker trains it as any
// process would, so that results have the same bits however many workers there are. A worker that
// is killed, or says nothing for too long and is ended, loses what its job has done since its last
// checkpoint: another goes on from there. Between jobs a worker keeps what they have in common
// ([Local]).
//
// # The protocol
//
// Both sides write JSON objects, one a line. The worker begins with hello: its protocol, build,
// engine and platform ([Hello]). It is sent a job, says progress and notes meanwhile, asks after
// each evaluation whether to go on where the job wants that, and ends with a result. It says once
// a second that it lives. When its input ends it saves where it is, and ends. Errors keep what they
// are across processes ([Failure]).
//
// # How to add an executor
//
// Implement run.Executor: carry run.Job to where it is to be trained, and have [Local.Do] train it
// there. [FailureOf] writes the error down, and [Hello] says whether both sides give the same bits.
package worker
