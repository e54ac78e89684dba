// Package pages is the kit of the pages that a browser draws: the server's page and the dashboard
// are made of it.
//
// # What it has
//
//	theme.css  colours, text and tables: package theme, which reports have in their heads, too
//	kit.css    charts, tags, forms and tables of a page
//	kit.js     elements, numbers, asking with a token, the switch of the theme, and charts:
//	           lines, bars, heat and tree
//	icon.svg   the icon
//
// In Go it has the [Files] with their addresses, the [Policy] and headers of security ([Secure]),
// and answers in JSON ([Answer]).
//
// # How a page uses it
//
// A page has a folder assets with index.html and its own page.css and page.js, embeds it, and
// serves [Of] of it:
//
//	//go:embed assets
//	var assets embed.FS
//
//	var files = pages.Of(assets)
//
//	files.Handle(mux)
//
// The page links page/theme.css, page/kit.css, page/page.css and page/icon.svg, and its module
// page/page.js imports ./kit.js. The script expects three elements: the form login with the input
// token, and the button theme. All addresses are relative, so that a page works below a prefix of a
// proxy.
//
// The files hold nothing secret and are served without a token ([Files.Has] says which they are);
// the data belong behind a guard. The script shows the form while the token is refused.
//
// A chart that somebody reads is not drawn again: a page asks reading before it calls fill, which
// keeps what is unfolded, what is scrolled and the chart that has the keyboard.
//
// # Content security
//
// Scripts and styles come from the page's own files alone; there are no inline scripts and styles,
// and whatever comes from a server is set as text.
package pages
