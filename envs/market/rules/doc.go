// Package rules is what rule books of exchanges have in common: a [Book] says by which [Terms]
// orders are executed on a day and between which limits, and a [Limiter] finds the limits of rows.
// Package prepared has the list of books (data.rules), and ashare is one.
package rules
