package operate

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"text/tabwriter"
	"time"

	"turnstone/cmd/turnstone/admin"
)

// Node has the commands for nodes.
type Node struct {
	List  nodeList  `cmd:"" help:"List the nodes of the installation, in the order of their start."`
	Drain nodeDrain `cmd:"" help:"Drain a node: it is not ready, accepts no new turns, lets live turns end within TURNSTONE_DRAIN_GRACE and hands over the rest. Its process stays up, and not ready, until it is stopped. This cannot be undone: to use the node again, restart it."`
}

type nodeList struct {
	JSON bool `name:"json" help:"Print JSON."`
}

type nodeDrain struct {
	Node string `arg:"" optional:"" help:"Identifier of the node (node list). Unset: the node that responds at TURNSTONE_INTERNAL_LISTEN."`
	Wait bool   `help:"Wait until the node has no live turns, or is gone. Ctrl-C ends the wait, but not the drain."`
}

const (
	// drainPoll is the interval at which a wait reads the list of nodes. Nodes report their load every 0.7 s.
	drainPoll = 500 * time.Millisecond
	// settledRenewals is the number of renewals after which the load that a draining node reports is final: the first one
	// may still have counted its turns before the node was asked to drain.
	settledRenewals = 2
)

// Run prints a table.
func (c *nodeList) Run(ctx context.Context, p *Program) error {
	if c.JSON {
		return p.callInternal(ctx, http.MethodGet, "/admin/nodes")
	}
	nodes, err := p.nodes(ctx)
	if err != nil {
		return err
	}
	return PrintNodes(p.Stdout, nodes)
}

// PrintNodes prints nodes as a table.
func PrintNodes(to io.Writer, nodes []admin.Node) error {
	table := tabwriter.NewWriter(to, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "NODE\tADDRESS\tSTATE\tLIVE TURNS\tCAPACITY\tBUILD\tSTARTED\t")
	for _, n := range nodes {
		capacity, mark := "no limit", ""
		if n.Capacity > 0 {
			capacity = fmt.Sprint(n.Capacity)
		}
		if n.Responding {
			mark = "this node"
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%d\t%s\t%s\t%s\t%s\n",
			n.NodeID, orDash(n.Address), n.State, n.LiveTurns, capacity, orDash(n.Build[:min(len(n.Build), shortBuild)]), n.StartedAt.Format(time.RFC3339), mark)
	}
	return table.Flush()
}

// shortBuild is the number of characters of a commit that a table shows.
const shortBuild = 12

func orDash(text string) string {
	if text == "" {
		return "-"
	}
	return text
}

// Run returns when the drain is requested or, with Wait, when the node has no live turns.
func (c *nodeDrain) Run(ctx context.Context, p *Program) error {
	nodes, err := p.nodes(ctx)
	if err != nil {
		return err
	}
	at := slices.IndexFunc(nodes, func(n admin.Node) bool { return n.NodeID == c.Node || c.Node == "" && n.Responding })
	switch {
	case at < 0 && c.Node == "":
		return errors.New("the other nodes have declared the node that responds dead: it ends by itself")
	case at < 0:
		return fmt.Errorf("no node %s is running", c.Node)
	}
	node := nodes[at]
	response, err := p.request(ctx, http.MethodPost, "/admin/nodes/"+url.PathEscape(node.NodeID)+"/drain")
	if err != nil {
		return err
	}
	if err := response.Body.Close(); err != nil {
		return fmt.Errorf("draining a node: %w", err)
	}
	fmt.Fprintf(p.Stdout, "The node %s drains. Its process stays up, and not ready, until it is stopped.\n", node.NodeID)
	if !c.Wait {
		return nil
	}
	return p.awaitDrained(ctx, node)
}

// awaitDrained waits until a node that was asked to drain has no live turns or is gone, and prints each change.
func (p *Program) awaitDrained(ctx context.Context, node admin.Node) error {
	ticker := time.NewTicker(drainPoll)
	defer ticker.Stop()
	settled, printed := int64(-1), -1
	for {
		nodes, err := p.nodes(ctx)
		at := slices.IndexFunc(nodes, func(n admin.Node) bool { return n.NodeID == node.NodeID })
		switch {
		case node.Responding && errors.Is(err, errUnreachable) && ctx.Err() == nil:
			at = -1 // it was stopped
		case err != nil:
			return err
		}
		if at < 0 {
			_, err := fmt.Fprintf(p.Stdout, "The node %s is gone.\n", node.NodeID)
			return err
		}
		seen := nodes[at]
		if settled < 0 {
			settled = seen.Renewals + settledRenewals
		}
		if seen.LiveTurns == 0 && seen.Renewals >= settled {
			_, err := fmt.Fprintf(p.Stdout, "The node %s has no live turns.\n", node.NodeID)
			return err
		}
		if seen.LiveTurns != printed {
			printed = seen.LiveTurns
			fmt.Fprintf(p.Stdout, "live turns: %d\n", printed)
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return fmt.Errorf("the wait has ended, and the node still drains: %w", ctx.Err())
		}
	}
}

// nodes returns the nodes of the installation.
func (p *Program) nodes(ctx context.Context) ([]admin.Node, error) {
	response, err := p.request(ctx, http.MethodGet, "/admin/nodes")
	if err != nil {
		return nil, err
	}
	defer func() { _ = response.Body.Close() }()
	var list admin.NodeList
	if err := json.NewDecoder(response.Body).Decode(&list); err != nil {
		return nil, fmt.Errorf("reading the list of nodes: %w", err)
	}
	return list.Nodes, nil
}
