// Package console is the web page that a gateway serves beside its streams: files as they are, without a build step. It
// asks nothing of any other host, and its policy allows no script but its own file.
package console

import (
	"embed"
	"net/http"
	"path"

	"github.com/ordergrid/ordergrid/gateway/stream/server"
)

//go:embed files
var files embed.FS

// policy is the page's Content-Security-Policy: its own files, and connections to where it came from.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

var types = map[string]string{".html": "text/html; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".css": "text/css; charset=utf-8", ".svg": "image/svg+xml"}

// Pages returns the files by their paths; index.html is at /.
func Pages() map[string]*server.Page {
	list, err := files.ReadDir("files")
	if err != nil {
		panic(err) // they are part of the program
	}
	pages := map[string]*server.Page{}
	for _, f := range list {
		body, err := files.ReadFile(path.Join("files", f.Name()))
		if err != nil {
			panic(err)
		}
		at := "/" + f.Name()
		if at == "/index.html" {
			at = "/"
		}
		pages[at] = &server.Page{Body: body, Header: http.Header{
			"Content-Type": {types[path.Ext(f.Name())]}, "Content-Security-Policy": {policy}, "X-Content-Type-Options": {"nosniff"},
			"Referrer-Policy": {"no-referrer"}, "Cross-Origin-Opener-Policy": {"same-origin"}, "Cross-Origin-Resource-Policy": {"same-origin"},
			"Cache-Control": {"no-cache"},
		}}
	}
	return pages
}
