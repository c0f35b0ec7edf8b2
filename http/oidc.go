package http

import (
	stdhttp "net/http"

	"turnstone/http/auth"
	"turnstone/http/response"
	"turnstone/http/router"
)

type oidcStartInput struct {
	Provider string `path:"provider" maxLength:"64"`
	ReturnTo string `query:"return_to" maxLength:"2048" default:"/" doc:"The path of this service to which the browser is redirected after the sign-in."`
	Link     bool   `query:"link" doc:"Link the identity to the signed-in account. Requires a recent sign-in."`
}

func (h *accountHandlers) oidcStart(w stdhttp.ResponseWriter, r *stdhttp.Request, in *oidcStartInput) error {
	target, err := h.auth.OIDC.Start(r.Context(), r, router.AuthOf(r.Context()), in.Provider, in.ReturnTo, in.Link)
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

func (h *accountHandlers) oidcCallback(w stdhttp.ResponseWriter, r *stdhttp.Request, in *oidcCallbackInput) error {
	callback := auth.Callback(*in)
	target, err := h.auth.OIDC.Finish(r.Context(), r, router.AuthOf(r.Context()), &callback)
	if err != nil {
		return err
	}
	response.Redirect(w, target)
	return nil
}
