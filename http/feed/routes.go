package feed

import (
	"reflect"

	"github.com/danielgtaylor/huma/v2"

	"turnstone/http/route"
	"turnstone/http/sse"
	"turnstone/protocol"
)

// Routes returns the routes of the feed.
func (h *Handlers) Routes() route.Table {
	return route.Table{
		Tags: []route.Tag{{Name: "events", Description: "The changes of the account, as a stream."}},
		Routes: []route.Route{
			route.Stream("GET", "/events", "followAccount", "Stream the changes of the account", route.Reads, h.getEvents).
				DescribedAs(description()).
				WithCodes(protocol.CodeTooManyStreams).
				Documented(func(api huma.API, op *huma.Operation) {
					op.Responses["200"] = &huma.Response{
						Description: "The items of the feed, until the client disconnects. Each one is a server-sent event with a cursor in `id`, its type in `event` and the item in `data`.",
						Content: map[string]*huma.MediaType{sse.ContentType: {
							Schema: api.OpenAPI().Components.Schemas.Schema(reflect.TypeFor[protocol.FeedItem](), true, ""),
						}},
					}
				}),
		},
	}
}
