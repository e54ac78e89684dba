// Package page is the server's page for people: models, versions, aliases and states, live charts
// of throughput and latency, and a form that sends a request and draws the answer.
//
// # What it serves
//
//	GET /            the page
//	GET /page/…      its style, script and icon, and those of package pages
//	GET /page/data   a [Snapshot]: counters that only grow, polled once a second
//	GET /page/model  a [Description] of one version, ?name=…&version=…
//
// The page computes rates and quantiles from the differences between two snapshots, so that the
// server keeps no history and every reader sees the same figures. The form is built from the
// description and posts to the Open Inference Protocol's own endpoint, v2/models/…/infer.
//
// The files hold nothing secret and are served without a token ([IsFile] says which they are); the
// data belong behind whatever protects the other endpoints. Charts, token, theme and the
// Content-Security-Policy are those of package pages.
//
// # How to add a figure to the page
//
// Add a counter, never a rate, to [Stats] or a fact to [Description], fill it in the [Source], and
// draw it in assets/page.js. cmd/peers/serve_page.sh shows the result in a headless Chromium.
package page
