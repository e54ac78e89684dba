// Package worker trains intervals in other processes. A [Pool] is a run.Executor: whatever trains
// intervals, such as a population, a search for hyper-parameters or the seeds of a run, hands them
// to it as run.Task, and each is carried out by a process that serves tasks with [Serve].
//
//	pool, err := worker.NewPool(worker.Options{Workers: 4, Command: command, Hello: hello})
//	…
//	defer pool.Close()
//	search, err := evolve.Open(ctx, "search.yaml", evolve.Options{Run: run.Options{Executor: pool, …}, …})
//
// # What is kept where
//
// A task is a document, a checkpoint to go on from and a directory, see run.Interval; the worker
// writes the directory as the interval itself would, so that results have the same bits however
// many workers there are. A worker that is killed, or says nothing for too long and is ended, loses
// what its task has done since its last checkpoint: another goes on from there. Between tasks a
// worker keeps what they have in common ([Tasks]).
//
// # The protocol
//
// Both sides write JSON objects, one a line. The worker begins with hello: its protocol, build,
// engine and platform ([Hello]). It is sent a task, says progress and notes meanwhile, asks after
// each evaluation whether to go on where the task wants that, and ends with a result. It says once
// a second that it lives. When its input ends it saves where it is, and ends. Errors keep what they
// are across processes ([Failure]).
//
// # How to add an executor
//
// Implement run.Executor: carry run.Task to where it is to be trained, and have [Tasks.Do] train it
// there. [FailureOf] writes the error down, and [Hello] says whether both sides give the same bits.
package worker
