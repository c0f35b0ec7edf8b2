// Package sandbox serves the sandbox origin, on which artifacts run: one static page, without cookies and without data. The web
// app embeds it in a frame that has no origin, and sends it the content of an artifact as a message. The policy of the page
// lets it load nothing, and the policy of the app (frame-src) lets the frame navigate to no other origin. See docs/artifacts.md.
package sandbox

import (
	_ "embed" // the page
	stdhttp "net/http"
	"net/url"
	"strings"

	"turnstone/http/response"
	"turnstone/protocol"
)

//go:embed frame.html
var frame string

// policy is the content security policy of the page, after which the origin of the app follows. The script of the page may
// create addresses of libraries, which the app sends, and HTML, from which it removes what could send requests that no policy
// stops: see frame.html.
const policy = "default-src 'none'; script-src 'unsafe-inline' blob:; style-src 'unsafe-inline'; img-src data: blob:; font-src data:; connect-src 'none'; " +
	"frame-src 'none'; worker-src 'none'; object-src 'none'; media-src 'none'; manifest-src 'none'; form-action 'none'; base-uri 'none'; " +
	"require-trusted-types-for 'script'; trusted-types default turnstone; frame-ancestors "

// New returns the handler of the sandbox origin for the app at a URL.
func New(app *url.URL) stdhttp.Handler {
	origin := app.Scheme + "://" + app.Host
	page := []byte(strings.Replace(frame, "__app__", origin, 1))
	return stdhttp.HandlerFunc(func(w stdhttp.ResponseWriter, r *stdhttp.Request) {
		header := w.Header()
		for name, value := range map[string]string{
			"Content-Security-Policy": policy + origin, "Referrer-Policy": "no-referrer", "X-Content-Type-Options": "nosniff", "X-DNS-Prefetch-Control": "off",
			"Permissions-Policy": denied, "Cross-Origin-Resource-Policy": "cross-origin", "Origin-Agent-Cluster": "?1", "X-Robots-Tag": "noindex",
			"Strict-Transport-Security": "max-age=63072000; includeSubDomains", "Cache-Control": "no-cache",
		} {
			header.Set(name, value)
		}
		switch {
		case r.URL.Path != "/" || r.URL.RawQuery != "":
			response.Refuse(w, &protocol.Error{Code: protocol.CodeNotFound})
		case r.Method != stdhttp.MethodGet && r.Method != stdhttp.MethodHead:
			header.Set("Allow", "GET, HEAD")
			response.Refuse(w, protocol.Errorf(protocol.CodeMethodNotAllowed, "Only GET and HEAD are supported."))
		default:
			header.Set("Content-Type", "text/html; charset=utf-8")
			_, _ = w.Write(page)
		}
	})
}

// denied are the features of browsers that artifacts do not have.
const denied = "accelerometer=(), autoplay=(), camera=(), clipboard-read=(), clipboard-write=(), display-capture=(), encrypted-media=(), fullscreen=(), gamepad=(), geolocation=(), " +
	"gyroscope=(), hid=(), idle-detection=(), local-fonts=(), magnetometer=(), microphone=(), midi=(), payment=(), picture-in-picture=(), publickey-credentials-get=(), " +
	"screen-wake-lock=(), serial=(), storage-access=(), usb=(), web-share=(), window-management=(), xr-spatial-tracking=()"
