package operate

import (
	"fmt"

	"turnstone/cmd/turnstone/cluster"
)

// Cluster has the commands for what the nodes of a cluster share.
type Cluster struct {
	Certs clusterCerts `cmd:"" help:"Create a certificate and its key for a node, and before that the authority (ca.crt, ca.key) if the folder has none. No file is overwritten. Every node needs ca.crt and its own two files; keep ca.key apart from the nodes."`
}

type clusterCerts struct {
	Dir  string   `default:"." help:"Folder of the authority, and for the new files."`
	Node string   `default:"node" help:"Name of the node, and of its files: <node>.crt and <node>.key."`
	Host []string `help:"Further DNS name or IP address of the node; it can be repeated. Nodes need none: they verify the name node.turnstone.internal, which every certificate has."`
	Days int      `default:"90" help:"Days for which the certificate of the node is valid. The authority is valid for 10 years."`
}

// Run prints the paths of the files that it created.
func (c *clusterCerts) Run(p *Program) error {
	created, err := cluster.Issue(cluster.Request{Folder: c.Dir, Node: c.Node, Hosts: c.Host, Days: c.Days})
	for _, path := range created {
		if _, err := fmt.Fprintln(p.Stdout, path); err != nil {
			return err
		}
	}
	return err
}
