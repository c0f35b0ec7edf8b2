// Package turn runs turns: a Host starts, finds, adopts and drains them on a node, and one actor runs each, around the state
// machine of package machine.
//
//	http ── StartTurn, Command ──▶ Host ──▶ run (one actor) ── modelCalls, tools
//	http ◀── frames ── Reader ◀── tail.Stream ◀──┘
//
// A turn that runs elsewhere is reached through peers: commands by an ask, readers by a relay, or through the log in the store.
package turn
