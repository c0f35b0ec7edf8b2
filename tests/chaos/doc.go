// Package chaos runs a cluster of three nodes under a steady load, and takes nodes, or what they need, away. The package contains
// only tests.
//
// TestCluster starts the built program three times, on one Postgres and one Redis; each node reaches them, and is reached by the
// others, through proxies of its own. Clients start, steer, cancel and queue turns, decide approvals (twice, on two nodes),
// write titles, drafts, conversations and files, and read turns and the account feed, each time through a node that they choose
// at random. Of the requests with a key, and of the commands, one in eight has a client that cuts the connection before the response,
// and one in eight a client that loses the response; both repeat it on any node. A turn has two readers: one reconnects as an EventSource does, the other after 3 s without an event.
//
// The faults: a rolling deploy, kill -9 of one and of two nodes, a kill during a drain, a pause of 15 s, a node that is stopped for half
// of the time, a node without Postgres, without Redis, or which its peers cannot reach, and two nodes that cannot reach each other,
// one way or both. The authority and the certificates of the nodes are replaced while the connections between them break. Of what all nodes need, Postgres is restarted, crashes and recovers, or is
// killed and replaced by its synchronous standby, and Redis is emptied, restarted, or refuses writes. Their order and all choices of the
// clients follow from a seed, which is printed.
//
// What it checks, for the whole run:
//   - Each node has a ledger. Only a node with a fault may refuse a request or break a connection: from just before the fault until its
//     successor serves. Commands may be refused on all nodes while one cannot be reached, and on the two between which the network is
//     cut. All nodes may refuse requests while Postgres or Redis is away, and none when Redis was emptied. After each fault, every
//     turn continues before the next one.
//   - Every turn that was live on the node continues; the longest pause is measured.
//   - A node that joins moves no turn, and neither does a restart of Postgres. A node that was declared dead notices it and ends; a
//     partition between nodes, or what happens to Postgres or Redis, ends none.
//   - At rest, the database equals what the clients know: turns, items of queues, conversations and files each once, and no others; titles
//     and drafts as acknowledged; logs contiguous, with one end, the same bytes for all readers and without an event of an earlier owner
//     after one of a later owner; commands and decisions as their receipts say; every idempotency key with its response.
//   - The account feed reported every change that was acknowledged, in order, without a reset other than one for each failover.
//
// `make chaos` runs it for three minutes with the program as it is shipped, prints its figures and checks the promised times
// through nodes without a fault, from the first attempt to an outcome: 2 s for a start, a read or a write, and 5 s more for a command,
// whose turn may have to be taken over first, and for a request with a key, which a node may have claimed before it died. `make test` runs a round with three of the faults, which takes about a
// minute and judges no time; -chaos.only chooses others. `make upgrade OLD=…` starts the nodes with the program of an earlier commit: the deploy replaces it by
// the current one, the other faults happen while both run, and the next deploy returns to the old one.
//
// TestAClusterServesWithoutWhatAnAsynchronousStandbyHadNotReceived promotes a standby that lacks acknowledged writes.
package chaos
