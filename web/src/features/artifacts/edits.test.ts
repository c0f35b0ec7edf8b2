import { expect, test } from "vitest";
import { parseEdits, setEdit, useEdits } from "./edits";

test("damaged edits are left out", () => {
  const good = { art_a: { base: 2, text: "Tides" } };
  expect(parseEdits(JSON.stringify({ ...good, art_b: null, art_c: { base: "2", text: "" } }))).toEqual(good);
  for (const kept of [null, "", "{", "null"]) expect(parseEdits(kept)).toEqual({});
});

test("an edit ends without changing the others", () => {
  setEdit("art_a", { base: 1, text: "a" });
  setEdit("art_b", { base: 1, text: "b" });
  setEdit("art_a", null);
  expect(useEdits.getState().byID).toEqual({ art_b: { base: 1, text: "b" } });
});
