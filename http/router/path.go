package router

import (
	"context"
	"encoding"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"turnstone/http/route"
	"turnstone/protocol"
)

// Owners reports whether an account owns an object; the error is protocol.CodeNotFound if not.
type Owners interface {
	OwnsConversation(ctx context.Context, account protocol.AccountID, id protocol.ConversationID) error
	OwnsBranch(ctx context.Context, account protocol.AccountID, id protocol.BranchID) error
	OwnsProject(ctx context.Context, account protocol.AccountID, id protocol.ProjectID) error
	OwnsFollowUp(ctx context.Context, account protocol.AccountID, id protocol.FollowUpID) error
	OwnsUpload(ctx context.Context, account protocol.AccountID, id protocol.UploadID) error
	OwnsFile(ctx context.Context, account protocol.AccountID, id protocol.FileID) error
	OwnsArtifact(ctx context.Context, account protocol.AccountID, id protocol.ArtifactID) error
	OwnsTask(ctx context.Context, account protocol.AccountID, id protocol.TaskID) error
	OwnsPrompt(ctx context.Context, account protocol.AccountID, id protocol.PromptID) error
	OwnsPasskey(ctx context.Context, account protocol.AccountID, id protocol.PasskeyID) error
}

// pathParam describes a parameter of a path: how its value is spelled and, for operations with a body, whether the
// caller owns the resource that it names. Ownership is checked before the body is read, so that no 415 or 422 reveals
// that the resource of another account exists.
type pathParam struct {
	parse func(string) error
	owned func(ctx context.Context, owners Owners, account protocol.AccountID, value string) error
}

// pathParams are all parameters that the path of a route may have.
var pathParams = map[string]pathParam{
	"conversation_id": {parse: identifier[protocol.ConversationID], owned: owns(Owners.OwnsConversation)},
	"session_id":      {parse: identifier[protocol.SessionID]},
	"turn_id":         {parse: identifier[protocol.TurnID]},
	"message_id":      {parse: identifier[protocol.MessageID]},
	"approval_id":     {parse: identifier[protocol.ApprovalID]},
	"branch_id":       {parse: identifier[protocol.BranchID], owned: owns(Owners.OwnsBranch)},
	"follow_up_id":    {parse: identifier[protocol.FollowUpID], owned: owns(Owners.OwnsFollowUp)},
	"import_id":       {parse: identifier[protocol.ImportID]},
	"project_id":      {parse: identifier[protocol.ProjectID], owned: owns(Owners.OwnsProject)},
	"usage_id":        {parse: identifier[protocol.UsageID]},
	"share_id":        {parse: identifier[protocol.ShareID]},
	"upload_id":       {parse: identifier[protocol.UploadID], owned: owns(Owners.OwnsUpload)},
	"file_id":         {parse: identifier[protocol.FileID], owned: owns(Owners.OwnsFile)},
	"artifact_id":     {parse: identifier[protocol.ArtifactID], owned: owns(Owners.OwnsArtifact)},
	"task_id":         {parse: identifier[protocol.TaskID], owned: owns(Owners.OwnsTask)},
	"prompt_id":       {parse: identifier[protocol.PromptID], owned: owns(Owners.OwnsPrompt)},
	"passkey_id":      {parse: identifier[protocol.PasskeyID], owned: owns(Owners.OwnsPasskey)},
	"identity_id":     {parse: identifier[protocol.IdentityID]},
	"provider":        {parse: anyText},
	"source":          {parse: sourceOfMemory, owned: ofEveryAccount},
	"token":           {parse: anyText}, // whatever it is, the lookup of a share takes the same time
	"n":               {parse: numberInShare},
}

// numberInShare returns an error for a text that is not the number of a file or an artifact of any share.
func numberInShare(text string) error {
	if n, err := strconv.Atoi(text); err != nil || n < 1 || n > protocol.MaxSharedFiles || text != strconv.Itoa(n) {
		return protocol.Errorf(protocol.CodeNotFound, "No share has this number.")
	}
	return nil
}

func anyText(string) error { return nil }

// sourceOfMemory returns an error for a text that is not a source of memory.
func sourceOfMemory(text string) error {
	if !slices.Contains(protocol.MemorySources, protocol.MemorySource(text)) {
		return protocol.Errorf(protocol.CodeNotFound, "There is no such source of memory.")
	}
	return nil
}

// ofEveryAccount is for what every account has.
func ofEveryAccount(context.Context, Owners, protocol.AccountID, string) error { return nil }

// checkTable returns an error if a path has a parameter that is not in pathParams, or if an operation would read its
// body before the ownership of the first parameter is checked.
func checkTable(routes []route.Route, api *huma.OpenAPI) error {
	for _, r := range routes {
		if r.Policy.Heavy && (r.Policy.Public || heavyQueues()[r.Policy.Bucket] == nil) {
			return fmt.Errorf("%s %s: there is no queue for its requests", r.Method, r.Path)
		}
		for i, name := range namesIn(r.Path) {
			param := pathParams[name]
			if param.parse == nil {
				return fmt.Errorf("%s %s: pathParams has no {%s}", r.Method, r.Path, name)
			}
			if i == 0 && param.owned == nil && route.OperationAt(api, r.Method, r.Path).RequestBody != nil {
				return fmt.Errorf("%s %s: the ownership of {%s} is not checked before the body is read", r.Method, r.Path, name)
			}
		}
	}
	return nil
}

func identifier[T any, P interface {
	*T
	encoding.TextUnmarshaler
}](text string) error {
	return P(new(T)).UnmarshalText([]byte(text))
}

// checkPath responds 404 for an identifier that is malformed and, on operations with a body, for one of a resource that
// the caller does not own. Handlers of other operations check ownership themselves, in the one statement that they run
// anyway.
func (rt *Router) checkPath(ctx huma.Context, next func(huma.Context)) {
	op := ctx.Operation()
	for _, name := range namesIn(op.Path) {
		if pathParams[name].parse(ctx.Param(name)) != nil {
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
		if owned := pathParams[name].owned; owned != nil {
			if err := owned(ctx.Context(), rt.Owners, CallerOf(ctx.Context()).AccountID, ctx.Param(name)); err != nil {
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
	segments := make([][]string, len(rt.routes))
	for i, r := range rt.routes {
		has[r.Method+" "+r.Path] = true
		segments[i] = strings.Split(r.Path, "/")
	}
	rt.hidden = map[string]bool{}
	for i, fixed := range rt.routes {
		for j, general := range rt.routes {
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

// owns returns the check of pathParam for identifiers of a kind.
func owns[T any, P interface {
	*T
	encoding.TextUnmarshaler
}](check func(Owners, context.Context, protocol.AccountID, T) error) func(context.Context, Owners, protocol.AccountID, string) error {
	return func(ctx context.Context, owners Owners, account protocol.AccountID, value string) error {
		var id T
		if err := P(&id).UnmarshalText([]byte(value)); err != nil {
			return &protocol.Error{Code: protocol.CodeNotFound}
		}
		return check(owners, ctx, account, id)
	}
}
