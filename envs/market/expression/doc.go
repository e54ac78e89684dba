// Package expression computes features written in the expression language of Qlib, such as
//
//	Ref($close, 5)/$close
//	Corr($close, Log($volume+1), 20)
//	($high-Greater($open, $close))/$open
//
// and holds its factor sets Alpha158 and Alpha360 ([Set]).
//
// # Concepts
//
// [Parse] reads one expression: fields ($close), numbers, + - * / **, comparisons, & and |, and
// the operators of [Operators]. A [Program] is several expressions compiled together, so that what
// they share is computed once; a [State] runs it over the bars of one asset, bar after bar, without
// allocating. A batch goes through the same steps, so values are prefix-invariant and live values
// have the bits of a back-test.
//
// Every window is computed from its own bars, oldest first, instead of by adding and
// subtracting. After [Program.Warmup] bars a value therefore has the same bits wherever the data
// begin, which running sums (pandas, Qlib) do not have.
//
// # Missing values
//
// NaN is a missing value, and inside windows so is an infinite one, as in pandas. Windows skip
// missing values and need one value, Std, Var, Cov, Corr and the regressions two, Skew three, Kurt
// four; a window at the beginning of the data is as long as there are bars. Comparisons with a
// missing value are false.
//
// # Where it differs from Qlib
//
// Values equal those of pyqlib 0.9.7 within the float32 in which Qlib reads its fields
// (cmd/peers/qlib_expression.py); here everything is float64. Refused are expressions whose values
// depend on the future (Ref with a negative number) or on where the data begin (windows of 0 bars,
// which expand), and operators that look at other instruments, at other frequencies or at Qlib's
// own stores (ChangeInstrument, Mask, TResample, P, PRef). EMA in Qlib depends on where a query
// begins; here it is the weighted mean over as many bars as carry all but 2⁻²⁶ of the weight.
//
// Some operators are Qlib's to the letter although one might expect something else: WMA divides by
// the number of values, not by the sum of the weights; IdxMax and IdxMin count from 1 at the oldest
// bar and name the first missing value where there is one; Corr and Rsquare are missing where a
// standard deviation is at most 2e-5.
//
// # How to add an operator
//
// An entry in the table of operators.go, its function in window.go where it has a window, and a
// line in cmd/peers/qlib_expression.py. The properties that every operator must have are tested
// over the table.
package expression
