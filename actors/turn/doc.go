// Package turn runs turns: a Host starts, finds, adopts and drains them on a node, and one actor runs each, around the state
// machine of package machine.
//
//	http ── StartTurn, Command ──▶ Host ──▶ turnActor ── modelCalls, tools
//	http ◀── frames ── Reader ◀── tail.Stream ◀──┘
//
// Packages http and cmd call it. It imports no other kind of work, and reaches stores, models and tools only through the interfaces
// of ports.go.
//
// A turn that runs elsewhere is reached through peers: commands by an ask, readers by a relay, or through the log in the store.
package turn
