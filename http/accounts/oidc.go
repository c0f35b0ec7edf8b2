package accounts

import (
	stdhttp "net/http"

	"turnstone/http/auth"
	"turnstone/http/exchange"
	"turnstone/http/response"
)

type oidcStartInput struct {
	Provider string `path:"provider" maxLength:"64"`
	ReturnTo string `query:"return_to" maxLength:"2048" default:"/" doc:"The path of this service to which the browser is redirected after the sign-in."`
	Link     bool   `query:"link" doc:"Link the identity to the signed-in account. Requires a recent sign-in."`
}

// oidcStart starts a sign-in. HEAD has no effect: it redirects to the page of the provider without a sign-in.
func (h *Handlers) oidcStart(w stdhttp.ResponseWriter, r *stdhttp.Request, in *oidcStartInput) error {
	if r.Method == stdhttp.MethodHead {
		target, err := h.Auth.OIDC.Page(r.Context(), in.Provider, in.ReturnTo)
		if err != nil {
			return err
		}
		response.Redirect(w, target)
		return nil
	}
	target, err := h.Auth.OIDC.Start(r.Context(), r, exchange.AuthOf(r.Context()), in.Provider, in.ReturnTo, in.Link)
	if err != nil {
		return err
	}
	response.Redirect(w, target)
	return nil
}

type oidcCallbackInput struct {
	Provider string `path:"provider" maxLength:"64"`
	State    string `query:"state" maxLength:"512"`
	Code     string `query:"code" maxLength:"4096"`
	Issuer   string `query:"iss" maxLength:"2048"`
	Failure  string `query:"error" maxLength:"256"`
}

// oidcCallback ends a sign-in. HEAD has no effect, because a state and a code work once: it redirects to the app.
func (h *Handlers) oidcCallback(w stdhttp.ResponseWriter, r *stdhttp.Request, in *oidcCallbackInput) error {
	if r.Method == stdhttp.MethodHead {
		if _, err := h.Auth.OIDC.Page(r.Context(), in.Provider, "/"); err != nil {
			return err
		}
		response.Redirect(w, "/")
		return nil
	}
	callback := auth.Callback(*in)
	target, err := h.Auth.OIDC.Finish(r.Context(), r, exchange.AuthOf(r.Context()), &callback)
	if err != nil {
		return err
	}
	response.Redirect(w, target)
	return nil
}
