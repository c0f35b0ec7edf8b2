package router

import (
	"fmt"
	"slices"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"turnstone/http/exchange"
	"turnstone/http/route"
	"turnstone/protocol"
)

// paramsOf returns the parameters of a table by their names.
func paramsOf(table route.Table) (map[string]route.Param, error) {
	params := map[string]route.Param{}
	for _, param := range table.Params {
		if params[param.Name].Parse != nil {
			return nil, fmt.Errorf("the parameter {%s} is declared twice", param.Name)
		}
		params[param.Name] = param
	}
	return params, nil
}

// checkTable returns an error if a path has a parameter that no noun declares, or if an operation would read its body before
// the ownership of the first parameter is checked.
func (rt *Router) checkTable() error {
	for _, r := range rt.table.Routes {
		if r.Policy.Heavy && (r.Policy.Public || heavyQueues()[r.Policy.Bucket] == nil) {
			return fmt.Errorf("%s %s: there is no queue for its requests", r.Method, r.Path)
		}
		for i, name := range namesIn(r.Path) {
			param := rt.params[name]
			if param.Parse == nil {
				return fmt.Errorf("%s %s: no noun declares the parameter {%s}", r.Method, r.Path, name)
			}
			if i == 0 && param.Owns == nil && route.OperationAt(rt.api.OpenAPI(), r.Method, r.Path).RequestBody != nil {
				return fmt.Errorf("%s %s: the ownership of {%s} is not checked before the body is read", r.Method, r.Path, name)
			}
		}
	}
	return nil
}

// checkPath responds 404 for an identifier that is malformed and, on operations with a body, for one of a resource that
// the caller does not own. Handlers of other operations check ownership themselves, in the one statement that they run
// anyway.
func (rt *Router) checkPath(ctx huma.Context, next func(huma.Context)) {
	op := ctx.Operation()
	for _, name := range namesIn(op.Path) {
		if rt.params[name].Parse(ctx.Param(name)) != nil {
			rt.failOperation(ctx, &protocol.Error{Code: protocol.CodeNotFound})
			return
		}
	}
	if op.RequestBody != nil && op.Metadata["unowned"] != true {
		if err := rt.checkOwner(ctx, op); err != nil {
			rt.failOperation(ctx, err)
			return
		}
	}
	next(ctx)
}

func (rt *Router) checkOwner(ctx huma.Context, op *huma.Operation) error {
	for _, name := range namesIn(op.Path) {
		if owns := rt.params[name].Owns; owns != nil {
			if err := owns(ctx.Context(), exchange.CallerOf(ctx.Context()).AccountID, ctx.Param(name)); err != nil {
				return err
			}
		}
	}
	return nil
}

// hideParameters responds 405 to the methods that a path with a fixed segment does not have, where a parameter matches that
// segment too. Otherwise DELETE /files/uploads would look for a file with the identifier "uploads".
func (rt *Router) hideParameters() {
	has := map[string]bool{}
	routes := rt.table.Routes
	segments := make([][]string, len(routes))
	for i, r := range routes {
		has[r.Method+" "+r.Path] = true
		segments[i] = strings.Split(r.Path, "/")
	}
	rt.hidden = map[string]bool{}
	for i, fixed := range routes {
		for j, general := range routes {
			if !isCaseOf(segments[i], segments[j]) {
				continue
			}
			if name := general.Method + " " + fixed.Path; !has[name] && !rt.hidden[name] {
				rt.hidden[name] = true
				rt.mux.MethodFunc(general.Method, fixed.Path, rt.unknownMethod)
			}
		}
	}
}

// isCaseOf reports whether the segments of a pattern match every path that a pattern with fixed segments matches.
func isCaseOf(fixed, general []string) bool {
	return slices.EqualFunc(fixed, general, func(a, b string) bool {
		return a == b || strings.HasPrefix(b, "{")
	})
}

// namesIn returns the names in braces of a pattern.
func namesIn(pattern string) []string {
	var names []string
	for segment := range strings.SplitSeq(pattern, "/") {
		if strings.HasPrefix(segment, "{") {
			names = append(names, strings.Trim(segment, "{}"))
		}
	}
	return names
}
