// Package temporal trains intervals on other machines, by Temporal. [Executor] is the run.Executor
// of a program that has tasks, such as a population; [Worker] carries tasks out on a machine. Both
// speak with a Temporal server, which keeps what is to be done and what was done through the end of
// any of them, and with storage for objects (package runtime/objects), which checkpoints and run
// directories go through. Only references to them are in Temporal's histories.
//
//	temporal://HOST:PORT/NAMESPACE?queue=NAME&objects=URL
//
// # What is a workflow
//
// A task is a workflow, and its interval the workflow's activity: it says now and then how far it
// has come, and saves its run directory, so that one whose worker has ended goes on elsewhere from
// there. What a program trains together, such as a population, has IDs that begin alike, which the
// file executor.json of its directory says; the ID of a task follows from what is to be trained. A
// task that was handed over is carried out also when the program that has done so ends: one that is
// handed over again, by a program that was started again, is the one that goes on, or what has come
// of it.
//
// There is no workflow of a population: a server carries out one workflow's events one after the
// other, keeps at most ten of its updates waiting, and would have each member's heartbeat write to
// it. As it is, members have nothing in common at the server, and no history grows. A pause is
// written down in executor.json and told to the tasks that are there by signals; so is a
// cancellation, which is that of the workflows.
//
// # Results
//
// A task is trained as in any process, see run.Job: results do not depend on which worker it was,
// on how often it was begun, or on what failed meanwhile. A worker of another version of the
// program carries nothing out. One with another engine or processor may differ in the last bits;
// that is said, or with strict=true in the URL refused.
//
// # Capabilities
//
// A task queue is what workers of a kind serve, such as those with a GPU or much memory: programs
// name one in the URL, and workers those that they serve.
package temporal
