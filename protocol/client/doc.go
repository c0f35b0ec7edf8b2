// Package client is a Go client of the published API (protocol/openapi.json). It signs in, sends requests, repeats
// requests that may be repeated, and reads the event stream of a turn over as many connections as needed.
//
//	c, err := client.New("https://chat.example.org", client.Options{})
//	_, err = c.SignIn(ctx, "ada@example.org", password)
//	started, err := c.Chat(ctx, client.ChatRequest{Input: client.Text("Hello"), IdempotencyKey: client.NewKey()})
//	defer started.Turn.Close()
//	for {
//		event, err := started.Turn.Next(ctx)
//		if errors.Is(err, io.EOF) {
//			break // the turn has ended
//		}
//		…
//	}
//
// There are three layers. FrameReader parses the frames of any stream of server-sent events. Stream adds the rules of
// this API for one response: its events are contiguous and equal to their frames. TurnReader adds resumption: it
// reconnects until it has returned the last event of the turn.
//
// The package imports only package protocol and what is below it; the rules of a log are those of package verify. Its only
// state is the session.
package client
