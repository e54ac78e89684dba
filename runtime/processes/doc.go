// Package processes is about the process that a program is, and about those that it starts.
//
// # Priority
//
// [Lower] lowers the processor priority of the process, so that batch work leaves the processors to
// whoever answers requests; [SpareProcessor] helps a server beside such work.
//
// # Children
//
// [Apart] starts a process that an interrupt from the terminal does not reach, and [Kill] ends it with
// everything that it has started. Where the system has no groups of processes a child is ended alone.
// A [Pipe] is a child that serves its parent on its standard input and output.
// A [Tail] keeps the end of what a child writes, for the error when it fails.
//
// # Niceness
//
// It is measured in niceness as Unix has it: 0 is what programs have, 19 the least priority. A
// process of niceness 19 gets what others of the same session leave over, and about a seventieth of
// a processor when they leave nothing; alone it is as fast as any. [Lower] never raises a priority,
// and undoing it takes privileges.
//
// # Systems
//
// Linux keeps a niceness for each thread, and new threads inherit that of the thread that makes
// them: Lower goes through /proc/self/task until no thread is left with a higher priority. With
// niceness 19 threads also go into the class SCHED_IDLE, where they may: niceness is about shares
// alone, while threads of that class give way at once to whatever wakes up. Where sessions are
// scheduled as groups (autogroup, see sched(7); the default of desktops), niceness counts only
// within a session, and between sessions a niceness of the session does. Lower sets that too where
// the process leads its session, as what setsid or a service manager starts does; the session of a
// shell belongs to its user and stays as it is. Between control groups, and so containers, only
// their weights count.
//
// Other Unixes have one niceness for the process. Windows has priority classes: 19 becomes idle,
// all else below normal, as libuv's uv_os_setpriority does. Elsewhere Lower returns
// errors.ErrUnsupported.
//
// # How to add a system
//
// Add a file with its build constraint that defines lower, and take it out of that of
// lower_other.go.
package processes
