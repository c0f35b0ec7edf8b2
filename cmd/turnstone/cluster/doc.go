// Package cluster creates and loads the certificates with which the nodes of a cluster authenticate one another.
//
// Every node has a certificate of the cluster's own authority with the DNS name Name. Nodes verify this name and not the
// address that they connect to, so a node can have any address, and change it.
//
// It does not listen and does not send messages. The wiring of the service gives the result of Load to the cluster's
// listener and connections; the commands `config check`, `doctor` and `cluster certs` use the rest.
package cluster
