// Package machine contains the pure state machine of a research task. It decides which steps a task takes, what becomes of
// their results, and what the report contains. protocol.ResearchTransitions restricts its transitions, protocol.ResearchStepTransitions those of
// a question and protocol.ResearchSourceTransitions those of a source.
//
//	plan ─▶ search each question in each place ─▶ read what was found ─▶ judge what was read ─▶ write ─▶ summarize ─▶ report
//	              ▲                                                            │
//	              └────── gaps: contradictions, open questions ◀───────────────┘
//
// A trigger or a command notes an entry of the journal; apply changes the state by it, and advance decides how the task continues.
//
// A machine is a function of its specification and of the entries of its journal: Restore applies the same entries to a new
// machine, and gets the same state. So it uses no clock, no randomness and no store, and it never depends on the order in
// which parallel steps end: their results are used when all of them are there, in the order of the steps. Everything that is
// true of the report by construction (each citation has a kept excerpt that supports its sentence) is decided here, with
// package evidence, and not by a model.
package machine
