package auth

import (
	stdhttp "net/http"
	"slices"
	"strings"
)

// The names of the cookies. Where browsers reach the service over https, each has the prefix __Host-: a browser then
// refuses the cookie without Secure, for another host or for another path. Plain http is used on loopback only.
const (
	sessionCookie = "session"
	deviceCookie  = "device"
	flowCookie    = "oidc"
	passkeyCookie = "passkey"
)

// cookies reads and sets the cookies of the service. secure reports whether browsers reach the service over https.
type cookies struct{ secure bool }

func (c cookies) name(of string) string {
	if c.secure {
		return "__Host-" + of
	}
	return of
}

// of returns the value of a cookie of a request; empty if there is none.
func (c cookies) of(r *stdhttp.Request, name string) string {
	cookie, err := r.Cookie(c.name(name))
	if err != nil {
		return ""
	}
	return cookie.Value
}

// render returns the value of a Set-Cookie header. A negative maxAge, in seconds, removes the cookie from the browser.
func (c cookies) render(name, value string, maxAge int) string {
	cookie := &stdhttp.Cookie{
		Name: c.name(name), Value: value, Path: "/", MaxAge: maxAge, HttpOnly: true, Secure: c.secure, SameSite: stdhttp.SameSiteLaxMode,
	}
	return cookie.String()
}

// set adds a cookie to a response. It replaces a cookie of the same name.
func (c cookies) set(header stdhttp.Header, name, value string, maxAge int) {
	header["Set-Cookie"] = append(slices.DeleteFunc(header["Set-Cookie"], func(other string) bool {
		return strings.HasPrefix(other, c.name(name)+"=")
	}), c.render(name, value, maxAge))
}

// ClearCookie removes the session cookie from the browser.
func (s *Service) ClearCookie(header stdhttp.Header) { s.cookies.set(header, sessionCookie, "", -1) }
