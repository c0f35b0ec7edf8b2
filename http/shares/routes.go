package shares

import (
	stdhttp "net/http"
	"strconv"

	"turnstone/http/route"
	"turnstone/http/transfer"
	"turnstone/protocol"
)

const inConversation = "/conversations/{conversation_id}/shares"

// Routes returns the routes with which an account manages its shares.
func (h *Handlers) Routes() route.Table {
	return route.Table{
		Tags:   []route.Tag{{Name: "shares", Description: "The shares of the account."}},
		Params: []route.Param{route.Identifier[protocol.ShareID]("share_id", nil)},
		Routes: []route.Route{
			route.Call("POST", inConversation, "createShare", "Share a conversation", route.Shares, h.create).
				DescribedAs("Takes a snapshot of the conversation that everybody who has its address can read until it expires or is revoked. Later messages are not included. "+
					"The snapshot has the title, and the role, time, text, code and profile of each message; it has no identifiers, reasoning, tool calls, notices, usage or feedback. "+
					"Of the files of the messages, readers may download those in `file_ids`; the others are only counted. "+
					"A file that the account does not have, or that was deleted, gets 404, and one that no message of the snapshot has, 422. "+
					"A share does not keep its files: deleting one ends its downloads. "+
					"Of the artifacts of the conversation, those in `artifact_ids` are included, each with a copy of its newest version, which does not "+
					"change any more. An artifact that the conversation does not have gets 404. "+
					"It ends at `message_id`, on the path on which this message was written, or at the last finished message of the active branch. "+
					"A conversation without a finished message, and a temporary one, get 409. "+
					"The snapshot has at most 20,000 messages with 8 MiB of text, artifacts included (422), and an account 1,000 shares. "+
					"`token` and `url` are in this response and its replays only. See GET "+inConversation+"/preview for what a share would show.").
				WithExample(route.Object{"title": "Six times seven", "expires_in_days": 7}).
				WithCodes(protocol.CodeConflict, protocol.CodeTurnInProgress, protocol.CodeTooManyShares).
				WithStatus(stdhttp.StatusCreated).Restoring(h.restoreToken),
			route.Call("GET", inConversation+"/preview", "previewShare", "Preview a share", route.Lists, h.preview).
				DescribedAs("Returns what a share of the conversation would show if it were created now, in pages. Creates nothing. "+
					"To share exactly these messages, pass `message_id` of the response to the creation.").
				WithCodes(protocol.CodeConflict, protocol.CodeTurnInProgress),
			route.Call("GET", inConversation, "listConversationShares", "List the shares of a conversation", route.Lists, h.listOfConversation).
				DescribedAs("Lists the shares of a conversation that have not expired, newest first."),
			route.Call("GET", "/shares", "listShares", "List shares", route.Lists, h.list).
				DescribedAs("Lists all shares of the account that have not expired, newest first."),
			route.Call("GET", "/shares/{share_id}", "getShare", "Get a share", route.Reads, h.get).
				DescribedAs("Returns a share that has not expired, without its token."),
			route.Call("DELETE", "/shares/{share_id}", "revokeShare", "Revoke a share", route.Writes, h.revoke).
				DescribedAs("Ends a share at once, and erases its snapshot."),
		},
	}
}

// SharedRoutes returns the routes with which everybody reads a share.
func (h *Handlers) SharedRoutes() route.Table {
	return route.Table{
		Tags: []route.Tag{{Name: "shared", Description: "Shares, as everybody who has their address can read them."}},
		Params: []route.Param{
			route.Text("token"), // whatever it is, the lookup takes the same time
			{Name: "n", Parse: parseNumber},
		},
		Routes: []route.Route{
			route.Call("GET", "/shared/{token}", "openShare", "Read a share", route.Shared, h.open).
				DescribedAs("Returns a page of a share. Needs no session: the token grants access. Unknown, expired and revoked tokens get the same 404."),
			route.Stream("GET", "/shared/{token}/files/{n}", "getSharedFile", "Download a file of a share", route.Shared, h.download).
				DescribedAs("Sends the content of a file that the share carries, or one range of it. Needs no session. "+
					"Any other file, one that was deleted, and a token that grants no access get the same 404. An address may download 8 files at once. "+
					"The download ends when the share ends or the file is deleted, and a client that accepts nothing for 30 seconds is disconnected.").
				WithCodes(protocol.CodeRange, protocol.CodeTooManyRequests).
				Documented(transfer.DocumentFile),
			route.Stream("GET", "/shared/{token}/artifacts/{n}", "getSharedArtifact", "Download an artifact of a share", route.Shared, h.downloadArtifact).
				DescribedAs("Sends the content of an artifact that the share carries, or one range of it, as a download of the type text/plain, which no "+
					"browser runs. With `format=csv`, a table has line ends as in RFC 4180, and an apostrophe before each cell that a spreadsheet would "+
					"take for a formula. Needs no session. Any other artifact, and a token that grants no access, get the same 404. "+
					"It has the limits of the files of shares, and ends with the share as their downloads do.").
				WithCodes(protocol.CodeRange, protocol.CodeTooManyRequests).
				Documented(transfer.DocumentFile),
		},
	}
}

// parseNumber returns an error for a text that is not the number of a file or an artifact of any share.
func parseNumber(text string) error {
	if n, err := strconv.Atoi(text); err != nil || n < 1 || n > protocol.MaxSharedFiles || text != strconv.Itoa(n) {
		return protocol.Errorf(protocol.CodeNotFound, "No share has this number.")
	}
	return nil
}
