// Package outbound sends requests to addresses that a user, a model or a page has chosen. It connects only to public
// addresses and to what the operator allows, whatever the spelling of an address is, and also after redirects and when the
// address of a name changes: the check is made on the resolved address of each connection. It uses no proxy, since the
// resolved address would then be unknown.
//
// Clients of stores, mail servers and models do not use it: operators choose their addresses.
package outbound
