// Package dashboard is a page to watch training and trading: it reads the files that runs write and
// serves what they say to a browser, and neither talks to a training nor writes anything.
//
// # Concepts
//
// A [Board] watches folders. What it finds there is an [Item] of a kind: a training run (a folder
// with metrics.jsonl), a population (members.jsonl beside evolution.yaml), a report (summary.json
// beside equity.csv), a world of SCML (a JSON file as onnxrl scml run writes), a log of trading
// (JSON lines as onnxrl data live writes), or a store of artefacts. Items are known by their paths.
//
// Only metrics are kept in memory. A [Series] holds the points of one tag of one run in at most so
// many buckets: while there are few points each has its own, exactly. Then neighbours are merged,
// and a bucket has their number, least, greatest and mean, so that no peak is lost. All series
// share one budget of buckets ([Options].Buckets): the more there are, the fewer each may have.
// Everything else is read when somebody looks at it, and files beyond a size are refused by name.
//
// Files that grow are read from where the last reading ended. A line without its end waits for the
// rest; a file that was cut, replaced or rewritten, which its size, its identity or the bytes
// before the place tell, is read from its beginning.
//
// Runs of the same configuration, of several seeds or of one that was run again, are a group, whose
// curves are drawn as a band: the mean over the runs between the least and the greatest.
//
// # The page
//
// It is made with package pages, which has its charts, its theme and its Content-Security-Policy:
// it fetches nothing from anywhere else, and whatever comes from runs is set as text. The files are
// served without a token, as they hold nothing secret; everything below /data/ is behind the guard
// of package guard: its token, and no requests of other sites' pages. Changes come as server-sent
// events on /data/events; the page fetches what has changed again.
//
// A live trading service ([Live]) is asked by the board, not by the page, which so has one origin;
// its latest events are kept for pages that are opened later.
//
// # How to add a view
//
// Write a reader of the files into one file of its own, with a method on Board that takes the id of
// an item; add its address to the table in handler.go and a function to the table of views in
// assets/page.js, and visit it in the browser's test of cmd/app.
package dashboard
