// Package theme has the colours, the text and the tables that pages, reports and figures share.
//
// Each colour stands here once. Package plots draws figures with them, a report has [Style] in its
// head, and package pages serves it as theme.css. It imports nothing of the module and no HTTP.
//
// # The style
//
// A colour is a variable of CSS: --paper, --ink, and --c0 to --c8 for series. It follows the
// reader's preference, and the attribute data-theme of the root where a page has a switch. A table
// inside an element of the class cards becomes a list on a narrow screen; its cells name their
// columns in data-label.
package theme

import (
	_ "embed"
	"strconv"
	"strings"
)

// Colour is a colour on light and on dark paper, as #RRGGBB.
type Colour struct{ Light, Dark string }

// The colours of text, rules and states. Text has a contrast of at least 4.5 to [Paper] and to
// [Panel].
var (
	Paper = Colour{"#FFFFFF", "#14171C"}
	Panel = Colour{"#F6F7F9", "#1B1F26"}
	Ink   = Colour{"#1C2128", "#E6E9EE"}
	Soft  = Colour{"#5A6472", "#9FA8B5"}
	Rule  = Colour{"#E1E5EA", "#2B313B"}
	Link  = Colour{"#1F5FD6", "#6EA8FF"}
	Good  = Colour{"#0F7D71", "#3CC7B3"}
	Bad   = Colour{"#C2401F", "#FF8267"}
	Plain = Colour{"#A06000", "#F0A73C"}
)

// Series are the colours of lines beside the first, which has that of [Link].
var Series = [...]Colour{
	{"#A66300", "#F0A73C"}, {"#1B7D71", "#4FCDBD"}, {"#A8438E", "#E48FD0"}, {"#6C5FE0", "#A99FFF"},
	{"#846640", "#C9A77C"}, {"#2F78AE", "#83C4F2"}, {"#5F7F1E", "#A9C95D"}, {"#C2415A", "#FF8FA0"},
}

//go:embed theme.css
var rules string

// Style is the style sheet: the colours as variables, and the rules of text and tables.
func Style() string {
	var light, dark strings.Builder
	set := func(name string, c Colour) {
		light.WriteString("--" + name + ":" + c.Light + ";")
		dark.WriteString("--" + name + ":" + c.Dark + ";")
	}
	set("paper", Paper)
	set("panel", Panel)
	set("ink", Ink)
	set("soft", Soft)
	set("rule", Rule)
	set("link", Link)
	set("good", Good)
	set("bad", Bad)
	set("plain", Plain)
	set("c0", Link)
	for i, c := range Series {
		set("c"+strconv.Itoa(i+1), c)
	}
	return ":root{" + light.String() + "color-scheme:light}\n" +
		"@media(prefers-color-scheme:dark){:root:not([data-theme=light]){" + dark.String() + "color-scheme:dark}}\n" +
		":root[data-theme=dark]{" + dark.String() + "color-scheme:dark}\n" + rules
}
