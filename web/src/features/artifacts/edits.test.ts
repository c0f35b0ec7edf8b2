import { afterEach, beforeEach, expect, test, vi } from "vitest";
import {
  beginEdit,
  discardEdits,
  endEdit,
  parseEdits,
  replacedVersion,
  restoreEdit,
  settleEdit,
  storeEdits,
  typeText,
  unsavedArtifacts,
  useEdits,
  type Edit,
} from "./edits";

const edit = (artifact = "art_a"): Edit => useEdits.getState().byID[artifact]!;

beforeEach(() => {
  vi.useFakeTimers();
  useEdits.setState({ byID: {} });
});
afterEach(() => {
  storeEdits(); // ends the timer
  vi.useRealTimers();
  vi.unstubAllGlobals();
});

test("damaged edits are left out", () => {
  const good = { art_a: { id: "one", base: 2, text: "Tides" } };
  expect(parseEdits(JSON.stringify({ ...good, art_b: null, art_c: { base: "2", text: "" } }))).toEqual(good);
  for (const kept of [null, "", "{", "null"]) expect(parseEdits(kept)).toEqual({});
});

test("an edit ends without changing the others", () => {
  beginEdit("art_a", 1, "a");
  beginEdit("art_b", 1, "b");
  endEdit("art_a");
  expect(edit("art_a")).toBeUndefined();
  expect(edit("art_b")).toMatchObject({ base: 1, text: "b" });
});

test("an edit ends when its text is saved, and continues with the text that was typed during the save", () => {
  beginEdit("art_a", 1, "a");
  const sent = edit();
  expect(settleEdit("art_a", sent, 2)).toBe(true);
  expect(edit()).toBeUndefined();

  restoreEdit("art_a", sent);
  typeText("art_a", "ab");
  expect(settleEdit("art_a", sent, 2)).toBe(false);
  expect(edit()).toEqual({ ...sent, base: 2, text: "ab" });
});

test("a late save does not change an edit that was begun since", () => {
  beginEdit("art_a", 1, "a");
  const sent = edit();
  endEdit("art_a");
  settleEdit("art_a", sent, 2);
  expect(edit()).toBeUndefined();
  beginEdit("art_a", 1, "a");
  const since = edit();
  expect(settleEdit("art_a", sent, 2)).toBe(false);
  expect(edit()).toEqual(since);
});

test("the undo of a discard does not replace an edit that was begun since", () => {
  beginEdit("art_a", 1, "a");
  const discarded = edit();
  endEdit("art_a");
  restoreEdit("art_a", discarded);
  expect(edit()).toEqual(discarded);
  endEdit("art_a");
  beginEdit("art_a", 2, "b");
  restoreEdit("art_a", discarded);
  expect(edit()).toMatchObject({ base: 2, text: "b" });
});

test("a save replaces the version whose difference is shown, even if there is a newer one", () => {
  expect(replacedVersion(2, 2, undefined, false)).toBe(2);
  expect(replacedVersion(2, 3, undefined, false)).toBeNull();
  expect(replacedVersion(2, 3, { from: 2, to: 3 }, false)).toBe(3);
  expect(replacedVersion(2, 4, { from: 2, to: 3 }, false)).toBe(3);
  expect(replacedVersion(3, 4, { from: 2, to: 3 }, false)).toBeNull();
  expect(replacedVersion(2, 3, undefined, true)).toBe(3);
});

test("an edit is stored a second after typing, without another event", () => {
  const stored = new Map<string, string>();
  vi.stubGlobal("sessionStorage", { setItem: (key: string, text: string) => stored.set(key, text) });
  const kept = () => parseEdits([...stored.values()][0] ?? null)["art_a"]?.text;
  beginEdit("art_a", 1, "a");
  typeText("art_a", "ab");
  expect(kept()).toBeUndefined();
  vi.advanceTimersByTime(1_000);
  expect(kept()).toBe("ab");
  typeText("art_a", "abc");
  vi.advanceTimersByTime(1_000);
  expect(kept()).toBe("abc");
  discardEdits();
  expect(kept()).toBeUndefined();
  storeEdits();
  expect(kept()).toBeUndefined();
});

test("an edit counts as unsaved if its text differs from that of its version, or if that is not known", () => {
  const contents: Record<string, string> = { "art_a 1": "a", "art_b 2": "b" };
  const count = () => unsavedArtifacts((artifact, version) => contents[`${artifact} ${version}`]).size;
  expect(count()).toBe(0);
  beginEdit("art_a", 1, "a");
  beginEdit("art_b", 2, "b");
  beginEdit("art_c", 1, "c");
  expect(count()).toBe(1);
  typeText("art_b", "bb");
  expect(count()).toBe(2);
});
