import { expect, test } from "vitest";
import { chooseTools, forgetTools, parseChoices, toolsOf, withChoice } from "./tool-choice";

test("a conversation has a choice while something is off", () => {
  const one = withChoice({}, "a", { web_search: false, off: [] });
  expect(one).toEqual({ a: { web_search: false } });
  const two = withChoice(one, "b", { off: ["calculate"] });
  expect(two).toEqual({ a: { web_search: false }, b: { off: ["calculate"] } });
  expect(withChoice(two, "a", { web_search: true, off: [] })).toEqual({ b: { off: ["calculate"] } });
});

test("the oldest choices are dropped", () => {
  let choices = {};
  for (let i = 0; i < 205; i++) choices = withChoice(choices, `c${i}`, { off: ["calculate"] });
  choices = withChoice(choices, "c5", { web_search: false });
  const kept = Object.keys(choices);
  expect(kept.length).toBe(200);
  expect(kept[0]).toBe("c6");
  expect(kept.at(-1)).toBe("c5");
});

test("damaged choices are left out", () => {
  const good = { a: { web_search: false, off: ["calculate"] } };
  expect(parseChoices(JSON.stringify({ ...good, b: null, c: { off: [1] }, d: { web_search: "no" } }))).toEqual(good);
  for (const kept of [null, "", "{", "null", "7"]) expect(parseChoices(kept)).toEqual({});
});

test("tools that the service no longer has are removed from the choice of a conversation", () => {
  chooseTools("a", { web_search: false, off: ["gone", "calculate"] });
  chooseTools("b", { off: ["gone"] });
  for (const conversation of ["a", "b", "c"]) forgetTools(conversation, ["gone"]);
  expect(["a", "b", "c"].map(toolsOf)).toEqual([{ web_search: false, off: ["calculate"] }, undefined, undefined]);
});
