package system

import "turnstone/http/route"

// Routes returns the routes of the service itself.
func (h *Handlers) Routes() route.Table {
	return route.Table{
		Tags: []route.Tag{{Name: "system", Description: "Health, readiness and version of the service."}},
		Routes: []route.Route{
			route.Call("GET", "/health", "getHealth", "Check that the process is running", route.Policy{Public: true, NoStore: true}, h.getHealth).WithTag("system").
				DescribedAs("Returns 200 while the process is running. Does not contact any dependency. Intended for load balancers and process supervisors."),
			route.Call("GET", "/ready", "getReady", "Check that the service is ready", route.Policy{Bucket: route.BucketReads, NoStore: true, Readiness: true}, h.getReady).WithTag("system").
				DescribedAs("Checks every dependency, at most once per second, and reports each result. " +
					"Returns 503 with the same body if a dependency is down or the node is draining. Requires a session, except on the internal listener. " +
					"While the database is down no session can be verified, and every caller receives the report.").Documented(mayReturnNotReady),
			route.Call("GET", "/version", "getVersion", "Get the running version", route.Reads.Unstored(), h.getVersion).WithTag("system").
				DescribedAs("Returns the environment, the commit of the build and the family of the model provider."),
		},
	}
}

// ProfileRoutes returns the routes of profiles.
func (h *Handlers) ProfileRoutes() route.Table {
	return route.Table{
		Tags: []route.Tag{{Name: "profiles", Description: "What each profile can do."}},
		Routes: []route.Route{
			route.Call("GET", "/profiles", "listProfiles", "List the profiles", route.Reads, h.listProfiles).
				DescribedAs("Returns what each profile can do. The profile auto resolves to balanced or coding. The list has one page."),
		},
	}
}
