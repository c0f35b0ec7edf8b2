// Package policy decides whether a tool call of a model may run at once, needs an approval of the user, or fails. It is pure:
// the same call, with the same reading and the same grants, is decided in the same way on every node. Package toolbox
// describes the tools to it, and the machine of a turn asks it.
//
// Two rules decide. An effect outside of the account's own material needs an approval. And nothing that the account has
// elsewhere leaves the service unnoticed: once a model has read private data or text of strangers, a call that sends out
// something that the user has not written needs an approval, with the part marked.
package policy
