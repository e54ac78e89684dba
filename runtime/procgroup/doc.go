// Package procgroup starts processes that an interrupt from the terminal does not reach, and ends
// them with everything that they have started. Where the system has no groups of processes it does
// what there is: a child is ended alone.
package procgroup
