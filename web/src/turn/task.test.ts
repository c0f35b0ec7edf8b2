import { describe, expect, test } from "vitest";
import type { TaskEvent } from "./follow";
import { foldTask, openTask } from "./task";
import { random } from "./turn.fake";

const task = "task_01h2xcejqtf2nbrexx3vqjhp41";

/** Returns the events of a task whose second question is struck and whose input is applied. */
function eventsOfTask(): TaskEvent[] {
  const events: TaskEvent[] = [];
  const add = (type: TaskEvent["type"], payload: object) =>
    events.push({
      protocol_version: 1,
      task_id: task,
      sequence: events.length + 1,
      type,
      at: `2026-03-01T12:30:${10 + events.length}.000Z`,
      ...payload,
    } as unknown as TaskEvent);
  const source = (state: string, id = "s1", reason = "") =>
    add("task.source", {
      source_id: id,
      state,
      kind: "web",
      title: `Tides ${id}`,
      url: `https://a.example/${id}`,
      reason,
    });
  const step = (step_id: string, state: string) => ({ step_id, question: `Question ${step_id}`, state });
  add("task.started", { question: "Why?", depth: "quick", sources: ["web"] });
  add("task.state", { state: "running" });
  add("task.plan", { plan: [step("q1", "open"), step("q2", "open")] });
  add("task.phase", { phase: "searching" });
  add("task.step", { step_id: "q1", state: "running" });
  source("found");
  source("found", "s2");
  source("reading");
  add("task.steering", {
    steering_id: "steer_1",
    outcome: "accepted",
    kind: "input",
    text: "Only spring.",
    step_id: null,
  });
  add("task.steering", { steering_id: "steer_2", outcome: "accepted", kind: "plan", text: "", step_id: null });
  add("task.step", { step_id: "q2", state: "struck" });
  source("failed", "s2", "The page does not exist.");
  source("kept");
  add("task.steering", {
    steering_id: "steer_1",
    outcome: "applied",
    kind: "input",
    text: "Only spring.",
    step_id: "x",
  });
  add("task.progress", {
    progress: { done: 3, total: 5, sources_found: 2, sources_kept: 1, reused: 0 },
    spent: { tokens: 90, pages: 2, seconds: 4 },
  });
  add("task.steering", { steering_id: "steer_3", outcome: "accepted", kind: "write_now", text: "", step_id: null });
  add("task.unknown" as TaskEvent["type"], {});
  add("task.state", { state: "failed" });
  add("task.finished", { state: "failed", failure: { code: "model_failed", detail: "" }, last_sequence: 19 });
  return events;
}

describe("folding a research task", () => {
  test("shows the plan, the sources, the inputs and the end", () => {
    const events = eventsOfTask();
    const view = foldTask(openTask(task), events);
    expect(view).toMatchObject({
      last: events.length,
      state: "failed",
      phase: "searching",
      runningSince: "2026-03-01T12:30:11.000Z",
      spent: { tokens: 90 },
      writesNow: true,
      failure: { code: "model_failed" },
    });
    expect(view.plan.map(({ state }) => state)).toEqual(["running", "struck"]);
    expect(view.sources.map(({ source_id, state, reason }) => [source_id, state, reason])).toEqual([
      ["s1", "kept", ""],
      ["s2", "failed", "The page does not exist."],
    ]);
    expect(view.inputs).toEqual([{ id: "steer_1", text: "Only spring.", outcome: "applied" }]);
  });

  test("any split, repetition and order of the events gives the same view", () => {
    const events = eventsOfTask();
    const whole = foldTask(openTask(task), events);
    for (let seed = 1; seed <= 200; seed++) {
      const next = random(seed);
      const rest = [...events, ...events.filter(() => next(3) === 0)];
      let view = openTask(task);
      while (rest.length > 0) {
        const batch = Array.from({ length: 1 + next(4) }, () => rest.splice(next(rest.length), 1)[0]);
        view = foldTask(
          view,
          batch.filter((event) => event !== undefined),
        );
      }
      expect(view, `seed ${seed}`).toEqual(whole);
    }
  });

  test("events that it has change nothing", () => {
    const view = foldTask(openTask(task), eventsOfTask());
    expect(foldTask(view, eventsOfTask().slice(2, 9))).toBe(view);
  });
});
