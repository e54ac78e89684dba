// Package plots draws the figures of a report: curves, drawdowns, heat maps and stacked shares, as
// SVG and PNG, for light and dark backgrounds.
//
// # How a figure is drawn
//
// A [Figure] is drawn by the same code onto a gonum/plot canvas for every output. Code names roles,
// such as ink, grid or the agent's line, and never colours; a [Scheme] gives each role its colour,
// which is package theme's where pages show it too. [Figure.SVG] is a file that follows the reader's
// preference and is light where that is not understood; [Figure.Inline] is for a page that has
// [Style] in its head, and has no background of its own; [Figure.PNG] is drawn in one scheme.
//
// # House rules
//
// The quantity and its unit stand above the axis, horizontally. Names stand at the ends of their
// lines, in the colour of the line, or in a column beside stacked shares: nothing covers the data.
// The agent is a thick line and the benchmark a dashed one in ink, and the other baselines are
// thin. Gains and losses differ in lightness as well as in hue. Dates are those of the data; ticks
// fall on years, quarters, months or days.
//
// The same input gives the same bytes.
//
// # How to add a figure
//
// Write a function into a file named after it that returns a *Figure, built from a frame (axes,
// ticks, clipping) and the helpers of draw.go; check its input first. Add it to the tests' list,
// look at both schemes, and use it in package report.
package plots
