package router

import (
	"context"
	"strings"
	"testing"

	"turnstone/http/route"
	"turnstone/protocol"
)

type thingInput struct {
	ThingID string `path:"thing_id"`
}

type changeThingInput struct {
	ThingID string `path:"thing_id"`
	Body    struct {
		Name string `json:"name"`
	}
}

type thingOutput struct {
	Body struct {
		Name string `json:"name"`
	}
}

func TestATableDeclaresTheParametersOfItsPaths(t *testing.T) {
	read := route.Call("GET", "/things/{thing_id}", "getThing", "", route.Reads, func(context.Context, *thingInput) (*thingOutput, error) { return &thingOutput{}, nil })
	change := route.Call("PUT", "/things/{thing_id}", "putThing", "", route.Writes, func(context.Context, *changeThingInput) (*thingOutput, error) { return &thingOutput{}, nil })
	owned := route.Text("thing_id")
	owned.Owns = func(context.Context, protocol.AccountID, string) error { return nil }
	for name, c := range map[string]struct {
		params []route.Param
		route  route.Route
		want   string
	}{
		"declared":                    {[]route.Param{route.Text("thing_id")}, read, ""},
		"not declared":                {nil, read, "no noun declares the parameter {thing_id}"},
		"declared twice":              {[]route.Param{route.Text("thing_id"), route.Text("thing_id")}, read, "declared twice"},
		"of an operation with a body": {[]route.Param{owned}, change, ""},
		"without its owner":           {[]route.Param{route.Text("thing_id")}, change, "the ownership of {thing_id} is not checked"},
	} {
		_, err := routerOf(t, route.Table{Params: c.params}.With(c.route))
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
