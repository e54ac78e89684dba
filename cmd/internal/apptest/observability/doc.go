// Package observability holds the tests of what watches the program from outside, which lies in
// configs/observability: the dashboards of Grafana are drawn from a table here and every query of
// theirs is put to a Prometheus that has scraped the program; alerts are tested by promtool, and
// the compose file against its specification. The table of metrics in docs/observability.md is
// written from the one in the code.
//
// ONNXRL_PROMETHEUS names a prometheus with promtool beside it, as .ci/prometheus prints it.
// Without it nothing is scraped, and the tests say so.
//
// # How to add a panel
//
// A line in the table of its dashboard, and go test ./cmd/internal/apptest/observability -run
// Dashboards -update. A query that returns nothing from the runs of prometheus_linux_test.go is a
// failure: start what has it there.
package observability
