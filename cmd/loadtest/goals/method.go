package goals

// howMeasured is the section of docs/benchmarks.md that explains the figures.
const howMeasured = `
## How it is measured

The service is the shipped program with all of its protection enabled: sessions, CSRF tokens, limits (raised, but
enforced) and an idempotency key on every start. Its Postgres writes to this host computer's own disk with fsync on. The model
is a stand-in that streams OpenAI's format at a fixed pace. Every token carries the time at which it was due, and its delay
is the time from then until the client has read it. Load is open-loop, except where "in flight" marks a closed loop.

* **CPU** is user and system time from the process table, measured over a window of constant load: no sign-ups, and no
  starts except in P3 and P4. The CPU of Postgres includes all of its processes. The column "others' CPUs" is the number of
  processors that were busy with other work, including Redis and kernel threads. A round with a high value is noisy.
* **Tokens per event** above one show that the service groups tokens: the busier it is, the more tokens share an event, a
  row and a write. The CPU per token then falls while the delay grows, so read both figures together.
* **Memory** in P6 and P7 is the difference between load and rest in proportional set size (PSS). In P7 it is that of 10,000 readers
  in addition to 2,000 others, which have already brought the heap to its working size. A server counts as at rest when its memory changes by less than 0.5 %;
  if the 10,000 readers take less than that, the figure is this bound.
* **P1** and **P2** are measured at two loads. A round counts at (a) only if an event carries at most 1.1 tokens on average,
  at (b) only if the p99 of the token delay is at most 100 ms. If rounds do not count, more are measured, up to twice the
  number of rounds that must count. A goal without a round that counts is missed.
* **P3** compares percentiles: the percentile of the service minus that of direct requests to the model under the same load.
* **P4** times a start until the response header arrives, which is sent after the commit. The turn's request to the model
  falls into the measured window, the turn's end does not. The baseline is one prepared statement that writes the same rows. pgbench
  runs it as superuser (no row-level security) with the number of clients that gives the highest rate.
* **P5** is ` + "`BenchmarkJournal`" + ` of the package persistence/journal.
* **P7** compares the events per second of the server's CPU time, at 30 events a second to each reader.
* **P8** is the median of several measurements. Each starts at the load that the previous one found, and searches up or down
  for the highest load with a token delay p99 of at most 100 ms.
* **P9** drops every connection, waits one second while every log grows, and reconnects all readers at once. A reader has
  resumed when it has read the first event after its cursor.
* **P10** runs one million turns of one token each. The goal compares the live heap after 10,000 turns with that after all
  of them.
* **P11** fills the database with generated accounts of unequal size: one has 100,000 conversations and 100,000 messages, the
  others share the rest in proportion to 1/n. The words of the texts have the frequencies of a natural language. The service
  indexes all of it before the measurement. Searches and pages are requested through HTTP, one after the other, in the large
  account and in one of 1,000 messages. A common word is among the 20 most frequent ones, one of medium frequency between
  the 100th and the 400th, a rare one beyond the 4,000th.
* **P12** runs two nodes on this host computer, with mutual TLS between them, and sends inputs one after the other, in turns to the node that runs
  the turn and to the other one. The baseline is the statement that stores such an input, which pgbench runs with one client: one update of
  the turn, a row of its log, the record of the input, one commit.
* **P13** uploads a text of 1 GiB to the local object store, with the scanner for test signatures: both run in the service. The baseline is a
  bare net/http server that hashes the body while it writes it to a file, and syncs the file. In "P13 turns" each of 50 accounts uploads files
  of 2 MiB one after the other, on the processors that also run the turns, the model and the load.
* **P14** counts what is stored of a finished turn: one compressed row. A live turn has one row per append. The text is drawn
  word by word with the word frequencies of a natural language, so that no passage repeats and no two turns are equal.
* **P16** runs 50 research tasks of 25 accounts, each followed by the next, over the bundled pages: their model takes 2 s for each step, and runs
  on the same processors, as everything else does. The memory is that of 300 tasks whose model does not answer, and of 2,000 turns that wait for
  an approval and have no reader, above a service that has done the same before, on a small scale.
* **limits** are the times that the service promises, each measured at least 50 times on a cluster of three nodes. Redis and Postgres are
  stopped and frozen. Meanwhile requests are sent to every node, and ` + "`/ready`" + ` of every node is polled; the time until it reports the
  failure counts from before the fault, the recovery from when the dependency accepts connections again. For the other two, 201 turns
  stream at 20 tokens/s, each with one reader at any node; a reader whose stream ends reconnects to another node after the time that
  the service requested. The pause is the time from the last text before a takeover to the first text after it. A cancel is sent to a
  node that does not run the turn, while the process of the model is frozen, and counts until the reader has the end of the turn. The
  score is the longest time, except for a takeover, which is promised at the 99th percentile. The baseline is the same without a fault.

` + "`make bench`" + ` fails if a "must" is missed that is not among the known misses (` + "`knownMisses`" + ` in ` + "`cmd/loadtest/goals/goals.go`" + `), or that
is missed by more than 1.2 times what was measured when it became known.
A run with ` + "`--quick`" + ` has short windows and small loads (P10: 1,000 turns compared with 100). It judges no goal and does not
write this document.
`
