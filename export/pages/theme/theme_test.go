package theme_test

import (
	"math"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/onnxrl/onnxrl/export/pages/theme"
	"github.com/onnxrl/onnxrl/runtime/sorted"
)

// luminance is the relative luminance of a colour (WCAG 2).
func luminance(t *testing.T, hex string) float64 {
	t.Helper()
	n, err := strconv.ParseUint(strings.TrimPrefix(hex, "#"), 16, 24)
	if err != nil || len(hex) != 7 {
		t.Fatalf("%q is no colour", hex)
	}
	part := func(v uint64) float64 {
		x := float64(v&255) / 255
		if x <= 0.03928 {
			return x / 12.92
		}
		return math.Pow((x+0.055)/1.055, 2.4)
	}
	return 0.2126*part(n>>16) + 0.7152*part(n>>8) + 0.0722*part(n)
}

func TestContrast(t *testing.T) {
	check := func(name, text, ground string, least float64) {
		x, y := luminance(t, text), luminance(t, ground)
		if got := (max(x, y) + 0.05) / (min(x, y) + 0.05); got < least {
			t.Errorf("%s: %s on %s has a contrast of %.2f, expected %v", name, text, ground, got, least)
		}
	}
	for name, c := range sorted.All(map[string]theme.Colour{"ink": theme.Ink, "soft": theme.Soft, "link": theme.Link, "good": theme.Good, "bad": theme.Bad, "plain": theme.Plain}) {
		for _, ground := range []theme.Colour{theme.Paper, theme.Panel} {
			check(name, c.Light, ground.Light, 4.5)
			check(name, c.Dark, ground.Dark, 4.5)
		}
	}
	for i, c := range theme.Series {
		check("series "+strconv.Itoa(i), c.Light, theme.Paper.Light, 4.5)
		check("series "+strconv.Itoa(i), c.Dark, theme.Paper.Dark, 4.5)
	}
}

// Every variable that the rules use is set, in both schemes.
func TestStyle(t *testing.T) {
	style := theme.Style()
	used := regexp.MustCompile(`var\((--[a-z0-9]+)\)`).FindAllStringSubmatch(style, -1)
	for _, m := range used {
		if n := strings.Count(style, m[1]+":#"); n != 3 {
			t.Errorf("%s is set %d times, expected 3", m[1], n)
		}
	}
	if len(used) < 10 || strings.Count(style, "{") != strings.Count(style, "}") {
		t.Errorf("%d variables are used; %d braces open, %d close", len(used), strings.Count(style, "{"), strings.Count(style, "}"))
	}
}
